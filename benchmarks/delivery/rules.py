"""``rules``: the Schematron rules of EN 16931 as profiles, beside their stylesheet in Saxon.

The messages are the example invoices of the checkout, which break no rule, and invoices made of
them by a few changes each, which do.  Both sides get bytes and give results: here the messages that
broke a rule, for each rule; there the report.  What the stylesheet ends with an error for is left
out.  What each profile delivers is held against Saxon's of the same text.  Before, the file is
imported as ``onyx profile import`` does it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from random import Random

import lxml.etree

from benchmarks.benchmark import BenchmarkError
from benchmarks.delivery.answers import check, need_saxon
from benchmarks.delivery.importing import import_seconds
from benchmarks.delivery.job import DeliverJob, Teller
from benchmarks.delivery.saxon import TimedSaxon, Transformed
from benchmarks.delivery.timing import make_matcher, measure
from benchmarks.samples import mean
from yfilter.schematron import compile_schematron

_BYTES_MAX = 50_000
_CHANGES = 3
_SECONDS_LEAST = 2
_WARMUP_ROUNDS = 10
_VALUES = ("", "X", "0", "-1", "99", "2.555", "1000000", "S", "AE", "EUR", "XX", "VAT", "20260101")


def measure_rules(job: DeliverJob, teller: Teller) -> None:
    """Milliseconds an invoice, both sides from bytes to results."""
    need_saxon()
    folder = Path(job.rules) / job.syntax
    name = f"EN16931-{job.syntax.upper()}-validation"
    try:
        schema = folder / "schematron" / "preprocessed" / f"{name}-preprocessed.sch"
        rules = compile_schematron(schema.read_bytes(), file=schema.name)
        examples = _examples(folder / "examples")
    except OSError as error:
        raise BenchmarkError(f"no checkout of the rules: {error}") from None
    profiles = [rule.text for rule in rules.profiles]
    refused = Counter(rule.reason for rule in rules.refused)
    imported = import_seconds(schema, rules)
    matcher = make_matcher(profiles)
    with TimedSaxon(job.cpu_clock) as saxon:
        saxon.load(folder / "xslt" / f"{name}.xslt")
        for example in examples:
            saxon.transform(example, _WARMUP_ROUNDS)
        messages, before = _changed(examples, saxon, job)
        times = measure(matcher, examples * 3, messages, job)
        messages = messages[: len(times.all_in)]
        after = [saxon.transform(message) for message in messages]
    # Before and after, for a machine that slows down; what was quicker counts.
    theirs = min((before[: len(messages)], [one for one in after if one]), key=_both_us)
    compared = check(matcher, profiles, messages, _all_of(job))
    key = "rules" if job.syntax == "cii" else f"rules_{job.syntax}"
    label = f"rules, {job.syntax.upper()}"
    teller.figure(f"{key}_number", label, rules.total)
    teller.figure(f"{key}_refused", f"{label}: of which refused", sum(refused.values()))
    teller.detail(f"{key}_refused_because", dict(refused))
    for step, seconds in imported._asdict().items():
        teller.figure(f"{key}_{step}_per_s", f"{label}: {step} a second", rules.total / seconds)
    per_s = rules.total / sum(imported)
    teller.figure(f"{key}_imported_per_s", f"{label}: imported a second, all three", per_s)
    size = mean([len(message) for message in messages])
    teller.figure(f"{key}_bytes", f"{label}: bytes an invoice", size)
    teller.figure(f"{key}_matches", f"{label}: rules broken by an invoice", mean(times.matches))
    saxon_key = f"saxon_{key}_ms"
    teller.figure(saxon_key, f"{label}: Saxon, parse and stylesheet", _both_us(theirs) / 1000, "ms")
    transform_us = mean([one.us for one in theirs])
    teller.figure(f"saxon_{key}_transform_ms", "the stylesheet alone", transform_us / 1000, "ms")
    teller.figure(f"{key}_ms", f"{label}: ours", mean(times.all_in) / 1000, "ms", saxon_key)
    teller.figure(f"{key}_again_ms", "seen before", mean(times.all_in_again) / 1000, "ms")
    teller.figure(f"{key}_lxml_parse_us", f"{label}: U", mean(times.lxml_parse), "us")
    teller.figure(f"{key}_checked", f"{label}: answers as Saxon gives them", compared)


def _both_us(times: Sequence[Transformed]) -> float:
    return mean([one.parse_us + one.us for one in times])


def _all_of(job: DeliverJob) -> DeliverJob:
    """Each rule is checked, on each example; of a quick job not."""
    return job if job.seconds < _SECONDS_LEAST else replace(job, sample=10_000, checked=20)


def _examples(folder: Path) -> list[bytes]:
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() == ".xml")
    messages = [path.read_bytes() for path in paths if path.stat().st_size <= _BYTES_MAX]
    if not messages:
        raise BenchmarkError(f"no invoices in {folder}")
    return messages


def _changed(
    examples: Sequence[bytes], saxon: TimedSaxon, job: DeliverJob
) -> tuple[list[bytes], list[Transformed]]:
    """Invoices that the stylesheet takes, and how long each takes."""
    random = Random(f"invoices {job.seed}")
    messages: list[bytes] = []
    times: list[Transformed] = []
    while len(messages) < job.measured:
        example = examples[len(messages) % len(examples)]
        message = _change(example, random)
        if transformed := saxon.transform(message):
            messages.append(message)
            times.append(transformed)
    return messages, times


def _change(invoice: bytes, random: Random) -> bytes:
    """The invoice with some elements left out, twice there, or with another value."""
    root = lxml.etree.fromstring(invoice)
    for _ in range(random.randrange(_CHANGES + 1)):
        element = random.choice(list(root.iterdescendants("*")))
        parent = element.getparent()
        change = random.random()
        if parent is None:
            continue
        if change < 0.3:
            parent.remove(element)
        elif change < 0.5:
            parent.insert(parent.index(element), deepcopy(element))
        elif change < 0.7 and element.attrib:
            element.set(random.choice(list(element.attrib)), random.choice(_VALUES))
        elif not len(element):
            element.text = random.choice(_VALUES)
    # Distinct even without a change: a message that the engine has not seen.
    root.append(lxml.etree.Comment(f" {random.getrandbits(48):x} "))
    return bytes(lxml.etree.tostring(root, encoding="utf-8"))
