"""Store: the durable rows of one process, in one SQLite file and its head.

What the rows mean is the cores' business, how they are kept is store_format.py.  A commit is one
transaction: after a crash of the process or of the machine all of it is there or none of it
(write-ahead log, ``synchronous = FULL``: the log is on the disk before ``commit`` returns).  What
the disk gives back is not believed: each row has a check sum, each space a count and each commit a
number and a digest, the last of which is in a second file as well (store_head.py).

A file is of no use any more once the disk has not taken a commit: what was written may be in
memory only, and look as if it were stored.  Such a store does nothing from then on, and the next
process that opens it makes the file anew, of what can be read of it.  A full disk is no such
failure: the commit can be tried again.

A statement changes many rows.  PERF: a commit runs in a thread, and after each statement it waits
for the interpreter, which the core is using: row by row a commit of 1,000 beside a busy core takes
2.8 s, by 240 rows and with ``SWITCH_SECONDS`` 12 ms, of which 3 are work.

One process at a time: the head is locked from opening to ``close``.  Others may read.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import chain as chained
from operator import itemgetter
from pathlib import Path
from time import monotonic
from typing import Self, TypeVar

from overlay.link.errors import DiskFull, StoreError
from overlay.link.events import Delete, Put
from overlay.link.journal_rows import Unread
from overlay.link.row_store import net_changes
from overlay.link.store_format import (
    CHAIN,
    SQLITE_ERRORS,
    Chain,
    check_head,
    check_rows,
    check_sum,
    damaged,
    examine,
    lost,
    new_chain,
    prepare,
)
from overlay.link.store_head import Head, head_file, sync_directory, sync_file, write_head
from overlay.statistics import StoreCounts

BUSY_SECONDS = 5.0  # until somebody who looks at the file lets it go
READ_ROWS = 256  # at a time, at a start
SWITCH_SECONDS = 0.0005  # that a thread waits for the interpreter, at each of its statements
_VALUES = "SELECT key, sum, value FROM checked_rows WHERE space = ? ORDER BY key"
_SIZES = "SELECT key, sum, length(value) FROM checked_rows WHERE space = ? ORDER BY key"
_RANGE = (
    "SELECT key, sum, value FROM checked_rows WHERE space = ? AND key BETWEEN ? AND ? ORDER BY key"
)
_NEXT_SPACE = "SELECT min(space) FROM checked_rows WHERE space > ?"
_LEDGER = f"SELECT space, count, sums FROM ledger WHERE space != '{CHAIN}'"
_STEP = f"UPDATE ledger SET count = ?, sums = ? WHERE space = '{CHAIN}'"

_T = TypeVar("_T")
_PORTIONS = (240, 64, 16, 4, 1)  # rows of one statement; few sizes, so that all stay prepared
_PUT = {
    size: f"INSERT INTO checked_rows VALUES {', '.join(['(?, ?, ?, ?)'] * size)}"
    " ON CONFLICT (space, key) DO UPDATE SET sum = excluded.sum, value = excluded.value"
    for size in _PORTIONS
}
_DELETE = {
    size: f"DELETE FROM checked_rows WHERE space = ? AND key IN ({', '.join('?' * size)})"
    for size in _PORTIONS
}
_FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)


class StoreRows:
    """The rows of a file, for any thread, one at a time.  As itself beside a process that writes
    (``Store.beside``), of which it waits for nothing."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Within the block all that is read is as of the commit at which it is read first."""
        with self._used():
            self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the connection; idempotent."""
        self._connection.close()

    def rows(
        self, without: Collection[str] = (), unread: Collection[str] = ()
    ) -> Iterator[tuple[str, str, bytes]]:
        """The rows (space, key, value), by space and key; those of the spaces ``without`` are
        neither given nor read from the disk.  Of the spaces ``unread`` values are Unread, and are
        checked when they are read.  StoreError at one that is damaged or missing."""
        with self._used():
            for space in self._spaces():
                if space not in without:
                    yield from self._space(space, is_read=space not in unread)

    def look(self, seconds: float, without: Collection[str]) -> None:
        """Read the same rows for at most so many seconds.  StoreError likewise."""
        until = monotonic() + seconds
        for _ in self.rows(without):
            if monotonic() >= until:
                return

    def load(self, spaces: Iterable[str]) -> Iterator[tuple[str, str, bytes]]:
        """All rows (space, key, value) of these spaces, by key within each space.  StoreError at
        one that is damaged or missing."""
        with self._used():
            for space in spaces:
                yield from self._space(space, is_read=True)

    def read(self, space: str, first: str, last: str) -> tuple[tuple[str, bytes], ...]:
        """The rows (key, value) of a space with keys from ``first`` to ``last``, by key.
        StoreError at one that is damaged."""
        with self._used():
            found = self._connection.execute(_RANGE, (space, first, last)).fetchall()
            check_rows(self.path, space, found)
            return tuple([(key, value) for key, _, value in found])

    @contextmanager
    def _used(self) -> Iterator[None]:
        with _errors(self.path):
            yield

    def _spaces(self) -> list[str]:
        """The spaces that have rows, or should have, in order; one look-up each."""
        found: list[str] = []
        while (row := self._connection.execute(_NEXT_SPACE, found[-1:] or [""]).fetchone())[0]:
            found.append(row[0])
        ledger = (space for space, count, _ in self._connection.execute(_LEDGER) if count)
        return sorted({*found, *ledger})

    def _space(self, space: str, *, is_read: bool) -> Iterator[tuple[str, str, bytes]]:
        count = sums = 0
        found = self._connection.execute(_VALUES if is_read else _SIZES, (space,))
        while some := found.fetchmany(READ_ROWS):
            count += len(some)
            sums += sum(map(itemgetter(1), some))
            if is_read:
                check_rows(self.path, space, some)
                yield from [(space, key, value) for key, _, value in some]
            else:
                yield from [(space, key, Unread(size)) for key, _, size in some]
        ledger = {name: entry for name, *entry in self._connection.execute(_LEDGER)}
        expected = ledger.get(space, [0, 0])
        if [count, sums] != expected:
            what = f"space {space!r} has {count} rows; expected {expected[0]}"
            if count == expected[0]:
                what = f"the {count} rows of space {space!r} are not those that were stored"
            raise damaged(self.path, what)


class Store(StoreRows):
    """Rows by (space, key).  Any thread may call, one at a time; a context manager that closes."""

    def __init__(self, path: Path | str) -> None:
        """Open the file, made if it is not there (its directory must be).

        StoreError if it is in use, not a store, of a format version that is not read, or damaged;
        StoreLost if it is not at the commit of its head; DiskFull.
        """
        self.path = Path(path)
        self.where = str(path)
        self.disk = self.path.parent
        self.epoch = 0
        self.counted = StoreCounts()
        self._failure = ""  # why it does nothing any more
        with _errors(self.path):
            self._head, chain = _opened_head(self.path)
            try:
                if self._head.is_failed:
                    _make_anew(self.path)
                    write_head(head_file(self.path), self._head.mark)
                    self._head.close()
                    self._head = Head(head_file(self.path))
                # Of what a process wrote that was killed it is not known whether it is on the disk,
                # and others are told of it before the next commit.
                log = self.path.with_name(f"{self.path.name}-wal")
                if log.exists():
                    sync_file(log)
                self._connection = _connected(self.path)
                try:
                    if chain is None:
                        chain = Chain(0, (self._head.mark.digest,))
                        prepare(self.path, self._connection, chain)
                    # Whoever closes the last connection moves the log into the file.  After a
                    # failure nobody must: this one cannot write.
                    self._guard = reading(self.path)
                    if examine(self.path, self._guard) != chain:
                        raise damaged(self.path, "it is at another commit than it was just now")
                except BaseException:
                    self._connection.close()
                    raise
            except BaseException:
                self._head.close()
                raise
        self._chain = chain
        if chain.mark != self._head.mark:
            self._head.note(chain.mark)

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """The same as ``Store(path)``."""
        return cls(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def beside(self) -> StoreRows:
        """Its rows as they are committed, for another thread; to be closed before it."""
        return StoreRows(self.path, reading(self.path))

    def take(self) -> bool:
        """The file was taken when it was opened."""
        return True

    def check(self) -> None:
        """It stays so."""

    def commit(self, changes: Iterable[Put | Delete]) -> None:
        """Carry the changes out in order, all or none, and have them on disk on return.

        DiskFull where there is no room, and nothing is changed; at any other StoreError it is not
        known whether they are on the disk, and the store does nothing any more."""
        values, lost, puts = net_changes(changes)
        rows = {name: (check_sum(*name, value), value) for name, value in values.items()}
        gone: dict[str, list[str]] = {}  # keys by space
        for space, key in lost:
            gone.setdefault(space, []).append(key)
        after = self._chain.next((list(rows), [row[0] for row in rows.values()], gone))
        with self._used():
            try:
                self._carry_out(rows, gone, after)
            except DiskFull:
                raise
            except (sqlite3.Error, OSError) as error:
                raise self._failed(str(error)) from error
        self._chain = after
        self.counted.commits += 1
        self.counted.puts += puts

    def close(self) -> None:
        """Close the file; idempotent."""
        if self._failure:
            self._connection.close()
            self._guard.close()
            with suppress(OSError):
                self._head.close()
        else:
            self._guard.close()
            self._connection.close()
            with _errors(self.path):
                self._head.close()

    def _carry_out(
        self,
        rows: dict[tuple[str, str], tuple[int, bytes]],
        gone: dict[str, list[str]],
        after: Chain,
    ) -> None:
        """One transaction; DiskFull, sqlite3.Error and OSError."""
        execute = self._connection.execute
        self._head.begin_sync()
        try:
            execute("BEGIN IMMEDIATE")
            for some in _portions([(*name, *row) for name, row in rows.items()]):
                execute(_PUT[len(some)], list(chained.from_iterable(some)))
            for space, keys in gone.items():
                for few in _portions(keys):
                    execute(_DELETE[len(few)], (space, *few))
            execute(_STEP, after.row)
            execute("COMMIT")
        except BaseException as error:
            if isinstance(error, sqlite3.Error) and not _is_full(error):
                raise
            if self._connection.in_transaction:
                execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise DiskFull(f"{self.path}: the disk is full") from None
            raise
        finally:
            self._head.end_sync()
        self._head.note(after.mark)

    def _failed(self, reason: str) -> StoreError:
        self._head.note_failed()
        self._failure = (
            f"{self.path}: the disk has not taken a commit ({reason}). This process uses the file "
            "no more; the next one makes it anew, of what the disk has. Look at the disk first"
        )
        return StoreError(self._failure)

    @contextmanager
    def _used(self) -> Iterator[None]:
        if self._failure:
            raise StoreError(self._failure)
        with _errors(self.path):
            yield


def _portions(rows: list[_T]) -> Iterator[list[_T]]:
    at = 0
    for size in _PORTIONS:
        while len(rows) - at >= size:
            yield rows[at : at + size]
            at += size


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    """What SQLite and the system say, as a StoreError."""
    try:
        yield
    except (*SQLITE_ERRORS, OSError) as error:
        if _is_full(error):
            raise DiskFull(f"{path}: the disk is full") from None
        code = getattr(error, "sqlite_errorcode", 0)
        if isinstance(error, UnicodeDecodeError) or code & 0xFF == sqlite3.SQLITE_CORRUPT:
            raise damaged(path, str(error)) from None
        raise StoreError(f"{path} cannot be used: {error}") from None


def _is_full(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return getattr(error, "sqlite_errorcode", 0) in _FULL


def reading(path: Path) -> sqlite3.Connection:
    """A connection that writes nothing, beside one that does."""
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=BUSY_SECONDS,
    )


def has_content(path: Path) -> bool:
    """Whether there is a store to be opened: of an empty file SQLite removes the log."""
    return path.exists() and path.stat().st_size > 0


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, timeout=BUSY_SECONDS
    )
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _opened_head(path: Path) -> tuple[Head, Chain | None]:
    """The head of a store, locked, and the chain that the store has; both are of one commit.

    Nothing is written but the head of a store that is new, or of version 1."""
    try:
        head: Head | None = Head(head_file(path))
    except FileNotFoundError:
        head = None
    try:
        chain = None
        if head is not None and path.with_name(f"{path.name}-journal").exists():
            # A process was killed as it made the store, before that had a log.
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("PRAGMA schema_version")
        if has_content(path):
            with closing(reading(path)) as connection:
                chain = examine(path, connection)
        if head is None:
            if chain is not None:
                raise lost(path, f"is at commit {chain.number}, and {head_file(path).name} is gone")
            write_head(head_file(path), new_chain().mark, is_new=True)
            return Head(head_file(path)), None
        check_head(path, chain, head.mark)
        return head, chain
    except BaseException:
        if head is not None:
            head.close()
        raise


def _make_anew(path: Path) -> None:
    """Put a copy in the place of a store whose disk has not taken a commit, page for page, so that
    the log, which is removed last, has no other."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    try:
        with closing(reading(path)) as old, closing(sqlite3.connect(new)) as copy:
            old.backup(copy)
        sync_file(new)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)  # where there was no room for all of it
    for ending in ("-wal", "-shm"):
        path.with_name(f"{path.name}{ending}").unlink(missing_ok=True)
    sync_directory(path.parent)
