"""``cliff``: profiles of one operator each, beside equalities that are as selective."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.delivery.answers import check
from benchmarks.delivery.job import DeliverJob, Teller
from benchmarks.delivery.timing import Times, make_matcher, measure
from benchmarks.samples import mean
from benchmarks.workload.operators import BASELINES, OPERATORS, make_feeds
from yfilter import Matcher


def measure_cliff(job: DeliverJob, teller: Teller) -> None:
    """All-in with results for each operator; ``cliff_ratio`` is that of the dearest.

    How the results of a profile are made is found out when these are first asked for, which is
    measured apart: else a message costs what its profiles were not asked for before.  Equalities
    are measured before and after all others, for a machine that slows down; the mean counts.
    """
    messages = make_feeds(job.seed, job.warmup + 2 * job.measured)
    warm, first = messages[: job.warmup], messages[job.warmup :][: job.measured]
    matchers: dict[str, Matcher] = {}
    measured: dict[str, Times] = {}
    compared = 0
    for name in (*BASELINES, *(name for name in job.operators if name not in BASELINES)):
        profiles = OPERATORS[name].profiles(job.number, job.seed)
        matcher = make_matcher(profiles)
        first_us = _make_first_results(matcher, job, messages[-1])
        teller.figure(f"cliff_{name}_first_us", f"{name.replace('_', ' ')}: once", first_us, "us")
        measured[name] = measure(matcher, warm, first, job)
        compared += check(matcher, profiles, first, job)
        if name in BASELINES:
            matchers[name] = matcher
    taken = {name: mean(times.all_in) for name, times in measured.items()}
    for name in BASELINES:
        again = measure(matchers[name], (), messages[-job.measured :], job)
        taken[name] = (taken[name] + mean(again.all_in)) / 2
    _tell(teller, taken, {name: mean(times.matches) for name, times in measured.items()})
    matched = {name: mean(times.matched) for name, times in measured.items()}
    dearest, ratio = _dearest(matched)
    label = f"the dearest, {dearest}, matching alone, seen before"
    teller.figure("cliff_matched_ratio", label, ratio)
    teller.figure("cliff_lxml_parse_us", "cliff: U", _u(list(measured.values())), "us")
    teller.figure("cliff_checked", "cliff: answers as Saxon gives them", compared)


def _make_first_results(matcher: Matcher, job: DeliverJob, message: bytes) -> float:
    """Microseconds for each profile, of which a message asks all for the first time."""
    clock = job.clock()
    start = clock()
    for _ in matcher.deliver_to(message, map(str, range(job.number))):
        pass
    return (clock() - start) / 1000 / job.number


def _tell(teller: Teller, taken: dict[str, float], matches: dict[str, float]) -> None:
    for name, us in taken.items():
        against = None if name in BASELINES else f"cliff_{OPERATORS[name].against}_us"
        label = f"{name.replace('_', ' ')} ({matches[name]:,.1f} match)"
        teller.figure(f"cliff_{name}_us", label, us, "us", against)
    dearest, ratio = _dearest(taken)
    teller.figure("cliff_ratio", f"the dearest, {dearest}, over equality", ratio)


def _dearest(taken: dict[str, float]) -> tuple[str, float]:
    """The operator that costs most, against equalities as selective; 1 where there is none."""
    ratios = {
        name: us / taken[OPERATORS[name].against]
        for name, us in taken.items()
        if name not in BASELINES
    }
    return max(ratios.items(), key=lambda item: item[1], default=(BASELINES[0], 1.0))


def _u(measured: Sequence[Times]) -> float:
    return mean([us for times in measured for us in times.lxml_parse])
