"""ShapeChanges: the versions of the network's shape, and how far every broker is with the newest.

``ShapeChanges.steps`` is the protocol of a version, docs/protocol.md has its picture:

- *announced*: every broker learns the new version before anybody acts on it, so nobody ever hears
  of a tree that it does not know.  A broker that joins has the whole catalog ahead of it.
- *agreed*: root brokers set their new trees up and go over to them
  (onyx/broker/shape/tree_versions.py).
- *settled*: what was on the old trees has arrived; links and brokers that left are not needed any
  more.

A version that goes round brokers which are away (going_round.py) does not wait for them: they are
told of it as everybody, but that it is settled only with a later one, which they are in again.

A newer version may follow before the last is settled (a link went down): then only the newest is
waited for.  While a change is under way new sources wait, and profiles are not placed at brokers
that come or go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import TypeAlias

from msgspec import structs

from overlay.answers import ShapeProgress
from overlay.link.durable import Member, StoredMap, StoredValue
from overlay.link.events import Flow
from overlay.link.frame import PACKED_SHAPES, Frame
from overlay.link.frames import (
    HOLDS,
    SETTLED,
    SWITCHED,
    CatalogTold,
    ShapeAgreed,
    ShapeAnnounced,
    ShapeReached,
    ShapeSettled,
)
from overlay.link.link_layer import LinkLayer
from overlay.link.part import Part
from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table
from overlay.network_shape import (
    SHAPE,
    NetworkShape,
    Pair,
    ReachedRow,
    first_shape,
    is_connected_without,
    next_shape,
    refreshed,
)
from overlay.state_table import StateMachine, StateTable
from overlay.statistics import RegistrationStatistics
from overlay.topology import Topology
from registration.catalog import REGISTRATION_KEY, Catalog, announcement
from registration.moves import Moves
from registration.rehosting import Rehosting
from registration.source_roots import SourceRoots

_STAGES = {HOLDS: "announced", SWITCHED: "switched", SETTLED: "settled"}


class Stage(StrEnum):
    """Of the newest version."""

    ANNOUNCED = "announced"
    AGREED = "agreed"
    SETTLED = "settled"


class ShapeEvent(StrEnum):
    CHANGED = "another version"
    ALL_HOLD = "all brokers hold it"
    ALL_SETTLED = "all have nothing of before"


class _StageRow(Row, frozen=True):
    """The version agreed on, and the brokers that have left and are still to be told the last."""

    agreed: int
    departing: set[str]


class _LostRow(Row, frozen=True):
    """Its key is the broker; ``version``: of the shape that goes on without it."""

    version: int


LOST = Table("shape-lost", _LostRow)
STAGE = Table("shape-stage", _StageRow)
REACHED = Table("shape-reached", ReachedRow)
_NOWHERE = ReachedRow(0, 0)
WAITING = Table("source-waiting", Member)  # sources


Forms: TypeAlias = Mapping[bool, ShapeAnnounced]
"""What brokers are told of a shape, by whether it is packed: the same frame for many."""


def _forms(shape: NetworkShape) -> Forms:
    return {is_packed: shape.announced(is_packed=is_packed) for is_packed in (False, True)}


def _with_settings(topology: Topology, now: Topology) -> Topology:
    return structs.replace(
        topology, limits=now.limits, archive=now.archive, log=now.log, planning=now.planning
    )


class ShapeChanges(StateMachine[NetworkShape, Stage, ShapeEvent], Part):
    """The shape of the network; durable."""

    def __init__(
        self,
        topology: Topology,
        catalog: Catalog,
        links: LinkLayer,
        rows: RowLog,
        moves: Moves,
        rehosting: Rehosting,
        roots: SourceRoots,
    ) -> None:
        """``topology`` is what the process was started with."""
        self._moves = moves
        self._rehosting = rehosting
        self._roots = roots
        self._started_with = topology
        self._catalog = catalog
        self._links = links
        self._rows = rows
        self._shapes = [first_shape(topology)]  # the settled one, then those under way
        self._stage_row = StoredValue(rows, STAGE, _StageRow(0, set()), "stage")
        self._reached = StoredMap(rows, REACHED)  # by broker
        self._waiting = StoredMap(rows, WAITING)
        self._lost = StoredMap(rows, LOST)  # brokers that are gone for good

    def restore(self, rows: StoredRows) -> None:
        shapes = [
            refreshed(NetworkShape.from_row(int(version), row), self._started_with)
            for version, row in rows.take(SHAPE)
        ]
        if shapes:
            self._shapes = sorted(shapes, key=lambda shape: shape.version)
        else:
            self._put(self._shapes[0])
        self._tell_topology()

    def take_settings(self, now: Topology) -> None:
        """Others are in force; the shape is the same."""
        self._started_with = _with_settings(self._started_with, now)
        self._shapes = [replace(s, declared=_with_settings(s.declared, now)) for s in self._shapes]
        self._tell_topology()

    def reinstate(
        self,
        shapes: Mapping[int, NetworkShape],
        newest: Mapping[str, int],
        told: Mapping[str, CatalogTold],
    ) -> None:
        """After the store was lost: the shapes by version, and by broker the newest that it holds
        and how far it is.  Each is told what it lacks.  ``go_on`` has to follow."""
        base = max(each.settled for each in told.values())
        for shape in self._shapes:
            SHAPE.delete(self._rows, str(shape.version))
        used = [shapes[version] for version in sorted(shapes) if version >= base]
        self._shapes = [refreshed(shape, self._started_with) for shape in used]
        for shape in self._shapes:
            self._put(shape)
        agreed = max(each.agreed for each in told.values())
        self._stage_row.put(_StageRow(agreed, self._departing))
        forms = {shape.version: _forms(shape) for shape in self._shapes}
        for broker in self._concerned():
            if broker in told:
                self._reached[broker] = ReachedRow(told[broker].version, told[broker].stage)
                self._bring_up(broker, newest[broker], told[broker], base, forms)
        self._tell_topology()

    def _bring_up(
        self, broker: str, newest: int, told: CatalogTold, base: int, forms: Mapping[int, Forms]
    ) -> None:
        lacks: list[Frame] = []
        if told.agreed < self._agreed <= newest:
            lacks.append(ShapeAgreed(version=self._agreed))
        if told.settled < base <= newest:
            lacks.append(ShapeSettled(version=base))
        if newest < self.newest.version and not self._shapes[0].has_broker(broker):
            lacks += map(announcement, self._catalog.sources.values())  # it joins
        for shape in self._shapes:
            if shape.version > newest:
                lacks.append(forms[shape.version][self._reads_packed(broker)])
                if shape.version == self._agreed:
                    lacks.append(ShapeAgreed(version=self._agreed))
        for frame in lacks:
            self._links.send(f"broker/{broker}", REGISTRATION_KEY, frame)

    def go_on(self) -> None:
        """What brokers have said of their stages is known."""
        self._advance()

    # --- what there is --------------------------------------------------------------------

    @property
    def _agreed(self) -> int:
        return self._stage_row.now.agreed

    @property
    def _departing(self) -> set[str]:
        return self._stage_row.now.departing

    @property
    def newest(self) -> NetworkShape:
        return self._shapes[-1]

    @property
    def is_settled(self) -> bool:
        return len(self._shapes) == 1

    @property
    def stage(self) -> Stage:
        if self.is_settled:
            return Stage.SETTLED
        return Stage.AGREED if self._agreed == self.newest.version else Stage.ANNOUNCED

    @property
    def topology(self) -> Topology:
        """Where sources and profiles may be placed."""
        newest = self.newest.topology
        if self.is_settled and not self._roots.draining:
            return newest
        settled = self._shapes[0]
        return structs.replace(
            newest,
            brokers=tuple(
                broker
                if self._may_host(broker.id, settled)
                else structs.replace(broker, capacity=0)
                for broker in newest.brokers
            ),
        )

    def _may_host(self, broker: str, settled: NetworkShape) -> bool:
        return settled.has_broker(broker) and broker not in self._roots.draining

    @property
    def processes(self) -> Topology:
        """The brokers that have to run, those that are leaving with their links among them."""
        newest = self.newest.declared
        concerned = self._concerned()
        brokers = {broker.id: broker for broker in newest.brokers}
        links = {frozenset(link.ends): link for link in newest.links}
        for shape in self._shapes:
            for broker in shape.declared.brokers:
                if broker.id in concerned:
                    brokers.setdefault(broker.id, broker)
        for shape in self._shapes:
            for link in shape.declared.links:
                if brokers.keys() >= set(link.ends):
                    links.setdefault(frozenset(link.ends), link)
        return structs.replace(newest, brokers=tuple(brokers.values()), links=tuple(links.values()))

    def knows(self, broker: str) -> bool:
        """Whether a broker is one of this network, or was and does not know yet that it is not."""
        if broker in self._lost:
            return False
        return broker in self._departing or any(s.has_broker(broker) for s in self._shapes)

    def is_in_all(self, broker: str) -> bool:
        """Whether a broker neither comes nor goes."""
        return all(shape.has_broker(broker) for shape in self._shapes)

    def neighbours(self, broker: str) -> set[str]:
        """Those that a broker has, or had in a version of which something may be left."""
        shapes = [shape for shape in self._shapes if shape.has_broker(broker)]
        return {other for shape in shapes for other in shape.declared.neighbours(broker)}

    def lost_since(self, broker: str) -> int:
        """The version with which a broker was given up for good, 0 if it was not."""
        return self._lost.get(broker, _LostRow(0)).version

    def address(self, broker: str) -> str:
        """Where clients find a broker, also one that is leaving; "" when it is gone."""
        shapes = (shape for shape in reversed(self._shapes) if shape.has_broker(broker))
        shape = None if broker in self._lost else next(shapes, None)
        return "" if shape is None else shape.declared.where(broker)

    def progress(self) -> ShapeProgress:
        missing = {
            name: [broker for broker in self._concerned() if self._stage(broker) < number]
            for number, name in _STAGES.items()
        }
        return ShapeProgress(
            version=self.newest.version,
            stage=self.stage.value,
            missing={} if self.is_settled else missing,
            brokers=len(self._concerned()),
        )

    # --- changes --------------------------------------------------------------------------

    def change(
        self,
        declared: Topology,
        down: Iterable[Pair] = (),
        lost: Iterable[str] = (),
        away: Iterable[str] | None = None,
    ) -> NetworkShape:
        """Begin to change the network into another, which must be connected; ``away`` brokers are
        gone round, as before if nothing is said and there still is a way."""
        down = frozenset(down)
        if away is None:
            away = self.newest.away & set(declared.broker_ids)
            away = away if is_connected_without(declared, away, down) else ()
        shape = next_shape(self.newest, declared, down, lost, away)
        self._forget_departed()  # who has left and joins again comes with an empty store
        joining = [b for b in declared.broker_ids if not self.knows(b) or b in self._departing]
        gone = [b for b in self.newest.topology.broker_ids if not shape.has_broker(b)]
        for broker in joining:
            self._departed(broker)
            self._reached.pop(broker)
            self._lost.pop(broker)
            for entry in self._catalog.sources.values():
                source = entry.source
                if source not in self._waiting and source not in self._roots.told:
                    self._links.send(f"broker/{broker}", REGISTRATION_KEY, announcement(entry))
        for broker in shape.lost:
            self._links.forget(f"broker/{broker}")
            self._lost[broker] = _LostRow(shape.version)
        self.happen(shape, ShapeEvent.CHANGED)
        for broker in gone:
            self._roots.leave(broker)
        for broker in shape.lost:
            self._moves.lost(broker)
            self._rehosting.lose(broker, shape.version)
            self._roots.lose(broker)
        return shape

    def place_elsewhere(self) -> None:
        """What is ``draining`` has changed."""
        self._tell_topology()

    def announce_source(self, source: str) -> None:
        """Tell the root broker of a new source, when no change is under way."""
        if not self.is_settled:
            self._waiting[source] = Member()
            return
        entry = self._catalog.sources[source]
        self._links.send(f"broker/{entry.root}", REGISTRATION_KEY, announcement(entry))

    def has_settled(self, broker: str) -> bool:
        """Whether a broker has nothing of before the newest version."""
        return self._stage(broker) == SETTLED

    def handle_reached(self, broker: str, frame: ShapeReached) -> bool:
        """A broker is further on; whether the change is settled by that."""
        self._reached[broker] = ReachedRow(frame.version, frame.stage)
        return self._advance()

    def tick(self, now: float) -> None:
        self._forget_departed()

    def _forget_departed(self) -> None:
        """Those who have left and been told so."""
        for broker in sorted(self._departing):
            peer = f"broker/{broker}"
            if not self._links.backlog_bytes(peer, Flow.CATALOG, REGISTRATION_KEY):
                self._departed(broker)
                self._reached.pop(broker)
                self._links.forget(peer)

    def _departed(self, broker: str) -> None:
        """It need not be told the last any more."""
        if broker in self._departing:
            self._stage_row.put(_StageRow(self._agreed, self._departing - {broker}))

    def report(self, said: RegistrationStatistics) -> None:
        said.shape.gone_round = sorted(self.newest.away)

    # --- helpers --------------------------------------------------------------------------

    def _advance(self) -> bool:
        """How far all brokers are; whether the change is settled by that."""
        least = min(map(self._stage, self._concerned()))
        if least >= HOLDS:
            self.happen(self.newest, ShapeEvent.ALL_HOLD)
        return least >= SETTLED and self.happen(self.newest, ShapeEvent.ALL_SETTLED)

    def state(self, shape: NetworkShape) -> Stage:
        return self.stage

    def _announce(self, shape: NetworkShape) -> None:
        self._shapes.append(shape)
        self._put(shape)
        forms = _forms(shape)
        for broker in sorted(self._every()):
            frame = forms[self._reads_packed(broker)]
            self._links.send(f"broker/{broker}", REGISTRATION_KEY, frame)
        self._tell_topology()

    def _agree(self, shape: NetworkShape) -> None:
        self._stage_row.put(_StageRow(shape.version, self._departing))
        self._tell(ShapeAgreed(version=shape.version))

    def _settle(self, shape: NetworkShape) -> None:
        self._tell(ShapeSettled(version=shape.version))
        gone = {b for b in self._concerned() if not shape.has_broker(b)}
        self._stage_row.put(_StageRow(self._agreed, self._departing | gone))
        for old in self._shapes[:-1]:
            SHAPE.delete(self._rows, str(old.version))
        self._shapes = self._shapes[-1:]
        self._tell_topology()
        self._roots.settle()
        for source in list(self._waiting):
            del self._waiting[source]
            self.announce_source(source)

    def _concerned(self) -> list[str]:
        """The brokers of all versions that are not settled, but for those that are lost or gone
        round."""
        return sorted(self._every() - self.newest.away)

    def _every(self) -> set[str]:
        lost = {broker for shape in self._shapes[1:] for broker in shape.lost}
        every = {broker for shape in self._shapes for broker in shape.topology.broker_ids}
        return every - lost

    def _stage(self, broker: str) -> int:
        reached = self._reached.get(broker, _NOWHERE)
        return reached.stage if reached.version == self.newest.version else 0

    def _reads_packed(self, broker: str) -> bool:
        """Not if it is away: it may come as an earlier release."""
        return PACKED_SHAPES in self._links.features(f"broker/{broker}")

    def _tell(self, frame: ShapeAgreed | ShapeSettled) -> None:
        is_for_all = not isinstance(frame, ShapeSettled)
        for broker in sorted(self._every()) if is_for_all else self._concerned():
            self._links.send(f"broker/{broker}", REGISTRATION_KEY, frame)

    def _tell_topology(self) -> None:
        topology = self.topology
        parts = () if self.agenda is None else self.agenda.parts
        for part in parts:
            part.use_topology(topology)

    def _put(self, shape: NetworkShape) -> None:
        SHAPE.put(self._rows, str(shape.version), shape.row())

    # --- the protocol ---------------------------------------------------------------------

    steps = StateTable(
        Stage.SETTLED,
        {
            (Stage.SETTLED, ShapeEvent.CHANGED): (_announce, Stage.ANNOUNCED),
            (Stage.ANNOUNCED, ShapeEvent.CHANGED): (_announce, Stage.ANNOUNCED),
            (Stage.ANNOUNCED, ShapeEvent.ALL_HOLD): (_agree, Stage.AGREED),
            (Stage.AGREED, ShapeEvent.CHANGED): (_announce, Stage.ANNOUNCED),
            (Stage.AGREED, ShapeEvent.ALL_SETTLED): (_settle, Stage.SETTLED),
        },
    )
