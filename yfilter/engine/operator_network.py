"""The shared operator network on top of the NFA (sections 4.1, 4.2.1 and 4.3.1).

Local profiles and routing queries live in one network; what two of them have in common is one
operator.  The queries of the paper's Figure 5::

     path 4            path 6                     path 7          accepting states of the NFA
       │                 │    └──────────┐           │
    σ @edition.area   σ @…type       σ @…matter   σ @series.name
       ├────────┬────────┼───────────────┼───────────┼──────┐
       └───┐ ┌──┼────────┘      ┌────────┘           │      │
         ⋈ Q1   └────────── ⋈ Q2                     └─── ⋈ Q3    (each also with path 2: nitf)

A profile's plan becomes, for each step where something is asked, its path, then its selections in
canonical order, then one join with the step above and the branches below, then its residual
conditions.  A routing query's conjunction becomes its linear paths and one ``and``.

Invariants: an operator lives exactly as long as another operator or an annotation uses it; no two
operators have equal keys; a path operator holds exactly one path of the NFA.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from yfilter.engine.linear_paths import Conjunction, LinearPath
from yfilter.engine.matching_plan import MatchingPlan
from yfilter.engine.network_picture import NetworkPicture
from yfilter.engine.nfa import Nfa, State, StructuralStep
from yfilter.engine.operators.conjunction import And
from yfilter.engine.operators.join import Join, Relation
from yfilter.engine.operators.operator import Operator
from yfilter.engine.operators.path import Path
from yfilter.engine.operators.residual import Residual
from yfilter.engine.operators.selection import Selection
from yfilter.engine.targets import Priority, Target


class OperatorNetwork:
    """Structure only: build operators for plans and conjunctions, and release them again.

    An operator just built is not in use: ``attach`` a target to it; the operator goes with its
    last target, and what only served it.
    """

    def __init__(self) -> None:
        self.nfa = Nfa()
        self._operators: dict[Hashable, Operator] = {}
        self._sources: dict[State, Path] = {}
        self._attached = [0] * len(Priority)

    def build_plan(self, plan: MatchingPlan) -> Operator:
        """The operator that delivers the elements of the spine's last step."""
        structure = plan.structure
        above: tuple[Operator, int] | None = None
        for index in plan.conditioned():
            operator = self._step(plan, index, (), above, None)
            above = (operator, index)
        assert above is not None and above[1] == len(structure) - 1
        return above[0]

    def build_conjunction(self, conjunction: Conjunction) -> Operator:
        """The operator that delivers something when every path is found."""
        found = tuple(self._linear(path) for path in conjunction.paths)
        return found[0] if len(found) == 1 else self._shared(And(found))

    def attach(self, operator: Operator, target: Target) -> None:
        """The operator leads to a target, until ``detach``."""
        operator.annotate(target)
        self._attached[target.priority] += 1

    def detach(self, operator: Operator, target: Target) -> None:
        operator.forget(target)
        self._attached[target.priority] -= 1
        self.release(operator)

    def has(self, priority: Priority) -> bool:
        """Whether some operator leads to a target of a class."""
        return self._attached[priority] > 0

    @property
    def is_idle(self) -> bool:
        """Whether no operator leads to any target."""
        return not any(self._attached)

    def release(self, operator: Operator) -> None:
        """Take the operator out if nothing uses it any more, and then what only served it."""
        pending = [operator]
        while pending:
            current = pending.pop()
            if current.used or self._operators.get(current.key) is not current:
                continue
            del self._operators[current.key]
            current.disconnect()
            pending.extend(current.inputs)
            if isinstance(current, Path):
                del self._sources[current.state]
                self.nfa.remove(current.state)

    @property
    def is_empty(self) -> bool:
        return not self._operators

    def source(self, state: State) -> Path:
        """The path operator of an accepting state."""
        return self._sources[state]

    def statistics(self) -> dict[str, int]:
        kinds = Counter(type(operator).__name__ for operator in self._operators.values())
        operators = {
            f"operators_{kind.__name__.lower()}": kinds[kind.__name__]
            for kind in (Path, Selection, Join, Residual, And)
        }
        return {**self.nfa.statistics(), "operators": len(self._operators), **operators}

    def picture(self) -> NetworkPicture:
        """The network for people."""
        return NetworkPicture(self.nfa, list(self._operators.values()))

    def _linear(self, path: LinearPath) -> Operator:
        return self.build_plan(MatchingPlan(path))

    def _branch(
        self, plan: MatchingPlan, prefix: tuple[StructuralStep, ...]
    ) -> tuple[Operator, Relation]:
        """A branch from the element of ``prefix``'s last step, folded from its leaf upwards.

        Upwards, because the same chain of ancestors has to satisfy all steps of the branch: of
        ``b[@x]//c`` the elements b with @x that have a c below are kept, not the c.
        """
        below: tuple[Operator, Relation] | None = None
        conditioned = plan.conditioned()
        for position in range(len(conditioned) - 1, -1, -1):
            index = conditioned[position]
            operator = self._step(plan, index, prefix, None, below)
            upper = conditioned[position - 1] if position else -1
            below = (operator, plan.structure[upper + 1 : index + 1])
        assert below is not None
        return below

    def _step(
        self,
        plan: MatchingPlan,
        index: int,
        prefix: tuple[StructuralStep, ...],
        above: tuple[Operator, int] | None,
        below: tuple[Operator, Relation] | None,
    ) -> Operator:
        """The operator of one step: everything that is asked there, given above and below."""
        structure = prefix + plan.structure[: index + 1]
        operator = self._path(structure)
        for condition in plan.spine.steps[index].selections:
            operator = self._shared(Selection(operator, condition))
        branches = [self._branch(branch, structure) for branch in plan.branches_at(index)]
        if below is not None:
            branches.append(below)
        if above is not None or branches:
            upper = None if above is None else (above[0], plan.structure[above[1] + 1 : index + 1])
            distinct = tuple(dict.fromkeys(branches))
            operator = self._shared(Join(operator, upper, distinct))
        for condition in plan.residuals_at(index):
            operator = self._shared(Residual(operator, condition))
        return operator

    def _path(self, steps: tuple[StructuralStep, ...]) -> Operator:
        found = self._operators.get((Path, steps))
        if found is None:
            state = self.nfa.add(steps)
            found = self._sources[state] = self._shared_path(Path(state, steps))
        return found

    def _shared_path(self, path: Path) -> Path:
        self._operators[path.key] = path
        return path

    def _shared(self, candidate: Operator) -> Operator:
        """The operator of the network with the candidate's key; the candidate if there is none."""
        found = self._operators.get(candidate.key)
        if found is not None:
            return found
        self._operators[candidate.key] = candidate
        candidate.connect()
        return candidate
