"""Ways: what a matching path asks for, step by step, in the form that the index works with.

The element steps of a path become a way down from the message; nested paths become ways down from
the elements of their steps, beside what is asked of these themselves::

    /nitf[@version = "1"][head/pubdata/@edition.area = "SF"][not(body)]//p

    /nitf     @version = "1", the way  /head  /pubdata with @edition.area = "SF", verified not(body)
    //p

A value that is computed of an element is a column, whose constants are looked up (Derived);
whatever else is asked is *verified* by an operator, on the elements that the rest leaves.
``or`` and lists of values become several ways, of which one has to be found, where nothing else in
the path is looked up by its value, or, for an ``or`` of ranges, by its order::

    //i[@k = ("x", "y")]        //i[@k = "x"]   or   //i[@k = "y"]

A path from the message that stands as a condition, or another condition that depends on the message
alone, is a way beside the spine, and may be the one that a query is found by.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from yfilter.engine.linear_paths import LinearPath
from yfilter.engine.tree_patterns import ConditionKind, element_test, main_steps, take_apart
from yfilter.index.candidates import LEVELS_MAX, STEPS_MAX
from yfilter.index.derived_condition import (
    RANGES,
    Derived,
    condition_of,
    derived_of,
    implied_of,
)
from yfilter.index.text_programs import is_about_text
from yfilter.language.query_ast import (
    ANY_NAME,
    INVERSE,
    And,
    Comparison,
    Expression,
    FunctionCall,
    LeafCondition,
    Literal,
    LocationStep,
    NameTest,
    NodeKind,
    Operation,
    Operator,
    Or,
    Origin,
    Sequence,
    absolute,
    relative,
)
from yfilter.language.trees import Blank, NeedsWords, changed
from yfilter.language.words import EACH_WORD

WAYS_MAX = 64  # alternatives of one query
OTHERS_MAX = 8  # paths from the message that stand as conditions
NOTHING, RANGE, EQUALITY = range(3)  # how well the index serves a condition


class Verified(NamedTuple):
    """A condition that an operator decides on the element."""

    condition: Expression


class Step(NamedTuple):
    """One step of a way down, and what is asked of its element."""

    descendant: bool
    test: NameTest
    conditions: Conditions = ()


# A way down: the spine from the message, or a nested path from its element.
Way: TypeAlias = tuple[Step, ...]
# Ways that all have to be found.
Ways: TypeAlias = tuple[Way, ...]
Asked: TypeAlias = "LeafCondition | Derived | Verified | Way"
Conditions: TypeAlias = "tuple[Asked, ...]"


def ways_of(path: Expression, verified: Expression | None = None) -> tuple[Ways, ...]:
    """A matching path as alternatives, each of ways that all have to be found; ``verified`` is
    asked besides."""
    steps, others = _divided(main_steps(path))
    is_of_root = len(steps) == 1 and not steps[0].descendant
    if verified is not None and not is_of_root and _is_of_message(verified):
        others.append(absolute(_root_with(verified)))
    elif verified is not None:
        last = replace(steps[-1], predicates=(*steps[-1].predicates, verified))
        steps = (*steps[:-1], last)
    way = _way(steps, 0)
    besides = tuple(dict.fromkeys(_way(main_steps(other), 0) for other in others))
    served = max(map(_serves, (way, *besides)))
    for wanted in (EQUALITY, RANGE):
        split = _split(steps, wanted) if served < wanted else None
        if split is not None:
            return tuple((_way(alternative, 0), *besides) for alternative in split)
    return ((way, *besides),)


def _divided(
    steps: tuple[LocationStep, ...],
) -> tuple[tuple[LocationStep, ...], list[Expression]]:
    """Steps without the conditions that are paths from the message, and these paths."""
    others: list[Expression] = []
    found: list[LocationStep] = []
    for step in steps:
        kept = []
        for part in (part for predicate in step.predicates for part in predicate.conjuncts()):
            if (
                part.origin is Origin.MESSAGE
                and part.as_existence() is not None
                and all(one.kind not in (NodeKind.SELF, NodeKind.PARENT) for one in part.steps)
                and len(others) < OTHERS_MAX
            ):
                others.append(part)
            elif part.depends_on_message_alone() and found and len(others) < OTHERS_MAX:
                others.append(absolute(_root_with(part)))
            else:
                kept.append(part)
                if len(others) < OTHERS_MAX and derived_of(part) is None:
                    others += _anywhere(part)
        found.append(step if not others else replace(step, predicates=tuple(kept)))
    return tuple(found), others


def _is_of_message(condition: Expression) -> bool:
    """Whether it is a column of which there is one value a message."""
    return condition.depends_on_message_alone() and derived_of(condition) is not None


def _root_with(condition: Expression) -> LocationStep:
    """The element of the document, on which a condition holds that is the same for all elements."""
    return LocationStep(False, NodeKind.ELEMENT, ANY_NAME, (condition,))


def _anywhere(part: Expression) -> Iterator[Expression]:
    """The path from the message that has to be there where a value is before or behind an element:
    ``//v[. = "x"]`` of ``preceding::v = "x"``."""
    match part:
        case Comparison(path, Operator.EQ, Literal() as literal) if (
            path.origin is Origin.CONTEXT and path.steps and path.steps[0].axis in INVERSE
        ):
            first, *rest = path.steps
            equal = Comparison(relative(*rest), Operator.EQ, literal)
            anywhere = LocationStep(True, first.kind, first.test, (equal,))
            if anywhere.is_plain and first.kind is NodeKind.ELEMENT:
                yield absolute(anywhere)


