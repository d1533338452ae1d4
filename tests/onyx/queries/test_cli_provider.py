"""``onyx provider check`` and ``list``, on files and on a cache."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from onyx.cli.main import main
from tests.onyx.queries.test_catalog import RULES, SMALL, cache_of, said


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_all_faults_are_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = SMALL.replace('"csv"', '"cvs"').replace('"scalar"', '"skalar"')
    file = str(said(tmp_path, text))
    assert main(["provider", "check", file]) == 65
    told = capsys.readouterr()
    assert told.out.count(f"{file}: http://") == 2
    assert "    did you mean csv?" in told.out
    assert "    did you mean scalar?" in told.out
    assert "0 relations, 0 functions, 2 cycle providers, 0 rules; 2 faults" in told.err
    assert main(["provider", "check", file, "--json"]) == 65
    *faults, counts = lines(capsys)
    assert [fault["code"] for fault in faults] == ["unknown-word"] * 2
    assert counts["faults"] == 2


def test_a_document_that_does_not_conform_is_told_with_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(said(tmp_path, SMALL.replace("q:format", "q:fromat")))
    assert main(["provider", "check", file]) == 65
    assert f"{file}: file:///market.ttl" in capsys.readouterr().err


def test_the_list_shows_what_a_user_may(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(said(tmp_path, SMALL + RULES))
    assert main(["provider", "list", "--catalog", file, "--as", "ann", "--json"]) == 0
    of_ann = {(line["entry"], line.get("name")): line for line in lines(capsys)}
    assert of_ann["relation", "A.R"]["read_at"] == ["A"]
    assert of_ann["function", "f"]["at"] == ["A", "client"]
    assert of_ann["relation", "A.R"]["rows_at"] == ["A"]
    assert main(["provider", "list", "--catalog", file, "--as", "bob", "--json"]) == 0
    of_bob = lines(capsys)
    (relation,) = (line for line in of_bob if line["entry"] == "relation")
    assert relation["read_at"] == []
    rules = {str(line["rule"]).partition("#")[2] for line in of_bob if line["entry"] == "forbidden"}
    assert rules == {"p", "w"}
    assert main(["provider", "list", "--catalog", file]) == 0
    assert "A.R       csv     id int, name string" in capsys.readouterr().out


def test_a_cache_is_listed_without_what_has_a_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = SMALL.replace(":f a", ":g a").replace("(a INT)", "(a)").replace(":R a", ":other a")
    with cache_of(tmp_path, SMALL, bad.replace('"R"', '"R2"')):
        pass
    assert main(["provider", "list", "--cache", str(tmp_path / "l1.onyx")]) == 0
    told = capsys.readouterr()
    assert "left out: http://objectglobe.example/figure1#g signature" in told.err
    assert "A.R2" in told.out


def test_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["provider", "list"]) == 2
    assert "--catalog" in capsys.readouterr().err
    assert main(["provider", "list", "--cache", str(tmp_path / "no.onyx")]) == 66
