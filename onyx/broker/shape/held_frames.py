"""HeldFrames: what came down a new tree while the old one still brings messages.

A new tree may be faster than the old one.  So that nobody gets a source's messages out of order, a
broker lets what comes down a tree wait until the tree before it has ended here; each frame is kept
on disk, and its tree's acknowledgements are withheld, so that no more than one window of a
neighbour ever waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from overlay.link.frame_codec import LENGTH_BYTES, decode, encode
from overlay.link.link_layer import Arrival
from overlay.link.row_log import RowLog, number_key
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Table


@dataclass(frozen=True, slots=True)
class _HeldRow:
    peer: str
    frame: bytes


HELD = Table("held", _HeldRow)


class HeldFrames:
    """By tree, first in, first out; durable."""

    def __init__(self, rows: RowLog) -> None:
        self._rows = rows
        self._waiting: dict[str, deque[tuple[str, Arrival]]] = {}
        self._last = 0

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def restore(self, rows: StoredRows) -> None:
        for key, row in rows.take(HELD):
            envelope = decode(row.frame[LENGTH_BYTES:])
            arrival = Arrival(0, row.peer, envelope.frame, envelope.key, envelope.sequence)
            self._waiting.setdefault(envelope.key, deque()).append((key, arrival))
            self._last = int(key)

    def put(self, arrival: Arrival) -> None:
        """A frame of a tree that has to wait."""
        assert arrival.frame is not None
        self._last += 1
        key = number_key(self._last)
        frame = encode(arrival.frame, arrival.key, arrival.sequence)
        HELD.put(self._rows, key, _HeldRow(arrival.peer, frame))
        self._waiting.setdefault(arrival.key, deque()).append((key, arrival))

    def take(self, tree: str) -> Iterator[Arrival]:
        """The frames of a tree that waits no longer."""
        waiting = self._waiting.pop(tree, deque())
        while waiting:
            key, arrival = waiting.popleft()
            HELD.delete(self._rows, key)
            yield arrival
