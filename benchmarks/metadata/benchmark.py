"""``python -m benchmarks metadata``: metadata, and rules over it, after the paper on MDV.

All are processor time of one process that reads, checks, stores, filters and writes the messages,
on a disk; medians over batches, which the rule bases take in turn.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import NamedTuple

import pyoxigraph
import trio

from benchmarks import machine
from benchmarks.benchmark import Benchmark, WrongAnswers, positive
from benchmarks.metadata import loops, network, plots
from benchmarks.metadata.workload import (
    KINDS,
    RDF_XML,
    SCHEMA,
    batches,
    referred_to,
    referring,
    rule,
    uri,
)
from benchmarks.report import Report
from benchmarks.samples import median, percentile
from onyx.data_directory import ROWS_FILE
from onyx.metadata import MetadataCache, MetadataProvider
from onyx.metadata.provider import FILTER

BATCH = 100
_LOOPED = 10_000  # rules
_FEW = 1_000  # rules that growth is from
_PORTION = 10_000  # rules added at once
_LATE, _REFERRERS, _QUERIES = 20_000, 10_000, 300
_SENT, _READ_ROUNDS, _READ_BATCH = 100, 5, 10_000  # documents, the most of one question
_BATCHES = (1, 2, 5, 10, 20, 50, 100)  # of the paper's figures
_SHARES = (1, 5, 10, 20, 50)  # percent of the rules that match


class Sizes(NamedTuple):
    rules: int
    few: int
    looped: int
    sample: int
    batches: int
    comp_batch: int
    stored: int
    referrers: int
    repositories: int


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the benchmark."""
    parser.add_argument("--rules", metavar="N", type=positive, default=100_000)
    parser.add_argument(
        "--repositories", metavar="N", type=positive, default=1, help="that share the rules"
    )
    parser.add_argument("--batches", metavar="N", type=positive, default=9, help="of 100 documents")
    parser.add_argument("--directory", metavar="DIR", type=Path, help="on the disk in question")
    parser.add_argument(
        "--plots", metavar="DIR", type=Path, help="draw Figures 11 to 15 there, and nothing else"
    )
    parser.add_argument("--quick", action="store_true", help="few of all, to see it run")


def run(options: argparse.Namespace) -> Report:
    """Measures; raises WrongAnswers where rules match others than they should."""
    few = min(_FEW, options.rules)
    sizes = Sizes(
        options.rules,
        few,
        _LOOPED,
        200,
        options.batches,
        20,
        _LATE,
        _REFERRERS,
        options.repositories,
    )
    if options.quick:
        sizes = Sizes(400, 200, 100, 10, 2, 5, 200, 100, min(options.repositories, 10))
    report = Report("metadata: documents and rules of MDV")
    report.condition("machine", "machine", machine.description())
    report.condition("rules", "rules", sizes.rules)
    report.condition("repositories", "repositories that share them", sizes.repositories)
    with TemporaryDirectory(dir=options.directory) as folder:
        directory = Path(folder)
        if options.plots:
            _plots(report, sizes, directory, options.plots)
            return report
        alone = _documents(report, sizes, directory)
        _loops(report, sizes, directory, alone)
        _stored(report, sizes, directory)
        _referrers(report, sizes, directory)
        _queries(report, directory)
        if not options.quick:
            _network(report, directory)
    report.remark(
        f"us a document, in batches of {BATCH} (COMP: {sizes.comp_batch}) if nothing else is said;"
        " COMP matches a tenth of the rules"
    )
    report.remark(
        f"SPARQL: {sizes.sample} rules, extrapolated to {sizes.rules:,}; SQL to "
        f"{sizes.looped:,} from {sizes.rules:,}"
    )
    return report


# --- documents and rules ------------------------------------------------------------------


