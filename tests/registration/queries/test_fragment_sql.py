"""Outer joins keep their order, and each plan that a query graph allows can be cut to fragments.

That the fragments answer as Spark does is held in ``tests/registration/spark/test_query_sql.py``.
"""

from __future__ import annotations

import random

import pytest

from registration.queries.fragment_sql import fragments_of
from registration.queries.sql_reader import read_query
from tests.registration.queries.example_market import market
from tests.registration.queries.random_plans import RandomPlans
from tests.registration.queries.random_queries import random_query

MARKET = market()


@pytest.mark.parametrize("kind", ["LEFT", "LEFT SEMI", "LEFT ANTI"])
def test_a_join_on_columns_that_are_null_by_another_stands_above_it(kind: str) -> None:
    text = f"SELECT r.id FROM A.R r LEFT JOIN A.S s ON r.id = s.id {kind} JOIN B.U u ON u.id = s.id"
    graph = read_query(text, MARKET).graph
    assert [unit.alias for unit in graph.units] == ["r", "s", "u"]
    assert [(left, right) for _, left, right, _ in graph.outer] == [(0b1, 0b10), (0b11, 0b100)]


def test_a_subquery_on_columns_that_are_null_by_a_join_stands_above_it() -> None:
    text = (
        "SELECT r.id FROM A.R r LEFT JOIN A.S s ON r.id = s.id "
        "WHERE NOT EXISTS (SELECT 1 FROM B.U u WHERE u.id = s.k)"
    )
    assert [each[1] for each in read_query(text, MARKET).graph.outer] == [0b1, 0b11]


@pytest.mark.parametrize("seed", range(300))
def test_each_plan_by_chance_is_cut_at_its_sends(seed: int) -> None:
    text = random_query(random.Random(seed))
    print(seed, text)
    graph = read_query(text, MARKET).graph
    root = RandomPlans(random.Random(seed), moves=0.4).plan(graph)
    fragments = fragments_of(root, graph)
    assert [each.number for each in fragments] == list(range(len(fragments)))
    received = [each.fragment for fragment in fragments for each in fragment.receives]
    assert sorted(received) == list(range(len(fragments) - 1))
    assert fragments[-1].site == root.site
