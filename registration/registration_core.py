"""RegistrationCore: the registration service without I/O (section 3.1 of the paper).

Sources and users come here once; after that a source talks to its root broker and a user to their
host broker.  Ids, placement and the catalog are decided here, each by the part that it is the
business of; another part is one file, and one line in the list below.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from overlay.link.dead_letters import DeadLetters
from overlay.link.errors import StoreError
from overlay.link.events import (
    Action,
    BatchHandled,
    CallAgain,
    CallAtEnd,
    CalledAgain,
    DiskRoom,
    Event,
    PlannerAnswered,
    SchemaAnswered,
    TimePassed,
)
from overlay.link.frame import Frame
from overlay.link.frames import Hello
from overlay.link.link_layer import Arrival, LinkLayer
from overlay.link.part import Agenda
from overlay.link.principal import Principal, nobody
from overlay.link.request_server import RequestServer, Result, Verb
from overlay.link.row_log import RowLog
from overlay.link.running_settings import RunningSettings
from overlay.link.slices import Slice
from overlay.link.statistics_requests import StatisticsRequests
from overlay.link.stored_rows import Progress, StoredRows, unsaid
from overlay.link.suspect import CoreFailed, mark_of
from overlay.link.token_holders import TokenHolders
from overlay.link.work_mark import AT, BEHIND, IDLE, MARK, WorkMark
from overlay.topology import Topology
from registration.absent_brokers import AbsentBrokers
from registration.access_control import AccessControl
from registration.audit_log import AuditLog
from registration.auto_planning import NO_PLANNER, AutoPlanning
from registration.batch_requests import BatchRequests
from registration.broker_requests import BrokerRequests
from registration.catalog import REGISTRATION_KEY, Catalog
from registration.catalog_rebuild import CatalogRebuild
from registration.drains import Drains
from registration.going_round import GoingRound
from registration.host_reports import HostReports
from registration.link_reports import LinkReports
from registration.lost_catalog import LostCatalog
from registration.measured_shares import MeasuredShares
from registration.moves import Moves
from registration.new_profiles import NewProfiles
from registration.placement_by_plan import PlanPlacement
from registration.plan_application import PlanApplication
from registration.plan_census import PlanCensus
from registration.plan_requests import PlanRequests
from registration.process_reports import ProcessReports
from registration.registration_requests import RegistrationRequests
from registration.rehosting import Rehosting
from registration.reinstatement import Reinstatement
from registration.relays import Relays
from registration.schema_reading import SchemaReading
from registration.shape_changes import ShapeChanges
from registration.shape_requests import ShapeRequests
from registration.source_changes import SourceChanges
from registration.source_requests import SourceRequests
from registration.source_roots import SourceRoots
from registration.taxonomies import Taxonomies


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
        new_secret: Callable[[], bytes] = bytes,
        wall: Callable[[], float] = lambda: 0.0,
        caution: int = 0,
        say: Callable[[str], None] = lambda text: None,
        issuer: Callable[[str], Principal] = nobody,
        revoked: Callable[[], frozenset[int]] = frozenset,
        mark: WorkMark | None = None,
        epoch: int = 0,
        no_planner: str = NO_PLANNER,
    ) -> None:
        """``instance`` is new for every start; ``rows`` is what the store held; ``node`` says how
        the shell fares, for statistics; ``progress`` is told how far the rows are taken;
        ``clock`` gives seconds of processor time, by which work is done in slices, ``wall``
        those of the calendar; ``new_secret`` gives random bytes (Ids); ``caution``: see
        slices.py; ``say`` is told what people should know; ``issuer``: see TokenHolders;
        ``revoked`` gives the serial numbers of certificates that nobody may show; ``mark``: where
        it says what it is at; ``epoch``: see epochs.py; ``no_planner``: see
        AutoPlanning."""
        self.identity = identity
        self._node = node
        self._rows = RowLog()
        self._slice = Slice(clock, caution)
        self._arrival: Arrival | None = None  # under way
        self.catalog = Catalog(self._rows, new_secret)
        holders = TokenHolders(topology.access.rules(), wall, issuer)
        self._links = LinkLayer(
            role="registration",
            identity=identity,
            instance=instance,
            formats=[],
            limits=topology.limits.link,
            stored=True,
            is_over=self._slice.is_over,
            holder=holders.holder,
            epoch=epoch,
        )
        self._dead = dead = DeadLetters(self._links, self._rows, wall, mark)
        self.moves = Moves(self.catalog, self._rows, self._send)
        self.shapes = ShapeChanges(topology, self.catalog, self._links, self._rows)
        audit, self.settings = (
            AuditLog(self._rows, wall, say),
            RunningSettings(topology, self._rows, self.shapes.use_settings),
        )
        self._access = AccessControl(
            *(topology, self._links, self._rows, audit, wall, holders, revoked)
        )
        self._taxonomies = Taxonomies(topology, self._links, self._rows, audit)
        reports = LinkReports(self.shapes, self._rows, audit, self.connected)
        absent = AbsentBrokers(self.shapes, self.connected, topology.limits.link_down_after_s)
        placement = PlanPlacement(topology, self._rows, absent.away)
        self._shares = MeasuredShares(topology, placement, self._links, self._rows)
        application = PlanApplication(
            topology, self.catalog, placement, self.moves, self._rows, self.connected
        )
        verbs = self.verbs = dict[str, Verb]()
        self._server = server = RequestServer(
            *(self._links, "the registration service", verbs, self._access.table),
            *(self._rows.__len__, dead.answer_failed),
        )
        census = PlanCensus(self.catalog, server.answer)
        self._planning = planning = AutoPlanning(
            *(topology, self.catalog, placement, self._shares, application, census),
            *(self._rows, wall, no_planner),
        )
        news = NewProfiles(self.catalog, placement, self._links, self._taxonomies.said_in)
        batches = BatchRequests(
            *(self.catalog, news, self._rows, server.handle, dead.answer_failed),
            *(self._access.table, server.principal, server.is_bounded, self._slice.is_over),
        )
        self._schemas = SchemaReading(server.handle)
        roots = SourceRoots(
            self.catalog, self._links, self._rows, self.shapes.draining, absent.away
        )
        changes_of_sources = SourceChanges(
            *(self.shapes, self.catalog, roots, self._links, self._rows, self._access.table),
            *(server.answer, self._slice.is_over),
            lambda connection, what, detail: audit.note(server.principal(connection), what, detail),
        )
        sources = SourceRequests(self.catalog, changes_of_sources, self._schemas, server)
        requests = RegistrationRequests(
            *(self.shapes, self.catalog, news, batches, sources, server),
            StatisticsRequests(self.statistics, self._links),
            absent.away,
        )
        verbs |= {**requests.verbs, **batches.verbs}
        verbs |= PlanRequests(placement, self._shares, application, census, planning).verbs
        processes = ProcessReports(self.shapes, identity)
        verbs |= {**processes.verbs, **dead.verbs}
        changes = ShapeRequests(
            *(self.shapes, self.catalog, reports.decide, audit, server.principal),
            self.settings.take_change,
        )
        verbs |= {**changes.verbs, **self._access.verbs}
        verbs |= {**self._taxonomies.verbs, **audit.verbs}
        rehosting = Rehosting(self.catalog, placement, self._links)
        drains = Drains(
            *(self.shapes, self.catalog, placement, self.moves, self._rows, self.connected)
        )
        verbs |= BrokerRequests(
            *(self.shapes, self.catalog, drains, audit, server.principal, self.connected)
        ).verbs
        self.shapes.tell_lost += [self.moves.lost, rehosting.lose, roots.lose]
        self.shapes.tell_gone, self.shapes.tell_settled = roots.leave, roots.settle
        self._lost, self._rebuild = (
            LostCatalog(self._links, self._rows, topology.data_directory),
            CatalogRebuild(topology, self.catalog, self._links, self._rows),
        )
        Reinstatement(
            *(self._rebuild, self.catalog, self.shapes, self.moves, roots, rehosting, reports),
            *(
                self._access,
                self._taxonomies,
                placement,
                self._shares,
                audit,
                self._take,
                self.connected,
            ),
        )
        for part in (
            *(placement, self._shares, application, planning, news, batches, requests),
            *(self._access, self._taxonomies, roots, rehosting, changes_of_sources),
        ):
            self.shapes.tell_topology.append(part.use_topology)
        self._counters: Counter[str] = Counter()
        self._agenda = Agenda(
            (
                dead,
                self._lost,
                self._rebuild,  # what it reinstates is flushed with the rest
                self.catalog,
                batches,
                roots,
                drains,
                self.shapes,
                reports,
                placement,
                self._shares,
                self.moves,
                application,
                census,
                planning,
                news,
                requests,
                self._schemas,
                HostReports(self.catalog, self.moves, requests, roots, changes_of_sources),
                changes_of_sources,
                Relays(self._links),
                processes,
                absent,
                GoingRound(self.shapes, reports, absent.away, self._links, audit),
                audit,
                self._access,
                self._taxonomies,
                self.settings,
            )
        )
        self._takers = self._agenda.takers()
        self._agenda.restore(StoredRows(self._links.restore(rows), progress))

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
                agenda.work()
            elif isinstance(event, SchemaAnswered):
                self._schemas.answered(event)
            elif isinstance(event, PlannerAnswered):
                self._planning.answered(event)
            elif isinstance(event, DiskRoom):
                self._server.disk_is_short = event.is_short
            for arrival in self._links.handle(event, now):
                self._handle_arrival(arrival)
            if isinstance(event, TimePassed):
                agenda.tick(now)
            elif isinstance(event, BatchHandled):
                agenda.end_batch(event.is_busy)
            agenda.flush()
            actions = [*self._rows.drain(), *self._links.drain(), *agenda.take_actions()]
        except (CoreFailed, StoreError):
            raise
        except Exception as error:
            suspect = None if self._arrival is None else self._dead.suspect(self._arrival)
            raise CoreFailed(suspect) from error
        finally:
            self._dead.mark[0] = IDLE
        if agenda.working:
            actions.append(CallAgain())
        if agenda.due_at_end:
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
            **self._agenda.statistics(),
            "profiles_by_broker": dict(self.catalog.profiles_by_broker),
            "links": self._links.statistics(),
            "unexpected": dict(self._counters),
            "node": dict(self._node()),
        }

    # --- arrivals -------------------------------------------------------------------------

    def _handle_arrival(self, arrival: Arrival) -> None:
        frame = arrival.frame
        role = arrival.peer.partition("/")[0]
        if frame is None:
            self._agenda.gone(arrival)
        elif isinstance(frame, Hello):
            self._check_hello(arrival, frame, role)
        else:
            taker = self._takers.get(type(frame))
            if self._rebuild.is_under_way and self._rebuild.holds(arrival):
                return
            if taker is not None and role in taker.senders:
                self._arrival = arrival
                MARK.pack_into(self._dead.mark, 0, AT, mark_of(arrival).encode())
                if not (self._dead.passed_over and self._dead.passes(arrival)):
                    taker.take(frame, arrival)
                if not self._slice.caution:  # what fails behind it may have to do with others
                    self._arrival = None
                    self._dead.mark[0] = BEHIND
                return
            self._counters["not-expected"] += 1
            detail = f"{type(frame).__name__} from {arrival.peer} is not expected here"
            self._links.refuse(arrival.connection, "not-expected", detail)

    def _check_hello(self, arrival: Arrival, frame: Hello, role: str) -> None:
        name = arrival.sender
        if role == "broker" and self._rebuild.is_under_way:
            self._rebuild.meet(name, frame, arrival.connection)
        elif role == "broker" and self.shapes.lost_since(name):
            detail = (
                f"{name} was given up for good with version {self.shapes.lost_since(name)} of "
                "the network: nobody counts on its store any more. Empty its data directory, and "
                "add it to the network again (onyx topology apply)"
            )
            self._links.refuse(arrival.connection, "lost", detail)
        elif role == "broker" and not self.shapes.knows(name):
            detail = f"{name!r} is no broker of {self.shapes.topology.name}"
            self._links.refuse(arrival.connection, "unknown-broker", detail)
        elif role not in ("broker", "client"):
            detail = f"a {role} connects to its broker, not to the registration service"
            self._links.refuse(arrival.connection, "not-expected", detail)
        elif role == "broker":
            if self._lost.admits(name, frame, arrival.connection):
                self._shares.tell(name)
                self._access.tell(name)
                self._taxonomies.tell(name)
        elif self._dead.felled and (why := self._dead.bar(arrival)):
            self._links.refuse(arrival.connection, "too-many-errors", why)

    def _take(self, frame: Frame, arrival: Arrival) -> None:
        """What has waited."""
        self._takers[type(frame)].take(frame, arrival)

    def _send(self, broker: str, frame: Frame) -> None:
        self._links.send(f"broker/{broker}", REGISTRATION_KEY, frame)
