"""LastNumbers: the last message of each source that came from a broker that may send it twice.

A broker that is not the root of a tree passes messages on before it has committed them
(overlay/link/early_leaving.py).  When it dies in between they come once more, with other numbers on
their channel, and perhaps with older ones among them that were not wanted here before.  Messages of
a source come in order, so those up to the last number came already, or were promised to nobody:
whoever is live has been known there since before they were published.

What is sent once more because it could not be read comes late (packing/give_backs.py); it leaves
behind the commit, so it is not asked about.  Durable.
"""

from __future__ import annotations

from collections.abc import Container

from msgspec.structs import replace

from overlay.link.frames import Message
from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table
from overlay.transformation.reflection import NOTHING


class _LastNumberRow(Row, frozen=True):
    tree: str
    source: str
    number: int


LAST_NUMBERS = Table("last-number", _LastNumberRow)


class LastNumbers:
    """By tree and source."""

    def __init__(self, rows: RowLog, gone: Container[str] = ()) -> None:
        """``gone``: sources of which the last message has come."""
        self._gone = gone
        self._rows = rows
        self._last: dict[str, dict[str, int]] = {}
        self._reflects: dict[str, int] = {}  # by tree, of the last that was cut for this broker

    def restore(self, rows: StoredRows) -> None:
        for _, row in rows.take(LAST_NUMBERS):
            self._last.setdefault(row.tree, {})[row.source] = row.number

    def is_new(self, frame: Message) -> bool:
        """Whether a message has not come before; it has from now on."""
        tree, source, number = frame.root, frame.source, frame.number
        if source in self._gone:
            return False
        last = self._last.setdefault(tree, {})
        if number <= last.get(source, 0):
            return False
        last[source] = number
        LAST_NUMBERS.put(self._rows, f"{tree}|{source}", _LastNumberRow(tree, source, number))
        return True

    def forget(self, source: str) -> None:
        """Nothing comes of a source any more."""
        for tree, last in self._last.items():
            if last.pop(source, None) is not None:
                LAST_NUMBERS.delete(self._rows, f"{tree}|{source}")

    def counted(self, frame: Message, is_past: bool) -> Message:
        """A message that was cut; one that ``is_past`` a lost parent (shape/bypasses.py) says by
        which of the parent's changes, and reflects at least those of this broker's that the one
        before did."""
        if not is_past:
            self._reflects[frame.root] = frame.reflects
            return frame
        return replace(frame, reflects=self._reflects.get(frame.root, NOTHING))

    def end_tree(self, tree: str) -> None:
        """Nothing comes down a tree any more."""
        self._reflects.pop(tree, None)
        for source in self._last.pop(tree, ()):
            LAST_NUMBERS.delete(self._rows, f"{tree}|{source}")
