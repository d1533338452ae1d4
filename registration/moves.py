"""Moves: the profiles that are changing their host broker; a state machine without I/O.

``Moves.steps`` is the protocol; docs/planning.md ("How a profile moves") has its picture.

Until ProfileReleased the old host has the profile: its user may change or remove it there, and
the move begins anew with the new version, or is over.  From then on only the new host can go on;
it has shown to be there a moment ago, and if it stops, the move waits for it; if it is lost, the
old host takes the profile back.

A phase is stored with the frame that it sends, and channels lose nothing: so after any crash a
move goes on where it was, without anything being asked or said again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import TypeAlias

from msgspec.structs import astuple, replace

from overlay.delivery_policy import DeliveryPolicy
from overlay.link.durable import StoredMap, StoredValue
from overlay.link.frame import Frame
from overlay.link.frames import (
    DeliveryPolicies,
    HandedOver,
    HandoverWanted,
    MoveEnded,
    PlaceProfile,
    ProfileReleased,
    ProfileTaken,
    ReleaseProfile,
    StandBy,
    StandingBy,
)
from overlay.link.part import Part
from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table
from overlay.state_table import StateMachine, StateTable
from overlay.statistics import RegistrationStatistics
from registration.catalog import Catalog, ProfileEntry

MoveFrame: TypeAlias = StandingBy | ProfileReleased | HandoverWanted | HandedOver | ProfileTaken
"""What hosts say of a move."""


class Phase(StrEnum):
    STAYING = "staying"
    STANDBY = "standby"
    RELEASE = "release"
    HANDOVER = "handover"


class MoveEvent(StrEnum):
    BEGUN = "begun"
    GIVEN_UP = "given up"
    CHANGED = "a new version"
    REMOVED = "removed, or the old host lost"
    NEW_LOST = "the new host lost"
    STANDING_BY = "StandingBy"
    RELEASED = "ProfileReleased"
    WANTED = "HandoverWanted"
    HANDED = "HandedOver"
    TAKEN = "ProfileTaken"


class Move(Row, frozen=True):
    """One profile on its way from ``old`` to ``new``; ``version`` is the one that stands by."""

    profile: str
    number: int
    old: str
    new: str
    version: int
    phase: Phase = Phase.STAYING


class _LastRow(Row, frozen=True):
    last: int


MOVES = Table("move", Move, is_keyed=True)
MOVE_NUMBER = Table("move-number", _LastRow)


class Moves(StateMachine[Move, Phase, MoveEvent], Part):
    """All moves of a network that are under way; durable.

    A profile takes room at both hosts until its move is over.
    """

    def __init__(self, catalog: Catalog, rows: RowLog, send: Callable[[str, Frame], None]) -> None:
        """``send(broker, frame)`` puts a frame on the channel to a broker."""
        self._catalog = catalog
        self._send = send
        self._moves = StoredMap(rows, MOVES)  # by profile
        self._last = StoredValue(rows, MOVE_NUMBER, _LastRow(0), "last")

    def __len__(self) -> int:
        return len(self._moves)

    def __contains__(self, profile: str) -> bool:
        return profile in self._moves

    def __iter__(self) -> Iterator[Move]:
        return iter(list(self._moves.values()))

    def restore(self, rows: StoredRows) -> None:
        """The catalog must have been restored before."""
        self._catalog.profiles_by_broker.update(move.new for move in self._moves.values())

    def numbers_from(self, last: int) -> None:
        """So many were given out, before the store was lost."""
        self._last.put(_LastRow(max(self._last.now.last, last)))

    def resume(
        self, profile: str, number: int, old: str, new: str, version: int, phase: Phase
    ) -> None:
        """A move goes on that was under way before the store was lost."""
        self._catalog.profiles_by_broker[new] += 1
        self.enter(Move(profile, number, old, new, version), phase)
        if phase is Phase.STANDBY:
            self.changed(self._catalog.profiles[profile])

    def say_ended(self, broker: str, profile: str, number: int) -> None:
        """There is no such move, as far as a broker has a part in it."""
        self._send(broker, MoveEnded(profile, number))

    def give_back(self, entry: ProfileEntry) -> None:
        """The host of a profile is to keep it, or to take it back."""
        self._tell_policy(entry.profile, entry.host)
        placed = PlaceProfile(
            profile=entry.profile,
            user=entry.user,
            text=entry.text,
            version=entry.version,
            request=entry.request,
        )
        self._send(entry.host, placed)

    def begin(self, profile: str, new: str) -> Move:
        """Set out; the profile is placed, and not on the move."""
        entry = self._catalog.profiles[profile]
        self._last.put(_LastRow(self._last.now.last + 1))
        move = Move(profile, self._last.now.last, entry.host, new, entry.version)
        self._catalog.profiles_by_broker[new] += 1
        self.happen(move, MoveEvent.BEGUN)
        return self._moves[profile]

    def give_up(self, profile: str) -> bool:
        """Leave a profile where it is; False when it is too late for that."""
        move = self._moves.get(profile)
        return move is not None and self.happen(move, MoveEvent.GIVEN_UP)

    # --- what brokers report --------------------------------------------------------------

    def changed(self, entry: ProfileEntry) -> None:
        """A host has a version of a profile; the one that stands by must have it too."""
        move = self._moves.get(entry.profile)
        if move is not None and entry.version > move.version:
            self.happen(replace(move, version=entry.version), MoveEvent.CHANGED)

    def policy_changed(self, profile: str, policy: DeliveryPolicy) -> None:
        """A host keeps a profile otherwise; the one that stands by will, too."""
        move = self._moves.get(profile)
        if move is not None:
            self._send(move.new, DeliveryPolicies([(profile, *astuple(policy))]))

    def removed(self, profile: str) -> None:
        """Its host has removed a profile."""
        move = self._moves.get(profile)
        if move is not None:
            self.happen(move, MoveEvent.REMOVED)

    def lost(self, broker: str) -> None:
        """A broker has died with its disk: what was on its way there stays at its old host, which
        takes it back if it has let go of it; what was on its way from there is lost with it."""
        for move in self:
            if broker == move.old:
                self.happen(move, MoveEvent.REMOVED)
            elif broker == move.new:
                self.happen(move, MoveEvent.NEW_LOST)

    def handle(self, broker: str, frame: MoveFrame) -> Move | None:
        """A frame of a move from one of its hosts; the move when that ends it."""
        move = self._moves.get(frame.profile)
        event, is_from_new = MOVE_FRAMES[type(frame)]
        if move is None or move.number != frame.move:
            return None  # of a move that is past
        if broker != (move.new if is_from_new else move.old):
            return None
        if isinstance(frame, StandingBy) and frame.version != move.version:
            return None  # of a version that is past
        if self.happen(move, event, frame) and event is MoveEvent.TAKEN:
            return move
        return None

    def report(self, said: RegistrationStatistics) -> None:
        said.moves.under_way = len(self._moves)

    # --- what is done ---------------------------------------------------------------------

    def state(self, move: Move) -> Phase:
        known = self._moves.get(move.profile)
        return Phase.STAYING if known is None else known.phase

    def enter(self, move: Move, phase: Phase) -> None:
        if phase is Phase.STAYING:
            # The room at the new host that was kept for it is free.
            del self._moves[move.profile]
            self._catalog.profiles_by_broker[move.new] -= 1
        else:
            self._moves[move.profile] = replace(move, phase=phase)

    def _stand_by(self, move: Move) -> None:
        self._tell_policy(move.profile, move.new)
        entry = self._catalog.profiles[move.profile]
        announced = StandBy(
            profile=move.profile,
            move=move.number,
            user=entry.user,
            text=entry.text,
            version=entry.version,
        )
        self._send(move.new, announced)

    def _ask_for_release(self, move: Move, frame: StandingBy) -> None:
        self._send(move.old, ReleaseProfile(move.profile, move.number, move.version))

    def _pass_on_to_new(self, move: Move, frame: MoveFrame) -> None:
        self._send(move.new, frame)

    def _pass_on_to_old(self, move: Move, frame: MoveFrame) -> None:
        self._send(move.old, frame)

    def _name_new_host(self, move: Move, frame: ProfileTaken) -> None:
        self._catalog.change_profile(move.profile, host=move.new, live=frame.version)
        self._send(move.old, MoveEnded(move.profile, move.number))

    def _give_up(self, move: Move) -> None:
        self._send(move.new, MoveEnded(move.profile, move.number))

    def _forget(self, move: Move) -> None:
        self._send(move.new, MoveEnded(move.profile, move.number))

    def _stay(self, move: Move) -> None:
        pass

    def _take_back(self, move: Move) -> None:
        self.give_back(self._catalog.profiles[move.profile])

    def _tell_policy(self, profile: str, host: str) -> None:
        for told in self._catalog.policies.told(profile):
            self._send(host, told)

    # --- the protocol ---------------------------------------------------------------------

    steps = StateTable(
        Phase.STAYING,
        {
            (Phase.STAYING, MoveEvent.BEGUN): (_stand_by, Phase.STANDBY),
            (Phase.STANDBY, MoveEvent.CHANGED): (_stand_by, Phase.STANDBY),
            (Phase.STANDBY, MoveEvent.GIVEN_UP): (_give_up, Phase.STAYING),
            (Phase.STANDBY, MoveEvent.REMOVED): (_forget, Phase.STAYING),
            (Phase.STANDBY, MoveEvent.NEW_LOST): (_stay, Phase.STAYING),
            (Phase.STANDBY, MoveEvent.STANDING_BY): (_ask_for_release, Phase.RELEASE),
            (Phase.RELEASE, MoveEvent.CHANGED): (_stand_by, Phase.STANDBY),
            (Phase.RELEASE, MoveEvent.REMOVED): (_forget, Phase.STAYING),
            (Phase.RELEASE, MoveEvent.NEW_LOST): (_take_back, Phase.STAYING),
            (Phase.RELEASE, MoveEvent.RELEASED): (_pass_on_to_new, Phase.HANDOVER),
            (Phase.HANDOVER, MoveEvent.RELEASED): (_pass_on_to_new, Phase.HANDOVER),  # once more
            (Phase.HANDOVER, MoveEvent.WANTED): (_pass_on_to_old, Phase.HANDOVER),
            (Phase.HANDOVER, MoveEvent.HANDED): (_pass_on_to_new, Phase.HANDOVER),
            (Phase.HANDOVER, MoveEvent.REMOVED): (_forget, Phase.STAYING),
            (Phase.HANDOVER, MoveEvent.NEW_LOST): (_take_back, Phase.STAYING),
            (Phase.HANDOVER, MoveEvent.TAKEN): (_name_new_host, Phase.STAYING),
        },
    )


MOVE_FRAMES: Mapping[type[MoveFrame], tuple[MoveEvent, bool]] = {
    StandingBy: (MoveEvent.STANDING_BY, True),
    ProfileReleased: (MoveEvent.RELEASED, False),
    HandoverWanted: (MoveEvent.WANTED, True),
    HandedOver: (MoveEvent.HANDED, False),
    ProfileTaken: (MoveEvent.TAKEN, True),
}
"""What frames are, and whether the new host sends them."""
