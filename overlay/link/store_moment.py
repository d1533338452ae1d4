"""One moment of several stores: no commit of any of them between what is read of each.

::

    lock each store ─> begin to read each ─> let all go    commits wait, some milliseconds
    read what was begun                                    at leisure; the logs grow meanwhile

The lock is that which a commit takes, so no process has to be found or stopped, and whoever dies
here lets go of all.  As nothing is acknowledged before it is committed, no store of a moment is
behind what another knows of it: they are what a power cut of the whole machine would leave.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

from overlay.link.errors import StoreError
from overlay.link.store import reading
from overlay.link.store_format import SQLITE_ERRORS

LOCK_SECONDS = 1.0  # until all are locked; a commit waits at most BUSY_SECONDS (store.py)
LOOK_SECONDS = 0.0005  # between two looks whether a commit is done
PAUSE_SECONDS = 0.2  # until the next try
TRIES_MAX = 10


class Moment(NamedTuple):
    """``connections`` read it, in the order of the stores; commits waited for ``held_seconds``."""

    connections: list[sqlite3.Connection]
    held_seconds: float


@contextmanager
def one_moment(paths: Sequence[Path]) -> Iterator[Moment]:
    """Of stores that are in use or not; StoreError when one cannot be locked or read."""
    with ExitStack() as stack:
        try:
            readers = [stack.enter_context(closing(reading(path))) for path in paths]
            for reader in readers:
                reader.execute("PRAGMA schema_version").fetchone()  # opened, whatever that takes
            held_seconds = _begun_together(paths, readers)
        except SQLITE_ERRORS as error:
            raise StoreError(f"no moment of the stores can be read: {error}") from None
        yield Moment(readers, held_seconds)


def _begun_together(paths: Sequence[Path], readers: Sequence[sqlite3.Connection]) -> float:
    """How long the stores were locked."""
    for _ in range(TRIES_MAX):
        try:
            return _try_begin(paths, readers)
        except TimeoutError:
            sleep(PAUSE_SECONDS)
    raise StoreError(
        f"the stores could not be locked at once within {LOCK_SECONDS:g} s, {TRIES_MAX} times: "
        "the disk is too slow, or has too much to do; try again later"
    )


def _try_begin(paths: Sequence[Path], readers: Sequence[sqlite3.Connection]) -> float:
    """TimeoutError when that takes too long; then nothing is begun.

    Those that lock are closed ahead of the readers: whoever closes the last connection moves the
    log into the file, which those that only read do not, and nobody but its process should."""
    with ExitStack() as stack:
        locks = [stack.enter_context(closing(_locking(path))) for path in paths]
        began = monotonic()
        for lock in locks:
            _take(lock, began + LOCK_SECONDS)
        for reader in readers:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        for lock in locks:
            lock.execute("ROLLBACK")
        return monotonic() - began


def _locking(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=0
    )


def _take(lock: sqlite3.Connection, until: float) -> None:
    while True:
        try:
            lock.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            if monotonic() >= until:
                raise TimeoutError from None
            sleep(LOOK_SECONDS)
        else:
            return
