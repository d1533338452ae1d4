"""What becomes of messages whose publishers and subscriber are killed (tests/survival/killed_ends).

One publisher gives its messages keys, one goes on behind the number that the network has, one has a
journal; beside them one that knows only of which outcomes it has heard, as any did before.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import trio

from benchmarks.benchmark import WrongAnswers
from benchmarks.report import Report
from tests.survival.killed_ends import EXACT, KilledEnds

LABELS = {
    "nothing": "with publish keys",
    "numbers": "going on behind accepted_through",
    "journal": "with a journal",
    "outcomes": "that knows of the outcomes it has heard only",
}


def measure_publisher(report: Report, options: argparse.Namespace) -> None:
    """``publisher_crash_doubles`` and ``publisher_crash_lost`` of the three; WrongAnswers if there
    are any."""
    with tempfile.TemporaryDirectory() as directory:
        ends = KilledEnds(
            *(options.kills, options.seed, Path(directory), tuple(LABELS)),
            say=lambda line: print(line, file=sys.stderr, flush=True),
        )
        verdict = trio.run(ends.run)
    report.detail("kills", dict(verdict.kills))
    report.figure("published_each", "messages of each publisher", ends.messages)
    doubles = sum(verdict.doubled[kind] for kind in EXACT)
    lost = sum(verdict.lost[kind] for kind in EXACT)
    report.figure("publisher_crash_doubles", "doubled, of the three exact publishers", doubles)
    report.figure("publisher_crash_lost", "lost, of these", lost)
    for kind, label in LABELS.items():
        report.figure(f"doubles_{kind}", f"doubled of a publisher {label}", verdict.doubled[kind])
    if doubles or lost or verdict.lost["outcomes"]:
        raise WrongAnswers(f"seed {options.seed}: {verdict}")
