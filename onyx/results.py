"""Results: the deliveries of profiles, from whichever brokers host them.

A profile may move to another host broker (docs/planning.md, "How a profile moves").  The old one
says so, or has gone away; then the registration service is asked where the profile is, and the
results go on there, behind the last one that was taken here: no gap, nothing twice.

All profiles of a user that a broker hosts share one connection to it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import anyio

from formats.media_types import XML
from onyx.client_values import Delivery
from onyx.errors import NetworkUnreachable, RequestFailed, UsageError, UserError
from onyx.positions import PositionOf, Positions, load_and_save
from onyx.registration_client import ASK_AGAIN, RegistrationClient, call, refusals
from overlay import verbs
from overlay.answers import Position, ProfileInfo
from overlay.link.client_connection import ClientConnection, RemoteError
from overlay.link.frames import SHARED, Contents, Deliveries, contents
from overlay.link.inbox import Arrived, Inbox, InboxQueue
from overlay.link.subscription import Shared

MOVED = frozenset({"moved", "unknown-profile"})
"""What a broker says that is not, or not any more, the host of a profile."""
UNKNOWN_TRIES = 5  # a host broker that the registration service names, and that knows nothing of it
LOST_SECONDS = 5.0  # without the host broker before the registration service is asked about it

ConnectTo: TypeAlias = Callable[[str], Awaitable[ClientConnection]]
"""The user's connection to the broker at an address."""
InBackground: TypeAlias = Callable[..., None]
"""Starts an asynchronous function with its arguments, for as long as the user's block lasts."""


@dataclass(slots=True, eq=False)
class _Place:
    """Where the results of a profile come from; ``received`` and ``lost``: at hosts of before, and
    ``shared``, what is known of them where they are shared.  ``given``: the number of the last
    delivery that was handed out; ``through``: of the last one that is wanted."""

    profile: str
    host: str = ""
    connection: ClientConnection | None = None
    inbox: Inbox | None = None
    received: int = 0
    lost: int = 0
    shared: Shared | None = None
    given: int = 0
    through: int = 0

    @property
    def is_over(self) -> bool:
        """Whether no delivery through ``through`` can come any more."""
        if self.inbox is None:
            return False
        at = self.inbox.attachment
        return at.last >= self.through and self.given >= min(at.arrived, self.through)


