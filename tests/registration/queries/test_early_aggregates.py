"""Relations are grouped before joins without another answer; a database carries out both."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from onyx.queries.planning import plan_query
from registration.queries.early_aggregates import aggregated_early
from registration.queries.fragment_check import raw_views, rows_sent
from registration.queries.providers import CLIENT, Column, Market, Relation
from registration.queries.query_graph import QueryGraph, columns_in, quoted
from registration.queries.refusals import QueryRefused
from registration.queries.sql_reader import read_query
from tests.registration.queries.markets import A, B, flow, market

NAMES = ("a.P", "a.Q", "b.S")
COLUMNS = tuple(
    Column(name, type_) for name, type_ in (("k", "int"), ("v", "int"), ("d", "double"))
)
SITES = {"a.P": A, "a.Q": A, "b.S": B}
RELATIONS = {
    f"u:{name}": Relation(f"u:{name}", name, "u:p", (site.uri,), "parquet", name, COLUMNS, 100)
    for name, site in SITES.items()
}
KEPT = tuple(rule for to in (B,) for rule in flow("u:a.P", to, aggregates=True))
"""Rows of a.P stay at A, aggregates of them go to B."""


def _market(*rules: object) -> Market:
    return replace(market(*rules), relations=RELATIONS)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def database() -> Iterator[sqlite3.Connection]:
    """With rows that are there several times, and nulls."""
    random = Random(40)
    with sqlite3.connect(":memory:") as connection:
        for name in NAMES:
            connection.execute(f"CREATE TABLE `{name}` (k INTEGER, v INTEGER, d REAL)")
            for _ in range(40):
                row = (random.choice((None, 0, 1, 2, 3)), random.choice((None, 0, 1, 5, 9)))
                half = random.choice((None, 0.5, 1.25, -2.0))
                connection.execute(f"INSERT INTO `{name}` VALUES (?, ?, ?)", (*row, half))
        connection.execute("CREATE TABLE empty (k INTEGER, v INTEGER, d REAL)")
        yield connection


def _sql(graph: QueryGraph, *, empty: str = "") -> str:
    """Of a block as it stands, for SQLite; the relation ``empty`` has no rows."""
    joined = "(SELECT 1 AS one)"
    ons = [(right, f"{k.upper()} JOIN", on) for k, _, right, on in graph.outer]
    for place, unit in enumerate(graph.units):
        names = ", ".join(f"`{c.name}` AS {quoted(f'{unit.alias}.{c.name}')}" for c in unit.columns)
        of = f"({_sql(unit.block, empty=empty)})" if unit.block else f"`{unit.relation.name}`"  # type: ignore[union-attr]
        if unit.relation is not None and unit.relation.name == empty:
            of = "empty"
        how = next(((join, on) for right, join, on in ons if right >> place & 1), ("JOIN", "true"))
        joined += f" {how[0]} (SELECT {names} FROM {of}) ON {how[1]}"
    text = (
        f"SELECT {', '.join(f'{o.text} AS {quoted(o.name)}' for o in graph.select)} FROM {joined}"
    )
    if graph.predicates:
        text += f" WHERE {' AND '.join(f'({each.text})' for each in graph.predicates)}"
    if graph.group:
        text += f" GROUP BY {', '.join(graph.group)}"
    if graph.having:
        text += f" HAVING {graph.having}"
    return text.replace("0L", "0")


def _rows(database: sqlite3.Connection, sql: str) -> list[tuple[object, ...]]:
    rows = database.execute(sql).fetchall()
    return sorted(
        (tuple(round(v, 6) if isinstance(v, float) else v for v in row) for row in rows), key=repr
    )


def _query(random: Random) -> str:
    """Two or three relations, aggregates of any of them."""
    aliases = ["p", "q", "s"][: random.randint(2, 3)]
    text = "a.P p"
    for alias, name in zip(aliases[1:], NAMES[1:], strict=False):
        how = random.choice(("JOIN", "JOIN", "LEFT JOIN"))
        condition = random.choice(("p.k = {0}.k", "p.k < {0}.v", "p.v = {0}.v AND p.k = {0}.k"))
        text += f" {how} {name} {alias} ON {condition.format(alias)}"

    def column() -> str:
        return f"{random.choice(aliases)}.{random.choice('kvd')}"

    made = [
        "count(*)",
        "sum({})",
        "count({})",
        "min({})",
        "max({})",
        "avg({})",
        "sum({}) + count(1)",
    ]
    outputs = [random.choice(made).format(column()) for _ in range(random.randint(1, 4))]
    if random.random() < 0.4:
        text += f" WHERE {column()} IS NOT NULL AND p.v < 8"
    groups = [column() for _ in range(random.choice((0, 1, 1, 2)))]
    said = [*groups, *outputs]
    select = ", ".join(f"{each} AS c{n}" for n, each in enumerate(said))
    tail = f" GROUP BY {', '.join(groups)}" if groups else ""
    if groups and random.random() < 0.3:
        tail += f" HAVING sum({column()}) > 2"
    return f"SELECT {select} FROM {text}{tail}"


@pytest.mark.parametrize("seed", range(150))
def test_groups_before_joins_give_the_same_answer(database: sqlite3.Connection, seed: int) -> None:
    sql = _query(Random(seed))
    graph = read_query(sql, _market()).graph
    kept = Random(seed + 1).sample(NAMES, 2)
    early = aggregated_early(graph, lambda uri: uri.removeprefix("u:") in kept)
    for empty in ("", "a.P"):
        found, wanted = (_rows(database, _sql(each, empty=empty)) for each in (early, graph))
        assert found == wanted, f"seed {seed}: {sql}"


def test_most_queries_by_chance_are_split() -> None:
    graphs = [read_query(_query(Random(seed)), _market()).graph for seed in range(150)]
    split = [aggregated_early(each, lambda uri: uri == "u:a.P") != each for each in graphs]
    assert sum(split) > 100


def test_aggregates_alone_leave_where_a_rule_says_so() -> None:
    """Rows of a.P may not leave A, nor those of b.S leave B for any machine but the client."""
    sql = "SELECT s.v, sum(p.v) AS n, avg(p.d) AS d FROM a.P p JOIN b.S s ON p.k = s.k GROUP BY s.v"
    rules = (*KEPT, *flow("u:b.S", B), *flow("u:b.S", A, aggregates=True))
    client = [replace(each, uri=f"{each.uri}:c", to=CLIENT) for each in rules]
    plan = plan_query(sql, _market(*rules, *client))
    fragments = plan.fragments
    first = next(each for each in fragments if each.scans and each.site == A)
    assert not raw_views(first.sql), "rows of a.P are grouped where they are read"
    assert [rows.get("u:a.P", True) for rows in rows_sent(fragments).values()].count(False) == 0
    sends = {node.site.name for node in plan.root.walk() if node.operator == "send"}
    assert sends == {"A", "B"}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT p.v FROM a.P p JOIN b.S s ON p.k = s.k",
        "SELECT count(DISTINCT p.v) AS n FROM a.P p JOIN b.S s ON p.k = s.k",
        "SELECT stddev(p.v) AS n FROM a.P p JOIN b.S s ON p.k = s.k",
        "SELECT sum(p.v * s.v) AS n FROM a.P p JOIN b.S s ON p.k = s.k",
        "SELECT collect_list(p.v) AS n FROM a.P p JOIN b.S s ON p.k = s.k",
        "SELECT sum(p.v) FILTER (WHERE s.v > 1) AS n FROM a.P p JOIN b.S s ON p.k = s.k",
        "SELECT sum(sum(p.v)) OVER () AS n FROM a.P p JOIN b.S s ON p.k = s.k GROUP BY s.v",
        "SELECT sum(p.v) AS n FROM b.S s LEFT JOIN a.P p ON p.k = s.k",
        "SELECT sum(p.v) AS n FROM b.S s FULL JOIN a.P p ON p.k = s.k",
    ],
)
def test_other_queries_stay_refused_with_their_rules(sql: str) -> None:
    graph = read_query(sql, _market()).graph
    assert aggregated_early(graph, lambda uri: uri == "u:a.P") == graph
    rules = (*KEPT, *flow("u:b.S", B))
    with pytest.raises(QueryRefused) as caught:
        plan_query(sql, _market(*rules))
    assert caught.value.code == "no-plan" and "rule:u:a.P:B" in caught.value.rule


def test_columns_that_only_aggregates_ask_for_do_not_leave() -> None:
    sql = "SELECT s.v, max(p.d) AS d FROM a.P p JOIN b.S s ON p.k = s.k GROUP BY s.v"
    early = aggregated_early(read_query(sql, _market()).graph, lambda uri: uri == "u:a.P")
    inner = early.units[0].block
    assert inner is not None
    assert {name for text in inner.group for name in columns_in(text)} == {"p_part.k"}
    assert [each.name for each in inner.select] == ["k", "part0"]


def test_a_name_in_a_string_stays() -> None:
    sql = "SELECT count(*) AS n FROM a.P p JOIN b.S s ON p.k = s.k WHERE concat(p.v, '`p.v`') > ''"
    early = aggregated_early(read_query(sql, _market()).graph, lambda uri: uri == "u:a.P")
    inner = early.units[0].block
    assert inner is not None and "'`p.v`'" in inner.predicates[0].text
