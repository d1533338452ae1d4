"""Keys: names that clients give to what they ask for, so that asked again it is the same thing.

A key is its owner's and of one kind of thing (a source, a profile); it lasts as long as that does.
"""

from __future__ import annotations

from collections.abc import Collection
from hashlib import sha256

from overlay.link.durable import StoredMap
from overlay.link.request_server import RequestRefused
from overlay.link.row_log import RowLog
from overlay.link.tables import Row, Table


class Key(Row, frozen=True):
    """``kind`` "source" or "profile"; ``digest``: of what was asked for."""

    kind: str
    owner: str
    key: str
    digest: bytes

    @classmethod
    def of(cls, kind: str, owner: str, key: str, *content: object) -> Key:
        return cls(kind, owner, key, sha256(repr(content).encode()).digest()[:16])

    @property
    def place(self) -> tuple[str, str, str]:
        return self.kind, self.owner, self.key


KEYS = Table("key", Key)  # under the id of the thing


class Keys:
    """The keys of what there is; durable.  Of a thing there is one at most."""

    def __init__(self, rows: RowLog) -> None:
        self._by_id = StoredMap(rows, KEYS)
        self._ids: dict[tuple[str, str, str], str] = {}

    def restore(self) -> None:
        self._ids.update((key.place, made) for made, key in self._by_id.items())

    def find(self, key: Key) -> str | None:
        """The id of what has the key; RequestRefused "other-content" if that was another thing."""
        made = self._ids.get(key.place)
        if made is not None and self._by_id[made].digest != key.digest:
            raise RequestRefused(
                "other-content",
                f"the key {key.key!r} is that of {key.kind} {made}, which was asked for with other "
                f"content; change or remove {made}, or use another key",
            )
        return made

    def named(self, kind: str, owner: str, key: str) -> str:
        """The id of what has that key; "" where nothing has."""
        return self._ids.get((kind, owner, key), "")

    def put(self, made: str, key: Key) -> None:
        self._by_id[made] = key
        self._ids[key.place] = made

    def forget(self, made: str) -> None:
        """What had a key is gone."""
        key = self._by_id.pop(made, None)
        if key is not None:
            del self._ids[key.place]

    def keep(self, there: Collection[str]) -> None:
        """Forget the keys of what there is not."""
        for made in [made for made in self._by_id if made not in there]:
            self.forget(made)
