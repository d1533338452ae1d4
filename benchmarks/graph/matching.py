"""Graph profiles matched: from the bytes of a message to the ids of all that it matches.

Profiles are patterns of one to three stars taken from messages that are not measured: each triple
of a star keeps its object, or has a variable there, a number a bound; so a message matches a few in
a hundred.  The loop asks each profile of one ``pyoxigraph.Store``; it is asked of a sample of the
profiles, which also checks what was matched.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from random import Random
from time import thread_time_ns

import pyoxigraph
from pyoxigraph import BlankNode, Literal, NamedNode, Quad

from benchmarks.benchmark import WrongAnswers
from benchmarks.graph.catalogue import Catalogue, written
from benchmarks.report import Report
from benchmarks.samples import mean
from formats import GraphSyntax, read_graph
from formats.graph.vocabulary import XSD
from yfilter.language.profile_limits import MatchLimits
from yfilter.matcher import Matcher

FIRST_OF_PROFILES = 1_000_000  # messages from which profiles are taken
_MILLION = 1_000_000
_WARM_UP = 100
_SAMPLE = 300  # profiles of the loop
_REMOVED_MAX = 1_000
_SYNTAX = pyoxigraph.RdfFormat.TURTLE
_INTEGER = NamedNode(f"{XSD}integer")


def measure_matching(report: Report, options: argparse.Namespace) -> None:
    """Adds for each number of profiles ``all_in_N_p`` and what belongs to it; of the last number
    what adding and removing one takes, and its bytes."""
    catalogue = Catalogue(options.seed)
    messages = [written(catalogue.message(n), _SYNTAX) for n in range(options.messages + _WARM_UP)]
    warm_up, measured = messages[:_WARM_UP], messages[_WARM_UP:]
    unit = mean([_parsing(message) for message in measured])
    for number in options.matched:
        profiles = patterns(catalogue, options.seed, number, options.star_triples)
        matcher, add_us = registered(profiles)
        for message in warm_up:
            _matched(matcher, message)
        times, counts = [], []
        for message in measured:
            start = thread_time_ns()
            counts.append(len(_matched(matcher, message)))
            times.append((thread_time_ns() - start) / 1000)
        loop_us = _loop(matcher, profiles, measured[0])
        statistics = matcher.statistics()
        size = statistics.index_bytes_used + statistics.profiles_bytes
        name = f"{number // 1_000_000}m" if number >= _MILLION else f"{number // 1000}k"
        report.figure(f"all_in_{name}_p", f"bytes to ids, {number:,}", mean(times) / unit, "P")
        report.figure(f"matched_{name}_percent", "matched", 100 * mean(counts) / number, "%")
        report.figure(f"ask_loop_ratio_{name}", "the loop over it", loop_us / mean(times), "x")
    report.figure("add_ms", "adding one", add_us / 1000, "ms")
    report.figure("remove_ms", "removing one", _removed(matcher, len(profiles)) / 1000, "ms")
    report.figure("bytes_per_profile", "bytes a profile", size / number, "bytes")


def patterns(catalogue: Catalogue, seed: int, count: int, least: int = 1) -> list[str]:
    """So many distinct ASK profiles, with at least so many triples a star where it has them."""
    random = Random(f"patterns {seed}")
    found: dict[str, None] = {}
    number = FIRST_OF_PROFILES
    while len(found) < count:
        by_subject: dict[NamedNode | BlankNode, list[Quad]] = defaultdict(list)
        for quad in catalogue.message(number):
            if isinstance(quad.subject, NamedNode | BlankNode):
                by_subject[quad.subject].append(quad)
        number += 1
        for _ in range(4):
            stars = [*by_subject.values()]
            chosen = random.sample(stars, random.choice((1, 1, 2, 3)))
            lines = [" ".join(_star(random, at, star, least)) for at, star in enumerate(chosen)]
            found[f"ASK {{ {' '.join(lines)} }}"] = None
    return list(found)[:count]


def _star(random: Random, place: int, triples: list[Quad], least: int) -> Iterator[str]:
    taken = random.sample(triples, min(len(triples), random.randint(least, 3)))
    for number, quad in enumerate(taken):
        thing = quad.object
        variable = f"?o{place}_{number}"
        if isinstance(thing, Literal) and thing.datatype == _INTEGER and random.random() < 0.5:
            yield f"?s{place} {quad.predicate} {variable} . FILTER({variable} < {thing.value})"
        elif isinstance(thing, BlankNode) or (number and random.random() < 0.4):
            yield f"?s{place} {quad.predicate} {variable} ."
        else:
            yield f"?s{place} {quad.predicate} {thing} ."


def registered(profiles: list[str]) -> tuple[Matcher, float]:
    """With what adding one takes, in microseconds."""
    matcher = Matcher(MatchLimits(profiles_max=len(profiles)))
    start = thread_time_ns()
    for number, text in enumerate(profiles):
        matcher.add(text, str(number))
    return matcher, (thread_time_ns() - start) / 1000 / len(profiles)


def _removed(matcher: Matcher, count: int) -> float:
    """What removing one of so many takes, in microseconds, of a sample; these are gone then."""
    sample = Random(count).sample(range(count), min(count, _REMOVED_MAX))
    start = thread_time_ns()
    for number in sample:
        matcher.remove(str(number))
    return (thread_time_ns() - start) / 1000 / len(sample)


def _matched(matcher: Matcher, message: bytes) -> list[str]:
    return matcher.matched_ids(read_graph(message, GraphSyntax.TURTLE))


def _loop(matcher: Matcher, profiles: list[str], message: bytes) -> float:
    """What asking all profiles of a store takes, by a sample; WrongAnswers where they disagree."""
    store = pyoxigraph.Store()
    store.extend(pyoxigraph.parse(message, _SYNTAX))
    matched = set(map(int, _matched(matcher, message)))
    step = max(1, len(profiles) // _SAMPLE)
    sample = range(0, len(profiles), step)
    asked = dict.fromkeys([*sample, *sorted(matched)[:_SAMPLE]])
    start = thread_time_ns()
    for number in sample:
        bool(store.query(profiles[number]))
    taken = (thread_time_ns() - start) / 1000 / len(sample)
    for number in asked:
        if bool(store.query(profiles[number])) is not (number in matched):
            raise WrongAnswers(f"matched, or not, against the store: {profiles[number]}")
    return taken * len(profiles)


def _parsing(message: bytes) -> float:
    """P, in microseconds: the quickest of three times."""
    times = []
    for _ in range(3):
        start = thread_time_ns()
        list(pyoxigraph.parse(message, _SYNTAX))
        times.append(thread_time_ns() - start)
    return min(times) / 1000
