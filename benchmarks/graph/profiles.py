"""What reading a graph profile takes, and making its paths: of a shape that is known, and alone."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import thread_time_ns
from typing import Any

from benchmarks.benchmark import WrongAnswers
from benchmarks.report import Report
from yfilter.graph.graph_query import QueryShapes, parse_anew
from yfilter.graph.stars import graph_part

_PROLOGUE = "PREFIX dc: <http://purl.org/dc/elements/1.1/> PREFIX ex: <http://example.org/>\n"
_PROFILE = (
    'SELECT ?i ?t WHERE {{ ?i dc:creator "author {0}" ; dc:title ?t ; ex:price ?p .'
    " FILTER(?p < {0}) }}"
)


def measure_profiles(report: Report, options: argparse.Namespace) -> None:
    """Adds ``profile_us``, ``paths_us``, ``profile_alone_us`` and ``paths_alone_us``."""
    texts = [_PROLOGUE + _PROFILE.format(number) for number in range(1, 2 + options.messages)]
    shapes = QueryShapes(parse_anew)
    shapes.read(texts.pop())
    for name, label, read in (
        ("", "of a shape that is known", shapes.read),
        ("_alone", "by itself", parse_anew),
    ):
        queries, reading = _each(read, texts, options.rounds)
        parts, making = _each(graph_part, queries, options.rounds)
        if queries != list(map(parse_anew, texts)) or len(set(parts)) != len(texts):
            raise WrongAnswers("profiles are not what they are when they are read alone")
        report.figure(f"profile{name}_us", f"reading a profile {label}", reading, "us")
        report.figure(f"paths{name}_us", f"making its paths, {label}", making, "us")


def _each(work: Callable[[Any], Any], inputs: list[Any], rounds: int) -> tuple[list[Any], float]:
    """What it makes of each, and microseconds for one, in the quickest round."""
    times = []
    for _ in range(rounds):
        start = thread_time_ns()
        made = [work(each) for each in inputs]
        times.append(thread_time_ns() - start)
    return made, min(times) / 1000 / len(inputs)
