"""How well rows of archives that nobody has asked yet are estimated.

Small archives with random messages are asked by random profiles.  lxml counts the messages that
match; of profiles that 1 % or more do, the estimate over the truth, or the truth over the estimate,
is the figure.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from random import Random

from lxml import etree
from msgspec.structs import replace

from benchmarks.report import Report
from benchmarks.samples import median, percentile
from onyx.queries.learning import Estimates
from overlay.archive_file import SUFFIX
from registration.queries.providers import Column, Relation
from tests.overlay.test_archive_file import file_of, message

_ARCHIVES, _FILES = 4, 3
_OF_FILE = (800, 2_500)  # a file of few messages has no sample
_LEAST = 0.01
_COLUMNS = (Column("message", "string"),)


def measure_estimates(report: Report, options: argparse.Namespace) -> None:
    """``estimate_q_median``, ``estimate_q_p90``, and how many profiles they are of."""
    random = Random(options.seed)
    errors: list[float] = []
    for archive in range(_ARCHIVES):
        with tempfile.TemporaryDirectory() as name:
            texts = _archive(Path(name), random, _OF_FILE[archive % 2])
            relation = Relation(
                "urn:r", "archive.r", "urn:p", ("urn:a",), "archive", name, _COLUMNS
            )
            trees = [etree.fromstring(text) for text in texts]
            for _ in range(max(1, options.queries // _ARCHIVES)):
                profile = _profile(random)
                found = etree.XPath(profile)
                truth = sum(bool(found(tree)) for tree in trees)
                if truth >= _LEAST * len(trees):
                    rows = Estimates().rows_of(relation, (("profile", profile),))
                    assert rows is not None
                    errors.append(max(rows / truth, truth / rows))
    report.figure("estimate_q_median", "estimate of rows to truth, half", median(errors))
    report.figure("estimate_q_p90", "the same, 90 %", percentile(errors, 90))
    report.condition("estimated", "profiles that 1 % or more match", len(errors))


def _archive(folder: Path, random: Random, of_file: int) -> list[bytes]:
    """Files of messages whose kinds are more and more rare; their texts."""
    texts = []
    for number in range(_FILES):
        rows = []
        for at in range(of_file):
            kind = min(int(random.expovariate(0.4)), 9)
            items = "".join(f"<i>{random.randrange(20)}</i>" for _ in range(random.randrange(4)))
            text = f'<m kind="k{kind}" n="{random.randrange(1_000)}">{items}</m>'.encode()
            rows.append(replace(message(at, f"s{number}"), message=text))
            texts.append(text)
        (folder / f"onyx-B1-{number}{SUFFIX}").write_bytes(file_of(rows, 200))
    return texts


def _profile(random: Random) -> str:
    kind, number = f"@kind = 'k{random.randrange(10)}'", random.randrange(1_000)
    item = f"i = {random.randrange(20)}"
    tests = (kind, f"@n < {number}", item, f"count(i) = {random.randrange(4)}")
    joined = f"{kind} {random.choice(('and', 'or'))} @n > {number}"
    return f"/m[{random.choice((*tests, joined, f'{item} and {kind}'))}]"
