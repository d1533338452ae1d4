"""A provider and its repositories in a network of real processes."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from onyx import DataSource, RequestFailed
from onyx.client_values import Delivery
from onyx.metadata import MetadataClient, MetadataProvider, MetadataRepository
from onyx.metadata.requests import AskStanding
from onyx.metadata.serving import PROVIDER_BASE, Serving
from registration.metadata.change_messages import Change, To
from tests.hanging import SAFETY_SECONDS
from tests.onyx.metadata.test_explanation import DOCUMENT, HOST, INFO, SCHEMA, URI

RULE = "search CycleProvider c register c where c.serverInformation.memory > 64"
ASKED = "search CycleProvider c select c, c.serverInformation.memory"


@asynccontextmanager
async def serving(
    registration: str, directory: Path, name: str, member: str = "", prefixes: Sequence[str] = ()
) -> AsyncIterator[None]:
    source = await DataSource.register(registration, name=name, base=PROVIDER_BASE, ensure=True)
    with MetadataProvider(directory, name) as provider:
        async with source, trio.open_nursery() as tasks:
            served = Serving(source, provider, registration, member=member, prefixes=prefixes)
            tasks.start_soon(served.run)
            yield
            tasks.cancel_scope.cancel()


class Place:
    """A provider of a name, and a repository, on one disk."""

    def __init__(self, registration: str, directory: Path, name: str) -> None:
        self._registration = registration
        self._directory = directory
        self._name = name
        self.cache = directory / "cache"

    @asynccontextmanager
    async def provider(self) -> AsyncIterator[MetadataClient]:
        """It runs, and has the schema."""
        with trio.fail_after(SAFETY_SECONDS):
            async with (
                serving(self._registration, self._directory / "provider", self._name),
                MetadataClient(self._registration, self._name) as client,
            ):
                await client.put_schema(SCHEMA, "text/turtle")
                yield client

    def repository(self, *, is_temporary: bool = False) -> MetadataRepository:
        return MetadataRepository(
            *(self.cache, self._registration, "L1"),
            provider=self._name,
            is_temporary=is_temporary,
        )


@pytest.fixture
def place(registration: str, tmp_path: Path) -> Place:
    return Place(registration, tmp_path, f"mdv-{tmp_path.name}")


def saying(memory: int) -> dict[str, bytes]:
    return {URI: DOCUMENT.replace(b"92", b"%d" % memory)}


async def test_a_repository_answers_as_the_provider_and_follows_it(place: Place) -> None:
    async with place.provider() as client:
        await client.register({URI: DOCUMENT}, "text/turtle")
        async with place.repository() as repository:
            rule = await repository.add_rule(RULE)
            assert (await repository.query(ASKED)).rows == [(HOST, "92")]
            outcome = await client.register(saying(128), "text/turtle")
            assert outcome.effects["L1"].changed == (HOST,)
            await repository.wait(outcome.revision)
            assert (await repository.query(ASKED)).rows == [(HOST, "128")]
            await repository.wait((await client.register(saying(32), "text/turtle")).revision)
            assert not repository.cache.resources()
            assert repository.age() < SAFETY_SECONDS
            await repository.wait((await client.register(saying(128), "text/turtle")).revision)
            assert {*repository.cache.resources()} == {HOST, INFO}
            await repository.remove_rule(rule.id)
            assert not repository.cache.resources()


async def test_it_goes_on_after_both_have_been_away(place: Place) -> None:
    async with place.provider() as client:
        async with place.repository() as repository:
            await repository.add_rule(RULE)
        outcome = await client.register({URI: DOCUMENT}, "text/turtle")
    async with place.provider(), place.repository() as repository:
        await repository.wait(outcome.revision)
        assert (await repository.query(ASKED)).rows == [(HOST, "92")]


async def test_a_rule_is_watched_by_a_repository_that_goes_in_the_end(place: Place) -> None:
    async with place.provider() as client:
        await client.register({URI: DOCUMENT}, "text/turtle")
        async with place.repository(is_temporary=True) as repository:
            await repository.add_rule(RULE)
            watched = repository.watch()
            for event, memory in (("came", 92), ("changed", 128), ("left", 32)):
                await client.register(saying(memory), "text/turtle")
                found = await anext(watched)
                assert (found.event, found.resource) == (event, HOST)
                assert (f'"{memory}"' in found.triples) == (event != "left")
            await watched.aclose()
        assert not await client.repositories()


async def test_a_gap_is_closed_by_asking_for_all(place: Place) -> None:
    async with place.provider() as client:
        await client.register({URI: DOCUMENT}, "text/turtle")
        async with place.repository() as repository:
            await repository.add_rule(RULE)
        with sqlite3.connect(place.cache) as tables:  # a state in which a message has not come
            tables.execute("UPDATE state SET value = '1' WHERE word = 'number'")
            tables.execute("DELETE FROM matched")
        tables.close()
        async with place.repository() as repository:
            outcome = await client.register(saying(128), "text/turtle")
            await repository.wait(outcome.revision)
            assert (await repository.query(ASKED)).rows == [(HOST, "128")]


async def test_a_provider_whose_rows_were_put_back_is_followed_from_there(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its numbers are smaller than those that the cache has."""
    monkeypatch.setattr("onyx.metadata.repository.LOOK_SECONDS", 0.1)
    directory = place.cache.parent / "provider"
    async with place.provider() as client:
        await client.add_rule("L1", RULE)
    former = {each: each.read_bytes() for each in directory.iterdir()}
    async with place.repository() as repository:
        async with place.provider() as client:
            await client.register({URI: DOCUMENT}, "text/turtle")
            await repository.wait((await client.register(saying(128), "text/turtle")).revision)
        for path, data in former.items():
            path.write_bytes(data)
        async with place.provider() as client:
            outcome = await client.register(saying(200), "text/turtle")
            revision = -1
            while (await repository.query(ASKED)).rows != [(HOST, "200")]:
                revision = await repository.changed(revision)
            assert await repository.revision() == outcome.revision


