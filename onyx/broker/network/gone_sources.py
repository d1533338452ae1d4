"""GoneSources: what a broker has still to know of sources that are gone.

Whoever looks for the watershed of a move (moves/watersheds.py) must know that all messages of such
a source have come.  And messages may wait for users, in the words of its schemas, or as graphs with
relative IRIs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Table
from registration.catalog import FormerSchema

GONE_MAX = 256  # sources of which no message waits; who went earlier is forgotten


@dataclass(frozen=True, slots=True)
class _GoneRow:
    """``order`` grows; ``former`` as in SourceEntry."""

    order: int
    base: str
    former: list[tuple[str, bytes, int]]

    def waits(self, oldest: int) -> bool:
        """Whether a message may wait, the oldest of all having this position."""
        return any(position >= oldest for _, _, position in self.former)


GONE = Table("source-gone", _GoneRow)


class GoneSources:
    """By id; durable.  Looked through when another goes."""

    def __init__(self, rows: RowLog) -> None:
        self._rows = rows
        self._gone: dict[str, _GoneRow] = {}  # the oldest first
        self._order = 0

    def __contains__(self, source: object) -> bool:
        return source in self._gone

    def __iter__(self) -> Iterator[str]:
        return iter(self._gone)

    def restore(self, rows: StoredRows) -> None:
        self._gone = dict(sorted(rows.take(GONE), key=lambda each: each[1].order))
        self._order = max((row.order for row in self._gone.values()), default=0)

    def add(
        self, source: str, base: str, former: Sequence[FormerSchema], last: int, oldest: int
    ) -> None:
        """What waits for users has positions from ``oldest`` to ``last``."""
        self._order += 1
        # Without a schema, too, its messages may wait.
        kept = [*former, FormerSchema("", b"", last)]
        row = _GoneRow(
            self._order, base, [(each.kind, each.schema, each.position) for each in kept]
        )
        self._put(source, row)
        for place, (name, row) in enumerate(list(self._gone.items())):
            if not row.waits(oldest):
                if place < len(self._gone) - GONE_MAX:
                    self.discard(name)
                elif row.former:
                    self._put(name, replace(row, former=[]))

    def discard(self, source: str) -> None:
        if self._gone.pop(source, None) is not None:
            GONE.delete(self._rows, source)

    def base(self, source: str) -> str:
        """What relative IRIs in its graphs are relative to; "" for nothing."""
        row = self._gone.get(source)
        return "" if row is None else row.base

    def former(self, source: str) -> list[FormerSchema]:
        """Its schemas."""
        row = self._gone.get(source)
        found = () if row is None else row.former
        return [FormerSchema(*each) for each in found if each[1]]

    def _put(self, source: str, row: _GoneRow) -> None:
        self._gone[source] = row
        GONE.put(self._rows, source, row)
