"""CatalogRebuild: a registration service that has lost its store has its catalog from the brokers.

An operator says so (``onyx store rebuild``): then its store has one row, and what nobody else knows
of what was in an older copy.  Each broker that comes is asked for all that it has
(overlay/link/frames.py).  The catalog is whole when all brokers of the network have told
theirs: nobody knows earlier what is elsewhere, which of two hosts has a profile, and which ids are
taken.  Until then no client is answered, and what brokers say of moves and of the shape is kept.
Messages, deliveries, and what users do at their host brokers go on meanwhile::

    store lost ──onyx store rebuild──> waits for brokers ──all have told──> as it was
                                              ↑ each: asked, then has told

Profiles and sources are entered as they come; what has to be known of all together is made at the
end (reinstatement.py).  All of it is durable: a service that dies on the way goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from overlay import verbs
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.durable import Member, StoredSet, StoredValue
from overlay.link.events import Flow
from overlay.link.frame import CATALOG_REPORT, Frame
from overlay.link.frame_codec import LENGTH_BYTES, decode, encode
from overlay.link.frames import (
    CatalogTold,
    CatalogWanted,
    DeliveryPolicies,
    Hello,
    PartitionsMatched,
    ProfilesChanged,
    ProfilesHosted,
    ProfilesLive,
    ProfilesMoving,
    ProfilesPlaced,
    Relayed,
    Request,
    ShapeAnnounced,
    SourceAnnounced,
    SourceReady,
)
from overlay.link.part import Part, Taker, takes
from overlay.link.row_log import number_key
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table
from overlay.network_shape import NetworkShape, cut_off, without_broker
from overlay.statistics import Rebuild, RegistrationStatistics
from overlay.topology import Topology, TopologyError
from registration.access_control import AccessControl
from registration.catalog import REGISTRATION_KEY, Catalog, ProfileEntry, entry_of

ANSWERED = frozenset(kind.verb for kind in (verbs.Statistics, verbs.Network, verbs.ProcessesReport))
"""The verbs that are answered as ever."""
REQUESTS_MAX = 1_000  # that wait
_AS_EVER = (ProfilesPlaced, ProfilesChanged, ProfilesLive, SourceReady, Relayed)
_CURRENT = "current"


class RebuildRow(Row, frozen=True):
    """There is one until the catalog is whole; ``lost``: brokers that are not waited for;
    ``rebuild``: which one it is, "" until the service has begun."""

    lost: list[str]
    rebuild: str = ""


class _KeptRow(Row, frozen=True):
    """Under its number: a frame that waits until the catalog is whole."""

    broker: str
    frame: bytes


REBUILD = Table("rebuild", RebuildRow)
ASKED = Table("rebuild-asked", Member)  # brokers
KEPT = Table("rebuild-kept", _KeptRow)
KEPT_SPACES = frozenset(
    {"key", "number", "id-secret", "grant", "token", "access-version"}
    | {"taxonomy", "taxonomies-version", "plan"}
    | {"audit", "audit-refused", "audit-lines"}
)
"""What of an older copy of a store is of use."""


def marked(lost: Iterable[str]) -> tuple[str, str, bytes]:
    """The row that begins it."""
    return REBUILD.space, _CURRENT, REBUILD.pack(RebuildRow(sorted(lost)))


@dataclass(slots=True)
class BrokerTold:
    """What a broker has told for a ``rebuild``: the last frames of its two parts, what came ahead
    of them, and with its number what came behind."""

    rebuild: str
    told: CatalogTold | None = None
    moving: ProfilesMoving | None = None
    known: list[Frame] = field(default_factory=list)
    shapes: dict[int, NetworkShape] = field(default_factory=dict)
    later: list[tuple[int, Frame]] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        return self.told is not None and self.moving is not None

    def add(self, number: int, frame: Frame) -> None:
        """TopologyError.  The end of an answer to another rebuild may come ahead, without its
        beginning."""
        if isinstance(frame, CatalogTold | ProfilesMoving) and frame.rebuild not in (
            "",
            self.rebuild,
        ):
            self.known = [each for each in self.known if each.flow is not frame.flow]
            if isinstance(frame, CatalogTold):
                self.shapes = {}
        elif isinstance(frame, ShapeAnnounced):
            self.shapes[frame.version] = NetworkShape.from_announced(frame)
        elif isinstance(frame, CatalogTold):
            self.told = frame
        elif isinstance(frame, ProfilesMoving):
            self.moving = frame
        elif (self.told if frame.flow is Flow.CATALOG else self.moving) is not None:
            self.later.append((number, frame))
        else:
            self.known.append(frame)


class CatalogRebuild(Part):
    """Idle, but in a store that was marked."""

    def __init__(
        self,
        context: CoreContext,
        catalog: Catalog,
        instance: str,
        access: AccessControl,
        reinstate: Callable[[Mapping[str, BrokerTold], Collection[str]], str],
    ) -> None:
        """``instance`` is new for every start; ``reinstate`` makes what brokers have told what the
        other parts know, without those that are lost, and says what came of it."""
        self._access = access
        self._reinstate = reinstate
        self._topology = context.topology
        self._catalog = catalog
        self._instance = instance
        self._links = context.links
        self._rows = context.rows
        self._marked: StoredValue[RebuildRow | None] = StoredValue(context.rows, REBUILD, None)
        self._asked = StoredSet(context.rows, ASKED)
        self._told: dict[str, BrokerTold] = {}
        self._last = 0  # number of what is kept
        self._requests: list[Arrival] = []
        self._said = ""  # what came of it, in this run of the process

    def frames(self) -> Iterable[Taker]:
        for kind in (CatalogTold, ProfilesHosted, ProfilesMoving):
            yield takes(kind, "broker", self._pass_over)

    def restore(self, rows: StoredRows) -> None:
        """The catalog must have been restored before."""
        if (row := self._marked.now) is not None:
            self._marked.put(row if row.rebuild else replace(row, rebuild=self._instance))
            self._links.is_anew, self._access.is_known = True, False
            self.flush_soon()
        for key, kept in rows.take(KEPT):
            self._last = int(key)
            frame = decode(kept.frame[LENGTH_BYTES:]).frame
            self._told_by(kept.broker).add(self._last, frame)

    @property
    def is_under_way(self) -> bool:
        return self._marked.now is not None

    def meet(self, broker: str, hello: Hello, connection: int) -> None:
        """Ask a broker that has come, once."""
        if CATALOG_REPORT not in hello.features:
            detail = "the catalog is rebuilt, and an earlier release cannot tell what it has"
            self._links.refuse(connection, "too-old", detail)
        elif broker not in self._asked:
            assert self._marked.now is not None
            self._links.journal(f"broker/{broker}").go_on_behind(hello.received)
            self._asked.add(broker)
            wanted = CatalogWanted(self._marked.now.lost, self._marked.now.rebuild)
            self._links.send(f"broker/{broker}", REGISTRATION_KEY, wanted)

    def holds(self, arrival: Arrival) -> bool:
        """Whether a frame is not to be handled as ever."""
        frame = arrival.frame
        assert frame is not None
        if isinstance(frame, Request):
            return self._holds_request(frame, arrival)
        if isinstance(frame, _AS_EVER) or not arrival.peer.startswith("broker/"):
            return False
        if isinstance(frame, ProfilesHosted):
            self._enter_profiles(frame, arrival.sender)
        elif isinstance(frame, DeliveryPolicies):
            for profile, policy in frame.by_profile():
                self._catalog.policies.put(profile, policy)
        elif isinstance(frame, SourceAnnounced):
            is_root = frame.root == arrival.sender and self._stays(arrival.sender)
            if is_root or frame.source not in self._catalog.sources:
                self._catalog.put_source(entry_of(frame))
        elif not isinstance(frame, PartitionsMatched):
            self._keep(arrival, frame)
        return True

    def gone(self, arrival: Arrival) -> None:
        """Nobody waits on a connection that is gone."""
        if self._requests:
            gone = arrival.connection
            self._requests = [each for each in self._requests if each.connection != gone]

    def flush(self) -> None:
        """Is it whole?"""
        if self._marked.now is None or self.awaited():
            return
        told = {broker: each for broker, each in self._told.items() if each.is_whole}
        requests = self._requests
        lost = set(self._marked.now.lost) - self._asked
        self._told, self._requests = {}, []
        self._links.is_anew = False
        self._marked.put(None)
        self._asked.clear()
        for number in range(1, self._last + 1):
            KEPT.delete(self._rows, number_key(number))
        self._said = self._reinstate(told, lost)
        for arrival in requests:
            self.hand_on(arrival)

    def awaited(self) -> list[str]:
        """The brokers that have not told all yet: of the newest shape that is known, and of those
        that are not settled."""
        assert self._marked.now is not None
        whole = {broker for broker, each in self._told.items() if each.is_whole}
        given_up = set(self._marked.now.lost) - self._asked
        every, newest = self._brokers()
        for broker in given_up & every:
            newest = without_broker(newest, broker)
        if given_up & every and cut_off(newest):
            given_up = set()  # the others could not do without
        return sorted(every - whole - given_up)

    def report(self, said: RegistrationStatistics) -> None:
        is_over = self._marked.now is None
        said.rebuild = Rebuild(said=self._said) if is_over else Rebuild(self.awaited())

    # --- helpers --------------------------------------------------------------------------

    def _pass_over(self, frame: Frame, arrival: Arrival) -> None:
        """Of a broker that has left, and told it when all was done."""

    def _brokers(self) -> tuple[set[str], Topology]:
        """All of the shapes that are known, but for those that nothing is to be awaited from, and
        the newest of these; before anything is told, of the topology that it was started with."""
        settled = max((each.told.settled for each in self._told.values() if each.told), default=0)
        shapes: dict[int, NetworkShape] = {}
        for each in self._told.values():
            if each.told is not None:
                shapes |= each.shapes
        used = [shapes[version] for version in sorted(shapes) if version >= settled]
        if not used:
            return set(self._topology.broker_ids), self._topology
        lost = {broker for shape in used[1:] for broker in shape.lost}
        every = {broker for shape in used for broker in shape.declared.broker_ids}
        return every - lost, used[-1].declared

    def _stays(self, broker: str) -> bool:
        """Whether a broker, which has told its shapes, is in the newest."""
        shapes = self._told[broker].shapes if broker in self._told else {}
        return bool(shapes) and shapes[max(shapes)].has_broker(broker)

    def _holds_request(self, request: Request, arrival: Arrival) -> bool:
        if request.verb in ANSWERED:
            return False
        if len(self._requests) < REQUESTS_MAX:
            self._requests.append(arrival)
        else:
            detail = f"the catalog is rebuilt, and {REQUESTS_MAX} requests wait for it"
            self._links.refuse(arrival.connection, "busy", detail)
        return True

    def _enter_profiles(self, frame: ProfilesHosted, broker: str) -> None:
        """Of two brokers that have a profile the one that stands by is not its host."""
        for profile, user, text, version, live, stands_by in frame.profiles:
            if not (stands_by and profile in self._catalog.profiles):
                entry = ProfileEntry(profile, user, broker, text, version, "", True, live)
                self._catalog.put_profile(entry)

    def _told_by(self, broker: str) -> BrokerTold:
        assert self._marked.now is not None
        return self._told.setdefault(broker, BrokerTold(self._marked.now.rebuild))

    def _keep(self, arrival: Arrival, frame: Frame) -> None:
        broker = arrival.sender
        try:
            self._told_by(broker).add(self._last + 1, frame)
        except TopologyError as error:
            self._links.refuse(arrival.connection, "bad-field", str(error))
            return
        self._last += 1
        kept = _KeptRow(broker, encode(frame, REGISTRATION_KEY, self._last))
        KEPT.put(self._rows, number_key(self._last), kept)
        if isinstance(frame, CatalogTold | ProfilesMoving):
            self.flush_soon()