async def test_what_another_source_says_of_a_repository_does_not_count(
    place: Place, registration: str
) -> None:
    said = Change(
        provider="mdv", number=9, revision=9, time=0.0, to={"L1": To(0, True)}, dropped=(HOST,)
    )
    async with place.provider() as client, place.repository() as repository:
        async with await DataSource.register(registration) as other:
            assert (await other.publish(said.to_bytes())).accepted
        await client.register({URI: DOCUMENT}, "text/turtle")
        await repository.add_rule(RULE)
        assert (await repository.query(ASKED)).rows == [(HOST, "92")]
        assert repository.cache.number < 9


async def test_a_message_of_rows_that_are_gone_is_passed_over(place: Place) -> None:
    said = Change(provider="mdv", number=9, revision=9, time=0.0, to={"L1": To(5, True)})
    async with place.provider() as client, place.repository() as repository:
        late = Delivery("p", await client.source_id(), 9, [said.to_bytes()])
        await repository._take(late)  # the provider knows nothing of the repository
        assert repository.cache.number == 0
        await client.register({URI: DOCUMENT}, "text/turtle")
        await repository.add_rule(RULE)
        await repository._take(late)
        assert repository.cache.number < 9
        assert (await repository.query(ASKED)).rows == [(HOST, "92")]


async def test_rules_may_be_older_than_the_repository(place: Place) -> None:
    async with place.provider() as client:
        await client.add_rule("L1", RULE)
        outcome = await client.register({URI: DOCUMENT}, "text/turtle")
        async with place.repository() as repository:
            await repository.wait(outcome.revision)
            assert (await repository.query(ASKED)).rows == [(HOST, "92")]


