"""ProfileMoves: the profiles of one broker that are on the move, coming (standbys.py) and leaving
(releases.py); what the planes and the requests need to know of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

from onyx.broker.deliveries.delivery_log import without_results
from onyx.broker.deliveries.mailboxes import Mailboxes
from onyx.broker.moves.releases import Releases
from onyx.broker.moves.watersheds import Watersheds
from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.network.publishers import Publishers
from onyx.broker.profiles.live_wait import LiveVersion
from onyx.broker.profiles.query_plane import QueryPlane
from overlay.delivery_policy import USUAL
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.durable import StoredMap
from overlay.link.frames import (
    Delivery,
    Ephemeral,
    HandedOver,
    HandoverWanted,
    MoveEnded,
    PlaceProfile,
    ProfileReleased,
    ProfileTaken,
    ReleaseProfile,
    StandBy,
    StandingBy,
    TreeEnded,
    WatershedMarker,
    WatershedReached,
)
from overlay.link.part import FrameRefused, Hearer, Part, Taker, hears, takes
from overlay.link.row_log import numbered_key
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table
from overlay.state_table import StateMachine, StateTable
from registration.catalog import REGISTRATION_KEY
from yfilter.errors import ProfileRefused

# -------------------------------------------------------------------------------------------------
# Standbys: profiles on their way to this broker (docs/planning.md, "How a profile moves").
#
# ``Standbys.steps`` is the protocol; docs/planning.md has its picture.  What matches is left to
# the old host until the profile is live here, kept from then on, and as far as it is beyond the
# watershed once that has come.
#
# Nothing needs to be kept before the profile is live here: the watershed is asked for later, so all
# that comes until then is on the old host's side of it.  Nor anything of an older version: the old
# host lets go only of a version that is live here.
#
# The mailbox moves with its numbers.  A subscriber says when it attaches what it has, and here as
# there is sent what comes behind that: so each result arrives once.
#
# A message on that side may be slower on its way here than it was on its way to the old host; so
# also when the profile is taken, what it gives is left out until none can come any more.
#
# What is kept is bounded as the backlog of a user who is away, with the same policy: the oldest
# goes, and is counted in what the subscriber is told to have lost.


_KIND = "in"


class Standing(StrEnum):
    """How far a profile is on its way here."""

    AWAY = "not on its way"
    ANNOUNCED = "announced"
    STANDING_BY = "standing by"
    TAKING = "taking over"


class StandbyEvent(StrEnum):
    STAND_BY = "StandBy"
    LIVE = "live here"
    RELEASED = "ProfileReleased"
    HANDED = "HandedOver"
    ALL_HERE = "all that waited is here"
    ENDED = "MoveEnded"


@dataclass(frozen=True, slots=True)
class _Kept:
    """A delivery that waits for the watershed; one thrown away for want of room has no
    ``payload``."""

    row: str
    source: str
    number: int
    lengths: tuple[int, ...]
    payload: bytes | None


@dataclass(slots=True)
class _Standby:
    """``watershed`` and ``last`` (of the old host's mailbox) once the old host has let go."""

    move: int
    version: int
    is_live: bool = False
    watershed: Mapping[str, int] | None = None
    last: int = 0
    kept: list[_Kept] = field(default_factory=list)
    thrown: int = 0  # so many of ``kept``, the oldest, have no payload any more
    kept_bytes: int = 0
    rows: int = 0  # that were ever made

    @property
    def state(self) -> Standing:
        if self.watershed is not None:
            return Standing.TAKING
        return Standing.STANDING_BY if self.is_live else Standing.ANNOUNCED


class _StandbyRow(Row, frozen=True):
    """The same without what is kept."""

    move: int
    version: int
    is_live: bool
    watershed: Mapping[str, int] | None
    last: int


class _KeptRow(Row, frozen=True):
    """Under ``profile|number``."""

    source: str
    number: int
    lengths: tuple[int, ...]
    payload: bytes | None


STANDBYS = Table("standby", _StandbyRow)
KEPT = Table("kept", _KeptRow)
SETTLING = Table("settling", dict[str, int])


class Standbys(StateMachine[str, Standing, StandbyEvent]):
    """The profiles that stand by at one broker; durable."""

    def __init__(
        self,
        context: CoreContext,
        query: QueryPlane,
        mailboxes: Mailboxes,
        watersheds: Watersheds,
        registration: str,
    ) -> None:
        """``registration`` is the peer that leads."""
        self._query = query
        self._mailboxes = mailboxes
        self._links = context.links
        self._rows = context.rows
        self._watersheds = watersheds
        self._registration = registration
        self._backlog_bytes_max = context.limits.delivery_backlog_bytes_max
        self._standbys: dict[str, _Standby] = {}
        # The watersheds of those that were taken.
        self._settling = StoredMap(context.rows, SETTLING)

    def __contains__(self, profile: str) -> bool:
        return profile in self._standbys

    def __bool__(self) -> bool:
        """Whether a profile is on its way, or not settled yet."""
        return bool(self._standbys or self._settling)

    def restore(self, rows: StoredRows) -> None:
        for profile, row in rows.take(STANDBYS):
            self._standbys[profile] = _Standby(
                row.move, row.version, row.is_live, row.watershed, row.last
            )
        for key, kept in rows.take(KEPT):
            profile, _, number = key.rpartition("|")
            standby = self._standbys[profile]
            standby.kept.append(_Kept(key, kept.source, kept.number, kept.lengths, kept.payload))
            standby.rows = int(number)
            standby.thrown += kept.payload is None
            standby.kept_bytes += len(kept.payload or b"")

    # --- what the registration service says -----------------------------------------------

    def handle_stand_by(self, frame: StandBy) -> None:
        """A profile comes, or has a new version before it has come; ProfileRefused."""
        if frame.profile not in self._standbys and frame.profile in self._query.profiles:
            return
        self.happen(frame.profile, StandbyEvent.STAND_BY, frame)

    def handle_live(self, live: LiveVersion) -> None:
        """Something is live; perhaps a profile that stands by."""
        profile, _, move = live.profile.partition("/")
        standby = self._standbys.get(profile)
        if standby is not None and (str(standby.move), standby.version) == (move, live.version):
            self.happen(profile, StandbyEvent.LIVE)

    def handle_released(self, frame: ProfileReleased) -> None:
        """The old host has let go: here is the watershed, and so much waits there."""
        if self._is_of_now(frame):
            self.happen(frame.profile, StandbyEvent.RELEASED, frame)

    def handle_handed_over(self, frame: HandedOver) -> None:
        """A result that waited at the old host."""
        if self._is_of_now(frame):
            self.happen(frame.profile, StandbyEvent.HANDED, frame)

    def handle_ended(self, frame: MoveEnded) -> None:
        """The profile stays where it is."""
        if self._is_of_now(frame):
            self.happen(frame.profile, StandbyEvent.ENDED)

    def handle_watershed(self, name: str) -> None:
        """A watershed is known; if it is that of a profile that was taken, that is settled."""
        kind, _, profile = name.partition("/")
        if kind == _KIND:
            self._watersheds.drop(name)
            del self._settling[profile]

    # --- what it is told once more, as it has lost its store ------------------------------

    @property
    def under_way(self) -> list[tuple[str, int, int]]:
        """(profile, move, version) of each."""
        return [(profile, each.move, each.version) for profile, each in self._standbys.items()]

    @property
    def highest(self) -> int:
        return max((standby.move for standby in self._standbys.values()), default=0)

    def say_again(self) -> None:
        """How far each is."""
        for profile, standby in self._standbys.items():
            if standby.state is Standing.STANDING_BY:
                self._tell(StandingBy(profile, standby.move, standby.version))
            elif standby.state is Standing.TAKING:
                last = self._mailboxes.box(profile).last
                self._tell(HandoverWanted(profile, standby.move, last))

    # --- what matches ---------------------------------------------------------------------

    def is_delivered(self, delivery: Delivery) -> bool:
        """Whether the old host of a profile that was taken has delivered this."""
        watershed = self._settling.get(delivery.profile)
        return watershed is not None and delivery.number <= watershed.get(delivery.source, 0)

    def keep(self, delivery: Delivery) -> None:
        """What a message gives for a profile that stands by."""
        standby = self._standbys[delivery.profile]
        is_passed = standby.watershed is not None and delivery.number <= standby.watershed.get(
            delivery.source, 0
        )
        if not standby.is_live or is_passed:
            return
        standby.rows += 1
        kept = _Kept(
            row=numbered_key(delivery.profile, standby.rows),
            source=delivery.source,
            number=delivery.number,
            lengths=tuple(delivery.lengths),
            payload=delivery.payload,
        )
        standby.kept.append(kept)
        standby.kept_bytes += len(delivery.payload)
        self._put(kept)
        while standby.kept_bytes > self._backlog_bytes_max:
            self._throw_away(standby)

    # --- helpers --------------------------------------------------------------------------

    def _is_of_now(self, frame: ProfileReleased | HandedOver | MoveEnded) -> bool:
        standby = self._standbys.get(frame.profile)
        return standby is not None and standby.move == frame.move

    def state(self, profile: str) -> Standing:
        standby = self._standbys.get(profile)
        return Standing.AWAY if standby is None else standby.state

    def _announce(self, profile: str, frame: StandBy) -> None:
        is_live = self._query.stand_by(
            profile, frame.user, frame.text, frame.version, _wait(profile, frame.move)
        )
        known = self._standbys.get(profile)
        if known is not None:
            self._drop(known.kept)
        self._standbys[profile] = _Standby(frame.move, frame.version)
        self._store(profile)
        if is_live:
            self.happen(profile, StandbyEvent.LIVE)

    def _say_standing_by(self, profile: str) -> None:
        standby = self._standbys[profile]
        standby.is_live = True
        self._store(profile)
        self._tell(StandingBy(profile, standby.move, standby.version))

    def _take_over(self, profile: str, frame: ProfileReleased) -> None:
        standby, watershed = self._standbys[profile], dict(frame.watershed)
        self._drop([kept for kept in standby.kept if kept.number <= watershed.get(kept.source, 0)])
        standby.kept = [
            kept for kept in standby.kept if kept.number > watershed.get(kept.source, 0)
        ]
        standby.watershed, standby.last = watershed, frame.last
        standby.thrown = sum(kept.payload is None for kept in standby.kept)
        floor = frame.floor
        if standby.thrown:  # the oldest goes, and what waits there is older still
            floor = frame.last + standby.thrown
        ephemeral = Ephemeral(frame.ephemeral)
        self._mailboxes.take_over(profile, frame.acknowledged, floor, ephemeral)
        if frame.unclaimed_since:
            self._query.keep_unclaimed(profile, frame.unclaimed_since)
        self._store(profile)
        self._go_on(profile, floor)

    def _put_in_mailbox(self, profile: str, frame: HandedOver) -> None:
        before, last = frame.position - bool(frame.source), self._mailboxes.box(profile).last
        if frame.source and frame.position <= last:
            return  # asked for once more, as the registration service had lost its store
        if last < before:
            self._mailboxes.open_through(profile, before)
        if frame.source:
            self._send(Delivery(profile, frame.source, frame.number, frame.lengths, frame.payload))
        if frame.ends:
            self._go_on(profile, frame.position)

    def _go_on(self, profile: str, position: int) -> None:
        """All through ``position`` is here: ask for more, or be the host."""
        standby = self._standbys[profile]
        if position < standby.last:
            self._tell(HandoverWanted(profile, standby.move, position))
        else:
            self.happen(profile, StandbyEvent.ALL_HERE)

    def _be_the_host(self, profile: str) -> None:
        standby = self._standbys[profile]
        for kept in standby.kept[standby.thrown :]:
            payload = kept.payload or b""
            self._send(Delivery(profile, kept.source, kept.number, list(kept.lengths), payload))
        self._forget(profile, standby)
        self._settle(profile, standby)
        self._tell(ProfileTaken(profile, standby.move, standby.version))

    def _let_go(self, profile: str) -> None:
        self._forget(profile, self._standbys[profile])
        self._query.let_go(profile)

    def _settle(self, profile: str, standby: _Standby) -> None:
        watershed = dict(standby.watershed or {})
        self._settling[profile] = watershed
        self._watersheds.begin(f"{_KIND}/{profile}", standby.move, self._query.table.roots)

    def _send(self, delivery: Delivery) -> None:
        self._mailboxes.deliver(
            delivery.source, delivery.number, delivery.results(), [delivery.profile]
        )

    def _throw_away(self, standby: _Standby) -> None:
        kept = standby.kept[standby.thrown]
        standby.kept_bytes -= len(kept.payload or b"")
        standby.kept[standby.thrown] = replace(kept, lengths=(), payload=None)
        self._put(standby.kept[standby.thrown])
        standby.thrown += 1

    def _forget(self, profile: str, standby: _Standby) -> None:
        del self._standbys[profile]
        STANDBYS.delete(self._rows, profile)
        self._drop(standby.kept)

    def _store(self, profile: str) -> None:
        standby = self._standbys[profile]
        row = _StandbyRow(
            standby.move, standby.version, standby.is_live, standby.watershed, standby.last
        )
        STANDBYS.put(self._rows, profile, row)

    def _put(self, kept: _Kept) -> None:
        row = _KeptRow(kept.source, kept.number, kept.lengths, kept.payload)
        KEPT.put(self._rows, kept.row, row)

    def _drop(self, kept: Iterable[_Kept]) -> None:
        for entry in kept:
            KEPT.delete(self._rows, entry.row)

    def _tell(self, frame: StandingBy | HandoverWanted | ProfileTaken) -> None:
        self._links.send(self._registration, REGISTRATION_KEY, frame)

    # --- the protocol ---------------------------------------------------------------------

    steps = StateTable(
        Standing.AWAY,
        {
            (Standing.AWAY, StandbyEvent.STAND_BY): (_announce, Standing.ANNOUNCED),
            (Standing.ANNOUNCED, StandbyEvent.STAND_BY): (_announce, Standing.ANNOUNCED),
            (Standing.ANNOUNCED, StandbyEvent.LIVE): (_say_standing_by, Standing.STANDING_BY),
            (Standing.ANNOUNCED, StandbyEvent.ENDED): (_let_go, Standing.AWAY),
            (Standing.STANDING_BY, StandbyEvent.STAND_BY): (_announce, Standing.ANNOUNCED),
            (Standing.STANDING_BY, StandbyEvent.RELEASED): (_take_over, Standing.TAKING),
            (Standing.STANDING_BY, StandbyEvent.ENDED): (_let_go, Standing.AWAY),
            (Standing.TAKING, StandbyEvent.HANDED): (_put_in_mailbox, Standing.TAKING),
            (Standing.TAKING, StandbyEvent.ALL_HERE): (_be_the_host, Standing.AWAY),
            (Standing.TAKING, StandbyEvent.ENDED): (_let_go, Standing.AWAY),
        },
    )


def _wait(profile: str, move: int) -> str:
    """The name under which a standby waits to be live: no other wait of the profile has it."""
    return f"{profile}/{move}"


# -------------------------------------------------------------------------------------------------


F = TypeVar("F")


class ProfileMoves(Part):
    """``leaving`` and ``coming`` are the two halves."""

    def __init__(
        self,
        context: CoreContext,
        control: ControlPlane,
        query: QueryPlane,
        mailboxes: Mailboxes,
        publishers: Publishers,
    ) -> None:
        self._query = query
        self._mailboxes = mailboxes
        self.watersheds = Watersheds(context, control, publishers)
        both = context, query, mailboxes, self.watersheds, control.registration
        self.leaving, self.coming = Releases(*both), Standbys(*both)
        self.is_busy = False  # whether ``intercepts`` has to be asked about deliveries

    def frames(self) -> Iterable[Taker]:
        def handled(handle: Callable[[F], None]) -> Callable[[F, Arrival], None]:
            return lambda frame, arrival: self._handle(handle, frame)

        yield takes(PlaceProfile, "registration", handled(self._handle_place))
        yield takes(StandBy, "registration", handled(self.coming.handle_stand_by))
        yield takes(ProfileReleased, "registration", handled(self.coming.handle_released))
        yield takes(HandedOver, "registration", handled(self.coming.handle_handed_over))
        yield takes(ReleaseProfile, "registration", handled(self.leaving.handle_release))
        yield takes(HandoverWanted, "registration", handled(self.leaving.handle_wanted))
        yield takes(MoveEnded, "registration", handled(self._handle_ended))
        yield takes(WatershedMarker, "child", handled(self.watersheds.handle_marker))
        yield takes(WatershedReached, "parent", handled(self._handle_reached))

    def events(self) -> Iterable[Hearer]:
        yield hears(LiveVersion, self.coming.handle_live)
        yield hears(TreeEnded, lambda ended: self.end_tree(ended.root))

    def restore(self, rows: StoredRows) -> None:
        self.leaving.restore()
        self.coming.restore(rows)
        self._look_again()

    def end_tree(self, tree: str) -> None:
        """A tree has ended here."""
        self.watersheds.end_tree(tree)
        self.flush_soon()

    def intercepts(self, root: str, delivery: Delivery) -> bool:
        """Whether what a message of a tree gives for a profile is not to be delivered from here
        and now: the other host does, or this one will."""
        if delivery.profile in self.coming:
            self.coming.keep(delivery)
            return True
        if self.coming.is_delivered(delivery):
            return True
        return delivery.profile in self.leaving and not self.leaving.delivers(root, delivery)

    def __contains__(self, profile: str) -> bool:
        """Whether a profile is coming or leaving: who wants something of it has to wait."""
        return profile in self.coming or profile in self.leaving

    @property
    def highest(self) -> int:
        """The highest number of a move that is known here."""
        return max(self.coming.highest, self.leaving.highest, self.watersheds.highest)

    def sends_on(self, profile: str) -> bool:
        """Whether the results of a profile are not to be had here, but at its other host."""
        here = profile in self._query.profiles
        return profile in self.coming or (profile in self.leaving and not here)

    def flush(self) -> None:
        """Before the query plane's."""
        self.leaving.flush()
        self.watersheds.flush(self._query.table.roots)
        self._handle_known()
        self.is_busy = bool(self.coming or self.leaving)
        if self.leaving.is_reading:
            self.flush_soon()

    def _handle(self, handle: Callable[[F], None], frame: F) -> None:
        try:
            handle(frame)
        except ProfileRefused as refusal:
            raise FrameRefused("profile-refused", str(refusal)) from refusal
        finally:
            self._look_again()

    def _look_again(self) -> None:
        """Something has changed."""
        self.is_busy = bool(self.coming or self.leaving)
        self.flush_soon()

    def _handle_place(self, frame: PlaceProfile) -> None:
        """The registration service gives this broker a profile, perhaps one that is leaving, or
        one that had a host broker that is lost."""
        self.leaving.handle_place(frame)
        is_new = frame.profile not in self._query.profiles
        self._query.place(frame)
        if frame.lost and is_new:
            self._tell_lost(frame)

    def _tell_lost(self, frame: PlaceProfile) -> None:
        """The first delivery says what has happened, behind one that is missing."""
        self._mailboxes.take_over(frame.profile, frame.behind - 1, frame.behind)
        why = f"its host broker {frame.lost} was lost, and with it what waited there"
        boxes = self._mailboxes.boxes([frame.profile])
        said = without_results("host-lost", why)
        self._mailboxes.deliver_message("", 0, [(boxes, said)], None)

    def _handle_ended(self, frame: MoveEnded) -> None:
        self.coming.handle_ended(frame)
        self.leaving.handle_ended(frame)
        if frame.profile not in self._query.profiles:
            self._mailboxes.use_policy(frame.profile, USUAL)

    def _handle_reached(self, frame: WatershedReached) -> None:
        self.watersheds.handle_reached(frame)
        self._handle_known()

    def _handle_known(self) -> None:
        for name in self.watersheds.known():
            self.leaving.handle_watershed(name)
            self.coming.handle_watershed(name)
