"""``python -m benchmarks language [DIR]``: how right the language is.

Parts, each where it is asked for:

===========  ===========================================================  ======================
option       what is run                                                  held against
===========  ===========================================================  ======================
``DIR``      the cases of the W3C QT3 suite (conformance.py)              what the suite says
``DIR``      the queries of XMark, which are there, too (xmark.py)        the same, and Saxon
``--random`` profiles by chance on messages (conformance_random.py),      lxml, elementpath, Saxon
             with ``--corpora`` also on those of folders
``--real``   profiles for real messages (conformance_real.py)             Saxon
``--rules``  rule sets in Schematron, on mutations (rules/comparison.py)  Saxon
===========  ===========================================================  ======================
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from benchmarks.benchmark import Benchmark, BenchmarkError, Result, count
from benchmarks.conformance import NAMED, SuiteResult, run_suite
from benchmarks.conformance_random import compare_at_random
from benchmarks.conformance_real import compare_real
from benchmarks.corpus_queries import FOLDERS
from benchmarks.rules.comparison import compare_rules
from benchmarks.xmark import run_xmark


@dataclass(frozen=True, slots=True)
class LanguageResult:
    """The parts that were asked for, by name; ``figures``: those that stand for the whole."""

    parts: Mapping[str, Result]
    figures: Mapping[str, object]

    @property
    def good(self) -> bool:
        return all(part.good for part in self.parts.values())

    def to_text(self) -> str:
        lines = [f"{name:<24}{value}" for name, value in self.figures.items()]
        return "\n\n".join([*(part.to_text() for part in self.parts.values()), "\n".join(lines)])

    def to_json(self) -> Mapping[str, object]:
        parts = {name: part.to_json() for name, part in self.parts.items()}
        return {"benchmark": "language", **self.figures, **parts}


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
    parser.add_argument(
        "--corpora",
        type=Path,
        metavar="DATA",
        help="with --random: as many for the messages of each of the folders in there",
    )
    parser.add_argument(
        "--seed", type=count, default=1, help="of the random profiles and the mutations (1)"
    )
    parser.add_argument(
        "--real",
        type=Path,
        metavar="DATA",
        help="folders of messages that profiles were written for, against Saxon",
    )
    parser.add_argument(
        "--rules",
        type=Path,
        metavar="FOLDER",
        help="folders of rule sets in Schematron and messages, against Saxon",
    )
    parser.add_argument(
        "--mutations",
        type=count,
        default=1_000,
        metavar="N",
        help="of the messages, for each rule set (1000)",
    )
    parser.add_argument("--set", action="append", default=[], metavar="NAME", help="only this set")
    parser.add_argument("--all", action="store_true", help="all sets, not just the named ones")
    parser.add_argument("--failures", action="store_true", help="list each case that fails")
    parser.add_argument("--reasons", action="store_true", help="list why cases are out")


def run(options: argparse.Namespace) -> LanguageResult:
    """Runs what the options name; BenchmarkError when that is nothing, or not there."""
    asked = options.directory, options.real, options.rules
    if not options.random and not any(asked):
        raise BenchmarkError(
            "language: nothing to do; give DIR, --random N, --real DATA or --rules FOLDER"
        )
    if options.real is not None and find_spec("saxonche") is None:
        raise BenchmarkError("language: --real needs saxonche")
    parts: dict[str, Result] = {}
    figures: dict[str, object] = {}
    if options.directory is not None:
        if not (options.directory / "catalog.xml").is_file():
            raise BenchmarkError(f"language: no catalog.xml in {options.directory}")
        names = options.set or (() if options.all else NAMED)
        suite = SuiteResult(run_suite(options.directory, names), options.failures, options.reasons)
        parts["suite"] = suite
        figures["qt3_failed"] = suite.to_json()["failed"]
        figures["qt3_coverage"] = suite.to_json()["coverage"]
        if (xmark := run_xmark(options.directory)) is not None:
            parts["xmark"] = xmark
            figures["xmark_told"] = xmark.told
    if options.random:
        parts["random"] = compare_at_random(options.random, options.seed)
        for folder in FOLDERS if options.corpora else ():
            if (folder_of := options.corpora / folder).is_dir():
                parts[folder] = compare_at_random(options.random, options.seed, folder_of)
    if options.real is not None:
        parts["real"] = compare_real(options.real)
    if options.rules is not None:
        rules = compare_rules(options.rules, options.mutations, options.seed)
        parts["rules"] = rules
        figures["schematron_accepted"] = rules.accepted
        figures["schematron_wrong"] = rules.wrong
    return LanguageResult(parts, figures)


LANGUAGE = Benchmark(
    name="language",
    summary="how right the language is: W3C QT3, XMark, random and real profiles with oracles",
    add_options=add_options,
    quick=("--random", "100"),
    run=run,
)
