"""Sessions: the connections of a gateway to its network, those of each identity by themselves.

::

    request ── Authorization: Bearer ... ──> the session of that token's holder ──> network
            ── none, on this machine ──────> the gateway's own

A session is opened with the first request of its identity, and closed when there was none for a
while.  What its identity may not do the network refuses: the gateway decides nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import trio

from onyx.background import background_tasks
from onyx.client_values import Outcome
from onyx.clients import User, forever, hold
from onyx.data_source import DataSource
from onyx.errors import NetworkUnreachable, RequestFailed, UserError
from onyx.gateway.backtests import Backtests
from onyx.identity.known_networks import ASKS_NOBODY, INSECURE, credentials_for, use_credentials
from onyx.registration_client import (
    PATIENCE_SECONDS,
    NetworkClient,
    RegistrationClient,
    addresses_of,
)
from overlay import verbs
from overlay.answers import Asker
from overlay.link.credentials import Credentials, TokenCredentials
from overlay.link.lone_error import lone_errors
from overlay.link.principal import Principal

IDLE_SECONDS = 60.0  # a session without a request is closed
SOURCES_MAX = 32  # that a session publishes as at a time
SOURCE_SECONDS = 2.0  # after its last message a source is left to others
ANSWER_SECONDS = 30.0  # of a source that is asked
ASKED_AT_ONCE = 32  # processes of a network
OPEN_SECONDS = 10.0
WATCH_SECONDS = 5.0  # between two looks whether an identity is still let in

_T = TypeVar("_T")
_A = TypeVar("_A")


class Session:
    """Of one identity: ``principal`` ("" in a network without TLS), and the rights of ``who``."""

    def __init__(
        self,
        registration: str,
        credentials: Credentials | Path,
        client: RegistrationClient,
        user: User,
        nursery: trio.Nursery,
        who: Asker,
    ) -> None:
        self.principal, self.who = who.principal, who
        self.client, self.user = client, user
        self.users = self.streams = 0
        self.used_at = trio.current_time()
        self.ended = trio.Event()
        self.credentials = credentials
        self._registration = registration
        self._nursery = nursery
        self._nodes: dict[str, NetworkClient] = {}
        self._sources: dict[str, _Publishing] = {}
        self._opening = trio.Lock()
        self.backtests = Backtests()

    @property
    def operates(self) -> bool:
        return self.who.operates

    @property
    def user_name(self) -> str:
        """Of whoever it is, if they are a user."""
        role, _, name = self.principal.partition("/")
        return name if role == "user" else ""

    async def ask(self, address: str, asked: verbs.Asks[_A]) -> _A:
        """Of the process at an address."""
        return await (await self._node(address)).ask(asked)

    async def ask_node(self, node: str, asked: verbs.Asks[_A]) -> _A:
        """Of a process by its id; RequestFailed "unknown-node"."""
        processes = await self.client.processes()
        if node == processes.registration:
            return await self.client.ask(asked)
        if node not in processes.brokers:
            raise RequestFailed("unknown-node", f"there is no process {node}")
        return await self.ask(processes.brokers[node], asked)

    async def ask_source(self, source: str, body: bytes, writes: bool) -> bytes:
        """The process of a source, by its id or its name; nobody waits for one that is away."""
        info = await self.client.source(source)
        asked = verbs.SourceAsk(source=info.id, body=body, writes=writes, timeout=ANSWER_SECONDS)
        return (await self.ask(info.address, asked)).body

    async def ask_all(self, asked: verbs.Asks[_A]) -> dict[str, _A | None]:
        """Of all processes, the registration service first; a refusal is no answer, unless all
        refuse."""
        processes = await self.client.processes()
        found: dict[str, _A | None] = dict.fromkeys((processes.registration, *processes.brokers))
        refusals: list[RequestFailed] = []
        room = trio.Semaphore(ASKED_AT_ONCE)

        async def ask(node: str, address: str) -> None:
            try:
                async with room:
                    found[node] = await self.ask(address, asked)
            except NetworkUnreachable:
                return
            except RequestFailed as refusal:
                refusals.append(refusal)

        found[processes.registration] = await self.client.ask(asked)
        async with trio.open_nursery() as nursery:
            for node, address in processes.brokers.items():
                if node not in processes.down:
                    nursery.start_soon(ask, node, address)
        if refusals and not any(found.values()):
            raise refusals[0]
        return found

    async def publish(
        self, source: str, data: bytes, media_type: str, key: str, headers: Mapping[str, str] | None
    ) -> Outcome:
        """As a source, which is held open a moment for more: nobody else can be it meanwhile."""
        publishing = await self._source(source)
        publishing.under_way += 1
        try:
            with trio.fail_after(PATIENCE_SECONDS):
                return await publishing.source.publish(data, media_type, key=key, headers=headers)
        except trio.TooSlowError:
            publishing.is_over = True
            said = f"the root broker has not answered in {PATIENCE_SECONDS:g} s"
            raise NetworkUnreachable(
                f"{said}; with its Publish-Key the message can be sent once more"
            ) from None
        except UserError:
            publishing.is_over = True  # somebody else is this source now, or it is gone
            raise
        finally:
            publishing.under_way -= 1
            publishing.used_at = trio.current_time()

    def start(self, run: Callable[[], Awaitable[None]]) -> None:
        """In the background; the session stays open for it."""

        async def use() -> None:
            self.users += 1
            try:
                await run()
            finally:
                self.users -= 1
                self.used_at = trio.current_time()

        self._nursery.start_soon(use)

    @asynccontextmanager
    async def own_user(self) -> AsyncIterator[User]:
        """With connections of its own, which end with the block."""
        with use_credentials(self.credentials):
            async with User(self._registration) as user:
                yield user

    async def until_ended(self, run: Callable[[_T], Awaitable[object]], given: _T) -> None:
        """``run``, which is cancelled if the session ends."""

        async def end(nursery: trio.Nursery) -> None:
            await self.ended.wait()
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(end, nursery)
            await run(given)
            nursery.cancel_scope.cancel()

    async def watch(self) -> None:
        """Until it ends; whose token is revoked is told so by the network (RequestFailed)."""
        while not self.ended.is_set():
            with trio.move_on_after(WATCH_SECONDS):
                await self.ended.wait()
                return
            self.who = await self.client.ask(verbs.Whoami())

    async def _node(self, address: str) -> NetworkClient:
        async with self._opening:
            if address not in self._nodes:
                self._nodes[address] = await self._start(NetworkClient(address))
            return self._nodes[address]

    async def _source(self, name: str) -> _Publishing:
        async with self._opening:
            found = self._sources.get(name)
            if found is None or found.is_over:
                if len(self._sources) >= SOURCES_MAX:
                    raise RequestFailed(
                        "busy", f"{SOURCES_MAX} sources publish here; try again later"
                    )
                found = self._sources[name] = _Publishing(DataSource(self._registration, name))
                try:
                    await self._start(found.source, found.until_over)
                except BaseException:
                    del self._sources[name]
                    raise
                self._nursery.start_soon(self._forget, name, found)
            return found

    async def _forget(self, name: str, publishing: _Publishing) -> None:
        await publishing.ended.wait()
        if self._sources.get(name) is publishing:
            del self._sources[name]

    async def _start(
        self,
        manager: AbstractAsyncContextManager[_T],
        use: Callable[[_T], Awaitable[object]] = forever,
    ) -> _T:
        """Enter it in the background, until ``use`` of it returns or the session ends."""
        with use_credentials(self.credentials), lone_errors():
            entered: _T = await self._nursery.start(hold, manager, use)
        return entered


class _Publishing:
    """A source that is held open until it ``is_over``: nobody publishes any more."""

    def __init__(self, source: DataSource) -> None:
        self.source, self.is_over, self.ended = source, False, trio.Event()
        self.used_at, self.under_way = trio.current_time(), 0

    async def until_over(self, source: DataSource) -> None:
        while self.under_way or trio.current_time() < self.used_at + SOURCE_SECONDS:
            if self.is_over:
                break
            await trio.sleep(SOURCE_SECONDS / 8)
        self.is_over = True
        self.ended.set()


class Sessions:
    """``session`` inside of ``run``."""

    def __init__(self, registration: str, sessions_max: int) -> None:
        self.registration = registration
        self._sessions_max = sessions_max
        self._open: dict[bytes, Session] = {}
        self._opening: dict[bytes, trio.Lock] = {}
        self._nursery: trio.Nursery | None = None

    @property
    def count(self) -> int:
        """How many are open."""
        return len(self._open)

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as self._nursery:
            task_status.started()
            while True:
                await trio.sleep(IDLE_SECONDS / 4)
                for key in [k for k, each in self._open.items() if self._is_idle(each)]:
                    self._end(key)

    @asynccontextmanager
    async def session(self, token: str) -> AsyncIterator[Session]:
        """Of whoever has a token, "": the gateway's own, for the length of the block."""
        key = sha256(token.encode()).digest() if token else b""
        lock = self._opening.setdefault(key, trio.Lock())
        try:
            async with lock:
                found = self._open.get(key)
                if found is None or found.ended.is_set():
                    found = self._open[key] = await self._begin(key, token)
                found.users += 1
        finally:
            if not lock.statistics().tasks_waiting:
                self._opening.pop(key, None)
        try:
            with use_credentials(found.credentials):
                yield found
        except RequestFailed as failed:
            if failed.code == "not-authenticated":
                self._end(key)
            raise
        finally:
            found.users -= 1
            found.used_at = trio.current_time()

    async def _begin(self, key: bytes, token: str) -> Session:
        assert self._nursery is not None
        if len(self._open) >= self._sessions_max:
            idle = [(each.used_at, k) for k, each in self._open.items() if not each.users]
            if not idle:
                raise RequestFailed("busy", f"{self._sessions_max} users are here; try again later")
            self._end(min(idle)[1])
        credentials = self._credentials(token)
        try:
            with lone_errors(), trio.fail_after(OPEN_SECONDS):
                opened: Session = await self._nursery.start(self._hold, key, credentials)
        except trio.TooSlowError:
            raise NetworkUnreachable("the network does not answer") from None
        return opened

    def _credentials(self, token: str) -> Credentials | Path:
        """What ``use_credentials`` takes."""
        own = credentials_for(*addresses_of(self.registration)[0])
        if own is not None:
            return TokenCredentials(own, token) if token else own
        if token:
            raise RequestFailed("no-tokens", ASKS_NOBODY)
        return Path(INSECURE)

    async def _hold(
        self, key: bytes, credentials: Credentials | Path, task_status: trio.TaskStatus[Session]
    ) -> None:
        """The connections of a session until it ends."""
        session: Session | None = None
        try:
            async with AsyncExitStack() as stack:
                stack.enter_context(use_credentials(credentials))
                client = await stack.enter_async_context(RegistrationClient(self.registration))
                who = await client.ask(verbs.Whoami())
                if isinstance(credentials, TokenCredentials):
                    credentials.principal = Principal.parse(who.principal)
                user = await stack.enter_async_context(User(self.registration))
                nursery = await stack.enter_async_context(background_tasks(trio.open_nursery()))
                session = Session(self.registration, credentials, client, user, nursery, who)
                task_status.started(session)
                await session.watch()
        except* UserError:
            if session is None:
                raise
        finally:
            if session is not None:
                session.ended.set()
                if self._open.get(key) is session:
                    del self._open[key]

    def _is_idle(self, session: Session) -> bool:
        return not session.users and trio.current_time() > session.used_at + IDLE_SECONDS

    def _end(self, key: bytes) -> None:
        with suppress(KeyError):
            self._open.pop(key).ended.set()
