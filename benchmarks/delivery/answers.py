"""The correct results: what Saxon makes of a sample of the profiles, compared in canonical form."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from random import Random

from benchmarks.benchmark import BenchmarkError, WrongAnswers
from benchmarks.conformance_random import ask, same_documents
from benchmarks.delivery.job import DeliverJob
from benchmarks.delivery.timing import results_of
from demo.saxon import Saxon, SaxonError
from yfilter import Matcher


def need_saxon() -> None:
    """Raises BenchmarkError where Saxon is not installed."""
    if find_spec("saxonche") is None:
        raise BenchmarkError("deliver needs saxonche, to compare with and to check answers")


def check(
    matcher: Matcher, profiles: Sequence[str], messages: Sequence[bytes], job: DeliverJob
) -> int:
    """Holds a sample of the profiles against Saxon, half of them profiles that match.

    How many pairs of a profile and a message were compared; raises WrongAnswers, also where Saxon
    answers nothing at all.
    """
    checked = messages[: job.checked]
    found = [results_of(matcher, message) for message in checked]
    random = Random(f"sample {job.seed}")
    matching = sorted(set().union(*found))
    half = job.sample // 2
    chosen = set(random.sample(matching, min(half, len(matching))))
    chosen.update(random.sample(range(len(profiles)), min(half, len(profiles))))
    saxon = _saxon()
    saxon.load(checked)
    compared = sum(
        _compare(saxon, profiles[number], checked, [results.get(number, []) for results in found])
        for number in sorted(chosen)
    )
    if chosen and checked and not compared:
        raise WrongAnswers(f"Saxon answers none of {len(chosen)} profiles")
    return compared


@cache
def _saxon() -> Saxon:
    """One for this process; it ends when its input does, with this process."""
    return Saxon()


def _compare(
    saxon: Saxon, profile: str, messages: Sequence[bytes], found: Sequence[list[bytes]]
) -> int:
    """Messages on which Saxon has no error."""
    compared = 0
    for message, ours, theirs in zip(messages, found, ask(saxon, profile), strict=True):
        if isinstance(theirs, SaxonError):
            continue
        compared += 1
        if not same_documents(ours, theirs, message):
            raise WrongAnswers(
                f"{len(ours)} results, by Saxon {len(theirs)}, or others, of {profile[:500]}"
            )
    return compared
