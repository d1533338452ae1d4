"""Two link layers on a simulated transport that loses connections, and disks that lose calls.

Everything is driven by one seeded generator; a failing seed replays exactly.  Each node keeps its
application's state (what it received, in order) as rows, committed together with the rows of the
link layer, just as a core does.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field

from msgspec.structs import replace

from overlay.link.events import (
    Action,
    CloseConnection,
    ConnectionLost,
    ConnectionOpened,
    DataReceived,
    Delete,
    Event,
    Put,
    ReadRows,
    SendData,
    TimePassed,
)
from overlay.link.frames import LiveMarker, Message
from overlay.link.limits import LinkLimits
from overlay.link.link_io import FlowScheduler
from overlay.link.link_layer import LinkLayer
from tests.beside import rows_read

LIMITS = LinkLimits(window_frames=4, window_bytes=600, keepalive_seconds=10, hello_seconds=10)


class Node:
    """A process: a link layer, its committed rows, and what it has received."""

    def __init__(self, name: str, peer: str, generator: random.Random, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self.name = name
        self.peer = peer
        self.rows: dict[tuple[str, str], bytes] = {}
        self.withhold = False
        self.starts = 0
        self.duplicates = 0
        self._generator = generator
        self.start()

    def start(self) -> None:
        """Begin from what was committed."""
        self._taken = sum(space == "taken" for space, _ in self.rows)
        if self.starts:
            self.duplicates += self.count_duplicates()
        self.starts += 1
        self.links = LinkLayer(
            role="broker",
            identity=self.name,
            instance=str(self.starts),
            formats=[],
            limits=replace(LIMITS, journal_memory_bytes=self._memory_bytes),
            may_acknowledge=lambda peer, flow, key: not self.withhold,
            stored=True,
        )
        self.links.restore((space, key, value) for (space, key), value in self.rows.items())

    def handle(self, event: Event | None, now: float, sends: int) -> list[Action]:
        """One call of the core: arrivals become rows, and some new frames are sent."""
        actions: list[Action] = []
        taken = self._taken
        if event is not None:
            for arrival in self.links.handle(event, now):
                if arrival.sequence:
                    assert isinstance(arrival.frame, Message | LiveMarker)
                    number = (
                        arrival.frame.number
                        if isinstance(arrival.frame, Message)
                        else arrival.frame.marker
                    )
                    entry = f"{int(arrival.frame.flow)}|{arrival.key}|{number}"
                    actions.append(Put("taken", f"{taken:06d}", entry.encode()))
                    taken += 1
        self._taken = taken
        for _ in range(sends):
            actions.append(self._send_one())
        return actions + self.links.drain()

    def commit(self, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Put):
                self.rows[action.space, action.key] = action.value
            elif isinstance(action, Delete):
                self.rows.pop((action.space, action.key), None)

    def taken(self) -> dict[str, list[int]]:
        """What was received, in order: "flow|key" -> the application's numbers."""
        return self._by_channel("taken")

    def sent(self) -> dict[str, list[int]]:
        return self._by_channel("sent")

    def _by_channel(self, wanted: str) -> dict[str, list[int]]:
        result: dict[str, list[int]] = {}
        for (space, _), value in sorted(self.rows.items()):
            if space == wanted:
                channel, _, number = value.decode().rpartition("|")
                result.setdefault(channel, []).append(int(number))
        return result

    def count_duplicates(self) -> int:
        return sum(journal.duplicates for journal in self.links._journals.values())

    def _send_one(self) -> Action:
        """Send a frame that carries a number of the application's own, unique for ever."""
        number = self._generator.getrandbits(40)
        key = self._generator.choice(["r1", "r2"])
        if self._generator.random() < 0.3:
            frame: Message | LiveMarker = LiveMarker(root=key, host="h", marker=number, roots=[key])
        else:
            payload = b"x" * self._generator.choice([0, 10, 200, 900])
            frame = Message(
                root=key, source="s", number=number, format="xml", hops=1, payload=payload
            )
        sequence = self.links.send(self.peer, key, frame)
        entry = f"{int(frame.flow)}|{key}|{number}"
        return Put("sent", f"{int(frame.flow)}{key}{sequence:06d}", entry.encode())


@dataclass
class Pipe:
    """One direction of a connection: queued by flow at the sender, then bytes on the way."""

    scheduler: FlowScheduler = field(default_factory=FlowScheduler)
    flying: bytearray = field(default_factory=bytearray)
    closing: bool = False


