"""DataSource and User for programs without ``async``: the same names, waiting instead of awaiting.

::

    from onyx.blocking import DataSource, User

    source = DataSource.register("127.0.0.1:7000", name="weather", key="weather")
    with source:
        print(source.publish(b"<report/>").accepted)

    with User("127.0.0.1:7000", "ada") as user:
        profile = user.add_profile("//report", key="reports")
        for delivery in user.results(profile.id):
            print(delivery.results)

AnyIO's portal, one thread for all clients of the process, runs them as long as one of them is in
its block.  Methods may be called from any thread; a wait that Ctrl-C interrupts leaves the object
usable.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial, wraps
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar
from weakref import WeakSet

import anyio
import anyio.to_thread
from anyio.from_thread import BlockingPortal, BlockingPortalProvider

from onyx import clients, data_source, registration_client, results
from onyx.client_values import Delivery, Outcome, Publication
from onyx.profile_batches import ProfileBatch, ProfileBatches
from onyx.publisher_journal import JOURNAL_BYTES_MAX
from onyx.registration_client import Where
from overlay import verbs
from overlay.link.inbox import Arrived

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Client = TypeVar(
    "_Client", bound=data_source.DataSource | clients.User | registration_client.RegistrationClient
)

PORTALS = BlockingPortalProvider()
TOGETHER = 64  # deliveries
SAY_SECONDS = 0.05


class _Block(Generic[_Client]):
    """A client, which lives in the portal for the length of a block."""

    def __init__(self, client: _Client) -> None:
        self._client = client
        self._portal: BlockingPortal | None = None
        self._end: anyio.Event
        self._left: Future[None]

    def __enter__(self) -> Self:
        self._portal = PORTALS.__enter__()
        entered: Future[None] = Future()
        self._left = self._portal.start_task_soon(self._live, entered)
        try:
            _wait_for(entered)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        assert self._portal is not None
        try:
            self._portal.start_task_soon(self._end.set)
            _wait_for(self._left)
        finally:
            self._stop()

    def _ask(self, function: Callable[..., Awaitable[_T]], *arguments: Any) -> _T:
        """What a function gives in the portal."""
        return _wait_for(self._begin(function, *arguments))

    def _begin(self, function: Callable[..., Awaitable[_T]], *arguments: Any) -> Future[_T]:
        """The same, to be waited for."""
        if self._portal is None:
            raise RuntimeError(
                "this has no connection outside of its block; write with ...: and use it inside"
            )
        return self._portal.start_task_soon(function, *arguments)

    async def _live(self, entered: Future[None]) -> None:
        try:
            async with self._client:
                self._end = anyio.Event()
                entered.set_result(None)
                await self._end.wait()
        except BaseException as error:
            if entered.done():
                raise
            entered.set_exception(error)  # to whoever waits for the start

    def _stop(self) -> None:
        """The thread ends with its last client."""
        self._left.cancel()  # where it is still under way
        self._portal = None
        PORTALS.__exit__(None, None, None)


def _wait_for(future: Future[_T]) -> _T:
    """What it gives; cancelled where the wait for it is interrupted."""
    try:
        return future.result()
    finally:
        future.cancel()


def _waiting(
    method: Callable[Concatenate[_Client, _P], Awaitable[_T]],
) -> Callable[Concatenate[_Block[_Client], _P], _T]:
    """A method of the client that waits, with its signature and its text."""

    @wraps(method)
    def wait(self: _Block[_Client], /, *arguments: _P.args, **named: _P.kwargs) -> _T:
        return self._ask(partial(method, self._client, *arguments, **named))

    return wait


def _in_batches(
    method: Callable[Concatenate[clients.User, _P], ProfileBatches[_T]],
) -> Callable[Concatenate[User, _P], Iterator[ProfileBatch]]:
    """The same of a method that gives an asynchronous iterator; what it is given is iterated over
    in the portal."""

    @wraps(method)
    def batches(self: User, /, *arguments: _P.args, **named: _P.kwargs) -> Iterator[ProfileBatch]:
        found = method(self._client, *arguments, **named)
        while (batch := self._ask(partial(anext, found, None))) is not None:
            yield batch

    return batches


def _registering(
    register: Callable[_P, Awaitable[data_source.DataSource]],
) -> Callable[_P, DataSource]:
    """The same of what makes a source."""

    @wraps(register)
    def wait(*arguments: _P.args, **named: _P.kwargs) -> DataSource:
        with PORTALS as portal:
            found = _wait_for(portal.start_task_soon(partial(register, *arguments, **named)))
        made = DataSource.__new__(DataSource)
        _Block.__init__(made, found)
        return made

    return wait


class _Known(Generic[_T]):
    """What ``onyx.DataSource`` knows, by the same name."""

    def __init__(self, known: Callable[[data_source.DataSource], _T]) -> None:
        self._known = known

    def __get__(self, source: DataSource, kind: type[DataSource]) -> _T:
        return self._known(source._client)


class DataSource(_Block[data_source.DataSource]):
    """As ``onyx.DataSource``, blocking."""

    def __init__(
        self,
        registration: Where,
        source_id: str,
        *,
        journal: Path | str | None = None,
        journal_bytes_max: int = JOURNAL_BYTES_MAX,
        publisher: str | None = None,
    ) -> None:
        super().__init__(
            data_source.DataSource(
                *(registration, source_id),
                journal=journal,
                journal_bytes_max=journal_bytes_max,
                publisher=publisher,
            )
        )

    register = staticmethod(_registering(data_source.DataSource.register))
    publish = _waiting(data_source.DataSource.publish)
    update = _waiting(data_source.DataSource.update)
    remove = _waiting(data_source.DataSource.remove)

    def publish_all(self, messages: Iterable[Publication]) -> Iterator[Outcome]:
        """As ``onyx.DataSource.publish_all``; ``messages`` is iterated over in this thread."""
        pipeline = data_source.Pipeline(self._client)
        for message in messages:
            yield from self._ask(pipeline.send, message)
        yield from self._ask(pipeline.finish)

    def answer(
        self,
        handler: Callable[[str, bool, bytes], bytes],
        *,
        at_once: int = data_source.ANSWERS_AT_ONCE,
    ) -> None:
        """As ``onyx.DataSource.answer``; ``handler`` is called in threads of its own."""

        async def in_thread(asker: str, writes: bool, body: bytes) -> bytes:
            return await anyio.to_thread.run_sync(handler, asker, writes, body)

        self._ask(partial(self._client.answer, in_thread, at_once=at_once))

    accepted_through = _Known(lambda source: source.accepted_through)
    journalled = _Known(lambda source: source.journalled)
    resumed = _Known(lambda source: source.resumed)
    id = _Known(lambda source: source.id)
    info = _Known(lambda source: source.info)
    root = _Known(lambda source: source.root)
    address = _Known(lambda source: source.address)


class BlockingResults:
    """An iterator over deliveries, as ``onyx.Results``.

    Deliveries that have come together are fetched together, up to TOGETHER.  Each is acknowledged
    within SAY_SECONDS of when the next is asked for, or at the end of the block.
    """

    def __init__(self, found: results.Results, user: User) -> None:
        self._found = found
        self._user = user
        # The thread of the user takes from the one and adds to the other; the portal does the rest.
        self._fetched: deque[tuple[Arrived, Delivery]] = deque()
        self._done: deque[Arrived] = deque()
        self._current: Arrived | None = None
        self._saying: Future[None] | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Delivery:
        if self._current is not None:
            self._done.append(self._current)
            self._current = None
        if not self._fetched:
            self._user._ask(self._fetch)
            if not self._fetched:
                raise StopIteration
        elif self._done and (self._saying is None or self._saying.done()):
            self._saying = self._user._begin(self._say_soon)
        self._current, delivery = self._fetched.popleft()
        return delivery

    def reject(self, reason: str = "") -> None:
        """The last delivery comes again later; see ``Results.reject_nowait``."""
        self._user._ask(self._refuse, reason)

    def attempt(self) -> results.Attempt:
        """Deal with the last delivery in this block: rejected with the error if it ends with one,
        which goes no further."""
        return results.Attempt(lambda: None, self.reject)

    def end(self) -> None:
        """Acknowledge what is done; the block ends."""
        if self._saying is not None:
            self._saying.cancel()
        if self._done:
            self._user._ask(self._say)

    async def _fetch(self) -> None:
        """Nothing is lost where the wait for it is interrupted: it is there the next time."""
        await self._say()
        with suppress(StopAsyncIteration):
            self._fetched.extend(await self._found.next_together(TOGETHER))

    async def _say_soon(self) -> None:
        await anyio.sleep(SAY_SECONDS)
        await self._say()

    async def _say(self) -> None:
        while self._done:
            self._found.done(self._done.popleft())

    async def _refuse(self, reason: str) -> None:
        await self._say()
        self._found.refused(self._current, reason)
        self._current = None


def _given(
    method: Callable[Concatenate[clients.User, _P], results.Results],
) -> Callable[Concatenate[User, _P], BlockingResults]:
    """The same of a method that gives results, whose ``positions`` are saved in the portal."""

    @wraps(method)
    def give(self: User, /, *arguments: _P.args, **named: _P.kwargs) -> BlockingResults:
        found = BlockingResults(method(self._client, *arguments, **named), self)
        self._taking.add(found)
        return found

    return give


class User(_Block[clients.User]):
    """As ``onyx.User``, blocking."""

    def __init__(self, registration: Where, name: str = "") -> None:
        self.name = name
        self._taking: WeakSet[BlockingResults] = WeakSet()  # that are in use
        super().__init__(clients.User(registration, name))

    def __exit__(self, *raised: object) -> None:
        try:
            for each in list(self._taking):
                each.end()
            self._taking.clear()
        finally:
            super().__exit__(*raised)

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
    positions = _waiting(clients.User.positions)
    hosts = _waiting(clients.User.hosts)
    waiting = _waiting(clients.User.waiting)

    results = _given(clients.User.results)


class RegistrationClient(_Block[registration_client.RegistrationClient]):
    """As ``onyx.RegistrationClient``, blocking: any verb by its record (docs/verbs.md)."""

    def __init__(self, registration: Where) -> None:
        super().__init__(registration_client.RegistrationClient(registration))

    def ask(self, asked: verbs.Asks[_T]) -> _T:
        """The record of the answer; RequestFailed where it is refused."""
        return self._ask(self._client.ask, asked)

    def ask_source(
        self, source: str, body: bytes, writes: bool = False, *, timeout: float = verbs.ASK_SECONDS
    ) -> bytes:
        """As ``onyx.RegistrationClient.ask_source``."""
        return self._ask(partial(self._client.ask_source, source, body, writes, timeout=timeout))

    def listed(self, asked: verbs.Asked) -> list[Any]:
        """All entries of a list, page by page."""
        return self._ask(self._client.listed, asked)
