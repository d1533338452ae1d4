"""The figures of the cluster: Liu, Petrovic, Jacobsen, WWW 2008, figures 9a to 9h.

What the paper calls the server's index is the routing query of a link, in its CoverForest; what is
merged there is generalised within a budget, by what a sample of publications says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from benchmarks.benchmark import WrongAnswers
from benchmarks.graph.figure_sizes import Sizes, match_us, matcher_of, processor_us
from benchmarks.graph.paper_figure import PaperFigure
from benchmarks.graph.paper_workload import CLUSTER, PaperWorkload, Parameters, crowd
from benchmarks.samples import mean
from formats import ElementStream
from overlay.routing.generalisation import Budget
from overlay.routing.message_sample import MessageSample
from overlay.routing.routing_table import CoverForest, CoverIndex
from overlay.statistics import RoutingTableFigures
from yfilter import Conjunction, LinkTarget, Matcher, RouteMatch, parse_profile, routing_query
from yfilter.engine.containment import Pattern

_MATCHED = 100  # of a crowd
_MERGED = (0.0, 0.5, 0.7, 0.9, 0.99)  # shares


def index_look_up(sizes: Sizes) -> list[PaperFigure]:
    points = []
    for number in sizes.steps(100_000):
        workload = PaperWorkload(_scaled(sizes, number))
        forest = _forest(_disjuncts(workload))
        matcher = _matcher_of(list(forest.told))
        publications = workload.publications()
        for publication in publications:
            _held(matcher, publication)
        look_ups = [
            processor_us(_held, matcher, each) for each in publications for _ in range(sizes.rounds)
        ]
        points.append((float(number), mean(look_ups)))
    return [
        PaperFigure(
            "C9a",
            "look-up in the server's index, 0.1 % match",
            "subscriptions",
            "us a publication",
            "linear, as the matches are",
            {"ours": points},
        )
    ]


def one_structure(sizes: Sizes) -> list[PaperFigure]:
    star, part = (
        [(float(number), _crowd_us(sizes, number, is_one_star)) for number in sizes.crowd]
        for is_one_star in (True, False)
    )
    return [
        PaperFigure(
            "C9b",
            "one structure, different constraints, 100 match",
            "subscriptions",
            "us a publication",
            "G-ToPSS 2,500 ms at 100,000, the cluster's constant at 20 ms",
            {"an edge and a bound": star, "ten edges and a bound": part},
            {
                "range_growth": part[-1][1] / part[0][1],
                "range_growth_one_edge": star[-1][1] / star[0][1],
            },
        )
    ]


def _crowd_us(sizes: Sizes, number: int, is_one_star: bool) -> float:
    matched = min(_MATCHED, number // 2)
    parameters = replace(CLUSTER, seed=sizes.seed)
    texts, publication = crowd(number, matched, parameters, is_one_star=is_one_star)
    matcher = matcher_of(texts)
    found = len(matcher.matched_numbers(publication))
    if found != matched:
        raise WrongAnswers(f"{found} of {number} match, expected {matched}")
    return match_us(matcher, [publication], 4 * sizes.rounds)


def containment(sizes: Sizes) -> list[PaperFigure]:
    everything, told, within, without = [], [], [], []
    for number in sizes.steps(100_000):
        disjuncts = _disjuncts(PaperWorkload(_scaled(sizes, number)))
        forest = CoverForest()
        times = [processor_us(forest.change, (each,), ()) for each in disjuncts]
        matcher = Matcher()
        alone = [
            processor_us(matcher.add_route, each, LinkTarget("", str(at)))
            for at, each in enumerate(disjuncts)
        ]
        size = float(len(disjuncts))
        everything.append((float(number), size))
        told.append((float(number), float(len([*forest.told]))))
        within.append((float(number), mean(times[-1000:])))
        without.append((float(number), mean(alone[-1000:])))
    overlaps = []
    for overlap in (0.0, 0.25, 0.5, 0.75):
        parameters = replace(_scaled(sizes, sizes.steps(100_000)[0]), overlap=overlap)
        forest = _forest(_disjuncts(PaperWorkload(parameters)))
        forest.report(said := RoutingTableFigures())
        share = 100 * said.told / said.interests
        overlaps.append((100 * overlap, share))
    return [
        PaperFigure(
            "C9c",
            "size of the server's index by subscriptions, 50 % overlap",
            "subscriptions",
            "entries",
            "half of the subscriptions",
            {"without containment": everything, "with it": told},
        ),
        PaperFigure(
            "C9d",
            "size of the server's index by overlap",
            "overlap, %",
            "entries in % of the subscriptions",
            "100 % less the overlap",
            {"ours": overlaps},
        ),
        PaperFigure(
            "C9f",
            "inserting a subscription",
            "subscriptions",
            "us, the last 1,000",
            "more than without an index, and grows with the subscriptions",
            {"without containment": without, "with it": within},
        ),
    ]


def merging(sizes: Sizes) -> list[PaperFigure]:
    """What is merged is what matches together, so the publications are alike: each is like one of
    some, of which the subscriptions are parts; and as many that nobody wants."""
    number = sizes.steps(10_000)[-1]
    matched = max(1, round(number * _MATCHED / 10_000))
    kinds = round(number * (1 - CLUSTER.overlap) / matched)
    parameters = replace(_scaled(sizes, number), matching=matched / number, publications=kinds)
    workload = PaperWorkload(parameters)
    disjuncts = list(dict.fromkeys(_disjuncts(workload)))
    half = sizes.sampled // 2
    sample = MessageSample()
    for publication in workload.alike(half) + workload.others(half):
        sample.add(publication)
    measured = workload.alike(half) + workload.others(half)
    own = _matcher_of(disjuncts)
    wanted = [_held(own, publication) for publication in measured]
    pairs, passing, publications, entries, times = [], [], [], [], []
    for share in _MERGED:
        forest = _forest(disjuncts, sample)
        most = max(1, round(len(disjuncts) * (1 - share)))
        if share:
            seconds = processor_us(forest.set_budget, Budget(most, 2**62)) / 1e6
            times.append((100 * share, seconds))
        told = list(forest.told)
        useless = _for_nothing(told, disjuncts, measured, wanted)
        pairs.append((100 * share, useless.of_pairs))
        passing.append((100 * share, useless.of_passing))
        publications.append((100 * share, useless.of_publications))
        entries.append((100 * share, float(len(told))))
    at_90 = _MERGED.index(0.9)
    return [
        PaperFigure(
            "C9e",
            "what passes for nothing by the share merged",
            "merged, %",
            "%",
            "0.13 % at 90 %",
            {
                "of all pairs of publication and entry": pairs,
                "of the pairs that pass": passing,
                "of publications, that nobody wants": publications,
            },
            {
                "useless_pairs_percent": pairs[at_90][1],
                "useless_of_passing_percent": passing[at_90][1],
                "useless_publications_percent": publications[at_90][1],
            },
        ),
        PaperFigure(
            "C9g",
            f"entries of the index of {len(disjuncts):,} by the share merged",
            "merged, %",
            "entries",
            "629 of 100,000 at 99 %, 0.63 %",
            {"ours": entries},
            {"entries_percent_at_99": 100 * entries[-1][1] / len(disjuncts)},
        ),
        PaperFigure(
            "C9h",
            "time of merging by the share merged",
            "merged, %",
            "seconds",
            "grows with the share",
            {"ours": times},
        ),
    ]


def _scaled(sizes: Sizes, number: int) -> Parameters:
    return replace(CLUSTER, subscriptions=number, seed=sizes.seed)


def _disjuncts(workload: PaperWorkload) -> list[Conjunction]:
    texts = workload.subscriptions()
    return [disjunct for text in texts for disjunct in routing_query(parse_profile(text))]


def _forest(disjuncts: Sequence[Conjunction], sample: MessageSample | None = None) -> CoverForest:
    forest = CoverForest(sample=sample)
    forest.change(disjuncts, ())
    return forest


def _matcher_of(disjuncts: Sequence[Conjunction]) -> Matcher:
    """Each as the routing query of a link, whose name is its place."""
    matcher = Matcher()
    for number, disjunct in enumerate(disjuncts):
        matcher.add_route(disjunct, LinkTarget("", str(number)))
    return matcher


def _held(matcher: Matcher, publication: ElementStream) -> set[int]:
    found = matcher.match(publication)
    return {int(match.link) for match in found if isinstance(match, RouteMatch)}


def _for_nothing(
    told: Sequence[Conjunction],
    members: Sequence[Conjunction],
    publications: Sequence[ElementStream],
    wanted: Sequence[set[int]],
) -> _Useless:
    """An entry that holds is of no use where no member of it does."""
    tops: CoverIndex[_Entry] = CoverIndex()
    for number, disjunct in enumerate(told):
        tops.add(_Entry(disjunct, number))
    above: defaultdict[int, set[int]] = defaultdict(set)
    for number, disjunct in enumerate(members):
        above[number] = {entry.number for entry in tops.covering(_Entry(disjunct, number))}
    matcher = _matcher_of(told)
    holding = useless = useless_publications = 0
    for publication, members_held in zip(publications, wanted, strict=True):
        entries = _held(matcher, publication)
        of_use = {entry for member in members_held for entry in above[member]}
        if not of_use <= entries:
            raise WrongAnswers("an entry does not hold where one that it covers does")
        holding += len(entries)
        useless += len(entries - of_use)
        useless_publications += bool(entries) and not members_held
    return _Useless(
        100 * useless / (len(told) * len(publications)),
        100 * useless / max(1, holding),
        100 * useless_publications / len(publications),
    )


class _Useless(NamedTuple):
    """In percent: pairs of a publication and an entry that hold for nothing, of all and of those
    that hold; and publications that nobody wants, but of which an entry holds, of all."""

    of_pairs: float
    of_passing: float
    of_publications: float


class _Entry(Pattern):
    """An entry of the index, by its place."""

    __slots__ = ("number",)

    def __init__(self, disjunct: Conjunction, number: int) -> None:
        super().__init__(disjunct)
        self.number = number
