"""The figures of G-ToPSS: Petrovic, Liu, Jacobsen, WWW 2005, figures 9a to 9h."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from multiprocessing import get_context

import pyoxigraph

from benchmarks.graph.figure_sizes import (
    Sizes,
    check_matches,
    match_us,
    matcher_of,
    processor_us,
)
from benchmarks.graph.paper_figure import PaperFigure, Points
from benchmarks.graph.paper_workload import TOPSS, PaperWorkload, Parameters, n_triples, query_text
from benchmarks.machine import resident_bytes
from benchmarks.samples import mean
from yfilter import Matcher, Profile
from yfilter.graph.graph_query import parse_graph_query
from yfilter.graph.stars import graph_part

_LOOPED = 200  # subscriptions of the loop, extrapolated to all
_MEGABYTE = 1_000_000


def memory_by_subscriptions(sizes: Sizes) -> list[PaperFigure]:
    wanted = [replace(_scaled(sizes), subscriptions=number) for number in sizes.steps(30_000)]
    found = _memory_mb(wanted)
    points = [(one.subscriptions, mb) for one, mb in zip(wanted, found, strict=True)]
    return [
        PaperFigure(
            "G9a",
            "memory by subscriptions",
            "subscriptions",
            "MB that the process grows by",
            "linear: each subscription costs the same",
            {"ours": points},
            {"memory_growth_a_subscription": _growth(points)},
        )
    ]


def memory_by_overlap_and_size(sizes: Sizes) -> list[PaperFigure]:
    overlaps = (0.0, 0.25, 0.5, 0.75)
    edges = (4, 6, 8, 10, 12)
    by_overlap = [replace(_scaled(sizes), overlap=overlap) for overlap in overlaps]
    by_size = [replace(_scaled(sizes), subscription_edges=number) for number in edges]
    found = _memory_mb(by_overlap + by_size)
    return [
        PaperFigure(
            "G9c",
            "memory by overlap",
            "overlap, %",
            "MB that the process grows by",
            "falls as overlap grows",
            {"ours": [(100 * x, mb) for x, mb in zip(overlaps, found, strict=False)]},
        ),
        PaperFigure(
            "G9d",
            "memory by size of subscriptions",
            "edges",
            "MB that the process grows by",
            "drawn, not described",
            {"ours": list(zip(edges, found[len(overlaps) :], strict=True))},
        ),
    ]


def time_by_subscriptions(sizes: Sizes) -> list[PaperFigure]:
    """The structure: what the necessary paths find, without a join."""
    structure, everything = [], []
    for number in sizes.steps(30_000):
        workload = PaperWorkload(replace(_scaled(sizes), subscriptions=number))
        texts, publications = workload.subscriptions(), workload.publications()
        matcher = matcher_of(texts)
        check_matches(matcher, texts, workload.triples[0], publications[0])
        everything.append((float(number), match_us(matcher, publications, sizes.rounds)))
        paths = _matcher_of_paths(texts)
        structure.append((float(number), match_us(paths, publications, sizes.rounds)))
    return [
        PaperFigure(
            "G9b",
            "time by subscriptions, 0.1 % match",
            "subscriptions",
            "us a publication",
            "linear, structure and constraints alike, since the matches grow as well",
            {"structure": structure, "with joins": everything},
            {"topss_time_growth": everything[-1][1] / everything[0][1]},
        )
    ]


def time_by_size(sizes: Sizes) -> list[PaperFigure]:
    base = _scaled(sizes)
    edges = [
        (number, _us(replace(base, subscription_edges=number), sizes)) for number in (4, 6, 8, 10)
    ]
    nodes = [
        (number, _us(replace(base, subscription_edges=8, subscription_nodes=number), sizes))
        for number in (4, 5, 6, 8)
    ]
    return [
        PaperFigure(
            "G9e",
            "time by size of subscriptions",
            "edges or nodes",
            "us a publication",
            "doubles from 4 to 8 edges, grows less beyond; nodes do not matter",
            {"by edges": edges, "by nodes, 8 edges": nodes},
            {"edges_4_to_8": edges[2][1] / edges[0][1]},
        )
    ]


def time_by_matches(sizes: Sizes) -> list[PaperFigure]:
    shares = (0.001, 0.005, 0.01, 0.02, 0.04)
    points = [
        (100 * share, _us(replace(_scaled(sizes), matching=share), sizes)) for share in shares
    ]
    return [
        PaperFigure(
            "G9f",
            "time by the share that matches",
            "share, %",
            "us a publication",
            "grows very quickly, by the bindings of each subscription",
            {"ours": points},
            {"matching_share_growth": points[-1][1] / points[0][1]},
        )
    ]


def variables_everywhere(sizes: Sizes) -> list[PaperFigure]:
    """What OPS takes subscriptions to be: every node is a variable."""
    named, starred, looped = [], [], []
    for number in sizes.steps(30_000):
        base = replace(_scaled(sizes), subscriptions=number, publications=5, overlap=0.0)
        named.append((float(number), _us(base, sizes)))
        workload = PaperWorkload(replace(base, variables=10_000, with_variables=1.0))
        texts, publications = workload.subscriptions(), workload.publications()
        matcher = matcher_of(texts)
        check_matches(matcher, texts, workload.triples[0], publications[0])
        starred.append((float(number), match_us(matcher, publications, sizes.rounds)))
        store = pyoxigraph.Store()
        store.load(n_triples(workload.triples[0]).encode(), pyoxigraph.RdfFormat.N_TRIPLES)
        each = mean([processor_us(store.query, text) for text in texts[:_LOOPED]])
        looped.append((float(number), each * number))
    return [
        PaperFigure(
            "G9g",
            "every node a variable, as OPS has it",
            "subscriptions",
            "us a publication",
            "OPS grows very quickly with the subscriptions, G-ToPSS does not",
            {"two variables": named, "every node": starred},
        ),
        PaperFigure(
            "G9h",
            "every node a variable, and a loop",
            "subscriptions",
            "us a publication",
            "OPS is still far better than a loop of all subscriptions",
            {"every node": starred, "loop of pyoxigraph's queries": looped},
            {"loop_over_every_node": looped[-1][1] / starred[-1][1]},
        ),
    ]


def _scaled(sizes: Sizes) -> Parameters:
    return replace(TOPSS, subscriptions=sizes.steps(30_000)[-1], seed=sizes.seed)


def _us(parameters: Parameters, sizes: Sizes) -> float:
    workload = PaperWorkload(parameters)
    return match_us(matcher_of(workload.subscriptions()), workload.publications(), sizes.rounds)


def _matcher_of_paths(texts: Iterable[str]) -> Matcher:
    matcher = Matcher()
    for text in texts:
        for path in graph_part(parse_graph_query(text)).paths:
            matcher.add(Profile(path))
    return matcher


def _memory_mb(wanted: list[Parameters]) -> list[float]:
    """Each in a process of its own."""
    with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        return pool.map(_grown_mb, wanted, chunksize=1)


def _grown_mb(parameters: Parameters) -> float:
    patterns = PaperWorkload(parameters).patterns()
    matcher = Matcher()
    before = resident_bytes()
    for pattern in patterns:
        matcher.add(query_text(pattern))
    return (resident_bytes() - before) / _MEGABYTE


def _growth(points: Points) -> float:
    """Of what a subscription costs, from the first point to the last."""
    (first, little), (last, much) = points[0], points[-1]
    return (much / last) / (little / first)
