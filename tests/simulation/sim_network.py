"""A network in one thread: the real cores over a simulated transport, clock and disks.

Everything that can go wrong between processes goes wrong here, as the seed says: connections
break with bytes in flight, or carry one way only; dialling fails for a while; processes die between
any two of *handle*, *commit* and *send* and come back with what their disk had (sim_disk.py), or
stand still, are replaced by their standby or nobody, and go on where they were.  Time is a number
in a heap: minutes take milliseconds, and a failing seed replays exactly.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import count
from random import Random
from typing import Protocol

from formats.schema_questions import answer
from overlay.link.dead_letters import keep_aside
from overlay.link.early_leaving import EarlyLeaving, Leaving
from overlay.link.errors import DiskFull, Fenced, StoreError
from overlay.link.events import (
    Action,
    ArchiveMessage,
    AskEvaluation,
    AskSchemaWorker,
    BatchHandled,
    CallAgain,
    CallAtEnd,
    CalledAgain,
    CloseConnection,
    ConnectionLost,
    ConnectionOpened,
    DataReceived,
    Delete,
    DialPeers,
    Evaluated,
    Event,
    Put,
    ReadOn,
    ReadRows,
    RowsRead,
    SchemaAnswered,
    SendData,
    TimePassed,
    singly,
)
from overlay.link.lost_stores import STORE_LOST
from overlay.link.suspect import CoreFailed
from tests.simulation.sim_disk import Disk, MemoryDisk, PowerCut, Row
from yfilter.late_evaluation import evaluate_profile

Rows = Iterable[Row]
RENEWED = 0.2  # the chance, each second, that a process finds that it cannot renew its lease


class Core(Protocol):
    def handle(self, event: Event, now: float) -> list[Action]: ...


class SimLease:
    """Of a node's disk: the epoch of the process that has it."""

    epoch = 0


class SimNode:
    """One process: a core while it is up, and a disk that outlives it."""

    def __init__(
        self, peer: str, start: Callable[[Rows, str], Core], dials: Iterable[str], disk: Disk
    ) -> None:
        self.peer = peer
        self.start = start
        self.dials = tuple(dials)
        self.core: Core | None = None
        self.life = 0  # counts starts; what an earlier life had under way is void
        self.disk = disk
        self.lease = SimLease()
        self.epoch = 0
        self.asleep: list[Callable[[], None]] | None = None  # what it does when it goes on
        self.inbox: list[Event] = []
        self.busy = False
        self.unsaved: list[Action] = []  # what was handled and is not being committed yet
        self.is_due = False  # somebody is to be told
        self.committing: list[Action] | None = None
        self.early = EarlyLeaving()
        self.dialled: set[str] = set()  # peers that a dialled connection exists to

    @property
    def is_over(self) -> bool:
        """Whether another process has its disk."""
        return self.epoch != self.lease.epoch


class SimConnection:
    """Two ends; an end is (node, connection number at that node)."""

    def __init__(self, ends: list[tuple[SimNode, int]], dialled: str) -> None:
        self.ends = ends
        self.dialled = dialled
        self.open = [True, True]
        self.last_arrival = [0.0, 0.0]  # inf: nothing comes at this end any more


