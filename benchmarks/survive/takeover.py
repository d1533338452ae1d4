"""How soon a standby takes the place of a killed broker, and what rows in PostgreSQL cost beside
those in SQLite (tests/survival/standbys.py)."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles

import trio

from benchmarks.report import Report
from overlay.link.events import Delete, Put
from overlay.link.postgres_store import PostgresStore
from overlay.link.store import Store
from overlay.stores import StoreOptions
from tests.postgres import Postgres, running_postgres
from tests.survival.standbys import standbys

LEASE_SECONDS = StoreOptions().lease_s
KILLS = 20
INTERVAL_SECONDS = 0.02  # from message to message
ROWS, BYTES = 200, 300  # of a commit: new ones, and as many of before go; of a row
COMMITS, ROUNDS = 50, 5
ROWS_AT_START = 100_000


def measure_takeover(report: Report, options: argparse.Namespace) -> None:
    """``takeover_p99_s``, from the death of a broker to the first message that was published
    behind it at its user, whoever is the broker then: its standby, or the process that was killed,
    if that has started again before; ``postgres_rows_ratio``, of rows committed in a second."""
    with running_postgres() as server, tempfile.TemporaryDirectory() as directory:
        _measure_stores(report, server, Path(directory))
        seconds = trio.run(_kill, server, Path(directory), KILLS)
    report.figure("takeovers", "brokers that were killed", len(seconds))
    report.figure("takeover_median_s", "  until messages went on, median", median(seconds), "s")
    report.figure(
        "takeover_p99_s",
        "  99th percentile",
        quantiles(seconds, n=100, method="inclusive")[98],
        "s",
    )
    report.figure("takeover_max_s", "  the longest", max(seconds), "s")


async def _kill(server: Postgres, directory: Path, kills: int) -> list[float]:
    found: list[float] = []
    async with (
        standbys(server, directory / "network", LEASE_SECONDS) as net,
        net.traffic(INTERVAL_SECONDS),
    ):
        for number in range(kills):
            await net.wait_delivered(len(net.delivered) + 50)
            node = ("B1", "B2")[number % 2]
            epoch = net.epochs[node][-1]
            killed_at, before = trio.current_time(), len(net.published)
            net.network.kill(net.active[node])
            await net.wait_epoch(node, epoch + 1)
            await net.wait_delivered(before + 1)
            found.append(net.delivered[before] - killed_at)
            await net.network.wait_ready()
    return found


def _measure_stores(report: Report, server: Postgres, directory: Path) -> None:
    """In turns, so that whatever else the machine does, it does to both."""
    seconds: dict[str, list[float]] = {"postgres": [], "sqlite": []}
    schema = server.new_schema()
    with (
        PostgresStore(server.url, schema, "B1", LEASE_SECONDS) as postgres,
        Store(directory / "rows.sqlite") as sqlite,
    ):
        assert postgres.take()
        for turn in range(ROUNDS):
            for name, store in (("postgres", postgres), ("sqlite", sqlite)):
                seconds[name].append(_commit(store, turn))
        for first in range(0, ROWS_AT_START, 5_000):
            rows = range(first, first + 5_000)
            postgres.commit(Put("at-start", f"{row:09}", bytes(BYTES)) for row in rows)
        began = time.perf_counter()
        count = sum(1 for _ in postgres.rows())
        started = time.perf_counter() - began
    rates = {name: 2 * ROWS * COMMITS / median(found) for name, found in seconds.items()}
    for name, rate in rates.items():
        report.figure(f"{name}_rows_s", f"rows a second, {name}", rate)
    report.figure("postgres_rows_ratio", "  of those", rates["postgres"] / rates["sqlite"])
    report.figure("postgres_start_s", f"to read {count:,} rows from PostgreSQL", started, "s")


def _commit(store: PostgresStore | Store, turn: int) -> float:
    began = time.perf_counter()
    for number in range(COMMITS):
        last = turn * COMMITS + number
        changes: list[Put | Delete] = [
            Put("commits", f"{last:06}{row:06}", bytes(BYTES)) for row in range(ROWS)
        ]
        changes += [Delete("commits", f"{last - 1:06}{row:06}") for row in range(ROWS)]
        store.commit(changes)
    return time.perf_counter() - began
