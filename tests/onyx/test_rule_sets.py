"""A Schematron rule set in a network: each assertion a profile, kept as its file says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from onyx import DataSource, User
from onyx.rule_sets import import_rules, read_rule_set
from tests.onyx.test_cli_network import Shell, shell, write

__all__ = ["shell"]

RULES = """<schema xmlns="http://purl.oclc.org/dsdl/schematron" queryBinding="xslt2">
<let name="most" value="100"/>
<pattern><rule context="bill">
<assert id="has-sum" test="sum">Bill <value-of select="@no"/> has no sum.</assert>
<assert id="most" test="not(sum > $most)" flag="warning">too much</assert>
</rule></pattern>
</schema>"""
BAD = RULES.replace("</rule>", '<assert id="now" test="base-uri() = @day"/></rule>')


async def test_messages_are_checked_on_their_way(registration: str, tmp_path: Path) -> None:
    rules = read_rule_set(write(tmp_path / "bills.sch", RULES))
    source = await DataSource.register(registration)
    async with User(registration, "audit") as user, source:
        done = await import_rules(user, "bills", rules)
        assert list(done.added) == ["has-sum", "most"]
        await source.publish(b'<bill no="7"/>')
        await source.publish(b'<bill no="8"><sum>5</sum></bill>')
        await source.publish(b'<bill no="9"><sum>500</sum></bill>')
        told = []
        async for delivery in user.results(*done.added.values()):
            told += [(delivery.profile, result.decode()) for result in delivery.results]
            if len(told) == 2:
                break
        begin = '<svrl:failed-assert xmlns:svrl="http://purl.oclc.org/dsdl/svrl"'
        no_sum = "<svrl:text>Bill 7 has no sum.</svrl:text></svrl:failed-assert>"
        most = "<svrl:text>too much</svrl:text></svrl:failed-assert>"
        assert told == [
            (done.added["has-sum"], f'{begin} id="has-sum" location="/bill[1]">{no_sum}'),
            (done.added["most"], f'{begin} id="most" flag="warning" location="/bill[1]">{most}'),
        ]


def test_a_file_imported_again_changes_what_has_changed(shell: Shell, tmp_path: Path) -> None:
    file = write(tmp_path / "r.sch", RULES)
    first = shell.objects("profile", "import", file, "--user", "keep")
    assert [(each["assertion"], each["was"]) for each in first] == [
        ("has-sum", "added"),
        ("most", "added"),
    ]
    assert shell.err.startswith("onyx: 2 of 2 assertions can be taken")
    same = shell.objects("profile", "import", file, "--user", "keep")
    assert [(each["id"], each["was"]) for each in same] == [(each["id"], "same") for each in first]
    write(file, RULES.replace('value="100"', 'value="200"').replace('id="has-sum"', 'id="sum"'))
    changed = {
        each["assertion"]: (each["was"], each["id"])
        for each in shell.objects("profile", "import", file, "--user", "keep")
    }
    assert changed["most"] == ("changed", first[1]["id"])
    assert changed["has-sum"] == ("gone", first[0]["id"])
    assert changed["sum"][0] == "added"
    assert "profiles of assertions that are gone stay (--prune)" in shell.err
    (version,) = {
        each["version"]
        for each in shell.objects("profile", "list", "--user", "keep")
        if each["id"] == first[1]["id"]
    }
    assert version == 2
    assert shell.run("profile", "import", file, "--user", "keep", "--prune") == 0
    assert f"{first[0]['id']} removed has-sum" in shell.out
    assert len(shell.objects("profile", "list", "--user", "keep")) == 2
    assert shell.run("profile", "import", file, "--user", "keep", "--name", "twin") == 0
    assert len(shell.objects("profile", "list", "--user", "keep")) == 4


def test_what_cannot_be_taken_is_told_and_nothing_is_done(shell: Shell, tmp_path: Path) -> None:
    file = write(tmp_path / "bad.sch", BAD)
    assert shell.run("profile", "import", file, "--user", "none") == 65
    assert "bad.sch: line 6: now: base-uri() is not in the profile language" in shell.err
    assert "onyx: 2 of 3 assertions can be taken; 1 not: now" in shell.err
    assert "nothing was registered (--skip-bad: leave them out)" in shell.err
    assert shell.objects("profile", "list", "--user", "none") == []
    assert shell.run("profile", "import", file, "--user", "none", "--skip-bad") == 0
    assert len(shell.objects("profile", "list", "--user", "none")) == 2


def test_profiles_are_shown_without_a_network(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = Shell(capsys)
    file = write(tmp_path / "rules.sch", RULES)
    (first, second) = shell.objects("profile", "import", file, "--dry-run")
    assert (first["assertion"], first["line"], first["test"]) == ("has-sum", 4, "sum")
    assert "declare variable $most := 100;" in json.dumps(second)
    assert shell.run("profile", "import", file, "--dry-run") == 0
    assert "(: rules.sch, line 4: has-sum :)\nfor $_context in //bill[" in shell.out


def test_only_files_of_its_folder_are_included(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = Shell(capsys)
    for href, why in (
        ("../x.sch", "is not in "),
        ("/etc/passwd", "is not in "),
        ("http:/127.0.0.1/x.sch", "No such file or directory"),
        ("none.sch", "No such file or directory"),
    ):
        text = RULES.replace("<pattern>", f'<include href="{href}"/><pattern>')
        file = write(tmp_path / "in" / "rules.sch", text)
        assert shell.run("profile", "import", file, "--dry-run") == 65
        assert f"rules.sch: line 3: {href} cannot be included" in shell.err
        assert why in shell.err
    assert shell.run("profile", "import", tmp_path / "none.sch", "--dry-run") == 66
    text = RULES.replace("<pattern>", '<include href="../parts/a.sch"/><pattern>')
    write(file, text)
    space = 'xmlns="http://purl.oclc.org/dsdl/schematron"'
    write(tmp_path / "parts" / "a.sch", f'<pattern {space}><include href="b.sch"/></pattern>')
    write(tmp_path / "parts" / "b.sch", f'<rule {space} context="a"><report test="b"/></rule>')
    assert shell.run("profile", "import", file, "--dry-run", "--top", tmp_path) == 0
    assert "(: ../parts/b.sch, line 1: 1/1/1 :)" in shell.out
    assert shell.run("profile", "import", file, "--name", "a b", "--dry-run") == 2
