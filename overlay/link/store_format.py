"""The format of a store: its tables, its check sums, and what it was before.

::

    checked_rows   space, key, sum, value      sum: CRC-32C of space, key and value
    ledger         space, count, sums          of each space: its rows, and their sums added up
                   "", number, digests         the last commit; its digest, and those of two before

Triggers keep the ledger, so that rows which a damaged page leaves out are missed by whoever reads a
space.  A digest is that of the commit before it, and of the names and sums of what it changes.

``sum`` stands ahead of ``value``: what is behind a long value takes reading all of it.
Version 1 had ``rows`` (space, key, value), and nothing else.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import msgpack
from google_crc32c import extend, value

from overlay.link.errors import StoreDamaged, StoreError, StoreLost
from overlay.link.store_head import DIGEST_BYTES, Mark, head_file

APPLICATION_ID = 0x4F4E5958  # "ONYX", in the header of the file
FORMAT_VERSION = 2
FORMER_VERSION = 1
CHAIN = ""  # of the ledger: the space that no row has
DIGESTS = 3
"""A head is two commits behind at most (store_head.py)."""

_ROWS = """\
CREATE TABLE checked_rows (space TEXT NOT NULL, key TEXT NOT NULL, sum INTEGER NOT NULL,
 value BLOB NOT NULL, PRIMARY KEY (space, key)) WITHOUT ROWID"""
_LEDGER = """\
CREATE TABLE ledger (space TEXT NOT NULL PRIMARY KEY, count INTEGER NOT NULL, sums NOT NULL)
 WITHOUT ROWID"""
_NEW = """\
CREATE TRIGGER row_is_new AFTER INSERT ON checked_rows BEGIN
 INSERT INTO ledger VALUES (new.space, 1, new.sum)
 ON CONFLICT (space) DO UPDATE SET count = count + 1, sums = sums + excluded.sums; END"""
_OTHER = """\
CREATE TRIGGER row_is_other AFTER UPDATE ON checked_rows BEGIN
 UPDATE ledger SET sums = sums + new.sum - old.sum WHERE space = new.space; END"""
_GONE = """\
CREATE TRIGGER row_is_gone AFTER DELETE ON checked_rows BEGIN
 UPDATE ledger SET count = count - 1, sums = sums - old.sum WHERE space = old.space; END"""
_TABLES = (_ROWS, _LEDGER, _NEW, _OTHER, _GONE)
SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""The second where SQLite quotes altered bytes in what it says."""
_SCHEMA = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY sql"


class Chain(NamedTuple):
    """The commits of a store: how many, and the digests of the last ones, the newest first."""

    number: int
    digests: tuple[bytes, ...]

    @property
    def mark(self) -> Mark:
        return Mark(self.number, self.digests[0])

    def next(self, changes: object) -> Chain:
        """With a commit more: ``changes`` are what names and check sums of its rows are, lists and
        maps of text and numbers."""
        packed = msgpack.packb(changes)
        digest = blake2b(self.digests[0] + packed, digest_size=DIGEST_BYTES).digest()
        return Chain(self.number + 1, (digest, *self.digests[: DIGESTS - 1]))

    @property
    def row(self) -> tuple[int, bytes]:
        """What the ledger has of it."""
        return self.number, b"".join(self.digests)


def new_chain() -> Chain:
    """Of a store that is new: no other begins with the same digest."""
    return Chain(0, (os.urandom(DIGEST_BYTES),))


def check_sum(space: str, key: str, data: bytes) -> int:
    """CRC-32C of a row, its name included; TypeError for data that is not bytes."""
    found: int = extend(value(f"{space}\0{key}\0".encode()), data)
    return found


