"""Rule sets in Schematron as profiles, held against Saxon on messages and mutations of them.

Every schema below a folder is one, unless another says the same.  Its messages are the XML files of
its top folder, and as many mutations of them as asked for: elements left out, doubled or elsewhere,
attributes left out, values changed.  What profiles deliver (assertion, place, text) is compared
with what the stylesheet of the same file says (stylesheet.py).  Where Saxon ends a test with an
error nothing is compared: there the profile has failed, and a standard stylesheet would end.
NaN is no value of the mutations, as Saxon takes ``NaN > 0`` of an untyped value for true.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from random import Random

import lxml.etree

from benchmarks.delivery.saxon import TimedSaxon
from benchmarks.rules.stylesheet import stylesheet
from onyx.rule_sets import folder_reader
from yfilter import Matcher
from yfilter.schematron import RuleSet, SchematronRefused, compile_schematron
from yfilter.schematron.schema_reader import NAMESPACES, read_schema

BYTES_MAX = 200_000
_VALUES = ("", "X", "0", "-1", "99", "2.555", "1000000", "S", "AE", "EUR", "VAT", "2026-01-01", " ")
_OTHERS = (*NAMESPACES, "http://www.w3.org/1999/XSL/Transform")

Fired = Counter[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class RuleSetReport:
    """``messages``: those for which Saxon has no error but in tests; ``fired``: failed assertions,
    and reports that hold, of all of them; ``errors``: tests that Saxon ended with one; ``wrong``:
    by assertion, how often ours said otherwise."""

    file: str
    accepted: int
    total: int
    refused: Mapping[str, int]
    messages: int
    fired: int
    errors: int
    wrong: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RulesResult:
    reports: Sequence[RuleSetReport]
    seed: int

    @property
    def good(self) -> bool:
        return self.wrong == 0

    @property
    def accepted(self) -> float:
        """The share of all assertions."""
        total = sum(report.total for report in self.reports)
        return sum(report.accepted for report in self.reports) / total if total else 1.0

    @property
    def wrong(self) -> int:
        return sum(sum(report.wrong.values()) for report in self.reports)

    def to_text(self) -> str:
        lines = [f"rule sets, seed {self.seed}"]
        for report in self.reports:
            lines.append(
                f"  {report.file}: {report.accepted:,} of {report.total:,} assertions; "
                f"{report.messages:,} messages, {report.fired:,} fired, {report.errors:,} tests "
                f"are errors, {sum(report.wrong.values()):,} wrong"
            )
            lines += [f"    {number:>6} not: {why}" for why, number in report.refused.items()]
            lines += [f"    {number:>6} wrong: {key}" for key, number in report.wrong.items()]
        return "\n".join(lines)

    def to_json(self) -> Mapping[str, object]:
        names = RuleSetReport.__dataclass_fields__
        sets = [{name: getattr(each, name) for name in names} for each in self.reports]
        return {"seed": self.seed, "sets": sets}


def compare_rules(folder: Path, mutations: int, seed: int) -> RulesResult:
    """All rule sets below a folder; without saxonche, what of them is accepted."""
    seen: set[tuple[str, ...]] = set()
    reports = []
    for file in sorted(folder.rglob("*.sch")):
        try:
            rules = compile_schematron(
                file.read_bytes(), file=file.name, read=folder_reader(file.parent, folder)
            )
        except SchematronRefused:  # part of another, most often
            continue
        texts = tuple(rule.text for rule in rules.profiles)
        if rules.total and texts not in seen:
            seen.add(texts)
            messages = list(messages_below(folder / file.relative_to(folder).parts[0], BYTES_MAX))
            reports.append(_compared(folder, file, rules, messages, mutations, seed))
    return RulesResult(reports, seed)


def _compared(
    folder: Path, file: Path, rules: RuleSet, messages: Sequence[bytes], mutations: int, seed: int
) -> RuleSetReport:
    name = str(file.relative_to(folder))
    random = Random(f"{seed} {name}")
    made = [_mutated(random.choice(messages), random) for _ in range(mutations if messages else 0)]
    compared = fired = errors = 0
    wrong = Counter[str]()
    if messages and find_spec("saxonche") is not None:
        for ours, theirs, bad in _both(folder, file, rules, [*messages, *made]):
            compared += 1
            fired += theirs.total()
            errors += len(bad)
            got = Counter({key: n for key, n in ours.items() if key[:2] not in bad})
            wrong.update(key[0] for key in ((got - theirs) + (theirs - got)).elements())
    reasons = Counter(rule.reason.partition(", at ")[0] for rule in rules.refused)
    return RuleSetReport(
        name,
        len(rules.profiles),
        rules.total,
        dict(reasons.most_common()),
        compared,
        fired,
        errors,
        dict(wrong.most_common()),
    )


def _both(
    folder: Path, file: Path, rules: RuleSet, messages: Sequence[bytes]
) -> Iterator[tuple[Fired, Fired, set[tuple[str, str]]]]:
    """What a message fails by our profiles, by Saxon, and which tests are errors to Saxon."""
    matcher = Matcher()
    for rule in rules.profiles:
        matcher.add(rule.text, rule.key)
    accepted = {rule.key for rule in rules.profiles}
    schema = read_schema(file.read_bytes(), file.name, None, folder_reader(file.parent, folder), {})
    with TimedSaxon() as saxon:
        saxon.load([stylesheet(schema, accepted).decode()])
        for message in messages:
            transformed = saxon.transform(_text(message).encode())
            if transformed is None:  # an error in a variable of the schema
                continue
            said = lxml.etree.fromstring(transformed.text.encode())
            bad = {(row.get("key", ""), row.get("at", "")) for row in said.iter("error")}
            yield delivered_by(matcher, message), told_by(said), bad


def told_by(said: lxml.etree._Element) -> Fired:
    """Assertion, place and text of each row that a stylesheet wrote, by their number."""
    return Counter((row.get("key", ""), row.get("at", ""), _spaced(row)) for row in said.iter("f"))


def delivered_by(matcher: Matcher, message: bytes) -> Fired:
    """The same of each result of a message; MatchLimitExceeded."""
    found: Fired = Counter()
    for delivered in matcher.deliver(message):
        if delivered.exceeded is not None:
            raise delivered.exceeded
        for result in delivered.results:
            root = lxml.etree.fromstring(result)
            for number in delivered.numbers:
                key = matcher.id_of(number)
                found[key, root.get("location", ""), _spaced(root[0])] += 1
    return found


def _spaced(element: lxml.etree._Element) -> str:
    return " ".join("".join(map(str, element.itertext())).split())


def _text(message: bytes) -> str:
    return str(lxml.etree.tostring(lxml.etree.fromstring(message), encoding="unicode"))


def messages_below(folder: Path, bytes_max: int) -> Iterator[bytes]:
    """The files of up to ``bytes_max`` below a folder that are named ``.xml`` and are neither a
    Schematron schema nor a stylesheet."""
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() == ".xml" and path.stat().st_size <= bytes_max:
            try:
                root = lxml.etree.fromstring(path.read_bytes())
            except lxml.etree.XMLSyntaxError:
                continue
            if lxml.etree.QName(root).namespace not in _OTHERS:
                yield bytes(lxml.etree.tostring(root))


def _mutated(message: bytes, random: Random) -> bytes:
    root = lxml.etree.fromstring(message)
    for _ in range(random.randrange(1, 6)):
        elements = list(root.iterdescendants("*"))
        if not elements:
            break
        element = random.choice(elements)
        parent = element.getparent()
        assert parent is not None
        change = random.random()
        if change < 0.25:
            parent.remove(element)
        elif change < 0.4:
            parent.insert(parent.index(element), deepcopy(element))
        elif change < 0.5:
            parent.insert(random.randrange(len(parent) + 1), element)
        elif change < 0.7 and element.attrib:
            name = random.choice(list(element.attrib))
            if change < 0.65:
                element.set(name, random.choice(_VALUES))
            else:
                del element.attrib[name]
        elif not len(element):
            element.text = random.choice((*_VALUES, random.choice(elements).text or ""))
    return bytes(lxml.etree.tostring(root, encoding="utf-8"))
