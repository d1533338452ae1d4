"""Releases: profiles that leave this broker (docs/planning.md, "How a profile moves").

The watershed (watersheds.py) parts the messages of each source: what is not beyond it the old host
delivers, what is beyond it the new one.  Until it is known of a tree, all that comes on that tree
is not beyond it.  It is asked for when the profile is live at its new host already, so what lies
beyond it was accepted by a root that sends it there.

When it is known of all trees, all that is on this side of it is delivered.  What the user has not
taken is handed over, a portion at a time, and the subscriber is sent away: what he has, he says
to the new host.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec.structs import replace

from onyx.broker.deliveries.mailboxes import Mailboxes
from onyx.broker.moves.watersheds import Watersheds
from onyx.broker.profiles.query_plane import QueryPlane
from overlay.link.core_context import CoreContext
from overlay.link.durable import StoredMap
from overlay.link.frames import (
    Delivery,
    HandedOver,
    HandoverWanted,
    MoveEnded,
    PlaceProfile,
    ProfileReleased,
    ReleaseProfile,
)
from overlay.link.tables import Row, Table
from overlay.state_table import StateMachine, StateTable
from overlay.tree_name import root_of
from registration.catalog import REGISTRATION_KEY

# What waits for a user is handed over in portions of about so much, each when it is asked for.
PORTION_BYTES = 1024 * 1024
_KIND = "out"


class Leaving(StrEnum):
    """How far a profile is on its way to another host."""

    STAYING = "staying"
    PARTING = "finding the watershed"
    LEFT = "left"


class ReleaseEvent(StrEnum):
    RELEASE = "ReleaseProfile"
    WATERSHED = "the watershed is known"
    WANTED = "HandoverWanted"
    NEW_LOST = "PlaceProfile"
    ENDED = "MoveEnded"


class _Release(Row, frozen=True):
    """``is_done``: the profile is not here any more, but what its user has not taken is; of that
    the new host has asked for what is behind ``wanted``, None when it has it; ``numbers`` and
    ``watershed`` are those of ProfileReleased."""

    move: int
    version: int
    is_done: bool = False
    wanted: int | None = None
    numbers: tuple[int, ...] = ()
    watershed: tuple[tuple[str, int], ...] = ()

    @property
    def state(self) -> Leaving:
        return Leaving.LEFT if self.is_done else Leaving.PARTING


RELEASES = Table("release", _Release)


class Releases(StateMachine[str, Leaving, ReleaseEvent]):
    """The profiles that leave one broker; durable."""

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
        self._watersheds = watersheds
        self._registration = registration
        self._releases = StoredMap(context.rows, RELEASES)
        self._reading: set[str] = set()  # whose results are being read from the store

    def __contains__(self, profile: str) -> bool:
        return profile in self._releases

    def __bool__(self) -> bool:
        """Whether a profile is leaving."""
        return bool(self._releases)

    @property
    def is_reading(self) -> bool:
        """Whether results of some profile are being read from the store."""
        return bool(self._reading)

    def restore(self) -> None:
        self._reading = {p for p, release in self._releases.items() if release.wanted is not None}

    def handle_release(self, frame: ReleaseProfile) -> None:
        """Begin to let go; a profile with another version, or that is gone, stays as it is: the
        registration service has been told of that already."""
        hosted = self._query.profiles.get(frame.profile)
        if hosted is None or hosted.version != frame.version or frame.profile in self._releases:
            return
        self.happen(frame.profile, ReleaseEvent.RELEASE, frame)

    def delivers(self, root: str, delivery: Delivery) -> bool:
        """Whether what a message of a tree gives for a profile that leaves is on this side of the
        watershed."""
        watershed = self._watersheds[_watershed_name(delivery.profile)]
        return root_of(root) in watershed.waiting or delivery.number <= watershed.numbers.get(
            delivery.source, 0
        )

    def handle_watershed(self, name: str) -> None:
        """A watershed is known; if it is that of a release, all on this side of it is delivered."""
        kind, _, profile = name.partition("/")
        if kind == _KIND:
            self.happen(profile, ReleaseEvent.WATERSHED)

    def handle_wanted(self, frame: HandoverWanted) -> None:
        """The new host asks for what waits here."""
        release = self._releases.get(frame.profile)
        if release is not None and release.move == frame.move:
            self.happen(frame.profile, ReleaseEvent.WANTED, frame)

    def flush(self) -> None:
        """Go on with what has been read meanwhile; to be called when an event has been handled."""
        for profile in list(self._reading):
            after = self._releases[profile].wanted
            if after is not None:
                self._hand_over(profile, after)

    def handle_place(self, frame: PlaceProfile) -> None:
        """The new host is lost: the profile stays, or is placed here once more; what its user has
        not taken is still here."""
        self.happen(frame.profile, ReleaseEvent.NEW_LOST)

    def handle_ended(self, frame: MoveEnded) -> None:
        """The profile lives elsewhere: nothing of it is needed here."""
        release = self._releases.get(frame.profile)
        if release is not None and release.move == frame.move:
            self.happen(frame.profile, ReleaseEvent.ENDED)

    # --- what it is told once more, as it has lost its store ------------------------------

    @property
    def under_way(self) -> list[tuple[str, int, int, bool]]:
        """(profile, move, version, whether it was let go) of each."""
        return [(p, each.move, each.version, each.is_done) for p, each in self._releases.items()]

    @property
    def let_go(self) -> list[str]:
        return [profile for profile, release in self._releases.items() if release.is_done]

    @property
    def highest(self) -> int:
        return max((release.move for release in self._releases.values()), default=0)

    def say_again(self) -> None:
        """What was let go."""
        for profile in self.let_go:
            if self._releases[profile].numbers:  # not so in the store of an earlier release
                self._say_released(profile)

    # --- helpers --------------------------------------------------------------------------

    def state(self, profile: str) -> Leaving:
        release = self._releases.get(profile)
        return Leaving.STAYING if release is None else release.state

    def _ask_for_watershed(self, profile: str, frame: ReleaseProfile) -> None:
        self._releases[profile] = _Release(frame.move, frame.version)
        self._watersheds.begin(_watershed_name(profile), frame.move, self._query.table.roots)

    def _hand_over_next(self, profile: str, frame: HandoverWanted) -> None:
        self._releases[profile] = replace(self._releases[profile], wanted=frame.after)
        self._hand_over(profile, frame.after)

    def _forget_watershed(self, profile: str) -> None:
        self._watersheds.drop(_watershed_name(profile))
        self._take_back(profile)

    def _take_back(self, profile: str) -> None:
        self._forget(profile)

    def _forget_all(self, profile: str) -> None:
        self._forget(profile)
        self._mailboxes.forget(profile)

    def _forget(self, profile: str) -> None:
        del self._releases[profile]
        self._reading.discard(profile)

    def _hand_over(self, profile: str, after: int) -> None:
        """The next portion, now or when it has been read from the store."""
        release, box = self._releases[profile], self._mailboxes.box(profile)
        portion = self._mailboxes.portion(profile, after, PORTION_BYTES)
        if not portion and any(box.waiting(after)):
            self._reading.add(profile)
            return
        self._reading.discard(profile)
        self._releases[profile] = replace(release, wanted=None)
        for waiting in portion:
            handed = HandedOver(
                profile=profile,
                move=release.move,
                position=waiting.position,
                ends=waiting is portion[-1],
                source=waiting.source,
                number=waiting.number,
                lengths=waiting.lengths,
                payload=waiting.payload,
            )
            self._links.send(self._registration, REGISTRATION_KEY, handed)
        if not portion:  # the last have been taken by those who shared the profile
            none = HandedOver(profile, release.move, box.last, True, "", 0, [], b"")
            self._links.send(self._registration, REGISTRATION_KEY, none)

    def _let_go(self, profile: str) -> None:
        name = _watershed_name(profile)
        watershed, release = self._watersheds[name], self._releases[profile]
        self._watersheds.drop(name)
        hosted = self._query.let_go(profile)
        ephemeral = self._mailboxes.ephemeral(profile)
        self._mailboxes.send_away(profile, "moved", moved_detail(profile))
        box = self._mailboxes.box(profile)
        since = 0 if box.is_claimed else hosted.unclaimed_since
        numbers = (max(0, box.bottom - box.lost), box.bottom, box.last, int(ephemeral), since)
        found = tuple(sorted(watershed.numbers.items()))
        self._releases[profile] = replace(release, is_done=True, numbers=numbers, watershed=found)
        self._say_released(profile)

    def _say_released(self, profile: str) -> None:
        release = self._releases[profile]
        acknowledged, floor, last, ephemeral, since = release.numbers
        released = ProfileReleased(
            *(profile, release.move, release.version, acknowledged, floor, last, ephemeral, since),
            watershed=list(release.watershed),
        )
        self._links.send(self._registration, REGISTRATION_KEY, released)

    # --- the protocol ---------------------------------------------------------------------

    steps = StateTable(
        Leaving.STAYING,
        {
            (Leaving.STAYING, ReleaseEvent.RELEASE): (_ask_for_watershed, Leaving.PARTING),
            (Leaving.PARTING, ReleaseEvent.WATERSHED): (_let_go, Leaving.LEFT),
            (Leaving.PARTING, ReleaseEvent.NEW_LOST): (_forget_watershed, Leaving.STAYING),
            (Leaving.LEFT, ReleaseEvent.WANTED): (_hand_over_next, Leaving.LEFT),
            (Leaving.LEFT, ReleaseEvent.NEW_LOST): (_take_back, Leaving.STAYING),
            (Leaving.LEFT, ReleaseEvent.ENDED): (_forget_all, Leaving.STAYING),
        },
    )


def moved_detail(profile: str) -> str:
    return f"{profile} has another host broker now; the registration service knows which"


def _watershed_name(profile: str) -> str:
    return f"{_KIND}/{profile}"
