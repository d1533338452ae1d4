"""Random problems of the optimiser, each from a seed, and a search through all plans of one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise, permutations
from random import Random

from registration.queries.join_plans import (
    HASH,
    NESTED,
    Condition,
    FixedJoin,
    Input,
    Problem,
    Step,
    Width,
    bits,
)

SHAPES = ("star", "tree", "chain")


def random_problem(
    seed: int, inputs: int, *, shape: str = "tree", steps: int = 0, sites: int = 6,
    forbidden: float = 0.15, fixed: bool = False,
) -> Problem:  # fmt: skip
    """Inputs are read at one or two sites; a site is ``forbidden`` to the rows of an input with
    that probability, the last one, where results are wanted, to none."""
    random = Random(seed)
    speed = [random.uniform(1, 4) for _ in range(sites)]
    work = tuple(1e-6 / each for each in speed)
    entries = []
    for _ in range(inputs):
        home = random.sample(range(sites), random.randint(1, 2))
        rows = 10 ** random.uniform(2, 6)
        allowed = {site for site in range(sites) if random.random() > forbidden}
        flow = sum(1 << site for site in allowed | {*home, sites - 1})
        entries.append(Input(rows, {site: rows * work[site] for site in home}, flow))
    if shape == "star":
        edges = [(0, n) for n in range(1, inputs)]
    elif shape == "chain":
        edges = [(n - 1, n) for n in range(1, inputs)]
    elif shape == "clique":
        edges = list(combinations(range(inputs), 2))
    else:
        edges = [(random.randrange(n), n) for n in range(1, inputs)]
    conditions = [
        Condition(1 << one | 1 << other, 10 ** random.uniform(-6, -1), random.random() > 0.1)
        for one, other in edges
    ]
    widths = [Width(n, random.uniform(20, 2000), -1) for n in range(inputs)]
    made = []
    for step in range(steps):
        need = 1 << random.randrange(inputs)
        if random.random() < 0.3:
            need |= 1 << random.randrange(inputs)
        places = random.sample(range(sites), random.randint(1, sites))
        at = {site: (0.01, 10 ** random.uniform(-7, -4) / speed[site]) for site in places}
        made.append(Step(need, 10 ** random.uniform(-1, 0.5), at))
        conditions.append(Condition(need | 1 << (inputs + step), random.uniform(0.01, 1)))
        column = need.bit_length() - 1
        widths.append(Width(column, random.uniform(100, 9000), 1 << (inputs + step)))
        widths.append(Width(inputs + step, random.uniform(10, 500), -1))
    joins = []
    if fixed and inputs > 2:
        left = edges[-1][0]
        joins.append(FixedJoin(1 << left, 1 << (inputs - 1), random.random() < 0.3))
    links = [[random.uniform(1e-9, 1e-6) for _ in range(sites)] for _ in range(sites)]
    starts = [[random.uniform(0, 0.05) for _ in range(sites)] for _ in range(sites)]
    return Problem(
        tuple(entries), tuple(made), tuple(conditions), tuple(widths), work,
        tuple(map(tuple, links)), tuple(map(tuple, starts)), tuple(joins),
    )  # fmt: skip


class EveryPlan:
    """All plans of a problem, by trying each tree at each site with each way of sending."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.sites = range(len(problem.work))
        self._known: dict[int, list[tuple[int, float]]] = {}

    def costs(self, site: int) -> list[float]:
        """Of each plan of all items whose rows are at a site."""
        whole = (1 << self.problem.items) - 1
        return [cost for at, cost in self.plans(whole) if at == site]

    def plans(self, items: int) -> list[tuple[int, float]]:
        """Site and cost of each plan of a set; equal trees once."""
        if items not in self._known:
            made = list(self._made(items))
            sent = [
                (path[-1], cost + sum(self._send(items, *hop) for hop in pairwise(path)))
                for site, cost in made
                for path in self._paths(items, site)
            ]
            self._known[items] = sent
        return self._known[items]

    def rows(self, items: int) -> float:
        problem, rows = self.problem, 1.0
        for item in bits(items):
            step = item - len(problem.inputs)
            rows *= problem.steps[step].rows_per_row if step >= 0 else problem.inputs[item].rows
        for condition in problem.conditions:
            if condition.items & items == condition.items:
                rows *= condition.selectivity
        return max(rows, 1.0)

    def _made(self, items: int) -> Iterator[tuple[int, float]]:
        problem, count = self.problem, len(self.problem.inputs)
        if items.bit_count() == 1 and items.bit_length() <= count:
            yield from problem.inputs[items.bit_length() - 1].access.items()
            return
        for number in bits(items >> count):
            below = items & ~(1 << (count + number))
            step = problem.steps[number]
            if not step.need & ~below and self._sensible(below):
                for site, cost in self.plans(below):
                    if site in step.at:
                        start, row = step.at[site]
                        yield site, cost + start + row * self.rows(below)
        for one in self._halves(items):
            other = items & ~one
            if not (self._sensible(one) and self._sensible(other)) or not self._meet(one, other):
                continue
            work = HASH * (self.rows(one) + self.rows(other) + self.rows(items))
            if not any(self._spans(each, one, other) for each in problem.conditions if each.equal):
                work += NESTED * self.rows(one) * self.rows(other)
            for left, cost in self.plans(one):
                for right, more in self.plans(other):
                    if left == right:
                        yield left, cost + more + work * problem.work[left]

    def _halves(self, items: int) -> Iterator[int]:
        lowest = items & -items
        rest = items & ~lowest
        some = rest
        while some:
            some = (some - 1) & rest
            yield lowest | some

    def _spans(self, condition: Condition, one: int, other: int) -> bool:
        return bool(condition.items & one and condition.items & other)

    def _meet(self, one: int, other: int) -> bool:
        problem, count = self.problem, len(self.problem.inputs)
        items = one | other
        for join in problem.fixed:
            whole = join.left | join.right
            sides = (join.left, join.right) if join.both else (join.right,)
            if whole & ~items:
                if any(items & side and items & ~side for side in sides):
                    return False
            elif whole & ~one and whole & ~other and not all(s in (one, other) for s in sides):
                return False
        groups = [each.items for each in problem.conditions]
        groups += [step.need | 1 << (count + n) for n, step in enumerate(problem.steps)]
        groups += [join.left | join.right for join in problem.fixed]
        return any(group & one and group & other for group in groups)

    def _sensible(self, items: int) -> bool:
        count = len(self.problem.inputs)
        if not items & ((1 << count) - 1):
            return False
        return all(not self.problem.steps[n].need & ~items for n in bits(items >> count))

    def _flow(self, items: int) -> set[int]:
        inputs = self.problem.inputs
        return {
            site
            for site in self.sites
            if all(inputs[item].flow >> site & 1 for item in bits(items) if item < len(inputs))
        }

    def _paths(self, items: int, site: int) -> Iterator[tuple[int, ...]]:
        allowed = self._flow(items)
        if site in allowed:
            others = sorted(allowed - {site})
            for length in range(len(others) + 1):
                for path in permutations(others, length):
                    yield (site, *path)

    def _send(self, items: int, one: int, other: int) -> float:
        problem = self.problem
        width = 8.0 + sum(
            each.bytes for each in problem.widths if items >> each.item & 1 and each.until & ~items
        )
        size = self.rows(items) * width
        return size * problem.per_byte[one][other] + problem.per_send[one][other]
