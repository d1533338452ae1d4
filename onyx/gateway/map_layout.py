"""Layout: where the brokers of a network stand on the map, found once for each shape of it."""

from __future__ import annotations

from collections.abc import Mapping

import trio

from onyx.cli.network_layout import network_layout
from overlay.topology import Topology

CELL = 96, 56  # the room of a broker


class Layout:
    """Keeps that of the last shape: settings, formats and how far a change is make no other."""

    def __init__(self) -> None:
        self._of: object = None
        self._points: Mapping[str, tuple[float, float]] = {}

    async def points(self, topology: Topology) -> Mapping[str, tuple[float, float]]:
        """By broker; in a thread, as others are answered meanwhile."""
        places = [(broker.id, broker.place) for broker in topology.brokers]
        shape = places, [link.ends for link in topology.links]
        if shape != self._of:
            points = await trio.to_thread.run_sync(network_layout, topology, *CELL)
            left, top = (min(point[axis] for point in points.values()) for axis in (0, 1))
            found = {b: (round(x - left), round(y - top)) for b, (x, y) in points.items()}
            self._of, self._points = shape, found
        return self._points
