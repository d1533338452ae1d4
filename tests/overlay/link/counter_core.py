"""A small core for tests: it takes messages, answers requests, and keeps what it took as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import trio

from overlay.link.events import Action, Event, Flow, Put
from overlay.link.frames import (
    Delivery,
    Hello,
    Message,
    Observed,
    Publish,
    Refused,
    Request,
    Response,
)
from overlay.link.limits import LinkLimits
from overlay.link.link_layer import LinkLayer

REFUSED = b"<refused>"
_WAITING = trio.lowlevel.ParkingLot()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that a core will come to; looked at after each event of any core."""
    with trio.fail_after(20):
        while not condition():
            await _WAITING.park()


class CounterCore:
    """A broker that keeps every payload, forwards none, and delivers on request.

    Verbs: "echo" (its arguments), "fail" (an error), "silent" (no answer), "deliver" (``count``
    deliveries to profile p7), "observe" (``count`` observed events).
    """

    def __init__(
        self, identity: str, rows: Iterable[tuple[str, str, bytes]] = (), **limits: int
    ) -> None:
        rows = list(rows)
        self.taken = [value for space, _, value in sorted(rows) if space == "taken"]
        self.known = {"s1", "p7", "A", "B", "c1"}
        self.hold = False
        self.links = LinkLayer(
            role="broker",
            identity=identity,
            instance="1",
            formats=["xml"],
            limits=LinkLimits(**limits),
            may_acknowledge=lambda peer, flow, key: not self.hold,
            stored=True,
        )
        self.links.restore(rows)
        self._rows: list[Action] = []

    def handle(self, event: Event, now: float) -> list[Action]:
        for arrival in self.links.handle(event, now):
            frame = arrival.frame
            if isinstance(frame, Hello) and frame.peer not in self.known:
                self.links.refuse(arrival.connection, "unknown-peer", f"who is {frame.peer}?")
            elif isinstance(frame, Message | Publish):
                self._take(frame.payload)
                if frame.payload == REFUSED:
                    refused = Refused("s1", arrival.sequence, "malformed", "no", 1, 2)
                    self.links.send(arrival.peer, arrival.key, refused)
            elif isinstance(frame, Request):
                self._answer(arrival.connection, frame)
        rows, self._rows = self._rows, []
        actions = [*rows, *self.links.drain()]
        _WAITING.unpark_all()
        return actions

    def send_messages(self, peer: str, payloads: Iterable[bytes]) -> None:
        """To be called before the node runs, or between events."""
        for payload in payloads:
            self.links.send(peer, "root", Message("root", "s", 1, "xml", 0, payload))

    def backlog(self, peer: str) -> int:
        return self.links.backlog_bytes(peer, Flow.MESSAGE, "root")

    def deliver(self, count: int) -> None:
        for number in range(1, count + 1):
            frame = Delivery("p7", "s1", number, [1], b"%d" % (number % 10))
            self.links.send("subscriber/p7", "p7", frame)

    def _take(self, payload: bytes) -> None:
        self._rows.append(Put("taken", f"{len(self.taken):06d}", payload))
        self.taken.append(payload)

    def _answer(self, connection: int, frame: Request) -> None:
        count = frame.arguments.get("count", 0)
        assert isinstance(count, int)
        if frame.verb == "echo":
            self.links.reply(connection, Response(frame.request, True, frame.arguments))
        elif frame.verb == "fail":
            error = {"code": "no-way", "message": "it failed"}
            self.links.reply(connection, Response(frame.request, False, error))
        elif frame.verb == "deliver":
            self.deliver(count)
            self.links.reply(connection, Response(frame.request, True, {}))
        elif frame.verb == "observe":
            for number in range(count):
                self.links.reply(connection, Observed([{"number": number}]))
            self.links.reply(connection, Response(frame.request, True, {}))
