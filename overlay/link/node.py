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
    ArchiveMessage, ReadArchive handed to the archive, AskEvaluation and AskDesk to processes
    of their own

AskSchemaWorker is handed at once to a process of its own: nobody is told anything by it.
CallLater becomes CalledLater, one more event, when its time has come.

While a commit runs the next batches are handled, which share the next commit.  Nothing of a batch
leaves before everything of it, and of all before it, is on disk, but messages that may leave early;
see ``events``.  An exception of the core or the store ends the node, and nothing of its turn is
committed: it is started again from what was (onyx/node_process.py).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Protocol

import trio

from formats.schema import Schema
from formats.schema_questions import CheckMessages, MessagesChecked, ReadMessage
from formats.schema_worker import SchemaWorker
from overlay.archive import ArchiveOptions
from overlay.link.connections import Connect, Connections, open_stream
from overlay.link.credentials import Credentials
from overlay.link.disk_reserve import DiskReserve
from overlay.link.door import Door
from overlay.link.early_leaving import Leaving
from overlay.link.event_queue import PIECES_MAX, EventQueue
from overlay.link.events import (
    Action,
    ArchiveMessage,
    ArchiveRead,
    AskDesk,
    AskEvaluation,
    AskSchemaWorker,
    BatchHandled,
    CallAtEnd,
    CalledLater,
    CallLater,
    DeskAnswered,
    DialPeers,
    DiskRoom,
    Evaluated,
    Event,
    Failed,
    Flow,
    PeerKnown,
    ReadArchive,
    ReadOn,
    SchemaAnswered,
    SendData,
    SendResults,
    TakeSettings,
    TimePassed,
)
from overlay.link.group_commit import Group, GroupCommit
from overlay.link.link_io import Connection
from overlay.link.node_limits import DEFAULT_NODE_LIMITS, NodeLimits
from overlay.link.open_files import allow_connections
from overlay.link.processor_clock import ProcessorClock
from overlay.link.row_store import RowStore
from overlay.link.vitals import Vitals
from overlay.nodes import Addresses

# -------------------------------------------------------------------------------------------------
# EvaluationDesk: profiles that take long, evaluated one after the other by a process of its own.
#
# Nobody waits for it: a core is told with an event.


class EvaluationDesk:
    """``ask_nowait``; ``run`` answers through ``tell``."""

    def __init__(self, tell: Callable[[list[Event]], None]) -> None:
        self._tell = tell
        self._put, self._asked = trio.open_memory_channel[AskEvaluation](inf)

    def ask_nowait(self, action: AskEvaluation) -> None:
        self._put.send_nowait(action)

    async def run(self) -> None:
        """Until cancelled; the process is started when there is something to ask."""
        # PERF: here, as whoever evaluates nothing loads no engine.
        from yfilter.late_questions import LateWorker  # noqa: PLC0415

        worker = LateWorker()
        try:
            async for asked in self._asked:
                found = await trio.to_thread.run_sync(
                    worker.ask, asked.question, abandon_on_cancel=True
                )
                self._tell([Evaluated(asked.key, found)])
        finally:
            worker.close()


# -------------------------------------------------------------------------------------------------
# SchemaDesk: what cores ask about schemas, answered one after the other by a process of its own.
#
# Nobody waits for it: a core is told with an event.  A schema by which a message took more than
# SLOW_SECONDS is asked about in another process, for so long, with the others that are as slow:
# whose messages are quick waits for those once.  Large messages are read there, too.


SLOW_SECONDS = 0.1  # of processor time, of one question
SLOW_FOR = 60.0


