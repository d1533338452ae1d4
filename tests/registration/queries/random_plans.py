"""Query plans by chance: any order of joins and any sites that the query graph allows."""

from __future__ import annotations

import random
from dataclasses import dataclass

from registration.queries.providers import CycleProvider
from registration.queries.query_graph import QueryGraph
from registration.queries.query_plan import Figures, PlanNode

SITES = tuple(CycleProvider(f"urn:{name}", name) for name in "ABC")


@dataclass(slots=True)
class _State:
    """Rows of some units and steps; ``open``: a view is at hand whose predicates are not all
    done."""

    node: PlanNode
    units: int
    steps: int = 0
    open: bool = False


class RandomPlans:
    """``moves``: how likely rows are sent after each operator."""

    def __init__(self, rng: random.Random, moves: float = 0.3) -> None:
        self._rng = rng
        self._moves = moves

    def plan(self, graph: QueryGraph) -> PlanNode:
        if graph.combine:
            site = self._rng.choice(SITES)
            parts = tuple(self._at(self._unit(graph, n), site) for n in range(len(graph.units)))
            return self._node("project", self._node("union", *parts, kind=graph.combine))
        node = self._joined(graph)
        if graph.aggregated:
            node = self._node("nest", node)
        return self._node("project", node)

    def _node(self, operator: str, *inputs: PlanNode, index: int = -1, **more: object) -> PlanNode:
        site = inputs[0].site if inputs else self._rng.choice(SITES)
        return PlanNode(operator, site, Figures(), inputs, index, **more)  # type: ignore[arg-type]

    @staticmethod
    def _at(node: PlanNode, site: CycleProvider) -> PlanNode:
        if node.site == site:
            return node
        send = PlanNode("send", node.site, Figures(), (node,))
        return PlanNode("receive", site, Figures(), (send,))

    def _unit(self, graph: QueryGraph, number: int) -> PlanNode:
        unit = graph.units[number]
        if unit.block is None:
            return self._node("scan", index=number, relation=unit.relation)
        return self._node("block", self._moved(self.plan(unit.block)), index=number)

    def _moved(self, node: PlanNode) -> PlanNode:
        return self._at(node, self._rng.choice(SITES)) if self._rng.random() < self._moves else node

    def _joined(self, graph: QueryGraph) -> PlanNode:
        states = [_State(self._unit(graph, n), 1 << n) for n in range(len(graph.units))]
        done: set[int] = set()
        for state in states:
            self._select(graph, state, done)
        late = _late(graph)
        rights = sum(right for _, _, right, _ in graph.outer)
        while True:
            choices: list[tuple[object, ...]] = []
            for one in states:
                for number, step in enumerate(graph.steps):
                    units, steps = _needs(graph, step.units, step.steps)
                    fits = not units & ~one.units and not steps & ~one.steps
                    if fits and not one.steps >> number & 1 and one.units & ~rights:
                        choices.append(("step", one, number))
                for other in states:
                    if one is other:
                        continue
                    for number, (kind, left, right, _) in enumerate(graph.outer):
                        fits = other.units == right and not left & ~one.units
                        fits &= not (kind == "full" and one.units != left) and not right & late
                        if fits:
                            choices.append(("outer", one, other, number))
                    if self._may_join(graph, one, other, rights):
                        choices.append(("join", one, other))
            if not choices:
                break
            self._act(graph, states, self._rng.choice(choices), done)
        top = next(each for each in states if each.units & ~late)
        for number, (_, _, right, _) in enumerate(graph.outer):
            if right & late:
                other = next(each for each in states if each.units == right)
                self._act(graph, states, ("outer", top, other, number), done)
                top = next(each for each in states if each.units & right)
        assert len(states) == 1 and len(done) == len(graph.predicates), (graph, done)
        assert top.steps == (1 << len(graph.steps)) - 1, graph
        return top.node

    @staticmethod
    def _may_join(graph: QueryGraph, one: _State, other: _State, rights: int) -> bool:
        """Nothing joins a side of a full outer join before the other one."""
        if not (one.units & ~rights and other.units & ~rights) or one.open or other.open:
            return False
        both = one.units | other.units
        return not any(
            kind == "full" and left & both and right & ~both for kind, left, right, _ in graph.outer
        )

    def _act(
        self, graph: QueryGraph, states: list[_State], choice: tuple[object, ...], done: set[int]
    ) -> None:
        what, one, *rest = choice
        assert isinstance(one, _State)
        states.remove(one)
        number = rest[-1]
        if what == "step":
            assert isinstance(number, int)
            step = graph.steps[number]
            function = step.alternatives[0] if step.alternatives else None
            operator = "apply" if step.alternatives else "unnest"
            node = self._node(operator, one.node, index=number, function=function)
            made = _State(node, one.units, one.steps | 1 << number, one.open)
        else:
            other = rest[0]
            assert isinstance(other, _State)
            states.remove(other)
            site = one.node.site if one.open else self._rng.choice(SITES)
            nodes = self._at(one.node, site), self._at(other.node, site)
            made = _State(nodes[0], one.units | other.units, one.steps | other.steps, one.open)
            if what == "outer":
                assert isinstance(number, int)
                kind = graph.outer[number][0]
                made.node = self._node("join", *nodes, index=number, kind=kind)
                made.open |= kind == "filter"
            else:
                fresh = self._fresh(graph, made, done)
                index = fresh[0] if fresh else -1
                done.update(fresh[:1])
                kind = "inner" if fresh else "cross"
                made.node = self._node("join", *nodes, index=index, kind=kind)
        self._select(graph, made, done)
        views = [right for kind, _, right, _ in graph.outer if kind == "filter"]
        wait = [p for n, p in enumerate(graph.predicates) if n not in done]
        made.open = any(
            v & made.units and (any(p.units & v for p in wait) or v & _late(graph)) for v in views
        )
        if not made.open:
            made.node = self._moved(made.node)
        states.append(made)

    def _fresh(self, graph: QueryGraph, state: _State, done: set[int]) -> list[int]:
        found = []
        for number, predicate in enumerate(graph.predicates):
            units, steps = _needs(graph, predicate.units, predicate.steps)
            if number not in done and not units & ~state.units and not steps & ~state.steps:
                found.append(number)
        self._rng.shuffle(found)
        return found

    def _select(self, graph: QueryGraph, state: _State, done: set[int]) -> None:
        for number in self._fresh(graph, state, done):
            done.add(number)
            state.node = self._node("select", state.node, index=number)


def _needs(graph: QueryGraph, units: int, steps: int) -> tuple[int, int]:
    """With what steps need, and the other sides of joins that make columns null."""
    for number, step in enumerate(graph.steps):
        if steps >> number & 1:
            more = _needs(graph, step.units, step.steps)
            units, steps = units | more[0], steps | more[1]
    for kind, left, right, _ in reversed(graph.outer):
        side = {"left": right, "full": left | right}.get(kind, 0)
        if units & side:
            units |= left | right
    return units or 1, steps


def _late(graph: QueryGraph) -> int:
    """Views that the operators on top read."""
    texts = " ".join((*(each.text for each in graph.select), graph.having, *graph.order))
    return sum(
        right
        for kind, _, right, _ in graph.outer
        if kind == "filter" and f"`{graph.units[right.bit_length() - 1].alias}`" in texts
    )
