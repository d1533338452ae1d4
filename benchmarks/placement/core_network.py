"""CoreNetwork: all brokers of a topology as the cores that they are, in one process.

Every frame is encoded, numbered, acknowledged and decoded as between processes; only sockets and
disks are missing: what a core sends arrives at once, in order, and what it stores is forgotten.
The registration service and the sources are their side of the link layer and no more, so that
profiles can be hosted wherever a placement says.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from typing import Protocol, TypeAlias

from onyx.broker.broker_core import BrokerCore
from overlay.link.events import (
    Action,
    BatchHandled,
    CallAgain,
    CallAtEnd,
    CalledAgain,
    ConnectionOpened,
    DataReceived,
    Event,
    SendData,
    singly,
)
from overlay.link.frame import Frame
from overlay.link.frames import PlaceProfile, Publish, SourceAnnounced
from overlay.link.link_layer import LinkLayer
from overlay.topology import Topology
from registration.catalog import REGISTRATION_KEY

_End: TypeAlias = tuple[str, int]  # a peer, and the number of a connection there
_PORTION = 5_000  # profiles that are placed at a time


class _Core(Protocol):
    def handle(self, event: Event, now: float) -> list[Action]: ...


class CoreNetwork:
    """Brokers that know each other; ``roots[i]`` is the root broker of source ``s<i>``."""

    def __init__(self, topology: Topology, roots: Sequence[str]) -> None:
        self.brokers = {
            broker: BrokerCore(topology, broker, "benchmark") for broker in topology.broker_ids
        }
        self.cpu_s = 0.0  # of all brokers, since it was last set to 0
        self.cpu_of: defaultdict[str, float] = defaultdict(float)  # seconds of each broker, ever
        self.sent_bytes: Counter[tuple[str, str]] = Counter()  # between brokers, (from, to), ever
        self._topology = topology
        self._cores: dict[str, _Core] = {f"broker/{name}": c for name, c in self.brokers.items()}
        self._other: dict[_End, _End] = {}
        self._events: deque[tuple[str, Event]] = deque()
        self._registration = self._add("registration", topology.registration[0].id)
        for link in topology.links:
            self._connect(*(f"broker/{end}" for end in link.ends))
        for broker in self.brokers:
            self._connect(f"broker/{broker}", self._registration.name)
        self._run()
        self._sources = [self._announce(f"s{place}", root) for place, root in enumerate(roots)]

    def host(self, texts: Sequence[str], hosts: Sequence[str]) -> None:
        """Place profiles, each at its broker; the routing tables follow.

        In portions, as under load: what many profiles change goes up a tree as one delta.
        """
        placed = list(enumerate(zip(texts, hosts, strict=True)))
        for first in range(0, len(placed), _PORTION):
            for number, (text, broker) in placed[first : first + _PORTION]:
                profile = f"p{number}"
                frame = PlaceProfile(
                    profile=profile, user="", text=text, version=1, request=profile
                )
                self._registration.send(f"broker/{broker}", REGISTRATION_KEY, frame)
            self._send(self._registration)

    def publish(self, source: int, payload: bytes) -> None:
        """A message of ``s<source>``, until nothing is under way any more."""
        client = self._sources[source]
        frame = Publish(source=f"s{source}", format="text", payload=payload)
        client.send(client.root, f"s{source}", frame)
        self._send(client)

    def counted(self, name: str) -> int:
        """A counter of the brokers' data planes, of all together."""
        found = [getattr(core.statistics().data, name) for core in self.brokers.values()]
        return sum(sum(x.values()) if isinstance(x, dict) else int(str(x)) for x in found)

    def _announce(self, source: str, root: str) -> _Client:
        frame = SourceAnnounced(
            source=source,
            name=source,
            root=root,
            location=None,
            rate=1.0,
            size=1,
            schema_name="",
            schema_kind="",
            validation="off",
            compression=[],
        )
        self._registration.send(f"broker/{root}", REGISTRATION_KEY, frame)
        self._send(self._registration)
        client = self._add("source", source)
        client.root = f"broker/{root}"
        self._connect(client.name, client.root)
        self._run()
        return client

    def _add(self, role: str, name: str) -> _Client:
        client = _Client(role, name, self._topology)
        self._cores[client.name] = client
        return client

    def _connect(self, one: str, other: str) -> None:
        ends = [(peer, len(self._other) + place) for place, peer in enumerate((one, other), 1)]
        self._other[ends[0]], self._other[ends[1]] = ends[1], ends[0]
        self._events.append((one, ConnectionOpened(ends[0][1], other)))
        self._events.append((other, ConnectionOpened(ends[1][1])))

    def _send(self, client: _Client) -> None:
        self._carry_out(client.name, client.links.drain())
        self._run()

    def _run(self) -> None:
        while self._events:
            peer, event = self._events.popleft()
            start = time.process_time()
            actions = singly(self._cores[peer].handle(event, 0.0))
            if peer.startswith("broker/"):
                spent = time.process_time() - start
                self.cpu_s += spent
                self.cpu_of[peer.removeprefix("broker/")] += spent
            self._carry_out(peer, actions)

    def _carry_out(self, peer: str, actions: Sequence[Action]) -> None:
        leaving: dict[int, bytearray] = {}
        for action in actions:
            if isinstance(action, SendData):
                leaving.setdefault(action.connection, bytearray()).extend(action.data)
        for connection, data in leaving.items():
            other, number = self._other[peer, connection]
            if peer.startswith("broker/") and other.startswith("broker/"):
                self.sent_bytes[peer.removeprefix("broker/"), other.removeprefix("broker/")] += len(
                    data
                )
            self._events.append((other, DataReceived(number, bytes(data))))
        if any(isinstance(action, CallAgain) for action in actions):
            self._events.appendleft((peer, CalledAgain()))
        if any(isinstance(action, CallAtEnd) for action in actions):
            self._events.appendleft((peer, BatchHandled()))


class _Client:
    """The registration service or a source; what it is told it forgets."""

    def __init__(self, role: str, name: str, topology: Topology) -> None:
        self.name = f"{role}/{name}"
        self.root = ""
        formats = ["text"] if role == "source" else []
        self.links = LinkLayer(
            role=role,
            identity=name,
            instance="benchmark",
            formats=formats,
            limits=topology.limits.link,
        )

    def send(self, peer: str, key: str, frame: Frame) -> None:
        self.links.send(peer, key, frame)

    def handle(self, event: Event, now: float) -> list[Action]:
        for _ in self.links.handle(event, now):
            pass  # frames that arrive need nothing but their acknowledgement
        return self.links.drain()
