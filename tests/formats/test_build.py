"""Which build runs, in processes of their own on a copy of the packages."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import formats
from formats import build_info, is_compiled

PACKAGE = Path(formats.__file__).parent
SHOW = """
import formats, formats.scanner
print(formats.build_info(), formats.scanner.__file__.endswith(".py"), sep="|")
assert len(formats.parse_text(b"<a><b/></a>")) == 2
"""
WITHOUT_CYTHON = """
import formats
from formats.scanner import cython, scan
print(cython.__name__, len(scan(b"<a b='1'/>", formats.DEFAULT_LIMITS)))
"""

needs_compiled = pytest.mark.skipif(
    not (PACKAGE / "compiled.json").exists() or not is_compiled(), reason="not compiled"
)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for package in ("formats", "yfilter"):  # those with hot modules
        shutil.copytree(
            PACKAGE.parent / package,
            tmp_path / package,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    return tmp_path


def build_of(root: Path, **environment: str) -> tuple[str, bool]:
    """build_info in a process of its own, and whether the scanner is Python source there."""
    inherited = {name: value for name, value in os.environ.items() if name != "ONYX_PURE"}
    done = subprocess.run(
        [sys.executable, "-c", SHOW],
        cwd=root,
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    info, is_source = done.stdout.strip().split("|")
    return info, is_source == "True"


@needs_compiled
def test_the_compiled_build_runs_unless_told_otherwise(copy: Path) -> None:
    assert build_of(copy) == ("compiled", False)
    assert build_of(copy, ONYX_PURE="0") == ("compiled", False)
    assert build_of(copy, ONYX_PURE="1") == ("pure (ONYX_PURE is set)", True)


@needs_compiled
@pytest.mark.parametrize("suffix", [".py", ".pxd"])
def test_stale_extensions_are_not_loaded(copy: Path, suffix: str) -> None:
    with (copy / "formats" / "name_table").with_suffix(suffix).open("a") as source:
        source.write("# changed\n")
    info, is_source = build_of(copy)
    assert info.startswith("pure (formats.name_table changed after it was compiled")
    assert is_source


@needs_compiled
def test_an_extension_that_is_missing_leaves_all_of_them_out(copy: Path) -> None:
    for extension in (copy / "formats").glob("name_table.*.*"):
        extension.unlink()
    assert build_of(copy) == ("pure (formats.name_table is not compiled for this Python)", True)


def test_without_manifest_nothing_compiled_is_loaded(copy: Path) -> None:
    (copy / "formats" / "compiled.json").unlink(missing_ok=True)
    info, is_source = build_of(copy)
    assert info.startswith("pure (not compiled")
    assert is_source


def test_the_manifest_says_why_nothing_was_compiled(copy: Path) -> None:
    manifest = json.dumps({"sources": {}, "reason": "no compiler"})
    (copy / "formats" / "compiled.json").write_text(manifest)
    assert build_of(copy) == ("pure (no compiler)", True)


def test_hot_modules_run_without_cython(copy: Path) -> None:
    (copy / "cython.py").write_text("raise ImportError('not installed')\n")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_CYTHON],
        cwd=copy,
        env=dict(os.environ) | {"ONYX_PURE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["formats.cython_stub", "1"]


def test_this_process() -> None:
    assert is_compiled() == (build_info() == "compiled")
