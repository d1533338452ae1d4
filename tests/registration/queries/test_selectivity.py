"""Estimates of predicates are held to a database that counts."""

from __future__ import annotations

import re
import sqlite3
from random import Random

import pytest

from registration.queries.providers import Column
from registration.queries.query_graph import columns_in
from registration.queries.selectivity import (
    EQUAL,
    OTHER,
    RANGE,
    Values,
    groups,
    selectivity,
)

ROWS = 4_000
KNOWN = {
    "t.n": Column("n", "INT", 200, "0", "199"),
    "t.d": Column("d", "DATE", 365, "2025-01-01", "2025-12-31"),
    "t.s": Column("s", "STRING", 20, nulls=0.25),
    "t.bare": Column("bare", "INT"),
    "u.n": Column("n", "INT", 50, "0", "49"),
    "u.bare": Column("bare", "INT"),
}


def _values(name: str) -> Values | None:
    return Values(KNOWN[name], ROWS if name.startswith("t") else 100) if name in KNOWN else None


@pytest.mark.parametrize(
    "predicate",
    [
        "t.n = 7", "7 = t.n", "t.n <> 7", "t.n < 50", "t.n >= 50", "50 > t.n", "t.n > -5",
        "t.n BETWEEN 20 AND 79", "t.n IN (1, 2, 3, 4)", "NOT t.n < 50", "t.n < 50 AND t.s = 's3'",
        "t.n < 50 OR t.s = 's3'", "t.s IS NULL", "t.s IS NOT NULL", "t.s <> 's3'",
        "t.d < '2025-04-01'", "(t.n < 100)", "t.n < 500", "t.n = u.n", "t.n < 0 OR t.n < 100",
    ],
)  # fmt: skip
def test_an_estimate_by_statistics_is_near_the_count(predicate: str) -> None:
    random = Random(5)
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE t (n INT, d TEXT, s TEXT)")
    base.execute("CREATE TABLE u (n INT)")
    base.executemany(
        "INSERT INTO t VALUES (?, ?, ?)",
        (
            (
                random.randrange(200),
                f"2025-{random.randint(1, 12):02}-{random.randint(1, 28):02}",
                None if random.random() < 0.25 else f"s{random.randrange(20)}",
            )
            for _ in range(ROWS)
        ),
    )
    base.executemany("INSERT INTO u VALUES (?)", ((random.randrange(50),) for _ in range(100)))
    tables, pairs = ("t, u", ROWS * 100) if "u." in predicate else ("t", ROWS)
    (count,) = base.execute(f"SELECT count(*) FROM {tables} WHERE {predicate}").fetchone()
    quoted = re.sub(r"\b([tu]\.\w+)", r"`\1`", predicate)
    estimated = selectivity(quoted, _values) * pairs
    assert 0.5 <= (estimated + 1) / (count + 1) <= 2


@pytest.mark.parametrize(
    ("predicate", "share"),
    [
        ("t.bare = 3", EQUAL), ("t.bare < 3", RANGE), ("t.bare = u.bare", 1 / ROWS),
        ("f(t.n) > 2", RANGE), ("g(t.n)", OTHER), ("TRUE", 1.0), ("this is no SQL (", OTHER),
        ("t.n < x.y", RANGE), ("t.s LIKE 'a%'", 0.1),
    ],
)  # fmt: skip
def test_without_statistics_rules_of_thumb_hold(predicate: str, share: float) -> None:
    assert selectivity(predicate, _values) == pytest.approx(share)


def test_no_predicate_keeps_more_than_all_rows_or_none_at_all() -> None:
    for predicate in ("FALSE", "t.n < -1", "t.n > 1000", "t.n IN (1,2) AND FALSE", "NOT FALSE"):
        assert 0 < selectivity(predicate, _values) <= 1


def test_groups_are_as_many_as_the_values_of_their_columns() -> None:
    assert groups(ROWS, (), _values) == 1
    assert groups(ROWS, ("`t.s`",), _values) == 20
    assert groups(ROWS, ("`t.s`", "`t.n`"), _values) == ROWS
    assert groups(ROWS, ("upper(`t.s`)",), _values) == ROWS / 10


def test_the_columns_of_a_text_are_found() -> None:
    assert columns_in("`a.b` + f(`c.d e`, `g``.h`) - 1.5") == {"a.b", "c.d e", "g`.h"}
    assert columns_in("count(1)") == set()
    assert columns_in(r"concat(`r.a`, '`', `r.b`, 'it\'s \\', `r.c`)") == {"r.a", "r.b", "r.c"}
