"""Node: the Trio shell that runs any core against sockets and a store.

::

    accept loops, dial loops, connections, clock
              |  events                                    (bounded inbox: TCP pushes back)
              v
    one processing task: a batch of waiting events -> core.handle each     <── CalledAgain ──┐
                                                                            <── RowsRead ─────┤
              |  if CallAtEnd: BatchHandled                                                   |
              |  Put, Delete of the whole batch: one transaction, in a thread; ReadRows ────┤
              v                                                                             |
    SendData, CloseConnection handed to the connections, which write ─── if CallAgain ──────┘
    ArchiveMessage handed to the archive, which writes

Nothing of a batch leaves before everything of the batch is on disk; see ``events``.  An exception
of the core or the store ends the node: it is started again from what was committed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias
from zlib import crc32

import trio

from overlay.link.event_queue import EventQueue
from overlay.link.events import (
    Action,
    ArchiveMessage,
    BatchHandled,
    CallAgain,
    CallAtEnd,
    CalledAgain,
    CloseConnection,
    ConnectionOpened,
    Delete,
    DialPeers,
    Event,
    Put,
    ReadRows,
    RowsRead,
    SendData,
    TimePassed,
)
from overlay.link.link_io import DEFAULT_CONNECTION_LIMITS, Connection, ConnectionLimits


class Core(Protocol):
    """A broker, a registration service: anything that is only events and actions."""

    def handle(self, event: Event, now: float) -> list[Action]:
        """React to one event; ``now`` in seconds of a clock that never goes back."""
        ...


class RowStore(Protocol):
    """What the node needs of a store (``store.Store``)."""

    def commit(self, changes: Iterable[Put | Delete]) -> None:
        """All or none, durable on return."""
        ...

    def read(self, space: str, first: str, last: str) -> tuple[tuple[str, bytes], ...]:
        """Rows (key, value) of a space, by key, from the first to the last."""
        ...


@dataclass(frozen=True, slots=True)
class NodeLimits:
    """inbox_events          events of one connection that may wait; beyond, its reader waits
    batch_events          events handled before one commit
    batch_seconds         or as many as take so long
    unsaved_changes       changes nobody was told about that may wait for the next commit
    connections_max       accepted at once; one more is closed right away
    tick_seconds          between two TimePassed
    dial_seconds          for one attempt to connect
    redial_seconds_min    after the first failure; doubles with each one
    redial_seconds_max    and stays here; a connection that lasted so long starts anew
    """

    inbox_events: int = 16
    batch_events: int = 64
    batch_seconds: float = 0.01
    unsaved_changes: int = 1024
    connections_max: int = 1024
    tick_seconds: float = 1.0
    dial_seconds: float = 10.0
    redial_seconds_min: float = 0.1
    redial_seconds_max: float = 10.0
    connection: ConnectionLimits = DEFAULT_CONNECTION_LIMITS


DEFAULT_NODE_LIMITS = NodeLimits()

_Leaving: TypeAlias = SendData | CloseConnection | ArchiveMessage | DialPeers

Connect: TypeAlias = Callable[[str, int, float], Awaitable[trio.abc.Stream | None]]
"""(host, port, seconds) -> a stream, or None when there is none within so many seconds."""


async def open_stream(host: str, port: int, seconds: float) -> trio.SocketStream | None:
    """A TCP connection, or None if there is none within so many seconds."""
    with trio.move_on_after(seconds):
        try:
            return await trio.open_tcp_stream(host, port)
        except OSError:
            return None
    return None


async def run_node(
    core: Core,
    *,
    listeners: Sequence[trio.abc.Listener[trio.abc.Stream]],
    dials: Mapping[str, tuple[str, int]],
    store: RowStore,
    connect: Connect = open_stream,
    clock: Callable[[], float] = trio.current_time,
    limits: NodeLimits = DEFAULT_NODE_LIMITS,
    archive: Callable[[ArchiveMessage], None] | None = None,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run ``core`` until cancelled; started once it accepts connections.

    ``dials`` maps peers ("role/id") to (host, port) for ``connect``; each is dialled again
    whenever its connection is lost; the core may change whom (``DialPeers``).  For two nodes that
    know each other only one may dial.  ``archive`` is given what is to be archived, and does not
    block.  The listeners are closed at the end, the store is not.
    """
    async with trio.open_nursery() as nursery:
        node = _Node(core, store, connect, clock, limits, archive, nursery)
        nursery.start_soon(node.process)
        nursery.start_soon(node.tick)
        node.dial_peers(dials)
        if listeners:
            await nursery.start(_serve, node, listeners)
        task_status.started()


