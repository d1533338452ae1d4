"""TimedNetwork: broker cores in simulated time, each as if it had a processor of its own.

What a core takes to handle a batch of events is measured and passes in simulated time, so do a
commit and the latency of a link; so a broker with much to do gets behind, and what waits is handled
together, as in a real process::

    events that wait (at most BATCH) -> handle, measured -> commit -> send -> latency -> other end
"""

from __future__ import annotations

import heapq
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

from overlay.link.events import (
    Action,
    BatchHandled,
    CallAgain,
    CallAtEnd,
    CalledAgain,
    ConnectionOpened,
    DataReceived,
    Event,
    Put,
    SendData,
    singly,
)

BATCH = 64
COMMIT_SECONDS = 0.002


class TimedCore(Protocol):
    """A broker or a client."""

    def handle(self, event: Event, now: float) -> list[Action]: ...


class TimedNetwork:
    """``add`` cores and ``connect`` them; ``at`` a time something happens; ``run``."""

    def __init__(self, stored: Callable[[str, Put, float], None]) -> None:
        """``stored`` is told what a core stores: peer, row, time."""
        self.now = 0.0
        self.busy_seconds: dict[str, float] = defaultdict(float)
        self._stored = stored
        self._cores: dict[str, TimedCore] = {}
        self._other: dict[tuple[str, int], tuple[str, int, float]] = {}
        self._inbox: dict[str, deque[Event]] = defaultdict(deque)
        self._is_busy: dict[str, bool] = defaultdict(bool)
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._planned = 0

    def add(self, peer: str, core: TimedCore) -> None:
        self._cores[peer] = core

    def connect(self, dialler: str, other: str, latency_seconds: float) -> int:
        """The number of the connection, at both ends."""
        number = len(self._other) + 1
        self._other[dialler, number] = other, number, latency_seconds
        self._other[other, number] = dialler, number, latency_seconds
        self.tell(dialler, ConnectionOpened(number, other))
        self.tell(other, ConnectionOpened(number))
        return number

    def at(self, moment: float, call: Callable[[], None]) -> None:
        self._planned += 1
        heapq.heappush(self._agenda, (moment, self._planned, call))

    def tell(self, peer: str, event: Event) -> None:
        self._inbox[peer].append(event)
        if not self._is_busy[peer]:
            self._is_busy[peer] = True
            self.at(self.now, lambda: self._process(peer))

    def give(self, peer: str, actions: Iterable[Action]) -> None:
        """A core did something by itself: a client asks or publishes."""
        self._send(peer, list(actions))

    def run(self, until: float) -> None:
        """Until a moment, or nothing happens any more."""
        while self._agenda and self._agenda[0][0] <= until:
            moment, _, call = heapq.heappop(self._agenda)
            self.now = max(self.now, moment)
            call()

    def _process(self, peer: str) -> None:
        inbox = self._inbox[peer]
        size = 1 if isinstance(inbox[0], CalledAgain) else min(BATCH, len(inbox))
        batch = [inbox.popleft() for _ in range(size)]
        begun = time.thread_time()
        core = self._cores[peer]
        actions = [action for event in batch for action in singly(core.handle(event, self.now))]
        if any(isinstance(action, CallAtEnd) for action in actions):
            actions += singly(core.handle(BatchHandled(), self.now))
        took = time.thread_time() - begun
        self.busy_seconds[peer] += took
        stores = any(isinstance(action, Put) for action in actions)
        self.at(self.now + took + stores * COMMIT_SECONDS, lambda: self._finish(peer, actions))

    def _finish(self, peer: str, actions: list[Action]) -> None:
        if any(isinstance(action, CallAgain) for action in actions):
            self._inbox[peer].appendleft(CalledAgain())
        self._send(peer, actions)
        if self._inbox[peer]:
            self.at(self.now, lambda: self._process(peer))
        else:
            self._is_busy[peer] = False

    def _send(self, peer: str, actions: list[Action]) -> None:
        leaving: dict[int, bytearray] = {}
        for action in actions:
            if isinstance(action, SendData):
                leaving.setdefault(action.connection, bytearray()).extend(action.data)
            elif isinstance(action, Put):
                self._stored(peer, action, self.now)
        for connection, data in leaving.items():
            other, number, latency = self._other[peer, connection]
            self.at(
                self.now + latency, partial(self.tell, other, DataReceived(number, bytes(data)))
            )
