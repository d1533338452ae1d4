"""What asking for classes of a taxonomy takes, over asking for those that are stated.

The taxonomy has the catalogue's classes in six levels, some with two parents.  Messages are closed
by it, and profiles ask for a class or one below it; the baseline has no taxonomy, and the same
profiles ask for the class alone.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from itertools import pairwise
from random import Random
from time import thread_time_ns

import pyoxigraph
from pyoxigraph import BlankNode, Quad

from benchmarks.benchmark import WrongAnswers
from benchmarks.graph.catalogue import CLASSES, EXAMPLE, Catalogue, written
from benchmarks.graph.matching import FIRST_OF_PROFILES, patterns, registered
from benchmarks.report import Report
from benchmarks.samples import mean
from formats import GraphSyntax, read_graph
from formats.graph.closure import TaxonomyClosure
from formats.graph.taxonomy import Taxonomy, above
from formats.graph.vocabulary import RDF_TYPE, RDFS
from yfilter.matcher import Matcher

_WARM_UP = 50
_LEVELS = (5, 20, 60, 150, 250, CLASSES - 485)
_TWO_PARENTS = 0.25
_STATED = f"<{RDF_TYPE}> <"
_BELOW = f"<{RDF_TYPE}>/<{RDFS}subClassOf>* <"


def measure_classes(report: Report, options: argparse.Namespace) -> None:
    """Adds ``classes_over_without``, of the catalogue's profiles, and ``all_classes_over_without``,
    where each asks for a class above one that is stated, and for one triple more."""
    random = Random(f"taxonomy {options.seed}")
    catalogue = Catalogue(options.seed)
    taxonomy = _taxonomy(random)
    stated, higher = _of_classes(random, catalogue, taxonomy, options.classed)
    usual = patterns(catalogue, options.seed, options.classed)
    turtle = [
        written(catalogue.message(number), pyoxigraph.RdfFormat.TURTLE)
        for number in range(_WARM_UP + options.messages)
    ]
    for name, without, having in (
        ("classes", usual, usual),
        ("all_classes", stated, higher),
    ):
        plain = registered(without)[0]
        closed = registered([text.replace(_STATED, _BELOW) for text in having])[0]
        us, matched = _matched(plain, turtle, None)
        closed_us, closed_matched = _matched(closed, turtle, TaxonomyClosure(taxonomy))
        if any(not some <= more for some, more in zip(matched, closed_matched, strict=True)):
            raise WrongAnswers(f"{name}: a profile matches without a taxonomy and not with it")
        report.figure(f"{name}_without_us", f"{name}: no taxonomy", us, "us")
        report.figure(f"{name}_us", f"{name}: a taxonomy", closed_us, "us", f"{name}_without_us")
        report.figure(f"{name}_over_without", f"{name}: with / without", closed_us / us)
        share = 100 / options.classed
        report.figure(
            f"{name}_without_percent", "matched without", share * mean([*map(len, matched)]), "%"
        )
        report.figure(
            f"{name}_percent", "matched with", share * mean([*map(len, closed_matched)]), "%"
        )


def _taxonomy(random: Random) -> Taxonomy:
    names = [f"{EXAMPLE}class/C{number}".encode() for number in range(CLASSES)]
    random.shuffle(names)
    levels = [[names.pop() for _ in range(size)] for size in _LEVELS]
    return Taxonomy(
        {
            each: tuple(random.sample(parents, 2 if random.random() < _TWO_PARENTS else 1))
            for parents, level in pairwise(levels)
            for each in level
        }
    )


def _of_classes(
    random: Random, catalogue: Catalogue, taxonomy: Taxonomy, count: int
) -> tuple[list[str], list[str]]:
    """Profiles of a class that is stated, and the same of it or of one above."""
    stated: list[str] = []
    higher: list[str] = []
    number = FIRST_OF_PROFILES
    while len(stated) < count:
        by_subject: dict[object, list[Quad]] = defaultdict(list)
        for quad in catalogue.message(number):
            by_subject[quad.subject].append(quad)
        number += 1
        for kind, *others in by_subject.values():
            known = [quad for quad in others if not isinstance(quad.object, BlankNode)]
            if kind.predicate.value != RDF_TYPE or not known:
                continue
            quad = random.choice(known)
            own = str(kind.object)[1:-1].encode()
            wanted = random.choice([own, *above(taxonomy.classes, own)]).decode()
            for texts, each in ((stated, own.decode()), (higher, wanted)):
                texts.append(f"ASK {{ ?s {_STATED}{each}> ; {quad.predicate} {quad.object} }}")
    return stated[:count], higher[:count]


def _matched(
    matcher: Matcher, messages: list[bytes], closure: TaxonomyClosure | None
) -> tuple[float, list[set[str]]]:
    """Microseconds of a message, from its bytes on, and what each matches."""
    times, found = [], []
    for message in messages:
        start = thread_time_ns()
        found.append(
            set(matcher.matched_ids(read_graph(message, GraphSyntax.TURTLE, closure=closure)))
        )
        times.append((thread_time_ns() - start) / 1000)
    return mean(times[_WARM_UP:]), found[_WARM_UP:]
