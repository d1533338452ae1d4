"""Head: up to which commit a store was, in a second file beside it.

A disk that gives back an older file, or less of it than it has taken, gives back a whole one that
is right in itself.  So each commit has a number and a digest, of the one before and of its changes,
which are in the store; the last of them is here as well::

    commit 7   rows and mark 7 ─> store, synced     mark 6 synced here, in a thread beside it
               mark 7 ─> here, not synced
    commit 8   rows and mark 8 ─> store, synced     mark 7 synced here, ...
    nothing more for IDLE_SECONDS: mark 8 is synced here

A store may be ahead of its head: by a commit after SIGKILL, by two after a power cut.  It is never
behind.  PERF: nobody waits for a disk twice; a mark is synced while the next commit is.

Two slots in turn, so that one that is half written leaves the other::

    magic, version, whether a sync has failed, number, digest, check sum        (SLOT_BYTES apart)

The lock of this file is that of the store: one process at a time, and others may read.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from struct import Struct
from threading import Thread
from typing import NamedTuple

from google_crc32c import value as crc32c

from overlay.link.errors import StoreError

IDLE_SECONDS = 0.1  # after the last commit, until its mark is synced
DIGEST_BYTES = 16
SLOT_BYTES = 4096
VERSION = 1
_SLOT = Struct("<8sIIQ16s")
_SUM = Struct("<I")
_MAGIC = b"OnyxHead"


class Mark(NamedTuple):
    """A commit: how many there were with it, and its digest."""

    number: int
    digest: bytes


def head_file(store: Path) -> Path:
    return store.with_name(f"{store.name}-head")


def read_head(path: Path) -> tuple[Mark, bool]:
    """What a head says, and whether a sync of the store has failed; FileNotFoundError, StoreError
    when it is damaged."""
    data = path.read_bytes()
    found = [_read_slot(data[at : at + SLOT_BYTES]) for at in (0, SLOT_BYTES)]
    slots = [slot for slot in found if slot is not None]
    if not slots:
        raise StoreError(f"{path} is damaged: neither of its two slots can be read")
    return max(slots, key=lambda slot: slot[0].number)


def write_head(path: Path, mark: Mark, *, is_new: bool = False) -> None:
    """Make a head, or put another in the place of one; durable on return.  OSError, as where one
    that is ``new`` is there already."""
    new = path.with_name(f"{path.name}.new")
    with new.open("wb") as stream:
        for _ in range(2):
            stream.write(_slot(mark, is_failed=False).ljust(SLOT_BYTES, b"\0"))
        stream.flush()
        os.fsync(stream.fileno())
    if is_new:
        path.hardlink_to(new)
        new.unlink()
    else:
        new.replace(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """A new name in a directory survives a power cut only once the directory is synced."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_file(path: Path) -> None:
    """Have on the disk what others have written."""
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Head:
    """The head of a store that is in use."""

    def __init__(self, path: Path) -> None:
        """Lock one that is there.  FileNotFoundError; StoreError when it is damaged, or the store
        is in use."""
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.mark, self.is_failed = read_head(path)
        except BlockingIOError:
            os.close(self._file)
            raise StoreError(
                f"{path.name.removesuffix('-head')} is in use by another process"
            ) from None
        except BaseException:
            os.close(self._file)
            raise
        self._is_dirty = False
        self._asked: SimpleQueue[bool] = SimpleQueue()  # False: to end
        self._done: SimpleQueue[OSError | None] = SimpleQueue()
        self._thread: Thread | None = None

    def note(self, mark: Mark) -> None:
        """A commit is durable in the store.  OSError."""
        self.mark = mark
        self._is_dirty = True
        self._write(is_failed=False)

    def begin_sync(self) -> None:
        """In a thread, what was noted; ``end_sync`` waits for that."""
        if self._thread is None:
            self._thread = Thread(target=self._run, name="store head", daemon=True)
            self._thread.start()
        self._asked.put(True)

    def end_sync(self) -> None:
        """OSError when what was noted is not durable."""
        error = self._done.get()
        if error is not None:
            raise error

    def note_failed(self) -> None:
        """The store's file is not to be used again, as what was written may not be in it; nor does
        the disk need to take this word."""
        self.is_failed = True
        with suppress(OSError):
            self._write(is_failed=True)
            os.fdatasync(self._file)

    def close(self) -> None:
        """Sync and unlock; idempotent.  OSError."""
        if self._file < 0:
            return
        if self._thread is not None:
            self._asked.put(False)
            self._thread.join()
        try:
            self._sync()
        finally:
            os.close(self._file)
            self._file = -1

    def _write(self, *, is_failed: bool) -> None:
        at = self.mark.number % 2 * SLOT_BYTES
        os.pwrite(self._file, _slot(self.mark, is_failed=is_failed), at)

    def _run(self) -> None:
        for is_asked in self._requests():
            error = None
            try:
                self._sync()
            except OSError as failure:
                error = failure
                self._is_dirty = True  # said again to whoever asks
            if is_asked:
                self._done.put(error)

    def _requests(self) -> Iterator[bool]:
        """Whether somebody asks to sync, or nobody has for IDLE_SECONDS; until the end."""
        wait: float | None = None
        while True:
            try:
                if not self._asked.get(timeout=wait):
                    return
                yield True
                wait = IDLE_SECONDS
            except Empty:
                yield False
                wait = None

    def _sync(self) -> None:
        if self._is_dirty:
            self._is_dirty = False
            os.fdatasync(self._file)


def _slot(mark: Mark, *, is_failed: bool) -> bytes:
    data = _SLOT.pack(_MAGIC, VERSION, is_failed, mark.number, mark.digest)
    return data + _SUM.pack(crc32c(data))


def _read_slot(data: bytes) -> tuple[Mark, bool] | None:
    if len(data) < _SLOT.size + _SUM.size:
        return None
    magic, version, is_failed, number, digest = _SLOT.unpack_from(data)
    (said,) = _SUM.unpack_from(data, _SLOT.size)
    if said != crc32c(data[: _SLOT.size]) or (magic, version) != (_MAGIC, VERSION):
        return None
    return Mark(number, digest), bool(is_failed)
