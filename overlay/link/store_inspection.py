"""Inspection of a store: everything in it held against its check sums, its ledger and its head.

It reads one moment of a store, of a process that runs or does not, and changes nothing.  Of a
damaged file it gets what there is ahead of the damage and, from the other end, what is behind it.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from overlay.link.errors import StoreError
from overlay.link.store import has_content, reading
from overlay.link.store_format import (
    CHAIN,
    FORMER_VERSION,
    SQLITE_ERRORS,
    Chain,
    check_head,
    check_sum,
    examine,
    lost,
)
from overlay.link.store_head import head_file, read_head

_SCAN = "SELECT space, key, sum, value FROM checked_rows ORDER BY space{0}, key{0}"
_LEDGER = "SELECT space, count, sums FROM ledger"

StoredRow = tuple[str, str, int, bytes]
"""Space, key, check sum and value, of whatever type a damaged file makes them."""


@dataclass(slots=True)
class Inspection:
    """``rows``: how many good ones, by space; ``damaged``: (space, key) of those with another check
    sum; ``missing``: by space, how many fewer there are than its ledger says (more: negative; 0:
    others); ``faults``: what SQLite says; ``lost``: what the head says, if it is another."""

    path: Path
    version: int = 0
    chain: Chain | None = None
    rows: Counter[str] = field(default_factory=Counter)
    damaged: list[tuple[str, str]] = field(default_factory=list)
    missing: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    lost: str = ""

    @property
    def is_intact(self) -> bool:
        """Whether all that is in it is what was stored."""
        return not (self.damaged or self.missing or self.faults)

    @property
    def is_whole(self) -> bool:
        return self.is_intact and not self.lost


def inspect(path: Path, *, deep: bool = True) -> Inspection:
    """All of a store, or its format, its head and its tables; StoreError when there is none."""
    head = head_file(path)
    if not path.exists() and not head.exists():
        raise StoreError(f"there is no store {path}")
    found = Inspection(path)
    before = head_number(head)
    if not has_content(path):
        found.lost = _head_fault(path, None, before)
        return found
    with closing(reading(path)) as connection:
        try:
            connection.execute("BEGIN")
            (found.version,) = connection.execute("PRAGMA user_version").fetchone()
            found.chain = examine(path, connection)
            found.lost = _head_fault(path, found.chain, before)
            if deep:
                found.faults += [
                    said for (said,) in connection.execute("PRAGMA quick_check(10)") if said != "ok"
                ]
        except (*SQLITE_ERRORS, StoreError) as error:
            found.faults.append(str(error))
        if deep and found.version != FORMER_VERSION:
            _count(found, connection)
    return found


def _count(found: Inspection, connection: sqlite3.Connection) -> None:
    """Its rows, held against the ledger."""
    sums: Counter[str] = Counter()
    for row in scan(connection, found.faults):
        if is_good(row):
            found.rows[row[0]] += 1
            sums[row[0]] += row[2]
        else:
            found.damaged.append((str(row[0]), str(row[1])))
    try:
        ledger = {space: (count, sum_) for space, count, sum_ in connection.execute(_LEDGER)}
    except SQLITE_ERRORS as error:
        found.faults.append(f"ledger: {error}")
        return
    ledger.pop(CHAIN, None)
    for space in {*ledger, *found.rows}:
        count, total = ledger.get(space, (0, 0))
        if (count, total) != (found.rows[space], sums[space]):
            found.missing[space] = count - found.rows[space]


def _head_fault(path: Path, chain: Chain | None, before: int) -> str:
    """What is wrong with the chain of a store, by its head; "" if nothing is.  ``before``: the
    number of the head before the chain was read, since the store may be in use."""
    head = head_file(path)
    try:
        mark, _ = read_head(head)
        if chain is not None and before <= chain.number < mark.number:
            return ""  # it has gone on meanwhile
        check_head(path, chain, mark)
    except FileNotFoundError:
        if chain is not None:
            return str(lost(path, f"is at commit {chain.number}, and {head.name} is gone"))
    except StoreError as error:
        return str(error)
    return ""


def head_number(head: Path) -> int:
    """The commit of a head; 0 where it cannot be read."""
    try:
        return read_head(head)[0].number
    except (OSError, StoreError):
        return 0


def scan(connection: sqlite3.Connection, faults: list[str]) -> Iterator[StoredRow]:
    """The rows that can be read, good or bad, in any order; what stands in the way is added to
    ``faults``."""
    last: tuple[object, object] | None = None
    try:
        for row in connection.execute(_SCAN.format("")):
            last = row[0], row[1]
            yield row
        return
    except SQLITE_ERRORS as error:
        faults.append(str(error))
    try:
        for row in connection.execute(_SCAN.format(" DESC")):
            if (row[0], row[1]) == last:
                return
            yield row
    except SQLITE_ERRORS:
        pass  # the same from the other side


def is_good(row: StoredRow) -> bool:
    """Whether a row is what was stored."""
    space, key, said, value = row
    try:
        return check_sum(space, key, value) == said
    except TypeError:
        return False
