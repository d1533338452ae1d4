"""onyx.aio: the same network on asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from onyx import NewProfile, ProfileNotAccepted, RequestFailed
from onyx.aio import DataSource, User


def test_a_message_goes_all_the_way(registration: str) -> None:
    async def numbers() -> AsyncIterator[bytes]:
        for number in range(2, 302):
            yield b"<n>%d</n>" % number

    async def main() -> None:
        source = await DataSource.register(registration, name="aio", location=(10.0, 0.0))
        assert (source.root, source.info.name) == ("B1", "aio")
        async with source, User(registration, "bob") as user:
            threads = [t for t in threading.enumerate() if t is not threading.main_thread()]
            profile = await user.add_profile("for $x in //n return $x")
            assert (await source.publish(b"<a><n>1</n></a>")).accepted
            outcomes = [outcome.number async for outcome in source.publish_all(numbers())]
            assert outcomes == list(range(2, 302))
            results = user.results(profile.id)
            for number in range(1, 302):
                assert (await anext(results)).results == [b"<n>%d</n>" % number]
            assert len([t for t in threads if "BlockingPortal" in t.name or "trio" in t.name]) <= 1

    asyncio.run(main())


def test_who_waits_no_longer_loses_nothing(registration: str) -> None:
    async def main() -> None:
        source = await DataSource.register(registration)
        async with source, User(registration, "ann") as user:
            profile = await user.add_profile("//late")
            results = user.results(profile.id)
            waiting = asyncio.ensure_future(anext(results))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await source.publish(b"<late/>")
            assert (await anext(results)).results == [b"<late/>"]

    asyncio.run(main())


def test_many_profiles_come_in_batches(registration: str) -> None:
    async def main() -> None:
        async with User(registration, "max") as user:
            texts = [NewProfile(f"//batch[@n = {n}]") for n in range(300)]
            ids = [one async for batch in user.add_profiles(texts) for one in batch.ids]
            assert len(set(ids)) == 300
            removed = [one async for batch in user.remove_profiles(ids) for one in batch.ids]
            assert removed == ids

    asyncio.run(main())


def test_what_is_rejected_comes_again(registration: str) -> None:
    async def main() -> None:
        source = await DataSource.register(registration)
        async with source, User(registration, "eve") as user:
            profile = await user.add_profile("//again")
            results = user.results(profile.id, share=True)
            await source.publish(b"<again/>")
            await anext(results)
            async with results.attempt():
                raise ValueError("not today")
            assert (await anext(results)).results == [b"<again/>"]

    asyncio.run(main())


def test_what_goes_wrong_is_raised_where_it_is_asked_for(registration: str) -> None:
    async def main() -> None:
        with pytest.raises(RequestFailed, match="unknown-source"):
            async with DataSource(registration, "s999999"):
                pytest.fail("connected")
        async with User(registration) as user:
            with pytest.raises(ProfileNotAccepted, match="line 1"):
                await user.add_profile("//[")
        with pytest.raises(RuntimeError, match="outside of its block; write async with"):
            await user.add_profile("//a")

    threads = threading.active_count()
    asyncio.run(main())
    assert threading.active_count() == threads
