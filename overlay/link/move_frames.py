"""The frames by which a profile moves from one host broker to another, live.

The registration service stands between the two hosts and leads; everything travels on its channels,
but for what finds the watershed, which travels on the broadcast trees (docs/planning.md, "How a
profile moves")::

    registration   old host      new host          each root broker
         |-- stand-by ------------->|                   placed, announced, silent
         |<- standing-by -----------|                   live: it misses nothing from here on
         |-- release-profile ->|
         |                     |-- watershed-marker ------->|
         |                     |<- watershed-reached -------|   behind all messages up to it
         |<- profile-released -|
         |-- profile-released ----->|
         |<- handover-wanted -------|                   while results wait at the old host
         |-- handover-wanted ->|
         |<- handed-over ------|
         |-- handed-over ---------->|
         |<- profile-taken ---------|
         |-- move-ended ------>|                        all is forgotten

``move`` is the number of the move: what is said about another one is too late.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from overlay.link.delivery_frames import Ephemeral
from overlay.link.frame import MessageFrame, QueryFrame, check_lengths, on_the_wire
from overlay.link.frame_fields import BODY, Bound, Name, SequenceNumber, Text


@on_the_wire
@dataclass(frozen=True, slots=True)
class StandBy(QueryFrame):
    """A profile is to be announced and matched, and not delivered yet; once more with each new
    version that it gets at its host meanwhile."""

    type: ClassVar[str] = "stand-by"

    profile: Name
    move: SequenceNumber
    user: Name
    text: Annotated[Text, BODY]
    version: int


@on_the_wire
@dataclass(frozen=True, slots=True)
class StandingBy(QueryFrame):
    """This version of the profile is live at the host that stands by: every root sends it what
    the profile wants, and it keeps it."""

    type: ClassVar[str] = "standing-by"

    profile: Name
    move: SequenceNumber
    version: int


@on_the_wire
@dataclass(frozen=True, slots=True)
class ReleaseProfile(QueryFrame):
    """The host is to ask for the watershed, deliver up to it, and let go of the profile; of no
    effect when the profile has another version by now, or is gone."""

    type: ClassVar[str] = "release-profile"

    profile: Name
    move: SequenceNumber
    version: int


@on_the_wire
@dataclass(frozen=True, slots=True)
class ProfileReleased(QueryFrame):
    """The old host has delivered up to the ``watershed`` (source, number; of a source that is not
    there, nothing), and lets go.

    Its mailbox stands at ``last``, of which the user has taken all through ``acknowledged``, and
    all through ``floor`` are gone; the rest waits to be handed over.  ``ephemeral``: see Ephemeral;
    ``unclaimed_since``: the second since when nobody has claimed it, 0 if somebody has.
    """

    type: ClassVar[str] = "profile-released"

    profile: Name
    move: SequenceNumber
    version: int
    acknowledged: SequenceNumber
    floor: SequenceNumber
    last: SequenceNumber
    ephemeral: Annotated[int, Bound(Ephemeral.SILENT)]
    unclaimed_since: SequenceNumber
    watershed: Annotated[list[tuple[Name, SequenceNumber]], Bound(65_536), BODY]


@on_the_wire
@dataclass(frozen=True, slots=True)
class HandoverWanted(QueryFrame):
    """The new host asks for the next results that wait at the old one, those after ``after``."""

    type: ClassVar[str] = "handover-wanted"

    profile: Name
    move: SequenceNumber
    after: SequenceNumber


@on_the_wire
@dataclass(frozen=True, slots=True)
class HandedOver(QueryFrame):
    """A delivery that waited at the old host with number ``position`` in the mailbox, which it
    keeps; ``ends``: ask for more.

    What is between two of them is gone.  Without a ``source`` it is no delivery: nothing waits any
    more, and the mailbox stands at ``position``.
    """

    type: ClassVar[str] = "handed-over"

    profile: Name
    move: SequenceNumber
    position: SequenceNumber
    ends: bool
    source: Name
    number: SequenceNumber
    lengths: Annotated[list[int], Bound(1_000_000), BODY]
    payload: bytes

    def check(self) -> None:
        check_lengths(self.lengths, self.payload)


@on_the_wire
@dataclass(frozen=True, slots=True)
class ProfileTaken(QueryFrame):
    """The new host has all that waited and delivers from here on."""

    type: ClassVar[str] = "profile-taken"

    profile: Name
    move: SequenceNumber
    version: int


@on_the_wire
@dataclass(frozen=True, slots=True)
class MoveEnded(QueryFrame):
    """To the old host: the profile lives elsewhere now.  To one that stands by: it stays where it
    is.  In either case all that is kept for the move is to be forgotten."""

    type: ClassVar[str] = "move-ended"

    profile: Name
    move: SequenceNumber


@on_the_wire
@dataclass(frozen=True, slots=True)
class WatershedMarker(QueryFrame):
    """Sent up the tree of ``root`` by ``host``, which profiles leave or come to: where is the
    watershed?"""

    type: ClassVar[str] = "watershed-marker"

    root: Name
    host: Name
    marker: int


@on_the_wire
@dataclass(frozen=True, slots=True)
class WatershedReached(MessageFrame):
    """The root's answer, on its way down to ``host`` behind all messages up to the last numbers of
    its sources (source, number), which are the watershed."""

    type: ClassVar[str] = "watershed-reached"

    root: Name
    host: Name
    marker: int
    numbers: Annotated[list[tuple[Name, SequenceNumber]], Bound(65_536), BODY]
