"""DataSource and User for programs without Trio: the same names, waiting instead of awaiting.

::

    from onyx.blocking import DataSource, User

    source = DataSource.register("127.0.0.1:7000", name="weather")
    with source:
        print(source.publish(b"<report/>").accepted)

    with User("127.0.0.1:7000", "ada") as user:
        profile = user.add_profile("//report")
        for delivery in user.results(profile.id):
            print(delivery.results)

Trio runs in a thread beside (client_thread.py) as long as one of them is in its block.  Methods may
be called from any thread; a wait that Ctrl-C interrupts leaves the object usable.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

import trio

from onyx import clients, data_source
from onyx.client_thread import ClientThread, wait_for
from onyx.client_values import Delivery, Outcome, Publication
from onyx.housed_clients import Housed, HousedSource, HousedUser
from onyx.profile_batches import ProfileBatch, ProfileBatches
from onyx.results import Results

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Client = TypeVar("_Client", bound=data_source.DataSource | clients.User)


class _Block(Housed[_Client]):
    def __enter__(self) -> Self:
        try:
            wait_for(self._thread.start())
        except BaseException:
            self._thread.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            wait_for(self._thread.leave())
        finally:
            self._thread.stop()


def _waiting(
    method: Callable[Concatenate[_Client, _P], Awaitable[_T]],
) -> Callable[Concatenate[_Block[_Client], _P], _T]:
    """A method of the client that waits, with its signature and its text."""

    @wraps(method)
    def wait(self: _Block[_Client], /, *arguments: _P.args, **named: _P.kwargs) -> _T:
        return wait_for(self._thread.call(lambda client: method(client, *arguments, **named)))

    return wait


def _in_batches(
    method: Callable[Concatenate[clients.User, _P], ProfileBatches[_T]],
) -> Callable[Concatenate[User, _P], Iterator[ProfileBatch]]:
    """The same of a method that gives an asynchronous iterator; what it is given is iterated over
    in the client's thread."""

    @wraps(method)
    def batches(self: User, /, *arguments: _P.args, **named: _P.kwargs) -> Iterator[ProfileBatch]:
        found = method(self._client, *arguments, **named)
        while (batch := wait_for(self._thread.call(lambda _: anext(found, None)))) is not None:
            yield batch

    return batches


def _registering(
    register: Callable[_P, Awaitable[data_source.DataSource]],
) -> Callable[_P, DataSource]:
    """The same of what makes a source."""

    @wraps(register)
    def wait(*arguments: _P.args, **named: _P.kwargs) -> DataSource:
        async def registered() -> data_source.DataSource:
            return await register(*arguments, **named)

        return DataSource.of(trio.run(registered))

    return wait


class DataSource(HousedSource, _Block[data_source.DataSource]):
    """As ``onyx.DataSource``, blocking."""

    register = staticmethod(_registering(data_source.DataSource.register))
    publish = _waiting(data_source.DataSource.publish)
    update = _waiting(data_source.DataSource.update)
    remove = _waiting(data_source.DataSource.remove)

    def publish_all(self, messages: Iterable[Publication]) -> Iterator[Outcome]:
        """As ``onyx.DataSource.publish_all``; ``messages`` is iterated over in this thread."""
        pipeline = data_source.Pipeline(self._client)
        for message in messages:
            yield from wait_for(self._thread.call(pipeline.sender(message)))
        yield from wait_for(self._thread.call(lambda _: pipeline.finish()))


class BlockingResults:
    """An iterator over deliveries, as ``onyx.Results``."""

    def __init__(self, results: Results, thread: ClientThread[clients.User]) -> None:
        self._results = results
        self._thread = thread

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Delivery:
        return wait_for(self._thread.call(lambda _: self._results.__anext__()))

    def reject(self, reason: str = "") -> None:
        """The last delivery comes again later; see ``Results.reject_nowait``."""
        wait_for(self._thread.call_now(lambda: self._results.reject_nowait(reason)))

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Deal with the last delivery in this block: rejected with the error if it ends with one,
        which goes no further."""
        try:
            yield
        except Exception as error:
            self.reject(f"{type(error).__name__}: {error}")


class User(HousedUser[BlockingResults], _Block[clients.User]):
    """As ``onyx.User``, blocking."""

    add_profile = _waiting(clients.User.add_profile)
    add_profiles = _in_batches(clients.User.add_profiles)
    update_profiles = _in_batches(clients.User.update_profiles)
    remove_profiles = _in_batches(clients.User.remove_profiles)
    update_profile = _waiting(clients.User.update_profile)
    remove_profile = _waiting(clients.User.remove_profile)
    profiles = _waiting(clients.User.profiles)
    profile = _waiting(clients.User.profile)
    policy = _waiting(clients.User.policy)
    set_policy = _waiting(clients.User.set_policy)

    def _housed(self, results: Results) -> BlockingResults:
        return BlockingResults(results, self._thread)
