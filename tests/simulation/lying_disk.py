"""LyingDisk: the real store of a process over files in memory, on a machine that fails.

What a power cut leaves is made of the files before and after the commit that it falls into::

    commit 7 ─────────────── commit 8 ────────────────────────> returns
              head 7, not synced      sectors of the log, some old, some new, then the head's
                                      or, where the log goes into the file, sectors of the file

A power cut costs nothing that was committed: whoever starts after one is told nothing.  Of all else
(``LIES``) somebody has to be told, or it does no harm.  ``seen`` counts all by kind; ``unsaid`` has
rows that were given out as if they had been stored.
"""

from __future__ import annotations

import errno
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import TypeAlias, cast

from overlay.link.errors import StoreError
from overlay.link.events import Delete, Put
from overlay.link.journal_rows import Unread
from overlay.link.store import Store
from tests.simulation.sim_disk import MemoryDisk, PowerCut, Row

Files: TypeAlias = dict[str, bytes]
"""By how their names end."""

ENDINGS = ("", "-wal", "-head")
SECTOR_BYTES = 512
COPIES = 8  # of earlier times
POWER_CUTS = ("torn commit", "power cut")
LIES = ("flipped bit", "altered value", "cut short", "older copy")


class LyingDisk:
    """``without`` and ``unread``: of rows that a start does not read, as of ``Store.rows``."""

    def __init__(
        self,
        directory: Path,
        seed: str,
        is_faulty: Callable[[], bool],
        *,
        lies: Collection[str] = LIES,
        without: Collection[str] = (),
        unread: Collection[str] = (),
    ) -> None:
        directory.mkdir()
        self.seen: Counter[str] = Counter()
        self.unsaid: list[tuple[str, str]] = []
        self.truth = MemoryDisk()  # what was committed
        self._path = directory / "store.sqlite"
        self._random = Random(seed)
        self._is_faulty = is_faulty
        self._lies = tuple(lies)
        self._without = without
        self._unread = unread
        self._store: Store | None = None
        self._undecided: tuple[int, list[Put | Delete]] | None = None  # a commit, its number
        self._copies: list[Files] = []
        self._synced_head = b""  # what a power cut leaves of it at least
        self._has_lied = False

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.truth)

    def open(self) -> Iterator[Row]:
        try:
            self._store = store = Store(self._path)
            commit = store._chain.number
            if self._undecided is not None and commit == self._undecided[0]:
                self.truth.commit(self._undecided[1])
            yield from self._checked(store)
        except StoreError as error:
            assert self._has_lied, f"the disk has not lied: {error}"
            raise
        self._undecided = None
        self._synced_head = self._files()["-head"]

    def commit(self, changes: Iterable[Put | Delete]) -> None:
        store = self._opened()
        changes = list(changes)
        before = self._files()
        number = store._chain.number
        assert isinstance(number, int)
        fault = self._fault()
        self.seen[fault] += bool(fault)
        if fault == "failed sync":
            _fail_sync(store)
        elif fault == "full disk":
            _Full.commit(store, changes)
        self._undecided = number + 1, changes
        store.commit(changes)
        if fault == "torn commit":
            self._close(self._torn(before, self._files()))
            raise PowerCut
        self._undecided = None
        self.truth.commit(changes)
        self._synced_head = before["-head"]
        if self._random.random() < 0.05:
            self._copies = [*self._copies[-COPIES + 1 :], self._files()]

    def read(self, space: str, first: str, last: str) -> tuple[tuple[str, bytes], ...]:
        found = self._opened().read(space, first, last)
        for key, value in found:
            self._check(space, key, value)
        return found

    def end(self) -> None:
        if self._store is None:
            return
        if self._random.random() < 0.3:  # in order, so that the log goes into the file
            self._opened().close()
            self._synced_head = self._files()["-head"]
        files = self._files()
        if self._is_faulty() and self._undecided is None:
            if self._random.random() < 0.4:
                self.seen["power cut"] += 1
                files["-head"] = self._mixed(self._synced_head, files["-head"])
            elif self._lies and self._random.random() < 0.4:
                self._lie(files, self._random.choice(self._lies))
        self._close(files)

    def put_back(self) -> None:
        """From somewhere, what was committed."""
        if self._store is not None:
            self._close({})
        shutil.rmtree(self._path.parent)
        self._path.parent.mkdir()
        self._copies.clear()
        self._undecided, self._has_lied = None, False
        with Store(self._path) as store:
            store.commit(Put(*name, value) for name, value in self.truth.items())

    def go_back(self) -> bool:
        """The process is dead, and all files are those of an earlier time; False if there are
        none."""
        if self._copies:
            self._has_lied = True
            self._write(self._random.choice(self._copies))
        return bool(self._copies)

    def _fault(self) -> str:
        """Of a commit."""
        draw = self._random.random()
        if not self._is_faulty() or draw > 0.02:
            return ""
        return "torn commit" if draw < 0.012 else "failed sync" if draw < 0.016 else "full disk"

    def _lie(self, files: Files, lie: str) -> None:
        random = self._random
        if lie == "older copy":
            if not self._copies:
                return
            older = random.choice(self._copies)
            files[""], files["-wal"] = older[""], older["-wal"]
        else:
            ending = random.choice([ending for ending, data in files.items() if data])
            data = bytearray(files[ending])
            value = random.choice(list(self.truth.values()) or [b""])
            at = data.rfind(value) if lie == "altered value" else random.randrange(len(data))
            if not value or at < 0:
                return
            if lie == "cut short":
                del data[at:]
            else:
                data[at] ^= 1 << random.randrange(8)
            files[ending] = bytes(data)
        self.seen[lie] += 1
        self._has_lied = True

    def _torn(self, before: Files, after: Files) -> Files:
        """A power cut somewhere in a commit, which reaches the disk sector by sector."""
        files = dict(after)
        if before[""] != after[""]:  # the log, which was synced ahead, goes into the file
            files[""] = self._mixed(before[""], after[""])
        else:
            files["-wal"] = self._mixed(before["-wal"], after["-wal"])
        head = after["-head"] if files["-wal"] == after["-wal"] else before["-head"]
        files["-head"] = self._mixed(self._synced_head, head)
        return files

    def _mixed(self, old: bytes, new: bytes) -> bytes:
        """Sectors of either; of a longer file as many as have been added."""
        random = self._random
        share = random.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        size = (
            len(new) if random.random() < 0.7 else random.randint(min(len(old), len(new)), len(new))
        )
        mixed = bytearray(old[:size].ljust(size, b"\0"))
        for at in range(0, size, SECTOR_BYTES):
            if random.random() < share:
                mixed[at : at + SECTOR_BYTES] = new[at : min(size, at + SECTOR_BYTES)]
        return bytes(mixed)

    def _checked(self, store: Store) -> Iterator[Row]:
        for space, key, value in store.rows(without=self._without, unread=self._unread):
            if not isinstance(value, Unread):
                self._check(space, key, value)
            yield space, key, value

    def _check(self, space: str, key: str, value: bytes) -> None:
        if self.truth.get((space, key)) != value:
            self.unsaid.append((space, key))

    def _opened(self) -> Store:
        assert self._store is not None
        return self._store

    def _files(self) -> Files:
        found = {}
        for ending in ENDINGS:
            path = self._path.with_name(self._path.name + ending)
            found[ending] = path.read_bytes() if path.exists() else b""
        return found

    def _close(self, files: Files) -> None:
        """As a kill does it: what the store does at its end is undone."""
        store, self._store = self._opened(), None
        store.close()
        self._write(files)

    def _write(self, files: Files) -> None:
        self._path.with_name(f"{self._path.name}-shm").unlink(missing_ok=True)
        for ending, data in files.items():
            path = self._path.with_name(self._path.name + ending)
            path.unlink(missing_ok=True)
            if data or not ending:
                path.write_bytes(data)


class _Full:
    """A connection of SQLite to a disk that has no room for what is to be committed."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @classmethod
    def commit(cls, store: Store, changes: Iterable[Put | Delete]) -> None:
        """DiskFull."""
        connection = store._connection
        store._connection = cast(sqlite3.Connection, cls(connection))
        try:
            store.commit(changes)
        finally:
            store._connection = connection

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def execute(self, sql: str, *values: Sequence[object]) -> object:
        if sql == "COMMIT":
            error = sqlite3.OperationalError("simulated")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        return self._connection.execute(sql, *values)  # type: ignore[arg-type]


def _fail_sync(store: Store) -> None:
    """The disk does not take the next commit, or does not say that it has."""
    head = store._head
    end_sync = head.end_sync

    def failing() -> None:
        end_sync()
        raise OSError(errno.EIO, "simulated")

    head.end_sync = failing  # type: ignore[method-assign]