def way_of_path(path: LinearPath) -> Way:
    """A linear path of a routing query."""
    return _way(path.expression.steps, 0)


def _way(steps: tuple[LocationStep, ...], level: int) -> Way:
    found: list[Step] = []
    for step in steps[:STEPS_MAX]:
        conditions: list[Asked] = []
        for predicate in step.predicates:
            conditions += _conditions(predicate, level)
        found.append(Step(step.descendant, element_test(step), tuple(dict.fromkeys(conditions))))
    if len(steps) > STEPS_MAX:
        rest = Verified(relative(*steps[STEPS_MAX:]))
        found[-1] = found[-1]._replace(conditions=(*found[-1].conditions, rest))
    return tuple(found)


def conditions_of(predicate: Expression) -> Conditions:
    """What a condition asks of its element, all of which has to hold."""
    return tuple(dict.fromkeys(_conditions(predicate, 0)))


def _conditions(predicate: Expression, level: int) -> Iterator[Asked]:
    for kind, whole in take_apart(predicate):
        each = _each_word(whole)
        if len(each) > 1 and kind is ConditionKind.RESIDUAL:
            yield Verified(whole)  # of several values each may have one of the words
        for part in each:
            condition = _condition(kind, part, level)
            yield condition
            if _is_of_one_query(condition):
                yield from _implied(part, level)


def _is_of_one_query(condition: Asked) -> bool:
    """Whether it is evaluated for each query: verified, or a column in which constants stand."""
    if isinstance(condition, Derived):
        return any(isinstance(part, Literal) for part in condition.value.within())
    return isinstance(condition, Verified)


def _condition(kind: ConditionKind, part: Expression, level: int) -> Asked:
    if kind is ConditionKind.SELECTION:
        return condition_of(part) or derived_of(part) or Verified(part)
    if kind is ConditionKind.BRANCH and level + 1 < LEVELS_MAX:
        return _way(part.steps, level + 1)
    return derived_of(part) or Verified(part)


def _implied(part: Expression, level: int) -> Iterator[Asked]:
    """Conditions that can be looked up in place of one: few elements are verified then."""
    looked_up = implied_of(part)
    if looked_up is not None:
        yield looked_up
    for condition in part.implied():
        for kind, one in take_apart(condition):
            found = _condition(kind, one, level)
            if _served(found) != NOTHING:
                yield found


def _serves(way: Way) -> int:
    """How well the best condition of a way is served by the index: NOTHING, RANGE or EQUALITY."""
    return max((_served(one) for step in way for one in step.conditions), default=NOTHING)