def redial_seconds(peer: str, attempt: int, limits: NodeLimits = DEFAULT_NODE_LIMITS) -> float:
    """How long to wait before dialling again after ``attempt`` failures in a row (from 1).

    Doubles up to the bound, times a factor in [0.5, 1) that depends on the peer and the attempt
    only: many who lost the same broker do not come back in step, and a test knows the time.
    """
    doubled = limits.redial_seconds_min * 2.0 ** min(attempt - 1, 30)
    jitter = crc32(f"{peer}|{attempt}".encode()) / 2**33
    return min(doubled, limits.redial_seconds_max) * (0.5 + jitter)


async def _let_writers_run() -> None:
    """Connections that were given something to send begin to: they are woken in the next turn of
    the scheduler, in which this task may come before them, but not in the turn after."""
    await trio.lowlevel.checkpoint()
    await trio.lowlevel.checkpoint()


async def _serve(
    node: _Node,
    listeners: Sequence[trio.abc.Listener[trio.abc.Stream]],
    task_status: trio.TaskStatus[object] = trio.TASK_STATUS_IGNORED,
) -> None:
    await trio.serve_listeners(node.accept, list(listeners), task_status=task_status)


@dataclass(slots=True)
class _Dialling:
    """A peer that is dialled again and again until ``scope`` is cancelled."""

    address: tuple[str, int]
    scope: trio.CancelScope
    connected: bool = False


