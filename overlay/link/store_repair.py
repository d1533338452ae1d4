"""Repair of a store: a new one of what is good in it.  The old one is set aside, whole.

::

    store.sqlite, -wal, -head   ─ good rows ─> store.sqlite, -head      a commit further
                                ─ bad rows ──> damaged.jsonl            one a line
                                ─ as it was ─> damaged.sqlite, -wal, -head

The new head comes last: a repair that is cut off leaves a store that does not start, and can be
repaired.
"""

from __future__ import annotations

import base64
import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TextIO

from overlay.link.errors import StoreError, StoreLost
from overlay.link.store import has_content, reading
from overlay.link.store_format import Chain, new_chain, prepare
from overlay.link.store_head import head_file, sync_directory, sync_file, write_head
from overlay.link.store_inspection import (
    Inspection,
    StoredRow,
    head_number,
    inspect,
    is_good,
    scan,
)

_PUT = "INSERT OR IGNORE INTO checked_rows VALUES (?, ?, ?, ?)"


def repair(found: Inspection, *, accepts_loss: bool) -> tuple[Path, Path]:
    """Repair a store that was inspected and is in no use; where the bad rows are, and the old
    store.  StoreLost when it is not at the commit of its head and that is not accepted."""
    path = found.path
    if found.lost and not accepts_loss:
        raise StoreLost(found.lost)
    rows, aside = path.with_name("damaged.jsonl"), path.with_name("damaged.sqlite")
    for file in (rows, aside):
        if file.exists():
            raise StoreError(f"{file} is there, of a repair before; move it away")
    new = path.with_name("repaired.sqlite")
    new.unlink(missing_ok=True)
    head = head_file(path)
    number = max(0 if found.chain is None else found.chain.number, head_number(head))
    chain = Chain(number + 1, new_chain().digests)
    with ExitStack() as stack:
        made = stack.enter_context(closing(sqlite3.connect(new, isolation_level=None)))
        prepare(new, made, chain)
        if has_content(path):
            old = stack.enter_context(closing(reading(path)))
            bad = stack.enter_context(rows.open("w", encoding="utf-8"))
            made.execute("BEGIN")
            made.executemany(_PUT, _good(scan(old, []), bad))
            made.execute("COMMIT")
    sync_file(new)
    if head.exists():
        shutil.copy(head, head_file(aside))
    for ending in ("", "-wal"):
        part = path.with_name(f"{path.name}{ending}")
        if part.exists():
            part.rename(aside.with_name(f"{aside.name}{ending}"))
    path.with_name(f"{path.name}-shm").unlink(missing_ok=True)
    new.rename(path)
    sync_directory(path.parent)
    write_head(head, chain.mark)
    return rows, aside


def backup(path: Path, target: Path, moment: sqlite3.Connection | None = None) -> Chain:
    """Copy a store, in use or not, with a head of its own; its chain then.  It is copied as it is
    now, or as ``moment`` reads it (store_moment.py).  StoreError when there is something of that
    name, or the copy is not whole."""
    if target.exists() or head_file(target).exists():
        raise StoreError(f"{target} is there already; give another name")
    part = target.with_name(f".{target.name}.part")
    part.unlink(missing_ok=True)
    try:
        with ExitStack() as stack:
            old = moment or stack.enter_context(closing(reading(path)))
            copy = stack.enter_context(closing(sqlite3.connect(part)))
            old.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file
        found = inspect(part)
        if not found.is_intact or found.chain is None:
            raise StoreError(
                f"the copy of {path} is not whole, and was removed; onyx store verify says why"
            )
        sync_file(part)
        write_head(head_file(target), found.chain.mark)
        part.rename(target)
        sync_directory(target.parent)
    finally:
        part.unlink(missing_ok=True)
    return found.chain


def _good(rows: Iterator[StoredRow], bad: TextIO) -> Iterator[StoredRow]:
    """The good ones; the others are written to a file."""
    for row in rows:
        if is_good(row):
            yield row
            continue
        space, key, said, value = row
        data = value if isinstance(value, bytes) else str(value).encode()
        record = {"space": space, "key": key, "sum": said, "value": base64.b64encode(data).decode()}
        bad.write(json.dumps(record) + "\n")
