"""DataSource and User for programs on asyncio: the same names, to be awaited there.

::

    from onyx.aio import DataSource, User

    source = await DataSource.register("127.0.0.1:7000", name="weather")
    async with source:
        print((await source.publish(b"<report/>")).accepted)

    async with User("127.0.0.1:7000", "ada") as user:
        profile = await user.add_profile("//report")
        async for delivery in user.results(profile.id):
            print(delivery.results)

Trio runs in a thread beside (client_thread.py) as long as one of them is in its block.  What is
cancelled here is cancelled there.
"""

from __future__ import annotations

from asyncio import wrap_future
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from functools import wraps
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

from onyx import clients, data_source
from onyx.client_thread import PORTALS, ClientThread
from onyx.client_values import Delivery, Outcome, Publication
from onyx.housed_clients import Housed, HousedSource, HousedUser
from onyx.profile_batches import ProfileBatch, ProfileBatches
from onyx.results import Results

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Client = TypeVar("_Client", bound=data_source.DataSource | clients.User)


class _Block(Housed[_Client]):
    async def __aenter__(self) -> Self:
        try:
            await wrap_future(self._thread.start())
        except BaseException:
            self._thread.stop()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            await wrap_future(self._thread.leave())
        finally:
            self._thread.stop()


def _awaiting(
    method: Callable[Concatenate[_Client, _P], Awaitable[_T]],
) -> Callable[Concatenate[_Block[_Client], _P], Awaitable[_T]]:
    """A method of the client, awaited in asyncio, with its signature and its text."""

    @wraps(method)
    async def ask(self: _Block[_Client], /, *arguments: _P.args, **named: _P.kwargs) -> _T:
        asked = self._thread.call(lambda client: method(client, *arguments, **named))
        return await wrap_future(asked)

    return ask


def _in_batches(
    method: Callable[Concatenate[clients.User, _P], ProfileBatches[_T]],
) -> Callable[Concatenate[User, _P], AsyncIterator[ProfileBatch]]:
    """The same of a method that gives an asynchronous iterator; what it is given is iterated over
    in the client's thread."""

    @wraps(method)
    async def batches(
        self: User, /, *arguments: _P.args, **named: _P.kwargs
    ) -> AsyncIterator[ProfileBatch]:
        found = method(self._client, *arguments, **named)
        while batch := await wrap_future(self._thread.call(lambda _: anext(found, None))):
            yield batch

    return batches


def _registering(
    register: Callable[_P, Awaitable[data_source.DataSource]],
) -> Callable[_P, Awaitable[DataSource]]:
    """The same of what makes a source."""

    @wraps(register)
    async def ask(*arguments: _P.args, **named: _P.kwargs) -> DataSource:
        async def registered() -> data_source.DataSource:
            return await register(*arguments, **named)

        with PORTALS as portal:
            return DataSource.of(await wrap_future(portal.start_task_soon(registered)))

    return ask


class DataSource(HousedSource, _Block[data_source.DataSource]):
    """As ``onyx.DataSource``, on asyncio."""

    register = staticmethod(_registering(data_source.DataSource.register))
    publish = _awaiting(data_source.DataSource.publish)
    update = _awaiting(data_source.DataSource.update)
    remove = _awaiting(data_source.DataSource.remove)

    async def publish_all(
        self, messages: Iterable[Publication] | AsyncIterable[Publication]
    ) -> AsyncIterator[Outcome]:
        """As ``onyx.DataSource.publish_all``; ``messages`` is iterated over in this thread."""
        pipeline = data_source.Pipeline(self._client)
        async for message in data_source.iterate(messages):
            for outcome in await wrap_future(self._thread.call(pipeline.sender(message))):
                yield outcome
        for outcome in await wrap_future(self._thread.call(lambda _: pipeline.finish())):
            yield outcome


class AsyncioResults:
    """An asynchronous iterator over deliveries, as ``onyx.Results``."""

    def __init__(self, results: Results, thread: ClientThread[clients.User]) -> None:
        self._results = results
        self._thread = thread

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delivery:
        return await wrap_future(self._thread.call(lambda _: self._results.__anext__()))

    async def reject(self, reason: str = "") -> None:
        """The last delivery comes again later; see ``Results.reject_nowait``."""
        await wrap_future(self._thread.call_now(lambda: self._results.reject_nowait(reason)))

    @asynccontextmanager
    async def attempt(self) -> AsyncIterator[None]:
        """Deal with the last delivery in this block: rejected with the error if it ends with one,
        which goes no further."""
        try:
            yield
        except Exception as error:
            await self.reject(f"{type(error).__name__}: {error}")


class User(HousedUser[AsyncioResults], _Block[clients.User]):
    """As ``onyx.User``, on asyncio."""

    add_profile = _awaiting(clients.User.add_profile)
    add_profiles = _in_batches(clients.User.add_profiles)
    update_profiles = _in_batches(clients.User.update_profiles)
    remove_profiles = _in_batches(clients.User.remove_profiles)
    update_profile = _awaiting(clients.User.update_profile)
    remove_profile = _awaiting(clients.User.remove_profile)
    profiles = _awaiting(clients.User.profiles)
    profile = _awaiting(clients.User.profile)
    policy = _awaiting(clients.User.policy)
    set_policy = _awaiting(clients.User.set_policy)

    def _housed(self, results: Results) -> AsyncioResults:
        return AsyncioResults(results, self._thread)
