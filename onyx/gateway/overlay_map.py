"""OverlayMap: brokers and links as a page shows them, and what has changed for each who looks.

::

    figures of a broker ──apply──> where all stand ──Changes.take──> what is new for one viewer

Pure: no network, no clock.  What waits for a viewer who is slow is what has changed since, once for
each link and broker, however long that is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from overlay.topology import Topology

Figures = Mapping[str, Any]
AWAY, HERE = "away", "here"


class Changes:
    """Of one viewer, since they took the last; at first all that is known."""

    def __init__(self, overlay: OverlayMap) -> None:
        self._overlay = overlay
        self.brokers = set(range(len(overlay.topology.brokers)))
        self.links = set(range(len(overlay.topology.links)))
        self.crossings: Counter[tuple[int, int]] = Counter()  # by link and direction

    def take(self) -> dict[str, Any] | None:
        """``brokers``: [place, state, profiles, published, delivered, refused, waiting bytes];
        ``links``: [place, crossings there, back, backlog there, back, format, whether it is up];
        None: nothing."""
        if not self.brokers and not self.links:
            return None
        overlay = self._overlay
        links = [
            [at, self.crossings[at, 0], self.crossings[at, 1], *overlay.link_state(at)]
            for at in sorted(self.links)
        ]
        brokers = [[at, *overlay.broker_state(at)] for at in sorted(self.brokers)]
        self.brokers.clear()
        self.links.clear()
        self.crossings.clear()
        return {"brokers": brokers, "links": links}


class OverlayMap:
    """``points``: where brokers stand, by id."""

    def __init__(self, topology: Topology, points: Mapping[str, tuple[float, float]]) -> None:
        self.topology = topology
        self._points = points
        self._places = {broker.id: at for at, broker in enumerate(topology.brokers)}
        self._links: dict[tuple[str, str], tuple[int, int]] = {}
        for at, link in enumerate(topology.links):
            a, b = link.ends
            self._links[a, b], self._links[b, a] = (at, 0), (at, 1)
        self._told: dict[str, Figures] = {}
        self._states = dict.fromkeys(self._places, AWAY)
        self.viewers: set[Changes] = set()

    def snapshot(self) -> dict[str, Any]:
        """What does not change: ``brokers`` [id, label, x, y], ``links`` [place, place]."""
        brokers = [[b.id, b.label, *self._points[b.id]] for b in self.topology.brokers]
        links = [[self._places[end] for end in link.ends] for link in self.topology.links]
        return {"name": self.topology.name, "brokers": brokers, "links": links}

    def look(self) -> Changes:
        """Another viewer; they are taken from ``viewers`` when they have gone."""
        changes = Changes(self)
        self.viewers.add(changes)
        return changes

    def apply(self, broker: str, figures: Figures) -> None:
        """Where the counters of a broker stand; what is counted once is counted from the last."""
        place, last = self._places[broker], self._told.get(broker)
        self._told[broker], self._states[broker] = figures, HERE
        for other, now in figures["links"].items():
            known = self._links.get((broker, other))
            before = None if last is None else last["links"].get(other)
            if known is None or now == before:
                continue
            crossed = 0 if before is None else max(0, now[0] - before[0])
            for viewer in self.viewers:
                viewer.links.add(known[0])
                viewer.crossings[known] += crossed
        for viewer in self.viewers:
            viewer.brokers.add(place)

    def gone(self, broker: str) -> None:
        """Nobody answers there."""
        if self._states[broker] != AWAY:
            self._states[broker] = AWAY
            for viewer in self.viewers:
                viewer.brokers.add(self._places[broker])

    def broker_state(self, place: int) -> list[Any]:
        """From its state on, as in ``Changes.take``."""
        broker = self.topology.brokers[place].id
        figures = self._told.get(broker, {})
        counted = ("profiles", "published", "delivered", "refused", "waiting_bytes")
        return [self._states[broker], *(figures.get(name, 0) for name in counted)]

    def link_state(self, place: int) -> list[Any]:
        """From the backlogs on."""
        ends = self.topology.links[place].ends
        there, back = self._of(*ends), self._of(*reversed(ends))
        is_up = bool(there and back and there[3] and back[3])
        formats = dict.fromkeys(said[2] for said in (there, back) if said)
        waiting = [said[1] if said else 0 for said in (there, back)]
        return [*waiting, " / ".join(formats), is_up]

    def _of(self, broker: str, other: str) -> list[Any]:
        links: Mapping[str, list[Any]] = self._told.get(broker, {}).get("links", {})
        return links.get(other, [])
