"""ShapeStages: how far this broker is with the newest version of the network's shape.

The registration service takes every broker through the stages of a change
(registration/shape_changes.py); ``ShapeStages.steps`` is what a broker does in each, and
docs/protocol.md has the picture.  What it says of itself is a stage by number (``ShapeReached``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum

from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.profiles.query_plane import QueryPlane
from onyx.broker.shape.source_releases import SourceReleases
from onyx.broker.shape.tree_versions import TreeVersions
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.durable import StoredValue
from overlay.link.events import DialPeers
from overlay.link.frames import (
    HOLDS,
    SETTLED,
    SWITCHED,
    ShapeAgreed,
    ShapeAnnounced,
    ShapeReached,
    ShapeSettled,
)
from overlay.link.part import FrameRefused, Part, Taker, takes
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Table
from overlay.network_shape import ReachedRow
from overlay.state_table import StateMachine, StateTable
from overlay.topology import Topology, TopologyError
from registration.catalog import REGISTRATION_KEY


class ShapeStage(StrEnum):
    """Of a version at one broker."""

    OVER = "settled everywhere"
    HELD = "held"
    AGREED = "held by all"
    SWITCHED = "switched"
    SETTLED = "settled here"


class StageEvent(StrEnum):
    ANNOUNCED = "ShapeAnnounced"
    AGREED = "ShapeAgreed"
    ALL_SWITCHED = "its sources use their new trees"
    NOTHING_LEFT = "nothing of before is left"
    SETTLED = "ShapeSettled"


REACHED = Table("shape-reached", ReachedRow)


class ShapeStages(Part, StateMachine[int, ShapeStage, StageEvent]):
    """Of the newest version; durable."""

    def __init__(
        self,
        context: CoreContext,
        control: ControlPlane,
        query: QueryPlane,
        trees: TreeVersions,
        releases: SourceReleases,
        change_settings: Callable[[Topology, Topology], None],
    ) -> None:
        """``change_settings`` is told what the network was told before, and is told now."""
        self.releases = releases
        self._change_settings = change_settings
        self._control = control
        self._shapes = control.shapes
        self._query = query
        self._trees = trees
        self._links = context.links
        self._reached = StoredValue(context.rows, REACHED, ReachedRow(0, SETTLED), "stage")

    def frames(self) -> Iterable[Taker]:
        yield takes(ShapeAnnounced, "registration", self._handle_announced)
        yield takes(ShapeAgreed, "registration", self._handle_agreed)
        yield takes(ShapeSettled, "registration", self._handle_settled)

    def restore(self, rows: StoredRows) -> None:
        """The trees must have been restored before."""
        if self._shapes.agreed.version > 0:
            self._dial()
        self.flush_soon()

    @property
    def reached(self) -> tuple[int, int]:
        """Version and stage, as the registration service was told."""
        return self._reached.now.version, self._reached.now.stage

    def flush(self) -> None:
        """Look after every event whether this broker is further, until nothing of before is
        left."""
        version = self._reached.now.version
        if self.state(version) not in (ShapeStage.AGREED, ShapeStage.SWITCHED):
            return
        self.flush_soon()
        if not self._trees.is_switched():
            return
        if self._trees.is_drained():
            self.happen(version, StageEvent.NOTHING_LEFT)
        else:
            self.happen(version, StageEvent.ALL_SWITCHED)

    def _handle_announced(self, frame: ShapeAnnounced, arrival: Arrival) -> None:
        """There is a new version."""
        if frame.version > self._shapes.newest.version:
            self.happen(frame.version, StageEvent.ANNOUNCED, frame)

    def _handle_agreed(self, frame: ShapeAgreed, arrival: Arrival) -> None:
        """Everybody knows it."""
        if frame.version == self._reached.now.version:
            self.happen(frame.version, StageEvent.AGREED)

    def _handle_settled(self, frame: ShapeSettled, arrival: Arrival) -> None:
        """Nothing of before is left anywhere."""
        if frame.version == self._reached.now.version:
            self.happen(frame.version, StageEvent.SETTLED)

    # --- helpers --------------------------------------------------------------------------

    def state(self, version: int) -> ShapeStage:
        """That of the version of before, when there is another."""
        if self._reached.now.stage == SETTLED:
            return ShapeStage.OVER if self._shapes.is_settled else ShapeStage.SETTLED
        if self._reached.now.stage == SWITCHED:
            return ShapeStage.SWITCHED
        is_agreed = self._shapes.agreed.version == self._reached.now.version
        return ShapeStage.AGREED if is_agreed else ShapeStage.HELD

    def _hold(self, version: int, frame: ShapeAnnounced) -> None:
        """Know its trees and neighbours, and say so."""
        told = self._shapes.told
        try:
            self._shapes.add(frame)
        except TopologyError as error:
            raise FrameRefused("shape-refused", str(error)) from error
        self._change_settings(told, self._shapes.told)
        self._query.use_shape()
        self._trees.look_again()
        self._report(version, HOLDS)

    def _switch(self, version: int) -> None:
        """The sources of this broker get their tree of it."""
        self.flush_soon()
        self._query.flush()  # on the trees of before
        self._shapes.agree(version)
        self._dial()
        self._trees.leave_lost()
        self._trees.go_on_without(self._shapes.agreed.away)
        if not self._shapes.agreed.has_broker(self._control.identity):
            self.releases.say()
        self._trees.set_up_own()

    def _say_switched(self, version: int) -> None:
        self._report(version, SWITCHED)

    def _say_settled(self, version: int) -> None:
        self._report(version, SETTLED)

    def _forget_former(self, version: int) -> None:
        self._query.flush()
        self._shapes.settle()
        self._dial()
        self._query.forget_closed()
        self._trees.forget_ended()

    def _dial(self) -> None:
        """Whom to dial is not what the shell was told last."""
        self.ask_shell(DialPeers(self._shapes.dials()))

    def _report(self, version: int, stage: int) -> None:
        self._reached.put(ReachedRow(version, stage))
        frame = ShapeReached(version=version, stage=stage)
        self._links.send(self._control.registration, REGISTRATION_KEY, frame)

    # --- the protocol ---------------------------------------------------------------------

    steps = StateTable(
        ShapeStage.OVER,
        {
            (ShapeStage.OVER, StageEvent.ANNOUNCED): (_hold, ShapeStage.HELD),
            (ShapeStage.HELD, StageEvent.ANNOUNCED): (_hold, ShapeStage.HELD),
            (ShapeStage.HELD, StageEvent.AGREED): (_switch, ShapeStage.AGREED),
            (ShapeStage.AGREED, StageEvent.ANNOUNCED): (_hold, ShapeStage.HELD),
            (ShapeStage.AGREED, StageEvent.ALL_SWITCHED): (_say_switched, ShapeStage.SWITCHED),
            (ShapeStage.AGREED, StageEvent.NOTHING_LEFT): (_say_settled, ShapeStage.SETTLED),
            (ShapeStage.SWITCHED, StageEvent.ANNOUNCED): (_hold, ShapeStage.HELD),
            (ShapeStage.SWITCHED, StageEvent.NOTHING_LEFT): (_say_settled, ShapeStage.SETTLED),
            (ShapeStage.SETTLED, StageEvent.ANNOUNCED): (_hold, ShapeStage.HELD),
            (ShapeStage.SETTLED, StageEvent.SETTLED): (_forget_former, ShapeStage.OVER),
        },
    )
