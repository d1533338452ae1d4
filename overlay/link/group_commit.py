"""GroupCommit: what batches of events want, committed in a thread while the next one is handled.

::

    batch 1  ─> group ───────────── commit ─> leaves
    batch 2      ─> group ┐                            one commit at a time
    batch 3           ─> group ┴─────────── commit ─> leaves

What leaves does so behind the commit of its own batch and of all before it, in order; but what may
leave early does so at once (early_leaving.py).  Changes
that nobody is told about (an acknowledgement came in, a row can go) wait for the next commit that
is due: a crash before only makes a peer say it again.  What waits is bounded: beyond
``gathered_rows``, ``gathered_bytes`` or ``beside_seconds`` no batch is handled before the commit
that runs is done.  So is it where rows are to be read, which are those that all batches up to then
have left.

Where the disk is full a commit is tried again until there is room: what leaves waits, and with it
whoever sends.  A batch that wants nothing stored or read leaves at once meanwhile, but for a
connection for which something waits: that is how requests are answered by what the core knows.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import trio

from overlay.link.early_leaving import EarlyLeaving, Leaving
from overlay.link.errors import DiskFull
from overlay.link.events import (
    Action,
    AskSchemaWorker,
    CallAgain,
    CallAtEnd,
    CalledAgain,
    CloseConnection,
    Delete,
    Event,
    Put,
    ReadOn,
    ReadRows,
    RowsRead,
    SendData,
    SendResults,
)
from overlay.link.row_store import RowStore
from overlay.link.vitals import Vitals

log = logging.getLogger("onyx.node")


@dataclass(frozen=True, slots=True)
class CommitLimits:
    """unsaved_rows     changes nobody was told about that may wait for the next commit
    gathered_rows    changes that are gathered while a commit runs; beyond, no batch is handled
    gathered_bytes   bytes of changes and of what leaves behind them, likewise
    beside_seconds   of processor time in which batches are handled while a commit runs, likewise:
                     the commit needs the interpreter too, a dozen times, and may have to wait each
                     time until compiled code has come to its end
    full_seconds     between two tries of a commit where the disk is full
    """

    unsaved_rows: int = 1024
    gathered_rows: int = 4096
    gathered_bytes: int = 16 * 1024 * 1024
    beside_seconds: float = 0.01
    full_seconds: float = 1.0


DEFAULT_COMMIT_LIMITS = CommitLimits()


@dataclass(slots=True)
class Group:
    """What one batch wants, or several that are committed together; ``bytes`` of it all.  ``held``:
    the connections for which something waits for the commit; ``began``: when its first event was
    taken up."""

    changes: list[Put | Delete] = field(default_factory=list)
    leaving: list[Leaving] = field(default_factory=list)
    reads: list[ReadRows] = field(default_factory=list)
    calls_again: bool = False
    has_early: bool = False
    held: set[int] = field(default_factory=set)
    bytes: int = 0
    began: float = math.inf

    def take(self, actions: Iterable[Action]) -> None:
        """Actions of one call more."""
        for action in actions:
            if isinstance(action, Put):
                self.changes.append(action)
                self.bytes += len(action.value)
            elif isinstance(action, Delete):
                self.changes.append(action)
            elif isinstance(action, ReadRows):
                self.reads.append(action)
            elif isinstance(action, CallAgain):
                self.calls_again = True
            elif not isinstance(action, CallAtEnd | ReadOn | AskSchemaWorker):
                self.leaving.append(action)
                if isinstance(action, SendData):
                    self.bytes += len(action.data)
                    if action.is_early:
                        self.has_early = True
                    else:
                        self.held.add(action.connection)
                elif isinstance(action, SendResults):
                    self.bytes += action.size
                    self.held.update(connection for connection, _, _ in action.frames)
                elif isinstance(action, CloseConnection):
                    self.held.add(action.connection)

    def join(self, batch: Group) -> None:
        self.changes += batch.changes
        self.leaving += batch.leaving
        self.reads += batch.reads
        self.held |= batch.held
        self.bytes += batch.bytes
        self.began = min(self.began, batch.began)


class GroupCommit:
    """``add`` batches in the order in which they were handled; ``run`` commits them."""

    def __init__(
        self,
        store: RowStore,
        hand_out: Callable[[list[Leaving]], None],
        tell: Callable[[list[Event]], None],
        vitals: Vitals,
        clock: Callable[[], float],
        tell_disk: Callable[[], None],
        limits: CommitLimits = DEFAULT_COMMIT_LIMITS,
    ) -> None:
        """``hand_out`` gets what leaves, ``tell`` answers to ReadRows and CallAgain; ``vitals`` are
        measured by ``clock``; ``tell_disk`` is called when ``disk_is_full`` has changed."""
        self.disk_is_full = False
        self._tell_disk = tell_disk
        self._store = store
        self._hand_out = hand_out
        self._tell = tell
        self._vitals = vitals
        self._clock = clock
        self._limits = limits
        self._gathered = Group()
        self._is_due = False
        self._under_way: Group | None = None
        self._beside = 0.0  # seconds of batches while it was
        self._is_lost = False  # nothing may be stored behind a commit that failed
        self._early = EarlyLeaving()
        self._due = trio.Event()
        self._room = trio.Event()

    def add(self, batch: Group, seconds: float = 0.0, *, is_due: bool = False) -> None:
        """A batch that was handled, the whole of it, in so many seconds of processor time;
        ``is_due``: changes that nobody is told about have waited for long enough."""
        gathered = self._gathered
        self._beside += seconds
        if batch.has_early:
            self._let_early(batch)
        if self.disk_is_full and self._passes(batch):
            self._let_go(batch)
        else:
            gathered.join(batch)
        limits = self._limits
        self._is_due |= (
            bool(gathered.leaving or gathered.reads or batch.has_early)
            or (is_due and bool(gathered.changes))
            or len(gathered.changes) >= limits.unsaved_rows
            or gathered.bytes >= limits.gathered_bytes
        )
        if self._is_due and self._under_way is None and not (gathered.changes or gathered.reads):
            self._gathered, self._is_due = Group(), False
            self._let_go(gathered)
        if self._is_due:
            self._due.set()
        if batch.calls_again:
            self._call_again()

    async def wait_room(self) -> None:
        """Until one more batch may be handled."""
        while self._is_full():
            self._room = trio.Event()
            await self._room.wait()

    async def run(self) -> None:
        """Commit, and let leave what waits for that; an error of the store ends it."""
        while True:
            while not self._is_due:
                self._due = trio.Event()
                await self._due.wait()
            group = self._under_way = self._gathered
            self._gathered, self._is_due = Group(), False
            self._early.committing()
            self._beside = 0.0
            self._room.set()
            told: list[Event] = []
            if group.changes or group.reads:
                began = self._clock()
                told = await self._carried_out(group)
                self._vitals.commits.note(self._clock() - began)
            self._under_way = None
            self._early.committed()
            self._let_go(group)
            if group.calls_again:
                told.append(CalledAgain())
            self._tell(told)
            self._room.set()

    def save_rest(self) -> None:
        """At the end, when ``run`` has ended: what was handled and nobody was told about."""
        if not self._is_lost:
            waiting = [] if self._under_way is None else self._under_way.changes
            waiting += self._gathered.changes
            if waiting:
                try:
                    self._store.commit(waiting)
                except DiskFull as error:
                    log.error("%s; what nobody was told about is not stored", error)

    def _let_go(self, group: Group) -> None:
        self._hand_out(group.leaving)
        if group.leaving:
            self._vitals.answers.note(self._clock() - group.began)

    def _passes(self, batch: Group) -> bool:
        """Whether it may leave ahead of what waits."""
        is_stored = batch.changes or batch.reads
        return not is_stored and batch.held.isdisjoint(self._held())

    def _held(self) -> set[int]:
        """The connections for which something waits."""
        under_way = self._under_way
        return self._gathered.held | (set() if under_way is None else under_way.held)

    def _let_early(self, batch: Group) -> None:
        batch.held |= self._held()
        early, batch.leaving = self._early.split(batch.leaving, batch.held)
        self._hand_out(early)
        if early:
            self._vitals.hops.note(self._clock() - batch.began)

    def _call_again(self) -> None:
        """Once what leaves has left: with this group, or with the one whose commit runs, or now."""
        if self._is_due:
            self._gathered.calls_again = True
        elif self._under_way is None or not self._under_way.calls_again:
            self._tell([CalledAgain()])

    def _is_full(self) -> bool:
        under_way, gathered = self._under_way, self._gathered
        limits = self._limits
        if self.disk_is_full:  # what askers add to what waited already
            rows, size = len(gathered.changes), gathered.bytes
            return rows >= 2 * limits.gathered_rows or size >= 2 * limits.gathered_bytes
        if gathered.reads:
            return True
        if under_way is not None and (under_way.reads or self._beside >= limits.beside_seconds):
            return True
        return self._is_due and (
            len(gathered.changes) + len(gathered.leaving) >= limits.gathered_rows
            or gathered.bytes >= limits.gathered_bytes
        )

    async def _carried_out(self, group: Group) -> list[Event]:
        while True:
            try:
                told = await trio.to_thread.run_sync(self._carry_out, group)
            except DiskFull as error:
                self._is_lost = False
                if not self.disk_is_full:
                    log.error("%s: all but requests that change nothing waits for room", error)
                    self._note_disk(is_full=True)
                await trio.sleep(self._limits.full_seconds)
                continue
            if self.disk_is_full:
                log.warning("there is room on the disk again")
                self._note_disk(is_full=False)
            return told

    def _note_disk(self, *, is_full: bool) -> None:
        self.disk_is_full = is_full
        self._tell_disk()
        self._room.set()

    def _carry_out(self, group: Group) -> list[Event]:
        """In a thread: store, then read."""
        self._is_lost = True
        if group.changes:
            self._store.commit(group.changes)
        told: list[Event] = []
        for each in group.reads:
            rows = self._store.read(each.space, each.first, each.last)
            told.append(RowsRead(each.space, each.first, rows, each.last))
        group.changes = []
        self._is_lost = False
        return told
