"""EventQueue: events that wait for a core, one connection's after another's in turn.

However much one connection has to say, another's next event is handled after one of each that
speaks: so a request is answered while messages pour in.  Of one connection the order is kept.
What a core has asked for itself is ahead of all.  While a full disk holds a commit up only the
events of *askers* are given, connections of clients that ask, or have not said yet who they are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import trio

from overlay.link.events import (
    CalledAgain,
    ConnectionLost,
    ConnectionOpened,
    DataReceived,
    Event,
)


class EventQueue:
    """``put`` waits while a connection has ``events_max`` waiting, and ``put_of_client`` while all
    have ``bytes_max``, too; TCP pushes back."""

    def __init__(self, events_max: int, bytes_max: int = 128 * 1024 * 1024) -> None:
        self._events_max = events_max
        self.bytes_max = bytes_max
        self._bytes = 0
        self._clients = trio.lowlevel.ParkingLot()  # that wait until there are fewer
        self._ahead: deque[Event] = deque()
        self._waiting: dict[int, deque[Event]] = {}  # by connection, 0 for none; in turn
        self._room: dict[int, trio.Event] = {}  # for which readers wait
        self._askers: set[int] = set()
        self.is_for_askers = False
        self._arrived = trio.Event()

    async def put(self, event: Event) -> None:
        """One more event of a connection, or of the node itself; a turn of the scheduler only
        where it has to wait, as whoever reads a connection has had one for it."""
        number = 0
        if isinstance(event, ConnectionOpened | DataReceived | ConnectionLost):
            number = event.connection
        while len(self._waiting.get(number, ())) >= self._events_max:
            room = self._room.setdefault(number, trio.Event())
            await room.wait()
        self._waiting.setdefault(number, deque()).append(event)
        if isinstance(event, DataReceived):
            self._bytes += len(event.data)
        self._arrived.set()

    async def put_of_client(self, event: Event) -> None:
        """The same, behind those of other processes of the network where there is little room."""
        while isinstance(event, DataReceived) and not self.has_room():
            await self._clients.park()
        if isinstance(event, ConnectionOpened):
            self._askers.add(event.connection)
        await self.put(event)

    def recognise(self, connection: int, role: str) -> None:
        """Who is at the other end of a connection has been said."""
        if role != "client":
            self._askers.discard(connection)

    def has_room(self) -> bool:
        return self._bytes < self.bytes_max

    def put_ahead_nowait(self, events: Iterable[Event]) -> None:
        """What a core has asked for; CalledAgain waits there once at most."""
        for event in events:
            if not (isinstance(event, CalledAgain) and self.calls_again):
                self._ahead.append(event)
        self._arrived.set()

    def put_back_nowait(self, connection: int) -> None:
        """Go on with a connection when the others have had their turn, before its next event."""
        self._waiting.setdefault(connection, deque()).appendleft(DataReceived(connection, b""))
        self._arrived.set()

    def __bool__(self) -> bool:
        """Whether there is an event."""
        return bool(self._ahead) or self._turn() is not None

    @property
    def ahead(self) -> int:
        """How many events wait ahead of all."""
        return len(self._ahead)

    @property
    def calls_again(self) -> bool:
        """Whether CalledAgain waits."""
        return any(isinstance(event, CalledAgain) for event in self._ahead)

    async def wait(self) -> None:
        """Until there is an event."""
        await trio.lowlevel.checkpoint()
        while not self:
            self._arrived = trio.Event()
            await self._arrived.wait()

    def next_nowait(self) -> Event | None:
        """What is ahead, or the next event of the connection whose turn it is; None if there is
        none."""
        if self._ahead:
            return self._ahead.popleft()
        number = self._turn()
        if number is None:
            return None
        events = self._waiting.pop(number)
        event = events.popleft()
        if events:
            self._waiting[number] = events  # behind the others
        room = self._room.pop(number, None)
        if room is not None:
            room.set()
        if isinstance(event, DataReceived):
            self._bytes -= len(event.data)
            if self._clients and self.has_room():
                self._clients.unpark()
        elif isinstance(event, ConnectionLost):
            self._askers.discard(number)
        return event

    def _turn(self) -> int | None:
        """The connection whose turn it is; None if there is none."""
        if not self.is_for_askers:
            return next(iter(self._waiting), None)
        return next((number for number in self._waiting if number in self._askers), None)
