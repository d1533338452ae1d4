"""SQL of queries on a real Spark: the checked text means the same, the fragments answer the same.

Each text of a corpus, and random ones, is given to Spark as the user wrote it.  The text of the
checked tree must have the same analysed plan.  Fragments of query plans by chance, with sends at
any place, must give the same rows, of the types that the query graph promises.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from registration.queries.early_aggregates import aggregated_early
from registration.queries.fragment_sql import fragments_of
from registration.queries.query_graph import QueryGraph
from registration.queries.sql_reader import read_query
from registration.spark.fragment_job import query_session
from tests.examples import SHARE
from tests.registration.queries.example_market import COLUMNS, market
from tests.registration.queries.random_plans import RandomPlans
from tests.registration.queries.random_queries import random_query

MARKET = market()
CORPUS = (Path(__file__).parent.parent / "queries" / "corpus.sql").read_text("utf-8")
TEXTS = [each.strip() for each in CORPUS.split(";\n") if each.strip()]
PLANS = 2
OF_A_TEXT = slice(None) if SHARE == 1 else slice(1)
"""Of the plans of a text, which are taken: in a whole run each second text has those with sends."""
SMALL = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""For a dozen rows: no code is made for a query, nor is it planned anew while it runs."""


@pytest.fixture(scope="module")
def spark(query_spark: Any) -> Iterator[Any]:
    session = query_session(query_spark)
    for name, value in SMALL.items():
        session.conf.set(name, value)
    for name in ("A", "B"):
        session.sql(f"CREATE DATABASE {name}")
    for name, columns in COLUMNS.items():
        schema = ", ".join(f"{each} {type_}" for each, type_ in columns.items())
        session.createDataFrame(list(_rows(name)), schema).coalesce(1).write.saveAsTable(name)
    session.sql("CREATE TEMPORARY FUNCTION thumbnail(i BINARY) RETURNS BINARY RETURN unhex(hex(i))")
    session.sql(
        "CREATE TEMPORARY FUNCTION score(a DOUBLE, b STRING) RETURNS DOUBLE "
        "RETURN a * 2 + length(b)"
    )
    yield session
    for name in ("A", "B"):
        session.sql(f"DROP DATABASE {name} CASCADE")


def _rows(name: str) -> Iterator[tuple[object, ...]]:
    rng = random.Random(name)

    def some(value: object) -> object:
        return None if rng.random() < 0.15 else value

    for number in range(12):
        key = some(rng.randint(0, 5))
        word = some(rng.choice(["x", "xy", "Ä", "it's", ""]))
        match name:
            case "A.R":
                yield key, some(rng.randint(0, 40) / 4), word, some(number % 4)
            case "A.S":
                yield key, word, some(Decimal(rng.randint(0, 900)) / 100), some(number % 3)
            case "B.T":
                pictures = [(f"p{n}", bytes([n])) for n in range(rng.randint(0, 2))]
                info = some((number, (some("c"),)))
                yield key, some(pictures), info, some({"x": number}), some(["a", "b"][: number % 3])
            case "B.U":
                day = date(2026, 1, 1 + number)
                at = datetime(2026, 1, 1, number, tzinfo=UTC)
                yield key, some(number % 5), some(day), some(at), some(number * 2**33), some(0.5)


def _answer(frame: Any) -> tuple[list[str], list[str]]:
    """Types of the columns, and rows in any order."""
    types = [each.dataType.simpleString() for each in frame.schema]
    return types, sorted(repr([_plain(each) for each in row]) for row in frame.collect())


def _plain(value: object) -> object:
    return round(value, 6) if isinstance(value, float) else value


def _run(spark: Any, graph: QueryGraph, seed: int, moves: float) -> tuple[Any, int]:
    """The frame of the last fragment, and how many there are."""
    fragments = fragments_of(RandomPlans(random.Random(seed), moves).plan(graph), graph)
    frames: list[Any] = []
    for fragment in fragments:
        for scan in fragment.scans:
            frame = spark.table(scan.relation.name).select(*(f"`{c}`" for c in scan.columns))
            frame.createOrReplaceTempView(scan.view)
        for receive in fragment.receives:
            sent = frames[receive.fragment]
            said = [(each.name, each.dataType.simpleString()) for each in sent.schema]
            assert said == list(receive.columns), (fragment.sql, said)
            sent.createOrReplaceTempView(receive.view)
        for plug in fragment.plugs:
            inner = plug.function
            taken = ", ".join(f"{name} {type_}" for name, type_ in inner.inputs)
            given = ", ".join(name for name, _ in inner.inputs)
            spark.sql(
                f"CREATE OR REPLACE TEMPORARY FUNCTION {plug.name}({taken}) "
                f"RETURNS {inner.outputs[0][1]} RETURN {inner.name}({given})"
            )
        frames.append(spark.sql(fragment.sql))
    return frames[-1], len(fragments)


def _check(spark: Any, text: str, seed: int) -> None:
    checked = read_query(text, MARKET)
    users = spark.sql(text)
    if users.sameSemantics(spark.sql(text)):  # not of WITH, which Spark numbers anew
        assert users.sameSemantics(spark.sql(checked.sql)), checked.sql
    wanted = _answer(users)
    promised = [each.type for each in checked.graph.select]
    wrong = [(p, t) for p, t in zip(promised, wanted[0], strict=True) if p not in (t, "")]
    assert not wrong, wrong
    for plan in range(PLANS)[OF_A_TEXT]:
        number = (seed + plan) % PLANS
        frame, _ = _run(spark, checked.graph, seed * PLANS + number, 0.4 * number)
        assert _answer(frame) == wanted, (seed, number)


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_a_text_of_the_corpus_means_the_same(spark: Any, number: int) -> None:
    _check(spark, TEXTS[number], number)


EARLY = [
    """SELECT s.name, sum(r.k) AS a, avg(r.price) AS b, count(*) AS c, max(r.name), sum(s.k) AS e
    FROM A.R r JOIN A.S s ON s.id = r.id GROUP BY s.name ORDER BY c DESC NULLS LAST, s.name""",
    """SELECT sum(s.qty) AS a, avg(r.price) AS b, min(s.qty) + count(s.name) AS c, avg(r.k) AS d
    FROM A.S s LEFT JOIN A.R r ON s.id = r.id WHERE s.qty > 1""",
    """SELECT r.id, bool_or(s.qty > 3) AS a, count(r.price) AS b
    FROM A.R r JOIN A.S s ON s.id > r.id GROUP BY ROLLUP (r.id) HAVING count(*) > 1""",
]


@pytest.mark.parametrize("text", EARLY)
def test_relations_grouped_before_joins_give_the_same_rows_and_types(spark: Any, text: str) -> None:
    graph = read_query(text, MARKET).graph
    early = aggregated_early(graph, lambda uri: True)
    assert early != graph
    frame, _ = _run(spark, early, 1, 0.4)
    assert _answer(frame) == _answer(spark.sql(text))


@pytest.mark.parametrize("seed", range(100))
def test_a_random_query_means_the_same(spark: Any, seed: int) -> None:
    text = random_query(random.Random(seed))
    print(seed, text)
    _check(spark, text, seed)
