"""Drains: brokers that are to leave the network, with all that is at them going elsewhere first.

Nothing is placed at such a broker any more; its profiles move away, as by a plan (moves.py); when
none is left the shape changes to one without it, and with that its sources get other root brokers
(source_roots.py).  ``Drains.steps`` is the protocol of one broker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import StrEnum

from msgspec.structs import asdict

from overlay import verbs
from overlay.answers import BrokerLeaving
from overlay.link.durable import StoredMap
from overlay.link.part import Part
from overlay.link.request_server import RequestRefused
from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table
from overlay.network_shape import is_connected, kept_down, without_broker
from overlay.state_table import StateMachine, StateTable
from overlay.statistics import RegistrationStatistics
from registration.catalog import Catalog
from registration.moves import Move, Moves
from registration.placement_by_plan import PlanPlacement
from registration.shape_changes import ShapeChanges
from registration.source_roots import SourceRoots

AT_ONCE = 64  # moves of one broker


class DrainState(StrEnum):
    STAYING = "staying"
    MOVING = "its profiles move away"
    LEAVING = "it leaves"


class DrainEvent(StrEnum):
    ASKED = verbs.BrokerDrain.verb
    STOPPED = "broker.drain, stop"
    EMPTY = "it hosts nothing"
    GONE = "it has left, or is lost"


class _DrainRow(Row, frozen=True):
    """Under the broker."""

    state: DrainState


DRAINS = Table("drain", _DrainRow)


class Drains(StateMachine[str, DrainState, DrainEvent], Part):
    """The brokers that are drained; durable, so that a command that is interrupted goes on."""

    def __init__(
        self,
        shapes: ShapeChanges,
        catalog: Catalog,
        placement: PlanPlacement,
        moves: Moves,
        rows: RowLog,
        connected: Callable[[str], bool],
        roots: SourceRoots,
    ) -> None:
        """``connected(peer)``: whether "broker/B2" is there."""
        self._draining = roots.draining
        self._shapes = shapes
        self._catalog = catalog
        self._placement = placement
        self._moves = moves
        self._connected = connected
        self._states = StoredMap(rows, DRAINS)
        self._to_move: dict[str, deque[str]] = {}
        self._waits: dict[str, str] = {}  # by broker: for what

    def restore(self, rows: StoredRows) -> None:
        self._draining.update(self._states)

    def __contains__(self, broker: str) -> bool:
        return broker in self._states

    def begin(self, broker: str) -> None:
        if self.happen(broker, DrainEvent.ASKED):
            self.work_soon()

    def stop(self, broker: str) -> bool:
        """Let it stay, with what is still there; False when it is leaving already."""
        return self.state(broker) is DrainState.STAYING or self.happen(broker, DrainEvent.STOPPED)

    def progress(self, broker: str) -> BrokerLeaving:
        return BrokerLeaving(
            broker=broker,
            state=self.state(broker).value,
            profiles=self._hosted(broker),
            moving=self._moving(broker),
            sources=len(self._catalog.rooted_at(broker)),
            waits=self._waits.get(broker, ""),
            is_there=self._shapes.newest.has_broker(broker),
            **asdict(self._shapes.progress()),
        )

    def tick(self, now: float) -> None:
        for broker in list(self._states):
            self._go_on(broker)

    def work(self) -> None:
        self.tick(0.0)

    def report(self, said: RegistrationStatistics) -> None:
        said.drains = {broker: row.state.value for broker, row in self._states.items()}

    def moved(self, move: Move) -> None:
        """A move is over."""
        if move.old in self._states:
            self.work_soon()

    # --- helpers --------------------------------------------------------------------------

    def _go_on(self, broker: str) -> None:
        shapes = self._shapes
        self._waits[broker] = ""
        if not shapes.newest.has_broker(broker):
            if shapes.is_settled or shapes.lost_since(broker):
                self.happen(broker, DrainEvent.GONE)
        elif self.state(broker) is DrainState.MOVING:
            if self._catalog.profiles_by_broker[broker]:
                self._move_some(broker)
            elif not shapes.is_settled:
                self._waits[broker] = "another change of the network is under way"
            elif not is_connected(without_broker(shapes.newest.declared, broker)):
                self._waits[broker] = "without it the network would fall apart"
            else:
                self.happen(broker, DrainEvent.EMPTY)

    def _hosted(self, broker: str) -> int:
        """Profiles, without those that are on their way there."""
        coming = sum(move.new == broker for move in self._moves)
        return self._catalog.profiles_by_broker[broker] - coming

    def _moving(self, broker: str) -> int:
        return sum(move.old == broker for move in self._moves)

    def _move_some(self, broker: str) -> None:
        if not self._connected(f"broker/{broker}"):
            self._waits[broker] = f"{broker} is away"
            return
        waiting = self._to_move.get(broker)
        if not waiting and self._hosted(broker) > self._moving(broker):
            hosted = self._catalog.hosted_by(broker)
            waiting = self._to_move[broker] = deque(entry.profile for entry in hosted)
        room = AT_ONCE - self._moving(broker)
        while waiting and room > 0:
            entry = self._catalog.profiles.get(waiting.popleft())
            if entry is None or entry.host != broker:
                continue
            if not entry.placed or entry.profile in self._moves:
                continue
            placed = self._catalog.profiles_by_broker
            try:
                new = self._placement.choose(entry.text, None, False, placed)
            except RequestRefused as error:
                self._waits[broker] = error.reason
                return
            self._moves.begin(entry.profile, new)
            room -= 1

    # --- the protocol ---------------------------------------------------------------------

    def state(self, broker: str) -> DrainState:
        row = self._states.get(broker)
        return DrainState.STAYING if row is None else row.state

    def enter(self, broker: str, state: DrainState) -> None:
        if state is DrainState.STAYING:
            del self._states[broker]
            self._to_move.pop(broker, None)
            self._waits.pop(broker, None)
        else:
            self._states[broker] = _DrainRow(state)

    def _move_away(self, broker: str) -> None:
        self._draining.add(broker)
        self._shapes.place_elsewhere()

    def _leave(self, broker: str) -> None:
        now = self._shapes.newest
        declared = without_broker(now.declared, broker)
        self._shapes.change(declared, kept_down(now, declared))

    def _forget(self, broker: str) -> None:
        self._draining.discard(broker)

    def _stay(self, broker: str) -> None:
        for move in self._moves:
            if move.old == broker:
                self._moves.give_up(move.profile)
        self._draining.discard(broker)
        self._shapes.place_elsewhere()

    steps = StateTable(
        DrainState.STAYING,
        {
            (DrainState.STAYING, DrainEvent.ASKED): (_move_away, DrainState.MOVING),
            (DrainState.MOVING, DrainEvent.STOPPED): (_stay, DrainState.STAYING),
            (DrainState.MOVING, DrainEvent.GONE): (_forget, DrainState.STAYING),
            (DrainState.MOVING, DrainEvent.EMPTY): (_leave, DrainState.LEAVING),
            (DrainState.LEAVING, DrainEvent.GONE): (_forget, DrainState.STAYING),
        },
    )