def _served(condition: Asked) -> int:
    if isinstance(condition, Derived) and (
        condition.negated or (_replaced(condition.value) and not is_about_text(*condition.asked))
    ):
        return NOTHING  # a column for each pattern is dearer than ways by these
    if isinstance(condition, LeafCondition | Derived):
        if condition.operator is Operator.EQ:
            return EQUALITY
        return RANGE if condition.operator in RANGES else NOTHING
    return NOTHING if isinstance(condition, Verified) else _serves(condition)


def _split(steps: tuple[LocationStep, ...], wanted: int) -> list[tuple[LocationStep, ...]] | None:
    """Steps whose first ``or`` of parts that are all served so well is taken apart, once for each
    part of it."""
    for at, step in enumerate(steps[:STEPS_MAX]):
        parts = [part for predicate in step.predicates for part in predicate.conjuncts()]
        for place, part in enumerate(parts):
            alternatives = list(_alternatives(part))
            if not 1 < len(alternatives) <= WAYS_MAX:
                continue
            asked = [map(_served, _conditions(one, 0)) for one in alternatives]
            if min(max(served, default=NOTHING) for served in asked) >= wanted:
                found = []
                for alternative in alternatives:
                    predicates = (*parts[:place], alternative, *parts[place + 1 :])
                    changed = replace(step, predicates=predicates)
                    found.append((*steps[:at], changed, *steps[at + 1 :]))
                return found
    return None


def _alternatives(condition: Expression) -> Iterator[Expression]:
    """Conditions of which one holds when this one does, and the other way round.

    ::

        not(d[not(contains(., "x"))])       count(d) = 0
                                            d[contains(., "x")] and the condition
        replace(d, "x", "") = "yz"          matches(d, "x") and the condition
                                            string(d) = "yz" and the condition
    """
    match condition:
        case Or(parts):
            for part in parts:
                yield from _alternatives(part)
        case Operation("|", parts):
            for part in parts:
                yield from _alternatives(part)
        case Comparison(value, Operator.EQ, Sequence() as listed):
            literals = dict.fromkeys(listed.literals())
            yield from (Comparison(value, Operator.EQ, part) for part in literals)
            if not literals:
                yield condition
        case FunctionCall("not", (path,)) if (
            path.origin is Origin.CONTEXT
            and path.steps
            and path.steps[-1].predicates
            and not path.steps[-1].is_positional
        ):
            *before, last = path.steps
            *kept, predicate = last.predicates
            nodes = path.with_steps((*before, replace(last, predicates=tuple(kept))))
            yield Comparison(FunctionCall("count", (nodes,)), Operator.EQ, Literal(0))
            yield And((nodes.with_predicates((predicate.denied(),)), condition))
        case _ if (replaced := _replaced(condition)) is not None:
            pattern = FunctionCall("matches", (replaced.arguments[0], *replaced.arguments[1::2]))
            text = FunctionCall("string", replaced.arguments[:1])
            as_it_is = changed(condition, lambda part: text if part is replaced else part)
            yield And((pattern, condition))
            yield And((as_it_is, condition))
        case _:
            yield condition


def _replaced(condition: Expression) -> FunctionCall | None:
    """The only call of ``replace`` in a condition, if it is about a path from its context."""
    calls = [
        part
        for part in condition.within()
        if isinstance(part, FunctionCall) and part.name == "replace"
    ]
    waiting = [condition]
    while waiting and len(calls) == 1:
        part = waiting.pop()
        if part is calls[0]:
            text, *constants = calls[0].arguments
            is_known = all(isinstance(one, Literal) for one in constants)
            return calls[0] if is_known and text.is_location else None
        waiting += part.same_focus()
    return None


def _each_word(condition: Expression) -> tuple[Expression, ...]:
    """A condition about all words of a string as one condition for each word."""
    match condition:
        case FunctionCall(name, (_, Literal(str(words)))) if (
            name in EACH_WORD and EACH_WORD[name].every
        ):
            if isinstance(words, Blank):
                raise NeedsWords
            return condition.each_word(words)
        case _:
            return (condition,)
