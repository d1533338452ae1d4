"""The names of numbers in a ``.pxd`` are C; uncompiled, the ``.py`` beside it has the same."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
WITH_NAMES = [
    path.relative_to(ROOT)
    for package in ("formats", "yfilter")
    for path in sorted((ROOT / package).rglob("*.pxd"))
    if "cpdef enum:" in path.read_text()
]


def names_of_c(types: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for block in types.split("cpdef enum:\n")[1:]:
        for line in block.splitlines():
            if line and not line.startswith(" "):
                break
            name, equals, value = line.partition("#")[0].partition(" = ")
            if equals:
                found[name.strip()] = int(value, 0)
    return found


def names_of_python(source: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in ast.parse(source).body:
        if isinstance(part, ast.If) and ast.unparse(part.test) == "not cython.compiled":
            kept = [one for one in part.body if isinstance(one, ast.Assign)]
            exec(compile(ast.Module(kept, []), "names", "exec"), {"range": range}, found)
    return found


@pytest.mark.parametrize("path", WITH_NAMES, ids=str)
def test_numbers_have_the_same_names_uncompiled(path: Path) -> None:
    in_c = names_of_c((ROOT / path).read_text())
    assert in_c
    assert names_of_python((ROOT / path.with_suffix(".py")).read_text()) == in_c
