"""StoredRows: what a store held, at a restart; each row is for the part whose space it is in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from overlay.link.errors import StoreError
from overlay.link.tables import Table

R = TypeVar("R")


class StoredRows:
    """Rows by space; a part takes those of its tables, once."""

    def __init__(self, rows: Iterable[tuple[str, str, bytes]] = ()) -> None:
        """(space, key, value), in any order."""
        self._spaces: dict[str, list[tuple[str, bytes]]] = {}
        self._taken: set[str] = set()
        for space, key, value in rows:
            self._spaces.setdefault(space, []).append((key, value))

    def take(self, table: Table[R]) -> Iterator[tuple[str, R]]:
        """The rows of a table, by key; StoreError at one that is none of its records."""
        return ((key, table.read(key, value)) for key, value in self.take_bytes(table.space))

    def take_bytes(self, space: str) -> list[tuple[str, bytes]]:
        """The rows of a space, by key."""
        if space in self._taken:
            raise ValueError(f"two parts have the space {space!r}")
        self._taken.add(space)
        return sorted(self._spaces.pop(space, ()))

    def check_taken(self) -> None:
        """StoreError when there are rows that no part has taken."""
        for space, rows in sorted(self._spaces.items()):
            raise StoreError(
                f"the store has {len(rows)} rows in space {space!r} (the first is "
                f"{min(rows)[0]!r}), which nothing here has; expected a store of this or an "
                "older release"
            )
