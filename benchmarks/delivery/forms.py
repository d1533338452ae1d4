"""``cliff``, its second group: profiles of one form each, beside a loop of compiled XPaths.

Onyx and lxml take turns with the same messages, of which each is new to both.  The loop evaluates
at most ``_LOOPED`` of the profiles, its time without parsing is scaled by the number of all, and
its answers must be those of Onyx.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from itertools import islice
from math import exp, log
from time import perf_counter

import lxml.etree

from benchmarks.benchmark import WrongAnswers
from benchmarks.delivery.job import DeliverJob, Teller
from benchmarks.delivery.timing import delivered, make_matcher
from benchmarks.samples import mean
from benchmarks.workload.forms import FORM_EVERYWHERE, FORMS, Form, form_messages

_LOOPED = 100
_MEASURED = 50
_SHARE = 0.1
"""Of the job's seconds, for each form to warm up, and again to be measured."""


def measure_forms(job: DeliverJob, teller: Teller) -> None:
    """All-in of each form beside the loop; how dear the dearest is, beside its equality."""
    names = [*dict.fromkeys(FORMS[name].against for name in job.forms), *job.forms]
    taken: dict[str, float] = {}
    over_lxml: dict[str, float] = {}
    compared = 0
    scaled = f", lxml's loop on {_LOOPED} scaled" if job.number > _LOOPED else ""
    for name in dict.fromkeys(names):
        taken[name], over_lxml[name], matches, checked = _measure(FORMS[name], job)
        compared += checked
        label = name.replace("_", " ")
        against = f"form_{FORMS[name].against}_us" if name != FORMS[name].against else None
        teller.figure(
            f"form_{name}_us", f"{label} ({matches:,.1f} match)", taken[name], "us", against
        )
        teller.figure(f"form_{name}_over_lxml", f"{label}, times as fast{scaled}", over_lxml[name])
    over_lxml.pop(FORM_EVERYWHERE, None)
    least = min(over_lxml, key=over_lxml.__getitem__)
    geomean = exp(mean([log(ratio) for ratio in over_lxml.values()]))
    teller.figure("forms_over_lxml_geomean", "all forms, times as fast as lxml", geomean)
    teller.figure("forms_over_lxml_least", f"the least, {least}", over_lxml[least])
    ratios = {name: taken[name] / taken[FORMS[name].against] for name in taken}
    dearest = max(ratios, key=ratios.__getitem__)
    teller.figure("cliff_ratio", f"the dearest form, {dearest}, over equality", ratios[dearest])
    teller.figure("cliff_checked", "forms: answers as lxml gives them", compared)


def _measure(form: Form, job: DeliverJob) -> tuple[float, float, float, int]:
    """Microseconds a message, times as fast as lxml, matches a message, answers compared."""
    profiles = form.profiles(job.number, job.elements, job.seed)
    matcher = make_matcher([profile for profile, _ in profiles])
    looped = range(0, job.number, -(-job.number // _LOOPED))
    xpaths = [lxml.etree.XPath(f"boolean({profiles[place][1]})") for place in looped]
    messages = form_messages(form.name, job.elements, job.seed)
    clock = job.clock()
    ours: list[float] = []
    theirs: list[float] = []
    matches = 0

    def deliver(message: bytes) -> tuple[set[int], float]:
        start = clock()
        found = list(delivered(matcher, message))
        us = (clock() - start) / 1000
        return {number for numbers, _ in found for number in numbers}, us

    for message in _until(islice(messages, job.warmup), job.seconds * _SHARE):
        deliver(message)
    gc.collect()
    for message in _until(islice(messages, min(job.measured, _MEASURED)), job.seconds * _SHARE):
        numbers, us = deliver(message)
        ours.append(us)
        matches += len(numbers)
        start = clock()
        tree = lxml.etree.fromstring(message)
        parsed = clock()
        answers = [xpath(tree) for xpath in xpaths]
        loop = (clock() - parsed) * job.number / len(xpaths)
        theirs.append((parsed - start + loop) / 1000)
        found = {int(matcher.id_of(number)) for number in numbers}
        for place, answer in zip(looped, answers, strict=True):
            if answer != (place in found):
                raise WrongAnswers(f"by lxml {answer}: {profiles[place][0]} on {message[:500]!r}")
    return mean(ours), mean(theirs) / mean(ours), matches / len(ours), len(ours) * len(xpaths)


def _until(messages: Iterator[bytes], seconds: float) -> Iterator[bytes]:
    """One message after the other until the time is up, but one at least."""
    end = perf_counter() + seconds
    for message in messages:
        yield message
        if perf_counter() > end:
            return
