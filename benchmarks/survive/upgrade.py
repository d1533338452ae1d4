"""How late messages are while each process of a network is replaced (tests/survival/upgrade.py)."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median, quantiles

import trio

from benchmarks.benchmark import BenchmarkError, WrongAnswers
from benchmarks.report import Report
from tests.survival.upgrade import HistoryMissing, former_code, upgrade


def measure_upgrade(report: Report, options: argparse.Namespace) -> None:
    """``upgrade_p99_s``, from when a message is due to be published to when a user has it, and
    ``upgrade_lost``; WrongAnswers if any is lost, doubled or out of order."""
    with tempfile.TemporaryDirectory() as directory:
        network = Path(directory, "network")
        network.mkdir()
        try:
            former_code(Path(directory, "former"))
        except HistoryMissing as missing:
            raise BenchmarkError(f"upgrade: {missing}") from None
        traffic = trio.run(upgrade, network, Path(directory, "former"), options.seed)
    if any(taken != traffic.accepted for taken in traffic.taken.values()):
        raise WrongAnswers("upgrade: messages were lost, doubled or out of order")
    report.figure(
        "upgrade_messages", "messages while each process is replaced", len(traffic.accepted)
    )
    report.figure(
        "upgrade_median_s", "  due to be published to taken, median", median(traffic.seconds), "s"
    )
    report.figure("upgrade_p99_s", "  99th percentile", quantiles(traffic.seconds, n=100)[98], "s")
    report.figure("upgrade_away_s", "  a process is away, the longest", max(traffic.away), "s")
    report.figure("upgrade_max_s", "  the latest", max(traffic.seconds), "s")
