"""LiveWaits: from when on is a profile's interest known on every tree?

A host broker sends a marker up each open tree, behind the routing delta that a profile caused; one
for all that changed with it, and one for all trees that go the same way (``branches.py``), until
they part.  Channels are in order, so where the marker arrives, the interest is known; every broker
on the way says so to the host broker, and the root broker as the last one::

    host ──delta, marker──> B4 ──delta, marker──> B1 (root)
    host <──reached: B4──── B4 <──reached: B1──── B1

A version of a profile is *live* when the answers of all roots are back: no matching message
accepted from then on is missed.  A removal is live when nobody on the way keeps the interest for
this profile's sake.  What brokers between have answered is not stored: after a restart they count
as missing until the root has answered.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table
from overlay.tree_name import root_of


class _MarkerRow(Row, frozen=True):
    """``roots``: those whose answers are missing."""

    versions: list[tuple[str, int]]
    roots: list[str]


class _Last(Row, frozen=True):
    last: int


MARKERS = Table("marker", _MarkerRow)
MARKER_NUMBER = Table("marker-number", _Last)


@dataclass(frozen=True, slots=True)
class LiveVersion:
    """One version of one profile."""

    profile: str
    version: int


@dataclass(slots=True)
class _Marker:
    """``missing``: (root, broker) for every broker on the way from each root whose answer is
    missing."""

    roots: tuple[str, ...]
    missing: set[tuple[str, str]]
    versions: list[LiveVersion] = field(default_factory=list)


class LiveWaits:
    """The markers of one host broker that are under way; durable."""

    def __init__(self, rows: RowLog, way: Callable[[str], Iterable[str]]) -> None:
        """``way``: the brokers from a root to this one, itself left out."""
        self._rows = rows
        self._way = way
        self._markers: dict[int, _Marker] = {}
        self._marker_of: dict[LiveVersion, int] = {}
        self._unsent: dict[int, None] = {}
        self._last = 0

    def restore(self, rows: StoredRows) -> None:
        for key, row in rows.take(MARKERS):
            marker = self._markers[int(key)] = self._new(row.roots)
            for profile, version in row.versions:
                self._join(int(key), marker, LiveVersion(profile, version))
        for _, number in rows.take(MARKER_NUMBER):
            self._last = number.last

    def __len__(self) -> int:
        """How many versions are waited for."""
        return len(self._marker_of)

    def __contains__(self, version: LiveVersion) -> bool:
        return version in self._marker_of

    def start(self, version: LiveVersion, roots: Collection[str]) -> None:
        """Wait for a version, behind the marker that is sent next; ``roots`` must not be empty."""
        marker = self._markers[self._last] if self._last in self._unsent else None
        if marker is None or marker.roots != tuple(roots):
            self._last += 1
            self._unsent[self._last] = None
            marker = self._markers[self._last] = self._new(roots)
        self._join(self._last, marker, version)

    def take_unsent(self) -> list[tuple[int, tuple[str, ...]]]:
        """The markers that must go up now, with the roots that they are for."""
        for number in self._unsent:
            self._put(number)
        if self._unsent:
            MARKER_NUMBER.put(self._rows, "last", _Last(self._last))
        unsent = [(number, self._markers[number].roots) for number in self._unsent]
        self._unsent.clear()
        return unsent

    def reached(self, number: int, roots: Iterable[str], broker: str) -> list[LiveVersion]:
        """A broker on the way from some roots has answered; the versions that are live if that was
        all that was missing.  When the root has, so have all on the way."""
        marker = self._markers.get(number)
        if marker is None:
            return []
        reached = {root for root in roots if root_of(root) == broker}
        marker.missing.difference_update((root, broker) for root in roots)
        if reached:
            marker.missing = {(root, by) for root, by in marker.missing if root not in reached}
        return self._settle(number) if reached or not marker.missing else []

    def end_tree(self, tree: str) -> list[LiveVersion]:
        """No message comes on a tree any more, so nobody on it is missing; the versions that were
        only waited for there.  A tree that comes after it was told of everything before it was
        used."""
        concerned = [
            number
            for number, marker in self._markers.items()
            if any(root == tree for root, _ in marker.missing)
        ]
        live = []
        for number in concerned:
            marker = self._markers[number]
            marker.missing = {(root, by) for root, by in marker.missing if root != tree}
            live += self._settle(number)
        return live

    def missing(self, profile: str, version: int) -> set[str]:
        """The brokers that are not known to have a version yet; none when it is live."""
        number = self._marker_of.get(LiveVersion(profile, version))
        return set() if number is None else {broker for _, broker in self._markers[number].missing}

    def _settle(self, number: int) -> list[LiveVersion]:
        """Some tree is missing no longer; what is live if that was the last."""
        marker = self._markers[number]
        if marker.missing:
            self._put(number)
            return []
        del self._markers[number]
        self._unsent.pop(number, None)
        for version in marker.versions:
            del self._marker_of[version]
        MARKERS.delete(self._rows, str(number))
        return marker.versions

    def _new(self, roots: Iterable[str]) -> _Marker:
        trees = tuple(roots)
        return _Marker(trees, {(root, broker) for root in trees for broker in self._way(root)})

    def _join(self, number: int, marker: _Marker, version: LiveVersion) -> None:
        marker.versions.append(version)
        self._marker_of[version] = number

    def _put(self, number: int) -> None:
        marker = self._markers[number]
        row = _MarkerRow(
            [(each.profile, each.version) for each in marker.versions],
            sorted({root for root, _ in marker.missing}),
        )
        MARKERS.put(self._rows, str(number), row)
