"""Observers: clients that watch what a broker does, as it does it.

A best-effort feed for people and for tests of the running system: events are sent once, on the
control flow, and nobody waits for an observer.
"""

from __future__ import annotations

from collections.abc import Mapping

from overlay.link.arrival import Arrival
from overlay.link.frames import Observed
from overlay.link.link_layer import LinkLayer
from overlay.link.part import Part

EVENTS_PER_FRAME = 256


class Observers(Part):
    """Connections that asked to observe, and the events of the call under way."""

    section = "observers"

    def __init__(self, identity: str, links: LinkLayer) -> None:
        self._identity = identity
        self._links = links
        self.connections: set[int] = set()  # none: nothing need be noted
        self._events: list[dict[str, object]] = []

    def add(self, connection: int) -> None:
        self.connections.add(connection)

    def gone(self, arrival: Arrival) -> None:
        self.connections.discard(arrival.connection)

    def note(self, kind: str, **fields: object) -> None:
        """Something happened here."""
        self._events.append({"kind": kind, "broker": self._identity, **fields})
        self.flush_soon()

    def flush(self) -> None:
        """Send what was noted."""
        events, self._events = self._events, []
        for first in range(0, len(events), EVENTS_PER_FRAME):
            frame = Observed(events=events[first : first + EVENTS_PER_FRAME])
            for connection in self.connections:
                self._links.reply(connection, frame)

    def statistics(self) -> Mapping[str, object]:
        return {"observers": len(self.connections)}
