"""Reinstatement: what all brokers have told is what the registration service knows again.

What of two brokers has to be seen together is a move: it goes on where it was, by what its two
hosts say::

    new host      old host          the move is
    ──────────────────────────────────────────────────────────────
    coming        hosts it          standing by
    coming        parts from it     being released
    coming        has let go        being handed over
    hosts it      has let go        over: the old host is told so
    coming        knows nothing     none: the profile was removed; where a broker
                                    is lost, that was its host, and it goes on here
    knows nothing parts from it     none: it stays

Where a profile is coming to several, all moves but the last were given up.  Both say once more what
was on its way between them, behind that (onyx/broker/requests/request_parts.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import chain
from typing import TypeVar

from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.durable import Member, StoredSet
from overlay.link.errors import StoreLost
from overlay.link.events import Flow
from overlay.link.frame import Frame
from overlay.link.frames import (
    AccessAnnounced,
    Hello,
    PlanInForce,
    TaxonomiesAnnounced,
)
from overlay.link.lost_stores import STORE_LOST, lost_detail
from overlay.link.part import Part
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Table
from overlay.network_shape import NetworkShape, kept_down, without_broker
from registration.access_control import AccessControl
from registration.audit_log import ITSELF, AuditLog
from registration.catalog import REGISTRATION_KEY, Catalog
from registration.catalog_rebuild import BrokerTold
from registration.link_reports import LinkReports
from registration.measured_shares import MeasuredShares
from registration.moves import Moves, Phase
from registration.placement_by_plan import PlanPlacement
from registration.planning.plan_file import PlanError
from registration.rehosting import Rehosting
from registration.shape_changes import ShapeChanges
from registration.source_roots import SourceRoots
from registration.taxonomies import Taxonomies

# -------------------------------------------------------------------------------------------------
# LostCatalog: a registration service that knows less than its brokers does not begin anew.
#
# Each broker says in its hello how much it has of what this service has told it.  If that is more
# than this service has ever said, its store was emptied or is an older copy: the profiles and
# sources that it has forgotten are there, and the ids that it would give out have been given out.
# So the process ends, before anything is told to anybody: who adds a profile is answered by its
# host broker.


MET = Table("broker-met", Member)
"""There is one row as soon as a broker was met."""


class LostCatalog(Part):
    """Looks at the hellos of brokers; durable is only that one was met."""

    def __init__(self, context: CoreContext) -> None:
        self._data = context.topology.data_directory
        self._links = context.links
        self._met = StoredSet(context.rows, MET)
        self._has_met = False

    def restore(self, rows: StoredRows) -> None:
        # A store of an earlier release has channels only.
        brokers = self._links.peers("broker")
        self._has_met = bool(self._met) or any(map(self._has_heard, brokers))

    def admits(self, broker: str, hello: Hello, connection: int) -> bool:
        """Whether a broker may be met: not with the store of before it left.  StoreLost when a
        broker of this network knows more than this service."""
        is_known = self._has_heard(broker)
        sending = self._links.journal(f"broker/{broker}").sending
        for flow, key, number in hello.received:
            channel = sending.get((Flow(flow), key))
            last = 0 if channel is None else channel.last
            if number <= last:
                continue
            if is_known or not self._has_met:
                raise StoreLost(
                    "the store of the registration service was emptied, or is an older copy: "
                    f"broker {broker} has {number} frames from it, and it knows of {last}. "
                    "Put back the store that it had, or have the catalog rebuilt from the brokers: "
                    f"onyx store rebuild {self._data}"
                )
            sign = f"{broker} has joined anew, and has {number} frames of before"
            detail = lost_detail(f"broker/{broker}", sign)
            self._links.refuse(connection, STORE_LOST, detail)
            return False
        if not self._has_met:
            self._has_met = True
            self._met.add("any")
        return True

    def _has_heard(self, broker: str) -> bool:
        """Whether a broker has said anything since it joined."""
        journal = self._links.journal(f"broker/{broker}")
        return bool(journal.receiving) or any(c.floor for c in journal.sending.values())


# -------------------------------------------------------------------------------------------------


F = TypeVar("F", bound=Frame)

NOT_TOLD = (
    "what no broker was told: requests under way, keys of profiles and sources, drains and "
    "plans that were being applied, texts of single taxonomies, dead letters and the audit log "
    "until now, as far as an older copy of the store did not have them"
)


class Reinstatement:
    """Of the parts of one core."""

    def __init__(
        self,
        catalog: Catalog,
        shapes: ShapeChanges,
        moves: Moves,
        roots: SourceRoots,
        rehosting: Rehosting,
        reports: LinkReports,
        access: AccessControl,
        taxonomies: Taxonomies,
        placement: PlanPlacement,
        shares: MeasuredShares,
        audit: AuditLog,
        connected: Callable[[str], bool],
        hand_on: Callable[[Arrival], None],
    ) -> None:
        """``connected(peer)``: whether "broker/B2" is there; ``hand_on``: see Part."""
        self._hand_on = hand_on
        self._catalog = catalog
        self._shapes = shapes
        self._moves = moves
        self._roots = roots
        self._rehosting = rehosting
        self._reports = reports
        self._access = access
        self._taxonomies = taxonomies
        self._placement = placement
        self._shares = shares
        self._audit = audit
        self._connected = connected

    def reinstate(self, told: Mapping[str, BrokerTold], lost: Collection[str]) -> str:
        """Without the brokers ``lost``, of which nobody knows anything; what came of it."""
        missing = []
        self._take_shapes(told)
        self._reports.reinstate(self._shapes.newest.down)
        self._access.reinstate(_newest(told, AccessAnnounced))
        self._taxonomies.reinstate(_newest(told, TaxonomiesAnnounced))
        missing += self._take_plan(told)
        highest = max((each.told.profile for each in told.values() if each.told), default=0)
        self._catalog.reinstate(highest)
        missing += self._take_moves(told, " or ".join(sorted(lost)))
        for source in list(self._catalog.sources.values()):
            if not self._shapes.newest.has_broker(source.root):
                self._roots.leave_one(source.source)
        later = [(*each, broker) for broker, of in told.items() for each in of.later]
        for _, frame, broker in sorted(later, key=lambda each: each[0]):
            self._hand_on(Arrival(0, f"broker/{broker}", frame, REGISTRATION_KEY))
        self._shapes.go_on()
        if self._shapes.is_settled:
            self._roots.settle()
        for broker in sorted(lost):
            missing += self._give_up(broker)
        for broker in self._shapes.topology.broker_ids:
            if self._connected(f"broker/{broker}"):
                for part in (self._shares, self._access, self._taxonomies):
                    part.tell(broker)
        return self._say(told, missing)

    # --- helpers --------------------------------------------------------------------------

    def _take_shapes(self, told: Mapping[str, BrokerTold]) -> None:
        """A broker that joins began with a version 0 of its own, that has itself in it."""
        shapes: dict[int, NetworkShape] = {}
        newest = {}
        for broker, each in told.items():
            known = each.shapes
            newest[broker] = max(known)
            for version, shape in known.items():
                other = shapes.get(version)
                if other is None or len(other.tree_versions) > len(shape.tree_versions):
                    shapes[version] = shape
        stages = {broker: each.told for broker, each in told.items() if each.told is not None}
        self._shapes.reinstate(shapes, newest, stages)

    def _take_plan(self, told: Mapping[str, BrokerTold]) -> list[str]:
        plans = {frame.payload for frame in _frames(told, PlanInForce)}
        if not plans:
            return []
        if len(plans) > 1:
            return ["brokers know different plans: put one in force"]
        try:
            self._placement.use(plans.pop())
        except PlanError as error:
            return [f"the plan cannot be used: {error}"]
        return []

    def _take_moves(self, told: Mapping[str, BrokerTold], lost: str) -> list[str]:
        """See the module's text; ``lost``: the names of brokers."""
        moving = {broker: each.moving for broker, each in told.items() if each.moving is not None}
        leaving = {
            (profile, move): (broker, is_done)
            for broker, each in moving.items()
            for profile, move, _, is_done in each.leaving
        }
        self._moves.numbers_from(max((t.told.move for t in told.values() if t.told), default=0))
        last: dict[str, int] = {}
        for profile, move, _ in chain.from_iterable(each.coming for each in moving.values()):
            last[profile] = max(move, last.get(profile, 0))
        gone = []
        for new, each in moving.items():
            for profile, move, version in each.coming:
                if move < last[profile]:
                    self._moves.say_ended(new, profile, move)
                    continue
                entry = self._catalog.profiles.get(profile)
                old, is_done = leaving.pop((profile, move), ("", False))
                if old:
                    phase = Phase.HANDOVER if is_done else Phase.RELEASE
                    self._catalog.change_profile(profile, host=old)
                elif entry is not None and entry.host != new:
                    old, phase = entry.host, Phase.STANDBY
                else:
                    self._moves.say_ended(new, profile, move)
                    if lost and entry is not None:
                        self._rehosting.place(profile, new, lost, self._shapes.newest.version + 1)
                    else:
                        self._catalog.remove_profile(profile)
                        gone.append(profile)
                    continue
                self._moves.resume(profile, move, old, new, version, phase)
        for (profile, move), (old, is_done) in leaving.items():
            entry = self._catalog.profiles.get(profile)
            if entry is not None and entry.host == old:
                self._moves.give_back(entry)
            else:
                self._moves.say_ended(old, profile, move)
                if is_done and entry is None:
                    gone.append(profile)
        if not gone:
            return []
        return [f"profiles that were removed, or lost as they moved: {', '.join(sorted(gone))}"]

    def _give_up(self, broker: str) -> list[str]:
        newest = self._shapes.newest
        if not newest.has_broker(broker):
            return []
        declared = without_broker(newest.declared, broker)
        self._shapes.change(declared, kept_down(newest, declared), [broker])
        return [f"the profiles that {broker} hosted"]

    def _say(self, told: Mapping[str, BrokerTold], missing: Iterable[str]) -> str:
        counts = Counter(
            profiles=len(self._catalog.profiles),
            sources=len(self._catalog.sources),
            moves=len(self._moves),
        )
        found = ", ".join(f"{count} {what}" for what, count in counts.items())
        lacks = "; ".join((*missing, NOT_TOLD))
        said = f"from {', '.join(sorted(told))}: {found}. Not to be had: {lacks}."
        self._audit.note(ITSELF, "rebuild", said)
        return said


def _frames(told: Mapping[str, BrokerTold], kind: type[F]) -> list[F]:
    return [frame for of in told.values() for frame in of.known if isinstance(frame, kind)]


def _newest(told: Mapping[str, BrokerTold], kind: type[F]) -> F | None:
    """By its version; of several of one, what most know."""
    found = _frames(told, kind)
    if not found:
        return None
    return max(found, key=lambda frame: (getattr(frame, "version", 0), found.count(frame)))
