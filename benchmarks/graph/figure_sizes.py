"""What is measured for the papers' figures: how much of it, and how it is timed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import thread_time_ns

import pyoxigraph

from benchmarks.benchmark import WrongAnswers
from benchmarks.graph.paper_workload import Edge, n_triples
from benchmarks.samples import mean, median
from formats import ElementStream
from yfilter import Matcher

_CHECKED = 50


@dataclass(frozen=True, slots=True)
class Sizes:
    """``scale``: of the papers' numbers of subscriptions; ``crowd``: those of C 9b;
    ``sampled``: publications that say what mergers cost, and as many that they are measured on."""

    scale: float = 0.1
    crowd: tuple[int, ...] = (1_000, 10_000, 100_000)
    rounds: int = 5
    sampled: int = 100
    seed: int = 1

    def steps(self, number: int) -> list[int]:
        """Numbers of subscriptions, up to the scaled one."""
        return [max(20, round(number * self.scale * share)) for share in (0.25, 0.5, 0.75, 1.0)]


def processor_us(act: Callable[..., object], *arguments: object) -> float:
    """Processor time of one call."""
    start = thread_time_ns()
    act(*arguments)
    return (thread_time_ns() - start) / 1000


def match_us(matcher: Matcher, publications: Sequence[ElementStream], rounds: int) -> float:
    """Of a publication, the mean of medians; each was seen before, by lazy tables too."""
    matcher.prepare()
    for publication in publications:
        matcher.matched_numbers(publication)
    return mean(
        [
            median([processor_us(matcher.matched_numbers, each) for _ in range(rounds)])
            for each in publications
        ]
    )


def matcher_of(texts: Iterable[str]) -> Matcher:
    """With the texts as profiles, their ids their places."""
    matcher = Matcher()
    for number, text in enumerate(texts):
        matcher.add(text, str(number))
    return matcher


def check_matches(
    matcher: Matcher, texts: Sequence[str], triples: Sequence[Edge], publication: ElementStream
) -> None:
    """Raises WrongAnswers where others match than pyoxigraph finds: of those that match, and of as
    many others."""
    store = pyoxigraph.Store()
    store.load(n_triples(triples).encode(), pyoxigraph.RdfFormat.N_TRIPLES)
    matched = set(matcher.matched_ids(publication))
    others = [number for number in range(len(texts)) if str(number) not in matched]
    for number in [*map(int, sorted(matched)[:_CHECKED]), *others[:_CHECKED]]:
        if bool(store.query(texts[number])) != (str(number) in matched):
            raise WrongAnswers(f"pyoxigraph finds otherwise: {texts[number]}")
