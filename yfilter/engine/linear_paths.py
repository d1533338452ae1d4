"""Linear paths, and the routing queries made of them (section 4.2.1).

A linear path is a path without branches.  A routing query is a disjunction of
conjunctions of linear paths (DNF); it relaxes a profile's nested paths, since each linear path
may be found anywhere in the message::

    /nitf[head/pubdata/@edition.area = "SF"][.//series]
        /nitf//series and /nitf/head/pubdata[@edition.area = "SF"]

Conjunctions travel between brokers as their text.  ``routing_query`` (the paper's Map) makes
them, and never loses a message: whatever linear paths cannot say is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from yfilter.engine.readings import GRAPH_ROOT, Reading, reading_of
from yfilter.engine.tree_patterns import Branch, element_test, main_alternatives
from yfilter.errors import ProfileRefused
from yfilter.language import query_ast as ast
from yfilter.language.matching_path import matching_path
from yfilter.language.profile_limits import ProfileLimits
from yfilter.language.query_parser import parse_expression
from yfilter.language.query_text import unparse
from yfilter.language.trees import split

# What a conjunction may be as text.  A profile within its own limits stays far below, unless long
# namespaces or long common prefixes are repeated very often.
CONJUNCTION_LIMITS = ProfileLimits(
    length_max=262_144,
    depth_max=80,
    steps_max=65_536,
    all_steps_max=262_144,
    idle_paths_refused=False,
    faults_refused=False,
)

CONJUNCTION_BYTES_MAX = 256 * 1024  # of UTF-8, so that any frame can carry one
COMPARED_MAX = 128  # paths of a conjunction of which each is held against each

DISJUNCTS_MAX = 32  # of a routing query

_AND = " and "

# Descendant or child, and a name test: a step without its conditions.
StructuralStep: TypeAlias = tuple[bool, ast.NameTest]


@dataclass(frozen=True, slots=True)
class LinearStep:
    """One step and the conditions that its element alone decides, sorted by their text."""

    descendant: bool
    test: ast.NameTest
    selections: tuple[ast.Expression, ...] = ()
    text: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.selections) > 1:
            canonical = tuple(sorted(dict.fromkeys(self.selections), key=unparse))
            object.__setattr__(self, "selections", canonical)
        text = unparse(ast.absolute(self.location_step))
        object.__setattr__(self, "text", text)

    @classmethod
    def of_text(
        cls, descendant: bool, test: ast.NameTest, selections: tuple[ast.Expression, ...], text: str
    ) -> LinearStep:
        """The step that has this text, its selections in that order."""
        step = object.__new__(cls)
        object.__setattr__(step, "descendant", descendant)
        object.__setattr__(step, "test", test)
        object.__setattr__(step, "selections", selections)
        object.__setattr__(step, "text", text)
        return step

    @property
    def location_step(self) -> ast.LocationStep:
        return ast.LocationStep(self.descendant, ast.NodeKind.ELEMENT, self.test, self.selections)

    @property
    def structure(self) -> StructuralStep:
        return (self.descendant, self.test)


@dataclass(frozen=True, slots=True)
class LinearPath:
    """A path from the document node, of at least one step."""

    steps: tuple[LinearStep, ...]

    def __str__(self) -> str:
        return "".join([step.text for step in self.steps])

    @property
    def expression(self) -> ast.Expression:
        return ast.absolute(*(step.location_step for step in self.steps))

    def implies(self, other: LinearPath) -> bool:
        """Whether ``other`` is the beginning of this path, with no condition of its own."""
        return len(other.steps) <= len(self.steps) and all(
            mine.text == theirs.text
            or (
                len(theirs.selections) < len(mine.selections)
                and mine.structure == theirs.structure
                and set(theirs.selections) <= set(mine.selections)
            )
            for mine, theirs in zip(self.steps, other.steps, strict=False)
        )


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Conjunction:
    """Linear paths that all have to be found: one disjunct of a routing query.

    The paths are sorted by their text, without duplicates.  ``text`` is self-contained (no
    prefix needs a declaration, names without one are in no namespace) and ``parse`` reads it back
    exactly; so it stands for the conjunction where two are compared.
    """

    paths: tuple[LinearPath, ...]
    text: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.paths:
            raise ValueError("a conjunction has at least one path")
        by_text = {str(path): path for path in self.paths}
        texts = sorted(by_text)
        object.__setattr__(self, "paths", tuple(by_text[text] for text in texts))
        object.__setattr__(self, "text", _AND.join(texts))

    def __str__(self) -> str:
        return self.text

    @property
    def reading(self) -> Reading:
        """Of what it is: of the graph if one of its paths is, for that holds on no document."""
        return max(reading_of(path.steps) for path in self.paths)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Conjunction) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    @classmethod
    def parse(cls, text: str) -> Conjunction:
        """Read what ``str()`` wrote; ProfileRefused for anything else."""
        condition = parse_expression(text, CONJUNCTION_LIMITS)
        parts = split(condition, ast.And)
        conjunction = cls(tuple(_linear_path(part, text) for part in parts))
        if conjunction.text != text:
            raise _not_linear(text, "the text is not in canonical form")
        return conjunction


# Every document has a root element, and every graph this one.
ANY_DOCUMENT = Conjunction((LinearPath((LinearStep(False, ast.ANY_NAME),)),))
ANY_GRAPH = Conjunction((LinearPath((LinearStep(False, GRAPH_ROOT),)),))
ANY_MESSAGE = {Reading.DOCUMENT: ANY_DOCUMENT, Reading.GRAPH: ANY_GRAPH}


def routing_query(
    profile: ast.Profile, disjuncts_max: int = DISJUNCTS_MAX
) -> tuple[Conjunction, ...]:
    """The routing query of a profile: every message that the profile matches satisfies one.

    Exact for a profile that is one linear path; a profile of n nested paths becomes n + 1 linear
    paths, of which one that another implies is left out.  ``or`` between nested paths becomes
    several conjunctions; where that would be more than ``disjuncts_max``, what the alternatives
    have in common is kept.  Of a condition that is no path, what it implies is kept.  What does not
    fit CONJUNCTION_BYTES_MAX is left out as well.  Of a profile of the graph reading all are.
    """
    return conjunctions_of(matching_path(profile), disjuncts_max)


def conjunctions_of(
    path: ast.Expression, disjuncts_max: int = DISJUNCTS_MAX
) -> tuple[Conjunction, ...]:
    """The same for a matching path: one of them holds on every message that the path matches."""
    found: dict[Conjunction, None] = {}
    for branch in main_alternatives(path, disjuncts_max):
        found[_conjunction(branch)] = None
    return tuple(sorted(found, key=lambda conjunction: conjunction.text))


def _conjunction(branch: Branch) -> Conjunction:
    kept: list[LinearPath] = []
    length = 0
    for path in without_implied(tuple(linear_paths_of((), branch))):
        length += len(str(path).encode()) + len(_AND)
        if length > CONJUNCTION_BYTES_MAX:
            break
        kept.append(path)
    anything = ANY_MESSAGE[reading_of(branch)]
    if not kept or Conjunction(tuple(kept)).reading < anything.reading:
        kept += anything.paths
    return Conjunction(tuple(kept))


def linear_paths_of(prefix: tuple[LinearStep, ...], branch: Branch) -> Iterator[LinearPath]:
    """The path of a branch that continues ``prefix``, and of all branches on it."""
    for step in branch:
        pattern = step.pattern
        prefix = (*prefix, LinearStep(step.descendant, step.test, pattern.selections))
        for nested in pattern.branches:
            yield from linear_paths_of(prefix, nested)
        for other in pattern.absolute:
            yield from linear_paths_of((), other)
    yield LinearPath(prefix)


def without_implied(paths: tuple[LinearPath, ...]) -> tuple[LinearPath, ...]:
    """The paths without those that another one implies, where they are not too many to look."""
    distinct = tuple(dict.fromkeys(paths))
    if len(distinct) > COMPARED_MAX:
        return distinct
    return tuple(
        path
        for path in distinct
        if not any(other != path and other.implies(path) for other in distinct)
    )


def _linear_path(expression: ast.Expression, text: str) -> LinearPath:
    if expression.origin is not ast.Origin.MESSAGE:
        raise _not_linear(text, "a part is not a path from the message")
    steps = []
    for step in expression.steps:
        if step.kind is not ast.NodeKind.ELEMENT:
            raise _not_linear(text, "a step does not select elements")
        if not all(predicate.is_local for predicate in step.predicates):
            raise _not_linear(text, "a condition needs more than its element")
        steps.append(LinearStep(step.descendant, element_test(step), step.predicates))
    if not steps:
        raise _not_linear(text, "a path has no steps")
    return LinearPath(tuple(steps))


def _not_linear(text: str, reason: str) -> ProfileRefused:
    return ProfileRefused(
        "not-linear",
        f"not a conjunction of linear paths: {reason}",
        text,
        expected="linear paths with conditions on their own elements, joined by 'and'",
    )
