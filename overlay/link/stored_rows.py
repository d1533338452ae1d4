"""StoredRows: what a store held, at a restart; each row is for the part whose space it is in.

Rows are in memory until their parts take them.  Where there are too many for that, a part has a
Stream: it is given each as it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias, TypeVar

from overlay.link.errors import StoreError
from overlay.link.tables import Table

R = TypeVar("R")

Progress: TypeAlias = Callable[[str, int, int], None]
"""Told how many of something there are again, of how many: of READ, ROWS, PROFILES, INTERESTS; 0 of
how many: that is not known yet."""

READ = "read"  # rows, from the store
ROWS = "restored"  # rows, by the parts of a process
PROFILES = "profiles"  # in the engine
INTERESTS = "interests"  # in the routing table
SAY_ROWS = 1_000  # between two words of progress
T = TypeVar("T")


def unsaid(what: str, done: int, total: int) -> None:
    """Nobody wants to know."""


class Stream(NamedTuple):
    """Who takes the records of a space as they are read, in any order."""

    space: str
    read: Callable[[str, bytes], Any]
    take: Callable[[str, Any], object]


def streamed(table: Table[R], take: Callable[[str, R], object]) -> Stream:
    return Stream(table.space, table.read, take)


def unread(space: str) -> Stream:
    """Of rows that no start needs."""
    return Stream(space, lambda key, value: None, lambda key, record: None)


class StoredRows:
    """Rows by space; a part takes those of its tables, once."""

    def __init__(
        self,
        rows: Iterable[tuple[str, str, bytes]] = (),
        progress: Progress = unsaid,
        streams: Iterable[Stream] = (),
    ) -> None:
        """(space, key, value), in any order."""
        self._spaces: dict[str, list[tuple[str, bytes]]] = {}
        self._progress = progress
        self._count = 0
        by_space = {stream.space: stream for stream in streams}
        self._taken = set(by_space)
        for space, key, value in self.counted(READ, rows, 0):
            stream = by_space.get(space)
            if stream is None:
                self._spaces.setdefault(space, []).append((key, value))
            else:
                stream.take(key, stream.read(key, value))
        self._total = sum(map(len, self._spaces.values()))

    def take(self, table: Table[R]) -> Iterator[tuple[str, R]]:
        """The rows of a table, by key; StoreError at one that is none of its records."""
        if table.space in self._taken:
            raise ValueError(f"two parts have the space {table.space!r}")
        self._taken.add(table.space)
        return self._read(table, sorted(self._spaces.pop(table.space, ())))

    def _read(self, table: Table[R], rows: list[tuple[str, bytes]]) -> Iterator[tuple[str, R]]:
        for key, value in rows:
            if self._count % SAY_ROWS == 0:
                self._progress(ROWS, self._count, self._total)
            self._count += 1
            yield key, table.read(key, value)

    def number(self, table: Table[R]) -> int:
        """How many rows of a table there are to take."""
        return len(self._spaces.get(table.space, ()))

    def counted(self, what: str, things: Iterable[T], total: int) -> Iterator[T]:
        """The same, of which whoever wants to know is told how many have been asked for."""
        for count, each in enumerate(things):
            if count % SAY_ROWS == 0:
                self._progress(what, count, total)
            yield each

    def check_taken(self) -> None:
        """StoreError when there are rows that no part has taken."""
        for space, rows in sorted(self._spaces.items()):
            raise StoreError(
                f"the store has {len(rows)} rows in space {space!r} (the first is "
                f"{min(rows)[0]!r}), which nothing here has; expected a store of this or an "
                "older release"
            )
