"""qt3.json and w3c-graphs.json: how many cases of the W3C's suites the languages take and pass.

The suites are no part of the project.  ONYX_QT3 names a clone of w3c/qt3tests; the numbers are
those of its commit b6584bdb, and all cases take two minutes: ``ONYX_QT3=DIR python -m tests.golden
qt3.json``.  The tests of RDF and SPARQL are in an archive beside the repository.  Here they are
counted as the parsers take them; ``tests/formats/graph`` and ``tests/yfilter/graph`` assert the
outcome of each.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

from benchmarks.conformance import run_suite
from tests.formats.graph.support import w3c_tests
from tests.golden.golden_file import as_json
from tests.yfilter.graph import test_w3c_evaluation, test_w3c_syntax, w3c_suite
from yfilter import ProfileRefused
from yfilter.graph.graph_query import parse_graph_query

BASE = "BASE <http://example.org/base/>\n"


def qt3() -> str:
    sets: dict[str, dict[str, int | list[str]]] = {
        name: {
            "passed": report.passed,
            "delivered": report.delivered,
            "failed": sorted(report.failed),
            "out": report.out.total(),
            "beyond": report.beyond.total(),
        }
        for name, report in sorted(run_suite(Path(os.environ["ONYX_QT3"]), ()).items())
    }
    lines = ",\n".join(f" {_as_line(name)}: {_as_line(counts)}" for name, counts in sets.items())
    totals: Counter[str] = Counter()
    for counts in sets.values():
        for key, count in counts.items():
            totals[key] += len(count) if isinstance(count, list) else count
    return f'{{"total": {_as_line(totals)},\n"sets": {{\n{lines}\n}}}}\n'


def graphs() -> str:
    evaluation = Counter(map(_taken, test_w3c_evaluation.CASES))
    return as_json(
        {
            "syntaxes of RDF": dict(sorted(Counter(test.syntax for test in w3c_tests()).items())),
            "queries of SPARQL": _read(negative=False),
            "texts that are no queries": _read(negative=True),
            "evaluation": dict(sorted(evaluation.items())),
        }
    )


def _read(*, negative: bool) -> dict[str, int]:
    found: Counter[str] = Counter()
    for _, text in test_w3c_syntax._cases(negative=negative):
        found[_verdict(BASE + text)] += 1
    return dict(sorted(found.items()))


def _taken(case: w3c_suite.Case) -> str:
    if case.name in test_w3c_evaluation.OTHERWISE:
        return "otherwise, as test_w3c_evaluation.py says"
    text = w3c_suite.files()[case.query].decode()
    verdict = _verdict(text)
    return (
        verdict if verdict == "taken" else _verdict(f"BASE <{w3c_suite.BASE}{case.query}>\n{text}")
    )


def _verdict(text: str) -> str:
    try:
        parse_graph_query(text)
    except ProfileRefused as refused:
        return refused.code
    return "taken"


def lacks_qt3() -> str:
    return "" if "ONYX_QT3" in os.environ else "ONYX_QT3 names no suite"


def lacks_graphs() -> str:
    return "" if w3c_suite.ARCHIVE.exists() else "the W3C's tests are not here"


def _as_line(value: object) -> str:
    return json.dumps(value)
