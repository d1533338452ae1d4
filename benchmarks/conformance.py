"""The cases of the W3C QT3 suite, run and counted.

The suite (github.com/w3c/qt3tests) is not part of this project.  Each case is in or out of the
subset by its metadata (what it depends on) and by our parser, never by name:

==============================  ==============================================================
the parser says                 the case is
==============================  ==============================================================
``unsupported``, a limit        out, unless it names an error, as below
another refusal                 in, if it expects an error; passed, if the one that the refusal
                                names, or one that it is (``REFUSALS``); else out, as for a
                                function that is unknown where that is not what is expected
``error``                       in: its error is what the suite has to expect
nothing                         in: run with ``Evaluation(strict=True)`` and held against
                                what the suite says, the codes of errors included
==============================  ==============================================================

What is in and yields a value is run a second time as a profile by ``Matcher``, and has to deliver
what operators make of it alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.conformance_result import ACCEPTED, LIMITS, Outcome, check
from benchmarks.conformance_suite import Case, cases_of, sets_of
from demo.saxon import prolog_and_body
from formats.element_stream import ElementStream
from formats.errors import MessageRefused
from formats.text import parse_text
from yfilter import Matcher
from yfilter.errors import MatchLimitExceeded, ProfileRefused
from yfilter.language.evaluator import written
from yfilter.language.functions import ANYTHING, ItemKind
from yfilter.language.nodes import DOCUMENT, Construction, DynamicError
from yfilter.language.profile_limits import MatchLimits
from yfilter.language.query_ast import Profile
from yfilter.language.query_parser import parse_anew, parse_expression
from yfilter.operators.evaluation import Evaluation

# The sets whose coverage the goal names: paths, axes, predicates, comparisons, FLWOR, constructors.
NAMED = (
    "prod-AxisStep",
    "prod-AxisStep.abbr",
    "prod-AxisStep.unabbr",
    "prod-PathExpr",
    "prod-Predicate",
    "prod-NameTest",
    "prod-NodeTest",
    "prod-GeneralComp.eq",
    "prod-GeneralComp.ne",
    "prod-GeneralComp.lt",
    "prod-GeneralComp.le",
    "prod-GeneralComp.gt",
    "prod-GeneralComp.ge",
    "prod-ForClause",
    "prod-LetClause",
    "prod-WhereClause",
    "prod-DirElemConstructor",
    "prod-DirElemContent",
    "prod-DirAttributeList",
)


# The errors of XQuery that a refusal is, by its code; one that is missing says what we have not.
REFUSALS = {
    "syntax": frozenset(
        ("XPST0003", "XQST0022", "XQST0070", "XQST0090", "XQST0103", "XQST0118", "XQST0085")
    ),
    "undeclared-prefix": frozenset(("XPST0081", "XQST0079")),
    "unbound-variable": frozenset(("XPST0008", "XQST0054")),
    "duplicate-variable": frozenset(("XQST0049", "XQST0089", "XQST0039")),
    "duplicate-attribute": frozenset(("XQST0040",)),
    "duplicate-declaration": frozenset(
        (
            *("XQST0032", "XQST0033", "XQST0034", "XQST0038", "XQST0055", "XQST0065"),
            *("XQST0066", "XQST0067", "XQST0068", "XQST0069", "XQST0071"),
        )
    ),
    "no-context": frozenset(("XPDY0002", "XPST0008", "XPST0005")),
    "unknown-function": frozenset(("XPST0017",)),
    "arity": frozenset(("XPST0017",)),
    "type": frozenset(
        (
            *("XPTY0004", "XPST0005", "XPTY0018", "XPTY0019", "XPTY0020", "FORG0006"),
            *("XPST0051", "XQTY0024"),
        )
    ),
    "pattern": frozenset(("FORX0001", "FORX0002", "FORX0003", "FORX0004")),
    "number": frozenset(("FOAR0002", "FOCA0003", "FOCA0006")),
}
REFUSALS["idle-path"] = REFUSALS["type"]
# The error in XQuery, where a refusal names it.
_CODE = re.compile(r"\(([A-Z]{4}[0-9]{4}|Q\{[^{}]*\}\S+)\)$")
_BEYOND = {"FODT0001": "years from 1 to 9999", "FODT0002": "durations of 2 ** 31 months"}


@dataclass
class SetReport:
    """The cases of one set; ``delivered``: how many were run as profiles, too."""

    passed: int = 0
    delivered: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    out: Counter[str] = field(default_factory=Counter)  # by reason, parser's refusals
    beyond: Counter[str] = field(default_factory=Counter)  # by reason, metadata

    @property
    def coverage(self) -> float:
        """Of the cases that the metadata leaves, the part that the parser takes."""
        inside = self.passed + len(self.failed)
        return inside / (inside + self.out.total()) if inside else 0.0


def run_suite(directory: Path, names: Sequence[str]) -> dict[str, SetReport]:
    """Runs the sets; all of them when no names are given."""
    reports = {}
    matcher = Matcher(limits=MatchLimits())
    for name, file in sets_of(directory).items():
        if names and name not in names:
            continue
        report = reports[name] = SetReport()
        for case in cases_of(directory, file):
            _run_case(case, report, matcher)
    return reports


def _run_case(case: Case, report: SetReport, matcher: Matcher) -> None:
    if case.beyond:
        report.beyond[case.beyond] += 1
        return
    try:
        stream = parse_text(case.document.read_bytes() if case.document else b"<none/>")
        stream.accepted = ACCEPTED
        verdict = _outcome(case, stream)
        problem = "" if isinstance(verdict, str) else check(case.result, verdict, case.home)
        if not problem and not isinstance(verdict, str) and not verdict.errors:
            problem = _delivery(case, stream, matcher, report)
    except (MessageRefused, OSError):
        verdict, problem = "document", ""
    except ProfileRefused as refused:
        verdict, problem = f"what is asserted is out: {refused.reason}", ""
    except MatchLimitExceeded as exceeded:
        verdict, problem = f"limit: {exceeded.code}", ""
    if problem and not isinstance(verdict, str) and len(verdict.errors) == 1:
        limit = _BEYOND.get(min(verdict.errors))
        verdict = f"limit: {limit}" if limit else verdict
    if isinstance(verdict, str):
        report.out[verdict] += 1
    elif problem:
        report.failed[case.name] = problem
    else:
        report.passed += 1


def _declarations(case: Case) -> str:
    return "".join(
        f'declare namespace {prefix} = "{uri}";'
        if prefix
        else f'declare default element namespace "{uri}";'
        for prefix, uri in case.namespaces.items()
        if uri
    )


def _outcome(case: Case, stream: ElementStream) -> Outcome | str:
    """What the case yields, or why the parser does not take it."""
    try:
        expression = parse_expression(
            _declarations(case) + case.query,
            LIMITS,
            dict.fromkeys(case.variables, ItemKind.DOCUMENT),
            ItemKind.DOCUMENT if case.document else ANYTHING,
        )
    except ProfileRefused as refused:
        errors = REFUSALS.get(refused.code)
        if code := _CODE.search(refused.reason):
            errors = frozenset((code[1],))
        if refused.code == "error":  # what any message would be answered with
            return Outcome(errors=errors or frozenset(("?",)))
        if refused.code == "unknown-function" and "XPST0017" not in case.errors:
            errors = None
        if case.errors and errors:
            return Outcome(errors=errors)
        return f"{refused.code}: {refused.reason}"
    evaluation = Evaluation(stream, strict=True)
    item = DOCUMENT if case.document and not case.variables else None
    variables = {name: [DOCUMENT] for name in case.variables}
    try:
        value = list(evaluation.value(expression, item, variables))
        for part in value:  # a constructor is carried out late; its errors count all the same
            if isinstance(part, Construction):
                written(evaluation.trees, [part])
        return Outcome(value, evaluation)
    except DynamicError as error:
        return Outcome(errors=frozenset((error.code,)))


def _delivery(case: Case, stream: ElementStream, matcher: Matcher, report: SetReport) -> str:
    """What is wrong with the case as a profile: its value in an element for each message."""
    prolog, body = prolog_and_body(case.query)
    bindings = "".join(f"let ${name} := / " for name in case.variables)
    text = (
        f"{_declarations(case)}{prolog} for $onyx in /* {bindings}return <onyx>{{{body}\n}}</onyx>"
    )
    try:
        profile = Profile(parse_anew(text, replace(LIMITS, idle_paths_refused=True)), text)
    except ProfileRefused:
        return ""  # it asks for a context item, or for what can never be there
    evaluation = Evaluation(stream, strict=True)
    try:
        (item,) = evaluation.value(profile.body)
        wanted = written(evaluation.trees, [item])
    except DynamicError:
        return ""  # a value that no element holds
    report.delivered += 1
    matcher.add(profile, case.name)
    try:
        found = [one for made in matcher.deliver(stream) for one in made.results]
    finally:
        matcher.remove(case.name)
    return "" if found == [wanted] else f"delivered {found!r:.80}, not {wanted!r:.80}"


def _lines(reports: Mapping[str, SetReport]) -> Iterator[str]:
    yield f"{'set':<34}{'pass':>6}{'fail':>6}{'out':>6}{'beyond':>8}{'coverage':>10}"
    for name, report in reports.items():
        yield (
            f"{name:<34}{report.passed:>6}{len(report.failed):>6}{report.out.total():>6}"
            f"{report.beyond.total():>8}{report.coverage:>10.1%}"
        )


def summary(reports: Mapping[str, SetReport]) -> dict[str, object]:
    """The report as one object."""
    passed = sum(report.passed for report in reports.values())
    failed = sum(len(report.failed) for report in reports.values())
    out = sum(report.out.total() for report in reports.values())
    return {
        "passed": passed,
        "failed": failed,
        "out": out,
        "delivered": sum(report.delivered for report in reports.values()),
        "coverage": round((passed + failed) / max(1, passed + failed + out), 4),
        "sets": {
            name: {
                "passed": report.passed,
                "failed": report.failed,
                "out": dict(report.out),
                "beyond": dict(report.beyond),
                "coverage": round(report.coverage, 4),
            }
            for name, report in reports.items()
        },
    }


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """The reports of the sets, with as much of them as was asked for."""

    reports: Mapping[str, SetReport]
    failures: bool
    reasons: bool

    @property
    def good(self) -> bool:
        return not self.to_json()["failed"]

    def to_text(self) -> str:
        whole = self.to_json()
        lines = [*_lines(self.reports)]
        for name, report in self.reports.items():
            if self.failures:
                lines += (f"{name} {case}: {why}" for case, why in report.failed.items())
            if self.reasons:
                lines += (f"{name}: {n} x {reason}" for reason, n in report.out.most_common())
        lines.append(
            f"passed {whole['passed']}, failed {whole['failed']}, out {whole['out']}; "
            f"{whole['delivered']} of them delivered as well"
        )
        return "\n".join(lines)

    def to_json(self) -> Mapping[str, object]:
        return summary(self.reports)
