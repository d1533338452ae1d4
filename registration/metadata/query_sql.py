"""Queries in the rules' language as SQL joins over the tables of statements (MDV, section 2.2).

A query is one SELECT for each of its alternatives.  It starts at the variable with the condition
that says most, goes along the links by indexes, and looks at all else on the way.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from registration.metadata.atomic_rules import placed, turned
from registration.metadata.filter_tables import compared
from registration.metadata.join_sql import LinkSql
from registration.metadata.rules import Condition, Conjunction, Constant, Join
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
        self._from: list[str] = []
        self._from_arguments: list[object] = []
        self._where: list[str] = []
        self._arguments: list[object] = []
        self._places: dict[str, str] = {}  # of each variable reached, its resource
        self._numbers = {name: at for at, name in enumerate(conjunction.classes)}

    def query(self, wanted: tuple[str, ...]) -> Query:
        conditions = list(self._of.conditions)
        joins = list(self._of.joins)
        start = min(conditions, key=_rank, default=None)
        if start is not None and _rank(start) < len(_BEST):
            conditions.remove(start)
            self._start_at(start)
        else:
            name = self._of.register
            of_class = self._class(name)
            self._from.append(f"types c INDEXED BY types_class ON c.class = {of_class}")
            self._places[name] = "c.res"
        self._reached(next(iter(self._places)), conditions, is_typed=start is None)
        while len(self._places) < len(self._of.classes):
            self._go_on(joins)
            self._reached([*self._places][-1], conditions)
        for join in joins:
            link = placed(join, self._numbers)
            self._where.append(self.holds(link, self._places[join.left], self._places[join.right]))
        first, *others = self._from
        table, _, on = first.partition(" ON ")
        columns = ", ".join(self._places[each] for each in wanted)
        where = " AND ".join(filter(None, (on, *self._where)))
        joined = " ".join(("", *others))
        sql = f"SELECT DISTINCT {columns} FROM {table}{joined} WHERE {where or '1'}"
        return Query(sql, (*self._from_arguments, *self._arguments))

    def _class(self, name: str) -> int:
        return self._name(self._of.classes[name])

    def _start_at(self, condition: Condition) -> None:
        variable, prop, operator, constant = condition
        value = self._value(constant)
        if not prop:
            self._from.append("resources c ON c.number = ?")
            self._places[variable] = "c.number"
        else:
            test = compared("c", operator, "?", constant.kind)
            self._from.append(f"statements c ON c.prop = {self._name(prop)} AND {test}")
            self._places[variable] = "c.res"
        self._arguments.append(value)

    def _reached(self, name: str, conditions: list[Condition], *, is_typed: bool = False) -> None:
        """What is said of a variable is looked at where it is reached."""
        here = self._places[name]
        if not is_typed:
            of_class = self._class(name)
            self._where.append(
                f"EXISTS (SELECT 1 FROM types t WHERE t.res = {here} AND t.class = {of_class})"
            )
        for condition in [each for each in conditions if each.variable == name]:
            conditions.remove(condition)
            _, prop, operator, constant = condition
            if not prop:
                self._where.append(f"{here} {operator} ?")
            else:
                test = compared("x", operator, "?", constant.kind)
                self._where.append(
                    f"EXISTS (SELECT 1 FROM statements x WHERE x.res = {here}"
                    f" AND x.prop = {self._name(prop)} AND {test})"
                )
            self._arguments.append(self._value(constant))

    def _go_on(self, joins: list[Join[str]]) -> None:
        """To one variable more."""
        blind = ""
        for join in joins:
            for way in (join, turned(join)):
                here, there = way.left, way.right
                if here in self._places and there not in self._places:
                    found = self.path(placed(way, self._numbers), self._places[here])
                    if found is not None:
                        joins.remove(join)
                        joined, self._places[there] = found
                        self._from += joined
                        return
                    blind = blind or there
        at = self._numbers[blind]
        self._from.append(f"CROSS JOIN types b{at} ON b{at}.class = {self._class(blind)}")
        self._places[blind] = f"b{at}.res"

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
