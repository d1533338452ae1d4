"""Which modules run: the compiled ones, if all are there and of this source."""

from __future__ import annotations

import hashlib
import json
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from formats import build_info, is_compiled, kernel
from yfilter.errors import KernelMissing


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with two compiled modules."""
    monkeypatch.setattr(kernel, "_ROOT", tmp_path)
    monkeypatch.delenv(kernel.PLAIN, raising=False)
    (tmp_path / "formats").mkdir()
    digests: dict[str, dict[str, str]] = {"sources": {}, "types": {}}
    for name, suffix, part in (
        ("scanner", ".pyx", "sources"),
        ("wire", ".pyx", "sources"),
        ("scanner", ".pxd", "types"),
    ):
        source = tmp_path / "formats" / f"{name}{suffix}"
        source.write_text(f"# {name}")
        digests[part][f"formats.{name}"] = hashlib.sha256(source.read_bytes()).hexdigest()
        source.with_suffix(EXTENSION_SUFFIXES[0]).touch()
    manifest = json.dumps({**digests, "reason": ""})
    (tmp_path / "formats" / "compiled.json").write_text(manifest)
    return tmp_path / "formats"


def test_the_compiled_modules_run_unless_told_otherwise(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kernel._reason() == ""
    monkeypatch.setenv(kernel.PLAIN, "0")
    assert kernel._reason() == ""
    monkeypatch.setenv(kernel.PLAIN, "1")
    assert kernel._reason() == "ONYX_PLAIN is set"


@pytest.mark.parametrize("file", ["scanner.pyx", "wire.pyx", "scanner.pxd"])
def test_a_stale_module_leaves_all_of_them_out(root: Path, file: str) -> None:
    (root / file).write_text("# changed")
    module = f"formats.{file.partition('.')[0]}"
    assert kernel._reason().startswith(f"{module} changed after it was compiled")


def test_an_installation_needs_no_sources(root: Path) -> None:
    for file in ("scanner.pyx", "wire.pyx", "scanner.pxd"):
        (root / file).unlink()
    assert kernel._reason() == ""


def test_a_missing_module_leaves_all_of_them_out(root: Path) -> None:
    (root / f"wire{EXTENSION_SUFFIXES[0]}").unlink()
    assert kernel._reason() == "formats.wire is not compiled for this Python"


def test_the_manifest_says_why_nothing_was_compiled(root: Path) -> None:
    manifest = root / "compiled.json"
    manifest.write_text(json.dumps({"sources": {}, "reason": "no compiler"}))
    assert kernel._reason() == "no compiler"
    manifest.unlink()
    assert kernel._reason().startswith("not compiled")


def test_this_process() -> None:
    assert is_compiled() == (build_info() == "compiled") == (not kernel.REASON)
    assert kernel.REASON in str(KernelMissing())
