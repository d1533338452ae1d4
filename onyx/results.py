"""Results: the deliveries of one profile, from whichever broker hosts it.

A profile may move to another host broker (docs/planning.md, "How a profile moves").  The old one
says so, or has gone away; then the registration service is asked where the profile is, and the
results go on there, behind the last one that was taken here: no gap, nothing twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import TypeAlias

import trio

from onyx.client_values import Delivery, ProfileInfo
from onyx.errors import NetworkUnreachable, RequestFailed, UserError
from onyx.registration_client import (
    RegistrationClient,
    call,
    host_and_port,
    open_connection,
)
from overlay.link.client_connection import ClientConnection, RemoteError
from overlay.link.client_limits import Resumption
from overlay.link.frames import Delivery as DeliveryFrame
from overlay.link.link_layer import Arrival

MOVED = frozenset({"moved", "unknown-profile"})
"""What a broker says that is not, or not any more, the host of a profile."""
UNKNOWN_TRIES = 5  # a host broker that the registration service names, and that knows nothing of it
PAUSE_SECONDS = 0.05  # before asking again; doubles
PAUSE_SECONDS_MAX = 2.0
LOST_SECONDS = 5.0  # without the host broker before the registration service is asked about it

InBackground: TypeAlias = Callable[
    [AbstractAsyncContextManager[ClientConnection], Callable[[ClientConnection], Awaitable[None]]],
    Awaitable[ClientConnection],
]
"""Enters a connection in a task that leaves it when the given function returns."""


class Results:
    """An asynchronous iterator over the deliveries of one profile, made by ``User.results``.

    A delivery is acknowledged when the next one is asked for, or by ``acknowledge_nowait``.  One
    that was not acknowledged when the process ended comes again in its next run.
    """

    def __init__(
        self, registration: RegistrationClient, profile_id: str, in_background: InBackground
    ) -> None:
        self.profile_id = profile_id
        self._registration = registration
        self._in_background = in_background
        self._host = ""
        self._connection: ClientConnection | None = None
        self._current: Arrival | None = None
        self._received = 0  # at the host brokers of before
        self._lost_before = 0

    @property
    def lost(self) -> int:
        """How many deliveries were thrown away because nobody took them."""
        here = 0 if self._connection is None else self._connection.lost
        return self._lost_before + here

    async def connect(self) -> None:
        """Connect now instead of with the first delivery; RequestFailed "unknown-profile"."""
        if self._connection is None:
            await self._connect_to_host()

    def __aiter__(self) -> Results:
        return self

    async def __anext__(self) -> Delivery:
        self.acknowledge_nowait()
        await self.connect()
        while True:
            assert self._connection is not None
            try:
                arrival = await self._connection.next_delivery()
                break
            except RemoteError as error:
                await self._follow(error)
        frame = arrival.frame
        assert isinstance(frame, DeliveryFrame)
        self._current = arrival
        return Delivery(frame.profile, frame.source, frame.number, frame.results())

    def acknowledge_nowait(self) -> None:
        """The last delivery is done, whatever happens now."""
        if self._current is not None and self._connection is not None:
            self._connection.acknowledge(self._current)
            self._current = None

    async def flush(self) -> None:
        """Return when the host broker has all acknowledgements on disk."""
        while self._connection is not None:
            try:
                await call(self._connection, "sync", {})
                return
            except RequestFailed as failure:
                self._current = None  # not acknowledged: it comes again
                await self._follow(RemoteError(failure.code, failure.reason))

    async def _follow(self, error: RemoteError) -> None:
        """The connection has ended for good: go on at another host broker, or raise why not."""
        assert self._connection is not None
        if error.code not in MOVED:
            raise self._ended(error)
        self._received = self._connection.processed
        self._lost_before += self._connection.lost
        self._connection = None
        pause = PAUSE_SECONDS
        while self._connection is None:
            try:
                await self._connect_to_host()
            except NetworkUnreachable:
                # As with any connection that is lost: until somebody answers.
                await trio.sleep(pause)
                pause = min(2 * pause, PAUSE_SECONDS_MAX)

    async def _connect_to_host(self) -> None:
        """Wherever that is; it may be about to change."""
        pause, tries = PAUSE_SECONDS, 0
        while True:
            info = await self._registration.profile(self.profile_id)
            try:
                self._connection = await self._open(info)
                self._host = info.host
                return
            except RequestFailed as failure:
                tries += failure.code == "unknown-profile"
                if failure.code not in MOVED or tries == UNKNOWN_TRIES:
                    raise
            await trio.sleep(pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)

    async def _open(self, info: ProfileInfo) -> ClientConnection:
        host, port = host_and_port(info.address)
        behind = Resumption(f"broker/{info.host}", self._received)
        manager = open_connection(host, port, "subscriber", self.profile_id, resumption=behind)
        return await self._in_background(manager, self._watch)

    async def _watch(self, connection: ClientConnection) -> None:
        """Until the connection has ended for good; when its broker stays away, it is looked
        whether the profile is still there."""
        with suppress(RemoteError):
            while True:
                await connection.wait_lost()
                with trio.move_on_after(LOST_SECONDS) as scope:
                    await connection.wait_connected()
                if scope.cancelled_caught and await self._has_moved():
                    connection.give_up("moved", f"{self.profile_id} has another host broker now")

    async def _has_moved(self) -> bool:
        with suppress(UserError):
            return (await self._registration.profile(self.profile_id)).host != self._host
        return False

    def _ended(self, error: RemoteError) -> RequestFailed:
        reasons = {
            "forgotten": f"profile {self.profile_id} was removed",
            "replaced": f"somebody else takes the results of profile {self.profile_id} now",
        }
        return RequestFailed(error.code, reasons.get(error.code, error.message))
