"""Moves: the profiles that are changing their host broker; a state machine without I/O.

Each move is in one of three phases (docs/planning.md, "How a profile moves")::

    STANDBY   the new host announces the profile        given up: it stays where it is
       | StandingBy     ^ a new version
    RELEASE   the old host asks for the watershed -----+
       | ProfileReleased
    HANDOVER  what waited at the old host goes to the new one
       | ProfileTaken
    (over)    the catalog names the new host

Until ProfileReleased the old host has the profile: its user may change or remove it there, and
the move begins anew with the new version, or is over.  From then on only the new host can go on;
it has shown to be there a moment ago, and if it stops, the move waits for it; if it is lost, the
old host takes the profile back.

A phase is stored with the frame that it sends, and channels lose nothing: so after any crash a
move goes on where it was, without anything being asked or said again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from overlay.link.frame import Frame
from overlay.link.frames import PlaceProfile
from overlay.link.move_frames import (
    HandedOver,
    HandoverWanted,
    MoveEnded,
    ProfileReleased,
    ProfileTaken,
    ReleaseProfile,
    StandBy,
    StandingBy,
)
from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Table
from registration.catalog import Catalog, ProfileEntry


class Phase(StrEnum):
    STANDBY = "standby"
    RELEASE = "release"
    HANDOVER = "handover"


@dataclass(frozen=True, slots=True)
class Move:
    """One profile on its way from ``old`` to ``new``; ``version`` is the one that stands by."""

    number: int
    profile: str
    old: str
    new: str
    version: int
    phase: Phase = Phase.STANDBY


@dataclass(frozen=True, slots=True)
class _MoveRow:
    """Under the profile."""

    number: int
    old: str
    new: str
    version: int
    phase: Phase


@dataclass(frozen=True, slots=True)
class _LastRow:
    last: int


MOVES = Table("move", _MoveRow)
MOVE_NUMBER = Table("move-number", _LastRow)


class Moves:
    """All moves of a network that are under way; durable.

    A profile takes room at both hosts until its move is over.
    """

    def __init__(self, catalog: Catalog, rows: RowLog, send: Callable[[str, Frame], None]) -> None:
        """``send(broker, frame)`` puts a frame on the channel to a broker."""
        self._catalog = catalog
        self._rows = rows
        self._send = send
        self._moves: dict[str, Move] = {}
        self._last = 0
        self._counters: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._moves)

    def __contains__(self, profile: str) -> bool:
        return profile in self._moves

    def __iter__(self) -> Iterator[Move]:
        return iter(list(self._moves.values()))

    def restore(self, rows: StoredRows) -> None:
        """The catalog must have been restored before."""
        for profile, row in rows.take(MOVES):
            self._moves[profile] = Move(
                row.number, profile, row.old, row.new, row.version, row.phase
            )
            self._catalog.profiles_by_broker[row.new] += 1
        for _, number in rows.take(MOVE_NUMBER):
            self._last = number.last

    def begin(self, profile: str, new: str) -> Move:
        """Set out; the profile is placed, and not on the move."""
        entry = self._catalog.profiles[profile]
        self._last += 1
        MOVE_NUMBER.put(self._rows, "last", _LastRow(self._last))
        move = Move(self._last, profile, entry.host, new, entry.version)
        self._put(move)
        self._catalog.profiles_by_broker[new] += 1
        self._counters["begun"] += 1
        self._stand_by(move, entry)
        return move

    def give_up(self, profile: str) -> bool:
        """Leave a profile where it is; False when it is too late for that."""
        move = self._moves.get(profile)
        if move is None or move.phase is not Phase.STANDBY:
            return False
        self._counters["given_up"] += 1
        self._dismiss(move)
        return True

    # --- what brokers report --------------------------------------------------------------

    def changed(self, entry: ProfileEntry) -> None:
        """A host has a version of a profile; the one that stands by must have it too."""
        move = self._moves.get(entry.profile)
        if move is not None and entry.version > move.version:
            move = replace(move, version=entry.version, phase=Phase.STANDBY)
            self._put(move)
            self._stand_by(move, entry)

    def removed(self, profile: str) -> None:
        """Its host has removed a profile."""
        move = self._moves.get(profile)
        if move is not None:
            self._counters["removed"] += 1
            self._dismiss(move)

    def lost(self, broker: str) -> None:
        """A broker has died with its disk: what was on its way there stays at its old host, which
        takes it back if it has let go of it; what was on its way from there is lost with it."""
        for move in self:
            if broker == move.old:
                self.removed(move.profile)
            elif broker == move.new:
                self._end(move)
                self._counters["taken_back"] += 1
                if move.phase is not Phase.STANDBY:
                    self._take_back(move)

    def handle(self, broker: str, frame: Frame) -> Move | None:
        """A frame of a move from one of its hosts; the move when that ends it."""
        match frame:
            case StandingBy():
                self._handle_standing_by(broker, frame)
            case ProfileReleased():
                self._handle_released(broker, frame)
            case HandoverWanted():
                self._pass_on(broker, frame, from_new=True)
            case HandedOver():
                self._pass_on(broker, frame, from_new=False)
            case ProfileTaken():
                return self._handle_taken(broker, frame)
        return None

    def statistics(self) -> dict[str, int]:
        phases = Counter(move.phase.value for move in self._moves.values())
        return {**self._counters, **phases, "under_way": len(self._moves)}

    # --- phases ---------------------------------------------------------------------------

    def _handle_standing_by(self, broker: str, frame: StandingBy) -> None:
        move = self._move(frame.profile, frame.move)
        if move is None or (broker, frame.version) != (move.new, move.version):
            return  # of a version, or a move, that is past
        self._put(replace(move, phase=Phase.RELEASE))
        self._send(move.old, ReleaseProfile(move.profile, move.number, move.version))

    def _handle_released(self, broker: str, frame: ProfileReleased) -> None:
        move = self._move(frame.profile, frame.move)
        if move is not None and broker == move.old:
            self._put(replace(move, phase=Phase.HANDOVER))
            self._send(move.new, frame)

    def _pass_on(self, broker: str, frame: HandoverWanted | HandedOver, from_new: bool) -> None:
        move = self._move(frame.profile, frame.move)
        if move is None:
            return
        sender, receiver = (move.new, move.old) if from_new else (move.old, move.new)
        if broker == sender:
            self._send(receiver, frame)

    def _handle_taken(self, broker: str, frame: ProfileTaken) -> Move | None:
        move = self._move(frame.profile, frame.move)
        if move is None or broker != move.new:
            return None
        self._catalog.change_profile(move.profile, host=move.new, live=frame.version)
        self._end(move)
        self._counters["moved"] += 1
        self._send(move.old, MoveEnded(move.profile, move.number))
        return move

    # --- helpers --------------------------------------------------------------------------

    def _move(self, profile: str, number: int) -> Move | None:
        move = self._moves.get(profile)
        return move if move is not None and move.number == number else None

    def _stand_by(self, move: Move, entry: ProfileEntry) -> None:
        frame = StandBy(
            profile=move.profile,
            move=move.number,
            user=entry.user,
            text=entry.text,
            version=entry.version,
        )
        self._send(move.new, frame)

    def _take_back(self, move: Move) -> None:
        entry = self._catalog.profiles[move.profile]
        frame = PlaceProfile(
            profile=entry.profile,
            user=entry.user,
            text=entry.text,
            version=entry.version,
            request=entry.request,
        )
        self._send(move.old, frame)

    def _dismiss(self, move: Move) -> None:
        self._end(move)
        self._send(move.new, MoveEnded(move.profile, move.number))

    def _end(self, move: Move) -> None:
        """Nothing moves any more; the room at the new host that was kept for it is free."""
        del self._moves[move.profile]
        MOVES.delete(self._rows, move.profile)
        self._catalog.profiles_by_broker[move.new] -= 1

    def _put(self, move: Move) -> None:
        self._moves[move.profile] = move
        row = _MoveRow(move.number, move.old, move.new, move.version, move.phase)
        MOVES.put(self._rows, move.profile, row)
