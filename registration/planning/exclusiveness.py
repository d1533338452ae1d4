"""Exclusiveness patterns: what a profile needs, as paths compared with constants (section 4.4).

Paths of the same structure that compare the same target by ``=`` with different constants cannot
both hold for one element.  What they have in common is an *exclusiveness pattern*; it is written
as the path from the message to the value compared::

    /nitf[head/pubdata/@edition.area = "SF"]//p     pattern  /nitf/head/pubdata/@edition.area
                                                    value    SF

The patterns are those of the selections at the accepting states: they are read off the profile's
routing query, which is never stricter than the profile.  So a need is *necessary*: a message that
does not have one of its values at the pattern cannot match.  Where the profile has alternatives,
only patterns that stand in all of them are needed, with the values of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from typing import TypeAlias

from yfilter.engine.linear_paths import Conjunction, LinearStep, routing_query
from yfilter.language.query_ast import (
    Comparison,
    Expression,
    Literal,
    Operator,
    Or,
    Profile,
    absolute,
)
from yfilter.language.query_text import unparse

# The text of the path from the message to the value: ``/nitf/head/pubdata/@edition.area``.
Pattern: TypeAlias = str

# A need with more values than that says too little about where a profile belongs.
VALUES_MAX = 16

_WHOLE_MAX = 1e15  # below, a whole number is written without a point


@dataclass(frozen=True, slots=True)
class Need:
    """A message that matches has one of ``values`` (canonical, sorted) at ``pattern``."""

    pattern: Pattern
    values: tuple[str, ...]


def needs_of(profile: Profile) -> tuple[Need, ...]:
    """The needs of a profile, by pattern; none for one that no equality confines."""
    found = [_values_of(conjunction) for conjunction in routing_query(profile)]
    shared = set(found[0]).intersection(*found[1:])
    needs = []
    for pattern in sorted(shared):
        values = set().union(*(alternative[pattern] for alternative in found))
        if len(values) <= VALUES_MAX:
            needs.append(Need(pattern, tuple(sorted(values))))
    return tuple(needs)


def canonical_value(value: str) -> str:
    """The same text for all values that can be equal, as strings or as numbers.

    ``@n = 1`` holds for "1", "01" and " 1.0 ": all these are "1".
    """
    # Most values do not begin like a number; to ask float() would cost an exception.
    stripped = value.strip()
    if not stripped or stripped[0] not in "0123456789+-.":
        return value
    try:
        number = float(stripped)
    except ValueError:
        return value
    if not isfinite(number) or "_" in stripped:
        return value
    return str(int(number)) if abs(number) < _WHOLE_MAX and number == int(number) else repr(number)


def literal_value(literal: Literal) -> str:
    """The canonical text of a constant in a profile."""
    value = literal.value
    if isinstance(value, str):
        return canonical_value(value)
    try:
        number = float(value)  # an untyped value is compared as xs:double
    except OverflowError:
        return "INF" if value > Decimal(0) else "-INF"
    return canonical_value(repr(number)) if isfinite(number) else str(number)


def equalities(selection: Expression) -> list[tuple[Expression, tuple[Literal, ...]]]:
    """The targets and constants of a selection that asks for equality: one, or several by ``or``.

    Nothing for one that asks for anything else.
    """
    if isinstance(selection, Or):
        parts = [equalities(part) for part in selection.parts]
        return [found for part in parts for found in part] if all(parts) else []
    if not isinstance(selection, Comparison) or selection.operator is not Operator.EQ:
        return []
    target, constant = selection.left, selection.right
    if target.leaf() is None:
        target, constant = constant, target
    literals, leaf = constant.literals(), target.leaf()
    is_known = bool(literals) and leaf is not None and leaf.is_full
    return [(target, literals)] if is_known else []


def pattern_of(steps: tuple[LinearStep, ...], target: Expression) -> Pattern:
    """The pattern of a selection on ``target`` at the last of these steps."""
    structure = tuple(LinearStep(step.descendant, step.test).location_step for step in steps)
    return f"{unparse(absolute(*structure))}/{unparse(target)}"


def _values_of(conjunction: Conjunction) -> dict[Pattern, set[str]]:
    """Pattern -> the values of all selections at it.

    Several selections at one pattern need several elements; any of their values will do.
    """
    found: dict[Pattern, set[str]] = {}
    for path in conjunction.paths:
        for index, step in enumerate(path.steps):
            for selection in step.selections:
                compared = equalities(selection)
                if len({target for target, _ in compared}) == 1:
                    pattern = pattern_of(path.steps[: index + 1], compared[0][0])
                    values = found.setdefault(pattern, set())
                    values.update(
                        literal_value(constant) for _, literals in compared for constant in literals
                    )
    return found
