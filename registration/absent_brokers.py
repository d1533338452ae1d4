"""AbsentBrokers: which brokers are away for long; new sources and profiles go to others.

A broker that has its profiles and sources keeps them; it is only not chosen, as long as any other
will do.  A service that has just started waits as long before it says so.
"""

from __future__ import annotations

from collections.abc import Mapping

from overlay.limits import Limits
from overlay.link.core_context import CoreContext
from overlay.link.part import Part
from registration.shape_changes import ShapeChanges


class AbsentBrokers(Part):
    """``away``: their ids, always the same set."""

    section = "processes"

    def __init__(self, context: CoreContext, shapes: ShapeChanges) -> None:
        self.away: set[str] = set()
        self._shapes = shapes
        self._connected = context.links.connected
        self._after_s = context.limits.link_down_after_s
        self._since: dict[str, float] = {}

    def take_limits(self, limits: Limits) -> None:
        self._after_s = limits.link_down_after_s

    def tick(self, now: float) -> None:
        """Time goes on."""
        brokers = self._shapes.topology.broker_ids
        missing = {broker for broker in brokers if not self._connected(f"broker/{broker}")}
        self._since = {broker: self._since.get(broker, now) for broker in missing}
        self.away.clear()
        for broker, since in self._since.items():
            if now - since >= self._after_s:
                self.away.add(broker)

    def statistics(self) -> Mapping[str, object]:
        return {"away": sorted(self.away)}
