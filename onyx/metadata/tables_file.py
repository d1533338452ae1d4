"""A file of SQLite for the tables of metadata."""

from __future__ import annotations

import sqlite3
from pathlib import Path

CACHE_KIB = 100_000  # pages kept in memory
LOG_PAGES = 4_000  # PERF: pages that many commits write are moved into the file once
_SUFFIXES = ("", "-wal", "-shm")


def open_tables(path: Path, *, synchronous: str) -> sqlite3.Connection:
    """``synchronous``: NORMAL where the file may be behind after a crash of the machine, FULL where
    a commit is durable on return.  sqlite3.Error, also where the file is damaged."""
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, cached_statements=2_000
    )
    try:
        for name, value in (
            ("journal_mode", "WAL"),
            ("synchronous", synchronous),
            ("temp_store", "MEMORY"),
            ("cache_size", f"-{CACHE_KIB}"),
            ("wal_autocheckpoint", str(LOG_PAGES)),
        ):
            connection.execute(f"PRAGMA {name} = {value}")
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise sqlite3.DatabaseError(found)
    except BaseException:
        connection.close()
        raise
    return connection


def remove_tables(path: Path) -> None:
    """With all that belongs to it."""
    for suffix in _SUFFIXES:
        path.with_name(path.name + suffix).unlink(missing_ok=True)
