"""Which fragments pass rows on as they are, and which compute something."""

from __future__ import annotations

import pytest

from registration.queries.passed_rows import PassedRows, passed_rows
from registration.queries.providers import Column, CycleProvider, Relation
from registration.queries.query_plan import Fragment, Receive, Scan

COLUMNS = (Column("id", "bigint"), Column("v", "string"))
R = Relation("urn:r", "A.R", "urn:p", ("urn:a",), "parquet", "/r", COLUMNS)


def passed(sql: str) -> PassedRows | None:
    """Of a fragment with a scan ``s`` of R and, where the SQL names it, a stream ``r``."""
    views = (Receive("r", 0, (("c0", "bigint"), ("c1", "string"))),) if " r" in sql else ()
    scans = (Scan("s", R, ("id", "v")),) if " s" in sql else ()
    return passed_rows(Fragment(1, CycleProvider("urn:a", "A"), scans, views, (), sql))


@pytest.mark.parametrize(
    ("sql", "names", "parts"),
    [
        ("SELECT c1 AS b, c0 AS a FROM r", "b a", {"r": ("c1", "c0")}),
        ("SELECT `v` AS x, v AS y FROM s", "x y", {"s": ("v", "v")}),
        (
            "WITH t0 AS (SELECT id AS `q.id` FROM s) SELECT CAST(`q.id` AS BIGINT) AS n FROM t0",
            "n",
            {"s": ("id",)},
        ),
        ("WITH t (k, w) AS (SELECT v, id FROM s) SELECT w FROM t", "w", {"s": ("id",)}),
        (
            "WITH t AS (SELECT c0 FROM r UNION ALL SELECT id FROM s) SELECT c0 AS n FROM t",
            "n",
            {"r": ("c0",), "s": ("id",)},
        ),
    ],
)
def test_names_and_order_are_all_that_changes(
    sql: str, names: str, parts: dict[str, tuple[str, ...]]
) -> None:
    found = passed(sql)
    assert found is not None
    assert (" ".join(name for name, _ in found.columns), dict(found.parts)) == (names, parts)
    types = {"id": "bigint", "v": "string", "c0": "bigint", "c1": "string"}
    first = next(iter(parts.values()))
    assert [type_ for _, type_ in found.columns] == [types[each] for each in first]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id + 1 AS n FROM s",
        "SELECT CAST(id AS INT) AS n FROM s",
        "SELECT TRY_CAST(id AS BIGINT) AS n FROM s",
        "SELECT id FROM s WHERE id > 1",
        "SELECT DISTINCT id FROM s",
        "SELECT id FROM s ORDER BY id",
        "SELECT id FROM s LIMIT 3",
        "SELECT count(*) AS n FROM s",
        "SELECT id FROM s GROUP BY id",
        "SELECT s.id FROM s, r",
        "SELECT s.id FROM s JOIN r ON id = c0",
        "SELECT id FROM s LATERAL VIEW explode(array(1)) x AS n",
        "SELECT id FROM s UNION SELECT c0 FROM r",
        "SELECT id FROM s EXCEPT ALL SELECT c0 FROM r",
        "SELECT id FROM s UNION ALL SELECT c1 FROM r",
        "SELECT id FROM s UNION ALL SELECT id FROM s",
        "SELECT id AS n, v AS n FROM s",
        "SELECT (SELECT max(c0) FROM r) AS n FROM s",
        "WITH t AS (SELECT id FROM s) SELECT a.id FROM t a",
        "WITH t AS (SELECT id FROM s), u AS (SELECT id FROM t) SELECT t.id FROM t, u",
        "WITH s AS (SELECT count(*) AS id FROM s) SELECT id FROM s",
        "WITH S AS (SELECT count(*) AS id FROM s) SELECT id FROM s",
        "WITH t AS (SELECT 1 AS id), t AS (SELECT id FROM s) SELECT id FROM t",
        "WITH t AS (WITH u AS (SELECT id FROM s) SELECT id FROM u) SELECT id FROM t",
        "SELECT id FROM text.s",
        "SELECT id, * FROM s",
        "SELECT secret FROM s",
        "SELECT id FROM s WINDOW w AS (ORDER BY id)",
        "SELECT (id) AS n FROM s",
        "no query FROM s",
    ],
)
def test_all_else_is_computed(sql: str) -> None:
    assert passed(sql) is None


def test_a_view_that_is_left_out_is_for_spark_to_refuse_or_read() -> None:
    views = (Receive("r", 0, (("c0", "bigint"),)), Receive("q", 2, (("c0", "bigint"),)))
    site = CycleProvider("urn:a", "A")
    assert passed_rows(Fragment(1, site, (), views, (), "SELECT c0 FROM r")) is None


def test_tables_that_name_each_other_twice_take_no_time() -> None:
    tables = ["t0 AS (SELECT id FROM s)"]
    tables += [
        f"t{n} AS (SELECT id FROM t{n - 1} UNION ALL SELECT id FROM t{n - 1})"
        for n in range(1, 200)
    ]
    assert passed(f"WITH {', '.join(tables)} SELECT id FROM t199") is None
