"""BrokerCore: a whole broker without I/O (Figure 10 of the paper).

``handle(event, now) -> actions`` is all there is; see overlay/link/events.py for the rule that
makes it safe to crash at any moment.  The link layer is packet listener and packet sender, this
file hands each frame to the plane it belongs to:

::

    event ─> LinkLayer ─> frame ─┬─ control plane   trees, catalog
                                 ├─ tree versions   trees that begin and end
                                 ├─ query plane     profiles, routing table
                                 ├─ data plane      messages
                                 ├─ moves           profiles that change their host broker
                                 └─ requests        of users and operators
    actions <─ rows to store, frames to send
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from formats import WireFormat
from onyx.broker.broker_requests import BrokerRequests
from onyx.broker.control_plane import ControlPlane
from onyx.broker.data_plane import DataPlane
from onyx.broker.deliveries.mailboxes import READ_SPACES, Mailboxes, MailboxLimits
from onyx.broker.deliveries.result_maker import ResultMaker, results_bytes_max
from onyx.broker.live_wait import LiveVersion
from onyx.broker.match_shares import MatchShares
from onyx.broker.message_trace import MessageTrace
from onyx.broker.moves.profile_moves import SENDERS as MOVE_SENDERS
from onyx.broker.moves.profile_moves import ProfileMoves
from onyx.broker.moves.releases import moved_detail
from onyx.broker.observers import Observers
from onyx.broker.packing.codebook import Codebook
from onyx.broker.packing.compression_dictionaries import CompressionDictionaries
from onyx.broker.query_plane import QueryPlane
from onyx.broker.senders import ORDERED, OVER, SENDERS, place_of_sender
from onyx.broker.shape.link_watch import LinkWatch
from onyx.broker.shape.tree_versions import SENDERS as TREE_SENDERS
from onyx.broker.shape.tree_versions import TreeVersions
from onyx.broker.shape.tunnels import Tunnels
from onyx.broker.transformation import Transformation
from onyx.broker.transformation_requests import TransformationRequests
from overlay.link.errors import ProtocolError
from overlay.link.events import (
    Action,
    BatchHandled,
    CallAgain,
    CallAtEnd,
    CalledAgain,
    DialPeers,
    Event,
    Flow,
    RowsRead,
    TimePassed,
)
from overlay.link.frame import Frame
from overlay.link.frames import (
    Attach,
    DictionaryHeld,
    DictionaryTrained,
    Hello,
    LiveMarker,
    LiveReached,
    Message,
    NeedsDelta,
    PlaceProfile,
    PlaceProfiles,
    PlanInForce,
    Publish,
    Relayed,
    Request,
    RoutingDelta,
    SourceAnnounced,
    Taken,
    TreeReady,
    Undecoded,
)
from overlay.link.link_layer import Arrival, LinkLayer
from overlay.link.row_log import RowLog
from overlay.topology import Topology, TopologyError
from yfilter.errors import ProfileRefused
from yfilter.matcher import Matcher

Rows = Iterable[tuple[str, str, bytes]]


class BrokerCore:
    """One broker of a topology."""

    def __init__(
        self,
        topology: Topology,
        identity: str,
        instance: str,
        rows: Rows = (),
        clock: Callable[[], float] = lambda: 0.0,
        archive: Callable[[], Mapping[str, object]] = dict,
        node: Callable[[], Mapping[str, object]] = dict,
        wall: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """``instance`` is new for every start; ``rows`` is what the store held; ``clock`` gives
        seconds of processor time, by which links with the format "auto" choose (one that stands
        still: by bytes alone), and results are made in slices; ``wall`` gives those of the
        calendar, by which what waits for users is too old; ``archive`` and ``node`` say how the
        shell fares, for statistics."""
        limits = topology.limits
        self.identity = identity
        self._archive = archive
        self._node = node
        self._rows = RowLog()
        self._links = LinkLayer(
            role="broker",
            identity=identity,
            instance=instance,
            formats=[wire_format.value for wire_format in WireFormat],
            limits=limits.link,
            may_acknowledge=self._may_acknowledge,
            stored=True,
        )
        self.control = ControlPlane(identity, topology, self._links, self._rows)
        matcher = Matcher(message_limits=limits.message)
        self.trained = CompressionDictionaries(self.control, self._links, self._rows)
        codebook = Codebook(self.control, self.trained)  # its counts are of no message's way
        maker = ResultMaker(codebook, matcher, results_bytes_max(limits.link))
        bounds = MailboxLimits(
            limits.delivery_backlog_bytes_max,
            limits.delivery_store_bytes_max,
            limits.delivery_age_s_max,
        )
        self.mailboxes = Mailboxes(
            *(self._links, self._rows, limits.link, bounds, maker, clock, wall)
        )
        self.query = QueryPlane(
            self.control,
            self._links,
            self._rows,
            self.mailboxes,
            matcher,
            Transformation(self.control, self._links, self._rows, matcher),
        )
        self.moves = ProfileMoves(self.control, self.query, self.mailboxes, self._links, self._rows)
        self._shares = MatchShares(
            identity, self.query.profiles, self._links, self._rows, self.control.registration
        )
        self._observers = Observers(identity, self._links)
        self.data = DataPlane(
            self.control,
            self._links,
            self.trained,
            self._observers,
            self._rows,
            self.query,
            self.moves,
            self.mailboxes,
            maker,
            self._shares,
            clock,
        )
        trace = MessageTrace(self.control, self.query, self.data)
        cuts = TransformationRequests(self.control, self.query.transformation)
        self._requests = BrokerRequests(
            *(self._links, self.query, self.moves, self._observers, trace, cuts),
            self.statistics,
            limits,
        )
        self.trees = TreeVersions(
            self.control,
            self.query,
            self.trained,
            self.data.give_backs,
            self._links,
            self._rows,
            self._hand_on,
            self._take_ended,
        )
        self._watch = LinkWatch(self.control, self._links)
        self._tunnels = Tunnels(self.control, self._links, self._watch)
        self._counters: Counter[str] = Counter()
        self._handlers: Mapping[type[Frame], Callable[[Arrival], None]] = {
            SourceAnnounced: self._handle_source_announced,
            TreeReady: self._handle_tree_ready,
            PlaceProfile: self._handle_place_profile,
            PlaceProfiles: self._handle_place_profiles,
            PlanInForce: self._handle_plan_in_force,
            RoutingDelta: self._handle_routing_delta,
            NeedsDelta: self._handle_needs_delta,
            DictionaryTrained: self._handle_dictionary_trained,
            DictionaryHeld: self._handle_dictionary_held,
            LiveMarker: self._handle_live_marker,
            LiveReached: self._handle_live_reached,
            Publish: self._handle_publish,
            Message: self._handle_message,
            Undecoded: self._handle_undecoded,
            Attach: self._handle_attach,
            Taken: self._handle_taken,
            Request: self._handle_request,
            Relayed: self._handle_relayed,
            **dict.fromkeys(MOVE_SENDERS, self._handle_move),
            **dict.fromkeys(TREE_SENDERS, self._handle_trees),
        }
        self._restore(rows)

    def handle(self, event: Event, now: float) -> list[Action]:
        self._requests.tick(now)
        self._shares.tick(now)
        if isinstance(event, CalledAgain):
            self.data.deliver_deferred()
            self.trained.train_next()
            self.query.work()
        for each in (*self._tunnels.take_events(), event):
            self._handle_event(each, now)
        if isinstance(event, TimePassed):
            self._watch.tick(now)
            self._tunnels.tick(now)
            self.mailboxes.tick()
        for each in self._tunnels.take_events():
            self._handle_event(each, now)
        self.moves.flush()
        self.mailboxes.flush()
        self.query.transformation.flush()  # needs are numbered by event, ahead of the rest
        if isinstance(event, BatchHandled):
            self.query.flush()
        self._observers.flush()
        self.trees.report_progress()
        actions: list[Action] = [
            *self._rows.drain(),
            *self._tunnels.carry(self._links.drain()),
        ]
        actions += self.mailboxes.reads()
        actions += self.data.archive.drain()
        if self.trees.dials_changed:
            self.trees.dials_changed = False
            actions.append(DialPeers(self.control.shapes.dials()))
        if (
            self.data.has_deferred
            or self.mailboxes.has_more
            or self.trained.has_enough
            or self.query.is_working
        ):
            actions.append(CallAgain())
        if self.query.has_news:
            actions.append(CallAtEnd())
        return actions

    def _handle_event(self, event: Event, now: float) -> None:
        if isinstance(event, RowsRead) and event.space in READ_SPACES:
            self.mailboxes.handle_read(event)
            return
        for arrival in self._links.handle(event, now):
            self._handle_arrival(arrival)

    def connected(self, peer: str) -> bool:
        """Whether a peer ("broker/B2", "registration/r1") is there."""
        return self._links.connected(peer)

    def refusal(self, peer: str) -> str:
        """Why the last connection with a peer that is away was closed; "" if it broke."""
        return self._links.refusal(peer)

    def statistics(self) -> dict[str, object]:
        return {
            "broker": self.identity,
            "control": self.control.statistics(),
            "trees": {
                **self.trees.statistics(),
                **self._watch.statistics(),
                **self._tunnels.statistics(),
            },
            "query": self.query.statistics(),
            "moves": self.moves.statistics(),
            "data": self.data.statistics(),
            "mailboxes": self.mailboxes.statistics(),
            "shares": self._shares.statistics(),
            "compression": self.trained.statistics(),
            "links": self._links.statistics(),
            "archive": {**self.data.archive.statistics(), **self._archive()},
            "observers": self._observers.statistics(),
            "unexpected": dict(self._counters),
            "node": dict(self._node()),
        }

    def _restore(self, stored: Rows) -> None:
        rows = self._links.restore(self.mailboxes.restore(stored))
        self.control.restore(rows)
        self.trained.restore(rows)
        self.query.restore(rows)
        self.moves.restore(rows)
        self._shares.restore(rows)
        self.data.restore(rows)
        self.trees.restore(rows)

    def _may_acknowledge(self, peer: str, flow: Flow, key: str) -> bool:
        """Back-pressure is for messages on their way down a tree."""
        role = peer.partition("/")[0]
        if flow is not Flow.MESSAGE or role not in ("source", "broker"):
            return True
        tree = self.control.current_tree if role == "source" else key
        if self.trees.must_wait(tree):
            return False
        return not self.query.table.is_open(tree) or self.data.may_acknowledge(tree)

    # --- arrivals -------------------------------------------------------------------------

    def _handle_arrival(self, arrival: Arrival) -> None:
        if arrival.frame is None:
            self._tunnels.handle_gone(arrival.peer)
            self._observers.remove(arrival.connection)
            self.mailboxes.close(arrival.connection)
            self._requests.forget(arrival.connection)
            return
        if isinstance(arrival.frame, Hello):
            self._check_hello(arrival)
            return
        sender = place_of_sender(arrival, self.control, self.trees)
        if sender == OVER:
            self._counters["tree-over"] += 1
        elif sender not in SENDERS.get(type(arrival.frame), ()):
            self._unexpected(arrival, "not-expected")
        elif isinstance(arrival.frame, ORDERED) and self.trees.must_wait(arrival.key):
            self.trees.hold(arrival)
        else:
            self._hand_on(arrival)

    def _hand_on(self, arrival: Arrival) -> None:
        if not isinstance(arrival.frame, Publish | Message):
            self.data.deliver_deferred()
        assert arrival.frame is not None
        self._handlers[type(arrival.frame)](arrival)

    def _check_hello(self, arrival: Arrival) -> None:
        """Sources are validated against the catalog."""
        role, _, name = arrival.peer.partition("/")
        if role == "broker" and name not in self.control.shapes.neighbours():
            self._links.refuse(
                arrival.connection, "unknown-broker", f"{name!r} is no neighbour of {self.identity}"
            )
        elif role == "source" and not self._publishes_here(name):
            self._links.refuse(
                arrival.connection,
                "unknown-source",
                f"{self.identity} is not the root broker of a source {name!r}",
            )

    def _publishes_here(self, source: str) -> bool:
        entry = self.control.sources.get(source)
        return entry is not None and entry.root == self.identity and entry.ready

    def _unexpected(self, arrival: Arrival, code: str, detail: str = "") -> None:
        """A frame that this peer has no business to send: counted, told, nothing else."""
        self._counters[code] += 1
        frame = type(arrival.frame).__name__
        self._links.refuse(
            arrival.connection, code, detail or f"{frame} from {arrival.peer} is not expected here"
        )

    # --- deliveries -----------------------------------------------------------------------

    def _handle_attach(self, arrival: Arrival) -> None:
        assert isinstance(arrival.frame, Attach)
        self.mailboxes.attach(arrival.connection, arrival.frame, self._not_taken_here)

    def _not_taken_here(self, profile: str) -> tuple[str, str] | None:
        """Why the results of a profile are not to be had from this broker; None if they are."""
        if self.moves.sends_on(profile):
            return "moved", moved_detail(profile)
        if profile not in self.query.profiles:
            return "unknown-profile", f"{self.identity} is not the host broker of {profile!r}"
        return None

    def _handle_taken(self, arrival: Arrival) -> None:
        assert isinstance(arrival.frame, Taken)
        try:
            self.mailboxes.take(arrival.connection, arrival.frame)
        except ProtocolError as error:
            self._unexpected(arrival, error.code, error.detail)

    # --- control plane --------------------------------------------------------------------

    def _handle_source_announced(self, arrival: Arrival) -> None:
        assert isinstance(arrival.frame, SourceAnnounced)
        tree = arrival.key
        if not arrival.peer.startswith("broker/"):
            if arrival.frame.root != self.identity:
                self.control.learn_source(arrival.frame)
                return
            tree = self.control.current_tree
            self.control.use_tree(tree)
        entry = self.control.add_source(arrival.frame, tree)
        if entry is not None:
            self.trained.adopt_given(entry)
            self.query.open_tree(tree)
            self.query.flush()
            self.control.await_children(entry, tree)

    def _handle_tree_ready(self, arrival: Arrival) -> None:
        assert isinstance(arrival.frame, TreeReady)
        self.query.flush()
        self.control.handle_tree_ready(arrival.frame, _name(arrival))

    def _handle_trees(self, arrival: Arrival) -> None:
        assert arrival.frame is not None
        try:
            self.trees.handle(arrival.frame, _name(arrival))
        except TopologyError as error:
            self._unexpected(arrival, "shape-refused", str(error))

    def _handle_dictionary_trained(self, arrival: Arrival) -> None:
        assert isinstance(arrival.frame, DictionaryTrained)
        self.trained.handle_trained(arrival.frame)

    def _handle_dictionary_held(self, arrival: Arrival) -> None:
        assert isinstance(arrival.frame, DictionaryHeld)
        self.trained.handle_held(arrival.frame, _name(arrival))

    # --- query plane ----------------------------------------------------------------------

    def _handle_place_profile(self, arrival: Arrival) -> None:
        assert isinstance(arrival.frame, PlaceProfile)
        self.moves.leaving.take_back(arrival.frame.profile)
        try:
            self.query.place(arrival.frame)
        except ProfileRefused as refusal:
            self._unexpected(arrival, "profile-refused", str(refusal))

    def _handle_place_profiles(self, arrival: Arrival) -> None:
        assert isinstance(arrival.frame, PlaceProfiles)
        try:
            self.query.place_new(arrival.frame)
        except ProfileRefused as refusal:
            self._unexpected(arrival, "profile-refused", str(refusal))

    def _handle_plan_in_force(self, arrival: Arrival) -> None:
        assert isinstance(arrival.frame, PlanInForce)
        self._shares.handle_plan(arrival.frame)

    def _handle_routing_delta(self, arrival: Arrival) -> None:
        assert isinstance(arrival.frame, RoutingDelta)
        try:
            self.query.handle_routing_delta(arrival.frame, _name(arrival))
        except KeyError:
            self._unexpected(arrival, "unknown-root")
        except ProfileRefused as refusal:
            self._unexpected(arrival, "routing-refused", str(refusal))

    def _handle_needs_delta(self, arrival: Arrival) -> None:
        assert isinstance(arrival.frame, NeedsDelta)
        try:
            self.query.transformation.handle_delta(arrival.frame, _name(arrival))
        except KeyError:
            self._unexpected(arrival, "unknown-root")
        except ProfileRefused as refusal:
            self._unexpected(arrival, "needs-refused", str(refusal))

    def _handle_live_marker(self, arrival: Arrival) -> None:
        assert isinstance(arrival.frame, LiveMarker)
        branch = self.control.branch_of(_name(arrival), arrival.frame.root)
        if branch.roots.issuperset(arrival.frame.roots):
            self.query.handle_live_marker(arrival.frame)
        else:
            self._unexpected(arrival, "unknown-root")

    def _handle_live_reached(self, arrival: Arrival) -> None:
        assert isinstance(arrival.frame, LiveReached)
        for live in self.query.handle_live_reached(arrival.frame):
            self.moves.coming.handle_live(live)
            self._requests.answer_live(live)

    def _handle_move(self, arrival: Arrival) -> None:
        assert arrival.frame is not None
        try:
            self.moves.handle(arrival.frame)
        except ProfileRefused as refusal:
            self._unexpected(arrival, "profile-refused", str(refusal))

    # --- data plane -----------------------------------------------------------------------

    def _handle_publish(self, arrival: Arrival) -> None:
        assert isinstance(arrival.frame, Publish)
        if arrival.frame.source != _name(arrival):
            self._unexpected(arrival, "not-expected")
            return
        self.data.handle_publish(arrival.frame, arrival.sequence)

    def _handle_message(self, arrival: Arrival) -> None:
        assert isinstance(arrival.frame, Message)
        self.data.handle_message(arrival.frame)
        self.trees.end_if_complete(arrival.frame.root)

    def _handle_undecoded(self, arrival: Arrival) -> None:
        assert isinstance(arrival.frame, Undecoded)
        self.data.handle_undecoded(arrival.frame, _name(arrival))

    def _take_ended(self, tree: str, live: list[LiveVersion]) -> None:
        """A tree has ended here, and nobody on it is waited for any more."""
        self.moves.watersheds.end_tree(tree)
        for version in live:
            self.moves.coming.handle_live(version)
            self._requests.answer_live(version)

    def _handle_relayed(self, arrival: Arrival) -> None:
        assert isinstance(arrival.frame, Relayed)
        self._tunnels.handle_relayed(arrival.frame)

    # --- requests -------------------------------------------------------------------------

    def _handle_request(self, arrival: Arrival) -> None:
        assert isinstance(arrival.frame, Request)
        self._requests.handle(arrival.connection, arrival.frame)


def _name(arrival: Arrival) -> str:
    return arrival.peer.partition("/")[2]
