"""``onyx profile check``, in this process: no network is needed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from onyx.cli.main import main


@pytest.fixture
def schema(tmp_path: Path) -> str:
    path = tmp_path / "o.dtd"
    path.write_text("<!ELEMENT o (a*)><!ELEMENT a EMPTY>")
    return str(path)


def _profile(directory: Path, name: str, text: str) -> str:
    path = directory / name
    path.write_text(text)
    return str(path)


def test_right_warned_of_and_refused(
    tmp_path: Path, schema: str, capsys: pytest.CaptureFixture[str]
) -> None:
    right = _profile(tmp_path, "right.xq", "/o/a")
    never = _profile(tmp_path, "never.xq", "/o/b")
    wrong = _profile(tmp_path, "wrong.xq", "/o/b[")
    assert main(["profile", "check", right, never]) == 0
    assert capsys.readouterr().out == f"{right}: right\n{never}: right\n"
    assert main(["profile", "check", right, never, wrong, "--schema", schema]) == 65
    shown = capsys.readouterr()
    assert f"{right}: right\n" in shown.out
    assert f"{never}: right, but it can match no message that follows {schema}" in shown.out
    assert (
        "line 1, column 4: under the schema there is no element b in <o>; expected a" in shown.out
    )
    assert f"{wrong}: line 1, column 6" in shown.err


def test_as_json(tmp_path: Path, schema: str, capsys: pytest.CaptureFixture[str]) -> None:
    never = _profile(tmp_path, "never.xq", "/o/b")
    for verb in ("check", "explain"):
        assert main(["profile", verb, never, "--schema", schema, "--json"]) == 0
        warning = json.loads(capsys.readouterr().out)["warning"]
        assert (warning["code"], warning["line"], warning["column"]) == ("never-matches", 1, 4)
    assert main(["profile", "check", never, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["warning"] is None


def test_explained_with_a_schema(
    tmp_path: Path, schema: str, capsys: pytest.CaptureFixture[str]
) -> None:
    never = _profile(tmp_path, "never.xq", "/o/b")
    assert main(["profile", "explain", never, "--schema", schema]) == 0
    assert "It can match no message that follows" in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["check", "explain"])
def test_a_schema_that_is_none(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = _profile(tmp_path, "p.xq", "/o")
    schema = _profile(tmp_path, "s.dtd", "<!ELEMENT")
    assert main(["profile", verb, profile, "--schema", schema]) == 65
    assert "s.dtd" in capsys.readouterr().err
