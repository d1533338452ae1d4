"""MeasuredShares: at what share of a plan's partitions messages match, as the brokers count it.

Every broker is told the plan in force, once, and reports what it has counted since its last report
(``PartitionsMatched``).  What comes together here is one number a partition.  Recent messages count
more: whenever ``WINDOW_MESSAGES`` have come, all that was counted so far is halved.
"""

from __future__ import annotations

from collections.abc import Iterable

from overlay.answers import MatchedShares
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.durable import StoredMap, StoredValue
from overlay.link.frames import PartitionsMatched, PlanInForce
from overlay.link.limits import FRAME_HEADROOM_BYTES
from overlay.link.part import Part, Taker, takes
from overlay.link.tables import Row, Table
from overlay.topology import Topology
from registration.catalog import REGISTRATION_KEY
from registration.placement_by_plan import PlanPlacement

WINDOW_MESSAGES = 100_000


class _ToldRow(Row, frozen=True):
    """The plan that a broker was told of."""

    plan: str


class _SharesRow(Row, frozen=True):
    """Of so many messages, how many have matched something of a partition."""

    plan: str
    messages: float
    matched: list[tuple[int, float]]


TOLD = Table("plan-told", _ToldRow)
SHARES = Table("shares", _SharesRow)


class MeasuredShares(Part):
    """The sums for the plan in force; they survive a restart."""

    def __init__(self, context: CoreContext, placement: PlanPlacement) -> None:
        self._topology = context.topology
        self._placement = placement
        self._links = context.links
        self._told = StoredMap(context.rows, TOLD)  # by broker
        self._shares = StoredValue(context.rows, SHARES, _SharesRow("", 0.0, []))

    def use_topology(self, topology: Topology) -> None:
        """The network has changed."""
        self._topology = topology

    def frames(self) -> Iterable[Taker]:
        yield takes(PartitionsMatched, "broker", self._handle_matched)

    def plan_changed(self) -> None:
        """Another plan is in force: tell every broker, begin anew."""
        for broker in self._topology.broker_ids:
            self.tell(broker)

    def tell(self, broker: str) -> None:
        """Tell a broker the plan in force unless it was told."""
        plan, text = self._placement.plan_id, self._placement.plan_text
        told = self._told.get(broker)
        if plan == ("" if told is None else told.plan):
            return
        if len(text) > self._topology.limits.link.frame_bytes_max - FRAME_HEADROOM_BYTES:
            return
        self._told[broker] = _ToldRow(plan)
        frame = PlanInForce(plan=plan, payload=text)
        self._links.send(f"broker/{broker}", REGISTRATION_KEY, frame)

    def _handle_matched(self, frame: PartitionsMatched, arrival: Arrival) -> None:
        """A broker's counts; those of a plan that is not in force any more are passed over."""
        if not frame.plan or frame.plan != self._placement.plan_id:
            return
        before = self._of_plan(frame.plan)
        messages, matched = before.messages + frame.accepted, dict(before.matched)
        partitions = self._placement.partitions
        for partition, count in frame.matched:
            if partition < partitions:
                matched[partition] = matched.get(partition, 0.0) + count
        while messages > WINDOW_MESSAGES:
            messages /= 2
            matched = {partition: count / 2 for partition, count in matched.items()}
        self._shares.put(_SharesRow(frame.plan, messages, sorted(matched.items())))

    def _of_plan(self, plan: str) -> _SharesRow:
        """The sums for a plan; none where another one was in force."""
        now = self._shares.now
        return now if now.plan == plan else _SharesRow(plan, 0.0, [])

    def measured(self) -> MatchedShares:
        now = self._of_plan(self._placement.plan_id)
        if not now.messages:
            return MatchedShares()
        total = sum(count for _, count in now.matched)
        share = total / now.messages / self._placement.partitions
        return MatchedShares(now.messages, now.matched, share)
