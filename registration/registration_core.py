"""RegistrationCore: the registration service without I/O (section 3.1 of the paper).

Sources and users come here once; after that a source talks to its root broker and a user to his
host broker.  Ids, placement and the catalog are decided here (registration_requests.py); this
file takes in what the brokers report: a source is ready, a profile is placed, changed or live, or
further on its way to another host broker (moves.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from overlay.link.events import (
    Action,
    BatchHandled,
    CallAgain,
    CallAtEnd,
    Event,
    TimePassed,
)
from overlay.link.frame import Frame
from overlay.link.frames import (
    Hello,
    LinkReported,
    PartitionsMatched,
    ProfilesChanged,
    ProfilesLive,
    ProfilesPlaced,
    Relayed,
    Request,
    ShapeReached,
    SourceReady,
)
from overlay.link.link_layer import Arrival, LinkLayer
from overlay.link.move_frames import (
    HandedOver,
    HandoverWanted,
    ProfileReleased,
    ProfileTaken,
    StandingBy,
)
from overlay.link.request_server import Result
from overlay.link.row_log import RowLog
from overlay.link.slices import Slice
from overlay.link.stored_rows import Progress, StoredRows, unsaid
from overlay.topology import Topology
from registration.catalog import REGISTRATION_KEY, Catalog
from registration.link_reports import LinkReports
from registration.measured_shares import MeasuredShares
from registration.moves import MoveFrame, Moves
from registration.new_profiles import NewProfiles
from registration.placement_by_plan import PlanPlacement
from registration.plan_application import PlanApplication
from registration.plan_census import PlanCensus
from registration.plan_requests import PlanRequests
from registration.profile_batches import ProfileBatches
from registration.registration_requests import RegistrationRequests
from registration.shape_changes import ShapeChanges
from registration.shape_requests import ShapeRequests


class RegistrationCore:
    """The registration service of a topology."""

    def __init__(
        self,
        topology: Topology,
        identity: str,
        instance: str,
        rows: Iterable[tuple[str, str, bytes]] = (),
        node: Callable[[], Mapping[str, object]] = dict,
        progress: Progress = unsaid,
        clock: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """``instance`` is new for every start; ``rows`` is what the store held; ``node`` says how
        the shell fares, for statistics; ``progress`` is told how far the rows are taken;
        ``clock`` gives seconds of processor time, by which work is done in slices."""
        self.identity = identity
        self._node = node
        self._rows = RowLog()
        self._slice = Slice(clock)
        self.catalog = Catalog(self._rows)
        self._links = LinkLayer(
            role="registration",
            identity=identity,
            instance=instance,
            formats=[],
            limits=topology.limits.link,
            stored=True,
            is_over=self._slice.is_over,
        )
        self.moves = Moves(self.catalog, self._rows, self._send)
        self.shapes = ShapeChanges(topology, self.catalog, self._links, self._rows, self.moves.lost)
        self._reports = LinkReports(self.shapes, self._rows)
        self._placement = PlanPlacement(topology, self._rows)
        self._shares = MeasuredShares(topology, self._placement, self._links, self._rows)
        self._application = PlanApplication(
            topology, self.catalog, self._placement, self.moves, self._rows, self.connected
        )
        self._census = PlanCensus(self.catalog)
        plans = PlanRequests(self._placement, self._shares, self._application, self._census)
        shape = ShapeRequests(self.shapes, self.catalog, self._shape_changed)
        verbs = {**plans.verbs, **shape.verbs}
        self._news = NewProfiles(self.catalog, self._placement, self._links)
        self._batches = ProfileBatches(self.catalog, self._news, self._rows)
        self._requests = RegistrationRequests(
            *(self.shapes, self.catalog, self._news, self._batches),
            *(self._links, self.statistics, verbs),
        )
        self._handlers: Mapping[type[Frame], Callable[[Arrival], None]] = {
            SourceReady: self._handle_source_ready,
            ProfilesPlaced: self._handle_profiles_placed,
            ProfilesChanged: self._handle_profiles_changed,
            ProfilesLive: self._handle_profiles_live,
            PartitionsMatched: self._handle_partitions_matched,
            **dict.fromkeys(_MOVE_FRAMES, self._handle_move),
            ShapeReached: self._handle_shape_reached,
            LinkReported: self._handle_link_reported,
            Relayed: self._handle_relayed,
        }
        self._counters: Counter[str] = Counter()
        stored = StoredRows(self._links.restore(rows), progress)
        self.catalog.restore(stored)
        self._batches.restore(stored)
        self.shapes.restore(stored)
        self._reports.restore(stored)
        self._use_shape()
        self._placement.restore(stored)
        self._shares.restore(stored)
        self.moves.restore(stored)
        self._application.restore(stored)
        stored.check_taken()

    def handle(self, event: Event, now: float) -> list[Action]:
        self._slice.until = 0.0
        for arrival in self._links.handle(event, now):
            self._handle_arrival(arrival)
        has_more = self._application.run(now)
        has_more |= self._census.run(self._requests.answer)
        if isinstance(event, TimePassed):
            self.shapes.tick()
        elif isinstance(event, BatchHandled):
            self._news.flush()
        self.catalog.flush()
        actions = [*self._rows.drain(), *self._links.drain()]
        if has_more:
            actions.append(CallAgain())
        if self._news.has_unsent:
            actions.append(CallAtEnd())
        return actions

    def connected(self, peer: str) -> bool:
        """Whether a peer ("broker/B2") is there."""
        return self._links.connected(peer)

    def refusal(self, peer: str) -> str:
        """Why the last connection with a peer that is away was closed; "" if it broke."""
        return self._links.refusal(peer)

    def statistics(self) -> Result:
        return {
            "registration": self.identity,
            "catalog": self.catalog.statistics(),
            "placement": self._placement.statistics(),
            "shares": self._shares.statistics(),
            "profiles_by_broker": dict(self.catalog.profiles_by_broker),
            "moves": self.moves.statistics(),
            "census": self._census.statistics(),
            "shape": {**self.shapes.statistics(), **self._reports.statistics()},
            "requests": self._requests.statistics(),
            "links": self._links.statistics(),
            "unexpected": dict(self._counters),
            "node": dict(self._node()),
        }

    # --- arrivals -------------------------------------------------------------------------

    def _handle_arrival(self, arrival: Arrival) -> None:
        role, _, name = arrival.peer.partition("/")
        frame = arrival.frame
        if frame is None:
            self._requests.forget(arrival.connection)
            self._census.forget(arrival.connection)
        elif isinstance(frame, Hello):
            if role == "broker" and not self.shapes.knows(name):
                detail = f"{name!r} is no broker of {self.shapes.topology.name}"
                self._links.refuse(arrival.connection, "unknown-broker", detail)
            elif role not in ("broker", "client"):
                detail = f"a {role} connects to its broker, not to the registration service"
                self._links.refuse(arrival.connection, "not-expected", detail)
            elif role == "broker":
                self._shares.tell(name)
        elif isinstance(frame, Request):
            self._requests.handle(arrival.connection, frame)
        elif role == "broker" and type(frame) in self._handlers:
            self._handlers[type(frame)](arrival)
        else:
            self._counters["not-expected"] += 1
            detail = f"{type(frame).__name__} from {arrival.peer} is not expected here"
            self._links.refuse(arrival.connection, "not-expected", detail)

    def _handle_source_ready(self, arrival: Arrival) -> None:
        assert isinstance(arrival.frame, SourceReady)
        entry = self.catalog.sources.get(arrival.frame.source)
        if entry is None:
            return
        entry = replace(entry, ready=True)
        self.catalog.put_source(entry)
        self._requests.answer_source(entry)

    def _handle_profiles_placed(self, arrival: Arrival) -> None:
        assert isinstance(arrival.frame, ProfilesPlaced)
        placed = (self.catalog.change_profile(p, placed=True) for p in arrival.frame.profiles)
        self._requests.answer_profiles([entry for entry in placed if entry is not None])

    def _handle_profiles_changed(self, arrival: Arrival) -> None:
        """A host broker has updated or removed profiles, or taken them back."""
        frame = arrival.frame
        assert isinstance(frame, ProfilesChanged)
        changed, removed = [], []
        for profile, version, text in frame.profiles:
            if text is None:
                self.moves.removed(profile)
                self.catalog.remove_profile(profile)
                removed.append(profile)
                continue
            entry = self.catalog.change_profile(profile, text=text, version=version, placed=True)
            if entry is not None:
                self.moves.changed(entry)
                changed.append(entry)
        self._requests.answer_profiles(changed)
        self._requests.answer_removed(removed)

    def _handle_move(self, arrival: Arrival) -> None:
        """One of the two hosts of a profile that moves has got further."""
        assert isinstance(arrival.frame, MoveFrame)
        move = self.moves.handle(arrival.peer.partition("/")[2], arrival.frame)
        if move is not None:
            self._application.moved(move)
            self._requests.answer_profiles([self.catalog.profiles[move.profile]])

    def _handle_profiles_live(self, arrival: Arrival) -> None:
        frame = arrival.frame
        assert isinstance(frame, ProfilesLive)
        live = []
        for profile, version in frame.profiles:
            entry = self.catalog.profiles.get(profile)
            if entry is not None and version > entry.live:
                entry = entry._replace(live=version)
                self.catalog.put_profile(entry)
                live.append(entry)
        self._requests.answer_profiles(live)

    def _handle_partitions_matched(self, arrival: Arrival) -> None:
        assert isinstance(arrival.frame, PartitionsMatched)
        self._shares.handle_matched(arrival.frame)

    def _handle_shape_reached(self, arrival: Arrival) -> None:
        assert isinstance(arrival.frame, ShapeReached)
        if self.shapes.handle_reached(arrival.peer.partition("/")[2], arrival.frame):
            self._shape_changed()

    def _handle_link_reported(self, arrival: Arrival) -> None:
        assert isinstance(arrival.frame, LinkReported)
        self._reports.handle(arrival.peer.partition("/")[2], arrival.frame)
        if self._reports.decide():
            self._use_shape()

    def _handle_relayed(self, arrival: Arrival) -> None:
        """A piece of a connection between two brokers whose link is gone."""
        frame = arrival.frame
        assert isinstance(frame, Relayed)
        there = self._links.connection_of(f"broker/{frame.broker}")
        sender = arrival.peer.partition("/")[2]
        if there is not None:
            self._links.reply(there, replace(frame, broker=sender))
        elif not frame.closing:
            closed = replace(frame, number=frame.number + 1, closing=True, payload=b"")
            self._links.reply(arrival.connection, closed)

    # --- helpers --------------------------------------------------------------------------

    def _shape_changed(self) -> None:
        """There is another shape, or more is known of its links: perhaps one is down that the
        network can do without now."""
        self._reports.decide()
        self._use_shape()

    def _use_shape(self) -> None:
        """Place by the network as it is now."""
        topology = self.shapes.topology
        self._requests.use_shape()
        for part in (self._placement, self._shares, self._application, self._news, self._batches):
            part.use_topology(topology)

    def _send(self, broker: str, frame: Frame) -> None:
        self._links.send(f"broker/{broker}", REGISTRATION_KEY, frame)


_MOVE_FRAMES = (StandingBy, ProfileReleased, HandoverWanted, HandedOver, ProfileTaken)
