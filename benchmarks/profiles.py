"""``profiles``: texts of profiles to what the engine works with, in texts a second.

Measured are the parser alone, and reading by shapes as ``parse_profile`` does, from an empty cache:
on texts that repeat shapes (the same paths and FLWOR expressions with other values), and
on texts of which no two have the same shape.  The baseline is elementpath's parser of XPath 2.0 on
the texts that are paths.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from random import Random
from time import perf_counter_ns, thread_time_ns

from elementpath import XPath2Parser

from benchmarks import machine
from benchmarks.benchmark import Benchmark, WrongAnswers, count, positive
from benchmarks.report import Report
from benchmarks.samples import median
from benchmarks.workload import ProfileMaker, make_schema
from formats.kernel import build_info
from yfilter.language.query_ast import Expression, Profile
from yfilter.language.query_parser import parse_anew, parse_template
from yfilter.language.shape_cache import ShapeCache

_BLOCK = 250  # texts read in a row; the median block counts
_BASELINE = 500


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the benchmark."""
    parser.add_argument(
        "--number", metavar="N", type=positive, default=20_000, help="texts (default: 20,000)"
    )
    parser.add_argument(
        "--shapes",
        metavar="N",
        type=positive,
        default=200,
        help="paths, and as many FLWOR expressions, that the repeating texts are made of",
    )
    parser.add_argument("--seed", metavar="N", type=count, default=1)
    parser.add_argument(
        "--clock", choices=("wall", "cpu"), default="wall", help="time passed, or time computed"
    )


def run(options: argparse.Namespace) -> Report:
    """Measures; raises WrongAnswers where a shape gives another tree than the parser."""
    clock = thread_time_ns if options.clock == "cpu" else perf_counter_ns
    maker = ProfileMaker(make_schema(options.seed), options.seed)
    distinct = _different_shapes(maker, options.number)
    repeating = list(islice(_repeating(maker, options), options.number))
    alone = _per_text(_anew, distinct, clock)
    different = _per_text(ShapeCache(parse_anew, parse_template).read, distinct, clock)
    repeated = _per_text(ShapeCache(parse_anew, parse_template).read, repeating, clock)
    trees = _per_text(_with_tree(ShapeCache(parse_anew, parse_template)), repeating, clock)
    paths = [text for text in distinct if "[" in text][:_BASELINE] or distinct[:_BASELINE]
    baseline = _per_text(XPath2Parser().parse, paths, clock)
    _check(distinct[:500] + repeating[:500])
    report = Report(f"profiles: {options.number:,} texts")
    report.condition("machine", "machine", machine.description())
    report.condition("build", "build", build_info())
    report.condition("clock", "clock", options.clock)
    report.condition("number", "texts", options.number)
    report.condition("different_number", "of which no two have one shape", len(distinct))
    base = "elementpath_texts_per_second"
    report.figure(base, "elementpath, XPath 2.0", 1e6 / baseline, "a second")
    _tell(report, "parser_texts_per_second", "the parser alone", alone, base)
    _tell(report, "different_texts_per_second", "by shapes, no two the same", different, base)
    _tell(report, "texts_per_second", "by shapes that repeat", repeated, base)
    _tell(report, "tree_texts_per_second", "the same, and the tree made", trees, base)
    report.remark(f"the median of blocks of {_BLOCK} texts; all texts are distinct")
    report.remark("a shape is the text without literals and names; trees are compared on 1,000")
    return report


def _tell(report: Report, key: str, label: str, per_text_us: float, base: str) -> None:
    report.figure(key, label, 1e6 / per_text_us, "a second", base)


def _per_text(
    read: Callable[[str], object], texts: Sequence[str], clock: Callable[[], int]
) -> float:
    """Microseconds; the collector of cycles rests, for it looks at whatever else there is."""
    samples = []
    gc.collect()
    gc.disable()
    try:
        for first in range(0, len(texts), _BLOCK):
            block = texts[first : first + _BLOCK]
            start = clock()
            for text in block:
                read(text)
            samples.append((clock() - start) / 1000 / len(block))
    finally:
        gc.enable()
    return median(samples)


def _anew(text: str) -> Profile:
    return Profile(parse_anew(text), text)


def _with_tree(cache: ShapeCache) -> Callable[[str], Expression]:
    return lambda text: cache.read(text).body


def _different_shapes(maker: ProfileMaker, number: int) -> list[str]:
    """Texts that differ in more than names and literals; fewer if so many are not found."""
    cache = ShapeCache(parse_anew, parse_template)
    seen: set[str] = set()
    found = []
    for text in islice(maker.distinct(), 8 * number):
        key = cache.key(text)
        if key not in seen:
            seen.add(key)
            found.append(text)
            if len(found) == number:
                break
    return found


def _repeating(maker: ProfileMaker, options: argparse.Namespace) -> Iterator[str]:
    """Distinct texts: the same paths, bare and in FLWOR expressions, with ever other values."""
    random = Random(f"values {options.seed}")
    paths = list(islice(maker.distinct(), options.shapes))
    number = 0
    while True:
        for path in paths:
            number += 1
            value = f"v{random.randrange(10**9)}.{number}"
            yield f'{path}[@key = "{value}"]'
            yield (
                f'for $n in {path} where $n/@key = "{value}" and $n/@size > {number} '
                'return <hit size="{$n/@size}">{$n/*}</hit>'
            )


def _check(texts: Sequence[str]) -> None:
    cache = ShapeCache(parse_anew, parse_template)
    for text in texts:
        if cache.read(text).body != parse_anew(text):
            raise WrongAnswers(f"another tree by its shape: {text}")


PROFILES = Benchmark(
    name="profiles",
    summary="texts of profiles parsed, with and without repetition of shapes",
    add_options=add_options,
    quick=("--number", "2000"),
    run=run,
)
