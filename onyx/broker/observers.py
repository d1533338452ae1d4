"""Observers: clients that watch what a broker does, as it does it.

A best-effort feed for people and for tests of the running system: events are sent once, on the
control flow, and nobody waits for an observer.
"""

from __future__ import annotations

from overlay.link.frames import Observed
from overlay.link.link_layer import LinkLayer

EVENTS_PER_FRAME = 256


class Observers:
    """Connections that asked to observe, and the events of the call under way."""

    def __init__(self, identity: str, links: LinkLayer) -> None:
        self._identity = identity
        self._links = links
        self._connections: set[int] = set()
        self._events: list[dict[str, object]] = []

    def add(self, connection: int) -> None:
        self._connections.add(connection)

    def remove(self, connection: int) -> None:
        self._connections.discard(connection)

    def __bool__(self) -> bool:
        """Whether anybody watches."""
        return bool(self._connections)

    def note(self, kind: str, **fields: object) -> None:
        """Something happened here; costs nothing when nobody watches."""
        if self._connections:
            self._events.append({"kind": kind, "broker": self._identity, **fields})

    def flush(self) -> None:
        """Send what was noted; called once at the end of handling an event."""
        events, self._events = self._events, []
        for first in range(0, len(events), EVENTS_PER_FRAME):
            frame = Observed(events=events[first : first + EVENTS_PER_FRAME])
            for connection in self._connections:
                self._links.reply(connection, frame)

    def statistics(self) -> dict[str, int]:
        return {"observers": len(self._connections)}
