"""Links that graph messages cross within a budget of routing tables, over the optimum.

Each broker of a network hosts some profiles that are parts of a few messages, of other messages
than those that are published; who wants what has nothing to do with where it is hosted.
"""

from __future__ import annotations

import argparse
from random import Random

from benchmarks.graph.catalogue import Catalogue, written
from benchmarks.graph.matching import patterns
from benchmarks.placement.network import make_topology
from benchmarks.report import Report
from benchmarks.routing import World, tell_crossings
from formats import GraphSyntax, WireFormat, encode, read_graph
from formats.graph.writer import FORMATS
from yfilter import parse_profile, routing_query

_BROKERS, _ROOTS = 15, 3


def measure_crossings(report: Report, options: argparse.Namespace) -> None:
    """Adds ``crossings_over_optimum_budget`` and the other figures of ``routing``'s crossings."""
    random = Random(f"crossings {options.seed}")
    topology = make_topology(_BROKERS, random, 2)
    catalogue = Catalogue(options.seed)
    texts = patterns(catalogue, options.seed, _BROKERS * options.hosted)
    interests = {
        broker: [
            disjunct
            for text in texts[place::_BROKERS]
            for disjunct in routing_query(parse_profile(text))
        ]
        for place, broker in enumerate(topology.broker_ids)
    }
    messages = [_striped(catalogue, number) for number in range(2 * options.messages)]
    tell_crossings(
        report,
        World(
            topology,
            random.sample(topology.broker_ids, _ROOTS),
            interests,
            messages[: options.messages],
            messages[options.messages :],
        ),
    )


def _striped(catalogue: Catalogue, number: int) -> bytes:
    """A message as brokers send it, as text."""
    turtle = written(catalogue.message(number), FORMATS[GraphSyntax.TURTLE])
    return encode(read_graph(turtle, GraphSyntax.TURTLE), WireFormat.TEXT)
