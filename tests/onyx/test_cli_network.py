"""The verbs that talk to a running network, as a user types them."""

from __future__ import annotations

import io
import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from onyx.cli import source_publish
from onyx.cli.json_lines import LINES, decode_line
from onyx.cli.main import main
from onyx.identity.authority import Authority
from onyx.positions import PositionFile
from onyx.publisher_journal import PublisherJournal
from overlay.link.client_connection import ClientLimits, RemoteError, open_client
from overlay.link.credentials import Credentials
from tests.hanging import SAFETY_SECONDS
from tests.onyx.networks import RunningProcess, small_topology_text
from tests.onyx.pages import write


class Shell:
    """Runs command lines in this process, against the network of the tests."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.out = self.err = ""

    def run(self, *words: object) -> int:
        """The exit code; what was printed is in ``out`` and ``err``.  With --json each line is one
        of those that the command has promised (onyx/cli/json_lines.py)."""
        said = [str(word) for word in words]
        code = main(said)
        self.out, self.err = self._capsys.readouterr()
        if "--json" in said:
            command = next(name for name in (" ".join(said[:2]), said[0]) if name in LINES)
            for line in self.out.splitlines():
                decode_line(command, line)
        return code

    def lines(self, *words: object) -> list[str]:
        """What a command that succeeds prints."""
        assert self.run(*words) == 0, self.err
        return self.out.splitlines()

    def objects(self, *words: object) -> list[dict[str, Any]]:
        """What a command that succeeds prints with --json."""
        return [json.loads(line) for line in self.lines(*words, "--json")]


@pytest.fixture
def shell(
    registration: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    monkeypatch.setenv("ONYX_REGISTRATION", registration)
    return Shell(capsys)


def test_the_whole_way_on_the_command_line(shell: Shell, tmp_path: Path) -> None:
    hot = write(tmp_path / "hot.xq", "for $r in //r where $r/t > 10 return <hot>{$r/c}</hot>")
    (source,) = shell.lines("source", "register", "--name", "weather", "--location=10,0")
    assert f"{source} (weather) publishes at its root broker B1" in shell.err
    (profile,) = shell.lines("profile", "add", hot, "--user", "ada", "--location", "30,0", "--wait")
    assert f"profile {profile} of ada, version 1, hosted by B3" in shell.err
    assert shell.err.endswith(", live\n")
    write(tmp_path / "in" / "b" / "2.xml", "<r><c>Oslo</c><t>5</t></r>")
    write(tmp_path / "in" / "a.xml", "<r><c>Rome</c><t>25</t></r>")
    write(tmp_path / "in" / "c.xml", "<x><r><c>A</c><t>11</t></r><r><c>B</c><t>12</t></r></x>")
    (said,) = shell.lines("source", "publish", source, tmp_path / "in")
    assert said == f"3 published by {source}: 3 accepted"
    taken = shell.lines("subscribe", profile, "--count", "2")
    assert taken == [
        "<hot><c>Rome</c></hot>",
        "<hot><c>A</c></hot>",
        "<hot><c>B</c></hot>",
    ]


def test_the_way_of_a_message_is_shown_with_reasons(shell: Shell, tmp_path: Path) -> None:
    # No other test of this network wants what has these names.
    (source,) = shell.lines("source", "register", "--location=10,0")
    wanted = write(tmp_path / "wanted.xq", '//Q{urn:t}traced[@n = "1"]/*:mark')
    (profile,) = shell.lines("profile", "add", wanted, "--location", "30,0", "--wait")
    good = write(tmp_path / "good.xml", '<traced n="1" xmlns="urn:t"><mark/></traced>')
    bad = write(tmp_path / "bad.xml", '<traced n="2" xmlns="urn:t"><mark/></traced>')
    lines = shell.lines("trace", good, "--source", source, "--dry-run")
    assert lines[0] == f"message of {source}, 44 bytes as text, on the tree B1"
    assert lines[1].startswith("B1")
    assert any(line.strip() == 'because of //t:traced[@n = "1"]/*:mark' for line in lines)
    assert lines[-2:] == ["", "t = urn:t"]
    (there,) = (line for line in lines if f"delivers to {profile}" in line)
    assert "└── B3" in there
    first, *_ = shell.objects("trace", bad, "--source", source, "--dry-run")
    failed = [failed for link in first["links"] for failed in link["failed"]]
    statement = '//Q{urn:t}traced[@n = "1"]'
    disjunct = {"disjunct": f"{statement}/*:mark", "part": '[@n = "1"]', "statement": statement}
    assert {**disjunct, "more": 0} in failed
    assert "accepted as number 1" in shell.lines("trace", good, "--source", source)[-1]
    assert shell.run("trace", good, "--source", "nobody") != 0
    assert shell.lines("profile", "why-not", profile, good) == [f"{profile} matches it"]
    said = shell.lines("profile", "why-not", profile, bad)
    assert said[0] == f'{profile} does not match it: [@n = "1"] does not hold'
    (facts,) = shell.objects("profile", "why-not", profile, bad)
    assert facts["matched"] is False
    assert facts["failure"]["before"] == "//Q{urn:t}traced"


def sent_bytes(shell: Shell) -> dict[str, int]:
    """The bytes that B1 has sent to B2 and B2 to B3."""
    sent = {}
    for broker, child in (("B1", "B2"), ("B2", "B3")):
        (entry,) = shell.objects("status", "--broker", broker)
        links = entry["statistics"]["query"]["transformation"]["links"]
        sent[f"{broker} -> {child}"] = links.get(child, {}).get("bytes", 0)
    return sent


def test_what_a_link_is_cut_to_is_shown(shell: Shell, tmp_path: Path) -> None:
    # No other test of this network wants what has these names.
    (source,) = shell.lines("source", "register", "--location=10,0")
    query = "for $n in /cuts/portion where $n/@k = 'a' return <x>{$n/title}</x>"
    wanted = write(tmp_path / "wanted.xq", query)
    (profile,) = shell.lines("profile", "add", wanted, "--location", "30,0", "--wait")
    items = "".join(
        f'<portion k="{key}"><title>T</title><body>long</body></portion>' for key in "abcdef"
    )
    message = write(tmp_path / "m.xml", f"<cuts>{items}</cuts>")
    before = sent_bytes(shell)
    lines = shell.lines("trace", message, "--source", source)
    assert shell.lines("subscribe", profile, "--count", "1") == ["<x><title>T</title></x>"]
    first, second = (sent_bytes(shell)[link] - before[link] for link in before)
    whole = len(message.read_bytes())
    assert first == len('<cuts><portion k="a"><title>T</title></portion></cuts>')
    ways = [line.strip(" │") for line in lines if "->" in line]
    assert ways[0] == f"{whole} -> {first} bytes as text, cut from {whole} (projection)"
    assert ways[1] == f"{first} -> {second} bytes as binary+zstd"
    lines = shell.lines("transform", "show", "B2:B3", "--root", "B1")
    assert lines[0] == "B2 -> B3: transformation is projection"
    assert "bytes saved" in lines[1]
    said = [line.strip() for line in lines]
    assert "for $n in $msg/cuts/portion" in said
    assert 'where $n[@k = "a"]' in said
    assert any(line.startswith("B3: ") for line in said)  # of many, the first are named
    (facts,) = shell.objects("transform", "show", "B1:B2")
    assert profile in facts["profiles"]["B3"]
    assert facts["sent"]["bytes_saved"] > 0
    assert any("BYTES SAVED" in line for line in shell.lines("status"))
    assert shell.run("transform", "show", "B1") == 2
    assert shell.run("transform", "show", "B1:B9") != 0


def test_a_dictionary_is_trained_and_given(shell: Shell, tmp_path: Path) -> None:
    for number in range(40):
        text = f"<news n='{number}'><head>What everybody waits for</head><b>{number}</b></news>"
        write(tmp_path / "examples" / f"{number}.xml", text)
    write(tmp_path / "examples" / "bad.xml", "<news>")
    file = tmp_path / "news.zdict"
    (facts,) = shell.objects(
        "source", "train", tmp_path / "examples", "--form", "binary", "--output", file
    )
    assert (facts["messages"], facts["left_out"]) == (40, 1)
    assert facts["held_out_bytes_after"] < 0.8 * facts["held_out_bytes_before"]
    (source,) = shell.lines(
        "source", "register", "--compression", f"binary={file}", "--location=10,0"
    )
    (listed,) = (entry for entry in shell.objects("source", "list") if entry["id"] == source)
    assert listed["compression"] == ["binary"]
    for broker in ("B1", "B3"):
        (status,) = shell.objects("status", "--broker", broker)
        given = status["statistics"]["compression"]["given"]
        assert given[f"{source} binary"] == facts["version"]
    assert shell.run("source", "register", "--compression", f"text={tmp_path}/examples/1.xml") == 65
    assert "compression dictionary does not begin" in shell.err
    assert shell.run("source", "train", tmp_path / "examples" / "1.xml", "--output", file) == 65
    assert "no dictionary is worth it" in shell.err


def test_results_become_files_named_after_their_message(shell: Shell, tmp_path: Path) -> None:
    path = write(tmp_path / "n.xq", "for $x in //n return $x")
    (source,) = shell.lines("source", "register")
    (profile,) = shell.lines("profile", "add", path, "--wait")
    message = write(tmp_path / "1.xml", "<a><n>1</n><n>2</n></a>")
    single = write(tmp_path / "2.xml", "<n>3</n>")
    shell.lines("source", "publish", source, message, single)
    first, second = shell.objects(
        "subscribe", profile, "--count", "2", "--directory", tmp_path / "out"
    )
    stem = f"{profile}-{source}"
    assert first == {
        "profile": profile,
        "source": source,
        "number": 1,
        "files": [f"{stem}-1-1.xml", f"{stem}-1-2.xml"],
    }
    assert second["files"] == [f"{stem}-2.xml"]
    written = {entry.name: entry.read_text() for entry in (tmp_path / "out").iterdir()}
    assert written == {
        f"{stem}-1-1.xml": "<n>1</n>",
        f"{stem}-1-2.xml": "<n>2</n>",
        f"{stem}-2.xml": "<n>3</n>",
    }


def test_taken_results_do_not_come_again(shell: Shell, tmp_path: Path) -> None:
    (source,) = shell.lines("source", "register")
    (profile,) = shell.lines("profile", "add", write(tmp_path / "n.xq", "//n"), "--wait")
    messages = [write(tmp_path / f"{n}.xml", f"<n>{n}</n>") for n in (1, 2, 3)]
    shell.lines("source", "publish", source, *messages)
    (first,) = shell.objects("subscribe", profile, "--count", "1")
    assert (first["number"], first["results"]) == (1, ["<n>1</n>"])
    assert shell.lines("subscribe", profile, "--count", "2") == ["<n>2</n>", "<n>3</n>"]


def test_a_refused_message_is_reported_with_file_line_and_column(
    shell: Shell, tmp_path: Path
) -> None:
    (source,) = shell.lines("source", "register")
    good = write(tmp_path / "good.xml", "<a/>")
    bad = write(tmp_path / "bad.xml", "<a>\n  <b></a>")
    assert shell.run("source", "publish", source, bad, good) == 65
    (refusal,) = shell.err.splitlines()
    assert refusal.startswith(f"{bad}:2:")
    assert refusal.endswith("[malformed]")
    assert shell.out == f"2 published by {source}: 1 accepted, 1 refused\n"
    assert shell.run("source", "publish", source, bad, good, "--json") == 65
    first, second, done = (json.loads(line) for line in shell.out.splitlines())
    assert (first["file"], first["accepted"], first["line"]) == (str(bad), False, 2)
    assert (second["file"], second["accepted"], second["number"]) == (str(good), True, 4)
    counts = {"accepted": 1, "refused": 1, "known": 0, "gone": 0}
    assert done == {"event": "done", **counts, "bytes": len("<a/>") + len("<a>\n  <b></a>")}


def test_of_a_directory_what_matches_is_published_and_what_is_gone_is_left_out(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source,) = shell.lines("source", "register")
    for name in ("a.xml", "b.xml", "note.txt", ".c.xml", ".git/d.xml"):
        write(tmp_path / name, "<a/>")
    read = source_publish.read_input

    def read_one(name: str, bytes_max: int) -> bytes:
        (tmp_path / "b.xml").unlink()
        monkeypatch.setattr(source_publish, "read_input", read)
        return read(name, bytes_max)

    monkeypatch.setattr(source_publish, "read_input", read_one)
    (said,) = shell.lines("source", "publish", source, tmp_path, "--glob", "*.xml")
    assert said == f"1 published by {source}: 1 accepted, 1 gone"
    assert "b.xml cannot be read: No such file or directory; it is left out" in shell.err
    assert shell.run("source", "publish", source, tmp_path, "--glob", "*.ttl") == 66
    assert "has no file named *.ttl in it" in shell.err


def test_what_was_published_with_its_key_is_not_published_again(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source,) = shell.lines("source", "register")
    files = [write(tmp_path / f"{n}.xml", f"<k>{n}</k>") for n in (1, 2)]
    by_name = ("source", "publish", source, "--key-from", "name")
    assert shell.lines(*by_name, files[0]) == [f"1 published by {source}: 1 accepted"]
    (said,) = shell.lines(*by_name, *files)
    assert said == f"2 published by {source}: 1 accepted, 1 known"
    first, _ = shell.objects("source", "publish", source, files[0], "--key", files[1], "--json")
    assert (first["number"], first["is_known"]) == (3, True)
    assert shell.run("source", "publish", source, *files, "--key", "a") == 2
    assert "--key-from is for many" in shell.err
    assert shell.run(*by_name, "-") == 2
    assert "standard input has no name" in shell.err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"<k>1</k>")))
    by_content = ("source", "publish", source, "--key-from", "content")
    assert shell.lines(*by_content, files[0]) == [f"1 published by {source}: 1 accepted"]
    assert shell.lines(*by_content, "-") == [f"1 published by {source}: 0 accepted, 1 known"]


def test_what_is_left_in_a_journal_is_published_by_the_next_run(
    shell: Shell, tmp_path: Path
) -> None:
    (source,) = shell.lines("source", "register")
    file = write(tmp_path / "1.xml", "<j/>")
    publish = ("source", "publish", source, "--journal", tmp_path / "journal")
    resume = ("source", "resume", source, tmp_path / "journal")
    assert shell.lines(*publish, file) == [f"1 published by {source}: 1 accepted"]
    left = PublisherJournal(tmp_path / "journal", source)
    trio.run(left.add, b"<j>", "application/xml", "order-7")
    left.close()
    assert shell.run(*resume) == 65
    assert f"{tmp_path / 'journal'} (order-7):1:" in shell.err
    assert shell.out == f"1 published by {source}: 0 accepted, 1 refused\n"
    assert shell.lines(*resume) == [f"0 published by {source}: 0 accepted"]
    assert shell.run("source", "resume", source, tmp_path / "none") == 66
    (other,) = shell.lines("source", "register")
    assert shell.run("source", "resume", other, tmp_path / "journal") == 74
    assert f"is the journal of source '{source}'; expected '{other}'" in shell.err


def test_a_file_of_positions_says_what_was_printed(shell: Shell, tmp_path: Path) -> None:
    (source,) = shell.lines("source", "register")
    (profile,) = shell.lines("profile", "add", write(tmp_path / "k.xq", "//kept"), "--wait")
    messages = [write(tmp_path / f"{n}.xml", f"<kept>{n}</kept>") for n in (1, 2, 3)]
    shell.lines("source", "publish", source, *messages)
    kept = ("subscribe", profile, "--positions", tmp_path / "positions", "--count")
    assert shell.lines(*kept, "2") == ["<kept>1</kept>", "<kept>2</kept>"]
    with PositionFile(tmp_path / "positions") as positions:
        assert positions.load(profile) == 2
        positions.save(profile, 1)
    assert shell.lines(*kept, "1") == ["<kept>3</kept>"]  # the broker knows it as well
    assert shell.run(*kept, "1", "--share") == 2
    assert "positions are of profiles that are not shared" in shell.err
    assert shell.run("subscribe", profile, "--positions", messages[0]) == 74
    assert f"{messages[0]} cannot be used: file is not a database" in shell.err


def test_a_message_from_standard_input(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (source,) = shell.objects("source", "register", "--rate", "2", "--size", "10")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"<a>")))
    assert shell.run("source", "publish", source["id"], "-") == 65
    assert shell.err.startswith("<stdin>:1:")


def test_a_refused_profile_is_shown_with_a_caret(shell: Shell, tmp_path: Path) -> None:
    good = write(tmp_path / "good.xq", "//a")
    bad = write(tmp_path / "bad.xq", "//a[")
    assert shell.run("profile", "add", bad, good, "--user", "dora") == 65
    profile = shell.out.strip()
    message = [line for line in shell.err.splitlines() if not line.startswith("onyx: profile")]
    assert message[0].startswith(f"onyx: {bad}: line 1, column 5: ")
    assert message[1:] == ["    //a[", "        ^"]
    assert shell.run("profile", "update", profile, bad, "--json") == 65
    assert json.loads(shell.out)["code"] == "profile-refused"
    (shown,) = shell.objects("profile", "show", profile)
    assert (shown["text"], shown["version"], shown["user"]) == ("//a", 1, "dora")


def test_profiles_are_updated_listed_and_removed(shell: Shell, tmp_path: Path) -> None:
    old = write(tmp_path / "old.xq", "//a")
    new = write(tmp_path / "new.xq", "//b")
    first, second = shell.lines("profile", "add", old, new, "--user", "amy", "--wait")
    (updated,) = shell.objects("profile", "update", first, new, "--wait")
    assert (updated["id"], updated["version"], updated["live"]) == (first, 2, True)
    shown = shell.lines("profile", "show", first)
    assert shown[0].startswith(f"(: profile {first} of amy, version 2, ")
    assert shown[1:] == ["//b"]
    assert [entry["id"] for entry in shell.objects("profile", "list", "--user", "amy")] == [
        first,
        second,
    ]
    heading, *rows = shell.lines("profile", "list", "--user", "amy")
    assert heading.split()[:2] == ["ID", "USER"]
    assert [row.split()[:2] for row in rows] == [[first, "amy"], [second, "amy"]]
    assert shell.lines("profile", "remove", first) == [f"{first} removed"]
    assert shell.objects("profile", "remove", second) == [
        {"id": second, "removed": True, "missing": []}
    ]
    assert shell.lines("profile", "list", "--user", "amy") == []


def test_status_counts_what_a_broker_did(
    shell: Shell, network: RunningProcess, tmp_path: Path
) -> None:
    def published() -> int:
        (entry,) = shell.objects("status", "--broker", "B2")
        assert (entry["node"], entry["address"]) == ("B2", network.up["brokers"]["B2"])
        count: int = entry["statistics"]["data"].get("published", 0)
        return count

    (source,) = shell.lines("source", "register", "--location=20,0")  # at B2
    before = published()
    shell.lines("source", "publish", source, write(tmp_path / "a.xml", "<a/>"))
    assert published() == before + 1
    lines = shell.lines("status")
    heading, *rows = lines[: lines.index("")] if "" in lines else lines
    assert heading.split()[:4] == ["NODE", "ADDRESS", "STATE", "PROFILES"]
    assert [row.split()[0] for row in rows] == ["registration", "B1", "B2", "B3"]
    assert all(row.split()[2] == "up" for row in rows)


def test_status_says_which_format_a_link_has_chosen_and_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real link of 64 kbit/s, as its topology says, and messages that zstd makes small."""
    text = small_topology_text(tmp_path / "data", brokers=2)
    text = text.replace('format = "text"', 'format = "auto"\nbandwidth_kbps = 64')
    running = RunningProcess.start(write(tmp_path / "auto.toml", text))
    monkeypatch.setenv("ONYX_REGISTRATION", running.registration)
    shell = Shell(capsys)
    try:
        (source,) = shell.lines("source", "register", "--location=10,0")
        path = write(tmp_path / "n.xq", "//news")
        (profile,) = shell.lines("profile", "add", path, "--location=20,0", "--wait")
        for number in range(8):
            message = "<news>" + f"<head>What everybody waits for {number}</head>" * 20 + "</news>"
            write(tmp_path / "in" / f"{number}.xml", message)
        choice = {"format": ""}
        for _ in range(20):  # a machine that was slow just while it was measured is measured again
            shell.lines("source", "publish", source, tmp_path / "in")
            assert len(shell.lines("subscribe", profile, "--count", "8")) == 8
            (entry,) = shell.objects("status", "--broker", "B1")
            choice = entry["statistics"]["data"]["formats"]["B2"]
            if choice["format"].endswith("+zstd"):
                break
        assert choice["format"].endswith("+zstd")
        assert (choice["bytes_per_second"], choice["bandwidth"]) == (8000, "given")
        # What is chosen stays until another saves a good part: it need not be the first.
        estimates = [row["us"] for row in choice["estimates"]]
        assert len(estimates) == 6 and estimates == sorted(estimates)
        assert all(row["decode_us"] > 0 for row in choice["estimates"])
        lines = shell.lines("status")
        assert f"B1 to B2: {choice['format']}; {choice['why']}; 64 kbit/s (given)" in lines
        now = [row.split()[:5] for row in lines[-6:] if " now " in row]
        assert now == [["B1", "->", "B2", "now", choice["format"]]]
    finally:
        assert running.stop() == 0