class LossyNetwork:
    """Node A dials node B; ``step`` does one random thing."""

    def __init__(self, seed: int) -> None:
        self.generator = random.Random(seed)
        self.a = Node("A", "broker/B", self.generator, (1, 2000, 2**30)[seed % 3])
        self.b = Node("B", "broker/A", self.generator, (1, 2000, 2**30)[seed // 3 % 3])
        self.now = 0.0
        self.connections = 0
        self.current: int | None = None
        self.pipes: dict[str, Pipe] = {}
        self.events: dict[str, deque[Event]] = {"A": deque(), "B": deque()}
        # What a node hears of a lost connection only after it has opened the next one.
        self.late: dict[str, list[Event]] = {"A": [], "B": []}
        self.crashes = self.cuts = 0

    def step(self, *, calm: bool = False) -> None:
        """Deliver, send, cut or crash; ``calm`` only delivers, connects and passes time."""
        roll = self.generator.random()
        node = self.generator.choice([self.a, self.b])
        if self.current is None and roll < 0.3:
            self._connect()
        elif not calm and roll < 0.005:
            self._cut()
        elif not calm and roll < 0.01:
            self._restart(node)
        elif not calm and roll < 0.06:
            self._call(node, None, self.generator.randrange(1, 6), calm)
        elif not calm and roll < 0.07:
            node.withhold = not node.withhold
        elif roll < 0.1:
            self.now += 0.5
            self.events[node.name].append(TimePassed())
        elif roll < 0.5:
            self._carry(node)
        elif self.events[node.name]:
            self._call(node, self.events[node.name].popleft(), 0, calm)

    def settle(self) -> None:
        """No more trouble: run until everything has arrived (or for a long time)."""
        self.a.withhold = self.b.withhold = False
        for _ in range(40_000):
            self.step(calm=True)
            if self.settled():
                return

    def settled(self) -> bool:
        """Whether everything has arrived."""
        return self.a.sent() == self.b.taken() and self.b.sent() == self.a.taken()

    def _call(self, node: Node, event: Event | None, sends: int, calm: bool) -> None:
        actions = node.handle(event, self.now, sends)
        if not calm and self.generator.random() < 0.01:
            self._restart(node)  # before the commit: nothing of this call has happened
            return
        node.commit(actions)
        if not calm and self.generator.random() < 0.01:
            self._restart(node)  # after the commit: nobody was told
            return
        for action in actions:
            if isinstance(action, ReadRows):
                self.events[node.name].appendleft(rows_read(action, node.rows))
            elif isinstance(action, SendData) and action.connection == self.current:
                self.pipes[node.name].scheduler.push(action.flow, action.data)
            elif isinstance(action, CloseConnection) and action.connection == self.current:
                self.pipes[node.name].closing = True

    def _connect(self) -> None:
        self.connections += 1
        self.current = self.connections
        self.pipes = {"A": Pipe(), "B": Pipe()}
        self.events["A"].append(ConnectionOpened(self.current, "broker/B"))
        self.events["B"].append(ConnectionOpened(self.current))
        for name, events in self.late.items():
            self.events[name].extend(events)
            events.clear()

    def _carry(self, node: Node) -> None:
        """Move bytes from a node's scheduler towards the other node, cut anywhere."""
        if self.current is None:
            return
        pipe = self.pipes[node.name]
        data = pipe.scheduler.pop()
        if data is not None:
            pipe.flying += data
        size = self.generator.choice([1, 70, 1000, 5000])
        if pipe.flying and self.generator.random() < 0.9:
            other = "B" if node is self.a else "A"
            self.events[other].append(DataReceived(self.current, bytes(pipe.flying[:size])))
            del pipe.flying[:size]
        elif pipe.closing and data is None:
            self._cut()

    def _cut(self) -> None:
        """The connection is lost.  What flew is gone, or comes late: when the next connection
        is there already, so that its hello does not know of it."""
        if self.current is None:
            return
        self.cuts += 1
        for name, other in (("A", "B"), ("B", "A")):
            lost = ConnectionLost(self.current)
            if self.generator.random() < 0.5:
                self.events[name].append(lost)
            else:
                pipe = self.pipes[other]
                while (data := pipe.scheduler.pop()) is not None:
                    pipe.flying += data
                self.late[name] = [DataReceived(self.current, bytes(pipe.flying)), lost]
        self.current = None

    def _restart(self, node: Node) -> None:
        """The process dies: its calls that were not committed, its queues and its connection."""
        self.crashes += 1
        self._cut()
        self.events[node.name].clear()
        self.late[node.name].clear()
        node.start()

    @property
    def duplicates(self) -> int:
        """Frames that came again and were not handed on again."""
        return sum(node.duplicates + node.count_duplicates() for node in (self.a, self.b))

    def totals(self) -> tuple[int, int]:
        """(frames that A has sent, frames that B has sent)"""
        return (
            sum(len(numbers) for numbers in self.a.sent().values()),
            sum(len(numbers) for numbers in self.b.sent().values()),
        )