class SimNetwork:
    """Nodes, connections, time and faults."""

    def __init__(
        self, seed: int, new_disk: Callable[[str], Disk] = lambda peer: MemoryDisk()
    ) -> None:
        """``new_disk`` of a peer that is added."""
        self.random = Random(seed)
        self._new_disk = new_disk
        self.now = 0.0
        self.nodes: dict[str, SimNode] = {}
        self.faulty = True
        self.may_crash: list[str] = []
        self.broken: set[frozenset[str]] = set()  # pairs of peers between which nothing goes
        self.archived: list[ArchiveMessage] = []  # by all processes that ever were
        self.crashes = 0
        self.early = 0  # frames that left ahead of their commit
        self.early_deaths = 0.0  # how often a process dies right after that
        self.left_early = ""  # whose was the last
        self.cuts = 0
        self.fallen = 0  # nodes over an input
        self.has_standbys = False
        self.told: Counter[str] = Counter()  # what processes said of their stores
        self.fenced: Counter[str] = Counter()  # processes that were over, by how they noticed
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._numbers = count(1)
        self._connections: dict[tuple[str, int], tuple[SimConnection, int]] = {}

    # --- time ---------------------------------------------------------------------------------

    def after(self, delay: float, call: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (self.now + delay, next(self._order), call))

    def run_until(self, condition: Callable[[], bool], time_max: float) -> bool:
        """Let time pass until the condition holds; False when ``time_max`` seconds were not
        enough."""
        end = self.now + time_max
        while not condition():
            if not self._queue or self._queue[0][0] > end:
                return condition()
            self.now, _, call = heapq.heappop(self._queue)
            call()
        return True

    # --- nodes --------------------------------------------------------------------------------

    def add(
        self, peer: str, start: Callable[[Rows, str], Core], dials: Iterable[str] = ()
    ) -> SimNode:
        node = self.nodes[peer] = SimNode(peer, start, dials, self._new_disk(peer))
        self.after(self.random.uniform(0, 0.5), lambda: self.boot(node))
        return node

    def remove(self, peer: str) -> None:
        """A process ends, with its disk."""
        node = self.nodes.pop(peer)
        self.crash(node, 0.0)

    def boot(self, node: SimNode) -> None:
        if self.nodes.get(node.peer) is not node:
            return
        assert node.core is None, f"{node.peer} runs"
        node.life += 1
        if self.has_standbys:
            node.epoch = node.lease.epoch = node.lease.epoch + 1
        try:
            node.core = node.start(node.disk.open(), f"{node.peer}#{node.life}")
        except StoreError as error:
            self._tell(node, error)
            self.after(self.random.uniform(1.0, 5.0), lambda: self.boot(node))
            return
        self._tick(node, node.life)
        for peer in node.dials:
            self._dial(node, node.life, peer)

    def dial_instead(self, node: SimNode, peer: str) -> None:
        """From now on a process connects to another peer than before."""
        if node.dials != (peer,):
            node.dials = (peer,)
            self._dial(node, node.life, peer)

    def crash(self, node: SimNode, downtime: float) -> None:
        """Kill a process now; what it had not committed never was."""
        if node.core is None:
            return
        self.crashes += 1
        node.core = None
        node.life += 1
        node.disk.end()
        node.inbox.clear()
        node.unsaved = []
        node.is_due = False
        node.committing = None
        node.early = EarlyLeaving()
        node.busy = False
        for (peer, number), (connection, end) in list(self._connections.items()):
            if connection.ends[end][0] is node:
                self._cut(connection, end)
                self._connections.pop((peer, number), None)
        node.dialled.clear()
        self.after(downtime, lambda: self.boot(node))

    def take_over(self, node: SimNode, sleep: float, wait: float) -> None:
        """A process stands still for a time; its standby is the node after so long."""
        if not self.pause(node, sleep):
            return
        standby = SimNode(node.peer, node.start, node.dials, node.disk)
        standby.lease, standby.life = node.lease, node.life
        life = node.life

        def take() -> None:
            if node.life == life and self.nodes.get(node.peer) is node:
                self.nodes[node.peer] = standby
                self.boot(standby)

        self.after(wait, take)

    def pause(self, node: SimNode, seconds: float) -> bool:
        """A process stands still for a time; False if it does already, or is down."""
        if node.core is None or node.asleep is not None:
            return False
        node.asleep = []
        self.after(seconds, lambda: self._wake_up(node))
        return True

    def _wake_up(self, node: SimNode) -> None:
        missed, node.asleep = node.asleep or [], None
        for call in missed:
            call()

    def _do(self, node: SimNode, delay: float, call: Callable[[], None]) -> None:
        """After a time, or when it goes on."""

        def do() -> None:
            if node.asleep is None:
                call()
            else:
                node.asleep.append(do)

        self.after(delay, do)

    def _fence(self, node: SimNode, how: str) -> None:
        self.fenced[how] += 1
        self.crash(node, 0.0)

    def tell(self, node: SimNode, event: Event) -> None:
        last = node.inbox[-1] if node.inbox else None
        if (
            isinstance(event, DataReceived)
            and isinstance(last, DataReceived)
            and last.connection == event.connection
        ):  # bytes that wait together are read together
            node.inbox[-1] = DataReceived(event.connection, last.data + event.data)
        else:
            node.inbox.append(event)
        self._wake(node)

    def _wake(self, node: SimNode) -> None:
        """Handle what waits, but for rows that are being read."""
        if node.inbox and not (node.busy or _reads(node.unsaved) or _reads(node.committing)):
            node.busy = True
            life = node.life
            self._do(node, self.random.uniform(0, 0.01), lambda: self._process(node, life))

    def _tick(self, node: SimNode, life: int) -> None:
        if node.life == life:
            if node.is_over and self.random.random() < RENEWED:
                self._fence(node, "renewal")
                return
            self.tell(node, TimePassed())
            self._do(node, 1.0, lambda: self._tick(node, life))

    def _process(self, node: SimNode, life: int) -> None:
        """Handle a batch; then commit it, then send: three moments a crash can fall between.

        While a commit runs batches are handled, which share the next one.  Changes that nobody is
        told about may wait for a later commit.  Both are as in production.
        """
        if node.life != life or node.core is None:
            return
        size = self.random.randint(1, max(1, len(node.inbox)))
        if node.inbox and isinstance(node.inbox[0], CalledAgain):
            size = 1
        batch, node.inbox = node.inbox[:size], node.inbox[size:]
        try:
            actions = self._handle(node.core, batch, node.inbox)
        except CoreFailed as failure:
            self._fall(node, failure)
            return
        except Fenced:
            self._fence(node, "told")
            return
        except StoreError as error:
            self._fail(node, error)
            return
        node.busy = False
        node.is_due |= self.random.random() < 0.3 or any(
            isinstance(action, SendData | CloseConnection | DialPeers | ReadRows)
            for action in actions
        )
        for action in actions:
            if isinstance(action, AskSchemaWorker):
                self._ask(node, life, action)
        actions = self._let_early(node, actions)
        node.unsaved += [
            action for action in actions if node.is_due or not isinstance(action, CallAgain)
        ]
        if not node.is_due and any(isinstance(action, CallAgain) for action in actions):
            self._call_again(node)
        if node.is_due and node.committing is None:
            self._begin_commit(node)
        self._wake(node)

    def _handle(self, core: Core, batch: list[Event], inbox: list[Event]) -> list[Action]:
        actions: list[Action] = []
        while batch:
            new = singly(core.handle(batch.pop(0), self.now))
            actions += new
            for action in new:
                if isinstance(action, ReadOn):
                    _read_on(batch, inbox, action.connection)
        if any(isinstance(action, CallAtEnd) for action in actions):
            actions += singly(core.handle(BatchHandled(bool(inbox)), self.now))
        return actions

    def _fall(self, node: SimNode, failure: CoreFailed) -> None:
        """The input is kept aside, in a commit of its own, and the node begins anew."""
        if failure.suspect is None:
            raise failure
        self.fallen += 1
        keep_aside(node.disk, failure.suspect, failure.__cause__ or failure, 0.0)
        self.crash(node, self.random.uniform(0.1, 1.0))

    def _fail(self, node: SimNode, error: StoreError) -> None:
        """A process ends with what it says of its store."""
        self.crash(node, self.random.uniform(1.0, 5.0))
        self._tell(node, error)

    def _tell(self, node: SimNode, error: StoreError) -> None:
        """Somebody reads it, and does what has to be done before the process is started again."""
        self.told[STORE_LOST if STORE_LOST in str(error) else "damaged"] += 1
        node.disk.put_back()

    def _let_early(self, node: SimNode, actions: list[Action]) -> list[Action]:
        """What may leave ahead of the commit does, as in production; returns the rest."""
        leaving = [action for action in actions if isinstance(action, Leaving)]
        held = {
            action.connection
            for action in (*node.unsaved, *(node.committing or ()), *leaving)
            if isinstance(action, CloseConnection)
            or (isinstance(action, SendData) and (not action.is_early or action not in leaving))
        }
        early, behind = node.early.split(leaving, held)
        for action in early:
            assert isinstance(action, SendData)
            self.early += 1
            self.left_early = node.peer
            self._transmit(node, action.connection, action.data)
        if early and self.early_deaths and self.random.random() < self.early_deaths * self.faulty:
            life, downtime = node.life, self.random.uniform(0.05, 1.0)
            self.after(0.0, lambda: node.life == life and self.crash(node, downtime))
        return [action for action in actions if not isinstance(action, Leaving)] + behind

    def _begin_commit(self, node: SimNode) -> None:
        actions = node.committing = node.unsaved
        node.unsaved, node.is_due = [], False
        node.early.committing()
        life = node.life
        self._do(node, self.random.uniform(0, 0.02), lambda: self._commit(node, life, actions))

    def _commit(self, node: SimNode, life: int, actions: list[Action]) -> None:
        if node.life != life:
            return
        if node.is_over and any(isinstance(action, Put | Delete | ReadRows) for action in actions):
            self._fence(node, "commit")
            return
        changes = [action for action in actions if isinstance(action, Put | Delete)]
        try:
            node.disk.commit(changes)
        except PowerCut:
            self.crash(node, self.random.uniform(0.05, 3.0))
            return
        except DiskFull:
            self._do(node, 1.0, lambda: self._commit(node, life, actions))
            return
        except StoreError:  # the next process makes the store anew, of what is there
            self.crash(node, self.random.uniform(0.05, 3.0))
            return
        node.early.committed()
        self._do(node, self.random.uniform(0, 0.005), lambda: self._send(node, life, actions))

    def _send(self, node: SimNode, life: int, actions: list[Action]) -> None:
        if node.life != life:
            return
        for action in actions:
            if isinstance(action, ArchiveMessage):
                self.archived.append(action)
            elif isinstance(action, AskEvaluation):
                self._ask(node, life, action)
            elif isinstance(action, ReadRows):
                if node.is_over:
                    self._fence(node, "read")
                    return
                try:
                    found = node.disk.read(action.space, action.first, action.last)
                except StoreError as error:
                    self._fail(node, error)
                    return
                node.inbox.insert(0, RowsRead(action.space, action.first, found, action.last))
            elif isinstance(action, SendData):
                self._transmit(node, action.connection, action.data)
            elif isinstance(action, CloseConnection):
                self._close(node, action.connection)
            elif isinstance(action, DialPeers):
                new = [peer for peer in action.dials if peer not in node.dials]
                node.dials = tuple(action.dials)
                for peer in new:
                    self._dial(node, life, peer)
        node.committing = None
        if any(isinstance(action, CallAgain) for action in actions):
            self._call_again(node)
        if node.is_due:
            self._begin_commit(node)
        self._wake(node)

    def _ask(self, node: SimNode, life: int, asked: AskSchemaWorker | AskEvaluation) -> None:
        """A process of its own answers, some time."""

        def tell() -> None:
            if node.life != life:
                return
            if isinstance(asked, AskEvaluation):
                found = evaluate_profile(asked.question, lambda: self.now)
                self.tell(node, Evaluated(asked.key, found))
            else:
                self.tell(node, SchemaAnswered(asked.key, answer(asked.question)))

        self._do(node, self.random.uniform(0, 0.5), tell)

    def _call_again(self, node: SimNode) -> None:
        if CalledAgain() not in node.inbox:
            node.inbox.insert(0, CalledAgain())

    # --- connections --------------------------------------------------------------------------

    def _dial(self, node: SimNode, life: int, peer: str) -> None:
        """One attempt; repeats itself while the process lives and is to dial this peer."""
        if node.life != life or peer not in node.dials:
            return
        self._do(node, self.random.uniform(0.05, 1.0), lambda: self._dial(node, life, peer))
        other = self.nodes.get(peer)
        if peer in node.dialled or other is None or other.core is None:
            return
        if other.asleep is not None or frozenset((node.peer, peer)) in self.broken:
            return  # nobody answers there
        if self.faulty and self.random.random() < 0.2:
            return
        node.dialled.add(peer)
        ends = [(node, next(self._numbers)), (other, next(self._numbers))]
        connection = SimConnection(ends, peer)
        for end, (owner, number) in enumerate(ends):
            self._connections[owner.peer, number] = (connection, end)
        self.tell(node, ConnectionOpened(ends[0][1], peer))
        self.tell(other, ConnectionOpened(ends[1][1]))

    def deafen(self, node: SimNode) -> bool:
        """One of a node's connections carries one way only from now on; False if it has none."""
        found = [each for (peer, _), each in self._connections.items() if peer == node.peer]
        for connection, end in self.random.sample(found, 1) if found else ():
            connection.last_arrival[end] = math.inf
        return bool(found)

    def _transmit(self, node: SimNode, number: int, data: bytes) -> None:
        found = self._connections.get((node.peer, number))
        if found is None:
            return
        connection, end = found
        for piece in self._pieces(data):
            self._arrive_later(connection, 1 - end, lambda c, o, p=piece: self._arrive(c, o, p))

    def _pieces(self, data: bytes) -> list[bytes]:
        """TCP keeps no frame boundaries: now and then a frame comes in two."""
        if len(data) > 1 and self.random.random() < 0.2:
            cut = self.random.randrange(1, len(data))
            return [data[:cut], data[cut:]]
        return [data]

    def _arrive_later(
        self, connection: SimConnection, end: int, call: Callable[[SimConnection, int], None]
    ) -> None:
        """In order per direction, each after its own delay; never at an end that is deaf."""
        arrival = max(connection.last_arrival[end], self.now + self.random.uniform(0.001, 0.05))
        connection.last_arrival[end] = arrival
        if arrival < math.inf:
            self.after(arrival - self.now, lambda: call(connection, end))

    def _arrive(self, connection: SimConnection, end: int, data: bytes) -> None:
        node, number = connection.ends[end]
        if connection.open[end] and (node.peer, number) in self._connections:
            self.tell(node, DataReceived(number, data))

    def _close(self, node: SimNode, number: int) -> None:
        """An orderly end: what was sent before still arrives."""
        found = self._connections.get((node.peer, number))
        if found is None:
            return
        connection, end = found
        self._arrive_later(connection, 1 - end, self._lose)
        self._lose(connection, end)

    def _cut(self, connection: SimConnection, dead_end: int | None = None) -> None:
        """The transport breaks: what is in flight to a dead end is lost, the ends learn late."""
        for end in (0, 1):
            if end != dead_end:
                delay = self.random.uniform(0, 0.5)
                self.after(delay, lambda end=end: self._lose(connection, end))  # type: ignore[misc]
            else:
                connection.open[end] = False

    def break_link(self, a: str, b: str) -> None:
        """From now on nothing goes between two peers, until they are no longer ``broken``."""
        pair = frozenset((a, b))
        self.broken.add(pair)
        for connection, _ in list(self._connections.values()):
            if {node.peer for node, _ in connection.ends} == pair:
                self._cut(connection)

    def _lose(self, connection: SimConnection, end: int) -> None:
        node, number = connection.ends[end]
        connection.open[end] = False
        if self._connections.pop((node.peer, number), None) is None:
            return
        if end == 0:
            node.dialled.discard(connection.dialled)
        self.tell(node, ConnectionLost(number))

    # --- faults -------------------------------------------------------------------------------

    def disturb(self, cut_every: float, crash_every: float, may_crash: Iterable[str]) -> None:
        """Cut a random connection and kill a random process, each about every so many seconds."""
        self._disturb_cut(cut_every)
        self.may_crash = list(may_crash)
        self._disturb_crash(crash_every)

    def _disturb_cut(self, every: float) -> None:
        if not self.faulty:
            return
        if self._connections:
            self.cuts += 1
            connection, _ = self._connections[self.random.choice(sorted(self._connections))]
            self._cut(connection)
        self.after(self.random.expovariate(1 / every), lambda: self._disturb_cut(every))

    def _disturb_crash(self, every: float) -> None:
        if not self.faulty:
            return
        peers = [peer for peer in self.may_crash if peer in self.nodes]
        node = self.nodes[self.random.choice(peers)]
        self.crash(node, self.random.uniform(0.05, 3.0))
        self.after(self.random.expovariate(1 / every), lambda: self._disturb_crash(every))

    def disturb_by_sleep(self, every: float) -> None:
        """Let a random process of those that may crash stand still, about every so many seconds."""
        if not self.faulty:
            return
        peers = [peer for peer in self.may_crash if peer in self.nodes]
        node = self.nodes[self.random.choice(peers)]
        self.take_over(node, self.random.uniform(0.5, 12.0), self.random.uniform(0.5, 4.0))
        self.after(self.random.expovariate(1 / every), lambda: self.disturb_by_sleep(every))


def _read_on(batch: list[Event], inbox: list[Event], connection: int) -> None:
    """Ahead of all else of the connection."""
    event = DataReceived(connection, b"")
    for waiting in (batch, inbox):
        for place, other in enumerate(waiting):
            if getattr(other, "connection", 0) == connection:
                waiting.insert(place, event)
                return
    inbox.append(event)


def _reads(actions: list[Action] | None) -> bool:
    return any(isinstance(action, ReadRows) for action in actions or ())