class _Node:
    """The state of one ``run_node``."""

    def __init__(
        self,
        core: Core,
        store: RowStore,
        connect: Connect,
        clock: Callable[[], float],
        limits: NodeLimits,
        archive: Callable[[ArchiveMessage], None] | None,
        nursery: trio.Nursery,
    ) -> None:
        self._archive = archive
        self._core = core
        self._store = store
        self._connect = connect
        self._clock = clock
        self._limits = limits
        self._nursery = nursery
        self._dialling: dict[str, _Dialling] = {}
        self._connections: dict[int, Connection] = {}
        self._accepted = 0
        self._numbers = 0
        self._inbox = EventQueue(limits.inbox_events)

    async def process(self) -> None:
        """The one task that touches the core."""
        unsaved: list[Put | Delete] = []
        ahead: list[Event] = []  # of what the core has asked for itself
        try:
            while True:
                if not ahead:
                    await self._inbox.wait()
                batch: list[Event] = []
                leaving: list[_Leaving] = []
                reads: list[ReadRows] = []
                again: list[Event] = []
                for action in self._handle(ahead, batch):
                    if isinstance(action, Put | Delete):
                        unsaved.append(action)
                    elif isinstance(action, ReadRows):
                        reads.append(action)
                    elif isinstance(action, CallAgain):
                        again = [CalledAgain()]
                    elif not isinstance(action, CallAtEnd):
                        leaving.append(action)
                changes: list[Put | Delete] = []
                if leaving or reads or self._is_due(batch, unsaved):
                    changes, unsaved = unsaved, []
                ahead = []
                if changes or reads:
                    ahead = await trio.to_thread.run_sync(self._commit, changes, reads)
                self._hand_out(leaving)
                ahead += again
                if ahead:
                    await _let_writers_run()
        finally:
            if unsaved:
                self._store.commit(unsaved)

    def _commit(self, changes: list[Put | Delete], reads: list[ReadRows]) -> list[Event]:
        """In a thread: store, then read."""
        if changes:
            self._store.commit(changes)
        return [
            RowsRead(each.space, each.first, self._store.read(each.space, each.first, each.last))
            for each in reads
        ]

    def _handle(self, ahead: list[Event], batch: list[Event]) -> Iterator[Action]:
        """What the core makes of events, and of their end if it asks for that: of those ahead, then
        of others that wait, as many as belong together; ``batch`` has them then."""
        asked = False
        for event in self._together(ahead):
            batch.append(event)
            for action in self._core.handle(event, self._clock()):
                asked |= isinstance(action, CallAtEnd)
                yield action
        if asked:
            yield from self._core.handle(BatchHandled(), self._clock())

    def _together(self, ahead: list[Event]) -> Iterator[Event]:
        """Events that are handled before one commit."""
        began = self._clock()
        yield from ahead
        for _ in range(len(ahead), self._limits.batch_events):
            event = self._inbox.next_nowait()
            if event is None:
                return
            yield event
            if self._clock() - began >= self._limits.batch_seconds:
                return

    def _is_due(self, batch: list[Event], unsaved: list[Put | Delete]) -> bool:
        """Changes that nobody is told about (an acknowledgement came in, a row can go) wait for
        the next commit, at most for a tick: a crash before only makes a peer say it again."""
        return len(unsaved) >= self._limits.unsaved_changes or any(
            isinstance(event, TimePassed) for event in batch
        )

    def _hand_out(self, leaving: list[_Leaving]) -> None:
        for action in leaving:
            if isinstance(action, ArchiveMessage):
                if self._archive is not None:
                    self._archive(action)
                continue
            if isinstance(action, DialPeers):
                self.dial_peers(action.dials)
                continue
            connection = self._connections.get(action.connection)
            if connection is None:
                continue
            if isinstance(action, SendData):
                connection.send_nowait(action.flow, action.data)
            else:
                connection.close_nowait(action.reason)

    async def tick(self) -> None:
        while True:
            await trio.sleep(self._limits.tick_seconds)
            await self._inbox.put(TimePassed())

    async def accept(self, stream: trio.abc.Stream) -> None:
        if self._accepted >= self._limits.connections_max:
            await trio.aclose_forcefully(stream)
            return
        self._accepted += 1
        try:
            await self._run_connection(stream, "")
        finally:
            self._accepted -= 1

    def dial_peers(self, dials: Mapping[str, tuple[str, int]]) -> None:
        """From now on dial these and no others; whoever waits for its next attempt tries now."""
        for peer, dialling in list(self._dialling.items()):
            if dials.get(peer) != dialling.address or not dialling.connected:
                dialling.scope.cancel()
                del self._dialling[peer]
        for peer, address in dials.items():
            if peer not in self._dialling:
                dialling = self._dialling[peer] = _Dialling(address, trio.CancelScope())
                self._nursery.start_soon(self._dial, peer, dialling)

    async def _dial(self, peer: str, dialling: _Dialling) -> None:
        host, port = dialling.address
        attempt = 0
        with dialling.scope:
            while True:
                began = trio.current_time()
                stream = await self._connect(host, port, self._limits.dial_seconds)
                if stream is not None:
                    dialling.connected = True
                    await self._run_connection(stream, peer)
                    dialling.connected = False
                if trio.current_time() - began >= self._limits.redial_seconds_max:
                    attempt = 0
                attempt += 1
                await trio.sleep(redial_seconds(peer, attempt, self._limits))

    async def _run_connection(self, stream: trio.abc.Stream, peer: str) -> None:
        self._numbers += 1
        connection = Connection(self._numbers, stream, self._limits.connection)
        self._connections[connection.number] = connection
        try:
            await self._inbox.put(ConnectionOpened(connection.number, peer))
            await connection.run(self._inbox.put)
        finally:
            del self._connections[connection.number]
