"""Tunnels: connections to a neighbour whose link is gone, by way of the registration service.

When a link dies for good, frames may wait at one end that the other has already, or has not: only
what the two ends keep on disk can tell.  So they talk once more, over another way, and the link
layer does what it does after every broken connection: each end says what it has, the rest is sent,
and the old trees run dry (tree_versions.py)::

    B1 ══════ x ══════ B2        LinkLayer ── connection -1 ── Relayed pieces ──┐
     └── registration ──┘        LinkLayer ── connection -4 <─ Relayed pieces <─┘

A tunnel is only there while a link that is not in use any more has something to finish.  It
promises no more than a connection does: pieces are numbered, and a gap ends it.  Its connections
have negative numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.shape.link_watch import LinkWatch
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.events import (
    Action,
    CloseConnection,
    ConnectionLost,
    ConnectionOpened,
    DataReceived,
    Event,
    SendData,
)
from overlay.link.frames import Relayed
from overlay.link.part import FrameRefused, Part, Taker, takes
from overlay.link.principal import Principal, is_name

PIECE_BYTES = 48 * 1024  # so that every process accepts a piece


@dataclass(slots=True)
class _Tunnel:
    """``number`` was given by the end that opened it; ``sent`` and ``come`` count pieces."""

    broker: str
    number: int
    connection: int
    sent: int = 0
    come: int = 0


class Tunnels(Part):
    """The tunnels of one broker; gone with the process, as connections are."""

    section = "trees"

    def __init__(self, context: CoreContext, control: ControlPlane, watch: LinkWatch) -> None:
        self._control = control
        self._links = context.links
        self._watch = watch
        self.open: dict[str, _Tunnel] = {}  # by the broker at the other end
        self._opened = 0
        self._counters: Counter[str] = Counter()

    def frames(self) -> Iterable[Taker]:
        yield takes(Relayed, "registration", self._handle_relayed)

    def tick(self, now: float) -> None:
        """Open what is needed, close what is not; of two ends that with the smaller id opens."""
        for broker in list(self.open):
            if not self._is_needed(broker):
                self._close(self.open[broker], tell=True)
        if not self._links.connected(self._control.registration):
            return
        neighbours = self._control.shapes.neighbours()
        for broker in sorted(neighbours | self._control.shapes.beside_lost):
            if (
                self._control.identity < broker
                and broker not in self.open
                and self._is_needed(broker)
                and (broker not in neighbours or self._watch.is_long_gone(broker, now))
            ):
                self._open(broker, int(now * 1000), f"broker/{broker}")

    def _handle_relayed(self, frame: Relayed, arrival: Arrival) -> None:
        """A piece from the other end; the first one opens a tunnel."""
        if not is_name(frame.broker):
            raise FrameRefused("bad-field", f"{frame.broker!r} is no broker")
        tunnel = self.open.get(frame.broker)
        if tunnel is None or tunnel.number != frame.tunnel:
            if frame.number != 1 or frame.closing or frame.broker > self._control.identity:
                return
            if tunnel is not None:
                self._close(tunnel)
            tunnel = self._open(frame.broker, frame.tunnel, "")
        tunnel.come += 1
        if frame.closing or frame.number != tunnel.come:
            self._close(tunnel, tell=not frame.closing)
        else:
            self._tell_links(DataReceived(tunnel.connection, frame.payload))

    def gone(self, arrival: Arrival) -> None:
        """With the connection with the registration service all tunnels are lost."""
        if arrival.peer == self._control.registration:
            for tunnel in list(self.open.values()):
                self._close(tunnel)

    def _redirect(self, actions: Iterable[Action]) -> list[Action]:
        """The actions that are for the shell; what is for tunnels is on its way."""
        left = []
        for action in actions:
            if isinstance(action, SendData | CloseConnection) and action.connection < 0:
                self._carry(action)
            else:
                left.append(action)
        return left + self._links.drain()

    def statistics(self) -> Mapping[str, object]:
        return {"tunnels": sorted(self.open), **self._counters}

    # --- helpers --------------------------------------------------------------------------

    def _is_needed(self, broker: str) -> bool:
        """Whether a link was in use and is not any more, or a broker between is lost, and that is
        not settled yet."""
        shapes = self._control.shapes
        return shapes.is_retiring(broker) or (
            broker in shapes.beside_lost and broker not in shapes.neighbours()
        )

    def _open(self, broker: str, number: int, dialled: str) -> _Tunnel:
        if not self._opened and self.agenda is not None:
            self.agenda.redirecting.append(self._redirect)
        self._opened += 1
        self._counters["opened"] += 1
        tunnel = self.open[broker] = _Tunnel(broker, number, -self._opened)
        principal = Principal("broker", broker)  # so the registration service says, who knows
        self._tell_links(ConnectionOpened(tunnel.connection, dialled, principal))
        return tunnel

    def _close(self, tunnel: _Tunnel, *, tell: bool = False) -> None:
        if tell:
            self._send(tunnel, b"", closing=True)
        del self.open[tunnel.broker]
        self._tell_links(ConnectionLost(tunnel.connection))

    def _tell_links(self, event: Event) -> None:
        if self.agenda is not None:
            self.agenda.events.append(event)

    def _carry(self, action: SendData | CloseConnection) -> None:
        for tunnel in self.open.values():
            if tunnel.connection == action.connection:
                break
        else:
            return
        if isinstance(action, CloseConnection):
            self._close(tunnel, tell=True)
            return
        for start in range(0, len(action.data), PIECE_BYTES):
            self._send(tunnel, action.data[start : start + PIECE_BYTES])

    def _send(self, tunnel: _Tunnel, payload: bytes, *, closing: bool = False) -> None:
        connection = self._links.connection_of(self._control.registration)
        if connection is not None:
            tunnel.sent += 1
            self._counters["pieces"] += 1
            frame = Relayed(tunnel.broker, tunnel.number, tunnel.sent, closing, payload)
            self._links.reply(connection, frame)