async def test_a_message_that_the_broker_refuses_holds_up_nobody(place: Place) -> None:
    """A single statement that is longer, written, than a message may be."""
    large = DOCUMENT.replace(b"pirates.uni-passau.de", b"&" * 900_000)
    async with place.provider() as client, place.repository() as repository:
        await repository.add_rule(RULE)
        await client.register({URI: large}, "text/turtle")
        outcome = await client.register({f"{URI}2": DOCUMENT}, "text/turtle")
        await repository.wait(outcome.revision)
        assert "&" * 900_000 in repository.cache.resources()[HOST]
        assert (await client.status()).refused_messages == 1


async def test_a_refusal_comes_to_the_one_who_asks(place: Place) -> None:
    async with place.provider() as client:
        with pytest.raises(RequestFailed, match="CycleProvidr") as caught:
            await client.add_rule("L1", "search CycleProvidr c register c")
        assert (caught.value.fault.line, caught.value.fault.column) == (1, 8)
        with pytest.raises(RequestFailed, match="no-such-document"):
            await client.document(URI)


class Provider:
    """It runs from ``started`` to ``stop``."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        self._serving = serving(*arguments, **more)
        self._end = trio.Event()
        self._is_over = trio.Event()

    async def run(self, task_status: trio.TaskStatus[None]) -> None:
        async with self._serving:
            task_status.started()
            await self._end.wait()
        self._is_over.set()

    async def stop(self) -> None:
        self._end.set()
        await self._is_over.wait()


async def until(same: Callable[[], Awaitable[bool]]) -> None:
    while not await same():
        await trio.sleep(0.1)


async def test_two_providers_hold_the_same(
    registration: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"mdv-{tmp_path.name}-{number}" for number in (1, 2)]
    places = [(registration, tmp_path / name, name) for name in names]
    theirs = "http://theirs/d"
    with trio.fail_after(SAFETY_SECONDS):
        async with (
            MetadataClient(registration, names[0]) as one,
            MetadataClient(registration, names[1]) as other,
            trio.open_nursery() as tasks,
        ):
            first = Provider(*places[0])
            await tasks.start(first.run)
            await one.put_schema(SCHEMA, "text/turtle")
            await one.register({URI: DOCUMENT}, "text/turtle")
            second = Provider(*places[1], member=names[0], prefixes=["http://theirs/"])
            await tasks.start(second.run)

            async def is_home() -> bool:
                row = (await other.ask(AskStanding())).prefixes.get("http://theirs/")
                return row is not None and row.provider == names[1] and row.is_settled

            await until(is_home)
            assert await other.document(URI) == ("text/turtle", DOCUMENT)
            await one.register({theirs: DOCUMENT}, "text/turtle")
            await one.wait_for_all([theirs], lambda _: None)
            assert await one.document(theirs) == await other.document(theirs)
            at = tmp_path / "cache", registration, "L"
            async with MetadataRepository(*at, provider=names[0]) as repository:
                await repository.add_rule(RULE, "fast")
                before = repository.cache.resources()
            async with MetadataRepository(*at, provider=names[1]) as repository:
                outcome = await other.register({theirs: b""}, "text/turtle")
                await repository.wait(outcome.revision)
                assert before.keys() - repository.cache.resources().keys() == {
                    f"{theirs}#host",
                    f"{theirs}#info",
                }

                async def has_left() -> bool:
                    return not await one.repositories()

                await until(has_left)
            with pytest.raises(RequestFailed, match="not-lost"):
                await other.move("", names[1], is_lost=True)
            await first.stop()
            with monkeypatch.context() as patch:
                patch.setattr("onyx.metadata.following.AWAY_SECONDS", 0.5)
                await other.move("", names[1], is_lost=True)
            await other.register(saying(128), "text/turtle")
            again = Provider(*places[0])
            await tasks.start(again.run)
            await other.wait_for_all([URI], lambda _: None)
            assert await one.document(URI) == ("text/turtle", saying(128)[URI])
            await again.stop()
            await second.stop()
