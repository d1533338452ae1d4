"""How the network answers one matching path: linear paths, branches, and what remains.

``decompose`` takes a profile's matching path apart (section 4.1)::

    /nitf[@version][head/pubdata/@edition.area = "SF"][not(body)]//p

        spine       /nitf[@version]//p
        branch      at step 0: /head/pubdata[@edition.area = "SF"]
        residual    at step 0: not(body)

A branch's spine starts at the element of its step instead of the document node; branches nest.
The plan is exact: the path selects an element exactly when the plan does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from yfilter.engine.linear_paths import LinearPath, LinearStep
from yfilter.engine.nfa import StructuralStep
from yfilter.engine.step_conditions import ConditionKind, element_test, main_steps, take_apart
from yfilter.language.query_ast import Expression, LocationStep, PathExpression
from yfilter.language.query_text import unparse


@dataclass(frozen=True, slots=True)
class MatchingPlan:
    """``branches`` and ``residuals`` name the spine's step, from 0, at which they stand."""

    spine: LinearPath
    branches: tuple[tuple[int, MatchingPlan], ...] = ()
    residuals: tuple[tuple[int, Expression], ...] = ()

    @property
    def structure(self) -> tuple[StructuralStep, ...]:
        return tuple(step.structure for step in self.spine.steps)

    def structure_texts(self) -> tuple[str, ...]:
        """Each step of the spine as text, without its conditions."""
        return tuple(
            str(LinearPath((LinearStep(step.descendant, step.test),))) for step in self.spine.steps
        )

    def branches_at(self, index: int) -> tuple[MatchingPlan, ...]:
        return tuple(plan for step, plan in self.branches if step == index)

    def residuals_at(self, index: int) -> tuple[Expression, ...]:
        return tuple(condition for step, condition in self.residuals if step == index)

    def conditioned(self) -> tuple[int, ...]:
        """The steps where something is asked of the element, and the last."""
        last = len(self.spine.steps) - 1
        asked = {index for index, step in enumerate(self.spine.steps) if step.selections}
        asked.update(index for index, _ in self.branches)
        asked.update(index for index, _ in self.residuals)
        return tuple(sorted(asked | {last}))

    def describe(self, indent: str = "") -> str:
        """The plan as indented lines."""
        lines = [f"{indent}{self.spine}"]
        for index, plan in self.branches:
            lines.append(f"{indent}  branch at step {index}:")
            lines.append(plan.describe(indent + "    "))
        for index, condition in self.residuals:
            lines.append(f"{indent}  residual at step {index}: {unparse(condition)}")
        return "\n".join(lines)


def decompose(path: PathExpression) -> MatchingPlan:
    """The plan of a profile's matching path, which starts at the message."""
    return _plan(main_steps(path))


class _StepConditions:
    """Sorts the conditions of one step into the three kinds; equal ones are kept once."""

    def __init__(self) -> None:
        self.selections: dict[Expression, None] = {}
        self.branches: dict[MatchingPlan, None] = {}
        self.residuals: dict[Expression, None] = {}

    def add(self, condition: Expression) -> None:
        for kind, part in take_apart(condition):
            if kind is ConditionKind.SELECTION:
                self.selections[part] = None
            elif kind is ConditionKind.RESIDUAL:
                self.residuals[part] = None
            elif isinstance(part, PathExpression):
                self.branches[_plan(part.steps)] = None


def _plan(steps: Sequence[LocationStep]) -> MatchingPlan:
    linear: list[LinearStep] = []
    branches: list[tuple[int, MatchingPlan]] = []
    residuals: list[tuple[int, Expression]] = []
    for index, step in enumerate(steps):
        conditions = _StepConditions()
        for predicate in step.predicates:
            conditions.add(predicate)
        linear.append(LinearStep(step.descendant, element_test(step), tuple(conditions.selections)))
        branches.extend((index, plan) for plan in conditions.branches)
        residuals.extend((index, condition) for condition in conditions.residuals)
    # Sorted, so that profiles that say the same in another order share their operators.
    if len(branches) > 1:
        branches.sort(key=lambda branch: (branch[0], branch[1].describe()))
    residuals.sort(key=lambda residual: (residual[0], unparse(residual[1])))
    return MatchingPlan(LinearPath(tuple(linear)), tuple(branches), tuple(residuals))
