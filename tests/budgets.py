"""Budgets: lines of each folder of the product, and knots of folders that import each other.

``budgets.toml`` has the figures.  They only fall::

    python -m tests.budgets      lowers each to what is there; a folder that is new gets its lines,
                                 as long as all budgets together do not rise

A folder counts its own files, not those of folders below it.  A knot is a set of folders each of
which imports, by way of others, all the others; an ``__init__.py`` that offers the names of folders
below it does not import them in this sense.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import networkx as nx

from tests.modules import LAYERS, PRODUCT, ROOT, imports, source_files

FILE = Path(__file__).with_name("budgets.toml")
SLACK_SHARE, SLACK_LINES = 0.02, 20
"""A folder may be so far below its budget before the budget has to be lowered."""
HEAD = """\
# Budgets of the product (tests/budgets.py), which only fall: python -m tests.budgets
# The folders of a knot import each other; lines are those of .py, .pyx and .pxd in each folder.
"""


@dataclass(frozen=True)
class Budgets:
    """``lines`` by folder; ``knots``: the folders of each."""

    lines: dict[str, int]
    knots: list[list[str]]

    @classmethod
    def committed(cls) -> Budgets:
        found = tomllib.loads(FILE.read_text(encoding="utf-8"))
        return cls(found["lines"], found["knots"])

    def written(self) -> str:
        knots = [f"    {json.dumps(knot)}," for knot in self.knots]
        names = {folder: json.dumps(folder) for folder in sorted(self.lines)}
        width = max(map(len, names.values()), default=0)
        lines = [f"{name:<{width}} = {self.lines[folder]}" for folder, name in names.items()]
        return "\n".join([HEAD, "knots = [", *knots, "]", "", "[lines]", *lines, ""])


def lines_now() -> dict[str, int]:
    found: Counter[str] = Counter()
    for package in LAYERS:
        for path in source_files(package):
            text = (ROOT / path).read_text(encoding="utf-8")
            found[path.parent.as_posix()] += len(text.splitlines())
    return dict(found)


def knots_now() -> list[list[str]]:
    graph = nx.DiGraph()
    for path in PRODUCT.values():
        folder = path.parent.as_posix()
        for module in imports(path) & PRODUCT.keys():
            other = PRODUCT[module].parent.as_posix()
            is_offered = path.name == "__init__.py" and other.startswith(f"{folder}/")
            if other != folder and not is_offered:
                graph.add_edge(folder, other)
    return sorted(sorted(knot) for knot in nx.strongly_connected_components(graph) if len(knot) > 1)


def above(lines: Mapping[str, int], budgets: Mapping[str, int]) -> Iterator[str]:
    for folder, count in sorted(lines.items()):
        if folder not in budgets:
            yield f"{folder}: {count} lines, and no budget"
        elif count > budgets[folder]:
            yield f"{folder}: {count} lines, {count - budgets[folder]} above its budget"


def below(lines: Mapping[str, int], budgets: Mapping[str, int]) -> Iterator[str]:
    """Budgets that are to be lowered."""
    for folder, budget in sorted(budgets.items()):
        count = lines.get(folder)
        if count is None:
            yield f"{folder}: is gone"
        elif count < budget * (1 - SLACK_SHARE) - SLACK_LINES:
            yield f"{folder}: {count} lines, {budget - count} below its budget"


def new_knots(knots: list[list[str]], known: list[list[str]]) -> list[list[str]]:
    return [knot for knot in knots if not any({*knot} <= {*other} for other in known)]


def lowered(lines: Mapping[str, int], budgets: Mapping[str, int]) -> dict[str, int]:
    """The budgets as they may be written: none above what it was, new ones where there is room."""
    found = {folder: min(n, budgets[folder]) for folder, n in lines.items() if folder in budgets}
    room = sum(budgets.values()) - sum(found.values())
    for folder in sorted(lines.keys() - budgets.keys()):
        if lines[folder] <= room:
            found[folder] = lines[folder]
            room -= lines[folder]
    return found


def main() -> int:
    committed, lines, knots = Budgets.committed(), lines_now(), knots_now()
    after = Budgets(
        lowered(lines, committed.lines),
        committed.knots if new_knots(knots, committed.knots) else knots,
    )
    FILE.write_text(after.written(), encoding="utf-8")
    saved = sum(committed.lines.values()) - sum(after.lines.values())
    print(f"{sum(lines.values())} lines; budgets lowered by {saved}")
    wrong = [*above(lines, after.lines), *map(str, new_knots(knots, after.knots))]
    for each in wrong:
        print(each, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
