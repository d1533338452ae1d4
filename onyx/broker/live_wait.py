"""LiveWaits: from when on is a profile's interest known on every tree?

A host broker sends a marker up each open tree, behind the routing delta that a profile caused.
Channels are in order, so when the marker reaches the root broker every broker on the way has the
interest; the root answers down the same way.  A version of a profile is *live* when the answers
of all roots are back: no matching message accepted from then on is missed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from overlay.link.row_log import RowLog, read_record

MARKER_SPACE = "marker"
MARKER_NUMBER_SPACE = "marker-number"


@dataclass(frozen=True, slots=True)
class LiveWait:
    """One version of one profile and the root brokers whose answers are missing."""

    profile: str
    version: int
    roots: frozenset[str]


class LiveWaits:
    """The markers of one host broker that are under way; durable."""

    def __init__(self, rows: RowLog) -> None:
        self._rows = rows
        self._waits: dict[int, LiveWait] = {}
        self._last = 0

    def restore(self, rows: Iterable[tuple[str, str, bytes]]) -> None:
        for space, key, value in rows:
            if space == MARKER_SPACE:
                record = read_record(value)
                roots = frozenset(record["roots"])
                self._waits[int(key)] = LiveWait(record["profile"], record["version"], roots)
            elif space == MARKER_NUMBER_SPACE:
                self._last = int(read_record(value)["last"])

    def __len__(self) -> int:
        return len(self._waits)

    def start(self, profile: str, version: int, roots: Iterable[str]) -> int:
        """A new marker; ``roots`` must not be empty."""
        self._last += 1
        self._rows.put(MARKER_NUMBER_SPACE, "last", {"last": self._last})
        self._put(self._last, LiveWait(profile, version, frozenset(roots)))
        return self._last

    def reached(self, marker: int, root: str) -> LiveWait | None:
        """A root has answered; the wait if it was the last one."""
        wait = self._waits.get(marker)
        if wait is None:
            return None
        left = wait.roots - {root}
        if left:
            self._put(marker, LiveWait(wait.profile, wait.version, left))
            return None
        del self._waits[marker]
        self._rows.delete(MARKER_SPACE, str(marker))
        return wait

    def _put(self, marker: int, wait: LiveWait) -> None:
        self._waits[marker] = wait
        self._rows.put(
            MARKER_SPACE,
            str(marker),
            {"profile": wait.profile, "version": wait.version, "roots": sorted(wait.roots)},
        )
