"""``python -m benchmarks conformance [DIR]``: how right the profile language is.

Three parts, each where it is asked for: the cases of the W3C QT3 suite in DIR; ``--random``
profiles against other engines (conformance_random.py); ``--real`` messages with profiles written
for them, against Saxon (conformance_real.py).

DIR is the directory of the suite (github.com/w3c/qt3tests), which is not part of this project.
Each case is in or out of the subset by its metadata (what it depends on) and by our parser, never
by name; those in it are run with ``MessageEvaluator(strict=True)`` and held against what the suite
says.  A case that expects a static error and is refused passes.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from benchmarks.benchmark import Benchmark, BenchmarkError, Result, count
from benchmarks.conformance_random import RandomResult, compare_at_random
from benchmarks.conformance_real import RealResult, compare_real
from benchmarks.conformance_result import Outcome, check
from benchmarks.conformance_suite import Case, cases_of, sets_of
from formats.errors import MessageRefused
from formats.text import parse_text
from yfilter.errors import MatchLimitExceeded, ProfileRefused
from yfilter.language.construction import written
from yfilter.language.evaluation import MessageEvaluator
from yfilter.language.item_kinds import ANYTHING, ItemKind
from yfilter.language.nodes import DOCUMENT, Construction, DynamicError, Focus
from yfilter.language.profile_limits import ProfileLimits
from yfilter.language.query_parser import parse_expression

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
_LIMITS = ProfileLimits(
    length_max=1 << 20, steps_max=10_000, clauses_max=10_000, idle_paths_refused=False
)


@dataclass
class SetReport:
    """The cases of one set."""

    passed: int = 0
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
    for name, file in sets_of(directory).items():
        if names and name not in names:
            continue
        report = reports[name] = SetReport()
        for case in cases_of(directory, file):
            _run_case(case, report)
    return reports


def _run_case(case: Case, report: SetReport) -> None:
    if case.beyond:
        report.beyond[case.beyond] += 1
        return
    verdict = _outcome(case)
    if isinstance(verdict, str):
        report.out[verdict] += 1
        return
    try:
        problem = check(case.result, verdict)
    except ProfileRefused as refused:
        report.out[f"what is asserted is out: {refused.reason}"] += 1
        return
    except MatchLimitExceeded as exceeded:
        report.out[f"limit: {exceeded.code}"] += 1
        return
    if problem:
        report.failed[case.name] = problem
    else:
        report.passed += 1


def _outcome(case: Case) -> Outcome | str:
    """What the case yields, or why the parser does not take it."""
    declarations = "".join(
        f'declare namespace {prefix} = "{uri}";'
        if prefix
        else f'declare default element namespace "{uri}";'
        for prefix, uri in case.namespaces.items()
        if uri
    )
    try:
        stream = parse_text(case.document.read_bytes() if case.document else b"<none/>")
    except (MessageRefused, OSError):
        return "document"
    try:
        expression = parse_expression(
            declarations + case.query,
            _LIMITS,
            dict.fromkeys(case.variables, ItemKind.DOCUMENT),
            ItemKind.DOCUMENT if case.document else ANYTHING,
        )
    except ProfileRefused as refused:
        is_error = bool(case.errors)
        return Outcome(error=refused.code) if is_error else f"{refused.code}: {refused.reason}"
    evaluator = MessageEvaluator(stream, strict=True)
    item = DOCUMENT if case.document and not case.variables else None
    variables = {name: [DOCUMENT] for name in case.variables}
    try:
        value = list(evaluator.value(expression, Focus(item, 1, 1, variables)))
        for part in value:  # a constructor is carried out late; its errors count all the same
            if isinstance(part, Construction):
                written(evaluator, [part])
        return Outcome(value, evaluator)
    except DynamicError as error:
        return Outcome(error=error.code)
    except MatchLimitExceeded as exceeded:
        return f"limit: {exceeded.code}"


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
        "benchmark": "conformance",
        "passed": passed,
        "failed": failed,
        "out": out,
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


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "directory", type=Path, nargs="?", metavar="DIR", help="the directory of the QT3 suite"
    )
    parser.add_argument(
        "--random",
        type=count,
        default=0,
        metavar="N",
        help="N random profiles of each level against lxml, elementpath and Saxon",
    )
    parser.add_argument("--seed", type=count, default=1, help="of the random profiles (1)")
    parser.add_argument(
        "--real",
        type=Path,
        metavar="DATA",
        help="folders of messages that profiles were written for, against Saxon",
    )
    parser.add_argument("--set", action="append", default=[], metavar="NAME", help="only this set")
    parser.add_argument("--all", action="store_true", help="all sets, not just the named ones")
    parser.add_argument("--failures", action="store_true", help="list each case that fails")
    parser.add_argument("--reasons", action="store_true", help="list why cases are out")


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
        lines.append(f"passed {whole['passed']}, failed {whole['failed']}, out {whole['out']}")
        return "\n".join(lines)

    def to_json(self) -> Mapping[str, object]:
        return summary(self.reports)


@dataclass(frozen=True, slots=True)
class ConformanceResult:
    """The parts that were asked for."""

    suite: SuiteResult | None
    random: RandomResult | None
    real: RealResult | None

    @property
    def parts(self) -> dict[str, Result]:
        parts = {"suite": self.suite, "random": self.random, "real": self.real}
        return {name: part for name, part in parts.items() if part is not None}

    @property
    def good(self) -> bool:
        return all(part.good for part in self.parts.values())

    def to_text(self) -> str:
        return "\n\n".join(part.to_text() for part in self.parts.values())

    def to_json(self) -> Mapping[str, object]:
        suite = self.suite.to_json() if self.suite is not None else {}
        others = {name: part.to_json() for name, part in self.parts.items() if name != "suite"}
        return {"benchmark": "conformance", **suite, **others}


def run(options: argparse.Namespace) -> ConformanceResult:
    """Runs what the options name; BenchmarkError when that is nothing, or not there."""
    if options.directory is None and not options.random and options.real is None:
        raise BenchmarkError("conformance: nothing to do; give DIR, --random N or --real DATA")
    suite = None
    if options.directory is not None:
        if not (options.directory / "catalog.xml").is_file():
            raise BenchmarkError(f"conformance: no catalog.xml in {options.directory}")
        names = options.set or (() if options.all else NAMED)
        suite = SuiteResult(run_suite(options.directory, names), options.failures, options.reasons)
    if options.real is not None and find_spec("saxonche") is None:
        raise BenchmarkError("conformance: --real needs saxonche")
    return ConformanceResult(
        suite,
        compare_at_random(options.random, options.seed) if options.random else None,
        compare_real(options.real) if options.real is not None else None,
    )


CONFORMANCE = Benchmark(
    name="conformance",
    summary="how right the language is: the W3C QT3 suite, random and real profiles with oracles",
    add_options=add_options,
    quick=("--random", "100"),
    run=run,
)
