"""``onyx profile plan``, in this process: no network is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from onyx.cli.main import main


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("a.xq", "/o/a[@n = 1]"), ("b.xq", "/o/a[not(b)]"), ("bad.xq", "/o[")):
        Path(name).write_text(text, encoding="utf-8")


@pytest.mark.usefixtures("files")
def test_as_text_and_as_a_graph(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "plan", "a.xq", "b.xq", "a.xq", "--link", "north=b.xq"]) == 0
    shown = capsys.readouterr().out
    assert "-> a.xq" in shown and "-> b.xq" in shown
    assert "-> north (tree of any root broker)" in shown
    assert main(["profile", "plan", "a.xq", "--dot", "--nodes-max", "2"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("digraph plan {") and "more nodes are not shown" in shown


@pytest.mark.usefixtures("files")
def test_what_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "plan", "a.xq", "bad.xq"]) == 65
    assert "bad.xq: line 1, column 4" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["profile", "plan", "a.xq", "--link", "north"])
    assert '"north" is not NAME=FILE' in capsys.readouterr().err


def test_names_have_the_prefixes_of_the_profiles(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "c.xq"
    file.write_text('declare namespace c="urn:c"; //c:a[c:b = "x"]', encoding="utf-8")
    assert main(["profile", "plan", str(file)]) == 0
    assert main(["profile", "plan", str(file), "--dot"]) == 0
    shown = capsys.readouterr().out
    assert "\n    c:a\n" in shown and 'label="c:a"' in shown
    assert "Q{" not in shown
