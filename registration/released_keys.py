"""ReleasedKeys: publish keys, and how far publishers are, from one root broker of a source to the
next.

They wait here, durably, from when the one before has let go of the source until the next one is
announced (source_roots.py): it has them before the source can publish there.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import astuple

from overlay.link.arrival import Arrival
from overlay.link.durable import StoredMap
from overlay.link.frame import MOVED_KEYS
from overlay.link.frames import KeysReleased
from overlay.link.link_layer import LinkLayer
from overlay.link.part import Part, Taker, takes
from overlay.link.row_log import RowLog, numbered_key
from overlay.link.tables import Row, Table
from registration.catalog import REGISTRATION_KEY, Catalog


class _KeysRow(Row, frozen=True):
    """The fields of a KeysReleased."""

    source: str
    at: int
    numbers: list[int]
    digests: bytes
    publishers: list[tuple[str, int, int]] = msgspec.field(default_factory=list)


RELEASED_KEYS = Table("released-keys", _KeysRow)


class ReleasedKeys(Part):
    def __init__(self, catalog: Catalog, links: LinkLayer, rows: RowLog) -> None:
        self._catalog = catalog
        self._links = links
        self._waiting = StoredMap(rows, RELEASED_KEYS)

    def frames(self) -> Iterable[Taker]:
        yield takes(KeysReleased, "broker", self._handle_released)

    def pass_on(self, source: str, root: str) -> None:
        """To the next root broker, if its release knows them, ahead of what announces the
        source."""
        peer = f"broker/{root}"
        for key in [key for key, row in self._waiting.items() if row.source == source]:
            frame = KeysReleased(*astuple(self._waiting.pop(key)))
            if self._links.may_have(peer, MOVED_KEYS):
                self._links.send(peer, REGISTRATION_KEY, frame)

    def _handle_released(self, frame: KeysReleased, arrival: Arrival) -> None:
        entry = self._catalog.sources.get(frame.source)
        if entry is None or entry.root != arrival.sender:
            return
        key = numbered_key(frame.source, frame.numbers[0] if frame.numbers else 0)
        self._waiting[key] = _KeysRow(*astuple(frame))
