"""MeasuredShares: at what share of a plan's partitions messages match, as the brokers count it.

Every broker is told the plan in force, once, and reports what it has counted since its last report
(``PartitionsMatched``).  What comes together here is one number a partition.  Recent messages count
more: whenever ``WINDOW_MESSAGES`` have come, all that was counted so far is halved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.frames import PartitionsMatched, PlanInForce
from overlay.link.limits import FRAME_HEADROOM_BYTES
from overlay.link.part import Part, Taker, takes
from overlay.link.request_server import Result
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table
from overlay.topology import Topology
from registration.catalog import REGISTRATION_KEY
from registration.placement_by_plan import PlanPlacement

WINDOW_MESSAGES = 100_000

_CURRENT = "current"


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

    section = "shares"

    def __init__(self, context: CoreContext, placement: PlanPlacement) -> None:
        self._topology = context.topology
        self._placement = placement
        self._links = context.links
        self._rows = context.rows
        self._told: dict[str, str] = {}  # broker -> the plan that it was told
        self._plan = ""
        self._messages = 0.0
        self._matched: dict[int, float] = {}
        self._counters: Counter[str] = Counter()

    def use_topology(self, topology: Topology) -> None:
        """The network has changed."""
        self._topology = topology

    def frames(self) -> Iterable[Taker]:
        yield takes(PartitionsMatched, "broker", self._handle_matched)

    def restore(self, rows: StoredRows) -> None:
        self._told.update((broker, row.plan) for broker, row in rows.take(TOLD))
        for _, row in rows.take(SHARES):
            self._plan, self._messages = row.plan, row.messages
            self._matched = dict(row.matched)

    def plan_changed(self) -> None:
        """Another plan is in force: tell every broker, begin anew."""
        for broker in self._topology.broker_ids:
            self.tell(broker)

    def tell(self, broker: str) -> None:
        """Tell a broker the plan in force unless it was told."""
        plan, text = self._placement.plan_id, self._placement.plan_text
        if self._told.get(broker, "") == plan:
            return
        if len(text) > self._topology.limits.link.frame_bytes_max - FRAME_HEADROOM_BYTES:
            self._counters["plans_too_large"] += 1
            return
        self._told[broker] = plan
        TOLD.put(self._rows, broker, _ToldRow(plan))
        frame = PlanInForce(plan=plan, payload=text)
        self._links.send(f"broker/{broker}", REGISTRATION_KEY, frame)

    def _handle_matched(self, frame: PartitionsMatched, arrival: Arrival) -> None:
        """A broker's counts; those of a plan that is not in force any more are passed over."""
        if not frame.plan or frame.plan != self._placement.plan_id:
            self._counters["of_an_earlier_plan"] += 1
            return
        if frame.plan != self._plan:
            self._plan, self._messages, self._matched = frame.plan, 0.0, {}
        self._messages += frame.accepted
        partitions = self._placement.partitions
        for partition, count in frame.matched:
            if partition < partitions:
                self._matched[partition] = self._matched.get(partition, 0.0) + count
        while self._messages > WINDOW_MESSAGES:
            self._messages /= 2
            self._matched = {partition: count / 2 for partition, count in self._matched.items()}
        row = _SharesRow(self._plan, self._messages, sorted(self._matched.items()))
        SHARES.put(self._rows, _CURRENT, row)

    def measured(self) -> Result:
        """``messages`` that were accepted; ``matched``: (partition, how many of them matched
        something of it); ``matched_share``: the mean share of the partitions that a message
        matches (None: no messages yet)."""
        if self._plan != self._placement.plan_id or not self._messages:
            return {"messages": 0.0, "matched": [], "matched_share": None}
        total = sum(self._matched.values())
        return {
            "messages": self._messages,
            "matched": sorted(self._matched.items()),
            "matched_share": total / self._messages / self._placement.partitions,
        }

    def statistics(self) -> dict[str, object]:
        return {"messages": self._messages, "partitions": len(self._matched), **self._counters}
