"""A query plan: operators annotated with providers, and fragments by cycle provider (2.1 step 2).

``PlanNode`` is the tree that ``--explain`` shows.  The tree is cut at each ``send``: the part below
it is a ``Fragment``, executed by one cycle provider, whose rows another fragment receives.
"""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Scan:
    """An input that the fragment reads at its own cycle provider as a view of name ``view``."""

    view: str
    relation: Relation
    columns: tuple[str, ...]
    arguments: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Receive:
    """An input that another fragment sends, as a view; ``columns``: names and types (DDL)."""

    view: str
    fragment: int
    columns: tuple[tuple[str, str], ...]


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
