"""Aggregates below joins: a relation whose rows may leave in aggregates alone is grouped before it
is joined (eager aggregation; Yan and Larson 1995).

``SELECT s.name, sum(p.v) FROM p JOIN s ON p.k = s.k GROUP BY s.name`` takes of ``p`` the sum and
the number of its rows by ``k``.  A group is one row of the join for all rows in it, so aggregates
of the other relations count it as often as it has rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from sqlglot import exp

from registration.queries.providers import Column
from registration.queries.query_graph import Output, QueryGraph, Unit, columns_in, quoted, renamed
from registration.queries.refusals import QueryRefused
from registration.queries.sql_functions import AGGREGATES
from registration.queries.sql_language import Text, print_sql
from registration.queries.sql_types import type_of

_IDEMPOTENT = {"min", "max", "bool_and", "bool_or", "every", "some", "any", "bit_and", "bit_or"}
"""Aggregates of aggregates are the whole, and it does not matter how often a value is there."""
_EXACT = {"tinyint", "smallint", "int", "bigint", "float", "double"}
"""Types whose values times a number of rows keep all digits that their sum would have."""


class _Whole(Exception):
    """A block cannot be grouped by parts."""


def aggregated_early(graph: QueryGraph, is_kept: Callable[[str], bool]) -> QueryGraph:
    """The query with each relation grouped before joins of which ``is_kept`` says by its URI that
    aggregates alone leave; the graph itself where there is none that can be."""
    aliases = set(_aliases(graph))
    units = tuple(
        unit if unit.block is None else replace(unit, block=aggregated_early(unit.block, is_kept))
        for unit in graph.units
    )
    found = graph if units == graph.units else replace(graph, units=units)
    for place, unit in enumerate(graph.units):
        if unit.relation is not None and is_kept(unit.relation.uri):
            try:
                found = _Split(found, place, _new(f"{unit.alias}_part", aliases)).graph()
            except (_Whole, QueryRefused):
                continue
    return found


def _aliases(graph: QueryGraph) -> Iterator[str]:
    for unit in graph.units:
        yield unit.alias
        if unit.block is not None:
            yield from _aliases(unit.block)


def _loses(kind: str, left: int, right: int) -> bool:
    """Whether an outer join may make columns of one of its sides null, or asks for its rows."""
    return bool(right or (left and kind not in ("left", "semi", "anti")))


def _parsed(text: str) -> exp.Ordered:
    """Of an expression, or one with a direction."""
    found: exp.Ordered = (
        Text(f"SELECT 1 FROM t ORDER BY {text}").parse().args["order"].expressions[0]
    )
    return found


def _new(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


@dataclass(slots=True)
class _Split:
    """A block under way, whose unit at ``place`` becomes a block of groups; ``inside``: the alias
    of the relation in it.  ``made``: the aggregates of that block, by their texts."""

    block: QueryGraph
    place: int
    inside: str
    made: dict[str, Column] = field(default_factory=dict)

    def graph(self) -> QueryGraph:
        """_Whole, QueryRefused."""
        block, unit = self.block, self.block.units[self.place]
        bit = 1 << self.place
        if (
            not block.aggregated
            or len(block.units) < 2
            or any(_loses(kind, left & bit, right & bit) for kind, left, right, _ in block.outer)
            or any(step.units & bit for step in block.steps)
        ):
            raise _Whole
        own = [each for each in block.predicates if each.units == bit and not each.steps]
        rest = tuple(each for each in block.predicates if each not in own)
        select = tuple(replace(each, text=self._text(each.text)) for each in block.select)
        having = self._text(block.having) if block.having else ""
        order = tuple(map(self._text, block.order))
        texts = [each.text for each in select]
        texts += (
            *(each.text for each in rest),
            *block.group,
            having,
            *order,
            *(each[3] for each in block.outer),
        )
        named = {name for text in texts for name in columns_in(text)}
        keys = [each for each in unit.columns if f"{unit.alias}.{each.name}" in named]
        inner = QueryGraph(
            (replace(unit, alias=self.inside),),
            tuple(replace(each, units=1, text=self._within(each.text)) for each in own),
            (),
            (
                *(Output(each.name, each.type, self._name(each)) for each in keys),
                *(Output(each.name, each.type, text) for text, each in self.made.items()),
            ),
            group=tuple(map(self._name, keys)),
            having="" if keys else "count(1) > 0",  # no rows are no group
            aggregated=True,
        )
        columns = tuple(Column(each.name, each.type) for each in (*keys, *self.made.values()))
        if not columns:
            self._count()
            return self.graph()
        units = list(block.units)
        units[self.place] = Unit(unit.alias, columns, block=inner)
        return replace(
            block, units=tuple(units), predicates=rest, select=select, having=having, order=order
        )

    def _name(self, column: Column) -> str:
        return quoted(f"{self.inside}.{column.name}")

    def _within(self, text: str) -> str:
        """A text about the unit, with names of the relation inside."""
        before = f"{self.block.units[self.place].alias}."
        return renamed(
            text,
            lambda name: (
                f"{self.inside}.{name.removeprefix(before)}" if name.startswith(before) else name
            ),
        )

    def _text(self, text: str) -> str:
        """A text of the operators on top, over groups in place of rows."""
        node = _parsed(text)
        unfit = (exp.Window, exp.Query, exp.Filter, exp.WithinGroup, exp.IgnoreNulls)
        if node.find(*unfit, exp.RespectNulls):
            raise _Whole
        types = {
            f"{unit.alias}.{each.name}": each.type
            for unit in self.block.units
            for each in unit.columns
        }
        for column in node.find_all(exp.Column):
            if column.name in types:
                column.meta["type"] = types[column.name]
        called = [each for each in node.find_all(exp.Anonymous) if each.name.lower() in AGGREGATES]
        for each in called:
            each.replace(exp.Paren(this=_parsed(self._whole(each)).this))
        return print_sql(node) if called else text

    def _whole(self, call: exp.Anonymous) -> str:
        """The value of an aggregate by those of groups."""
        name, given = call.name.lower(), call.expressions
        if call.find(exp.Distinct) or len(given) != 1:
            raise _Whole
        text, type_ = print_sql(call), type_of(call)
        argument = print_sql(given[0])
        alias = f"{self.block.units[self.place].alias}."
        mine = {each.name.startswith(alias) for each in given[0].find_all(exp.Column)} or {True}
        if len(mine) > 1:
            raise _Whole
        if not mine.pop():
            return self._of_others(name, text, argument, type_of(given[0]))
        return self._of_own(name, text, argument, type_, type_of(given[0]))

    def _of_own(self, name: str, text: str, argument: str, type_: str, of: str) -> str:
        if name in (*_IDEMPOTENT, "bit_xor"):
            return f"{name}({self._made(text, type_)})"
        if name == "count":
            return f"coalesce(sum({self._made(text, 'bigint')}), 0L)"
        if name == "sum" and type_:
            return f"CAST(sum({self._made(text, type_)}) AS {type_})"
        if name in ("avg", "mean") and of in _EXACT:
            total = self._made(f"sum(CAST({argument} AS DOUBLE))", "double")
            return f"sum({total}) / nullif(sum({self._made(f'count({argument})', 'bigint')}), 0L)"
        raise _Whole

    def _of_others(self, name: str, text: str, argument: str, of: str) -> str:
        if name in _IDEMPOTENT:
            return text
        rows = self._count()
        there = f"sum(CASE WHEN {argument} IS NULL THEN 0L ELSE {rows} END)"
        if name == "count":
            return f"coalesce({there}, 0L)"
        if name == "sum" and of in _EXACT:
            return f"sum({argument} * {rows})"
        if name in ("avg", "mean") and of in _EXACT:
            return f"sum(CAST({argument} AS DOUBLE) * {rows}) / nullif({there}, 0L)"
        raise _Whole

    def _count(self) -> str:
        return self._made("count(1)", "bigint")

    def _made(self, text: str, type_: str) -> str:
        """The column of an aggregate of the rows of a group."""
        if not type_:
            raise _Whole
        unit, text = self.block.units[self.place], self._within(text)
        if text not in self.made:
            taken = {each.name for each in (*unit.columns, *self.made.values())}
            self.made[text] = Column(_new(f"part{len(self.made)}", taken), type_)
        return quoted(f"{unit.alias}.{self.made[text].name}")
