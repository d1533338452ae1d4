"""lxml's XPath on each profile alone: the correct answers, and the baseline of a loop over them.

Only a sample of the profiles is compiled; the cost of the loop over all is that of the sample
times their number.  Every XPath object is wrapped in ``boolean()``, which is the fastest way to
ask lxml whether a path selects anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter_ns

import lxml.etree


@dataclass(frozen=True, slots=True)
class OracleSample:
    """Profiles of the job, by their number, that are XPath 1.0 as they stand."""

    paths: dict[int, lxml.etree.XPath]
    not_xpath: int


@dataclass(frozen=True, slots=True)
class OracleAnswer:
    """``us_per_profile``: mean time of one path on one parsed message."""

    us_per_profile: float | None
    disagreements: int
    compared: int


def take_sample(profiles: Sequence[tuple[int, str]]) -> OracleSample:
    """Compiles profiles (number and text); what lxml does not take is counted."""
    paths, refused = {}, 0
    for number, text in profiles:
        try:
            paths[number] = lxml.etree.XPath(f"boolean({text})")
        except lxml.etree.XPathSyntaxError:
            refused += 1
    return OracleSample(paths, refused)


def compare(
    sample: OracleSample,
    messages: Sequence[bytes],
    found: Sequence[Sequence[int]],
    clock: Callable[[], int] = perf_counter_ns,
) -> OracleAnswer:
    """The sample on each message, against the profile numbers the engine found for it."""
    elapsed = disagreements = compared = 0
    for message, numbers in zip(messages, found, strict=False):
        tree = lxml.etree.fromstring(message)
        engine = set(numbers)
        start = clock()
        matching = {number for number, path in sample.paths.items() if path(tree)}
        elapsed += clock() - start
        compared += len(sample.paths)
        disagreements += len(matching ^ (engine & sample.paths.keys()))
    per_profile = elapsed / 1000 / compared if compared else None
    return OracleAnswer(per_profile, disagreements, compared)
