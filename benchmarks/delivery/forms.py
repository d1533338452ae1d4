"""``cliff``, its second group: profiles of one form each, beside a loop of compiled XPaths.

Onyx, then lxml, takes the same messages, of which each is new to both.  The loop evaluates
at most ``_LOOPED`` of the profiles, its time without parsing is scaled by the number of all, and
its answers must be those of Onyx.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
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
        run = _measure(FORMS[name], job)
        taken[name], matches = mean(run.ours), mean(run.matches)
        over_lxml[name] = mean(run.theirs) / taken[name]
        compared += run.compared
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


class _Run:
    """The times of the messages of one form, in microseconds, and the profiles that matched."""

    def __init__(self, form: Form, job: DeliverJob) -> None:
        self._profiles = form.profiles(job.number, job.elements, job.seed)
        self._matcher = make_matcher([profile for profile, _ in self._profiles])
        self._looped = range(0, job.number, -(-job.number // _LOOPED))
        self._xpaths = [
            lxml.etree.XPath(f"boolean({self._profiles[place][1]})") for place in self._looped
        ]
        self._clock = job.clock()
        self.compared = 0
        self.ours: list[float] = []
        self.theirs: list[float] = []
        self.matches: list[int] = []

    def warm_up(self, messages: Iterable[bytes]) -> None:
        """By more messages, and nothing counts that was measured before."""
        for message in messages:
            list(delivered(self._matcher, message))
        self.ours, self.theirs, self.matches = [], [], []
        gc.collect()

    def measure(self, messages: Iterable[bytes]) -> None:
        """Onyx, then lxml, which is not to cost Onyx its caches; WrongAnswers if they differ."""
        found = []
        for message in messages:
            start = self._clock()
            results = list(delivered(self._matcher, message))
            self.ours.append((self._clock() - start) / 1000)
            numbers = {int(self._matcher.id_of(each)) for one, _ in results for each in one}
            found.append((message, numbers))
        self.matches += [len(numbers) for _, numbers in found]
        for message, numbers in found:
            self._ask_lxml(message, numbers)

    def _ask_lxml(self, message: bytes, numbers: set[int]) -> None:
        start = self._clock()
        tree = lxml.etree.fromstring(message)
        parsed = self._clock()
        answers = [xpath(tree) for xpath in self._xpaths]
        loop = (self._clock() - parsed) * len(self._profiles) / len(answers)
        self.theirs.append((parsed - start + loop) / 1000)
        for place, answer in zip(self._looped, answers, strict=True):
            if answer != (place in numbers):
                profile = self._profiles[place][0]
                raise WrongAnswers(f"by lxml {answer}: {profile} on {message[:500]!r}")
        self.compared += len(answers)


def _measure(form: Form, job: DeliverJob) -> _Run:
    """Where one message takes all the time that there is, it counts, and no other is measured."""
    run = _Run(form, job)
    messages = form_messages(form, job.elements, job.seed)
    seconds = job.seconds * _SHARE
    run.measure(islice(messages, 1))
    if run.ours[0] < seconds * 1e6:
        run.warm_up(_until(islice(messages, job.warmup), seconds))
        run.measure(_until(islice(messages, min(job.measured, _MEASURED)), seconds))
    return run


def _until(messages: Iterator[bytes], seconds: float) -> Iterator[bytes]:
    """One message after the other until the time is up, but one at least."""
    end = perf_counter() + seconds
    for message in messages:
        yield message
        if perf_counter() > end:
            return