class Results:
    """An asynchronous iterator over the deliveries of profiles, made by ``User.results``.

    A delivery is acknowledged when the next one is asked for, or by ``acknowledge_nowait``.  One
    that was not acknowledged when the process ended comes again in its next run, and all of a
    profile that is held: there an acknowledgement says that it has come, ``User.positions`` that it
    is done.
    """

    def __init__(
        self,
        registration: RegistrationClient,
        profile_ids: Iterable[str],
        connect_to: ConnectTo,
        in_background: InBackground,
        find: Callable[[], Awaitable[Iterable[ProfileInfo]]] | None = None,
        mode: int = 0,
        positions: Positions | PositionOf | None = None,
        ends: Callable[..., Awaitable[Mapping[str, Position]]] | None = None,
    ) -> None:
        """``find``: what to ask for the profiles when it connects, where none is named; ``mode``:
        of all attachments; ``ends``: what to ask then for the positions at which it ends."""
        self._mode = mode
        self._load, self._save = load_and_save(positions)
        self._places = self._begun(profile_ids)
        self._known: dict[str, ProfileInfo] = {}  # what was said of them just now
        self._find, self._ends = find, ends
        self._registration = registration
        self._connect_to = connect_to
        self._in_background = in_background
        self._queue = InboxQueue()
        self._connections: set[ClientConnection] = set()  # all that there ever were
        self._unconnected = list(self._places.values())
        self._current: Arrived | None = None
        self._contents: tuple[Deliveries, Contents] | None = None

    @property
    def profile_id(self) -> str:
        """The profile, where it is one."""
        (name,) = self._places
        return name

    @property
    def profile_ids(self) -> tuple[str, ...]:
        """The profiles; where none was named, as they were when it connected."""
        return tuple(self._places)

    @property
    def lost(self) -> int:
        """How many deliveries were thrown away because nobody took them."""
        return sum(self.lost_by_profile().values())

    def lost_by_profile(self) -> dict[str, int]:
        """The same, of the profiles that have lost any."""
        lost = {
            name: place.lost + (0 if place.inbox is None else place.inbox.lost)
            for name, place in self._places.items()
        }
        return {name: count for name, count in lost.items() if count}

    async def connect(self) -> None:
        """Connect now instead of with the first delivery; RequestFailed "unknown-profile"."""
        if self._find is not None:
            self._known = {info.id: info for info in await self._find()}
            self._places = self._begun(self._known)
            self._unconnected = list(self._places.values())
            self._find = None
        attached = [(place, *await self._attach(place)) for place in self._unconnected]
        for connection in {connection for _, _, connection, _ in attached}:
            # Behind its answer the broker has said no, or has not.
            await call(connection, verbs.Sync.verb, {})
        for place, host, connection, inbox in attached:
            if inbox.ended is None:
                self._settle(place, host, connection, inbox)
            else:
                await self._connect_to_host(place)
        self._unconnected.clear()
        if self._ends is not None and self._places:
            for name, at in (await self._ends(*self._places)).items():
                self._places[name].through = at.last if at.gone < at.last else 0

    def __aiter__(self) -> Results:
        return self

    async def __anext__(self) -> Delivery:
        self.acknowledge_nowait()
        self._current = await self._next()
        return self._read(self._current)

    async def next_together(self, most: int) -> list[tuple[Arrived, Delivery]]:
        """The next delivery with those that have come as well, so many at most, each to be told as
        ``done`` or ``refused``; of results that are saved, or end, it is alone."""
        first = await self._next()
        is_alone = self._save is not None or self._ends is not None
        more = () if is_alone else self._queue.more(most - 1)
        return [(each, self._read(each)) for each in (first, *more)]

    async def _next(self) -> Arrived:
        """The next deliveries, of any broker."""
        if self._unconnected or self._find is not None:
            await self.connect()
        while self._ends is None or not all(place.is_over for place in self._places.values()):
            if isinstance(found := await self._queue.next(), Arrived):
                return found
            await self._follow(found)
        await self.flush()
        raise StopAsyncIteration

    def _read(self, found: Arrived) -> Delivery:
        """The delivery that has come."""
        frame, place = found.frame, self._places[found.inbox.profile]
        place.given = found.number
        if self._contents is None or self._contents[0] is not frame:
            self._contents = frame, contents(frame.lengths, frame.payload)
        results, limit, media_type = self._contents[1]
        return Delivery(
            *(place.profile, frame.source, frame.number),
            *(list(results), limit, media_type or XML),
            position=found.number,
        )

    def acknowledge_nowait(self) -> None:
        """The last delivery is done, whatever happens now."""
        if self._current is not None:
            self.done(self._current)
            self._current = None

    def done(self, arrived: Arrived) -> None:
        """A delivery of ``next_together`` is; those before it have been told."""
        place = self._places[arrived.inbox.profile]
        if self._save is not None:
            self._save(place.profile, arrived.number)
        if place.connection is not None and place.inbox is arrived.inbox:
            place.connection.acknowledge(arrived)

    def reject_nowait(self, reason: str = "") -> None:
        """The last delivery could not be dealt with: it comes again later, to whoever shares the
        profile, and is a dead letter in the end (DeliveryPolicy.attempts_max, retry_s).

        UsageError without ``share``: there a delivery is taken with all before it.
        """
        current, self._current = self._current, None
        self.refused(current, reason)

    def refused(self, arrived: Arrived | None, reason: str) -> None:
        """The same of a delivery of ``next_together``; None: of none."""
        if not self._mode & SHARED:
            raise UsageError("only deliveries of results(share=True) are rejected, each by itself")
        if arrived is None:
            return
        place = self._places[arrived.inbox.profile]
        if place.connection is not None and place.inbox is arrived.inbox:
            with refusals():
                place.connection.reject(arrived, reason)

    async def reject(self, reason: str = "") -> None:
        """``reject_nowait``, to be awaited."""
        self.reject_nowait(reason)

    def attempt(self) -> Attempt:
        """Deal with the last delivery in this block, by ``with`` or ``async with``: acknowledged at
        its end, rejected with the error if it ends with one, which goes no further."""
        return Attempt(self.acknowledge_nowait, self.reject_nowait)

    def _begun(self, profile_ids: Iterable[str]) -> dict[str, _Place]:
        """Behind the deliveries that their user has done."""
        begun = ((name, self._load(name)) for name in profile_ids)
        return {name: _Place(name, received=at, given=at) for name, at in begun}

    async def flush(self) -> None:
        """Return when the host brokers have all acknowledgements on disk."""
        for connection in list(self._connections):
            await call(connection, verbs.Sync.verb, {})

    async def _follow(self, inbox: Inbox) -> None:
        """Nothing comes in an inbox any more: go on at another host broker, or raise why not."""
        place = self._places[inbox.profile]
        if place.inbox is not inbox or inbox.ended is None:
            return
        if inbox.ended.code not in MOVED:
            raise self._ended(place, inbox.ended)
        place.received = place.given = inbox.attachment.last  # of which all was given or missed
        place.lost += inbox.lost
        place.inbox = place.connection = None
        failures = 0
        while place.inbox is None:
            try:
                await self._connect_to_host(place)
            except NetworkUnreachable:
                # As with any connection that is lost: until somebody answers.
                failures += 1
                await anyio.sleep(ASK_AGAIN.after(failures))

    async def _connect_to_host(self, place: _Place) -> None:
        """Wherever that is; it may be about to change."""
        failures = tries = 0
        while True:
            host, connection, inbox = await self._attach(place)
            await call(connection, verbs.Sync.verb, {})
            if inbox.ended is None:
                self._settle(place, host, connection, inbox)
                return
            tries += inbox.ended.code == "unknown-profile"
            if inbox.ended.code not in MOVED or tries == UNKNOWN_TRIES:
                raise self._ended(place, inbox.ended)
            failures += 1
            await anyio.sleep(ASK_AGAIN.after(failures))

    async def _attach(self, place: _Place) -> tuple[str, ClientConnection, Inbox]:
        """At the host that the registration service names; it may say no."""
        info = self._known.pop(place.profile, None)
        if info is None:
            info = await self._registration.profile(place.profile)
        connection = await self._connect_to(info.address)
        try:
            inbox = connection.attach(
                place.profile, place.received, self._queue, self._mode, place.shared
            )
        except RemoteError as error:  # it has ended for good, for other results
            raise self._ended(place, error) from None
        place.shared = inbox.attachment.shared
        return info.host, connection, inbox

    def _settle(self, place: _Place, host: str, connection: ClientConnection, inbox: Inbox) -> None:
        place.host, place.connection, place.inbox = host, connection, inbox
        self._connections.add(connection)
        self._in_background(self._watch, place, inbox, connection)

    async def _watch(self, place: _Place, inbox: Inbox, connection: ClientConnection) -> None:
        """Until an inbox has ended; when its broker stays away, it is looked whether the profile is
        still there."""
        with suppress(RemoteError):
            while inbox.ended is None:
                await connection.wait_lost()
                with anyio.move_on_after(LOST_SECONDS) as scope:
                    await connection.wait_connected()
                if scope.cancelled_caught and await self._has_moved(place):
                    detail = f"{place.profile} has another host broker now"
                    connection.detach(inbox, RemoteError("moved", detail))

    async def _has_moved(self, place: _Place) -> bool:
        with suppress(UserError):
            return (await self._registration.profile(place.profile)).host != place.host
        return False

    def _ended(self, place: _Place, error: RemoteError) -> RequestFailed:
        reasons = {
            "forgotten": f"profile {place.profile} was removed",
            "too-slow": f"more waited for profile {place.profile} than its policy allows",
            "replaced": f"somebody else takes the results of profile {place.profile} now",
        }
        return RequestFailed(error.code, reasons.get(error.code, error.message))


class Attempt:
    """See ``Results.attempt``."""

    def __init__(self, acknowledge: Callable[[], None], reject: Callable[[str], None]) -> None:
        self._acknowledge, self._reject = acknowledge, reject

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if error is None:
            self._acknowledge()
        elif isinstance(error, Exception):
            self._reject(f"{type(error).__name__}: {error}")
        return isinstance(error, Exception)

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *raised: Any) -> bool:
        return self.__exit__(*raised)
