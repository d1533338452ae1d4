"""The modules of the project: their files, the modules that each imports, and its docstring.

A module is a ``.py`` or a ``.pyx``; a ``.pxd`` beside one belongs to it, and one that stands alone
is a module as well.  Cython has no parser that could be asked quickly, so imports of ``.pyx`` and
``.pxd`` are found by a regular expression.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ("formats", "yfilter", "overlay", "registration", "onyx")
ON_TOP = ("demo", "benchmarks", "tests")
SUFFIXES = (".py", ".pyx", ".pxd")
"""A module is the first of these that is there."""

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+c?import[ \t]+(\([^)]*\)|[^\n]*)|c?import[ \t]+([^\n]*))",
    re.MULTILINE,
)
_TEXT_OR_COMMENT = re.compile(r'("""|\'\'\').*?\1|#[^\n]*', re.DOTALL)
_DOCSTRING = re.compile(r'(?:\s|#[^\n]*\n)*[rR]?("""|\'\'\')(.*?)\1', re.DOTALL)


def source_files(package: str) -> list[Path]:
    """All source files of a package, relative to the project."""
    found = (path for path in sorted((ROOT / package).rglob("*")) if path.suffix in SUFFIXES)
    return [path.relative_to(ROOT) for path in found]


def name_of(path: Path) -> str:
    """The dotted name of the module that a file belongs to."""
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _modules(packages: tuple[str, ...]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in sorted(chain(*map(source_files, packages)), key=lambda p: SUFFIXES.index(p.suffix)):
        found.setdefault(name_of(path), path)
    return found


PRODUCT = _modules(LAYERS)
"""Of the product, by name."""
MODULES = PRODUCT | _modules(ON_TOP)


def imports(path: Path) -> frozenset[str]:
    """The absolute names of all modules that a module imports or cimports, wherever in it."""
    header = path.with_suffix(".pxd")
    found = imports_of(path)
    if header != path and (ROOT / header).exists():
        found |= imports_of(header)
    return found - {name_of(path)}


@cache
def imports_of(path: Path) -> frozenset[str]:
    """The same of one file."""
    found = set()
    for module, member in _read(path)[0]:
        assert not module.startswith("."), f"{path}: relative import"
        longer = f"{module}.{member}"
        found.add(longer if member and longer in MODULES else module)
    return frozenset(found)


def docstring(path: Path) -> str:
    """Of a module; "" if it has none."""
    return _read(path)[1]


@cache
def _read(path: Path) -> tuple[list[tuple[str, str]], str]:
    """The imports of a file, as pairs of a module and a name in it ("": none); its docstring."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.suffix != ".py":
        found = _DOCSTRING.match(text)
        return named_in_cython(text), found[2].strip() if found else ""
    tree = ast.parse(text, str(path))
    named: list[tuple[str, str]] = []
    for node in _statements(tree):
        if isinstance(node, ast.Import):
            named += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            named += [(module, alias.name) for alias in node.names]
    return named, ast.get_docstring(tree) or ""


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """PERF: all those below ``node``; no import is within an expression, and most nodes are."""
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        for each in getattr(node, name, ()):
            yield each
            yield from _statements(each)


def named_in_cython(text: str) -> list[tuple[str, str]]:
    """The imports of a ``.pyx`` or ``.pxd``, as pairs of a module and a name in it ("": none)."""
    found = []
    for module, members, modules in _IMPORT.findall(_TEXT_OR_COMMENT.sub("", text)):
        names = (modules or members).strip("() \t\n").split(",")
        first_words = [name.split()[0] for name in names if name.split()]
        found += [(module, word) if module else (word, "") for word in first_words]
    return found
