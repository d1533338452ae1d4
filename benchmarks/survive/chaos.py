"""What becomes of acknowledged messages while processes and connections fail (tests/survival)."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import trio

from benchmarks.benchmark import WrongAnswers
from benchmarks.report import Report
from tests.survival.chaos import Chaos


def measure_chaos(report: Report, options: argparse.Namespace) -> None:
    """``lost``, ``doubled`` and ``disordered`` of the ``acknowledged``; WrongAnswers if any is."""
    with tempfile.TemporaryDirectory() as directory:
        chaos = Chaos(
            *(options.seconds, options.seed, options.rate, Path(directory), options.messages),
            say=lambda line: print(line, file=sys.stderr, flush=True),
        )
        verdict = trio.run(chaos.run)
    report.detail("faults", dict(chaos.faults))
    report.figure(
        "ended_for_disks", "processes that ended as disks failed", chaos.ended_for_disks.total()
    )
    report.figure("acknowledged", "messages acknowledged", verdict.accepted)
    report.figure("delivered", "deliveries", verdict.delivered)
    for name in ("lost", "doubled", "disordered"):
        report.figure(name, f"{name}, of all deliveries", getattr(verdict, name))
    if not verdict.is_good or chaos.unexpected:
        raise WrongAnswers(
            f"seed {options.seed}: {verdict.examples} {chaos.unexpected}, "
            f"lost {verdict.lost}, of which a broker said so of {chaos.told_lost}"
        )