def test_a_topology_file_says_where_the_network_is(
    network: RunningProcess, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ONYX_REGISTRATION", raising=False)
    resolved = Path(network.up["topology"])
    ports_open = resolved.parent.parent / "small.toml"  # where the registration has port 0
    shell = Shell(capsys)
    for file in (resolved, ports_open):
        entries = shell.objects("status", "--topology", file)
        assert entries[0]["address"] == network.registration


def test_no_network_named_is_wrong_usage(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ONYX_REGISTRATION", raising=False)
    shell = Shell(capsys)
    assert shell.run("source", "list") == 2
    assert "ONYX_REGISTRATION" in shell.err
    assert shell.run("source", "list", "--registration", "nowhere") == 2
    assert shell.err == 'onyx: --registration "nowhere" is no address, expected "host:port"\n'


def test_nobody_there_is_one_line_and_69(
    unused_port: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onyx.registration_client.CLIENT_LIMITS", ClientLimits(open_seconds=0.05))
    shell = Shell(capsys)
    assert shell.run("status", "--registration", f"127.0.0.1:{unused_port}") == 69
    assert len(shell.err.splitlines()) == 1
    assert f"127.0.0.1:{unused_port}" in shell.err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["source", "publish", "s1", "no-such-file.xml"], 66, "no-such-file.xml does not exist"),
        (["source", "publish", "s999999", __file__], 65, "[unknown-source]"),
        (["profile", "add", "no-such-file.xq"], 66, "no-such-file.xq cannot be read"),
        (["profile", "add", "-", "-"], 2, "only once"),
        (["profile", "show", "p999999"], 65, "[unknown-profile]"),
        (["subscribe", "p999999"], 65, "[unknown-profile]"),
        (["subscribe", "--user", "nobody"], 65, "has no profiles"),
        (["status", "--broker", "B22"], 2, 'did you mean "B2"'),
    ],
)
def test_what_cannot_be_done_is_one_line(
    shell: Shell, words: list[str], code: int, message: str
) -> None:
    assert shell.run(*words) == code
    assert message in shell.err
    assert len(shell.err.splitlines()) == 1
    assert shell.out == ""


