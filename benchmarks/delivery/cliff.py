"""``cliff``: profiles of one operator each, beside equalities that are as selective."""

from __future__ import annotations

from benchmarks.delivery.answers import check
from benchmarks.delivery.job import DeliverJob, Teller
from benchmarks.delivery.timing import make_matcher, measure
from benchmarks.samples import mean
from benchmarks.workload.operators import BASELINES, OPERATORS, make_feeds


def measure_cliff(job: DeliverJob, teller: Teller) -> None:
    """All-in with results for each operator; ``cliff_ratio`` is that of the dearest."""
    messages = make_feeds(job.seed, job.warmup + job.measured)
    taken: dict[str, float] = {}
    ratios: dict[str, float] = {}
    compared = 0
    for name in (*BASELINES, *(name for name in OPERATORS if name not in BASELINES)):
        operator = OPERATORS[name]
        profiles = operator.profiles(job.number, job.seed)
        matcher = make_matcher(profiles)
        times = measure(matcher, messages[: job.warmup], messages[job.warmup :], job)
        compared += check(matcher, profiles, messages[job.warmup :], job)
        taken[name] = mean(times.all_in)
        against = None
        if name not in BASELINES:
            ratios[name] = taken[name] / taken[operator.against]
            against = f"cliff_{operator.against}_us"
        label = f"{name.replace('_', ' ')} ({mean(times.matches):,.1f} match)"
        teller.figure(f"cliff_{name}_us", label, taken[name], "us", against)
        if name == BASELINES[0]:
            teller.figure("cliff_lxml_parse_us", "cliff: U", mean(times.lxml_parse), "us")
    dearest = max(ratios, key=lambda name: ratios[name])
    teller.figure("cliff_ratio", f"the dearest, {dearest}, over equality", ratios[dearest])
    teller.figure("cliff_checked", "cliff: answers as Saxon gives them", compared)
