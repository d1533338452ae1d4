"""LiveWaits: from when on is a profile's interest known on every tree?

A host broker sends a marker up each open tree, behind the routing delta that a profile caused.
Channels are in order, so where the marker arrives, the interest is known; every broker on the way
says so to the host broker, and the root broker as the last one::

    host ──delta, marker──> B4 ──delta, marker──> B1 (root)
    host <──reached: B4──── B4 <──reached: B1──── B1

A version of a profile is *live* when the answers of all roots are back: no matching message
accepted from then on is missed.  A removal is live when nobody on the way keeps the interest for
this profile's sake.  What brokers between have answered is not stored: after a restart they count
as missing until the root has answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from overlay.link.row_log import RowLog, read_record

MARKER_SPACE = "marker"
MARKER_NUMBER_SPACE = "marker-number"


@dataclass(frozen=True, slots=True)
class LiveWait:
    """One version of one profile; ``missing``: (root, broker) for every broker on the way from
    each root whose answer is missing."""

    profile: str
    version: int
    missing: frozenset[tuple[str, str]]


class LiveWaits:
    """The markers of one host broker that are under way; durable."""

    def __init__(self, rows: RowLog, way: Callable[[str], Iterable[str]]) -> None:
        """``way``: the brokers from a root to this one, itself left out."""
        self._rows = rows
        self._way = way
        self._waits: dict[int, LiveWait] = {}
        self._markers: dict[tuple[str, int], int] = {}
        self._last = 0

    def restore(self, rows: Iterable[tuple[str, str, bytes]]) -> None:
        for space, key, value in rows:
            if space == MARKER_SPACE:
                record = read_record(value)
                self._keep(int(key), record["profile"], record["version"], record["roots"])
            elif space == MARKER_NUMBER_SPACE:
                self._last = int(read_record(value)["last"])

    def __len__(self) -> int:
        return len(self._waits)

    def start(self, profile: str, version: int, roots: Iterable[str]) -> int:
        """A new marker; ``roots`` must not be empty."""
        self._last += 1
        self._rows.put(MARKER_NUMBER_SPACE, "last", {"last": self._last})
        self._keep(self._last, profile, version, roots)
        self._put(self._last)
        return self._last

    def reached(self, marker: int, root: str, broker: str) -> LiveWait | None:
        """A broker on the way from a root has answered; the wait if that was all that was
        missing.  When the root has, so have all on the way."""
        wait = self._waits.get(marker)
        if wait is None:
            return None
        left = {(tree, other) for tree, other in wait.missing if tree != root}
        if broker != root:
            left = set(wait.missing - {(root, broker)})
        self._waits[marker] = wait = LiveWait(wait.profile, wait.version, frozenset(left))
        if left:
            if broker == root:
                self._put(marker)
            return None
        del self._waits[marker]
        del self._markers[wait.profile, wait.version]
        self._rows.delete(MARKER_SPACE, str(marker))
        return wait

    def missing(self, profile: str, version: int) -> set[str]:
        """The brokers that are not known to have a version yet; none when it is live."""
        marker = self._markers.get((profile, version))
        return set() if marker is None else {broker for _, broker in self._waits[marker].missing}

    def _keep(self, marker: int, profile: str, version: int, roots: Iterable[str]) -> None:
        missing = frozenset((root, broker) for root in roots for broker in self._way(root))
        self._waits[marker] = LiveWait(profile, version, missing)
        self._markers[profile, version] = marker

    def _put(self, marker: int) -> None:
        wait = self._waits[marker]
        roots = sorted({root for root, _ in wait.missing})
        record = {"profile": wait.profile, "version": wait.version, "roots": roots}
        self._rows.put(MARKER_SPACE, str(marker), record)
