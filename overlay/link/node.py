"""Node: the Trio shell that runs any core against sockets and a store.

::

    accept loops, dial loops, connections, clock
              |  events                                    (bounded inbox: TCP pushes back)
              v
    processing task: a batch of waiting events -> core.handle each      <── RowsRead, CalledAgain ─┐
              |  if CallAtEnd: BatchHandled                                                        |
              v                                                                                    |
    committing task (group_commit.py): Put, Delete: one transaction, in a thread; ReadRows ────────┤
              v                                                                                    |
    SendData, CloseConnection handed to the connections, which write ─── if CallAgain ─────────────┘
    ArchiveMessage, ReadArchive handed to the archive

AskSchemaWorker is handed at once to a process of its own: nobody is told anything by it.

While a commit runs the next batches are handled, which share the next commit.  Nothing of a batch
leaves before everything of it, and of all before it, is on disk, but messages that may leave early;
see ``events``.  An exception of the core or the store ends the node, and nothing of its turn is
committed: it is started again from what was (onyx/node_lives.py).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias
from zlib import crc32

import trio

from overlay.link.credentials import Credentials, CredentialsError
from overlay.link.door import Door, Doorkeeper, counted_address
from overlay.link.early_leaving import Leaving
from overlay.link.event_queue import EventQueue
from overlay.link.events import (
    Action,
    ArchiveMessage,
    ArchiveRead,
    AskSchemaWorker,
    BatchHandled,
    CallAtEnd,
    ConnectionOpened,
    DialPeers,
    Event,
    Failed,
    PeerKnown,
    ReadArchive,
    ReadOn,
    SendData,
    TimePassed,
)
from overlay.link.frame_codec import encode
from overlay.link.frames import ErrorFrame
from overlay.link.group_commit import (
    DEFAULT_COMMIT_LIMITS,
    CommitLimits,
    Group,
    GroupCommit,
    RowStore,
)
from overlay.link.handshake import HandshakeFailed, Secured, secure
from overlay.link.link_io import (
    DEFAULT_CONNECTION_LIMITS,
    Connection,
    ConnectionLimits,
    SendQueues,
)
from overlay.link.principal import NOBODY
from overlay.link.processor_clock import ProcessorClock
from overlay.link.schema_desk import SchemaDesk
from overlay.link.turns import Turns

NOTHING_SAID = "others want to come in, and it has not said who it is"

log = logging.getLogger("onyx.node")


class Core(Protocol):
    """A broker, a registration service: anything that is only events and actions."""

    def handle(self, event: Event, now: float) -> list[Action]:
        """React to one event; ``now`` in seconds of a clock that never goes back."""
        ...


class Archive(Protocol):
    """Where messages go, and come from; ``take`` does not block, ``read`` does, in a thread."""

    def take(self, message: ArchiveMessage) -> None: ...

    def read(self, asked: ReadArchive) -> ArchiveRead: ...


@dataclass(frozen=True, slots=True)
class NodeLimits:
    """inbox_events          events of one connection that may wait; beyond, its reader waits
    batch_events          events handled in one turn
    batch_seconds         or as many as take so long, in processor time; what the core has asked for
                          itself does not count, so that others have their turn besides
    inbox_bytes           of clients that wait to be handled; beyond it they are not read
    send_bytes            that wait to be sent on all connections; beyond it the client with the
                          most is given up
    cautious_turns        in the first so many one event is handled each, so that it is known at
                          which a core falls over
    tick_seconds          between two TimePassed
    dial_seconds          for one attempt to connect
    handshake_seconds     of TLS, on a connection that there is
    revoked_seconds       between two looks whether the certificate of a connection is over
    redial_seconds_min    after the first failure; doubles with each one
    redial_seconds_max    and stays here; a connection that lasted so long starts anew
    """

    inbox_events: int = 16
    batch_events: int = 64
    batch_seconds: float = 0.005
    cautious_turns: int = 0
    inbox_bytes: int = 128 * 1024 * 1024
    send_bytes: int = 512 * 1024 * 1024
    tick_seconds: float = 1.0
    dial_seconds: float = 10.0
    handshake_seconds: float = 10.0
    revoked_seconds: float = 60.0
    redial_seconds_min: float = 0.1
    redial_seconds_max: float = 10.0
    commit: CommitLimits = DEFAULT_COMMIT_LIMITS
    connection: ConnectionLimits = DEFAULT_CONNECTION_LIMITS


DEFAULT_NODE_LIMITS = NodeLimits()

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
    doors: Sequence[Door],
    dials: Mapping[str, tuple[str, int]],
    store: RowStore,
    connect: Connect = open_stream,
    clock: Callable[[], float] = trio.current_time,
    limits: NodeLimits = DEFAULT_NODE_LIMITS,
    archive: Archive | None = None,
    turns: Turns | None = None,
    credentials: Credentials | None = None,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run ``core`` until cancelled; started once it accepts connections.

    ``dials`` maps peers ("role/id") to (host, port) for ``connect``; each is dialled again
    whenever its connection is lost; the core may change whom (``DialPeers``).  For two nodes that
    know each other only one may dial.  ``archive`` is given what is to be archived, and asked;
    ``turns`` is told how long each took.  With ``credentials`` every connection has TLS,
    and the core is told whose it is; they are read again when they have changed, and connections
    whose certificate is revoked or over are closed.  The listeners of the doors are closed
    at the end, the store is not.
    """
    node = _Node(core, store, connect, clock, limits, archive, turns or Turns(), credentials)
    await node.run(doors, dials, task_status)


