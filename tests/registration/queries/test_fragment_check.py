"""A provider takes of a fragment what its own market allows, and no other word of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from registration.queries.compatibility import Compatibility
from registration.queries.fragment_check import checked_fragment, raw_views, rows_sent
from registration.queries.providers import Flow, Permission
from registration.queries.query_plan import Fragment, Plug, Receive, Scan
from registration.queries.refusals import QueryRefused
from tests.registration.queries.markets import THUMBNAIL, A, B, R, T, denied, market

SQL = "SELECT `s`.`id` AS `id`, f0_thumbnail(`s`.`image`) AS `c` FROM `s`"
GOOD = Fragment(
    1, B, (Scan("s", T, ("id", "image")),), (), (Plug("f0_thumbnail", THUMBNAIL),), SQL
)  # fmt: skip


def check(fragment: Fragment, *rules: Permission | Flow) -> Fragment:
    own = market(*rules)
    return checked_fragment(own, Compatibility(own, "ann"), B, fragment)


def test_the_records_are_the_providers_own() -> None:
    lies = replace(T, location="/etc/passwd", format="csv", name="x")
    cheap = replace(THUMBNAIL, seconds_per_row=1e9, digest="sha256:0")
    said = replace(
        GOOD, site=replace(A, host="elsewhere"), scans=(Scan("s", lies, ("id",)),),
        plugs=(Plug("f0_thumbnail", cheap),),
    )  # fmt: skip
    found = check(said)
    assert (found.site, found.scans[0].relation, found.plugs[0].function) == (B, T, THUMBNAIL)


def test_limits_of_a_scan_are_the_users() -> None:
    limited = replace(GOOD, scans=(replace(GOOD.scans[0], most_bytes=7, share=0.5),))
    assert check(limited).scans == limited.scans


REFUSED: Mapping[str, tuple[Fragment, tuple[Permission | Flow, ...], str, str]] = {
    "no fragments of the user": (
        *(GOOD, (denied("use", "u:B"),)), "not-allowed", "no fragments of this user",
    ),
    "a relation that the user may not read": (
        *(GOOD, (denied("read", "u:T"),)), "not-allowed", "b.T is not read here for this user",
    ),
    "a relation of elsewhere": (
        *(replace(GOOD, scans=(Scan("s", R, ("id",)),)), ()), "not-allowed", "a.R is not read here",
    ),
    "a relation that is not known": (
        *(replace(GOOD, scans=(Scan("s", replace(T, uri="u:X"), ()),)), ()),
        *("unknown-relation", "B knows no relation u:X"),
    ),
    "a column that is not there": (
        *(replace(GOOD, scans=(Scan("s", T, ("secret",)),)), ()),
        *("unknown-column", "b.T has no column secret"),
    ),
    "a function that may not be loaded": (
        *(GOOD, (denied("load", "u:thumbnail"),)), "not-allowed", "thumbnail may not be loaded",
    ),
    "a function that is not known": (
        *(replace(GOOD, plugs=(Plug("f", replace(THUMBNAIL, uri="u:X")),)), ()),
        *("unknown-function", "B knows no function u:X"),
    ),
    "a function in the place of Spark's": (
        *(replace(GOOD, plugs=(Plug("upper", THUMBNAIL),)), ()),
        *("forbidden-sql", "no function can be called 'upper'"),
    ),
    "a function of Spark that is not allowed": (
        *(replace(GOOD, sql="SELECT reflect('java.lang.System', 'exit', 1) AS x FROM s"), ()),
        *("forbidden-sql", "reflect"),
    ),
    "a file as a relation": (
        *(replace(GOOD, sql="SELECT * FROM text.`/etc/passwd`"), ()), "unknown-relation", "no view",
    ),
    "a view of another fragment": (
        *(replace(GOOD, sql="SELECT id FROM r7"), ()), "unknown-relation", "'r7' is no view",
    ),
    "a statement": (replace(GOOD, sql="DROP TABLE s"), (), "syntax", ""),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_fragment_is_refused(case: str) -> None:
    fragment, rules, code, said = REFUSED[case]
    with pytest.raises(QueryRefused) as caught:
        check(fragment, *rules)
    assert caught.value.code in (code, "forbidden-sql") and said in caught.value.reason
    assert not rules or caught.value.rule == rules[0].uri


def _fragment(number: int, sql: str, *received: int) -> Fragment:
    views = tuple(Receive(f"r{each}", each, ()) for each in received)
    scans = () if received else (Scan("s", T, ()),)
    return Fragment(number, B, scans, views, (), sql)


def test_rows_are_raw_until_they_are_aggregated() -> None:
    below = _fragment(0, "SELECT id, image FROM s")
    counted = _fragment(1, "SELECT count(*) AS n FROM r0", 0)
    last = _fragment(2, "SELECT n FROM r1", 1)
    assert rows_sent((below, counted, last)) == {
        0: {"u:T": False},
        1: {"u:T": True},
        2: {"u:T": True},
    }


@pytest.mark.parametrize(
    "fragments",
    [
        (_fragment(0, "SELECT 1 AS n FROM r1", 1), _fragment(1, "SELECT 1 AS n FROM r0", 0)),
        (_fragment(0, "SELECT 1 AS n FROM r5", 5),),
        (_fragment(0, "SELECT id FROM s"), _fragment(0, "SELECT id FROM s")),
    ],
    ids=["a circle", "nobody sends", "a number twice"],
)
def test_fragments_are_a_tree(fragments: tuple[Fragment, ...]) -> None:
    with pytest.raises(QueryRefused, match="make no tree"):
        rows_sent(fragments)


RAW: Mapping[str, set[str]] = {
    "SELECT v FROM s": {"s"},
    "SELECT count(*) AS n FROM s": set(),
    "SELECT v, count(*) AS n FROM s GROUP BY v": set(),
    "SELECT max_by(image, id) AS i FROM s": {"s"},
    "SELECT collect_list(image) AS i FROM s": {"s"},
    "WITH t AS (SELECT count(*) AS n FROM s) SELECT n FROM t": set(),
    "WITH t AS (SELECT * FROM s) SELECT * FROM t": {"s"},
    "SELECT count(*) AS n FROM s UNION ALL SELECT id FROM r": {"r"},
    "SELECT (SELECT max(id) FROM s) AS n, count(*) AS m FROM r": {"r", "s"},
    "SELECT sum(id) OVER () AS n FROM s": {"s"},
}


@pytest.mark.parametrize("sql", RAW)
def test_views_of_rows_that_are_let_out(sql: str) -> None:
    assert raw_views(sql) == RAW[sql]
