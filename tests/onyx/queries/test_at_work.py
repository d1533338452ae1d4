"""Queries at work are told to their users and to operators, who may end them; to nobody else."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from onyx.errors import RequestFailed
from onyx.gateway.queries import queries_shown, query_ended
from onyx.gateway.sessions import Session
from onyx.queries.at_work import RunningQuery, end_query, queries_at_work
from onyx.queries.identity import Identity
from onyx.queries.provider_process import LEFT_SECONDS, _Query
from onyx.queries.signatures import GOOD_SECONDS, Order
from overlay.link.credentials import Credentials
from overlay.link.principal import Principal
from registration.queries.providers import CLIENT
from registration.spark import job
from registration.spark.job import Measured
from tests.onyx.queries.one_process import Place

ANN, BEN, ROOT = Principal("user", "ann"), Principal("user", "ben"), Principal("operator", "root")


@dataclass
class Job:
    found: Measured
    is_at_work: bool = True
    cancelled: threading.Event = field(default_factory=threading.Event)

    def measured(self) -> Measured:
        return self.found

    def cancel(self) -> None:
        self.cancelled.set()


def plugged(place: Place, name: str, query: str, user: Principal | None, *found: Measured) -> Job:
    """A query at a provider, its fragments with these figures."""
    jobs = [Job(each) for each in found]
    made = {each.found.number: cast(job.Job, each) for each in jobs}
    place.services[name]._queries[query] = _Query(Order((), CLIENT, id=query), user, [], jobs=made)
    return jobs[0]


def _figures(query: RunningQuery) -> dict[str, tuple[float, ...]]:
    """Seconds, share, rows, bytes read and sent, by provider."""
    return {name: tuple(each.values()) for name, each in query.facts()["at"].items()}


def test_a_query_is_shown_at_its_providers_and_ended_there(tmp_path: Path) -> None:
    place = Place(tmp_path)
    who = {each: Identity.of(place.credentials(each.role, each.name)) for each in (ANN, BEN, ROOT)}
    with place.serving(None):
        at_a = plugged(
            place, "A", "q1", ANN, Measured(0, 10, 80, 400, share=0.5), Measured(1, 5, 40, 0)
        )
        at_b = plugged(place, "B", "q1", ANN, Measured(2, 7, 56, 90, share=1.0))
        other = plugged(place, "B", "q2", None, Measured(0))
        (mine,), away = queries_at_work(place.market, who[ANN])
        assert (mine.id, mine.user, away) == ("q1", "user/ann", [])
        assert {name: each[1:] for name, each in _figures(mine).items()} == {
            "A": (0.25, 15, 400, 120),
            "B": (1.0, 7, 90, 56),
        }
        assert {each.id: each.user for each in queries_at_work(place.market, who[ROOT])[0]} == {
            "q1": "user/ann",
            "q2": "",
        }
        nobody = Identity(None, who[ANN].network, who[ANN].authority)
        assert queries_at_work(place.market, who[BEN]) == ([], [])
        assert queries_at_work(place.market, nobody) == ([], []), "not even another of nobody"
        end_query(place.market, who[ANN], "q1")
        assert at_a.cancelled.is_set() and at_b.cancelled.is_set()
        assert not other.cancelled.is_set()
        assert queries_at_work(place.market, who[ANN]) == ([], [])
    assert queries_at_work(place.market, who[ANN]) == ([], ["A", "B"])


def test_a_query_is_left_when_its_asking_process_looks_no_more() -> None:
    """Soon where it has taken rows, and after five minutes where it has not begun to."""
    running, ended = (Job(Measured(0), is_at_work=so) for so in (True, False))

    def is_left(after: float, one: Job, *taken: int) -> bool:
        jobs = {0: cast(job.Job, one)}
        query = _Query(Order((), CLIENT), ANN, [], seen=100.0, jobs=jobs, taken=set(taken))
        return query.is_left(100.0 + after)

    assert (is_left(LEFT_SECONDS, ended, 0), is_left(LEFT_SECONDS + 1, ended, 0)) == (False, True)
    assert (is_left(GOOD_SECONDS, ended), is_left(GOOD_SECONDS + 1, ended)) == (False, True)
    assert not is_left(1e6, running, 0)


@dataclass
class Asking:
    """A gateway's session: of a user, by the operator's credentials."""

    principal: str
    credentials: Credentials
    operates: bool = False


def test_a_gateway_shows_and_ends_the_queries_of_whoever_asks_it(tmp_path: Path) -> None:
    place = Place(tmp_path)
    files, own = [tmp_path / "market.ttl"], Credentials(place.credentials("operator", "root"))

    def session(principal: Principal, *, operates: bool = False) -> Session:
        return cast(Session, Asking(str(principal), own, operates))

    def seen(of: Session) -> set[str]:
        return {each.id for each in queries_shown(files, of).queries}

    with place.serving(None):
        own_job = plugged(place, "A", "q1", ANN, Measured(0))
        plugged(place, "A", "q2", None, Measured(0))
        assert seen(session(ANN)) == {"q1"}
        assert seen(session(BEN)) == set()
        assert seen(session(ROOT, operates=True)) == {"q1", "q2"}
        for query in ("q1", "q3"):
            with pytest.raises(RequestFailed, match=f"no query {query} is at work") as refused:
                query_ended(files, session(BEN), query)
            assert refused.value.code == "unknown-query"
        assert not own_job.cancelled.is_set()
        query_ended(files, session(ANN), "q1")
        assert own_job.cancelled.is_set()
        assert seen(session(ROOT, operates=True)) == {"q2"}
