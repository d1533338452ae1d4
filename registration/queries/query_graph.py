"""A query as the optimiser takes it: units that are joined, edges between them, functions.

A unit is a relation that is read, or a block (a subquery, an outer join, an aggregate) that is
planned by itself and whose rows are one input here.  A set of units is a bit set: bit ``i`` is
``units[i]``.  Texts are SQL of the checked tree, columns qualified by the aliases of units.
"""

from __future__ import annotations

from dataclasses import dataclass

from registration.queries.providers import Function, Relation


@dataclass(frozen=True, slots=True)
class Predicate:
    """``units``: bits of the units whose columns it has.  ``equal``: the two ``alias.column`` of an
    equality of columns, else ().  ``applications``: bits of ``QueryGraph.applications`` it needs.

    It holds for rows of the whole block (``WHERE``, or ``ON`` of an inner join outside of all outer
    joins), so the optimiser keeps it above outer joins that make its columns null."""

    units: int
    text: str
    equal: tuple[str, ...] = ()
    applications: int = 0


@dataclass(frozen=True, slots=True)
class Application:
    """A function of a function provider at work in the query.

    ``alternatives``: the functions of that name whose signatures fit.  ``text``: the call;
    ``output``: ``alias.column`` by which later operators name its result.  ``arguments``: columns
    that it reads."""

    alternatives: tuple[Function, ...]
    units: int
    text: str
    output: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unnest:
    """``explode`` of a column of one unit: ``text`` the generator's call, ``columns`` its output
    (``alias.column``), ``outer`` keeps rows without elements."""

    units: int
    text: str
    columns: tuple[str, ...]
    outer: bool = False


@dataclass(frozen=True, slots=True)
class Unit:
    """``relation`` or ``block``, never both.  ``columns``: the columns of it that the query needs.
    ``arguments``: options of the relation in the query (``profile => '…'``)."""

    alias: str
    columns: tuple[str, ...]
    relation: Relation | None = None
    block: QueryGraph | None = None
    arguments: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class QueryGraph:
    """One block.  ``outer``: (kind, units left, units right, condition) of joins whose order is
    fixed: kind is left, right, full, semi or anti.  ``select``: (name, text) of each output column;
    ``group`` texts, ``having``, ``order`` texts with their directions; ``distinct``; ``limit``.
    ``union``: further blocks of equal columns, with ``union_all`` or without duplicates."""

    units: tuple[Unit, ...]
    predicates: tuple[Predicate, ...]
    applications: tuple[Application, ...]
    unnests: tuple[Unnest, ...]
    select: tuple[tuple[str, str], ...]
    outer: tuple[tuple[str, int, int, str], ...] = ()
    group: tuple[str, ...] = ()
    having: str = ""
    order: tuple[str, ...] = ()
    distinct: bool = False
    limit: int | None = None
    aggregated: bool = False
    union: tuple[QueryGraph, ...] = ()
    union_all: bool = True
