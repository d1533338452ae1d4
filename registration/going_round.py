"""GoingRound: brokers that are dead for long, which the trees of others go round.

A broker is gone round when nobody has heard of it for ``link_down_after_s``, this service itself
included, everybody else is there and reached without it, and each of its neighbours has what it may
have taken and not passed on (onyx/broker/shape/shape_parts.py).  It keeps its profiles and its
sources, and its place in the network: what is for them waits at its neighbours.  When it is back,
and has had that, the trees lead through it again.  One at a time; where there is no other way all
waits for it.
"""

from __future__ import annotations

from collections.abc import Collection

from overlay.limits import Limits
from overlay.link.core_context import CoreContext
from overlay.link.frame import GOING_ROUND
from overlay.link.link_layer import LinkLayer
from overlay.link.part import Part
from overlay.network_shape import is_connected_without, next_shape
from overlay.statistics import RegistrationStatistics
from registration.audit_log import ITSELF, AuditLog
from registration.link_reports import LinkReports
from registration.shape_changes import ShapeChanges

# -------------------------------------------------------------------------------------------------
# AbsentBrokers: which brokers are away for long; new sources and profiles go to others.
#
# A broker that has its profiles and sources keeps them; it is only not chosen, as long as any other
# will do.  A service that has just started waits as long before it says so.


class AbsentBrokers(Part):
    """Keeps the set ``away`` of their ids."""

    def __init__(self, context: CoreContext, shapes: ShapeChanges, away: set[str]) -> None:
        self._away = away
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
        self._away.clear()
        for broker, since in self._since.items():
            if now - since >= self._after_s:
                self._away.add(broker)

    def report(self, said: RegistrationStatistics) -> None:
        said.processes.away = sorted(self._away)


# -------------------------------------------------------------------------------------------------


class GoingRound(Part):
    """Nothing is stored but the shapes."""

    def __init__(
        self,
        shapes: ShapeChanges,
        reports: LinkReports,
        away: Collection[str],
        links: LinkLayer,
        audit: AuditLog,
    ) -> None:
        """``away``: the brokers that this service misses for long."""
        self._shapes = shapes
        self._reports = reports
        self._missed = away
        self._links = links
        self._audit = audit
        self._same: set[tuple[int, frozenset[str]]] = set()  # the trees, past whom, of a version

    def tick(self, now: float) -> None:
        """Look whether somebody is dead, or back."""
        newest = self._shapes.newest
        if not (self._missed or newest.away):
            self._same.clear()
            return
        for broker in sorted(newest.away):
            if self._shapes.is_settled and self._is_back(broker):
                self._change(newest.away - {broker}, f"{broker} is back")
                return
        for broker in sorted(self._missed):
            if self._is_dead(broker):
                self._change(newest.away | {broker}, f"the trees go round {broker}")
                return

    # --- helpers --------------------------------------------------------------------------

    def _is_dead(self, broker: str) -> bool:
        newest = self._shapes.newest
        if not self._shapes.is_in_all(broker) or broker in newest.away:
            return False
        away = newest.away | {broker}
        others = [other for other in newest.declared.broker_ids if other not in away]
        return (
            all(GOING_ROUND in self._links.features(f"broker/{other}") for other in others)
            and all(
                other in others and self._reports.is_replaced(broker, by=other)
                for other in self._shapes.neighbours(broker)
            )
            and is_connected_without(newest.declared, away, newest.down)
            and self._matters(away)
        )

    def _matters(self, away: frozenset[str]) -> bool:
        """Whether any tree would be another, or somebody waits for a version to be settled."""
        if not self._shapes.is_settled:
            return True
        newest = self._shapes.newest
        tried = newest.version, away
        if tried not in self._same:  # all trees are made for that, and this is asked at each tick
            if next_shape(newest, newest.declared, newest.down, away=away).new_trees:
                return True
            self._same.add(tried)
        return False

    def _is_back(self, broker: str) -> bool:
        return (
            self._links.connected(f"broker/{broker}")
            and self._shapes.has_settled(broker)
            and not any(
                self._reports.is_missed(broker, by=other)
                for other in self._shapes.newest.declared.neighbours(broker)
            )
        )

    def _change(self, away: Collection[str], what: str) -> None:
        newest = self._shapes.newest
        shape = self._shapes.change(newest.declared, newest.down, away=away)
        self._audit.note(ITSELF, "brokers", f"version {shape.version}: {what}")
