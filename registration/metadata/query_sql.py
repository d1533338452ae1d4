"""Queries in the rules' language as SQL joins over the tables of statements (MDV, section 2.2).

A query is one SELECT for each of its alternatives.  It starts at the variable with the condition
that says most, goes along the links by indexes, and looks at all else on the way.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from registration.metadata.atomic_rules import placed
from registration.metadata.filter_tables import compared
from registration.metadata.join_sql import LinkSql
from registration.metadata.rules import Condition, Conjunction, Constant
from registration.metadata.statement_tables import StatementTables


class Query(NamedTuple):
    """``sql`` gives numbers of resources, a column for each variable that is asked for."""

    sql: str
    arguments: tuple[object, ...]


# How much a condition says: the first is the best to start from.
_BEST = ("iri", "=", "<", "<=", ">", ">=", "contains")


def query_sql(
    alternatives: Iterable[Conjunction], variables: Iterable[str], tables: StatementTables
) -> Query:
    """``variables``: the ones whose resources are wanted; each row once."""
    wanted = tuple(variables)
    parts = [_Select(each, tables).query(wanted or (each.register,)) for each in alternatives]
    sql = " UNION ".join(part.sql for part in parts)
    return Query(sql, tuple(value for part in parts for value in part.arguments))


class _Select(LinkSql):
    """One conjunction."""

    def __init__(self, conjunction: Conjunction, tables: StatementTables) -> None:
        super().__init__(tables.name)
        self._of = conjunction
        self._tables = tables
        self._where: list[str] = []
        self._arguments: list[object] = []

    def query(self, wanted: tuple[str, ...]) -> Query:
        classes, register, conditions, joins = self._of
        numbers = {name: at for at, name in enumerate(classes)}
        of_class = {name: self._name(each) for name, each in classes.items()}
        links = [placed(each, numbers) for each in joins]
        start = min(conditions, key=_rank, default=None)
        if start is None or _rank(start) == len(_BEST):
            start, name, here = None, register, "c.res"
            joined = ["types c INDEXED BY types_class"]
            self._where.append(f"c.class = {of_class.pop(name)}")
        elif start.property:
            name, here, joined = start.variable, "c.res", ["statements c"]
            self._where.append(self._said(start, "c"))
        else:
            name, here, joined = start.variable, "c.number", ["resources c"]
            self._where.append(self._is(start, here))
        places = {numbers[name]: here}
        while len(places) < len(numbers):
            link, at, on_the_way, there = self.next_place(links, places)
            joined += on_the_way
            if link is not None:
                links.remove(link)
            else:
                of = self._name([*classes.values()][at])
                joined.append(f"CROSS JOIN types b{at} ON b{at}.class = {of}")
            places[at] = there or f"b{at}.res"
        found = {name: places[at] for name, at in numbers.items()}
        for each in conditions:
            here = found[each.variable]
            if each is not start and each.property:
                said = f"x.res = {here} AND {self._said(each, 'x')}"
                self._where.append(f"EXISTS (SELECT 1 FROM statements x WHERE {said})")
            elif each is not start:
                self._where.append(self._is(each, here))
        for name, of in of_class.items():
            is_so = f"t.res = {found[name]} AND t.class = {of}"
            self._where.append(f"EXISTS (SELECT 1 FROM types t WHERE {is_so})")
        self._where += [self.holds(each, places[each.left], places[each.right]) for each in links]
        columns = ", ".join(map(found.__getitem__, wanted))
        sql = f"SELECT DISTINCT {columns} FROM {' '.join(joined)} WHERE {' AND '.join(self._where)}"
        return Query(sql, tuple(self._arguments))

    def _said(self, condition: Condition, row: str) -> str:
        """That a row of statements is what a condition asks for."""
        _, prop, operator, constant = condition
        self._arguments.append(self._value(constant))
        test = compared(row, operator, "?", constant.kind)
        return f"{row}.prop = {self._name(prop)} AND {test}"

    def _is(self, condition: Condition, here: str) -> str:
        """The same of a condition on a resource itself."""
        self._arguments.append(self._value(condition.constant))
        return f"{here} {condition.operator} ?"

    def _value(self, constant: Constant) -> object:
        if constant.kind != "iri":
            return constant.value
        uri = str(constant.value)
        return self._tables.known((uri,)).get(uri, -1)


def _rank(condition: Condition) -> int:
    operator = condition.operator
    if condition.constant.kind == "iri" and operator == "=":
        return 0
    return _BEST.index(operator) if operator in _BEST else len(_BEST)
