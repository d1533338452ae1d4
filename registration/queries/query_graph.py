"""A query as the optimiser takes it: units that are joined, predicates between them, steps.

A unit is a relation that is read, or a block (a subquery, an aggregate, the composite side of an
outer join) that is planned by itself and whose rows are one input here.  A set of units, or of
steps, is a bit set: bit ``i`` is ``units[i]``, ``steps[i]``.

Aliases of units are unique in the whole query, and a column is known everywhere by its full name
``alias.column``.  In texts a full name is one identifier in backticks, so a text holds over any
rows that have the columns.  Texts are printed from the checked tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from registration.queries.providers import Column, Function, Relation

_STRING_OR_NAME = re.compile(r"'(?:[^'\\]|\\.)*'|`((?:[^`]|``)+)`", re.DOTALL)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def columns_in(text: str) -> set[str]:
    """The full names in a text."""
    return {name.replace("``", "`") for name in _STRING_OR_NAME.findall(text) if name}


def renamed(text: str, named: Callable[[str], str]) -> str:
    """The text with other full names."""

    def one(found: re.Match[str]) -> str:
        return quoted(named(found[1].replace("``", "`"))) if found[1] else found[0]

    return _STRING_OR_NAME.sub(one, text)


def bare(text: str) -> str:
    """The full name of a column, of a text that is nothing else, or ""."""
    names = columns_in(text)
    return names.pop() if len(names) == 1 and text == quoted(min(names)) else ""


@dataclass(frozen=True, slots=True)
class Predicate:
    """``units``: bits of the units whose columns it has; ``steps``: of the steps that it needs.
    ``equal``: the two ``alias.column`` of an equality of columns, else ().

    It holds for rows of the whole block (``WHERE``, or ``ON`` of an inner join outside of all outer
    joins), so the optimiser keeps it above outer joins that make its columns null."""

    units: int
    text: str
    equal: tuple[str, ...] = ()
    steps: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """An operator that adds columns to rows: a function of a function provider at work, or, without
    ``alternatives``, an unnest (``explode`` of a column).

    ``alternatives``: the functions of that name whose signatures fit.  ``text``: the call.
    ``columns``: its output by full names, with types.  ``arguments``: full names of the columns
    that it reads, made by ``units`` and ``steps``.  ``outer``: an unnest keeps rows without
    elements."""

    units: int
    text: str
    columns: tuple[Column, ...]
    arguments: tuple[str, ...]
    steps: int = 0
    alternatives: tuple[Function, ...] = ()
    outer: bool = False


@dataclass(frozen=True, slots=True)
class Unit:
    """``relation`` or ``block``, never both.  ``columns``: those of it that the query needs, by
    their own names, of a relation with statistics.  ``arguments``: options of the relation in the
    query (``profile => '…'``)."""

    alias: str
    columns: tuple[Column, ...]
    relation: Relation | None = None
    block: QueryGraph | None = None
    arguments: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Output:
    """A column of a block's rows: its name, its type as Spark's DDL ("": not known), its text."""

    name: str
    type: str
    text: str


@dataclass(frozen=True, slots=True)
class QueryGraph:
    """One block.

    ``outer``: (kind, units left, units right, condition) of joins whose order is fixed.  The right
    side is one unit; kind is left, right, full, semi, anti or ``filter``: the condition has a
    subquery over the right unit, which it names by alias as a relation; rows of the left side for
    which it holds are kept (all, where it is ""), without columns of the right one, whose rows
    ``select``, ``having`` and ``order`` may ask for likewise.
    ``combine``: "" or ``union all``, ``union``, ``intersect``, ``except``, ``intersect all``,
    ``except all``: rows of units, blocks of equal columns, are united instead of joined, by the
    columns of the first unit.
    ``group``: texts; ``order``: texts with their directions; ``aggregated``: rows are grouped, if
    only to one.  ``limit`` and ``offset``: rows."""

    units: tuple[Unit, ...]
    predicates: tuple[Predicate, ...]
    steps: tuple[Step, ...]
    select: tuple[Output, ...]
    outer: tuple[tuple[str, int, int, str], ...] = ()
    group: tuple[str, ...] = ()
    having: str = ""
    order: tuple[str, ...] = ()
    distinct: bool = False
    limit: int | None = None
    offset: int = 0
    aggregated: bool = False
    combine: str = ""
