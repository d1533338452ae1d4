"""``onyx profile explain``, in this process: no network is needed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from onyx.cli.main import main


def _file(directory: Path, name: str, text: str) -> str:
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_on_a_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = _file(tmp_path, "p.xq", "//a[@n = 1][not(b)]")
    message = _file(tmp_path, "m.xml", "<o><a n='1'><b/></a></o>")
    assert main(["profile", "explain", profile, "--message", message]) == 0
    shown = capsys.readouterr().out
    assert "the first that does not hold: [not(b)]" in shown
    assert "there is       //a[@n = 1]\n" in shown
    assert "there is no    //a[@n = 1][not(b)]\n" in shown


def test_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = _file(tmp_path, "p.xq", "//a[b or c]")
    message = _file(tmp_path, "m.xml", "<o><a><b/></a></o>")
    assert main(["profile", "explain", profile, "--message", message, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["routing_query"] == [["//a/b"], ["//a/c"]]
    assert (found["matched"], found["results"], found["failure"]) == (True, 1, None)
    (step,) = found["parts"]
    assert step["outcome"] == {"asked": 1, "kept": 1, "positions": ["/o/a"]}
    (condition,) = step["parts"]
    assert (condition["text"], condition["by"]) == ("[b or c]", "operator")


def test_people_read_prefixes_and_programs_names_in_full(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = 'declare namespace p = "urn:p"; //p:a[@n = 1][Q{urn:x:y}b]'
    asked = ["profile", "explain", _file(tmp_path, "p.xq", text)]
    assert main(asked) == 0
    shown = capsys.readouterr().out
    assert "    [@n = 1]    (selection)\n    [y:b]       (nested path)\n      /y:b\n" in shown
    assert shown.endswith("Routing query\n  //p:a[@n = 1]/y:b\n\ny = urn:x:y\n")
    assert main([*asked, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["linear_paths"][0] == "//Q{urn:p}a"


def test_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = _file(tmp_path, "p.xq", "//a[")
    assert main(["profile", "explain", profile]) == 65
    assert "line 1, column 5" in capsys.readouterr().err
    profile = _file(tmp_path, "p.xq", "//a")
    message = _file(tmp_path, "m.xml", "<o>")
    assert main(["profile", "explain", profile, "--message", message]) == 65
    assert "m.xml" in capsys.readouterr().err
