"""EventQueue: events that wait for a core, in the order in which they came.

What many connections have said in one turn of their table (link_io.py) is one event, or a few of
PIECES_MAX each; the table reads nothing more until all of them are taken.  What a core has left of
a connection comes behind what the others have said, and that connection is not read meanwhile.  So
however much one connection has to say, another's request is answered after one slice of each that
speaks.  What a core has asked for itself is ahead of all.  While a full disk holds a commit up only
the events of *askers* are given, connections of clients that ask, or have not said yet who they
are; those of others are held, and these are not read meanwhile, either.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeAlias

import trio

from overlay.link.events import (
    CalledAgain,
    ConnectionLost,
    ConnectionOpened,
    DataOfMany,
    DataReceived,
    Event,
)

PIECES_MAX = 32  # of one event

Waiting: TypeAlias = Event | tuple[int, bytes]
"""An event, or a piece of what a connection has said."""


class EventQueue:
    """``pause`` and ``resume`` a connection are told when it has something here that was put back
    or is held, and when it has nothing any more."""

    def __init__(
        self,
        pause: Callable[[int], None] = lambda connection: None,
        resume: Callable[[int], None] = lambda connection: None,
    ) -> None:
        self._pause, self._resume = pause, resume
        self._ahead: deque[Event] = deque()
        self._waiting: deque[Waiting] = deque()
        self._held: deque[Waiting] = deque()  # of those that are no askers
        self._behind: set[int] = set()  # connections that are paused
        self._pieces = 0  # that wait, and are not held
        self._askers: set[int] = set()
        self._is_for_askers = False
        self._arrived, self._taken = trio.Event(), trio.Event()

    def put_nowait(self, event: Event) -> None:
        """One more event of a connection, or of the node itself."""
        self._put(event)
        self._arrived.set()

    def put_pieces_nowait(self, pieces: Iterable[tuple[int, bytes]]) -> None:
        """What connections have said."""
        for piece in pieces:
            self._put(piece)
        self._arrived.set()

    async def all_taken(self) -> None:
        """Until all that connections have said is taken or held."""
        while self._pieces:
            self._taken = trio.Event()
            await self._taken.wait()

    def put_ahead_nowait(self, events: Iterable[Event]) -> None:
        """What a core has asked for; CalledAgain waits there once at most."""
        for event in events:
            if not (isinstance(event, CalledAgain) and self.calls_again):
                self._ahead.append(event)
        self._arrived.set()

    def put_back_nowait(self, connection: int) -> None:
        """Go on with a connection when the others have had their turn, before it is read again."""
        self._hold(connection)
        self.put_nowait(DataReceived(connection, b""))

    def enter(self, connection: int) -> None:
        """A client is about to come in."""
        self._askers.add(connection)

    def recognise(self, connection: int, role: str) -> None:
        """Who is at the other end of a connection has been said."""
        if role != "client":
            self._askers.discard(connection)

    @property
    def is_for_askers(self) -> bool:
        """Whether only askers have their turn."""
        return self._is_for_askers

    @is_for_askers.setter
    def is_for_askers(self, wanted: bool) -> None:
        if wanted == self._is_for_askers:
            return
        self._is_for_askers = wanted
        again = [*self._held, *self._waiting]
        self._held.clear()
        self._waiting.clear()
        self._pieces = 0
        for waiting in again:
            self._put(waiting)
        self._note_taken()

    def __bool__(self) -> bool:
        """Whether there is an event."""
        return bool(self._ahead or self._waiting)

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

    def next_nowait(self, pieces_max: int = PIECES_MAX) -> Event | None:
        """What is ahead, or the next event, which is of so many connections at most; None if there
        is none."""
        if self._ahead:
            return self._ahead.popleft()
        waiting = self._waiting
        pieces: list[tuple[int, bytes]] = []
        while waiting and len(pieces) < pieces_max:
            first = waiting[0]
            if not isinstance(first, tuple):
                if pieces:
                    break
                waiting.popleft()
                return self._given(first)
            waiting.popleft()
            pieces.append(first)
            if first[0] in self._behind:
                self._behind.remove(first[0])
                self._resume(first[0])
        if not pieces:
            return None
        self._pieces -= len(pieces)
        self._note_taken()
        return DataReceived(*pieces[0]) if len(pieces) == 1 else DataOfMany(pieces)

    def _given(self, event: Event) -> Event:
        number = _connection_of(event)
        if number in self._behind:
            self._behind.remove(number)
            self._resume(number)
        if isinstance(event, ConnectionLost):
            self._askers.discard(number)
        return event

    def _put(self, waiting: Waiting) -> None:
        number = _connection_of(waiting)
        if self._is_for_askers and number not in self._askers:
            self._held.append(waiting)
            self._hold(number)
            return
        self._waiting.append(waiting)
        self._pieces += isinstance(waiting, tuple)

    def _hold(self, connection: int) -> None:
        if connection and connection not in self._behind:
            self._behind.add(connection)
            self._pause(connection)

    def _note_taken(self) -> None:
        if not self._pieces:
            self._taken.set()


def _connection_of(waiting: Waiting) -> int:
    """0: of none."""
    if isinstance(waiting, tuple):
        return waiting[0]
    if isinstance(waiting, ConnectionOpened | DataReceived | ConnectionLost):
        return waiting.connection
    return 0
