"""Figure 9: the share of the partitions that a message matches, against its repetition.

Two measures, for random placement, the paper's PEP and this project's:

*by pattern*   a partition is matched when the message has a value by which one of its profiles was
               placed; at random, when it satisfies one predicate of one of its profiles.  This is
               the paper's reasoning (at most M/K without repetition).
*whole*        a partition is matched when the message matches one of its profiles in full.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from benchmarks.placement.paper_pep import PaperPep
from benchmarks.placement.population import PATTERNS, FigureNine, Message, as_values, pattern_name
from registration.planning.plan import Plan
from registration.planning.planner import Evidence, PlanOptions, make_plan

REPEATS = tuple(range(0, 41, 5))
SCHEMES = ("random", "paper", "pep")


@dataclass(slots=True)
class FigureNineResult:
    """``by_pattern`` and ``whole``: scheme -> percent at each of REPEATS; ``imbalance``: scheme ->
    largest partition over the mean; ``plan_seconds``: of the planning in memory."""

    plan: Plan
    by_pattern: dict[str, list[float]] = field(default_factory=dict)
    whole: dict[str, list[float]] = field(default_factory=dict)
    imbalance: dict[str, float] = field(default_factory=dict)
    plan_seconds: float = 0.0


def measure(
    figure: FigureNine,
    partitions: int,
    messages: int,
    seed: int,
    progress: Callable[[str], None],
) -> FigureNineResult:
    """All schemes on the same profiles and messages."""
    progress("random placement, and PEP as in the paper")
    number = len(figure.patterns)
    at_random = np.random.default_rng(seed).integers(0, partitions, number)
    paper = PaperPep(figure.needs, partitions, seed, all_patterns=True)
    progress("the plan")
    start = time.perf_counter()
    schema = Evidence(lambda _: 1.0)  # as in the paper: each pattern once, but for repetition
    plan = make_plan(figure.population(), PlanOptions(partitions), schema)
    result = FigureNineResult(plan, plan_seconds=time.perf_counter() - start)
    placed = {
        "random": at_random,
        "paper": np.array(paper.partition),
        "pep": np.array([plan.place_needs(needs, "").partition for needs in figure.needs])
        if not any(len(where) > 1 for rule in plan.rules for where in rule.values.values())
        else _placed_by_text(figure, plan),
    }
    for scheme in SCHEMES:
        loads = np.bincount(placed[scheme], minlength=partitions)
        result.imbalance[scheme] = float(loads.max() / loads.mean())
        result.by_pattern[scheme] = []
        result.whole[scheme] = []
    of_predicate = _partitions_of_predicates(figure, at_random)
    for repeated in REPEATS:
        progress(f"{repeated} repeated elements")
        drawn = [figure.message(repeated) for _ in range(messages)]
        shares = {
            "random": [_predicates_visit(of_predicate, message) for message in drawn],
            "paper": [len(_buckets(paper, message)) for message in drawn],
            "pep": [len(plan.visited(as_values(message))) for message in drawn],
        }
        matches = [figure.whole_matches(message) for message in drawn]
        for scheme in SCHEMES:
            visited = [len(np.unique(placed[scheme][matched])) for matched in matches]
            result.by_pattern[scheme].append(_percent(shares[scheme], partitions))
            result.whole[scheme].append(_percent(visited, partitions))
    return result


def _placed_by_text(figure: FigureNine, plan: Plan) -> NDArray[np.int64]:
    """Values that are split go by the text."""
    pairs = zip(figure.needs, figure.texts(), strict=True)
    return np.array([plan.place_needs(needs, text).partition for needs, text in pairs])


def _partitions_of_predicates(
    figure: FigureNine, placed: NDArray[np.int64]
) -> list[dict[int, set[int]]]:
    """For each pattern: value -> the partitions with a profile that has this predicate."""
    found: list[dict[int, set[int]]] = [{} for _ in range(PATTERNS)]
    for side in (0, 1):
        rows = np.unique(
            np.stack([figure.patterns[:, side], figure.values[:, side], placed], axis=1), axis=0
        )
        for pattern, value, partition in rows.tolist():
            found[pattern].setdefault(value, set()).add(partition)
    return found


def _predicates_visit(of_predicate: list[dict[int, set[int]]], message: Message) -> int:
    visited: set[int] = set()
    for pattern, values in enumerate(message):
        for value in values:
            visited |= of_predicate[pattern].get(value, set())
    return len(visited)


def _buckets(paper: PaperPep, message: Message) -> set[int]:
    pairs = ((pattern_name(p), str(value)) for p, values in enumerate(message) for value in values)
    return {paper.bucket[pair] for pair in pairs if pair in paper.bucket}


def _percent(visited: list[int], partitions: int) -> float:
    return round(100 * sum(visited) / len(visited) / partitions, 3)
