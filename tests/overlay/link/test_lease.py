"""Leases: who has the rows of a node in PostgreSQL, and what one does that has them no more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event as Gate
from typing import Any

import psycopg
import pytest

from onyx.errors import UserError
from onyx.trial_postgres import TrialServer
from overlay.link.errors import Fenced, StoreError, StoreUnreachable
from overlay.link.events import Put
from overlay.link.postgres_store import FORMAT_VERSION, Lease, PostgresStore
from tests.hanging import SAFETY_SECONDS
from tests.postgres import Postgres, running_postgres


class Hall:
    """Processes that want to be B1, one after the other."""

    def __init__(self, server: Postgres) -> None:
        self.server = server
        self.schema = server.new_schema()
        self.stores: list[PostgresStore] = []

    def enter(self, lease_seconds: float = 3600) -> PostgresStore:
        store = PostgresStore(self.server.url, self.schema, "B1", lease_seconds)
        self.stores.append(store)
        return store

    def end_lease(self) -> None:
        """As if its holder stood still for longer than it."""
        self.change("until = '-infinity'")

    def change(self, what: str) -> None:
        self.server.ask(f'UPDATE "{self.schema}".nodes SET {what}')


@pytest.fixture
def hall(postgres: Postgres) -> Iterator[Hall]:
    hall = Hall(postgres)
    yield hall
    for store in hall.stores:
        store.close()


def test_one_process_at_a_time_until_it_has_ended(hall: Hall) -> None:
    first, second = hall.enter(), hall.enter()
    assert first.take() and first.epoch == 1
    first.commit([Put("a", "k", b"1")])
    assert not second.take()
    first.close()
    assert second.take() and second.epoch == 2
    assert list(second.rows()) == [("a", "k", b"1")]


@pytest.mark.parametrize("last", ["a", "z"])
def test_who_stood_still_reads_nothing_any_more(hall: Hall, last: str) -> None:
    """Rows that it put may be gone by now; it is no fault of the store."""
    first, second = hall.enter(), hall.enter()
    assert first.take()
    first.commit([Put("a", "k", b"1")])
    assert first.read("a", "", last) == ((("k", b"1"),) if last == "z" else ())
    hall.end_lease()
    assert second.take()
    first.check()
    with pytest.raises(Fenced, match=r"epoch 1.* another process has taken them over"):
        first.read("a", "", last)


def test_who_stood_still_commits_nothing_any_more(hall: Hall) -> None:
    """It does not know yet: by its own clock the lease goes on."""
    first, second = hall.enter(), hall.enter()
    assert first.take()
    first.commit([Put("a", "k", b"1")])
    hall.end_lease()
    assert second.take()
    second.commit([Put("a", "k", b"2")])
    first.check()
    with pytest.raises(Fenced, match=r"B1 .*epoch 1.* another process has taken them over"):
        first.commit([Put("a", "k", b"stale")])
    with pytest.raises(Fenced):
        first.check()
    with pytest.raises(Fenced):
        first.read("a", "", "z")
    assert list(second.rows()) == [("a", "k", b"2")]
    second.commit([Put("a", "k", b"3")])


def test_a_lease_is_over_for_its_holder_before_it_is_for_others(hall: Hall) -> None:
    """A server that cannot be reached is none by which it could be renewed."""
    now = 100.0
    asked = Gate()

    def unreachable() -> psycopg.Connection[tuple[object, ...]]:
        asked.set()
        raise StoreUnreachable("there is none")

    store = hall.enter()
    lease = Lease("B1", 0.1, unreachable, lambda: now)
    assert lease.take(store._connection)
    lease.check()
    assert asked.wait(SAFETY_SECONDS)
    now += 0.0999
    lease.check()
    now += 0.0001
    with pytest.raises(Fenced, match="has not been renewed in time"):
        lease.check()
    lease.close(store._connection)


def test_a_lease_is_renewed_as_long_as_its_holder_lives(hall: Hall) -> None:
    def until() -> object:
        return hall.server.ask(f'SELECT until FROM "{hall.schema}".nodes')[0][0]

    now = 0.0
    store = hall.enter(0.2)
    store._lease._clock = lambda: now
    assert store.take()
    now = 0.1
    for _ in range(3):  # the second begins at 0.1, and is noted before the third
        before = until()
        while until() == before:
            pass
    now = 0.25
    store.check()
    store.commit([Put("a", "k", b"1")])


def test_a_connection_that_is_lost_is_made_again(hall: Hall) -> None:
    store = hall.enter()
    assert store.take()
    store.commit([Put("a", "k", b"1")])
    for number in range(5):
        hall.server.break_connections()
        store.commit([Put("a", str(number), b"2")])
        hall.server.break_connections()
        assert store.read("a", str(number), str(number)) == ((str(number), b"2"),)
    assert len(list(store.rows())) == 6


@pytest.mark.parametrize("is_in", [False, True])
def test_a_commit_whose_answer_is_lost_takes_effect_once(
    hall: Hall, monkeypatch: pytest.MonkeyPatch, is_in: bool
) -> None:
    """Its number says whether it was in already; one that comes late, behind others, does not."""
    store = hall.enter()
    assert store.take()
    written: list[str] = []
    execute = psycopg.Connection.execute

    def broken(self: psycopg.Connection[Any], query: Any, *asked: Any, **how: Any) -> Any:
        if "WITH held" in query:
            written.append(query)
            if len(written) == 2:
                if is_in:
                    execute(self, query, *asked, **how)
                self.close()
                raise psycopg.OperationalError("lost")
        return execute(self, query, *asked, **how)

    monkeypatch.setattr(psycopg.Connection, "execute", broken)
    for number in (1, 2, 3):
        store.commit([Put("a", "k", b"%d" % number)])
    assert len(written) == 4
    assert list(store.rows()) == [("a", "k", b"3")]
    monkeypatch.undo()
    assert hall.server.ask(f'SELECT number FROM "{hall.schema}".nodes') == [(3,)]
    hall.change("number = 7")  # as if one had been made that this process knows nothing of
    with pytest.raises(Fenced):
        store.commit([Put("a", "k", b"4")])


def test_one_that_is_lost_for_longer_than_the_lease_is_the_end() -> None:
    with running_postgres() as server:
        store = PostgresStore(server.url, "n", "B1", 1.0)
        assert store.take()
        server.stop("immediate")
        with pytest.raises(Fenced):
            store.commit([Put("a", "k", b"1")])
        with pytest.raises(StoreUnreachable, match=r"postgresql:///postgres cannot be reached"):
            PostgresStore(server.url, "n", "B1", 1.0)
        store.close()
        server.start()
        after = PostgresStore(server.url, "n", "B1", 3600)
        while not after.take():
            pass
        assert list(after.rows()) == []
        after.close()


def test_an_error_of_the_server_is_one_of_the_store(hall: Hall) -> None:
    store = hall.enter()
    assert store.take()
    hall.server.ask(f'DROP TABLE "{hall.schema}".rows')
    with pytest.raises(StoreError, match="rows"):
        store.commit([Put("a", "k", b"1")])


def test_another_format_version_is_refused(hall: Hall) -> None:
    hall.enter()
    hall.server.ask(f'UPDATE "{hall.schema}".format SET version = version + 1')
    with pytest.raises(StoreError, match=f"format {FORMAT_VERSION + 1}; .* {FORMAT_VERSION}$"):
        hall.enter()


def test_what_an_earlier_broker_of_that_name_had_is_set_aside(hall: Hall) -> None:
    assert hall.enter().set_aside() == ""
    first = hall.enter()
    assert first.take()
    first.commit([Put("a", "k", b"1")])
    assert hall.enter().set_aside() == ""  # in use
    first.close()
    assert hall.enter().set_aside().endswith("as B1 earlier")
    second = hall.enter()
    assert second.take()
    assert list(second.rows()) == []


def test_the_directory_of_a_server_has_a_short_name(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="expected at most 93 bytes"):
        TrialServer(tmp_path / ("x" * 100), "nobody")
