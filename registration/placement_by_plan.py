"""Placement by content: the plan in force, and the host broker that it gives a new profile.

Section 3.1 of the paper: the host broker is chosen "based on the user's location and/or the content
of the profile".  Without a plan, the location decides (placement.py); with one, the content does,
except for a profile that insists on its user's location.  "Don't care" profiles, which have
several partitions to choose from, go to the one nearest to the user.  A broker that is full gets
nothing; what was meant for it goes where there is room, and is counted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress

from overlay.link.durable import StoredValue
from overlay.link.part import Part
from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table
from overlay.statistics import Placement, RegistrationStatistics
from overlay.topology import Topology
from overlay.verbs import PLAN_BYTES_MAX
from registration.catalog import ProfileEntry
from registration.placement import brokers_with_room, choose_host_broker
from registration.planning.plan import Placer, Plan
from registration.planning.plan_drift import PlacedProfile, home_of
from registration.planning.plan_file import PlanError, from_json, plan_id
from yfilter.errors import ProfileRefused


class _PlanRow(Row, frozen=True):
    text: bytes


PLAN = Table("plan", _PlanRow)


class PlanPlacement(Part):
    """Chooses host brokers for the profiles of a topology; the plan survives a restart."""

    def __init__(
        self, topology: Topology, rows: RowLog, away: Collection[str] = frozenset()
    ) -> None:
        """``away``: brokers that are not chosen where there are others."""
        self._away = away
        self._topology = topology
        self._stored: StoredValue[_PlanRow | None] = StoredValue(rows, PLAN, None)
        self._placer: Placer | None = None
        self.counted = Placement()
        self.plan_text = b""  # as it was given; empty: there is no plan

    @property
    def plan_id(self) -> str:
        return self.counted.plan

    def restore(self, rows: StoredRows) -> None:
        """A stored plan that this version cannot use, or of other brokers, is left aside."""
        if self._stored.now is not None:
            with suppress(PlanError):
                self._install(self._stored.now.text)

    def use_topology(self, topology: Topology) -> None:
        """The network has changed; a plan for brokers that are gone stays in force for the rest."""
        self._topology = topology

    def use(self, text: bytes) -> str:
        """Put a plan in force for all profiles to come (empty: none); gives its id.

        PlanError when it is no plan for this network.
        """
        if not text:
            self._placer, self.counted.plan, self.plan_text = None, "", b""
            self._stored.put(None)
            return ""
        self._install(text)
        self._stored.put(_PlanRow(text))
        return self.plan_id

    def choose(
        self,
        text: str,
        location: tuple[float, float] | None,
        near: bool,
        profiles_by_broker: Mapping[str, int],
    ) -> str:
        """The host broker of a profile that was accepted; ``near``: it insists on ``location``.

        RequestRefused when every broker is full.
        """
        if self._placer is None or near:
            return self._by_location(location, profiles_by_broker)
        plan = self._placer.plan
        placement = self._placer.place(text)
        hosts = {plan.broker_of(placement.partition)}
        if placement.pattern is None and location is not None:
            hosts = {plan.broker_of(partition) for partition in plan.dont_care}
        free = {broker.id for broker in brokers_with_room(self._topology, profiles_by_broker)}
        free = (free - set(self._away)) or free
        if hosts & free:
            if placement.pattern:
                self.counted.by_content += 1
            else:
                self.counted.dont_care += 1
            return choose_host_broker(self._topology, location, profiles_by_broker, hosts & free)
        self.counted.overflow += 1
        return self._by_location(location, profiles_by_broker)

    def _by_location(
        self, location: tuple[float, float] | None, profiles_by_broker: Mapping[str, int]
    ) -> str:
        return choose_host_broker(
            self._topology, location, profiles_by_broker, rather_not=self._away
        )

    @property
    def plan(self) -> Plan | None:
        """In force."""
        return self._placer.plan if self._placer else None

    @property
    def partitions(self) -> int:
        """Of the plan in force; 0 without one."""
        return self._placer.plan.partitions if self._placer else 0

    def home_of(self, entry: ProfileEntry) -> str | None:
        """The broker where the plan has a profile that is elsewhere; None if it is at home, insists
        on its place, or there is no plan."""
        if self._placer is None:
            return None
        try:
            placement = self._placer.place(entry.text)
        except ProfileRefused:
            return None  # accepted by another version; it has no place in this plan
        profile = PlacedProfile(entry.text, entry.host, entry.near)
        return home_of(self._placer.plan, placement, profile)

    def plan_of(self, text: bytes) -> Plan:
        """A plan for this network; PlanError when it is none."""
        if len(text) > PLAN_BYTES_MAX:
            raise PlanError("the plan", "", f"has {len(text)} bytes, at most {PLAN_BYTES_MAX}")
        plan = from_json(text)
        if not plan.brokers:
            raise PlanError("the plan", "brokers", "it was made without a topology")
        unknown = sorted(set(plan.brokers) - set(self._topology.broker_ids))
        if unknown:
            raise PlanError(
                "the plan", "brokers", f"{unknown[0]} is no broker of {self._topology.name}"
            )
        return plan

    def report(self, said: RegistrationStatistics) -> None:
        said.placement = self.counted

    def _install(self, text: bytes) -> None:
        plan = self.plan_of(text)
        self._placer = Placer(plan)
        self.counted.plan = plan_id(plan)
        self.plan_text = text
