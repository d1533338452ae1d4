"""docs/queries.md says what is so: its catalog, its program, its tables and its codes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from demo.queries import figure1
from formats.graph.rdf_schema import local_name
from onyx.cli.main import main
from onyx.errors import EXIT_DATA
from onyx.queries.catalog import VOCABULARY, providers_schema
from registration.queries.providers import FORMATS, NAMESPACE, RIGHTS
from registration.spark.sandbox import missing

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "queries.md").read_text(encoding="utf-8")
BLOCKS: dict[str, list[str]] = {}
for kind, body in re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
    BLOCKS.setdefault(kind, []).append(body)


@pytest.fixture(autouse=True)
def catalog_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "market.ttl"
    file.write_text(BLOCKS["turtle"][0])
    return file


def test_the_program_prints_what_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(BLOCKS["python"][0], "docs/queries.md", "exec"), {})
    assert capsys.readouterr().out == BLOCKS["text"][0]


def test_the_catalog_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["provider", "check", "market.ttl"]) == 0
    assert "0 faults" in capsys.readouterr().err


def test_the_queries_are_planned_saved_and_refused_as_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Over the catalog of Figure 1; nothing is executed."""
    catalog = ["--catalog", str(figure1.make(tmp_path / "figure1").relative_to(tmp_path))]
    assert main(["query", BLOCKS["sql"][0], *catalog, "--explain"]) == 0
    capsys.readouterr()
    (saving,) = (block for block in BLOCKS["console"] if "--save" in block)
    for said in saving.removeprefix("$ onyx ").split("$ onyx "):
        command, _, output = said.partition("\n")
        assert main(shlex.split(command)) == 0
        assert capsys.readouterr().out == output
    (refused,) = (block for block in BLOCKS["text"] if "unknown-column" in block)
    assert main(["query", refused.splitlines()[1].strip(), *catalog]) == EXIT_DATA
    assert capsys.readouterr().err == f"onyx: {refused}"


def test_the_vocabulary_is_described_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    words = set(re.findall(r"`(\w+)`", PAGE))
    said = [*providers_schema().classes, *providers_schema().properties]
    left_out = {"Named", "Provider", "Entry", "Column", "ServerInformation", "report"}
    assert {local_name(each) for each in said if each.startswith(NAMESPACE)} - words == left_out
    assert {*FORMATS, *RIGHTS} <= words
    assert main(["provider", "schema"]) == 0
    assert capsys.readouterr().out == VOCABULARY.read_text()


def test_codes_are_those_of_the_reader() -> None:
    source = (ROOT / "registration/queries/market_reader.py").read_text(encoding="utf-8")
    codes = set(re.findall(r'"((?:[a-z]+-)+[a-z]+|missing)"', source)) | {"bad-schema"}
    table = PAGE[PAGE.index("## Faults") :]
    assert codes <= set(re.findall(r"`([a-z-]+)`", table))


@pytest.mark.skipif(bool(missing()), reason=f"this machine lacks {missing()}")
def test_the_function_is_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mirrored").mkdir()
    (tmp_path / "mirrored" / "function.json").write_text(BLOCKS["json"][0])
    (tmp_path / "mirrored" / "mirrored.py").write_text(BLOCKS["py"][0])
    assert main(["function", "pack", "mirrored", "--out", "mirrored.zip"]) == 0
    assert "sha256:" in capsys.readouterr().out
    (tmp_path / "reference.py").write_text(BLOCKS["py"][0])
    reference = ["--reference", "reference.py:mirrored", "--load-rows", "50"]
    assert (
        main(["function", "validate", "mirrored.zip", "--seconds-per-row", "1e-2", *reference]) == 0
    )
    commands = re.findall(r"^onyx function (\w+)", "\n".join(BLOCKS["sh"]), re.MULTILINE)
    assert commands == ["pack", "sign", "verify", "validate"]
