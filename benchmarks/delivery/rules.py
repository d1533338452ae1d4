"""``rules``: a Schematron rule set as profiles, beside its stylesheet in Saxon.

A rule set is a folder.  Of the schemas below it the one with most assertions is measured, beside
the stylesheet whose name is most like the schema's; a folder without one gets a stylesheet written
by ``benchmarks.rules.stylesheet``.  The other XML files are the messages, with a few changes each.
Both sides get bytes and give results: here the messages that broke a rule, for each rule; there the
report.  Messages on which the stylesheet ends with an error are left out.  The results of each
profile are held against Saxon's of the same text.  Before, the file is imported as ``onyx profile
import`` does it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from difflib import SequenceMatcher
from operator import itemgetter
from pathlib import Path
from random import Random

import lxml.etree

from benchmarks.benchmark import BenchmarkError
from benchmarks.delivery.answers import check, need_saxon
from benchmarks.delivery.importing import import_seconds
from benchmarks.delivery.job import DeliverJob, Teller
from benchmarks.delivery.saxon import TimedSaxon, Transformed
from benchmarks.delivery.timing import make_matcher, measure
from benchmarks.rules.comparison import messages_below
from benchmarks.rules.stylesheet import stylesheet
from benchmarks.samples import mean
from onyx.rule_sets import folder_reader
from yfilter.schematron import RuleSet, SchematronRefused, compile_schematron
from yfilter.schematron.schema_reader import Schema, read_schema

_BYTES_MAX = 50_000
_CHANGES = 3
_SECONDS_LEAST = 2
_WARMUP_ROUNDS = 10
_VALUES = ("", "X", "0", "-1", "99", "2.555", "1000000", "S", "AE", "EUR", "XX", "VAT", "20260101")


def measure_rules(job: DeliverJob, teller: Teller) -> None:
    """Milliseconds an invoice, both sides from bytes to results."""
    need_saxon()
    folder = Path(job.rules)
    try:
        file, schema = _schema(folder)
        read = folder_reader(file.parent, folder)
        rules = compile_schematron(file.read_bytes(), file=file.name, read=read)
        examples = _examples(folder)
    except OSError as error:
        raise BenchmarkError(f"no rule set: {error}") from None
    profiles = [rule.text for rule in rules.profiles]
    refused = Counter(rule.reason for rule in rules.refused)
    imported = import_seconds(file, folder, rules)
    matcher = make_matcher(profiles)
    with TimedSaxon(job.cpu_clock) as saxon:
        saxon.load(_stylesheet(folder, file, schema, rules))
        for example in examples:
            saxon.transform(example, _WARMUP_ROUNDS)
        messages, before = _changed(examples, saxon, job)
        times = measure(matcher, examples * 3, messages, job)
        messages = messages[: len(times.all_in)]
        after = [saxon.transform(message) for message in messages]
    # Before and after, for a machine that slows down; what was quicker counts.
    theirs = min((before[: len(messages)], [one for one in after if one]), key=_both_us)
    compared = check(matcher, profiles, messages, _all_of(job))
    teller.figure("rules_number", "rules", rules.total)
    teller.figure("rules_refused", "rules: of which refused", sum(refused.values()))
    teller.detail("rules_refused_because", dict(refused))
    for step, seconds in imported._asdict().items():
        teller.figure(f"rules_{step}_per_s", f"rules: {step} a second", rules.total / seconds)
    per_s = rules.total / sum(imported)
    teller.figure("rules_imported_per_s", "rules: imported a second, all three", per_s)
    size = mean([len(message) for message in messages])
    teller.figure("rules_bytes", "rules: bytes an invoice", size)
    teller.figure("rules_matches", "rules: rules broken by an invoice", mean(times.matches))
    saxon_key = "saxon_rules_ms"
    teller.figure(saxon_key, "rules: Saxon, parse and stylesheet", _both_us(theirs) / 1000, "ms")
    transform_us = mean([one.us for one in theirs])
    teller.figure("saxon_rules_transform_ms", "the stylesheet alone", transform_us / 1000, "ms")
    teller.figure("rules_ms", "rules: ours", mean(times.all_in) / 1000, "ms", saxon_key)
    teller.figure("rules_again_ms", "seen before", mean(times.all_in_again) / 1000, "ms")
    teller.figure("rules_lxml_parse_us", "rules: U", mean(times.lxml_parse), "us")
    teller.figure("rules_checked", "rules: answers as Saxon gives them", compared)


def _both_us(times: Sequence[Transformed]) -> float:
    return mean([one.parse_us + one.us for one in times])


def _all_of(job: DeliverJob) -> DeliverJob:
    """Each rule is checked, on each example; of a quick job not."""
    return job if job.seconds < _SECONDS_LEAST else replace(job, sample=10_000, checked=20)


def _schema(folder: Path) -> tuple[Path, Schema]:
    """The schema below a folder that has most assertions, the last of several."""
    found = []
    for file in sorted(folder.rglob("*.sch")):
        read = folder_reader(file.parent, folder)
        with suppress(SchematronRefused):  # part of another, most often
            schema = read_schema(file.read_bytes(), file.name, None, read, {})
            checks = sum(len(rule.checks) for each in schema.patterns for rule in each.rules)
            found.append((checks, file, schema))
    if not found:
        raise BenchmarkError(f"no schema in {folder}")
    _, file, schema = max(found, key=itemgetter(0, 1))
    return file, schema


def _stylesheet(folder: Path, file: Path, schema: Schema, rules: RuleSet) -> Path | Sequence[str]:
    files = sorted(folder.rglob("*.xsl*"))
    if not files:
        return [stylesheet(schema, {rule.key for rule in rules.profiles}).decode()]
    return max(files, key=lambda path: SequenceMatcher(None, path.name, file.name).ratio())


def _examples(folder: Path) -> list[bytes]:
    messages = list(messages_below(folder, _BYTES_MAX))
    if not messages:
        raise BenchmarkError(f"no messages in {folder}")
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
