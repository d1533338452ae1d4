"""Which build of the hot modules runs: the compiled one, or the plain Python it was made from.

Importing this module decides, once, for all packages; ``formats`` imports it before anything that
could be compiled.  The compiled build runs if every module in the manifest that ``setup.py`` left
(``compiled.json``) is there and its source has not changed since.  Otherwise, and whenever the
environment has ``ONYX_PURE=1``, every module is loaded from its ``.py``, stale extensions beside
it notwithstanding: Python itself would prefer them.  Builds are never mixed.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Sequence
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    ExtensionFileLoader,
    ModuleSpec,
    PathFinder,
)
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

_PACKAGES = ("formats", "yfilter")  # those with hot modules
_ROOT = Path(__file__).parent.parent


def build_info() -> str:
    """``compiled``, or ``pure`` with the reason in brackets."""
    return f"pure ({_REASON})" if _REASON else "compiled"


def is_compiled() -> bool:
    """Whether the hot modules of this process are the compiled ones."""
    return not _REASON


class _SourceFinder:
    """Finds the ``.py`` of a hot module where Python would take the extension beside it."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] not in _PACKAGES:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or not isinstance(spec.loader, ExtensionFileLoader):
            return None
        return spec_from_file_location(name, _source_of(name))


def _source_of(module: str) -> Path:
    return _ROOT.joinpath(*module.split(".")).with_suffix(".py")


def _reason_for_pure() -> str:
    """Why the pure build runs; empty if the compiled one does."""
    if os.environ.get("ONYX_PURE", "0") not in {"", "0"}:
        return "ONYX_PURE is set"
    try:
        manifest = json.loads((_ROOT / "formats" / "compiled.json").read_bytes())
    except OSError:
        return "not compiled; see ONYX_COMPILE in setup.py"
    if not manifest["sources"]:
        return str(manifest["reason"]) or "nothing to compile"
    for part, suffix in (("sources", ".py"), ("types", ".pxd")):
        for module, digest in manifest.get(part, {}).items():
            if not _is_unchanged(_source_of(module).with_suffix(suffix), digest):
                return f"{module} changed after it was compiled; make setup compiles it again"
    for module in manifest["sources"]:
        source = _source_of(module)
        if not any(source.with_suffix(suffix).exists() for suffix in EXTENSION_SUFFIXES):
            return f"{module} is not compiled for this Python"
    return ""


def _is_unchanged(file: Path, digest: str) -> bool:
    return file.exists() and hashlib.sha256(file.read_bytes()).hexdigest() == digest


_REASON = _reason_for_pure()
if _REASON:
    sys.meta_path.insert(0, _SourceFinder)
