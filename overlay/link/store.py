"""Store: the durable rows of one process, in one SQLite file.

One table ``rows(space, key, value)``; what the rows mean is the cores' business.  A commit is one
transaction: after a crash of the process or of the machine all of it is there or none of it
(write-ahead log, ``synchronous = FULL``: the log is on the disk before ``commit`` returns).

A statement changes many rows.  PERF: a commit runs in a thread, and after each statement it waits
for the interpreter, which the core is using: row by row a commit of 1,000 beside a busy core takes
2.8 s, by 256 rows and with ``node_process.SWITCH_SECONDS`` 12 ms, of which 3 are work.

One process at a time: the file is locked from opening to ``close``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from overlay.link.errors import StoreError
from overlay.link.events import Delete, Put
from overlay.link.journal_rows import Unread

APPLICATION_ID = 0x4F4E5958  # "ONYX", in the header of the file
FORMAT_VERSION = 1
_SIZES = "SELECT key, length(value) FROM rows WHERE space = ? ORDER BY key"
_NEXT_SPACE = "SELECT min(space) FROM rows WHERE space > ?"

_T = TypeVar("_T")
_PORTIONS = (256, 64, 16, 4, 1)  # rows of one statement; few sizes, so that all stay prepared
_PUT = {
    size: f"INSERT INTO rows VALUES {', '.join(['(?, ?, ?)'] * size)}"
    " ON CONFLICT (space, key) DO UPDATE SET value = excluded.value"
    for size in _PORTIONS
}
_DELETE = {
    size: f"DELETE FROM rows WHERE space = ? AND key IN ({', '.join('?' * size)})"
    for size in _PORTIONS
}


class Store:
    """Rows by (space, key).  Any thread may call, one at a time; a context manager that closes."""

    def __init__(self, path: Path | str) -> None:
        """Open the file, made if it is not there (its directory must be).

        StoreError if it is in use, not a store, or of another format version.
        """
        self.path = Path(path)
        self._commits = self._puts = self._deletes = 0
        try:
            self._connection = sqlite3.connect(
                self.path, isolation_level=None, check_same_thread=False, timeout=0
            )
        except sqlite3.Error as error:
            raise StoreError(f"{path} cannot be opened: {error}") from None
        try:
            _prepare(self.path, self._connection)
        except sqlite3.Error as error:
            self._connection.close()
            reason = "in use by another process" if "locked" in str(error) else str(error)
            raise StoreError(f"{path} cannot be used: {reason}") from None
        except StoreError:
            self._connection.close()
            raise

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """The same as ``Store(path)``."""
        return cls(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def rows(
        self, without: Collection[str] = (), unread: Collection[str] = ()
    ) -> Iterator[tuple[str, str, bytes]]:
        """The rows (space, key, value), by space and key; those of the spaces ``without`` are
        neither given nor read from the disk.  Of the spaces ``unread`` values are Unread."""
        for space in self._spaces():
            if space in unread:
                found = self._connection.execute(_SIZES, (space,))
                yield from ((space, key, Unread(size)) for key, size in found)
            elif space not in without:
                yield from self.load((space,))

    def read(self, space: str, first: str, last: str) -> tuple[tuple[str, bytes], ...]:
        """The rows (key, value) of a space with keys from ``first`` to ``last``, by key."""
        found = self._connection.execute(
            "SELECT key, value FROM rows WHERE space = ? AND key BETWEEN ? AND ? ORDER BY key",
            (space, first, last),
        )
        return tuple(found)

    def load(self, spaces: Iterable[str]) -> Iterator[tuple[str, str, bytes]]:
        """All rows (space, key, value) of these spaces, by key within each space."""
        for space in spaces:
            yield from self._connection.execute(
                "SELECT space, key, value FROM rows WHERE space = ? ORDER BY key", (space,)
            )

    def _spaces(self) -> list[str]:
        """The spaces that have rows, in order; one look-up each."""
        found: list[str] = []
        while (row := self._connection.execute(_NEXT_SPACE, found[-1:] or [""]).fetchone())[0]:
            found.append(row[0])
        return found

    def commit(self, changes: Iterable[Put | Delete]) -> None:
        """Carry the changes out in order, all or none, and have them on disk on return."""
        count = puts = 0
        rows: dict[tuple[str, str], bytes] = {}  # as they are in the end
        gone: dict[str, dict[str, None]] = {}  # keys by space
        for change in changes:
            count += 1
            if isinstance(change, Put):
                puts += 1
                rows[change.space, change.key] = change.value
                if change.space in gone:
                    gone[change.space].pop(change.key, None)
            else:
                rows.pop((change.space, change.key), None)
                gone.setdefault(change.space, {})[change.key] = None
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            for some in _portions([(*name, value) for name, value in rows.items()]):
                self._connection.execute(_PUT[len(some)], list(chain.from_iterable(some)))
            for space, keys in gone.items():
                for few in _portions(list(keys)):
                    self._connection.execute(_DELETE[len(few)], (space, *few))
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        self._commits += 1
        self._puts += puts
        self._deletes += count - puts

    def close(self) -> None:
        """Close the file; idempotent."""
        self._connection.close()

    def statistics(self) -> dict[str, object]:
        return {
            "path": str(self.path),
            "commits": self._commits,
            "puts": self._puts,
            "deletes": self._deletes,
        }


def _portions(rows: list[_T]) -> Iterator[list[_T]]:
    at = 0
    for size in _PORTIONS:
        while len(rows) - at >= size:
            yield rows[at : at + size]
            at += size


def _prepare(path: Path, connection: sqlite3.Connection) -> None:
    """Check or make the table; the lock is taken here and kept."""
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("BEGIN EXCLUSIVE")
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if tables == 0 and application == 0:
        connection.execute(
            "CREATE TABLE rows (space TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL,"
            " PRIMARY KEY (space, key)) WITHOUT ROWID"
        )
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
    elif application != APPLICATION_ID:
        raise StoreError(f"{path} is an SQLite file but not a store of this program")
    elif version != FORMAT_VERSION:
        raise StoreError(
            f"{path} has store format {version}; this program reads format {FORMAT_VERSION}"
        )
    connection.execute("COMMIT")
