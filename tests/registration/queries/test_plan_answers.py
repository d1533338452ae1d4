"""Query plans give the answers of their queries: a database carries out both, the plan operator by
operator and the query as it was asked."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from registration.queries.compatibility import Compatibility
from registration.queries.optimiser import Optimiser
from registration.queries.providers import Column, Flow, Market, Relation
from registration.queries.query_graph import QueryGraph
from registration.queries.query_plan import PlanNode
from registration.queries.refusals import QueryRefused
from registration.queries.sql_reader import read_query
from tests.registration.queries.markets import ASKING, A, B, market

NAMES = ("a.R", "a.S", "b.T", "b.U")
COLUMNS = ("k", "m", "n")
ROWS = 12


def _market(random: Random) -> Market:
    """Relations of integers at random sites, with statistics of any kind and some flow rules."""
    relations = {}
    rules = []
    for name in NAMES:
        columns = tuple(
            Column(each, "INT", random.choice((None, 5, 1000)), "0", "5") for each in COLUMNS
        )
        rows = 10 ** random.uniform(1, 6)
        sites = random.sample((A, B, ASKING), random.randint(1, 2))
        read_at = tuple(each.uri for each in sites)
        uri = f"u:{name}"
        relations[uri] = Relation(
            uri, name, "u:p", read_at, "parquet", name, columns, rows, rows * 40
        )
        if random.random() < 0.2:
            rules.append(Flow(f"rule:{name}", uri, random.choice((A, B)).uri))
            rules.append(Flow(f"rule:{name}:client", uri, ASKING.uri))
    return replace(market(*rules), relations=relations)


def _column(random: Random, aliases: list[str]) -> str:
    return f"{random.choice(aliases)}.{random.choice(COLUMNS)}"


def _condition(random: Random, aliases: list[str]) -> str:
    column = _column(random, aliases)
    form = random.randrange(8)
    if form == 0:
        return f"{column} IS NULL"
    if form == 1:
        return f"{column} = {_column(random, aliases)}"
    if form == 2:
        return f"{column} < {_column(random, aliases)}"
    if form == 3:
        return f"EXISTS (SELECT 1 FROM {random.choice(NAMES)} z WHERE z.k = {column})"
    if form == 4:
        return f"{column} IN (SELECT m FROM {random.choice(NAMES)} WHERE n < 4)"
    if form == 5:
        return f"({column} > 2 OR {_column(random, aliases)} IS NULL)"
    return f"{column} {random.choice(('<', '>', '<>', '='))} {random.randrange(6)}"


def _select(random: Random, depth: int = 1) -> str:
    aliases: list[str] = []
    text = ""
    for number in range(random.randint(1, 4)):
        alias = f"t{number}"
        source = random.choice(NAMES)
        if depth and random.random() < 0.2:
            source = f"({_inner(random)})"
        if not aliases:
            text = f"{source} {alias}"
        else:
            kind = random.choice(
                ("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "FULL JOIN", "RIGHT JOIN")
            )
            on = f"{_column(random, aliases)} = {alias}.{random.choice(COLUMNS)}"
            if random.random() < 0.2:
                on += f" AND {alias}.{random.choice(COLUMNS)} < 4"
            text += f" {kind} {source} {alias} ON {on}"
        aliases.append(alias)
    where = [_condition(random, aliases) for _ in range(random.choice((0, 1, 1, 2)))]
    if where:
        text += f" WHERE {' AND '.join(where)}"
    one, other = _column(random, aliases), _column(random, aliases)
    form = random.randrange(4)
    if form == 0:
        return f"SELECT {one} AS x, count(*) AS y FROM {text} GROUP BY {one}"
    if form == 1:
        deeper = f"(SELECT max(z.n) FROM {random.choice(NAMES)} z WHERE z.k = {other})"
        return f"SELECT {one} AS x, {deeper} AS y FROM {text}"
    return f"SELECT {'DISTINCT ' if form == 2 else ''}{one} AS x, {other} AS y FROM {text}"


def _inner(random: Random) -> str:
    name = random.choice(NAMES)
    if random.random() < 0.5:
        return f"SELECT k, max(m) AS m, count(*) AS n FROM {name} GROUP BY k"
    return f"SELECT p.k, p.m, q.n FROM {name} p JOIN {random.choice(NAMES)} q ON p.k = q.m"


def _query(random: Random) -> str:
    if random.random() < 0.15:
        how = random.choice(("UNION", "UNION ALL", "INTERSECT", "EXCEPT"))
        return f"{_select(random, 0)} {how} {_select(random, 0)}"
    return _select(random)


class _CarriedOut:
    """The SQL of a plan; a view of a subquery is a table of its own that texts name.  ``away``: the
    views that an operator asks for and that are not at its site."""

    def __init__(self, graph: QueryGraph, root: PlanNode) -> None:
        self._views: dict[str, str] = {}
        self.away: list[str] = []
        text = self._node(root, graph)
        views = ", ".join(f"`{name}` AS ({view})" for name, view in self._views.items())
        self.sql = f"WITH {views} {text}" if views else text

    def _node(self, node: PlanNode, graph: QueryGraph) -> str:
        below = [self._node(each, graph) for each in node.inputs if node.operator != "block"]
        match node.operator:
            case "scan":
                unit = graph.units[node.index]
                columns = ", ".join(f"{c.name} AS `{unit.alias}.{c.name}`" for c in unit.columns)
                return f"SELECT {columns} FROM {node.text}"
            case "block":
                unit = graph.units[node.index]
                assert unit.block is not None
                inner = self._node(node.inputs[0], unit.block)
                columns = ", ".join(f"`{c.name}` AS `{unit.alias}.{c.name}`" for c in unit.columns)
                self._views[unit.alias] = inner
                return f"SELECT {columns} FROM ({inner})"
            case "select":
                predicate = graph.predicates[node.index].text
                self.away += _away(node, predicate)
                return f"SELECT * FROM ({below[0]}) WHERE {predicate}"
            case "join" if node.kind == "filter":
                return below[0]
            case "join":
                how = "inner" if node.kind == "cross" else node.kind
                outer = node.kind not in ("inner", "cross")
                on = graph.outer[node.index][3] if outer else "true"
                if node.kind == "inner":
                    on = graph.predicates[node.index].text
                return f"SELECT * FROM ({below[0]}) {how} JOIN ({below[1]}) ON {on}"
            case "union":
                return f" {node.kind} ".join(f"SELECT * FROM ({each})" for each in below)
            case "project":
                columns = ", ".join(f"{each.text} AS `{each.name}`" for each in graph.select)
                self.away += _away(node, columns)
                group = f" GROUP BY {', '.join(graph.group)}" if graph.group else ""
                distinct = "DISTINCT " if graph.distinct else ""
                return f"SELECT {distinct}{columns} FROM ({below[0]}){group}"
        return below[0]


def _away(node: PlanNode, text: str) -> Iterator[str]:
    """Views that a text names and that are not at the site of the operator that has it."""
    names = {name for name in ("view", "view_2", "view_3", "view_4") if f"`{name}`" in text}
    waiting = list(node.inputs)
    while waiting:
        each = waiting.pop()
        if each.operator == "block":
            names.discard(each.text)
        elif each.operator != "receive":
            waiting += each.inputs
    yield from names


def _database(random: Random) -> sqlite3.Connection:
    base = sqlite3.connect(":memory:")
    for schema in ("a", "b"):
        base.execute(f"ATTACH ':memory:' AS {schema}")
    for name in NAMES:
        base.execute(f"CREATE TABLE {name} (k INT, m INT, n INT)")
        rows = (
            [None if random.random() < 0.2 else random.randrange(6) for _ in COLUMNS]
            for _ in range(random.randint(0, ROWS))
        )
        base.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)
    return base


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_a_plan_answers_as_its_query_does(first: int) -> None:
    planned = 0
    for seed in range(first, first + 50):
        random = Random(seed)
        base, ruled, text = _database(random), _market(random), _query(random)
        graph = read_query(text, ruled).graph
        try:
            plan = Optimiser(ruled, Compatibility(ruled)).plan(graph)
        except QueryRefused as refused:
            assert refused.rule, f"seed {seed}"
            continue
        planned += 1
        carried_out = _CarriedOut(graph, plan)
        sql = carried_out.sql
        found, wanted = (sorted(base.execute(each), key=repr) for each in (sql, text))
        assert found == wanted, f"seed {seed}: {text}\n{sql}"
        assert not carried_out.away, f"seed {seed}: {text}"
    assert planned > 25
