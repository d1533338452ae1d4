"""``stores``: what check sums, ledgers and heads of stores cost (docs/stores.md).

The baseline is the same table in SQLite without any of it, which is what stores of version 1 were.
The two take turns, on one disk.
"""

from __future__ import annotations

import argparse
import sqlite3
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Protocol

from benchmarks import machine
from benchmarks.benchmark import Benchmark, WrongAnswers, positive
from benchmarks.report import Report
from benchmarks.samples import median
from overlay.link.events import Delete, Put
from overlay.link.store import Store

BATCH = 1_000
VALUE_BYTES = 200
READ = 256
PORTION = 250


class Rows(Protocol):
    """What is measured of a store."""

    def commit(self, changes: list[Put | Delete]) -> None: ...
    def read(self, space: str, first: str, last: str) -> tuple[tuple[str, bytes], ...]: ...
    def rows(self) -> Iterator[tuple[str, str, bytes]]: ...
    def close(self) -> None: ...


class PlainStore:
    """Rows without check sums, with the same statements as a store's."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        execute = self._connection.execute
        execute("PRAGMA locking_mode = EXCLUSIVE")
        execute("PRAGMA journal_mode = WAL")
        execute("PRAGMA synchronous = FULL")
        execute(
            "CREATE TABLE IF NOT EXISTS rows (space TEXT NOT NULL, key TEXT NOT NULL,"
            " value BLOB NOT NULL, PRIMARY KEY (space, key)) WITHOUT ROWID"
        )

    def commit(self, changes: list[Put | Delete]) -> None:
        execute = self._connection.execute
        puts = [(each.space, each.key, each.value) for each in changes if isinstance(each, Put)]
        gone = [(each.space, each.key) for each in changes if isinstance(each, Delete)]
        execute("BEGIN IMMEDIATE")
        for at in range(0, len(puts), PORTION):
            some = puts[at : at + PORTION]
            values = ", ".join(["(?, ?, ?)"] * len(some))
            execute(
                f"INSERT INTO rows VALUES {values}"
                " ON CONFLICT (space, key) DO UPDATE SET value = excluded.value",
                list(chain.from_iterable(some)),
            )
        for at in range(0, len(gone), PORTION):
            few = gone[at : at + PORTION]
            marks = ", ".join("?" * len(few))
            found = [few[0][0], *(key for _, key in few)]
            execute(f"DELETE FROM rows WHERE space = ? AND key IN ({marks})", found)
        execute("COMMIT")

    def read(self, space: str, first: str, last: str) -> tuple[tuple[str, bytes], ...]:
        query = "SELECT key, value FROM rows WHERE space = ? AND key BETWEEN ? AND ? ORDER BY key"
        return tuple(self._connection.execute(query, (space, first, last)))

    def rows(self) -> Iterator[tuple[str, str, bytes]]:
        yield from self._connection.execute("SELECT * FROM rows ORDER BY space, key")

    def close(self) -> None:
        self._connection.close()


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the benchmark."""
    parser.add_argument("--rows", metavar="N", type=positive, default=100_000, help="at a start")
    parser.add_argument("--commits", metavar="N", type=positive, default=300, help="small ones")
    parser.add_argument("--directory", metavar="DIR", type=Path, help="on the disk in question")


def run(options: argparse.Namespace) -> Report:
    """Measures; raises WrongAnswers where the two have different rows."""
    report = Report("stores: what check sums, ledgers and heads cost")
    report.condition("machine", "machine", machine.description())
    report.condition("rows", "rows at a start", options.rows)
    kinds: dict[str, type[PlainStore] | type[Store]] = {"plain": PlainStore, "store": Store}
    with TemporaryDirectory(dir=options.directory) as directory:
        paths = {kind: Path(directory) / f"{kind}.sqlite" for kind in kinds}
        stores: dict[str, Rows] = {kind: make(paths[kind]) for kind, make in kinds.items()}
        small = _commits(stores, options.commits, 1)
        large = _commits(stores, max(10, options.commits // 10), BATCH)
        _fill(stores, options.rows)
        reads = _reads(stores, options.rows)
        for store in stores.values():
            store.close()
        starts: dict[str, list[float]] = {kind: [] for kind in kinds}
        for _ in range(5):
            for kind, make in kinds.items():
                began = process_time()
                store = make(paths[kind])
                count = sum(1 for _ in store.rows())
                starts[kind].append((process_time() - began) * 1000)
                store.close()
                if count < options.rows:
                    raise WrongAnswers(f"{kind}: {count} rows of at least {options.rows}")
    for name, label, unit, found in (
        ("commit_ms", "commit of a row, one changed and one gone", "ms", small[0]),
        ("commit_processor_ms", "the same, of processor time", "ms", small[1]),
        ("large_ms", f"commit of {BATCH:,} rows, {BATCH:,} others gone", "ms", large[0]),
        ("large_processor_ms", "the same, of processor time", "ms", large[1]),
        ("read_us", f"{READ} rows read, of processor time", "us", reads),
        ("start_ms", f"start with {options.rows:,} rows, of processor time", "ms", starts),
    ):
        for kind in kinds:
            against = None if kind == "plain" else f"plain_{name}"
            report.figure(f"{kind}_{name}", f"{kind}: {label}", median(found[kind]), unit, against)
    report.remark(f"values of {VALUE_BYTES} bytes; medians; the two take turns on one disk")
    return report


def _commits(
    stores: dict[str, Rows], count: int, rows: int
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Milliseconds of each, by the wall and by the processor."""
    random = Random(1)
    wall: dict[str, list[float]] = {kind: [] for kind in stores}
    processor: dict[str, list[float]] = {kind: [] for kind in stores}
    for number in range(count):
        space = f"commits of {rows}"
        first, gone = number * rows, (number - 5) * rows
        changes: list[Put | Delete] = [
            Put(space, f"{at:016d}", random.randbytes(VALUE_BYTES))
            for at in range(first, first + rows)
        ]
        changes.append(Put("inbox", "broker/B2", b"%d" % number))
        changes += [Delete(space, f"{at:016d}") for at in range(gone, gone + rows)]
        for kind, store in stores.items():
            began, spent = perf_counter(), process_time()
            store.commit(changes)
            processor[kind].append((process_time() - spent) * 1000)
            wall[kind].append((perf_counter() - began) * 1000)
    return wall, processor


def _fill(stores: dict[str, Rows], rows: int) -> None:
    random = Random(2)
    for first in range(0, rows, BATCH):
        last = min(first + BATCH, rows)
        changes: list[Put | Delete] = [
            Put("profile", f"{at:016d}", random.randbytes(VALUE_BYTES)) for at in range(first, last)
        ]
        for store in stores.values():
            store.commit(changes)


def _reads(stores: dict[str, Rows], rows: int) -> dict[str, list[float]]:
    """Microseconds of processor time for READ rows."""
    spent: dict[str, list[float]] = {kind: [] for kind in stores}
    for first in range(0, max(1, rows - READ), max(1, rows // 200)):
        found = []
        for kind, store in stores.items():
            began = process_time()
            found.append(store.read("profile", f"{first:016d}", f"{first + READ - 1:016d}"))
            spent[kind].append((process_time() - began) * 1e6)
        if found[0] != found[1]:
            raise WrongAnswers(f"the rows from {first} on are different ones")
    return spent


STORES = Benchmark(
    name="stores",
    summary="what check sums, ledgers and heads of stores cost",
    add_options=add_options,
    quick=("--rows", "10000", "--commits", "100"),
    run=run,
)
