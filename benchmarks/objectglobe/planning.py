"""How long a query takes to plan, and how near iterative planning comes to the best plan.

All are processor time.  The queries are random: relations of 100 to 1,000,000 rows at one or two of
six sites, flow rules that keep the rows of a relation from 15 % of the others, and, for the ratio,
up to two functions that are at some sites only.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from math import inf
from time import process_time

from benchmarks.benchmark import WrongAnswers
from benchmarks.report import Report
from benchmarks.samples import median, percentile
from registration.queries.idp import Effort, exhaust, search
from registration.queries.join_plans import Plans
from tests.registration.queries.random_problems import SHAPES, random_problem

_SITES = 6
_RELATIONS = 14  # of the queries whose plans are compared
_PAIRS = 1_000_000  # more than any of them has
_ROUNDS = 5


def measure_planning(report: Report, options: argparse.Namespace) -> None:
    """``dp10_ms``, ``idp30_ms``, ``idp_p90_ratio``; WrongAnswers if a plan is missed."""
    seeds = range(options.seed, options.seed + _ROUNDS)
    report.figure("dp10_ms", "star of 10, all plans", _ms(10, seeds, _whole), "ms")
    report.figure("idp30_ms", "star of 30, iterative", _ms(30, seeds, _iterative), "ms")
    ratios, times = [], []
    for seed in range(options.seed, options.seed + options.queries):
        ratio, spent = _compared(seed)
        times.append(spent)
        if ratio is not None:
            ratios.append(ratio)
    report.figure("idp14_ms", "iterative planning of 14", median(times), "ms")
    report.figure("idp_p50_ratio", "iterative to best plan, half", median(ratios))
    report.figure("idp_p90_ratio", "iterative to best plan, 90 %", percentile(ratios, 90))
    report.figure("idp_worst_ratio", "iterative to best plan, worst", max(ratios))
    report.condition("planned", "queries with a plan", len(ratios))


def _ms(relations: int, seeds: range, searched: Callable[[Plans], object]) -> float:
    times = []
    for seed in seeds:
        problem = random_problem(seed, relations, shape="star", sites=_SITES)
        start = process_time()
        searched(Plans(problem))
        times.append((process_time() - start) * 1e3)
    return median(times)


def _whole(plans: Plans) -> None:
    exhaust(plans, [1 << item for item in range(plans.problem.items)], _PAIRS)


def _iterative(plans: Plans) -> None:
    search(plans, [_SITES - 1])


def _compared(seed: int) -> tuple[float | None, float]:
    """Cost of the iterative plan by that of the best one, None where there is none, and ms."""
    shape = SHAPES[seed % len(SHAPES)]
    steps = seed // len(SHAPES) % 3 if shape != "star" else 0
    problem = random_problem(seed, _RELATIONS, shape=shape, sites=_SITES, steps=steps)
    best = Plans(problem)
    _whole(best)
    found = Plans(problem)
    start = process_time()
    search(found, [_SITES - 1], Effort(pairs=0))
    spent = (process_time() - start) * 1e3
    costs = [
        plans.choices[plans.full].cost[-1] if plans.full in plans.choices else inf
        for plans in (best, found)
    ]
    if (costs[0] == inf) != (costs[1] == inf):
        raise WrongAnswers(f"the query of seed {seed} has a plan, and iterative planning missed it")
    return (None if costs[0] == inf else costs[1] / costs[0]), spent
