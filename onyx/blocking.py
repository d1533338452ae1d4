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

Each object runs Trio in a thread of its own for the length of its block.  Its methods may be
called from any thread; a wait that Ctrl-C interrupts leaves the object usable.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from contextvars import copy_context
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Concatenate, Generic, ParamSpec, Self, TypeVar

import trio

from onyx import clients, data_source
from onyx.client_values import Delivery, Outcome, Publication, SourceInfo
from onyx.positions import PositionOf, Positions
from onyx.profile_batches import ProfileBatch, ProfileBatches
from onyx.publisher_journal import JOURNAL_BYTES_MAX
from onyx.registration_client import Where
from onyx.results import Results

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Client = TypeVar("_Client", bound=data_source.DataSource | clients.User)


class _Thread(Generic[_Client]):
    """An asynchronous client, living in a thread with a Trio of its own."""

    def __init__(self, client: _Client) -> None:
        self._client = client
        self._token: trio.lowlevel.TrioToken | None = None
        self._stop: trio.Event | None = None
        self._error: BaseException | None = None
        self._entered = threading.Event()
        self._thread = threading.Thread(
            target=copy_context().run, args=(self._run,), name="onyx", daemon=True
        )

    def start(self) -> None:
        """Enter the client's block; raises what that raises."""
        self._thread.start()
        self._entered.wait()
        if self._token is None:
            self._thread.join()
            assert self._error is not None
            raise self._error

    def stop(self) -> None:
        """Leave the client's block, and the thread."""
        if self._token is not None and self._stop is not None and self._thread.is_alive():
            self._token.run_sync_soon(self._stop.set)
        self._thread.join()

    def call(self, function: Callable[[_Client], Awaitable[_T]]) -> _T:
        """Run an asynchronous function in the thread and wait for what it returns."""
        if self._token is None:
            raise RuntimeError("this is used inside of its with block")

        async def wait() -> _T:
            return await function(self._client)

        return trio.from_thread.run(wait, trio_token=self._token)

    def _run(self) -> None:
        try:
            trio.run(self._live)
        except BaseException as error:  # handed to whoever waits in start()
            self._error = error
        finally:
            self._token = None
            self._entered.set()

    async def _live(self) -> None:
        manager: AbstractAsyncContextManager[object] = self._client
        async with manager:
            self._stop = trio.Event()
            self._token = trio.lowlevel.current_trio_token()
            self._entered.set()
            await self._stop.wait()


class _Blocking(Generic[_Client]):
    """What the two ends share: a block, for whose length the client lives in a thread."""

    def __init__(self, client: _Client) -> None:
        self._hold(client)

    def _hold(self, client: _Client) -> None:
        self._client = client
        self._thread = _Thread(client)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._thread.stop()
        self._hold(self._client)


def _waiting(
    method: Callable[Concatenate[_Client, _P], Awaitable[_T]],
) -> Callable[Concatenate[_Blocking[_Client], _P], _T]:
    """A method of the client that waits, with its signature and its text."""

    @wraps(method)
    def wait(self: _Blocking[_Client], /, *arguments: _P.args, **named: _P.kwargs) -> _T:
        return self._thread.call(lambda client: method(client, *arguments, **named))

    return wait


def _in_batches(
    method: Callable[Concatenate[clients.User, _P], ProfileBatches[_T]],
) -> Callable[Concatenate[User, _P], Iterator[ProfileBatch]]:
    """The same of a method that gives an asynchronous iterator; what it is given is iterated over
    in the client's thread."""

    @wraps(method)
    def batches(self: User, /, *arguments: _P.args, **named: _P.kwargs) -> Iterator[ProfileBatch]:
        found = method(self._client, *arguments, **named)
        while (batch := self._thread.call(lambda _: anext(found, None))) is not None:
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

        return DataSource._of(trio.run(registered))

    return wait


class DataSource(_Blocking[data_source.DataSource]):
    """As ``onyx.DataSource``, blocking."""

    def __init__(
        self,
        registration: Where,
        source_id: str,
        *,
        journal: Path | str | None = None,
        journal_bytes_max: int = JOURNAL_BYTES_MAX,
    ) -> None:
        super().__init__(
            data_source.DataSource(
                registration, source_id, journal=journal, journal_bytes_max=journal_bytes_max
            )
        )

    register = staticmethod(_registering(data_source.DataSource.register))
    publish = _waiting(data_source.DataSource.publish)

    @property
    def accepted_through(self) -> int:
        """As ``onyx.DataSource.accepted_through``."""
        return self._client.accepted_through

    @property
    def journalled(self) -> int:
        """As ``onyx.DataSource.journalled``."""
        return self._client.journalled

    @property
    def resumed(self) -> list[tuple[str, Outcome]]:
        """As ``onyx.DataSource.resumed``."""
        return self._client.resumed

    @property
    def id(self) -> str:
        return self._client.id

    @property
    def info(self) -> SourceInfo:
        return self._client.info

    @property
    def root(self) -> str:
        return self._client.root

    @property
    def address(self) -> str:
        return self._client.address

    def publish_all(self, messages: Iterable[Publication]) -> Iterator[Outcome]:
        """As ``onyx.DataSource.publish_all``; ``messages`` is iterated over in this thread."""
        pipeline = data_source.Pipeline(self._client)
        for message in messages:
            yield from self._thread.call(_sender(pipeline, message))
        yield from self._thread.call(lambda _: pipeline.finish())

    @classmethod
    def _of(cls, source: data_source.DataSource) -> DataSource:
        made = cls.__new__(cls)
        made._hold(source)
        return made


class BlockingResults:
    """An iterator over deliveries, as ``onyx.Results``."""

    def __init__(self, results: Results, thread: _Thread[clients.User]) -> None:
        self._results = results
        self._thread = thread

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Delivery:
        return self._thread.call(lambda _: self._results.__anext__())

    def reject(self, reason: str = "") -> None:
        """The last delivery comes again later; see ``Results.reject_nowait``."""

        async def reject(_: clients.User) -> None:
            self._results.reject_nowait(reason)

        self._thread.call(reject)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Deal with the last delivery in this block: rejected with the error if it ends with one,
        which goes no further."""
        try:
            yield
        except Exception as error:
            self.reject(f"{type(error).__name__}: {error}")


class User(_Blocking[clients.User]):
    """As ``onyx.User``, blocking."""

    def __init__(self, registration: Where, name: str = "") -> None:
        self.name = name
        super().__init__(clients.User(registration, name))

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

    def results(
        self,
        *profile_ids: str,
        share: bool = False,
        ephemeral: bool = False,
        positions: Positions | PositionOf | None = None,
    ) -> BlockingResults:
        """As ``onyx.User.results``: each is acknowledged when the next is asked for.  ``positions``
        are saved in the client's thread."""
        results = self._client.results(
            *profile_ids, share=share, ephemeral=ephemeral, positions=positions
        )
        return BlockingResults(results, self._thread)


def _sender(
    pipeline: data_source.Pipeline, message: Publication
) -> Callable[[data_source.DataSource], Awaitable[list[Outcome]]]:
    return lambda _: pipeline.send(message)