class _Base:
    """A provider with rules of one kind, and what has been measured of it."""

    def __init__(self, directory: Path, kind: str, rules: int, repositories: int = 1) -> None:
        self.kind, self.rules = kind, rules
        self.directory = directory / f"{kind}-{rules}"
        self.samples: dict[str, list[float]] = {}
        self._next = 0
        provider = MetadataProvider(self.directory)
        provider.put_schema(SCHEMA, "text/turtle")
        self.rule_us = 0.0
        if rules:
            _progress(f"{rules:,} rules of kind {kind.upper()}")
            began = process_time()
            for first in range(0, rules, _PORTION):
                last = min(first + _PORTION, rules)
                for number in range(repositories):
                    some = range(first + number, last, repositories)
                    texts = [(rule(kind, each), "") for each in some]
                    if texts:
                        provider.add_rules(f"L{number}", texts)
            self.rule_us = (process_time() - began) * 1e6 / rules
        provider.close()
        sizes = [(self.directory / each).stat().st_size for each in (ROWS_FILE, FILTER)]
        self.bytes = sum(sizes)
        self.provider = MetadataProvider(self.directory)

    def batch(self, size: int, percent: int = 10) -> dict[str, bytes]:
        """Documents that are not there and that the next rules match, so many of all if they are
        of kind COMP; where there are no more rules, those of the first are removed."""
        if self.rules and self._next + size > self.rules and self.kind != "comp":
            self._next = 0
        synth_value = self.rules * percent // 100 if self.kind == "comp" else 0
        first, self._next = self._next, self._next + size
        (found,) = batches(first, 1, size, synth_value)
        known = [each for each in found if self.provider.document(each) is not None]
        if known:
            self.provider.remove(known)
        return found

    def register(self, documents: Mapping[str, bytes], what: str, *, dry_run: bool = False) -> None:
        began = process_time()
        outcome = self.provider.register(documents, RDF_XML, dry_run=dry_run)
        self._note(what, began, len(documents))
        if self.rules and what != "update":
            found = sum(len(each.came) for each in outcome.effects.values())
            expected = len(documents)
            if self.kind != "comp" and found != expected:
                raise WrongAnswers(f"{self.kind}: {found} matches of {expected} documents")

    def remove(self, uris: Iterable[str]) -> None:
        gone = list(uris)
        began = process_time()
        self.provider.remove(gone)
        self._note("delete", began, len(gone))

    def _note(self, what: str, began: float, count: int) -> None:
        spent = (process_time() - began) * 1e6 / count
        self.samples.setdefault(what, []).append(spent)

    def median(self, what: str = "register") -> float:
        return median(self.samples[what][1:] or self.samples[what])


def _documents(report: Report, sizes: Sizes, directory: Path) -> float:
    """Gives the microseconds of a document alone, with rules of kind PATH."""
    with ExitStack() as stack:

        def base(kind: str, rules: int) -> _Base:
            made = _Base(directory, kind, rules, sizes.repositories if rules else 1)
            stack.callback(made.provider.close)
            return made

        none = base("none", 0)
        many = {kind: base(kind, sizes.rules) for kind in KINDS}
        few = {kind: base(kind, sizes.few) for kind in KINDS if kind != "comp"}
        _progress("documents")
        parses = []
        for _ in range(sizes.batches + 1):  # the first warms up
            some = none.batch(BATCH)
            parses.append(_parse_us(some))
            none.register(some, "register")
            for each in (*few.values(), *(many[kind] for kind in few)):
                each.register(each.batch(BATCH), "register")
        comp = many["comp"]
        for _ in range(min(3, sizes.batches) + 1):
            comp.register(comp.batch(sizes.comp_batch), "register")
            none.register(none.batch(sizes.comp_batch), "small")
        path = many["path"]
        _change(path, min(sizes.batches, 5) + 1)
        alone = _alone_us(path)
        s = none.median()
        report.figure("parse_us", "pyoxigraph parses a document", median(parses), "us")
        report.figure("s_us", "S: a document read, checked, stored, no rules", s, "us", "parse_us")
        for kind in few:
            report.figure(
                f"{kind}_us",
                f"with rules of kind {kind.upper()}",
                many[kind].median(),
                "us",
                "s_us",
            )
        report.figure("comp_us", "with rules of kind COMP", comp.median(), "us")
        report.figure("s_over_parse", "S over the parse", s / median(parses))
        for kind in few:
            report.figure(f"{kind}_over_s", f"{kind.upper()} over S", many[kind].median() / s)
        matches = sizes.rules // 10
        per_match = (comp.median() - none.median("small")) / matches / s
        report.figure("comp_match_over_s", "a match of a COMP rule over S", per_match)
        growth = {kind: many[kind].median() / few[kind].median() for kind in few}
        report.figure("growth", f"from {sizes.few:,} rules on, the worst", max(growth.values()))
        report.detail("growths", growth)
        first = path.median("first")
        for key, what in (
            ("update_over_register", "update"),
            ("delete_over_register", "delete"),
            ("rehearse_over_register", "rehearse"),
        ):
            report.figure(key, key.replace("_", " ") + ", PATH", path.median(what) / first)
        costs = {kind: many[kind].rule_us for kind in KINDS}
        report.figure("rule_us", "a rule in bulk, the worst", max(costs.values()), "us")
        report.detail("rules_us", costs)
        for kind in ("path", "join"):
            taken = (many[kind].bytes - none.bytes) / sizes.rules
            report.figure(f"{kind}_rule_bytes", f"a {kind.upper()} rule, both files", taken, "B")
        join = many["join"].directory
        many["join"].provider.close()
        _progress("resident memory")
        with get_context("spawn").Pool(1) as pool:
            resident = pool.apply(_resident_mb, (join,))
        report.figure("resident_mb", "resident memory with JOIN rules", resident, "MB")
    return alone


