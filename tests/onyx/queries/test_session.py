"""Queries of a session over cycle providers with TLS and signatures, all in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from onyx.queries.at_work import queries_at_work
from onyx.queries.identity import Identity
from onyx.queries.learning import Estimates
from onyx.queries.provider_process import CycleService
from onyx.queries.session import Session
from registration.queries.providers import Market
from registration.queries.quality import Quality
from registration.queries.refusals import QueryRefused
from registration.queries.stopped import QueryStopped
from tests.onyx.queries.one_process import ROWS, Place

JOIN = "SELECT r.n, r.t FROM A.R r JOIN B.S s ON s.n = r.n"
NOT_ANN = ':rule a q:Permission ; q:subject "user/ben" ; q:right "read" ; q:resource :R .\n'


@pytest.fixture(scope="module")
def spark(query_spark: Any) -> Any:
    """Of both providers and of the asking process."""
    return query_spark


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def asking(place: Place, market: Market | None = None, **options: Any) -> Session:
    return Session(market or place.market, credentials=place.credentials("user", "ann"), **options)


def test_a_join_of_two_providers_is_answered_noted_and_forgotten(place: Place, spark: Any) -> None:
    learned = place.folder / "learned.ttl"
    with place.serving(spark), asking(place, spark=spark, learned=learned) as session:
        run = session.run(JOIN)
        rows = run.table().to_pylist()
        assert sorted(row["n"] for row in rows) == list(range(0, ROWS, 3))
        assert all(row["t"] == f"text {row['n']}" for row in rows)
        assert (run.complete, run.stopped, run.actual.rows) == (True, None, len(rows))
        sizes = [(place.folder / f"{name}.csv").stat().st_size for name in "RS"]
        assert run.actual.bytes_read == sum(sizes)
        assert [service._queries for service in place.services.values()] == [{}, {}]
        market = place.market
        known = {name: market.relation(name) for name in ("A.R", "B.S")}
        estimates = Estimates(learned)
        assert [estimates.rows_of(one, ()) for one in known.values() if one] == [ROWS, 667]
        assert [estimates.bytes_of(one) for one in known.values() if one] == sizes
        scans = [node for node in session.plan(JOIN).root.walk() if node.operator == "scan"]
        assert sorted((n.figures.rows, n.figures.bytes_read) for n in scans) == [
            (667, sizes[1]),
            (ROWS, sizes[0]),
        ]


def test_an_asking_process_with_nothing_to_compute_starts_no_spark(
    place: Place, spark: Any
) -> None:
    with place.serving(spark), asking(place) as session:
        run = session.run("SELECT n AS a FROM A.R UNION ALL SELECT n FROM B.S")
        found = run.table()
        assert session._spark is None
    assert found.schema.names == ["a"] and run.complete
    assert sorted(found["a"].to_pylist()) == sorted([*range(ROWS), *range(0, ROWS, 3)])
    assert run.actual.bytes_moved == found.nbytes


def test_types_that_nobody_can_say_before_are_those_of_the_stream(
    tmp_path: Path, spark: Any
) -> None:
    """Rows of R stay out of B, those of S leave it in aggregates alone: A receives these."""
    client = "<urn:onyx:query:client>"
    kept = f":r a q:Flow ; q:what :R ; q:to {client} .\n"
    for number, to in enumerate((":A", client)):
        kept += f':s{number} a q:Flow ; q:what :S ; q:only "aggregates" ; q:to {to} .\n'
    place = Place(tmp_path, kept)
    counted = "SELECT n, transform(array(count(*)), x -> x + n) AS m FROM B.S GROUP BY n"
    joined = f"SELECT r.n, s.m FROM A.R r JOIN ({counted}) s ON s.n = r.n"
    with place.serving(spark), asking(place) as session:
        plan = session.plan(joined)
        receiving = [(each, receive) for each in plan.fragments for receive in each.receives]
        untyped = [each.site.name for each, receive in receiving if not receive.is_typed]
        assert untyped == ["A", "client"]
        found = session.run(plan).table()
        assert session._spark is None
    rows = sorted((row["n"], row["m"]) for row in found.to_pylist())
    assert rows == [(n, [n + 1]) for n in range(0, ROWS, 3)]


def test_a_share_ends_each_scan_and_the_answer_is_marked(place: Place, spark: Any) -> None:
    with place.serving(spark), asking(place, spark=spark) as session:
        run = session.run("SELECT n FROM A.R", Quality(share=0.5))
        numbers = sorted(run.table()["n"].to_pylist())
    lines = (place.folder / "R.csv").read_text().splitlines(keepends=True)
    size = sum(map(len, lines))
    read = sum(len(lines[n]) for n in numbers)
    assert numbers == list(range(len(numbers)))
    assert size / 2 - len(lines[len(numbers)]) < read <= size / 2
    assert run.actual.bytes_read == read
    assert not run.complete and run.stopped is not None
    assert (run.stopped.code, run.stopped.provider) == ("over-limit", "urn:m#R")
    assert run.stopped.reason == f"A.R was read to {read:,} of {size:,} bytes"


def test_the_rows_up_to_a_limit_are_given_and_marked(place: Place, spark: Any) -> None:
    with place.serving(spark), asking(place, spark=spark) as session:
        plan = session.plan("SELECT n FROM A.R")
        assert plan.estimate.rows > 10
        run = session.run(session.plan("SELECT n FROM A.R WHERE n < 300", Quality(rows_max=999)))
        assert run.table().num_rows == 300 and run.complete
        learned = place.folder / "learned.ttl"
        learned.write_text("")
    with place.serving(spark), asking(place, spark=spark, learned=learned) as session:
        run = session.run("SELECT n FROM A.R", Quality(rows_max=1_000))
        assert run.table().num_rows == 1_000
        assert not run.complete and run.stopped is not None
        assert "more than 1,000 rows (rows_max)" in run.stopped.reason
        assert run.actual.rows == 1_000


def test_a_providers_own_rules_count_and_not_those_of_the_plan(place: Place) -> None:
    """Nothing is executed: the plan is refused as it is plugged."""
    strict = place.market_with(NOT_ANN)
    with place.serving(None, {"A": strict}), asking(place) as session:
        refused = pytest.raises(QueryRefused, match="not read here for this user")
        with refused as caught:
            session.run("SELECT n FROM A.R")
    assert (caught.value.code, caught.value.rule) == ("not-allowed", "urn:m#rule")


def test_a_provider_knows_the_groups_of_users_by_its_own_catalog(place: Place, spark: Any) -> None:
    """The plan's catalog says that ann is in staff; that of A says it, or says ben alone."""
    rule = ':p a q:Permission ; q:subject "group/staff" ; q:right "read" ; q:resource :R .\n'
    staff = ':staff a q:Group ; q:name "staff" ; q:member "ben"'
    market = place.market_with(f'{staff}, "ann" . {rule}')
    with place.serving(spark, {"A": market}), asking(place, market) as session:
        assert session.run("SELECT n FROM A.R WHERE n < 3").table().num_rows == 3
    strict = place.market_with(f"{staff} . {rule}")
    with place.serving(None, {"A": strict}), asking(place, market) as session:
        refused = pytest.raises(QueryRefused, match="not read here for this user")
        with refused as caught:
            session.run("SELECT n FROM A.R")
    assert (caught.value.code, caught.value.rule) == ("not-allowed", "urn:m#p")


def test_a_provider_keeps_nothing_of_a_plan_whose_asking_process_has_gone(
    place: Place, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plug = CycleService.plug
    monkeypatch.setattr(CycleService, "plug", lambda self, sealed, _: plug(self, sealed, gone))
    with place.serving(spark), asking(place) as session:
        with pytest.raises(QueryRefused, match="the process that asks has gone"):
            session.run("SELECT n FROM A.R")
        asker = Identity.of(place.credentials("user", "ann"))
        assert queries_at_work(place.market, asker) == ([], [])


def gone() -> bool:
    return True


def test_a_user_whose_certificate_is_revoked_meanwhile_is_refused(place: Place) -> None:
    with place.serving(None), asking(place) as session:
        serials = {each.serial for each in place.authority.issued() if each.principal.name == "ann"}
        place.authority.revoke(serials)
        with pytest.raises(QueryRefused, match="is revoked") as caught:
            session.run("SELECT n FROM A.R")
    assert caught.value.code == "bad-signature"


def test_providers_that_are_away_are_named(place: Place) -> None:
    with asking(place) as session, pytest.raises(QueryStopped) as caught:
        session.run("SELECT n FROM A.R")
    assert (caught.value.code, caught.value.provider) == ("provider-away", "urn:m#A")
