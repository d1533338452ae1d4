"""HostReports: what brokers say of the sources and profiles that they were given.

A root broker says that a source is ready; a host broker, that it has profiles, that they are
changed or gone, and that they are live.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from overlay import verbs
from overlay.answers import Done, Processes
from overlay.link.arrival import Arrival
from overlay.link.frames import (
    DeliveryPolicies,
    ProfilesChanged,
    ProfilesLive,
    ProfilesPlaced,
    SourceReady,
    SourceReleased,
)
from overlay.link.part import Part, Taker, takes
from overlay.link.request_server import RequestRefused, Verb, alone
from overlay.statistics import RegistrationStatistics
from registration.catalog import Catalog
from registration.drains import Drains
from registration.moves import MOVE_FRAMES, MoveFrame, Moves
from registration.plan_application import PlanApplication
from registration.registration_requests import RegistrationRequests
from registration.shape_changes import ShapeChanges
from registration.source_changes import SourceChanges
from registration.source_roots import SourceRoots

# -------------------------------------------------------------------------------------------------
# ProcessReports: which processes do not run just now, as whoever runs them says.
#
# Nothing of it is stored: it is said again to a registration service that starts anew.


class ProcessReports(Part):
    """The verbs ``processes.report`` and ``network``; ``report`` says what it was told last."""

    def __init__(self, shapes: ShapeChanges, identity: str) -> None:
        self._shapes = shapes
        self._identity = identity
        self._down: dict[str, str] = {}
        self.verbs = (
            Verb(verbs.ProcessesReport, alone(self._report)),
            Verb(verbs.Network, alone(self._network)),
        )

    def report(self, said: RegistrationStatistics) -> None:
        said.processes.down = self._down

    def _network(self, asked: verbs.Network) -> Processes:
        topology = self._shapes.topology
        brokers = {id_: topology.where(id_) for id_ in topology.broker_ids}
        return Processes(self._identity, brokers, frozenset(self._down), topology.name)

    def _report(self, asked: verbs.ProcessesReport) -> Done:
        """``down``: why a node does not run, of all that do not."""
        down = asked.down
        unknown = [node for node in down if not self._is_node(node)]
        if unknown:
            raise RequestRefused(
                "bad-argument",
                f"{asked.verb}: 'down' names {unknown[0]!r}, no node of this network",
            )
        self._down = down
        return Done()

    def _is_node(self, node: str) -> bool:
        return node == self._identity or self._shapes.knows(node)


# -------------------------------------------------------------------------------------------------


class HostReports(Part):
    """Enters it in the catalog, and answers who waits for it."""

    def __init__(
        self,
        catalog: Catalog,
        moves: Moves,
        requests: RegistrationRequests,
        roots: SourceRoots,
        changes: SourceChanges,
        application: PlanApplication,
        drains: Drains,
    ) -> None:
        self._application = application
        self._drains = drains
        self._roots = roots
        self._changes = changes
        self._catalog = catalog
        self._moves = moves
        self._requests = requests

    def frames(self) -> Iterable[Taker]:
        for kind in MOVE_FRAMES:
            yield takes(kind, "broker", self._handle_move)
        yield takes(SourceReady, "broker", self._handle_ready)
        yield takes(SourceReleased, "broker", self._handle_released)
        yield takes(ProfilesPlaced, "broker", self._handle_placed)
        yield takes(ProfilesChanged, "broker", self._handle_changed)
        yield takes(ProfilesLive, "broker", self._handle_live)
        yield takes(DeliveryPolicies, "broker", self._handle_policies)

    def _handle_ready(self, frame: SourceReady, arrival: Arrival) -> None:
        entry = self._catalog.sources.get(frame.source)
        if entry is not None and entry.root == arrival.sender:
            self._roots.ready(entry.source)
            entry = replace(entry, ready=True, in_force=frame.version)
            self._catalog.put_source(entry)
            self._requests.answer_source(entry)
            self._changes.ready(entry)

    def _handle_released(self, frame: SourceReleased, arrival: Arrival) -> None:
        entry = self._catalog.sources.get(frame.source)
        if entry is not None and entry.root == arrival.sender:
            self._roots.released(entry, frame.taken)
            self._changes.flush_soon()

    def _handle_placed(self, frame: ProfilesPlaced, arrival: Arrival) -> None:
        placed = (self._catalog.change_profile(p, placed=True) for p in frame.profiles)
        self._requests.answer_profiles([entry for entry in placed if entry is not None])

    def _handle_changed(self, frame: ProfilesChanged, arrival: Arrival) -> None:
        """A host broker has updated or removed profiles, or taken them back."""
        changed, removed = [], []
        for profile, version, text in frame.profiles:
            if text is None:
                self._moves.removed(profile)
                self._catalog.remove_profile(profile)
                removed.append(profile)
                continue
            entry = self._catalog.change_profile(profile, text=text, version=version, placed=True)
            if entry is not None:
                self._moves.changed(entry)
                changed.append(entry)
        self._requests.answer_profiles(changed)
        self._requests.answer_removed(removed)

    def _handle_live(self, frame: ProfilesLive, arrival: Arrival) -> None:
        live = []
        for profile, version in frame.profiles:
            entry = self._catalog.profiles.get(profile)
            if entry is not None and version > entry.live:
                entry = replace(entry, live=version)
                self._catalog.put_profile(entry)
                live.append(entry)
        self._requests.answer_profiles(live)

    def _handle_policies(self, frame: DeliveryPolicies, arrival: Arrival) -> None:
        """A host broker keeps profiles otherwise."""
        for profile, policy in frame.by_profile():
            entry = self._catalog.profiles.get(profile)
            if entry is not None and entry.host == arrival.sender:
                self._catalog.policies.put(profile, policy)
                self._moves.policy_changed(profile, policy)

    def _handle_move(self, frame: MoveFrame, arrival: Arrival) -> None:
        move = self._moves.handle(arrival.sender, frame)
        if move is not None:
            self._application.moved(move)
            self._drains.moved(move)
            self._requests.answer_profiles([self._catalog.profiles[move.profile]])
