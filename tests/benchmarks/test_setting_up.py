"""``python -m benchmarks setup``: how it counts, and reads the output of make."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.benchmark import BenchmarkError, WrongAnswers
from benchmarks.setting_up import (
    BEGINS_COMPILING,
    BEGINS_PIP,
    ENDS_COMPILING,
    ROOT,
    Line,
    bare_environment,
    counts,
    longest_source,
    parts_of,
    run_lines,
)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    files = {
        "formats/__init__.py": "",
        "formats/hot.pyx": "a\nb\nc\n",
        "formats/hot.pxd": "a\n",
        "formats/hot.cpython-311-x86_64-linux-gnu.so": "binary",
        "yfilter/deep/types.pxd": "a\n",
        "onyx/verbs.py": "a\nb\n",
        "onyx/page.html": "a\nb\n",
        "tests/test_verbs.py": "a\n" * 5,
        "demo/other.py": "a\n",
        "build/cython/formats/hot.c": "c" * 2_000_000,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_what_is_counted(clone: Path) -> None:
    assert {key: value for key, (_, value) in counts(clone).items()} == {
        "extensions": 1,
        "c_megabytes": 2.0,
        "product_lines": 7,
        "product_files": 3,
        "test_lines": 5,
    }


def test_the_longest_hot_module(clone: Path) -> None:
    assert longest_source(clone) == clone / "formats" / "hot.pyx"
    (clone / "formats" / "hot.pyx").unlink()
    with pytest.raises(BenchmarkError):
        longest_source(clone)


def test_the_parts_of_a_set_up() -> None:
    lines = [
        Line("Cloning", 1.0),
        Line(f"{BEGINS_PIP} in .venv", 2.0),
        Line("setup: onyx itself", 3.0),
        Line(BEGINS_COMPILING, 5.0),
        Line(f"{ENDS_COMPILING}compiled", 9.0),
        Line("Onyx demo", 10.0),
    ]
    assert parts_of(lines) == (3.0, 4.0)
    with pytest.raises(BenchmarkError):
        parts_of(lines[:3])
    lines[4] = Line(f"{ENDS_COMPILING}pure (no compiler)", 9.0)
    with pytest.raises(WrongAnswers, match="no compiler"):
        parts_of(lines)


def test_the_makefile_says_these_lines() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    for beginning in (BEGINS_PIP, BEGINS_COMPILING, ENDS_COMPILING):
        assert f'echo "{beginning}' in text


def test_an_environment_without_anything(tmp_path: Path) -> None:
    given = {
        "HOME": "/home/ann",
        "PATH": "/bin",
        "ONYX_COMPILE": "skip",
        "PIP_CERT": "c",
        "https_proxy": "p",
    }
    assert bare_environment(given, tmp_path) == {
        "PATH": "/bin",
        "PIP_CERT": "c",
        "https_proxy": "p",
        "HOME": str(tmp_path),
        "PIP_NO_CACHE_DIR": "1",
    }


def test_a_command_that_fails_is_told_with_its_last_lines(tmp_path: Path) -> None:
    lines = run_lines([sys.executable, "-c", "print('one'); print('two')"], tmp_path, {})
    assert [line.text for line in lines] == ["one", "two"]
    assert lines[0].at <= lines[1].at
    with pytest.raises(BenchmarkError, match="it is wrong"):
        run_lines([sys.executable, "-c", "raise SystemExit('it is wrong')"], tmp_path, {})