def _change(path: _Base, rounds: int) -> None:
    """Updates, deletions, rehearsals."""
    _progress("updates, deletions, rehearsals")
    for _ in range(rounds):
        some = path.batch(BATCH)
        path.register(some, "rehearse", dry_run=True)
        path.register(some, "first")
        changed = {each: data.replace(b'"600"', b'"700"') for each, data in some.items()}
        path.register(changed, "update")
        path.remove(some)


def _parse_us(documents: Mapping[str, bytes]) -> float:
    began = process_time()
    for where, data in documents.items():
        for _ in pyoxigraph.parse(data, pyoxigraph.RdfFormat.RDF_XML, base_iri=where):
            pass
    return (process_time() - began) * 1e6 / len(documents)


def _resident_mb(directory: Path) -> float:
    """Of a fresh process that has the provider open and has registered documents."""
    with MetadataProvider(directory) as provider:
        for some in batches(10_000_000, 5, BATCH):
            provider.register(some, RDF_XML)
        return machine.resident_bytes() / 1e6


# --- loops, and what is stored ------------------------------------------------------------


def _loops(report: Report, sizes: Sizes, directory: Path, alone: float) -> None:
    path = _Base(directory / "loops", "path", sizes.looped, sizes.repositories)
    none = _Base(directory / "loops", "none", 0)
    _progress("loops")
    size = min(BATCH, sizes.looped // 4)
    for _ in range(min(sizes.batches, sizes.looped // 2 // size)):
        for base in (none, path):
            base.register(base.batch(size), "register")
    python = loops.python_us(sizes.looped)
    filtered = max(path.median() - none.median(), 1.0)
    label = "a loop of Python functions over what PATH adds"
    report.figure("python_loop_ratio", f"{label}, {sizes.looped:,} rules", python / filtered)
    report.figure(
        "python_loop_over_all_in", "the same over all in", python / path.median("register")
    )
    few_alone = _alone_us(path)
    report.detail("alone_few", {"rules": sizes.looped, "us": few_alone})
    report.figure("alone_us", "a document alone, PATH rules", alone, "us")
    sql, sparql = loops.sql_us(sizes.rules), loops.sparql_us(sizes.rules, sizes.sample)
    report.figure("sql_loop_ratio", "a loop of SQL over it", sql / alone)
    report.figure("sparql_loop_ratio", "a loop of SPARQL over it", sparql / alone)
    share = sizes.looped / sizes.rules
    report.figure("sql_loop_few_ratio", f"SQL, {sizes.looped:,} rules", sql * share / few_alone)
    report.figure(
        "sparql_loop_few_ratio", f"SPARQL, {sizes.looped:,} rules", sparql * share / few_alone
    )
    path.provider.close()
    none.provider.close()


def _alone_us(base: _Base) -> float:
    for _ in range(min(100, base.rules // 4)):
        base.register(base.batch(1), "alone")
    return base.median("alone")


def _stored(report: Report, sizes: Sizes, directory: Path) -> None:
    """A rule that comes late, and the filter made anew."""
    rules = min(10_000, sizes.rules)
    base = _Base(directory / "stored", "path", rules)
    _progress(f"{sizes.stored:,} documents")
    spent = base.rule_us * rules
    count = min(1_000, sizes.stored)
    for some in batches(0, sizes.stored // count, count):
        began = process_time()
        base.provider.register(some, RDF_XML)
        spent += (process_time() - began) * 1e6
    base.provider.close()
    (base.directory / FILTER).unlink()
    began = process_time()
    provider = MetadataProvider(base.directory)
    anew = (process_time() - began) * 1e6
    report.figure("rebuild_over_register", "the filter made anew over registering", anew / spent)
    late = []
    for number in range(7):
        text = (
            f"search CycleProvider c register c where c.serverHost contains 'es{10 + number}'"
            f" and c.serverInformation.memory >= {sizes.stored * 9 // 10 + number}"
        )
        began = process_time()
        provider.add_rule("late", text)
        late.append((process_time() - began) * 1e3)
    report.figure("late_rule_ms", f"a late rule, {sizes.stored:,} documents", median(late), "ms")
    provider.close()


def _referrers(report: Report, sizes: Sizes, directory: Path) -> None:
    _progress(f"{sizes.referrers:,} resources that refer to one")
    shared = "http://objectglobe.example/shared.rdf"
    times: dict[str, list[float]] = {"came": [], "changed": [], "left": []}
    with MetadataProvider(directory / "referrers") as provider:
        provider.put_schema(SCHEMA, "text/turtle")
        text = "search CycleProvider c register c where c.serverInformation.memory > 64"
        provider.add_rule("L1", text)
        provider.register({shared: referred_to(32)}, RDF_XML)
        numbers = range(sizes.referrers)
        documents = {uri(each): referring(each, f"{shared}#info") for each in numbers}
        provider.register(documents, RDF_XML)
        for _ in range(3):
            for what, memory in (("came", 128), ("changed", 256), ("left", 32)):
                began = process_time()
                outcome = provider.register({shared: referred_to(memory)}, RDF_XML)
                times[what].append((process_time() - began) * 1e6 / sizes.referrers)
                if len(getattr(outcome.effects["L1"], what)) != sizes.referrers:
                    raise WrongAnswers(f"{what}: not all that refer to it")
    medians = {what: median(each) for what, each in times.items()}
    report.figure(
        "referrer_us", "a referrer of what changes, the worst", max(medians.values()), "us"
    )
    report.detail("referrers_us", medians)


def _queries(report: Report, directory: Path) -> None:
    _progress("queries")
    texts = [rule("path", each) for each in range(_QUERIES)]
    times = []
    with MetadataProvider(directory / "asked") as provider:
        provider.put_schema(SCHEMA, "text/turtle")
        provider.add_rule("L1", "search CycleProvider c register c where c.serverPort > 5000")
        for some in batches(0, 10, BATCH):
            provider.register(some, RDF_XML)
        with MetadataCache(directory / "cache", "L1") as cache:
            for message in provider.changes("L1"):
                cache.apply(message)
            for number, text in enumerate(texts):
                began = process_time()
                answer = cache.query(text)
                times.append((process_time() - began) * 1e6)
                if answer.rows != [(f"{uri(number)}#host",)]:
                    raise WrongAnswers(f"query {number} finds {answer.rows}")
    report.figure("query_us", "a query with an equality, 1,000 documents", median(times), "us")


def _network(report: Report, directory: Path) -> None:
    _progress("a network")
    cached, reader = trio.run(network.measure, directory, _SENT, _READ_ROUNDS, _READ_BATCH)
    label = f"from register until cached, {network.BROKERS} brokers"
    report.figure("register_to_cached_ms", label, median(cached), "ms")
    report.figure("register_to_cached_p95_ms", f"{label}, 95 %", percentile(cached, 95), "ms")
    label = f"an answer while batches of {_READ_BATCH:,} are registered"
    report.figure("reader_wait_ms", f"{label}, 99 %", percentile(reader, 99), "ms")
    report.figure("reader_wait_median_ms", label, median(reader), "ms")


def _plots(report: Report, sizes: Sizes, directory: Path, to: Path) -> None:
    """Costs by batch size of rule bases of a kind; of COMP also by the share that match."""
    figures: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for kind in KINDS:
        for rules in (sizes.rules // 100, sizes.rules // 10, sizes.rules):
            base = _Base(directory, kind, rules)
            name = f"{rules:,} rules"
            figures.setdefault(kind, {})[name] = [
                (n, _cost(base, n)) for n in _BATCHES if n <= rules
            ]
            if kind == "comp" and rules == sizes.rules // 10:
                figures["shares"] = {
                    f"batches of {size}": [(each, _cost(base, size, each)) for each in _SHARES]
                    for size in (1, 10, 100)
                }
            base.provider.close()
            _progress(f"{name} of kind {kind.upper()}: {figures[kind][name]}")
    for kind, costs in figures.items():
        report.detail(f"{kind}_costs_us", costs)
    to.mkdir(parents=True, exist_ok=True)
    (to / "metadata-figures.svg").write_text(plots.picture(figures), encoding="utf-8")


def _cost(base: _Base, size: int, percent: int = 10) -> float:
    """Of a document in batches of this size, the median."""
    what = f"{size} {percent}"
    for _ in range(3 + (8 if base.kind == "comp" else 60) // size):
        base.register(base.batch(size, percent), what)
    return base.median(what)


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"metadata: {text} ...", file=sys.stderr)


METADATA = Benchmark(
    name="metadata",
    summary="documents and rules of MDV: register, filter, update, query",
    add_options=add_options,
    quick=("--quick",),
    run=run,
)
