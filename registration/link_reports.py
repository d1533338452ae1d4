"""LinkReports: what brokers say of their links, and which links are taken out of use for it.

A link that both its ends call down goes out of use as long as the others connect the network: the
trees are rebuilt without it.  One that neither calls down any more comes back.  A broker that is
away says nothing, so its links stay: its messages wait for it, and trees go round it where they can
(going_round.py).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.durable import StoredMap
from overlay.link.frames import LinkReported, ShapeReached
from overlay.link.part import Part, Taker, takes
from overlay.link.tables import Row, Table
from overlay.network_shape import Pair, is_connected, is_connected_without
from registration.audit_log import ITSELF, AuditLog
from registration.shape_changes import ShapeChanges


class _ReportRow(Row, frozen=True):
    """Who calls a link down; the key has its ends.  ``keeping``: who has all that the other end may
    have taken and not passed on."""

    by: set[str]
    keeping: set[str] = msgspec.field(default_factory=set)


REPORTS = Table("link-down", _ReportRow)


def _name(pair: Iterable[str]) -> str:
    """Of a link, by its ends."""
    return "|".join(sorted(pair))


class LinkReports(Part):
    """By link, the ends that call it down; durable."""

    def __init__(self, context: CoreContext, shapes: ShapeChanges, audit: AuditLog) -> None:
        self._connected = context.links.connected
        self._audit = audit
        self._shapes = shapes
        self._down = StoredMap(context.rows, REPORTS)

    def frames(self) -> Iterable[Taker]:
        yield takes(LinkReported, "broker", self._handle_reported)
        yield takes(ShapeReached, "broker", self._handle_reached)

    def reinstate(self, down: Iterable[Pair]) -> None:
        """The links that are out of use; both ends have said so, before the store was lost."""
        for pair in down:
            self._down[_name(pair)] = _ReportRow(set(pair))

    def _handle_reported(self, frame: LinkReported, arrival: Arrival) -> None:
        """A broker has lost or found a neighbour."""
        broker = arrival.sender
        link = _name((broker, frame.neighbour))
        row = self._down.get(link) or _ReportRow(set())
        row.by.discard(broker) if frame.up else row.by.add(broker)
        row.keeping.add(broker) if frame.kept else row.keeping.discard(broker)
        if row.by:
            self._down[link] = row
        else:
            self._down.pop(link)
        self.flush_at_end()  # others may have lost theirs in the same moment

    def flush(self) -> None:
        self.decide()

    def _handle_reached(self, frame: ShapeReached, arrival: Arrival) -> None:
        """A broker is further on in a change; where that settles it, another may be due."""
        if self._shapes.handle_reached(arrival.sender, frame):
            self.decide()

    def tick(self, now: float) -> None:
        """Both ends of a link that they call down may be here now."""
        if self._down:
            self.decide()

    def is_missed(self, broker: str, by: str) -> bool:
        """Whether a neighbour calls its link with a broker down, which does not itself."""
        row = self._down.get(_name((broker, by)))
        return row is not None and row.by == {by}

    def is_replaced(self, broker: str, by: str) -> bool:
        """Whether a neighbour misses a broker and has all that it may not have passed on."""
        row = self._down.get(_name((broker, by)))
        return row is not None and by in row.by & row.keeping

    def decide(self) -> None:
        """Change the shape of the network if what was said calls for it: perhaps a link is down
        that it can do without now."""
        newest = self._shapes.newest
        declared = {frozenset(link.ends) for link in newest.declared.links}
        down = {pair for pair in newest.down if _name(pair) in self._down}
        for pair in sorted(declared - down, key=sorted):
            row = self._down.get(_name(pair))
            if (
                row is not None
                and pair <= row.by
                and not pair & newest.away
                and all(self._connected(f"broker/{end}") for end in pair)
                and is_connected(newest.declared, {*down, pair})
                and is_connected_without(newest.declared, newest.away, {*down, pair})
            ):
                down.add(pair)
        if down != newest.down:
            shape = self._shapes.change(newest.declared, down)
            names = ", ".join(sorted("-".join(sorted(pair)) for pair in down)) or "none"
            self._audit.note(ITSELF, "links", f"version {shape.version}: out of use: {names}")
