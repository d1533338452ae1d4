"""Observers: clients that watch what a broker does, as it does it.

A best-effort feed for people and for tests of the running system: events are sent once, on the
control flow, and nobody waits for an observer.

Who asks for ``figures`` gets no event for each message but, at most four times a second and only
when they have changed, where the broker's counters stand (``Figures``): however much the broker
does, that costs the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

from overlay.link.arrival import Arrival
from overlay.link.frames import Observed
from overlay.link.link_layer import LinkLayer
from overlay.link.part import Part

EVENTS_PER_FRAME = 256
FIGURES_SECONDS = 0.25  # from one time that they are told to the next

Figures = Mapping[str, Any]
"""``published``, ``delivered``, ``refused`` messages, ``profiles`` and ``waiting_bytes`` of users;
``links``: by neighbour the messages that went there, the bytes that wait for it, the link's format,
and whether it is here."""


class Observers(Part):
    """Connections that asked to observe, and the events of the call under way."""

    section = "observers"

    def __init__(self, identity: str, links: LinkLayer) -> None:
        self._identity = identity
        self._links = links
        self.connections: set[int] = set()  # none: nothing need be noted
        self.figures: Callable[[], Figures] = dict
        self._for_figures: set[int] = set()  # of the connections
        self._told: Figures = {}
        self._told_at = -inf
        self._events: list[dict[str, object]] = []

    def add(self, connection: int, *, figures: bool) -> None:
        self.connections.add(connection)
        if figures:
            self._for_figures.add(connection)
            self._told = {}
            self._tell_figures()

    def gone(self, arrival: Arrival) -> None:
        self.connections.discard(arrival.connection)
        self._for_figures.discard(arrival.connection)

    def note(self, kind: str, **fields: object) -> None:
        """Something happened here."""
        if len(self._for_figures) < len(self.connections):
            self._events.append({"kind": kind, "broker": self._identity, **fields})
        self.flush_soon()

    def flush(self) -> None:
        """Send what was noted."""
        events, self._events = self._events, []
        for first in range(0, len(events), EVENTS_PER_FRAME):
            frame = Observed(events=events[first : first + EVENTS_PER_FRAME])
            for connection in self.connections - self._for_figures:
                self._links.reply(connection, frame)
        now = 0.0 if self.agenda is None else self.agenda.now
        if self._for_figures and now >= self._told_at + FIGURES_SECONDS:
            self._told_at = now
            self._tell_figures()

    def tick(self, now: float) -> None:
        if self._for_figures:
            self._told_at = now
            self._tell_figures()

    def statistics(self) -> Mapping[str, object]:
        return {"observers": len(self.connections)}

    def _tell_figures(self) -> None:
        """Where they stand, unless that was told."""
        figures = self.figures()
        if figures != self._told:
            self._told = figures
            frame = Observed(events=[{"kind": "figures", "broker": self._identity, **figures}])
            for connection in self._for_figures:
                self._links.reply(connection, frame)
