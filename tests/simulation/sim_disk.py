"""Disks of simulated processes: what is there when a process starts again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeAlias

from overlay.link.events import Delete, Put, ReadRows
from overlay.link.row_store import RowStore
from tests.beside import rows_read

Row: TypeAlias = tuple[str, str, bytes]


class PowerCut(Exception):
    """In the middle of a commit: the process is dead."""


class Disk(RowStore, Protocol):
    """What the network needs of one; a commit may end in a PowerCut as well."""

    def open(self) -> Iterable[Row]:
        """A process starts; StoreError, also as the rows are taken."""
        ...

    def end(self) -> None:
        """The process is dead; idempotent."""
        ...

    def put_back(self) -> None:
        """Somebody was told that it is not what it was, and does what has to be done."""
        ...

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """The (space, key) of all rows."""
        ...


class MemoryDisk(dict[tuple[str, str], bytes]):
    """One that never fails: (space, key) -> value."""

    def open(self) -> Iterable[Row]:
        return [(space, key, value) for (space, key), value in sorted(self.items())]

    def commit(self, changes: Iterable[Put | Delete]) -> None:
        for change in changes:
            if isinstance(change, Put):
                self[change.space, change.key] = change.value
            else:
                self.pop((change.space, change.key), None)

    def read(self, space: str, first: str, last: str) -> tuple[tuple[str, bytes], ...]:
        return rows_read(ReadRows(space, first, last), self).rows

    def end(self) -> None:
        """It is as it was."""

    def put_back(self) -> None:
        """It always was."""