class SchemaDesk:
    """``ask_nowait``; ``run`` answers through ``tell``."""

    def __init__(self, tell: Callable[[list[Event]], None]) -> None:
        self._tell = tell
        self._slow: dict[Schema, float] = {}  # until when
        # Of those that are not, and that are; each has a process.
        self._quick, self._quick_asked = trio.open_memory_channel[AskSchemaWorker](inf)
        self._held_up, self._held_up_asked = trio.open_memory_channel[AskSchemaWorker](inf)

    def ask_nowait(self, action: AskSchemaWorker) -> None:
        question = action.question
        is_slow = isinstance(question, ReadMessage) or (
            isinstance(question, CheckMessages)
            and self._slow.get(question.schema, 0.0) > trio.current_time()
        )
        (self._held_up if is_slow else self._quick).send_nowait(action)

    async def run(self) -> None:
        """Until cancelled; a process is started when there is something to ask."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._answer, self._quick_asked)
            nursery.start_soon(self._answer, self._held_up_asked)

    async def _answer(self, lane: trio.MemoryReceiveChannel[AskSchemaWorker]) -> None:
        worker = SchemaWorker()
        try:
            async for asked in lane:
                found = await trio.to_thread.run_sync(
                    worker.ask, asked.question, abandon_on_cancel=True
                )
                if isinstance(found, MessagesChecked) and found.seconds > SLOW_SECONDS:
                    assert isinstance(asked.question, CheckMessages)
                    self._note_slow(asked.question.schema)
                self._tell([SchemaAnswered(asked.key, found)])
        finally:
            worker.close()

    def _note_slow(self, schema: Schema) -> None:
        now = trio.current_time()
        self._slow = {other: until for other, until in self._slow.items() if until > now}
        self._slow[schema] = now + SLOW_FOR


# -------------------------------------------------------------------------------------------------


log = logging.getLogger("onyx.node")


class Core(Protocol):
    """A broker, a registration service: anything that is only events and actions."""

    def handle(self, event: Event, now: float) -> list[Action]:
        """React to one event; ``now`` in seconds of a clock that never goes back."""


class Archive(Protocol):
    """Where messages go, and come from; ``take`` does not block, ``read`` does, in a thread."""

    def take(self, message: ArchiveMessage) -> None: ...

    def read(self, asked: ReadArchive) -> ArchiveRead: ...

    def take_options(self, options: ArchiveOptions) -> None: ...


class Desk(Protocol):
    """Answers by processes of its own; until cancelled."""

    async def answer(self, question: object) -> object: ...


async def run_node(
    core: Core,
    *,
    doors: Sequence[Door],
    dials: Mapping[str, Addresses],
    store: RowStore,
    connect: Connect = open_stream,
    clock: Callable[[], float] = trio.current_time,
    limits: NodeLimits = DEFAULT_NODE_LIMITS,
    archive: Archive | None = None,
    vitals: Vitals | None = None,
    credentials: Credentials | None = None,
    reserve: DiskReserve | None = None,
    desk: Desk | None = None,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run ``core`` until cancelled; started once it accepts connections.

    ``dials`` maps peers ("role/id") to addresses for ``connect``; each is dialled again
    whenever its connection is lost; the core may change whom (``DialPeers``).  For two nodes that
    know each other only one may dial.  ``archive`` is given what is to be archived, and asked,
    ``desk`` is asked what takes a process of its own;
    ``vitals`` are told how long things took.  With ``credentials`` every connection has TLS,
    and the core is told whose it is; they are read again when they have changed, and connections
    whose certificate is revoked or over are closed.  The core is told when the disk has less free
    than the ``reserve``.  The listeners of the doors are closed
    at the end, the store is not.
    """
    shown = credentials, reserve, desk
    node = _Node(core, store, connect, clock, limits, archive, vitals or Vitals(), *shown)
    await node.run(doors, dials, task_status)


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
        vitals: Vitals,
        credentials: Credentials | None,
        reserve: DiskReserve | None,
        desk: Desk | None,
    ) -> None:
        self._archive = archive
        self._desk = desk
        self._core = core
        self._reserve = reserve
        self._clock = clock
        self._limits = limits
        self._turns = vitals.turns
        self._vitals = vitals
        self._cautious_turns = limits.cautious_turns
        self._processor = ProcessorClock()
        self._inbox = EventQueue(self._pause, self._resume)
        self._connections = Connections(self._inbox, connect, limits, credentials)
        self._commits = GroupCommit(
            *(store, self._hand_out, self._inbox.put_ahead_nowait, vitals, clock),
            *(self._tell_disk, limits.commit),
        )
        self._schemas = SchemaDesk(self._inbox.put_ahead_nowait)
        self._readers = trio.CapacityLimiter(1)  # of the archive
        self._evaluations = EvaluationDesk(self._inbox.put_ahead_nowait)
        self._nursery: trio.Nursery

    async def run(
        self,
        doors: Sequence[Door],
        dials: Mapping[str, Addresses],
        task_status: trio.TaskStatus[None],
    ) -> None:
        """``run_node``."""
        try:
            async with trio.open_nursery() as self._nursery:
                self._nursery.start_soon(self._process)
                self._nursery.start_soon(self._commits.run)
                self._nursery.start_soon(self._schemas.run)
                self._nursery.start_soon(self._evaluations.run)
                self._nursery.start_soon(self._tick)
                await self._nursery.start(self._connections.run, doors, dials)
                task_status.started()
        finally:
            self._commits.save_rest()

    async def _process(self) -> None:
        """The one task that touches the core."""
        while True:
            await self._commits.wait_room()
            await self._inbox.wait()
            self._take_turn()

    def _take_turn(self) -> None:
        """Handle events that wait, as many as belong together, and their end if the core asks for
        that."""
        batch = Group(began=self._clock())
        at_end = is_tick = False
        began = before = self._processor()
        longest, kind = 0.0, ""
        ahead = self._inbox.ahead
        most, pieces_max = self._limits.batch_events, PIECES_MAX
        self._inbox.is_for_askers = self._commits.disk_is_full
        if self._cautious_turns or self._inbox.is_for_askers:
            self._cautious_turns -= bool(self._cautious_turns)
            most, pieces_max = 0 if ahead else 1, 1
        until = began + self._limits.batch_seconds
        for handled in range(1, ahead + most + 1):
            event = self._inbox.next_nowait(pieces_max)
            if event is None:
                break
            is_tick |= isinstance(event, TimePassed)
            actions = self._core.handle(event, self._clock())
            for action in actions:
                if isinstance(action, CallAtEnd):
                    at_end = True
                elif isinstance(action, ReadOn):
                    self._inbox.put_back_nowait(action.connection)
                elif isinstance(action, PeerKnown):
                    self._inbox.recognise(action.connection, action.role)
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
        here = self._connections.here
        written: dict[int, Connection] = {}
        for action in leaving:
            if isinstance(action, SendResults):
                for number, head, body in action.frames:
                    connection = here.get(number)
                    if connection is not None:
                        connection.send_nowait(Flow.MESSAGE, head, body)
                        written[number] = connection
                continue
            if isinstance(action, ArchiveMessage):
                if self._archive is not None:
                    self._archive.take(action)
                continue
            if isinstance(action, DialPeers):
                self._connections.dial(action.dials)
                continue
            if isinstance(action, TakeSettings):
                self._take_settings(action)
                continue
            if isinstance(action, ReadArchive):
                self._nursery.start_soon(self._read_archive, action)
                continue
            if isinstance(action, CallLater):
                self._nursery.start_soon(self._call_later, action.seconds)
                continue
            if isinstance(action, AskEvaluation):
                self._evaluations.ask_nowait(action)
                continue
            if isinstance(action, AskDesk):
                self._nursery.start_soon(self._ask_desk, action)
                continue
            if isinstance(action, Failed):
                log.error("%s: %s\n%s", action.id, action.what, action.trace)
                continue
            connection = here.get(action.connection)
            if connection is None:
                continue
            if isinstance(action, SendData):
                connection.send_nowait(action.flow, action.data)
                written[action.connection] = connection
            elif isinstance(action, PeerKnown):
                self._connections.recognise(connection, action.connection)
            else:
                connection.close_nowait(action.reason)
        for connection in written.values():
            connection.flush_nowait()
        self._connections.cut_slowest()
        self._turns.note("sending", self._processor() - began, self._clock())

    def _pause(self, connection: int) -> None:
        self._connections.pause(connection)

    def _resume(self, connection: int) -> None:
        self._connections.resume(connection)

    def _take_settings(self, action: TakeSettings) -> None:
        log.info("in force from now on: %s", ", ".join(action.taken))
        self._vitals.tell_settings(action.topology)
        limits = action.topology.limits
        if self._reserve is not None:
            self._reserve.reserve = limits.disk_reserve_bytes
        if self._archive is not None:
            self._archive.take_options(action.topology.archive)
        brokers = len(action.topology.brokers)
        self._connections.bound(limits, allow_connections(limits, brokers, gives_way=True))

    async def _call_later(self, seconds: float) -> None:
        await trio.sleep(seconds)
        self._inbox.put_nowait(CalledLater())

    async def _read_archive(self, asked: ReadArchive) -> None:
        assert self._archive is not None
        page = await trio.to_thread.run_sync(
            self._archive.read, asked, abandon_on_cancel=True, limiter=self._readers
        )
        self._inbox.put_ahead_nowait([page])

    async def _ask_desk(self, asked: AskDesk) -> None:
        assert self._desk is not None
        answer = await self._desk.answer(asked.question)
        self._inbox.put_ahead_nowait([DeskAnswered(asked.key, answer)])

    async def _tick(self) -> None:
        while True:
            if self._reserve is not None and self._reserve.look():
                self._say_room(self._reserve)
            await trio.sleep(self._limits.tick_seconds)
            if not self._commits.disk_is_full:
                self._inbox.put_nowait(TimePassed())
            self._connections.look_after()

    def _say_room(self, reserve: DiskReserve) -> None:
        free = f"{reserve.free:,} bytes are free on the disk"
        if reserve.is_short:
            log.error(
                "%s, less than the reserve: nothing new is taken (disk-full)",
                free,
            )
        else:
            log.warning("%s, enough to go on", free)
        self._tell_disk()

    def _tell_disk(self) -> None:
        is_full = self._commits.disk_is_full
        is_short = is_full or (self._reserve is not None and self._reserve.is_short)
        self._inbox.put_ahead_nowait([DiskRoom(is_short, is_full)])
