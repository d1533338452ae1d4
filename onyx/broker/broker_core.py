"""BrokerCore: a whole broker without I/O (Figure 10 of the paper).

``handle(event, now) -> actions`` is all there is; see overlay/link/events.py for the rule that
makes it safe to crash at any moment.  The link layer is packet listener and packet sender; this
file looks whether a peer may send a frame, hands it to the part that takes it, and then asks the
parts that have something to do (overlay/link/part.py)::

    event ─> LinkLayer ─> frame ─┬─ sources         their entries, and who is ready
                                 ├─ query plane     profiles, routing table; needs
                                 ├─ data plane      messages; dictionaries
                                 ├─ moves           profiles that change their host broker
                                 ├─ tree versions   trees that begin and end; tunnels
                                 ├─ subscribers     who take results
                                 └─ requests        of users and operators
    actions <─ rows to store, frames to send
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from formats import WireFormat
from onyx.broker.access_rules import AccessRules
from onyx.broker.archive.archive_reads import ArchiveReads
from onyx.broker.broker_requests import BrokerRequests
from onyx.broker.catalog_report import CatalogReport
from onyx.broker.classes_above import ClassesAbove
from onyx.broker.control_plane import ControlPlane
from onyx.broker.data_plane import DataPlane, not_evaluated
from onyx.broker.deliveries.delivery_log import ReadStore
from onyx.broker.deliveries.late_results import LateResults
from onyx.broker.deliveries.mailboxes import READ_SPACES, Mailboxes
from onyx.broker.deliveries.overflow import MailboxLimits
from onyx.broker.deliveries.result_maker import ResultMaker, results_bytes_max
from onyx.broker.deliveries.subscribers import Subscribers
from onyx.broker.dry_runs import DryRuns
from onyx.broker.figures import figures_of
from onyx.broker.link_backlogs import LinkBacklogs
from onyx.broker.local_deliveries import DEFERRED_BYTES_MAX
from onyx.broker.match_shares import MatchShares
from onyx.broker.message_spans import MessageSpans, TellSpan
from onyx.broker.message_trace import MessageTrace
from onyx.broker.moves.profile_moves import ProfileMoves
from onyx.broker.observers import Figures, Observers
from onyx.broker.packing.codebook import Codebook
from onyx.broker.packing.compression_dictionaries import CompressionDictionaries
from onyx.broker.policy_changes import PolicyChanges
from onyx.broker.publish_keys import PublishKeys
from onyx.broker.query_plane import QueryPlane
from onyx.broker.senders import ORDERED, OVER, place_of_sender
from onyx.broker.shape.bypasses import Bypasses
from onyx.broker.shape.kept_messages import KeptMessages
from onyx.broker.shape.link_watch import LinkWatch
from onyx.broker.shape.shape_stages import ShapeStages
from onyx.broker.shape.source_releases import MOVED
from onyx.broker.shape.tree_versions import TreeVersions
from onyx.broker.shape.tunnels import Tunnels
from onyx.broker.source_announcements import REMOVED, SourceAnnouncements
from onyx.broker.taxonomies import Taxonomies
from onyx.broker.transformation import Transformation
from onyx.broker.transformation_requests import TransformationRequests
from onyx.broker.unclaimed_profiles import UnclaimedProfiles
from onyx.broker.user_budgets import UserBudgets
from overlay.limits import taken_limits
from overlay.link.dead_letters import DeadLetters
from overlay.link.errors import StoreError
from overlay.link.events import (
    Action,
    ArchiveRead,
    BatchHandled,
    CallAgain,
    CallAtEnd,
    CalledAgain,
    Delete,
    DiskRoom,
    Evaluated,
    Event,
    Flow,
    Put,
    RowsRead,
    SchemaAnswered,
    TimePassed,
)
from overlay.link.frames import Hello, Message, SourceAnnounced, Undecoded
from overlay.link.link_layer import Arrival, LinkLayer
from overlay.link.part import Agenda, FrameRefused
from overlay.link.principal import Principal, nobody
from overlay.link.row_log import RowLog
from overlay.link.running_settings import RunningSettings
from overlay.link.slices import SLICE_SECONDS, Slice
from overlay.link.stored_rows import Progress, StoredRows, unsaid
from overlay.link.suspect import CoreFailed, mark_of
from overlay.link.token_holders import TokenHolders
from overlay.link.work_mark import AT, BEHIND, IDLE, MARK, WorkMark
from overlay.topology import Topology
from yfilter.engine.match_limits import MatchLimits
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.matcher import Matcher

LATE_MESSAGES = 256
"""For which a profile that took more than a slice of a message is evaluated late at once."""

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
        progress: Progress = unsaid,
        say: Callable[[str], None] = lambda text: None,
        caution: int = 0,
        issuer: Callable[[str], Principal] = nobody,
        revoke: Callable[[frozenset[int]], None] = lambda serials: None,
        mark: WorkMark | None = None,
        epoch: int = 0,
        tell_span: TellSpan | None = None,
    ) -> None:
        """``instance`` is new for every start; ``rows`` is what the store held; ``clock`` gives
        seconds of processor time, by which links with the format "auto" choose (one that stands
        still: by bytes alone), and work is done in slices; ``wall`` gives those of the
        calendar, by which what waits for users is too old; ``archive`` and ``node`` say how the
        shell fares, for statistics; ``progress`` is told how far the rows are taken, ``say`` what
        people should know; ``caution``: see slices.py; ``issuer``: see TokenHolders;
        ``revoke`` is told which certificates nobody may show any more; ``mark``: where it says
        what it is at; ``epoch``: see epochs.py; ``tell_span``: see MessageSpans."""
        limits = topology.limits
        self.identity = identity
        self._archive = archive
        self._node = node
        self._rows = RowLog()
        self._slice, self.settings = (
            Slice(clock, caution),
            RunningSettings(topology, self._rows, self._use_settings),
        )
        self._arrival: Arrival | None = None  # under way
        holders = TokenHolders(topology.access.rules(), wall, issuer)
        self._links = LinkLayer(
            role="broker",
            identity=identity,
            instance=instance,
            formats=[wire_format.value for wire_format in WireFormat],
            limits=limits.link,
            may_acknowledge=self._may_acknowledge,
            stored=True,
            is_over=self._slice.is_over,
            holder=holders.holder,
            epoch=epoch,
        )
        self._dead = dead = DeadLetters(self._links, self._rows, wall, mark)
        self.control = ControlPlane(identity, topology, self._links, self._rows)
        self._access = AccessRules(self.control, self._links, self._rows, holders, revoke)
        self.taxonomies = Taxonomies(self.control, self._links, self._rows)
        seconds = limits.evaluation_ms_max / 1000
        evaluation = EvaluationLimits(
            seconds_max=min(seconds, SLICE_SECONDS), late_messages=LATE_MESSAGES, clock=clock
        )
        matcher = Matcher(MatchLimits(evaluation=evaluation), limits.message)
        self.trained = CompressionDictionaries(self.control, self._links, self._rows)
        codebook = Codebook(self.control, self.trained)  # its counts are of no message's way
        late = LateResults(taken_limits(limits), seconds, clock)
        maker = ResultMaker(codebook, matcher, results_bytes_max(limits.link), dead, late)
        bounds = MailboxLimits.of(limits)
        self.mailboxes = Mailboxes(
            *(self._links, self._rows, limits.link, bounds, maker, self._slice, dead, wall)
        )
        transformation = Transformation(
            self.control, self._links, self._rows, matcher, replace(evaluation, seconds_max=seconds)
        )
        self.query = QueryPlane(
            *(self.control, self._links, self._rows, self.mailboxes, matcher, transformation),
            wall,
        )
        self.budgets = budgets = UserBudgets(
            *(self.query, self.mailboxes, limits.principal_processor_ms_s_max / 1000),
            seconds,
        )
        maker.text_of, self.control.kept_between = self.query.text_of, self.mailboxes.kept_between
        late.tell_cost, late.seconds_for = budgets.spent, budgets.seconds_for
        self.moves = ProfileMoves(self.control, self.query, self.mailboxes, self._links, self._rows)
        shares = MatchShares(
            identity, self.query.profiles, self._links, self._rows, self.control.registration
        )
        observers = Observers(identity, self._links, clock, wall)
        keys = PublishKeys(limits, self._rows, wall)
        self.data = DataPlane(
            self.control,
            self._links,
            self.trained,
            observers,
            self._rows,
            self.query,
            self.moves,
            self.mailboxes,
            maker,
            shares,
            clock,
            self._slice,
            dead,
            self._access.table,
            keys,
            self._hand_on,
            MessageSpans(identity, wall, tell_span),
        )
        budgets.last, observers.figures = lambda: self.data.local.last, self._figures
        self._dry_runs, cuts = (
            DryRuns(self.control, self.query, self.data.formats, self.trained),
            TransformationRequests(self.control, transformation),
        )
        trace = MessageTrace(self.control, self.query, self._dry_runs)
        self._archive_reads, policies = (
            ArchiveReads(self.control, topology.archive, self._links),
            PolicyChanges(self.mailboxes, self._links, self.control.registration),
        )
        requests = BrokerRequests(
            *(self._links, self.query, self.moves, observers, trace, cuts),
            *(self.data.finish, self.statistics, limits, self._rows, dead, self._access.table),
            *(self._archive_reads, self.taxonomies.said_in, policies, budgets),
        )
        self._bypasses = Bypasses(
            self.control, self._links, self._rows, limits.link_backlog_bytes_max
        )
        self.trees = TreeVersions(
            self.control,
            self.query,
            self.trained,
            self.data.give_backs,
            self._bypasses,
            self._links,
            self._rows,
            self._hand_on,
            self._end_tree,
        )
        kept, self.backlogs = (
            KeptMessages(
                *(self.control, self._links, self.query, self.trees, self.data.give_backs)
            ),
            LinkBacklogs(self.control, self._links, limits),
        )
        watch = kept.watch = LinkWatch(
            self.control, self._links, kept.is_whole, self.backlogs.is_behind
        )
        unclaimed = UnclaimedProfiles(
            *(self.query, self.mailboxes, self.moves),
            *(limits.unclaimed_profile_s_max, wall, say),
        )
        above = ClassesAbove(
            *(self.query, self.moves, self.taxonomies, self.data.finish, self._slice.is_over),
        )
        stages, self._tunnels = (
            ShapeStages(
                *(self.control, self.query, self.trees, self._links, self._rows),
                self.settings.take_change,
            ),
            Tunnels(self.control, self._links, watch),
        )
        self._counters: Counter[str] = Counter()
        self._agenda = Agenda(
            (
                self.data.validation,  # what it takes is flushed with the rest
                dead,
                self.control,
                self._access,
                self.taxonomies,
                keys,  # before what is restored is decided
                self.data,
                self.trained,
                SourceAnnouncements(
                    *(self.control, self.query, self.trained, self.moves, self.data.validation),
                    *(keys, self.data.last_numbers, self._links, watch.is_long_gone),
                ),
                requests,
                self.data.archive,
                self._archive_reads,
                self.backlogs,
                watch,
                kept,
                self._tunnels,
                shares,
                self.moves,
                Subscribers(identity, self.mailboxes, self.query, self.moves, self._access),
                budgets,  # what they tell is flushed with the rest
                policies,
                self.mailboxes,
                unclaimed,
                transformation,  # needs are numbered by event, ahead of the rest
                self.query,
                above,
                observers,
                self._bypasses,
                self.trees,
                stages,
                CatalogReport(
                    *(self.control, self.query, self.moves, policies, shares, self._access),
                    *(self.taxonomies, watch, stages, self._links, self._rows),
                ),
                self.settings,
            )
        )
        self.verbs = requests.verbs
        self.takers = self._agenda.takers()
        self._agenda.restore(
            StoredRows(self._links.restore(rows), progress, self._agenda.streams())
        )

    def handle(self, event: Event, now: float) -> list[Action]:
        """CoreFailed when something has gone wrong that nobody expected."""
        agenda = self._agenda
        agenda.now = now
        self._slice.until = 0.0
        if not isinstance(event, BatchHandled):
            self._arrival = None
        else:
            self._dead.mark[0] = BEHIND if self._arrival is None else AT
        try:
            if isinstance(event, CalledAgain):
                agenda.work(self._slice.is_over)
            agenda.events.append(event)
            self._handle_events(now)
            if isinstance(event, TimePassed):
                agenda.tick(now)
                self._handle_events(now)
            elif isinstance(event, BatchHandled):
                agenda.end_batch(event.is_busy)
            agenda.flush()
            actions: list[Action] = [*self._rows.drain(), *self._links.drain()]
            if self._tunnels.opened:
                actions = self._tunnels.carry(actions)
        except (CoreFailed, StoreError):
            raise
        except Exception as error:
            suspect = None if self._arrival is None else self._dead.suspect(self._arrival)
            raise CoreFailed(suspect) from error
        finally:
            self._dead.mark[0] = IDLE
        actions += agenda.take_actions()
        if agenda.working:
            actions.append(CallAgain())
        if agenda.due_at_end:
            actions.append(CallAtEnd())
        return actions

    def _handle_events(self, now: float) -> None:
        """What has come, and what parts have said meanwhile."""
        events = self._agenda.events
        while events:
            event = events.popleft()
            if isinstance(event, RowsRead):
                if event.space in READ_SPACES:
                    self.mailboxes.handle_read(event)
                    continue
                if self._bypasses.handle_read(event):
                    continue
            if isinstance(event, Evaluated):
                self.mailboxes.handle_evaluated(event)
                continue
            if isinstance(event, DiskRoom):
                self.data.quota.note_disk(event.is_short)
                continue
            if isinstance(event, SchemaAnswered):
                self.data.validation.answered(event)
                continue
            if isinstance(event, ArchiveRead):
                self._archive_reads.answered(event)
                continue
            for arrival in self._links.handle(event, now):
                self._handle_arrival(arrival)

    def make_results(self, read: ReadStore) -> Iterator[tuple[int, int, list[Put | Delete]]]:
        """For another release, which makes other results: make all that wait for users, and store
        them in place of the messages.  After each message how many are done, of how many, and the
        rows to commit; what was done stays done.  What is deferred has to be done before.
        """
        for done, total in self.mailboxes.make_stored(read):
            yield done, total, self._rows.drain()

    def _use_settings(self, now: Topology) -> None:
        """Of what is no part, or is told of more than limits."""
        self.data.archive.take_options(now.archive)
        self._dry_runs.published.hold_to(now.limits.message)

    def _figures(self) -> Figures:
        waiting = self.mailboxes.stored_bytes
        return figures_of(self.control, self._links, self.data, self.query, waiting)

    def connected(self, peer: str) -> bool:
        """Whether a peer ("broker/B2", "registration/r1") is there."""
        return self._links.connected(peer)

    def refusal(self, peer: str) -> str:
        """Why the last connection with a peer that is away was closed; "" if it broke."""
        return self._links.refusal(peer)

    def statistics(self) -> dict[str, object]:
        parts = self._agenda.statistics()
        parts["archive"].update(self._archive())
        return {
            "broker": self.identity,
            **parts,
            "links": self._links.statistics(),
            "unexpected": dict(self._counters),
            "node": dict(self._node()),
        }

    def _may_acknowledge(self, peer: str, flow: Flow, key: str) -> bool:
        """Back-pressure is for messages on their way down a tree."""
        role, _, name = peer.partition("/")
        if flow is not Flow.MESSAGE or role not in ("source", "broker"):
            return True
        local = self.data.local
        if local.waiting_bytes > DEFERRED_BYTES_MAX or (role == "source" and local.undecided[name]):
            return False
        tree = self.control.current_tree if role == "source" else key
        if tree in self.trees.waiting:
            return False
        if not self.query.table.is_open(tree) or self.data.has_room(tree):  # the usual way
            return True
        return self.backlogs.may_grow(tree)

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
                self.data.give_backs.handle_undecoded(frame, arrival.sender)
        elif taker is None or sender not in taker.senders:
            is_down = isinstance(frame, (*ORDERED, SourceAnnounced))
            if sender or not is_down or not self.trees.hold_early(arrival):
                self._refuse(arrival, FrameRefused("not-expected"))
        elif isinstance(frame, ORDERED) and self.trees.must_wait(arrival.key, arrival):
            self.trees.hold(arrival)
        else:
            self._hand_on(arrival)

    def _end_tree(self, tree: str) -> None:
        """A tree has ended here."""
        self.moves.end_tree(tree)
        self.taxonomies.end_tree(tree)
        self.data.last_numbers.end_tree(tree)

    def _hand_on(self, arrival: Arrival) -> None:
        frame = arrival.frame
        assert frame is not None
        taker = self.takers[type(frame)]
        if self.data.deferred and not taker.is_aside:
            self.data.finish()
        self._arrival = arrival
        number = arrival.sequence
        at = frame.called(arrival.peer, arrival.key, number) if number else mark_of(arrival)
        MARK.pack_into(self._dead.mark, 0, AT, at.encode())
        why = self._passes(arrival) if self._dead.passed_over else ""
        if why and isinstance(frame, Message):  # others wait for it
            frame, why = not_evaluated(frame, f"at {self.identity}: {why}"), ""
        if not why:
            try:
                taker.take(frame, arrival)
            except FrameRefused as refusal:
                self._refuse(arrival, refusal)
        if not self._slice.caution:  # what fails behind it may have to do with others
            self._arrival = None
            self._dead.mark[0] = BEHIND
        if self.trees.ending:
            self.trees.end_if_complete(arrival.key)

    def _passes(self, arrival: Arrival) -> str:
        """Why it is passed over, "" if it is not; what is held first, when it is its turn."""
        return "" if self.data.validation.awaits(arrival) else self._dead.passes(arrival)

    def _check_hello(self, arrival: Arrival) -> None:
        """Sources are validated against the catalog."""
        role, _, name = arrival.peer.partition("/")
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
        elif self._dead.felled and (why := self._dead.bar(arrival)):
            self._links.refuse(arrival.connection, "too-many-errors", why)

    def _is_neighbour(self, broker: str) -> bool:
        shapes = self.control.shapes
        return broker in shapes.neighbours() or broker in shapes.beside_lost

    def _publishes_here(self, source: str) -> bool:
        entry = self.control.sources.get(source)
        return entry is not None and entry.root == self.identity and entry.ready

    def _refuse(self, arrival: Arrival, refusal: FrameRefused) -> None:
        """A frame that this peer has no business to send: counted, told, nothing else."""
        self._counters[refusal.code] += 1
        frame = type(arrival.frame).__name__
        detail = refusal.detail or f"{frame} from {arrival.peer} is not expected here"
        self._links.refuse(arrival.connection, refusal.code, detail)
