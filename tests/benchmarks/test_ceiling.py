"""``python -m benchmarks ceiling``: C and the engine agree on a small run; no time is asserted."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.benchmark import BenchmarkError
from benchmarks.ceiling.replay import compile_replay
from formats.kernel import build_info

TINY = ("--number", "1000", "--warmup", "3", "--measured", "4", "--rounds", "1", "--size", "2000")
HAS_COMPILER = shutil.which(shlex.split(os.environ.get("CC", "cc"))[0]) is not None


@pytest.mark.skipif(
    not HAS_COMPILER or not build_info().startswith("compiled"),
    reason="needs a C compiler and the compiled build",
)
def test_c_finds_what_the_engine_finds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ceiling", *TINY, "--json"]) == 0
    values = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert values["found"] > 0
    assert values["verified"] > 0
    assert {"again_us", "in_turn_us", "shuffled_us"} <= values["ratios"].keys()


def test_without_a_compiler_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(BenchmarkError, match="no C compiler: 'no-such-compiler'"):
        compile_replay(tmp_path)


@pytest.mark.skipif(not HAS_COMPILER, reason="needs a C compiler")
def test_a_compiler_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "cc -std=nonsense")
    with pytest.raises(BenchmarkError, match="cannot compile"):
        compile_replay(tmp_path)
