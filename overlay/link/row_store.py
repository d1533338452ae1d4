"""What is needed of a store: rows by (space, key), one transaction a commit, one process at a time.

::

    store.py             one SQLite file of this machine; its lock keeps others out
    postgres_store.py    a PostgreSQL server; a lease says whose the rows are, which a standby takes

The core never sees it: a shell reads the rows at a start, and carries out what a core wants stored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from overlay.link.events import Delete, Put
from overlay.statistics import StoreCounts


def net_changes(
    changes: Iterable[Put | Delete],
) -> tuple[dict[tuple[str, str], bytes], dict[tuple[str, str], None], int]:
    """What changes in order come to: the rows that there are in the end, by (space, key), and those
    that are gone; how many puts there were."""
    puts = 0
    rows: dict[tuple[str, str], bytes] = {}
    gone: dict[tuple[str, str], None] = {}
    for change in changes:
        name = change.space, change.key
        if isinstance(change, Put):
            puts += 1
            rows[name] = change.value
            gone.pop(name, None)
        else:
            rows.pop(name, None)
            gone[name] = None
    return rows, gone, puts


class RowStore(Protocol):
    """What a turn needs of a store.  Any thread may call, one at a time."""

    def commit(self, changes: Iterable[Put | Delete]) -> None:
        """Carry the changes out in order, all or none, durable on return.

        DiskFull where there is no room: nothing is changed, and it may be tried again.  Any other
        StoreError, as when the rows are another process's by now: nothing may leave any more."""

    def read(self, space: str, first: str, last: str) -> tuple[tuple[str, bytes], ...]:
        """The rows (key, value) of a space with keys from ``first`` to ``last``, by key; keys are
        in the order of their code points."""


class RowsBeside(Protocol):
    """Reads what a store has committed, in another thread than it."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Within the block all that is read is as of the commit at which it is read first."""

    def read(self, space: str, first: str, last: str) -> tuple[tuple[str, bytes], ...]:
        """See RowStore."""

    def load(self, spaces: Iterable[str]) -> Iterator[tuple[str, str, bytes]]:
        """See NodeStore."""

    def close(self) -> None:
        """To be called before the store is closed."""


class NodeStore(RowStore, Protocol):
    """What a process needs of a store, from its start to its end."""

    counted: StoreCounts

    @property
    def where(self) -> str:
        """Where the rows are, for a person."""

    @property
    def disk(self) -> Path | None:
        """A file or directory on the disk where the rows are; None: it is another machine's."""

    @property
    def epoch(self) -> int:
        """Counts the processes that have had the rows; 0 where only one machine can."""

    def take(self) -> bool:
        """Whether the rows were nobody's, and are this process's from now on; before all else."""

    def check(self) -> None:
        """Fenced when the rows may be another's by now: nothing may be done any more."""

    def rows(
        self, without: Collection[str] = (), unread: Collection[str] = ()
    ) -> Iterator[tuple[str, str, bytes]]:
        """The rows (space, key, value), by space and key; those of the spaces ``without`` are
        neither given nor read.  Of the spaces ``unread`` values are Unread."""

    def load(self, spaces: Iterable[str]) -> Iterator[tuple[str, str, bytes]]:
        """All rows (space, key, value) of these spaces, by key within each space."""

    def beside(self) -> RowsBeside:
        """Its rows, to read in another thread."""

    def close(self) -> None:
        """Give the rows free for others; idempotent."""
