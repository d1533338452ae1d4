"""Limits of a query: read from texts, held against estimates, hard and soft."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import inf
from random import Random

import pytest

from formats.errors import Refusal
from registration.queries.providers import CycleProvider, Function, Relation
from registration.queries.quality import LIMITS, Quality, scans_of
from registration.queries.query_plan import Figures, Fragment, PlanNode, Scan
from registration.queries.refusals import QueryRefused

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SITE = CycleProvider("c", "C")
R = Relation("r", "A.R", "a", ("c",), "csv", "/r", (), bytes=1000.0, refreshed=NOW)
S = Relation("s", "A.S", "a", ("c",), "parquet", "/s", (), refreshed=NOW - timedelta(hours=1))
ARCHIVE = Relation("w", "archive.wire", "a", ("c",), "archive", "/w", ())
F = Function("f", "thumbnail", "p", "scalar", (), (("", "int"),))
PLAN = PlanNode(
    "join",
    SITE,
    Figures(rows=50, bytes_read=900, cost=3.0, first_row_s=1.5, seconds=20),
    (
        PlanNode(
            "apply",
            SITE,
            Figures(cost=2.5),
            (PlanNode("scan", SITE, Figures(10, 500, cost=2.0, seconds=15), relation=R),),
            function=F,
        ),
        PlanNode("scan", SITE, Figures(90, 400, cost=0.5, seconds=4), relation=S),
        PlanNode("scan", SITE, Figures(), relation=ARCHIVE),
    ),
)


def test_limits_are_read_from_texts() -> None:
    quality = Quality.parse(["rows_max=1e3", "certified=yes"], ["seconds=30"])
    assert quality == Quality(rows_max=1000, certified=True, seconds=30, soft=("seconds",))
    assert Quality.parse() == Quality()
    assert Quality.parse(["certified=no"]) == Quality()


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("secnds=3", "there is no limit 'secnds'", "did you mean seconds"),
        ("seconds", "'seconds' is no limit", ""),
        ("seconds=soon", "'seconds=soon' is no limit", ""),
        ("cost=-1", "cost -1 is no limit", ""),
        ("cost=nan", "cost nan is no limit", ""),
        ("share=0", "share 0 is no limit", ""),
        ("share=1.5", "share 1.5 is no limit", ""),
        ("certified=perhaps", "certified=perhaps is neither", ""),
        ("=3", "there is no limit ''", ""),
    ],
)
def test_what_is_no_limit_is_refused(text: str, said: str, hint: str) -> None:
    with pytest.raises(Refusal) as refused:
        Quality.parse([text])
    assert refused.value.code == "bad-limit"
    assert said in refused.value.reason
    assert hint in refused.value.hint


def test_a_limit_is_given_once_and_its_sides_fit() -> None:
    with pytest.raises(Refusal, match="second"):
        Quality.parse(["cost=1"], ["cost=2"])
    with pytest.raises(Refusal, match="rows_min is more"):
        Quality(rows_min=5, rows_max=4)
    with pytest.raises(Refusal, match="no limit 'pace'"):
        Quality(soft=("pace",))


def test_a_hard_limit_refuses_with_the_estimate_by_relation() -> None:
    with pytest.raises(QueryRefused) as refused:
        Quality(cost=2.9, seconds=30, rows_max=49).checked(PLAN, NOW)
    assert refused.value.code == "over-limit"
    assert refused.value.reason == (
        "rows_max would be 50, at most 49 (A.S 90, A.R 10, archive.wire 0);"
        " cost would be 3, at most 2.9 (A.R 2, A.S 0.5, archive.wire 0)"
    )


def test_a_soft_limit_is_told() -> None:
    (told,) = Quality(cost=2.9, soft=("cost",)).checked(PLAN, NOW)
    assert (told.name, told.limit, told.estimate, told.is_soft) == ("cost", 2.9, 3.0, True)
    assert told.by_relation == (("A.R", 2.0), ("A.S", 0.5), ("archive.wire", 0.0))
    assert Quality(cost=3.0).checked(PLAN, NOW) == ()


def test_ages_are_of_relations() -> None:
    (old,) = Quality(age_s=60).violations(PLAN, NOW)
    assert (old.estimate, old.by_relation) == (3600, (("A.S", 3600),))
    assert Quality(age_s=3600).violations(PLAN, NOW) == ()
    unknown = replace(PLAN, relation=replace(R, refreshed=None), operator="scan", inputs=())
    (never,) = Quality(age_s=3600).violations(unknown, NOW)
    assert never.estimate == inf


def test_functions_without_a_report_are_not_certified() -> None:
    strict, lax = Quality(certified=True), Quality(certified=True, soft=("certified",))
    assert not strict.allows(F)
    assert lax.allows(F)
    assert strict.allows(replace(F, certificate="urn:report"))
    with pytest.raises(QueryRefused, match="certified"):
        strict.checked(PLAN, NOW)
    (told,) = lax.checked(PLAN, NOW)
    assert told.by_relation == (("thumbnail", 0.0),)


def _limits(quality: Quality) -> list[tuple[int | None, float]]:
    """Of scans of R, S and an archive in a plan that is estimated to cost 3."""
    figures = (Figures(bytes_read=500), Figures(bytes_read=400), Figures())
    read = zip((R, S, ARCHIVE), figures, strict=True)
    scans = tuple(Scan(each.name, each, (), (), estimate) for each, estimate in read)
    (found,) = quality.limited([Fragment(0, SITE, scans, (), (), "")], 3.0)
    return [(scan.most_bytes, scan.share) for scan in found.scans]


def test_scans_have_the_room_that_the_whole_has() -> None:
    assert _limits(Quality()) == [(None, 1), (None, 1), (None, 1)]
    assert _limits(Quality(cost=6.0)) == [(1000, 1), (800, 1), (None, 1)]
    assert _limits(Quality(cost=6.0, share=0.1)) == [(100, 0.1), (800, 0.1), (None, 0.1)]
    assert _limits(Quality(cost=6.0, share=0.1, soft=("cost", "share")))[0] == (None, 1)


@pytest.mark.parametrize("seed", range(50))
def test_limits_are_passed_where_a_figure_is_beyond_them(seed: int) -> None:
    random = Random(seed)
    names = ("rows_max", "cost", "first_row_s", "seconds", "rows_min")
    limits = {name: random.uniform(0, 60) for name in names if random.random() < 0.6}
    if limits.get("rows_min", 0) > limits.get("rows_max", inf):
        del limits["rows_min"]
    soft = tuple(name for name in limits if random.random() < 0.5)
    figures = Figures(*(random.uniform(0, 60) for _ in range(6)))
    plan = replace(PLAN, figures=figures)
    quality = Quality.parse(
        [f"{name}={limit!r}" for name, limit in limits.items() if name not in soft],
        [f"{name}={limit!r}" for name, limit in limits.items() if name in soft],
    )
    of = {"rows_max": "rows", "rows_min": "rows"}
    beyond = {
        name
        for name, limit in limits.items()
        if (getattr(figures, of.get(name, name)) - limit) * (-1 if name == "rows_min" else 1) > 0
    }
    assert {each.name for each in quality.violations(plan, NOW)} == beyond
    assert {each.name for each in quality.violations(plan, NOW) if each.is_soft} == beyond & {*soft}
    assert (quality.soft, set(LIMITS) >= beyond) == (soft, True)
    assert [each.name for each, _ in scans_of(plan)] == ["A.R", "A.S", "archive.wire"]
