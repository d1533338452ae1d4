"""A query plan: operators annotated with providers, and fragments by cycle provider (2.1 step 2).

``PlanNode`` is the tree that ``--explain`` shows.  The tree is cut at each ``send``: the part below
it is a ``Fragment``, executed by one cycle provider, whose rows another fragment receives.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from registration.queries.providers import CycleProvider, Function, Relation


@dataclass(frozen=True, slots=True)
class Figures:
    """Of an operator with all below it, estimated or measured.  ``seconds``: to the last row,
    ``first_row_s``: to the first; ``cost``: money."""

    rows: float = 0.0
    bytes_read: float = 0.0
    bytes_moved: float = 0.0
    cost: float = 0.0
    first_row_s: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class PlanNode:
    """``operator``: scan wrap apply select project join union nest unnest send receive block.

    ``site``: the cycle provider.  ``index``: of the unit, step or predicate of the
    query graph that the operator is about, -1 where it is about none.  ``text``: as people read
    it.  ``width``: bytes a row.  A ``send`` has the site it sends from, its ``receive`` is above it
    at the site of the receiver.

    ``kind`` of a join: inner, cross, or the kind of an outer join, whose ``index`` is its place
    in ``QueryGraph.outer``.  An inner join has the first of its predicates, each other one is a
    ``select`` above it; so is a predicate of one unit above its scan.  The root of a block is a
    ``project`` (output columns, having, distinct, order, limit), above a ``nest`` where it groups.
    """

    operator: str
    site: CycleProvider
    figures: Figures
    inputs: tuple[PlanNode, ...] = ()
    index: int = -1
    kind: str = ""
    relation: Relation | None = None
    function: Function | None = None
    text: str = ""
    width: float = 0.0
    memory_megabytes: float = 0.0

    def walk(self) -> Iterator[PlanNode]:
        """The operators, each behind those below it."""
        for below in self.inputs:
            yield from below.walk()
        yield self

    def facts(self) -> dict[str, object]:
        """The operator and all below it as ``--explain --json`` shows them."""
        return {
            "operator": self.operator,
            "cycle_provider": self.site.name,
            "function": self.function.name if self.function else None,
            "function_provider": self.function.provider if self.function else None,
            "relation": self.relation.name if self.relation else None,
            "text": self.text,
            "rows": self.figures.rows,
            "inputs": [below.facts() for below in self.inputs],
        }


def digest(root: PlanNode) -> str:
    """SHA-256 over the operators, their places, functions and texts; figures do not count."""

    def said(node: PlanNode) -> list[object]:
        function, relation = node.function, node.relation
        return [
            node.operator, node.site.uri, node.index, node.kind, node.text,
            relation.uri if relation else "",
            [function.uri, function.digest] if function else [],
            [said(below) for below in node.inputs],
        ]  # fmt: skip

    text = json.dumps(said(root), separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def to_json(root: PlanNode) -> dict[str, object]:
    """The query plan as ``--explain --json`` prints it."""
    return {"query_plan": digest(root), "estimate": asdict(root.figures), "root": root.facts()}


def drawing(root: PlanNode) -> str:
    """The tree as text: a line an operator, with its cycle provider, function and rows."""
    lines: list[tuple[str, str, str, str]] = []

    def draw(node: PlanNode, first: str, rest: str) -> None:
        kind = f"{node.kind} " if node.kind and node.operator == "join" else ""
        said = f"{first}{kind}{node.operator} {node.text}".rstrip()
        by = f"{node.function.name} of {node.function.provider}" if node.function else ""
        lines.append((said, node.site.name, by, f"{node.figures.rows:,.0f}"))
        for below in node.inputs[:-1]:
            draw(below, f"{rest}├─ ", f"{rest}│  ")
        for below in node.inputs[-1:]:
            draw(below, f"{rest}└─ ", f"{rest}   ")

    draw(root, "", "")
    lines.insert(0, ("operator", "cycle provider", "function", "rows"))
    wide = [max(len(line[column]) for line in lines) for column in range(4)]
    rows = (
        f"{said:<{wide[0]}}  {site:<{wide[1]}}  {by:<{wide[2]}}  {count:>{wide[3]}}"
        for said, site, by, count in lines
    )
    return "\n".join(row.rstrip() for row in rows)


@dataclass(frozen=True, slots=True)
class Scan:
    """An input that the fragment reads at its own cycle provider as a view of name ``view``.

    ``most_bytes``: the most bytes that it may read, None: no limit; nor more than a ``share`` of
    all bytes that the relation has there, above 0 and up to 1."""

    view: str
    relation: Relation
    columns: tuple[str, ...]
    arguments: tuple[tuple[str, str], ...] = ()
    estimate: Figures = Figures()
    most_bytes: int | None = None
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Receive:
    """An input that another fragment sends, as a view; ``columns``: names and types (DDL), "" for
    one that the stream says."""

    view: str
    fragment: int
    columns: tuple[tuple[str, str], ...]

    @property
    def is_typed(self) -> bool:
        return all(type_ for _, type_ in self.columns)


@dataclass(frozen=True, slots=True)
class Plug:
    """A function that the fragment's SQL calls by ``name`` (unique in the plan)."""

    name: str
    function: Function


@dataclass(frozen=True, slots=True)
class Fragment:
    """``sql``: over the views of ``scans`` and ``receives`` and the functions of ``plugs`` and
    nothing else."""

    number: int
    site: CycleProvider
    scans: tuple[Scan, ...]
    receives: tuple[Receive, ...]
    plugs: tuple[Plug, ...]
    sql: str
    estimate: Figures = Figures()
    memory_megabytes: float = 0.0
