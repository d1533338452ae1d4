"""How a profile is served: for people who ask why it matches, or why it does not.

``explain`` says which part of a profile the automaton and the selections serve, which conditions
are evaluated on the elements found, what is left to the end, and the routing query.  ``try_on``
follows a profile on one message: the matching path step by step, each condition in its place, then
the results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from formats.element_stream import ElementStream
from yfilter.engine.linear_paths import routing_query
from yfilter.engine.matching_plan import MatchingPlan, decompose
from yfilter.language.evaluation import Evaluator
from yfilter.language.matching_path import matching_part
from yfilter.language.nodes import DOCUMENT
from yfilter.language.query_ast import PathExpression, Profile
from yfilter.language.query_text import unparse
from yfilter.language.result import render


@dataclass(frozen=True, slots=True)
class Explanation:
    """All as texts of the profile language, names written in full.

    ``linear_paths`` what the automaton finds; ``indexed`` and ``residual`` conditions, each behind
    the path of its element; ``remainder`` what is evaluated at the end, "" for nothing;
    ``routing_query`` disjuncts, each of linear paths that all have to be found.
    """

    matching_path: str
    linear_paths: tuple[str, ...]
    indexed: tuple[str, ...]
    residual: tuple[str, ...]
    remainder: str
    routing_query: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """``parts``: ever longer parts of the matching path and how many elements each selects.

    ``first_failure``: the first part that selects nothing, or what is evaluated at the end when
    that yields nothing; "" when there are results.
    """

    parts: tuple[tuple[str, int], ...]
    first_failure: str
    results: int


def explain(profile: Profile) -> Explanation:
    """What becomes of an accepted profile."""
    part = matching_part(profile)
    plan = decompose(part.path)
    conditions = list(_conditions(plan, ""))
    return Explanation(
        unparse(part.path),
        tuple(dict.fromkeys(_linear_paths(plan, ""))),
        tuple(text for text, indexed in conditions if indexed),
        tuple(text for text, indexed in conditions if not indexed),
        _remainder(profile) if part.has_remainder else "",
        tuple(tuple(map(str, disjunct.paths)) for disjunct in routing_query(profile)),
    )


def try_on(profile: Profile, stream: ElementStream) -> Trial:
    """Follows the profile on a message.  Raises MatchLimitExceeded."""
    path = matching_part(profile).path
    evaluator = Evaluator(stream)
    parts: list[tuple[str, int]] = []
    selected: list[int] = []
    for prefix in _prefixes(path):
        selected = [node.number for node in evaluator.select(prefix, DOCUMENT, {})]
        parts.append((unparse(prefix), len(selected)))
        if not selected:
            return Trial(tuple(parts), parts[-1][0], 0)
    results = len(render(profile, stream, selected))
    return Trial(tuple(parts), "" if results else _remainder(profile), results)


def _prefixes(path: PathExpression) -> Iterator[PathExpression]:
    """The path step by step, each step condition by condition."""
    for index, step in enumerate(path.steps):
        for count in range(len(step.predicates) + 1):
            cut = replace(step, predicates=step.predicates[:count])
            yield replace(path, steps=(*path.steps[:index], cut))


def _linear_paths(plan: MatchingPlan, above: str) -> Iterator[str]:
    yield above + "".join(map(str, plan.structure_texts()))
    for index, branch in plan.branches:
        yield from _linear_paths(branch, above + "".join(plan.structure_texts()[: index + 1]))


def _conditions(plan: MatchingPlan, above: str) -> Iterator[tuple[str, bool]]:
    """Each condition behind the path of its element, and whether the index selects by it."""
    texts = plan.structure_texts()
    for index, step in enumerate(plan.spine.steps):
        place = above + "".join(texts[: index + 1])
        for condition in step.selections:
            yield f"{place}[{unparse(condition)}]", True
        for branch in plan.branches_at(index):
            yield from _conditions(branch, place)
        for condition in plan.residuals_at(index):
            yield f"{place}[{unparse(condition)}]", False


def _remainder(profile: Profile) -> str:
    return unparse(profile)
