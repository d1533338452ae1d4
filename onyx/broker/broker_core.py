"""BrokerCore: a whole broker without I/O (Figure 10 of the paper).

Its parts are made folder by folder: each has a ``…_parts.py``, which says what of it depends on
what, and hands out what others need.  The link layer is packet listener and packet sender; this
file looks whether a peer may send a frame, and hands it to the part that takes it::

    event ─> LinkLayer ─> frame ─┬─ network     what there is: shape, sources, who may do what
                                 ├─ messages    data plane, archive, sources that come and go
                                 ├─ packing     formats of links, dictionaries
                                 ├─ moves       profiles that change their host broker
                                 ├─ users       who takes results, what these may cost
                                 ├─ deliveries  mailboxes
                                 ├─ profiles    query plane, routing table; needs of links
                                 ├─ shape       trees that begin and end; brokers that are away
                                 └─ requests    of users and operators
    actions <─ rows to store, frames to send
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from formats import WireFormat
from onyx.broker.deliveries.delivery_log import DeliveryLog, ReadStore
from onyx.broker.deliveries.delivery_parts import DeliveryParts, matcher_of
from onyx.broker.deliveries.late_results import LateResults
from onyx.broker.messages.data_plane import not_evaluated
from onyx.broker.messages.local_deliveries import DEFERRED_BYTES_MAX
from onyx.broker.messages.message_parts import MessageParts
from onyx.broker.messages.message_spans import MessageSpans, TellSpan
from onyx.broker.messages.observers import Observers
from onyx.broker.messages.publish_keys import PublishKeys
from onyx.broker.messages.source_announcements import REMOVED
from onyx.broker.messages.source_costs import TOO_COSTLY
from onyx.broker.moves.profile_moves import ProfileMoves
from onyx.broker.network.network_parts import NetworkParts
from onyx.broker.network.publishers import Publishers
from onyx.broker.packing.packing_parts import PackingParts
from onyx.broker.profiles.hosted_profiles import HostedProfiles
from onyx.broker.profiles.profile_parts import ProfileParts
from onyx.broker.requests.broker_requests import CHANGING
from onyx.broker.requests.request_parts import RequestParts
from onyx.broker.shape.senders import ORDERED, OVER, place_of_sender
from onyx.broker.shape.shape_parts import ShapeParts
from onyx.broker.shape.source_releases import MOVED, SourceReleases
from onyx.broker.users.user_parts import UserBudgets, UserParts
from overlay.limits import taken_limits
from overlay.link.arrival import Arrival
from overlay.link.core import Core, Rows
from overlay.link.core_context import STILL, CoreContext, Surroundings
from overlay.link.events import Delete, Flow, Put
from overlay.link.frame import GOING_ROUND
from overlay.link.frames import Hello, Message, SourceAnnounced, Undecoded
from overlay.link.part import FrameRefused
from overlay.statistics import Archive, BrokerStatistics, Figures, LinkFigures
from overlay.topology import Topology

FORMATS = [wire_format.value for wire_format in WireFormat]


class BrokerCore(Core):
    """One broker of a topology."""

    def __init__(
        self,
        topology: Topology,
        identity: str,
        instance: str,
        rows: Rows = (),
        around: Surroundings = STILL,
        archive: Callable[[], Archive] = Archive,
        revoke: Callable[[frozenset[int]], None] = lambda serials: None,
        tell_span: TellSpan | None = None,
    ) -> None:
        """``instance`` is new for every start; ``rows`` is what the store held; ``archive`` says
        how the shell's fares, for statistics; ``revoke`` is told which certificates nobody may show
        any more; ``tell_span``: see MessageSpans."""
        context = CoreContext(
            *("broker", topology, identity, instance, around),
            *(FORMATS, self._may_acknowledge, self._keeps, self._keeps_all, CHANGING),
        )
        super().__init__(context, around)
        self._archive = archive
        log = DeliveryLog(context.rows, context.limits.link.journal_memory_bytes)
        hosted, matcher = HostedProfiles(context.rows), matcher_of(context)
        network = NetworkParts(context, log.kept_between, revoke)
        control = self.control = network.control
        self.taxonomies, self._access = network.taxonomies, network.access
        packing = PackingParts(context, network)
        self.trained, self._give_backs = packing.trained, packing.give_backs
        budgets = self.budgets = UserBudgets(context, hosted, matcher)
        costs = budgets.spent, budgets.seconds_for
        late = LateResults(taken_limits(context.limits), context.clock, *costs)
        deliveries = DeliveryParts(
            context, packing, log, matcher, late, hosted.text_of, hosted.user_of
        )
        self.mailboxes = deliveries.mailboxes
        profiles = ProfileParts(context, control, deliveries, hosted)
        query = self.query = profiles.query
        publishers = Publishers(context)
        moves = self.moves = ProfileMoves(context, control, query, self.mailboxes, publishers)
        keys = PublishKeys(context.limits, context.rows, context.wall)
        releases = SourceReleases(control, context.links, keys.released, publishers)
        shape = ShapeParts(context, network, packing, query, releases, self.settings.take_change)
        self.trees, self.backlogs, self._watch = shape.trees, shape.backlogs, shape.watch
        self._formats = packing.formats
        observers = Observers(context, self._figures)
        spans = MessageSpans(identity, context.wall, tell_span)
        messages = MessageParts(
            *(context, control, packing, self.mailboxes, profiles, moves, shape, observers, spans),
            *(keys, publishers),
        )
        self.data = messages.data
        users = UserParts(context, network, budgets, self.mailboxes, query, moves)
        requests = RequestParts(
            *(context, network, packing, profiles, moves, shape, messages, users, observers)
        )
        self.begin(
            (
                *(network.parts, messages.parts, packing.parts, (moves,), users.parts),
                *(deliveries.parts, profiles.parts, shape.parts, requests.parts),
            ),
            rows,
        )

    def make_results(self, read: ReadStore) -> Iterator[tuple[int, int, list[Put | Delete]]]:
        """For another release, which makes other results: make all that wait for users, and store
        them in place of the messages.  After each message how many are done, of how many, and the
        rows to commit; what was done stays done.  What is deferred has to be done before.
        """
        for done, total in self.mailboxes.make_stored(read):
            yield done, total, self._rows.drain()

    def statistics(self) -> BrokerStatistics:
        data, archive = self.data.counted, self._archive()
        return self.reported(BrokerStatistics(broker=self.identity, data=data, archive=archive))

    def _may_acknowledge(self, peer: str, flow: Flow, key: str) -> bool:
        """Back-pressure is for messages on their way down a tree."""
        role, name, *_ = peer.split("/")
        if flow is not Flow.MESSAGE or role not in ("source", "broker"):
            return True
        local = self.data.local
        if role == "source" and self.data.costs.is_slowed(peer, name):
            return False
        if local.waiting_bytes > DEFERRED_BYTES_MAX or (role == "source" and local.undecided[name]):
            return False
        tree = self.control.current_tree if role == "source" else key
        if tree in self.trees.waiting:
            return False
        table = self.query.table  # PERF: what is_open says, in one file less
        if tree not in table.trees or tree in table.closed or self.data.has_room(tree):
            return True
        return self.backlogs.may_grow(tree)

    def _keeps(self, peer: str, flow: Flow, key: str) -> bool:
        """Whether messages that a child takes stay here until it has passed them on."""
        role, _, child = peer.partition("/")
        if role != "broker" or flow is not Flow.MESSAGE or not self.control.shapes.knows(key):
            return False
        is_able = self._links.may_have(peer, GOING_ROUND)
        return is_able and bool(self.control.tree(key).children[child])

    def _keeps_all(self, peer: str) -> bool:
        """Whether messages stay here also when a broker has passed them on; see KeptMessages."""
        broker = peer.partition("/")[2]
        return self._watch.is_reported(broker) or self.control.shapes.is_away(broker)

    def _figures(self) -> Figures:
        """Where the counters stand, as observers are told; what that costs grows with the
        neighbours alone."""
        counted = self.data.counted
        of_links = {
            broker: LinkFigures(
                counted.crossings[broker],
                sum(
                    channel.backlog_bytes
                    for channel in self._links.channels_to(f"broker/{broker}")
                    if channel.flow is Flow.MESSAGE
                ),
                self._formats.format_of(broker),
                self._links.connected(f"broker/{broker}"),
            )
            for broker in sorted(self.control.shapes.neighbours())
        }
        return Figures(
            *(counted.published, counted.delivered, counted.refused, len(self.query.profiles)),
            *(self.query.waiting_bytes, of_links),
        )

    # --- arrivals -------------------------------------------------------------------------

    def _handle_arrival(self, arrival: Arrival) -> None:
        frame = arrival.frame
        if frame is None:
            self._agenda.gone(arrival)
            return
        if isinstance(frame, Hello):
            self._check_hello(arrival)
            return
        taker = self.takers.get(type(frame))
        sender = arrival.peer.partition("/")[0]
        if sender == "broker":
            sender = place_of_sender(arrival, self.control, self.trees)
        if sender == OVER:
            self._counters["tree-over"] += 1
            if isinstance(frame, SourceAnnounced):
                self.control.learn_source(frame, arrival.key)
            elif isinstance(frame, Undecoded):  # whoever was gone round cannot read a message
                self._give_backs.handle_undecoded(frame, arrival.sender)
        elif taker is None or sender not in taker.senders:
            is_down = isinstance(frame, (*ORDERED, SourceAnnounced))
            if sender or not is_down or not self.trees.hold_early(arrival):
                self._refuse(arrival, FrameRefused("not-expected"))
        elif isinstance(frame, ORDERED) and self.trees.must_wait(arrival.key, arrival):
            self.trees.hold(arrival)
        else:
            self.hand_on(arrival)

    def hand_on(self, arrival: Arrival) -> None:
        frame = arrival.frame
        assert frame is not None
        taker = self.takers[type(frame)]
        if self.data.deferred and not taker.is_aside:
            self.data.finish()
        self._take(taker, frame, arrival)
        if self.trees.ending:
            self.trees.end_if_complete(arrival.key)

    def _passes(self, arrival: Arrival) -> bool:
        """What is held first, when it is its turn; a message is told to all who wait for it."""
        if self.data.validation.awaits(arrival):
            return False
        why, frame = self._dead.passes(arrival), arrival.frame
        if why and isinstance(frame, Message):
            passed = not_evaluated(frame, f"at {self.identity}: {why}")
            self.takers[type(frame)].take(passed, arrival)
        return bool(why)

    def _check_hello(self, arrival: Arrival) -> None:
        """Sources are validated against the catalog."""
        role, name, *_ = arrival.peer.split("/")
        if role == "broker" and not self._is_neighbour(name):
            self._links.refuse(
                arrival.connection, "unknown-broker", f"{name!r} is no neighbour of {self.identity}"
            )
        elif role == "source" and not self._access.publishes(arrival.connection, name):
            detail = f"{self._links.principal(arrival.connection)} may not publish as {name!r}"
            self._links.refuse(arrival.connection, "not-authorised", detail)
        elif role == "broker" and name in self.control.shapes.lost:
            detail = f"{name} was given up for good; it can join again with an empty store"
            self._links.refuse(arrival.connection, "lost", detail)
        elif role == "source" and not self.control.shapes.agreed.has_broker(self.identity):
            detail = f"{self.identity} leaves the network, and {name} gets another root broker"
            self._links.refuse(arrival.connection, MOVED, detail)
        elif role == "source" and name in self.control.gone_sources:
            self._links.refuse(arrival.connection, REMOVED, f"{name} was removed")
        elif role == "source" and not self._publishes_here(name):
            self._links.refuse(
                arrival.connection,
                "unknown-source",
                f"{self.identity} is not the root broker of a source {name!r}",
            )
        elif role == "source" and (why := self.data.costs.bar(arrival.connection, name)):
            self._links.refuse(arrival.connection, TOO_COSTLY, why)
        elif self._dead.felled and (why := self._dead.bar(arrival)):
            self._links.refuse(arrival.connection, "too-many-errors", why)
        elif role == "source" and (why := self.data.publishers.enter(arrival, name)):
            self._links.refuse(arrival.connection, "too-many-publishers", why)

    def _is_neighbour(self, broker: str) -> bool:
        shapes = self.control.shapes
        return broker in shapes.neighbours() or broker in shapes.beside_lost

    def _publishes_here(self, source: str) -> bool:
        entry = self.control.sources.get(source)
        return entry is not None and entry.root == self.identity and entry.ready
