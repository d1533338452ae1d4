"""Frames between a subscriber and a host broker.

They are unsequenced, for deliveries have numbers of their own.  One connection carries the results
of any number of profiles.  Each has a *slot* on it, a number that the subscriber chooses; the
numbers of its deliveries begin at 1, leave no gap, and go on over all connections and brokers.
Several may share a profile; then each has some of the numbers::

    Attach     ──>   profile p7 in slot 3, of which I have taken all through 41
              <──    Deliveries   a result of a message, in slot 3 its 42nd, in slot 9 its 7th
    Taken      ──>   all in slot 3 through 42, all in slot 9 through 7
    Rejected   ──>   in slot 3, which is shared, not the 42nd: it is to come again later
              <──    Missed       in slot 3 all through 50 were thrown away, expect the next
              <──    Detached     slot 3 is over, and why

Columns are packed: slots and counts of 4 bytes, numbers of deliveries of 8, the lowest byte first.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, ClassVar, NamedTuple, TypeAlias

from overlay.link.errors import ProtocolError
from overlay.link.events import Flow
from overlay.link.frame import Frame, check_lengths, on_the_wire
from overlay.link.frame_fields import (
    BODY,
    CLAIMED_SEQUENCE_MAX,
    Bound,
    Detail,
    Name,
    SequenceNumber,
)

SLOTS_MAX = 65_536  # of one frame
# Modes of an attachment, together or not.
SHARED = 1  # each delivery goes to one of all that share
EPHEMERAL = 2  # nothing is kept while nobody takes the profile

Slot: TypeAlias = Annotated[int, Bound(2**32 - 1)]
Mode: TypeAlias = Annotated[int, Bound(SHARED | EPHEMERAL)]
Slots: TypeAlias = Annotated[bytes, Bound(4 * SLOTS_MAX), BODY]
Numbers: TypeAlias = Annotated[bytes, Bound(8 * SLOTS_MAX), BODY]


class Ephemeral(IntEnum):
    """How a profile is kept that moves."""

    NOT = 0
    TAKEN = 1  # until now, and soon where it moves to
    SILENT = 2  # nothing is kept


@dataclass(frozen=True, slots=True)
class Delivery:
    """The results of ``profile`` on message ``number`` of ``source``: ``payload`` is the results
    end to end, ``lengths`` the bytes of each.

    A first one of no bytes says something of the others.  Of one other: a limit leaves the profile
    without any, as that says; the message was not evaluated to the end, or its results are too
    large.  Of more: the first of them is the media type of the rest, which are not XML.
    """

    profile: str
    source: str
    number: int
    lengths: list[int]
    payload: bytes

    def results(self) -> list[bytes]:
        """The results one by one."""
        return cut(self.lengths, self.payload)


@on_the_wire
@dataclass(frozen=True, slots=True)
class Attach(Frame):
    """(slot, profile, the number through which its deliveries were taken, mode), each from now on.

    A profile is taken by one connection at a time, the last that asked for it; or, with the mode
    SHARED, by all that share it: each delivery by one of them.  Then the number is the highest that
    came to this one.  With EPHEMERAL what is not taken when the last connection goes is thrown
    away, and nothing is kept until somebody takes the profile again; the last mode counts.
    """

    type: ClassVar[str] = "attach"

    profiles: Annotated[list[tuple[Slot, Name, SequenceNumber, Mode]], Bound(SLOTS_MAX), BODY]


@on_the_wire
@dataclass(frozen=True, slots=True)
class Detached(Frame):
    """Nothing comes in this slot any more: ``code`` is "unknown-profile", "moved", "forgotten",
    "replaced", "too-many" or "too-slow"."""

    type: ClassVar[str] = "detached"

    slot: Slot
    code: Name
    detail: Detail


@on_the_wire
@dataclass(frozen=True, slots=True)
class Deliveries(Frame):
    """What message ``number`` of ``source`` gives for all profiles of this connection that have the
    same results of it: a slot each, and its number there."""

    type: ClassVar[str] = "deliveries"
    flow: ClassVar[Flow] = Flow.MESSAGE

    source: Name
    number: SequenceNumber
    lengths: Annotated[list[int], Bound(1_000_000), BODY]
    slots: Slots
    numbers: Numbers
    payload: bytes

    def check(self) -> None:
        check_lengths(self.lengths, self.payload)
        check_columns(self.slots, self.numbers)


@on_the_wire
@dataclass(frozen=True, slots=True)
class Taken(Frame):
    """In each slot all through a number is done and need not come again; in one that is shared, the
    delivery of this number."""

    type: ClassVar[str] = "taken"

    slots: Slots
    numbers: Numbers

    def check(self) -> None:
        check_columns(self.slots, self.numbers)


@on_the_wire
@dataclass(frozen=True, slots=True)
class Rejected(Frame):
    """In a slot that is shared, whoever was sent the delivery of this number could not do with it,
    for a ``reason``: it is to come again (overlay/delivery_policy.py)."""

    type: ClassVar[str] = "rejected"

    slot: Slot
    number: SequenceNumber
    reason: Detail


@on_the_wire
@dataclass(frozen=True, slots=True)
class Missed(Frame):
    """In a slot all through a number will not come; ``lost`` of them nobody had taken.

    ``lost`` 0: results that were put off came to nothing, as the profile gets none of the message.
    In a slot that is shared, that is of the one number, which is to be taken.
    """

    type: ClassVar[str] = "missed"
    flow: ClassVar[Flow] = Flow.MESSAGE

    slot: Slot
    through: SequenceNumber
    lost: int


class Contents(NamedTuple):
    """What a delivery has: ``results`` of a ``media_type``, "" for XML; or ``limit``, why none."""

    results: list[bytes]
    limit: str = ""
    media_type: str = ""


def contents(lengths: list[int], payload: bytes) -> Contents:
    """What results that lie end to end are."""
    results = cut(lengths, payload)
    if len(results) < 2 or results[0]:  # no document is empty
        return Contents(results)
    said = results[1].decode("utf-8", "replace")
    return Contents([], said) if len(results) == 2 else Contents(results[2:], "", said)


def with_media_type(results: list[bytes], media_type: str) -> list[bytes]:
    """What ``contents`` reads, of at least one result."""
    return [b"", media_type.encode(), *results] if media_type else results


def cut(lengths: list[int], payload: bytes) -> list[bytes]:
    """Results that lie end to end, one by one."""
    results, start = [], 0
    for length in lengths:
        results.append(payload[start : start + length])
        start += length
    return results


def packed_slots(slots: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(slots)}I", *slots)


def packed_numbers(numbers: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(numbers)}Q", *numbers)


def columns(frame: Deliveries | Taken) -> zip[tuple[int, int]]:
    """(slot, number), one after the other."""
    count = len(frame.slots) // 4
    slots = struct.unpack(f"<{count}I", frame.slots)
    return zip(slots, struct.unpack(f"<{count}Q", frame.numbers), strict=True)


def check_columns(slots: bytes, numbers: bytes) -> None:
    """ProtocolError unless that is as many slots as numbers, each within its bound."""
    if len(slots) % 4 or len(numbers) != 2 * len(slots):
        raise ProtocolError(
            "bad-field",
            f"slots of {len(slots)} bytes, numbers of {len(numbers)}; expected 4 and 8 bytes each",
        )
    largest = max(struct.unpack(f"<{len(slots) // 4}Q", numbers), default=0)
    if largest > CLAIMED_SEQUENCE_MAX:
        raise ProtocolError(
            "bad-field", f"a number is {largest}; expected 0 to {CLAIMED_SEQUENCE_MAX}"
        )
