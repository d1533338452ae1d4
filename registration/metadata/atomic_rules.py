"""Decomposition of a rule into atomic rules (MDV, section 3.3.1).

An *atomic rule* is a trigger, a class with at most one condition against a constant, or a join of
other atomic rules.  ``decompose`` gives a conjunction as a program: the triggers of each variable,
then joins, each of which takes variables out until the registered one is left.  A variable that is
joined with one other only goes first, so joins of a tree have two inputs, as in the paper; what
is left of a rule whose joins form a circle is one join of all its variables, since sets of single
resources cannot say which of them belong together.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from registration.metadata.rules import Conjunction, Constant, Join, V


class Trigger(NamedTuple):
    """``operator`` "": all resources of the class.  ``property`` "": the resource itself."""

    class_name: str
    property: str = ""
    operator: str = ""
    constant: Constant | None = None


Link: TypeAlias = Join[int]
"""A join's condition between two of its inputs, by their places."""


class Form(NamedTuple):
    """A rule group: the joins with these conditions over inputs of these classes (section 3.3.3).
    ``output``: the place of the input whose resources are registered."""

    classes: tuple[str, ...]
    links: tuple[Link, ...]
    output: int


class JoinStep(NamedTuple):
    """The inputs are what stands for these variables; the result stands for the one at
    ``form.output``."""

    variables: tuple[str, ...]
    form: Form


class Program(NamedTuple):
    """The atomic rules of a conjunction: variables in the order in which they are needed, each with
    its triggers, which must all hold; then joins.  The last result is the rule's."""

    triggers: Mapping[str, tuple[Trigger, ...]]
    joins: tuple[JoinStep, ...]
    register: str


_PAIRS = (("<", ">"), ("<=", ">="), ("contains", "within"), ("lacks", "without"))
TURNED = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}
SAME = Join(0, "", "=", 1, "", "iri")  # two triggers of one variable


def turned(link: Join[V]) -> Join[V]:
    """The same, said from the other side."""
    operator = TURNED.get(link.operator, link.operator)
    return Join(link.right, link.right_property, operator, link.left, link.left_property, link.kind)


def decompose(conjunction: Conjunction) -> Program:
    """The atomic rules of a conjunction, without a rule that is said twice."""
    triggers: dict[str, dict[Trigger, None]] = {name: {} for name in conjunction.classes}
    for name, prop, operator, constant in conjunction.conditions:
        triggers[name][Trigger(conjunction.classes[name], prop, operator, constant)] = None
    classes, register, _, joins = conjunction
    steps, order = _steps(tuple(classes.items()), register, joins)
    return Program(
        {name: tuple(triggers[name]) or (Trigger(classes[name]),) for name in order},
        steps,
        register,
    )


@lru_cache(1_024)
def _steps(
    classes: tuple[tuple[str, str], ...], register: str, joins: tuple[Join[str], ...]
) -> tuple[tuple[JoinStep, ...], tuple[str, ...]]:
    """The joins, and the variables in the order in which they are taken out."""
    class_of = dict(classes)
    left = list(class_of)
    open_joins = list(dict.fromkeys(joins))
    steps: list[JoinStep] = []
    order: list[str] = []

    def step(variables: tuple[str, ...], output: int) -> None:
        """Take the joins between these variables out."""
        links = []
        place = {name: at for at, name in enumerate(variables)}
        for join in [each for each in open_joins if {each.left, each.right} <= place.keys()]:
            open_joins.remove(join)
            link = placed(join, place)
            links.append(link if link.left <= link.right else turned(link))
        if links:
            form = Form(tuple(map(class_of.__getitem__, variables)), tuple(sorted(links)), output)
            steps.append(JoinStep(variables, form))

    for name in left:
        if any(join.left == join.right == name for join in open_joins):
            step((name,), 0)
    while leaf := next(
        (name for name in reversed(left) if _is_leaf(name, register, open_joins)), ""
    ):
        (other,) = _neighbours(leaf, open_joins)
        step((leaf, other), 1)
        left.remove(leaf)
        order.append(leaf)
    if len(left) > 1:
        step(tuple(left), left.index(register))
    return tuple(steps), (*order, *left)


def placed(join: Join[str], place: Mapping[str, int]) -> Link:
    """A join of variables as one of their places."""
    left, left_property, operator, right, right_property, kind = join
    return Join(place[left], left_property, operator, place[right], right_property, kind)


def _is_leaf(name: str, register: str, joins: list[Join[str]]) -> bool:
    return name != register and len(_neighbours(name, joins)) == 1


def _neighbours(name: str, joins: list[Join[str]]) -> set[str]:
    pairs = (pair for join in joins for pair in ((join.left, join.right), (join.right, join.left)))
    return {other for here, other in pairs if here == name}