@pytest.mark.parametrize(
    "words",
    [
        ["source", "register", "--location", "91,0"],
        ["source", "register", "--location", "here"],
        ["source", "register", "--rate=-1"],
        ["subscribe", "p1", "--count", "0"],
        ["up", "file.toml", "--broker", "B1", "--registration"],
        ["up", "--port", "65536"],
    ],
)
def test_wrong_arguments_are_wrong_usage(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 2
    assert "error: argument" in capsys.readouterr().err


def test_an_interrupted_subscriber_has_acknowledged_what_it_printed(
    shell: Shell, registration: str, tmp_path: Path
) -> None:
    (source,) = shell.lines("source", "register")
    (profile,) = shell.lines("profile", "add", write(tmp_path / "n.xq", "//n"), "--wait")
    for number in (1, 2):
        message = write(tmp_path / "n.xml", f"<n>{number}</n>")
        shell.lines("source", "publish", source, message)
        command = [sys.executable, "-m", "onyx", "subscribe", profile]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == f"<n>{number}</n>\n"
            process.terminate()
            assert process.wait(SAFETY_SECONDS) == 0
            assert process.stdout.read() == ""


def test_processes_on_their_own_make_a_network(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``--registration`` and ``--broker``, as on separate machines."""
    host = "127.0.91.1"  # an address of this machine that nothing else uses
    ports = []
    for _ in range(2):
        with socket.create_server((host, 0)) as server:
            ports.append(server.getsockname()[1])
    text = small_topology_text(tmp_path / "data", brokers=1)
    for port in ports:
        text = text.replace("127.0.0.1:0", f"{host}:{port}", 1)
    file = write(tmp_path / "fixed.toml", text)
    registration = RunningProcess.start(file, "--registration")
    monkeypatch.setattr("onyx.registration_client.CLIENT_LIMITS", ClientLimits(open_seconds=3.0))
    shell = Shell(capsys)
    assert shell.run("status", "--topology", file) == 69
    assert shell.out.splitlines()[2].split()[:4] == ["B1", f"{host}:{ports[1]}", "no", "answer"]
    broker = RunningProcess.start(file, "--broker", "B1")
    try:
        assert registration.up["node"] == "registration"
        assert broker.up == {
            "event": "ready",
            "node": "B1",
            "address": f"{host}:{ports[1]}",
            "pid": broker.process.pid,
        }
        taken = subprocess.run(
            [sys.executable, "-m", "onyx", "up", str(file)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert taken.returncode == 78
        assert taken.stderr.startswith(
            f'onyx: {file}: registration.listen: "{host}:{ports[0]}" is already in use by process '
            f"{registration.process.pid} ("
        )
    finally:
        codes = [running.stop() for running in (broker, registration)]
    assert codes == [0, 0]


def test_a_broker_on_another_machine_has_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has a data directory of its own, without the authority of the network."""
    with (
        socket.create_server(("127.0.91.2", 0)) as one,
        socket.create_server(("127.0.91.2", 0)) as two,
    ):
        ports = [server.getsockname()[1] for server in (one, two)]
    text = small_topology_text(tmp_path / "here", brokers=1)
    for port in ports:
        text = text.replace("127.0.0.1:0", f"127.0.91.2:{port}", 1)
    file = write(tmp_path / "fixed.toml", text)
    away = ["--broker", "B1", "--data", str(tmp_path / "away")]
    shell = Shell(capsys)
    assert shell.run("up", file, *away) == 77
    assert "onyx cert issue broker/B1 --out FILE" in shell.err
    registration = RunningProcess.start(file, "--registration")
    try:
        given = [str(tmp_path / f"{name}.pem") for name in ("B1", "B2")]
        for path, name in zip(given, ("B1", "B2"), strict=True):
            shell.lines("cert", "issue", f"broker/{name}", "--out", path, "--topology", file)
        assert shell.run("up", file, *away, "--credentials", given[1]) == 77
        assert "is of broker/B2; expected those of broker/B1" in shell.err
        broker = RunningProcess.start(file, *away, "--credentials", given[0])
        eve = tmp_path / "eve.pem"
        shell.lines("cert", "issue", "user/eve", "--out", eve, "--topology", file)
        trio.run(_revoked_while_here, eve, ("127.0.91.2", ports[1]), tmp_path / "here" / "identity")
        assert broker.stop() == 0
    finally:
        assert registration.stop() == 0


async def _revoked_while_here(path: Path, broker: tuple[str, int], identity: Path) -> None:
    """It is told by the registration service, and closes what was opened before."""
    credentials = Credentials(path)
    with trio.fail_after(SAFETY_SECONDS):
        async with open_client(
            *broker, role="client", identity="eve", credentials=credentials
        ) as connection:
            authority = Authority(identity)
            (issued,) = [one for one in authority.issued() if str(one.principal) == "user/eve"]
            authority.revoke({issued.serial})
            with pytest.raises(RemoteError, match="not-authenticated"):
                while True:
                    await connection.wait_lost()
                    await connection.wait_connected()


def test_port_0_needs_the_launcher(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "small.toml", small_topology_text(tmp_path / "data", brokers=1))
    shell = Shell(capsys)
    assert shell.run("up", file, "--broker", "B1") == 78
    assert f"{file}: registration.listen: " in shell.err
    assert shell.run("up", file, "--broker", "B1", "--port", "0") == 2
    assert "--port is of a whole network" in shell.err
    assert shell.run("up", file, "--port", "7000") == 2
    assert "--port 7000: registration.listen: is any free port" in shell.err
    assert shell.run("up", file, "--broker", "B2") == 2
    assert f'"B2" is no broker of {file}' in shell.err


def test_a_key_finds_what_was_made_with_it(shell: Shell, tmp_path: Path) -> None:
    text = write(tmp_path / "keyed.xq", "//keyed/by[name = 'hand']")
    added = shell.lines("profile", "add", text, "--key", "hand")
    assert shell.lines("profile", "add", text, "--key", "hand") == added
    assert shell.run("profile", "add", text, text, "--key", "hand") == 2
    source = shell.lines("source", "register", "--name", "hand", "--key", "hand")
    assert shell.lines("source", "register", "--name", "hand", "--key", "hand") == source


def test_a_profile_is_taken_by_its_key(shell: Shell, registration: str, tmp_path: Path) -> None:
    text = write(tmp_path / "storms.xq", "//stormy")
    own = ("profile", "add", text, "--key", "a/b", "--wait")
    (profile,) = shell.lines(*own)
    (of_ann,) = shell.lines(*own[:3], "--key", "storms", "--user", "ann", "--wait")
    assert of_ann != profile
    (facts,) = shell.objects("profile", "show", "a/b")
    assert facts["id"] == profile
    (facts,) = shell.objects("profile", "show", "ann/storms")
    assert facts["id"] == of_ann
    assert shell.run("profile", "show", "storms") == 65, "that is not ours"
    assert "there is no profile 'storms'" in shell.err
    shell.lines("profile", "policy", "a/b", "--ttl", "60")
    assert "60 s" in shell.lines("profile", "policy", profile)[0]
    shell.lines("profile", "update", "a/b", write(tmp_path / "o.xq", "//stormy/at"), "--wait")
    (source,) = shell.lines("source", "register", "--name", "of-storms")
    message = write(tmp_path / "m.xml", "<stormy><at>7</at></stormy>")
    assert shell.lines("profile", "why-not", "ann/storms", message) == ["ann/storms matches it"]
    tapped = [sys.executable, "-m", "onyx", "tap", "--source", "of-storms", "--profile", "a/b"]
    tapped += ["--kind", "delivery", "--count", "1", "--json", "--registration", registration]
    shell.lines("trace", message, "--source", "of-storms", "--dry-run")
    with subprocess.Popen(tapped, stdout=subprocess.PIPE, text=True) as tap:
        while tap.poll() is None:
            shell.lines("source", "publish", "of-storms", message)
        assert tap.stdout is not None
        (event,) = map(json.loads, tap.stdout)
    assert (event["source"], event["kind"]) == (source, "delivery")
    taken = shell.lines("subscribe", "a/b", "ann/storms", "--count", "2")
    assert {"<at>7</at>", "<stormy><at>7</at></stormy>"} >= set(taken)
    assert shell.lines("profile", "remove", "a/b", "ann/storms", "--wait") == [
        "a/b removed",
        "ann/storms removed",
    ]
    assert shell.run("profile", "show", profile) == 65


def test_a_source_is_ensured_updated_and_removed_by_its_name(shell: Shell, tmp_path: Path) -> None:
    schema = write(tmp_path / "old.dtd", "<!ELEMENT old (#PCDATA)>")
    ensure = ("source", "register", "--name", "short-lived", "--ensure", "--location", "-33.9,18.4")
    (source,) = shell.lines(*ensure, "--schema", schema)
    assert shell.lines(*ensure, "--schema", schema) == [source]
    wanted = write(tmp_path / "wanted.xq", "//old")
    (profile,) = shell.lines("profile", "add", wanted, "--wait")
    message = write(tmp_path / "old.xml", "<old>1</old>")
    assert shell.run("source", "publish", "short-lived", message, tmp_path / "old.dtd") == 65
    assert shell.out == "2 published by short-lived: 1 accepted, 1 refused\n"

    schema = write(tmp_path / "new.dtd", "<!ELEMENT new (#PCDATA)>")
    changed = ("source", "update", "short-lived", "--schema", schema, "--validate", "reject")
    (said,) = shell.lines(*changed)
    assert said == f"{source} is in version 2, changed: schema, validation"
    (facts,) = shell.objects("source", "show", "short-lived")
    assert (facts["version"], facts["schema_name"], facts["location"]) == (
        2,
        "new.dtd",
        [-33.9, 18.4],
    )
    assert shell.run("source", "publish", source, message) == 65
    assert "[invalid]" in shell.err
    (said,) = shell.lines("source", "update", source, "--no-schema")
    assert said == f"{source} is in version 3, changed: schema, validation"

    assert shell.lines("source", "remove", "short-lived") == [f"{source} is removed"]
    assert shell.run("source", "publish", source, message) == 65
    assert "[unknown-source]" in shell.err
    taken = shell.lines("subscribe", profile, "--count", "1")
    assert taken == ["<old>1</old>"], "it was accepted before"
    assert shell.run("source", "remove", "short-lived") == 65
