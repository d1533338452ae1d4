"""The rows of journals: what each space of the store holds for the link layer.

A peer has no ``|`` in its name, a key may:

=============  ===================================  ====================================
space          key                                  value
=============  ===================================  ====================================
outbox         ``peer|flow|key|0000000000000042``   the encoded frame, length included
outbox-floor   ``peer|flow|key``                    [floor, deleted], and [shift, base] if not 0
inbox          ``peer|flow|key``                    [last number received]
=============  ===================================  ====================================

The floor is the last number that the peer has acknowledged; up to ``deleted`` no rows are left,
which is all that an earlier release looks at.  Where what is acknowledged is kept
(``SendingChannel.keeps``) and both are the same, or what is kept does not suffice in the peer's
place, KEPT with its gap added is said instead of the floor.  The number of a row of the outbox is
that of its frame, less the channel's shift, which is what a peer knew of frames of which nothing is
here any more.  The base is the first number since the peer was met last.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import msgpack

from overlay.link.errors import StoreError
from overlay.link.events import Flow

OUTBOX = "outbox"
OUTBOX_FLOOR = "outbox-floor"
INBOX = "inbox"
SPACES = (OUTBOX, OUTBOX_FLOOR, INBOX)
"""The spaces of the store that belong to the link layer."""

KEPT = 2**62

Row = tuple[str, str, bytes]


class Unread(bytes):
    """In the place of a value that stays in the store; ``size`` of it."""

    def __new__(cls, size: int) -> Unread:
        made = super().__new__(cls)
        made.size = size
        return made

    size: int


@dataclass(slots=True)
class StoredFrames:
    """Those of one channel, as they were read: many millions may wait for a peer that is away."""

    numbers: array[int] = field(default_factory=lambda: array("Q"))
    sizes: array[int] = field(default_factory=lambda: array("I"))
    values: dict[int, bytes] = field(default_factory=dict)  # for which there was room

    def in_order(self) -> Iterator[tuple[int, int, bytes | None]]:
        """(number, size, bytes if there was room for them)."""
        places: Iterable[int] = range(len(self.numbers))
        if any(first > second for first, second in pairwise(self.numbers)):
            places = sorted(places, key=self.numbers.__getitem__)
        for place in places:
            number = self.numbers[place]
            yield number, self.sizes[place], self.values.get(number)


@dataclass(slots=True)
class SortedRows:
    """The rows of a store: ``channels`` are the floors and inboxes (space, peer, flow, key, value),
    ``frames`` those of each channel, by (peer, flow, key)."""

    channels: list[tuple[str, str, Flow, str, bytes]] = field(default_factory=list)
    frames: dict[tuple[str, Flow, str], StoredFrames] = field(default_factory=dict)
    others: list[Row] = field(default_factory=list)


def sort_rows(rows: Iterable[Row], memory_bytes: int) -> SortedRows:
    """Take rows in any order; of frames no more than so many bytes are ever in memory.  StoreError
    for keys that no journal has written."""
    found = SortedRows()
    for space, key, value in rows:
        if space == OUTBOX:
            peer, flow, name, number = parse_frame_key(key)
            frames = found.frames.setdefault((peer, flow, name), StoredFrames())
            size = value.size if isinstance(value, Unread) else len(value)
            frames.numbers.append(number)
            frames.sizes.append(size)
            memory_bytes -= size
            if memory_bytes >= 0 and not isinstance(value, Unread):
                frames.values[number] = value
        elif space in SPACES:
            found.channels.append((space, *parse_channel_key(key), value))
        else:
            found.others.append((space, key, value))
    return found


def channel_key(peer: str, flow: Flow, key: str) -> str:
    return f"{peer}|{int(flow)}|{key}"


def parse_frame_key(key: str) -> tuple[str, Flow, str, int]:
    """``peer|flow|key|number`` taken apart; StoreError if it is not that."""
    channel, _, number = key.rpartition("|")
    if not number.isdecimal():
        raise StoreError(f"{key!r} is not the key of a frame")
    return (*parse_channel_key(channel), int(number))


def parse_channel_key(key: str) -> tuple[str, Flow, str]:
    """``peer|flow|key`` taken apart; StoreError if it is not that."""
    try:
        peer, flow, name = key.split("|", 2)
        return peer, Flow(int(flow)), name
    except ValueError:
        raise StoreError(f"{key!r} is not the key of a channel") from None


def read_numbers(value: bytes, least: int, most: int) -> list[int]:
    """So many numbers, none negative; StoreError if it is not that."""
    try:
        numbers = msgpack.unpackb(value)
    except ValueError:
        numbers = None
    if (
        not isinstance(numbers, list)
        or not least <= len(numbers) <= most
        or not all(isinstance(number, int) and number >= 0 for number in numbers)
    ):
        raise StoreError(f"a stored value is {value[:40]!r}; expected {least} numbers")
    return numbers
