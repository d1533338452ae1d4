"""HeldFrames: what came down a tree ahead of what it has to wait for.

A new tree may be faster than the old one.  So that nobody gets a source's messages out of order, a
broker lets what comes down a tree wait until the tree before it has ended here, and until it is
ready for their source, which it may not be where it was away when that came; each frame is kept
on disk, and its tree's acknowledgements are withheld, so that no more than one window of a
neighbour ever waits.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import takewhile

from overlay.link.frame_codec import LENGTH_BYTES, decode, encode
from overlay.link.frames import SourceAnnounced
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
    """By tree, first in, first out, but that the entries of sources are next: they come on a flow
    of their own, and messages wait for them; durable."""

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
            self._add(key, arrival)
            self._last = int(key)

    def put(self, arrival: Arrival) -> None:
        """A frame of a tree that has to wait."""
        assert arrival.frame is not None
        self._last += 1
        key = number_key(self._last)
        frame = encode(arrival.frame, arrival.key, arrival.sequence)
        HELD.put(self._rows, key, _HeldRow(arrival.peer, frame))
        self._add(key, arrival)

    def _add(self, key: str, arrival: Arrival) -> None:
        waiting = self._waiting.setdefault(arrival.key, deque())
        is_entry = isinstance(arrival.frame, SourceAnnounced)
        ahead = takewhile(lambda each: isinstance(each[1].frame, SourceAnnounced), waiting)
        waiting.insert(sum(1 for _ in ahead) if is_entry else len(waiting), (key, arrival))

    @property
    def trees(self) -> tuple[str, ...]:
        """Of which frames are here."""
        return tuple(self._waiting)

    def first(self, tree: str) -> Arrival | None:
        """The frame of a tree that is next."""
        waiting = self._waiting.get(tree)
        return waiting[0][1] if waiting else None

    def drop_first(self, tree: str) -> None:
        """It waits no longer."""
        waiting = self._waiting[tree]
        HELD.delete(self._rows, waiting.popleft()[0])
        if not waiting:
            del self._waiting[tree]