def check_rows(path: Path, space: str, rows: Iterable[tuple[str, int, bytes]]) -> None:
    """StoreError at one of the rows (key, sum, value) of a space that is not what was stored."""
    start = value(f"{space}\0".encode())
    key = ""
    try:
        for key, said, data in rows:
            if extend(extend(start, f"{key}\0".encode()), data) != said:
                break
        else:
            return
    except TypeError:  # no longer text and bytes
        pass
    raise damaged(path, f"row {key!r} of space {space!r} has another check sum than it was given")


def examine(path: Path, connection: sqlite3.Connection) -> Chain | None:
    """The chain of a store; None where there is no table, or it is one of version 1.

    StoreError when it is none of ours, of another version, or its tables are not what they were."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    tables = [sql for (sql,) in connection.execute(_SCHEMA)]
    if not tables and application == 0:
        return None
    if application != APPLICATION_ID:
        raise StoreError(f"{path} is an SQLite file but not a store of this program")
    if version == FORMER_VERSION:
        return None
    if version != FORMAT_VERSION:
        raise StoreError(
            f"{path} has store format {version}; this program reads format {FORMER_VERSION} and "
            f"{FORMAT_VERSION}"
        )
    if tables != sorted(_TABLES):
        raise damaged(path, "its tables are not those that it was made with")
    row = connection.execute("SELECT count, sums FROM ledger WHERE space = ?", (CHAIN,)).fetchone()
    number, digests = row or (None, None)
    if not isinstance(number, int) or not isinstance(digests, bytes) or not digests:
        raise damaged(path, "it does not say at which commit it is")
    some = [digests[at : at + DIGEST_BYTES] for at in range(0, len(digests), DIGEST_BYTES)]
    return Chain(number, tuple(some))


def prepare(path: Path, connection: sqlite3.Connection, chain: Chain) -> None:
    """Make the tables of a store that has none or is of version 1, whose rows they get."""
    connection.create_function("check_sum", 3, check_sum, deterministic=True)
    connection.execute("BEGIN EXCLUSIVE")
    (former,) = connection.execute("PRAGMA user_version").fetchone()
    if former == FORMER_VERSION:
        for (said,) in connection.execute("PRAGMA quick_check(1)"):
            if said != "ok":
                raise damaged(path, said)
    for table in _TABLES:
        connection.execute(table)
    connection.execute("INSERT INTO ledger VALUES (?, ?, ?)", (CHAIN, *chain.row))
    if former == FORMER_VERSION:
        connection.execute(
            "INSERT INTO checked_rows"
            " SELECT space, key, check_sum(space, key, value), value FROM rows"
        )
        connection.execute("DROP TABLE rows")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
    connection.execute("COMMIT")


def check_head(path: Path, chain: Chain | None, mark: Mark) -> None:
    """StoreLost when a store is not at the commit of its head, nor just ahead of it; None: it has
    no commits."""
    if chain is None:
        if mark.number:
            raise lost(path, f"is empty or of an older format, and was at commit {mark.number}")
        return
    behind = chain.number - mark.number
    if 0 <= behind < len(chain.digests) and chain.digests[behind] == mark.digest:
        return
    sign = f"is at commit {chain.number}, and was at commit {mark.number}"
    if behind > 0:
        sign = f"is at commit {chain.number}, and {head_file(path).name} at {mark.number}"
    elif not behind:
        sign = f"is at commit {chain.number}, but at another of that number than it was"
    raise lost(path, sign)


def lost(path: Path, sign: str) -> StoreLost:
    """``sign``: what is seen."""
    return StoreLost(
        f"store-lost: {path} {sign}: it is an older copy or of another time, or the disk has lost "
        "a part of it. Nothing was changed. Put back what was there, all files of that name; or, "
        f"if that is gone, go on with what there is: onyx store repair {path.parent} --accept-loss"
    )


def damaged(path: Path, what: str) -> StoreDamaged:
    return StoreDamaged(
        f"{path} is damaged: {what}. Stop the process; onyx store verify {path.parent} says what "
        f"is wrong, onyx store repair {path.parent} sets it aside"
    )
