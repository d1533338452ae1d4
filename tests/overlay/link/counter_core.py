"""A small core for tests: it takes messages, answers requests, and keeps what it took as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import trio

from overlay.link.events import Action, Event, Flow, Put
from overlay.link.frames import (
    Attach,
    Deliveries,
    Detached,
    Hello,
    Message,
    Missed,
    Observed,
    Publish,
    Refused,
    Request,
    Response,
    Taken,
    columns,
    packed_numbers,
    packed_slots,
)
from overlay.link.limits import LinkLimits
from overlay.link.link_layer import LinkLayer
from tests.hanging import SAFETY_SECONDS

REFUSED = b"<refused>"
_WAITING = trio.lowlevel.ParkingLot()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that a core will come to; looked at after each event of any core."""
    with trio.fail_after(SAFETY_SECONDS):
        while not condition():
            await _WAITING.park()


@dataclass(slots=True)
class CounterMailbox:
    """The deliveries of a profile, 1 to ``last``, those through ``gone`` thrown away; taken by
    ``slot`` of ``connection``, 0 for none."""

    last: int = 0
    gone: int = 0
    taken: int = 0
    sent: int = 0
    connection: int = 0
    slot: int = 0


class CounterCore:
    """A broker that keeps every payload, forwards none, and delivers on request, without windows.

    Verbs: "echo" (its arguments), "fail" (an error), "silent" (no answer), "deliver" (``count``
    deliveries to profile p7, having forgotten to send ``left_out``), "detach" (p7, with a
    ``code``), "hang-up" (all who take deliveries), "observe" (``count`` observed events).
    """

    def __init__(
        self, identity: str, rows: Iterable[tuple[str, str, bytes]] = (), **limits: int
    ) -> None:
        rows = list(rows)
        self.taken = [value for space, _, value in sorted(rows) if space == "taken"]
        self.known = {"s1", "u1", "u2", "A", "B", "c1"}
        self.mailboxes = {"p7": CounterMailbox(), "p8": CounterMailbox()}
        self.hold = False
        self.refused_first: list[str] = []  # codes for the first hellos
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
            if isinstance(frame, Hello) and self.refused_first:
                self.links.refuse(arrival.connection, self.refused_first.pop(), "not now")
            elif isinstance(frame, Hello) and frame.peer not in self.known:
                self.links.refuse(arrival.connection, "unknown-peer", f"who is {frame.peer}?")
            elif isinstance(frame, Message | Publish):
                self._take(frame.payload)
                if frame.payload == REFUSED:
                    refused = Refused("s1", arrival.sequence, "malformed", "no", 1, 2)
                    self.links.send(arrival.peer, arrival.key, refused)
            elif isinstance(frame, Request):
                self._answer(arrival.connection, frame)
            elif isinstance(frame, Attach):
                self._attach(arrival.connection, frame)
            elif isinstance(frame, Taken):
                for slot, number in columns(frame):
                    for box in self.mailboxes.values():
                        if (box.connection, box.slot) == (arrival.connection, slot):
                            box.taken = max(box.taken, number)
            elif frame is None:
                for box in self.mailboxes.values():
                    if box.connection == arrival.connection:
                        box.connection = 0
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

    def deliver(self, count: int, profile: str = "p7") -> None:
        box = self.mailboxes[profile]
        box.last += count
        self._send(box)

    def _attach(self, connection: int, frame: Attach) -> None:
        for slot, profile, received, _ in frame.profiles:
            box = self.mailboxes.get(profile)
            if box is None:
                self.links.reply(connection, Detached(slot, "unknown-profile", "it is not here"))
                continue
            self._detach(box, "replaced")
            box.connection, box.slot, box.sent = connection, slot, received
            box.taken = max(box.taken, received)
            self._send(box)

    def _detach(self, box: CounterMailbox, code: str) -> None:
        if box.connection:
            self.links.reply(box.connection, Detached(box.slot, code, "it is over"))
            box.connection = 0

    def _send(self, box: CounterMailbox) -> None:
        if not box.connection:
            return
        if box.sent < max(box.gone, box.taken):
            through = max(box.gone, box.taken)
            lost = through - max(box.sent, box.taken)
            self.links.reply(box.connection, Missed(box.slot, through, lost))
            box.sent = through
        while box.sent < box.last:
            box.sent += 1
            place = packed_slots([box.slot]), packed_numbers([box.sent])
            frame = Deliveries("s1", box.sent, [1], *place, b"%d" % (box.sent % 10))
            self.links.reply(box.connection, frame)

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
            left_out = frame.arguments.get("left_out", 0)
            assert isinstance(left_out, int)
            self.mailboxes["p7"].last += left_out
            self.mailboxes["p7"].sent += left_out
            self.deliver(count)
            self.links.reply(connection, Response(frame.request, True, {}))
        elif frame.verb == "detach":
            self._detach(self.mailboxes["p7"], str(frame.arguments["code"]))
            self.links.reply(connection, Response(frame.request, True, {}))
        elif frame.verb == "hang-up":
            for line in {box.connection for box in self.mailboxes.values()} - {0}:
                self.links.refuse(line, "silent", "that is enough for now")
            self.links.reply(connection, Response(frame.request, True, {}))
        elif frame.verb == "observe":
            for number in range(count):
                self.links.reply(connection, Observed([{"number": number}]))
            self.links.reply(connection, Response(frame.request, True, {}))
