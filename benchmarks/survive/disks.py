"""How soon a source and a user are told that the files of their broker are an older copy, or
damaged (tests/survival/lying_disks.py)."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import trio

from benchmarks.benchmark import WrongAnswers
from benchmarks.report import Report
from tests.survival.lying_disks import LyingDisks


def measure_disks(report: Report, options: argparse.Namespace) -> None:
    """``detected_s``, the longest of all, from when the process with damaged files could be
    reached; WrongAnswers if anything altered was delivered, or is missing with the good files."""
    with tempfile.TemporaryDirectory() as directory:
        disks = LyingDisks(
            *(Path(directory), options.seed),
            say=lambda line: print(line, file=sys.stderr, flush=True),
        )
        verdict = trio.run(disks.run).verdict()
    if not verdict.is_good:
        raise WrongAnswers(f"seed {options.seed}: {verdict}")
    slowest = max(max(told.source, told.user) for told in disks.told)
    report.figure("detected_s", "until store-lost is told, the longest", slowest, "s")
    for told in disks.told:
        said = max(told.source, told.user)
        report.figure(f"{told.damage}_s", f"  {told.damage.replace('_', ' ')}", said, "s")
    starting = max(told.starting for told in disks.told)
    report.figure("reachable_s", "until a process that starts can be reached", starting, "s")
