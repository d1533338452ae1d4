"""RegistrationCore: the registration service without I/O (section 3.1 of the paper).

Sources and users come here once; after that a source talks to its root broker and a user to their
host broker.  Ids, placement and the catalog are decided here, each by the part that it is the
business of; another part is one file, and one line in the list below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from overlay.link.core import Core, Rows
from overlay.link.core_context import STILL, CoreContext, Surroundings
from overlay.link.frame import Frame
from overlay.link.frames import Hello, Relayed
from overlay.link.link_layer import Arrival, LinkLayer
from overlay.link.part import FrameRefused, Part, Taker, takes
from overlay.statistics import RegistrationStatistics
from overlay.topology import Topology
from registration.access_control import AccessControl
from registration.audit_log import AuditLog
from registration.auto_planning import NO_PLANNER, AutoPlanning
from registration.batch_requests import BatchRequests
from registration.catalog import REGISTRATION_KEY, Catalog
from registration.catalog_rebuild import CatalogRebuild
from registration.drains import Drains
from registration.going_round import AbsentBrokers, GoingRound
from registration.host_reports import HostReports, ProcessReports
from registration.link_reports import LinkReports
from registration.measured_shares import MeasuredShares
from registration.moves import Moves
from registration.new_profiles import NewProfiles
from registration.placement_by_plan import PlanPlacement
from registration.plan_application import PlanApplication
from registration.plan_census import PlanCensus
from registration.plan_requests import PlanRequests
from registration.registration_requests import RegistrationRequests
from registration.rehosting import Rehosting
from registration.reinstatement import LostCatalog, Reinstatement
from registration.released_keys import ReleasedKeys
from registration.renewals import Renewals
from registration.schema_reading import SchemaReading
from registration.shape_changes import ShapeChanges
from registration.shape_requests import BrokerRequests, ShapeRequests
from registration.source_changes import SourceChanges
from registration.source_requests import SourceRequests
from registration.source_roots import SourceRoots
from registration.taxonomies import Taxonomies


class Relays(Part):
    """Pieces of a connection between two brokers whose link is gone are carried on.  Nothing is
    kept: a broker that is away closes the connection."""

    def __init__(self, links: LinkLayer) -> None:
        self._links = links

    def frames(self) -> Iterable[Taker]:
        yield takes(Relayed, "broker", self._handle)

    def _handle(self, frame: Relayed, arrival: Arrival) -> None:
        there = self._links.connection_of(f"broker/{frame.broker}")
        if there is not None:
            self._links.reply(there, replace(frame, broker=arrival.sender))
        elif not frame.closing:
            closed = replace(frame, number=1, closing=True, payload=b"")
            self._links.reply(arrival.connection, closed)


class RegistrationCore(Core):
    """The registration service of a topology."""

    def __init__(
        self,
        topology: Topology,
        identity: str,
        instance: str,
        stored: Rows = (),
        around: Surroundings = STILL,
        new_secret: Callable[[], bytes] = bytes,
        revoked: Callable[[], frozenset[int]] = frozenset,
        no_planner: str = NO_PLANNER,
        certificates: Callable[[], Mapping[str, Sequence[str]]] = dict,
        *,
        signs: bool = False,
    ) -> None:
        """``instance`` is new for every start; ``stored``: the rows that the store held;
        ``new_secret`` gives random bytes (Ids); ``revoked`` the serial numbers of certificates that
        nobody may show; ``no_planner``: see AutoPlanning, ``certificates`` AuditLog,
        ``signs`` Renewals."""
        context = CoreContext("registration", topology, identity, instance, around)
        super().__init__(context, around)
        links, rows, server = context.links, context.rows, context.server
        catalog = self.catalog = Catalog(rows, new_secret)
        self.moves = moves = Moves(catalog, rows, self._send)

        audit = AuditLog(context, certificates)
        access = self._access = AccessControl(context, revoked)
        taxonomies = self._taxonomies = Taxonomies(context)

        away = set[str]()  # brokers at which nothing new is placed
        placement = PlanPlacement(topology, rows, away)
        rehosting = Rehosting(catalog, placement, links)
        keys = ReleasedKeys(catalog, links, rows)
        roots = SourceRoots(catalog, links, rows, away, keys)
        told = moves, rehosting, roots
        shapes = self.shapes = ShapeChanges(topology, catalog, links, rows, *told)
        reports = LinkReports(context, shapes, audit)
        processes = ProcessReports(shapes, identity)
        shape_requests = ShapeRequests(
            shapes, catalog, reports.flush_soon, self.settings.take_change
        )

        shares = self._shares = MeasuredShares(context, placement)
        application = PlanApplication(context, catalog, placement, moves)
        census = PlanCensus(catalog, server.answer)
        about_plans = catalog, placement, shares, application, census
        planning = self._planning = AutoPlanning(context, *about_plans, no_planner)

        drains = Drains(shapes, catalog, placement, moves, rows, self.connected, roots)
        changes = SourceChanges(context, shapes, catalog, roots)
        schemas = SchemaReading(server.handle)
        sources = SourceRequests(catalog, changes, schemas, server)
        news = NewProfiles(catalog, placement, links, taxonomies.said_in)
        batches = BatchRequests(
            *(catalog, news, rows, server.handle, context.dead.answer_failed, context.access),
            *(server.principal, server.is_bounded, context.slice.is_over),
        )
        requests = RegistrationRequests(
            *(context, shapes, catalog, news, batches, sources, away, roots.draining)
        )

        reinstatement = Reinstatement(
            *(catalog, shapes, moves, roots, rehosting, reports, access),
            *(taxonomies, placement, shares, audit, self.connected, self.hand_on),
        )
        self._lost = LostCatalog(context)
        self._rebuild = CatalogRebuild(context, catalog, instance, access, reinstatement.reinstate)
        self.begin(
            (
                (self._lost, self._rebuild),  # what it reinstates is flushed with the rest
                (catalog, batches, keys, roots, rehosting, drains),
                (BrokerRequests(context, shapes, catalog, drains),),
                (shapes, shape_requests, reports, placement, shares, moves, application, census),
                (planning, PlanRequests(placement, shares, application, census, planning)),
                (news, requests, schemas, sources),
                (HostReports(catalog, moves, requests, roots, changes, application, drains),),
                (changes, Relays(links), processes, AbsentBrokers(context, shapes, away)),
                (GoingRound(shapes, reports, away, links, audit),),
                (audit, access, taxonomies, Renewals(context, signs=signs)),
            ),
            stored,
        )

    def statistics(self) -> RegistrationStatistics:
        return self.reported(RegistrationStatistics(registration=self.identity))

    # --- arrivals -------------------------------------------------------------------------

    def _handle_arrival(self, arrival: Arrival) -> None:
        frame = arrival.frame
        role = arrival.peer.partition("/")[0]
        if frame is None:
            self._agenda.gone(arrival)
        elif isinstance(frame, Hello):
            self._check_hello(arrival, frame, role)
        else:
            taker = self.takers.get(type(frame))
            if self._rebuild.is_under_way and self._rebuild.holds(arrival):
                return
            if taker is None or role not in taker.senders:
                self._refuse(arrival, FrameRefused("not-expected"))
            else:
                self._take(taker, frame, arrival)

    def hand_on(self, arrival: Arrival) -> None:
        frame = arrival.frame
        assert frame is not None
        taker = self.takers.get(type(frame))
        if taker is not None:  # None: of a catalog that a broker has told a second time
            taker.take(frame, arrival)

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

    def _send(self, broker: str, frame: Frame) -> None:
        self._links.send(f"broker/{broker}", REGISTRATION_KEY, frame)