def redial_seconds(peer: str, attempt: int, limits: NodeLimits = DEFAULT_NODE_LIMITS) -> float:
    """How long to wait before dialling again after ``attempt`` failures in a row (from 1).

    Doubles up to the bound, times a factor in [0.5, 1) that depends on the peer and the attempt
    only: many who lost the same broker do not come back in step, and a test knows the time.
    """
    doubled = limits.redial_seconds_min * 2.0 ** min(attempt - 1, 30)
    jitter = crc32(f"{peer}|{attempt}".encode()) / 2**33
    return min(doubled, limits.redial_seconds_max) * (0.5 + jitter)


async def _forget(event: Event) -> None:
    """Of a connection that no core hears of."""


async def _let_writers_run() -> None:
    """Connections that were given something to send begin to: they are woken in the next turn of
    the scheduler, in which this task may come before them, but not in the turn after."""
    await trio.lowlevel.checkpoint()
    await trio.lowlevel.checkpoint()


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
        archive: Archive | None,
        turns: Turns,
        credentials: Credentials | None,
    ) -> None:
        self._credentials = credentials
        self._archive = archive
        self._core = core
        self._store = store
        self._connect = connect
        self._clock = clock
        self._limits = limits
        self._turns = turns
        self._cautious_turns = limits.cautious_turns
        self._processor = ProcessorClock()
        self._look_again_at = 0.0
        self._looked_with = 0
        self._dialling: dict[str, _Dialling] = {}
        self._connections: dict[int, Connection] = {}
        self._clients: set[int] = set()  # connections that no process of the network is behind
        self._keepers: list[Doorkeeper] = []
        self._shaking: dict[int, trio.CancelScope] = {}  # connections whose handshake goes on
        self._queues = SendQueues()
        self._numbers = 0
        self._inbox = EventQueue(limits.inbox_events, limits.inbox_bytes)
        self._commits = GroupCommit(
            store, self._hand_out, self._inbox.put_ahead_nowait, limits.commit
        )
        self._schemas = SchemaDesk(self._inbox.put_ahead_nowait)
        self._readers = trio.CapacityLimiter(1)  # of the archive
        self._nursery: trio.Nursery

    async def run(
        self,
        doors: Sequence[Door],
        dials: Mapping[str, tuple[str, int]],
        task_status: trio.TaskStatus[None],
    ) -> None:
        """``run_node``."""
        try:
            async with trio.open_nursery() as self._nursery:
                self._nursery.start_soon(self._process)
                self._nursery.start_soon(self._commits.run)
                self._nursery.start_soon(self._schemas.run)
                self._nursery.start_soon(self._tick)
                self._dial_peers(dials)
                for door in doors:
                    await self._nursery.start(self._serve, door)
                task_status.started()
        finally:
            self._commits.save_rest()

    async def _process(self) -> None:
        """The one task that touches the core."""
        while True:
            await self._commits.wait_room()
            await self._inbox.wait()
            if self._inbox.calls_again:
                await _let_writers_run()
            self._take_turn()

    def _take_turn(self) -> None:
        """Handle events that wait, as many as belong together, and their end if the core asks for
        that."""
        batch = Group()
        at_end = is_tick = False
        began = before = self._processor()
        longest, kind = 0.0, ""
        ahead = self._inbox.ahead
        most = self._limits.batch_events
        if self._cautious_turns:
            self._cautious_turns -= 1
            most = 0 if ahead else 1
        until = began + self._limits.batch_seconds
        for handled in range(1, ahead + most + 1):
            event = self._inbox.next_nowait()
            if event is None:
                break
            is_tick |= isinstance(event, TimePassed)
            actions = self._core.handle(event, self._clock())
            for action in actions:
                if isinstance(action, CallAtEnd):
                    at_end = True
                elif isinstance(action, ReadOn):
                    self._inbox.put_back_nowait(action.connection)
                elif isinstance(action, AskSchemaWorker):
                    self._schemas.ask_nowait(action)
            batch.take(actions)
            after = self._processor()
            if after - before > longest:
                longest, kind = after - before, type(event).__name__
            before = after
            if handled == ahead:
                until = after + self._limits.batch_seconds
            elif handled > ahead and after >= until:
                break
        if at_end:
            batch.take(self._core.handle(BatchHandled(bool(self._inbox)), self._clock()))
            if self._processor() - before > longest:
                kind = BatchHandled.__name__
        self._commits.add(batch, self._processor() - began, is_due=is_tick)
        self._turns.note(kind, self._processor() - began, self._clock())

    def _hand_out(self, leaving: list[Leaving]) -> None:
        began = self._processor()
        written: dict[int, Connection] = {}
        for action in leaving:
            if isinstance(action, ArchiveMessage):
                if self._archive is not None:
                    self._archive.take(action)
                continue
            if isinstance(action, DialPeers):
                self._dial_peers(action.dials)
                continue
            if isinstance(action, ReadArchive):
                self._nursery.start_soon(self._read_archive, action)
                continue
            if isinstance(action, Failed):
                log.error("%s: %s\n%s", action.id, action.what, action.trace)
                continue
            connection = self._connections.get(action.connection)
            if connection is None:
                continue
            if isinstance(action, SendData):
                connection.send_nowait(action.flow, action.data)
                written[action.connection] = connection
            elif isinstance(action, PeerKnown):
                connection.is_known = True
                for keeper in self._keepers:
                    keeper.recognise(action.connection)
            else:
                connection.close_nowait(action.reason)
        for connection in written.values():
            connection.flush_nowait()
        if self._queues.bytes > self._limits.send_bytes:
            self._cut_slowest()
        self._turns.note("sending", self._processor() - began, self._clock())

    async def _read_archive(self, asked: ReadArchive) -> None:
        assert self._archive is not None
        page = await trio.to_thread.run_sync(
            self._archive.read, asked, abandon_on_cancel=True, limiter=self._readers
        )
        self._inbox.put_ahead_nowait([page])

    async def _tick(self) -> None:
        while True:
            await trio.sleep(self._limits.tick_seconds)
            await self._inbox.put(TimePassed())
            if self._credentials is not None:
                self._look_after(self._credentials)

    def _look_after(self, credentials: Credentials) -> None:
        """Take new credentials, and close the connections of those whose are over."""
        now = time.time()
        try:
            credentials.refresh()
        except CredentialsError as error:
            log.error("%s; the ones of before stay in use", error)
        if credentials.version == self._looked_with and now < self._look_again_at:
            return
        self._looked_with = credentials.version
        self._look_again_at = now + self._limits.revoked_seconds
        for connection in self._connections.values():
            secured = connection.secured
            if secured is None or secured.principal == NOBODY:
                continue
            if credentials.principal_of(secured.certificate, now) == NOBODY:
                detail = f"the certificate of {secured.principal} is revoked, or over"
                error_frame = ErrorFrame("not-authenticated", detail, fatal=True)
                connection.send_nowait(error_frame.flow, encode(error_frame))
                connection.close_nowait(detail)
                log.warning("a connection is closed: %s", detail)

    def _cut_slowest(self) -> None:
        """Give clients up until what waits to be sent has room; what is for other processes of the
        network is in their journals anyway."""
        clients = [self._connections[number] for number in self._clients]
        for connection in sorted(clients, key=lambda client: client.queued_bytes, reverse=True):
            if self._queues.bytes <= self._limits.send_bytes:
                return
            connection.cut_nowait("too much waits to be sent: the peer is too slow")

    async def _serve(
        self, door: Door, task_status: trio.TaskStatus[object] = trio.TASK_STATUS_IGNORED
    ) -> None:
        keeper = Doorkeeper(door)
        self._keepers.append(keeper)
        accept = partial(self._accept, keeper)
        await trio.serve_listeners(accept, list(door.listeners), task_status=task_status)

    async def _accept(self, keeper: Doorkeeper, stream: trio.abc.Stream) -> None:
        address = counted_address(stream)
        refusal = keeper.refusal(address)
        if not refusal:
            await self._run_connection(stream, "", keeper, address)
        elif keeper.refused < keeper.door.limits.refused_max:
            keeper.refused += 1
            try:
                await self._refuse(stream, refusal)
            finally:
                keeper.refused -= 1
        else:
            await trio.aclose_forcefully(stream)

    async def _refuse(self, stream: trio.abc.Stream, detail: str) -> None:
        """Say why before it is closed."""
        try:
            secured = await self._secure(stream, server_side=True)
        except HandshakeFailed:
            return
        connection = Connection(0, stream, self._limits.connection, secured)
        error = ErrorFrame("too-many-connections", detail, fatal=True)
        connection.send_nowait(error.flow, encode(error))
        connection.close_nowait(detail)
        await connection.run(_forget)

    def _dial_peers(self, dials: Mapping[str, tuple[str, int]]) -> None:
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

    async def _run_connection(
        self,
        stream: trio.abc.Stream,
        peer: str,
        keeper: Doorkeeper | None = None,
        address: str = "",
    ) -> None:
        """``keeper`` of the door by which it came in; without one we have dialled ``peer``."""
        self._numbers += 1
        number = self._numbers
        try:
            if keeper is not None:
                self._give_up(keeper.enter(number, address))
            secured = await self._shake_hands(number, stream, server_side=not peer)
            await self._run_secured(number, stream, peer, secured, keeper)
        except HandshakeFailed as failure:
            if peer:  # who comes and fails is counted, and would fill the log
                log.warning("no TLS with %s: %s", peer, failure)
        finally:
            if keeper is not None:
                keeper.leave(number)

    async def _run_secured(
        self,
        number: int,
        stream: trio.abc.Stream,
        peer: str,
        secured: Secured | None,
        keeper: Doorkeeper | None,
    ) -> None:
        roles = frozenset[str]() if keeper is None else keeper.door.roles
        is_client = keeper is not None and not keeper.door.is_of_links
        connection = self._connections[number] = Connection(
            number,
            stream,
            self._limits.connection,
            secured,
            is_known=not roles,
            has_room=self._inbox.has_room,
            queues=self._queues,
        )
        if is_client:
            self._clients.add(number)
        try:
            await self._inbox.put(ConnectionOpened(number, peer, connection.principal, roles))
            await connection.run(self._inbox.put_of_client if is_client else self._inbox.put)
        finally:
            self._clients.discard(number)
            del self._connections[number]

    async def _shake_hands(
        self, number: int, stream: trio.abc.Stream, *, server_side: bool
    ) -> Secured | None:
        with trio.CancelScope() as scope:
            self._shaking[number] = scope
            try:
                return await self._secure(stream, server_side=server_side)
            finally:
                del self._shaking[number]
        raise HandshakeFailed(NOTHING_SAID, is_final=False)

    def _give_up(self, unknown: int | None) -> None:
        """Of a connection that has to go for another."""
        if unknown in self._shaking:
            self._shaking[unknown].cancel()
        elif unknown in self._connections:
            self._connections[unknown].cut_nowait(NOTHING_SAID)

    async def _secure(self, stream: trio.abc.Stream, *, server_side: bool) -> Secured | None:
        seconds = self._limits.handshake_seconds
        return await secure(stream, self._credentials, server_side=server_side, seconds=seconds)
