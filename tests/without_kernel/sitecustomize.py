"""Python without the compiled modules: each import of one fails, as where there is no compiler.

A process gets this folder in front of its PYTHONPATH.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ExtensionFileLoader, ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parent.parent.parent


class Refuse:
    """Finds no hot module."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] not in {"formats", "yfilter"}:
            return None
        source = ROOT.joinpath(*name.split("."))
        spec = PathFinder.find_spec(name, path, target)
        is_extension = spec is not None and isinstance(spec.loader, ExtensionFileLoader)
        if is_extension or any(source.with_suffix(end).exists() for end in (".pxd", ".pyx")):
            raise ModuleNotFoundError(f"{name} is not compiled here", name=name)
        return None


sys.meta_path.insert(0, Refuse)
