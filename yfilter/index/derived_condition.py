"""Derived: conditions on a computed value of an element, ``f(x)``, which the index can find.

::

    contains(title, "storm")        of the column ``title``
    number(price) * 2 > 10          of the column ``number(price) * 2``

All profiles that compute the same value share one column, whose constants are indexed as those of
an attribute are (see DerivedColumns).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from math import ceil, floor, inf, isfinite
from typing import NamedTuple

from yfilter.index.automaton import TEXT_TESTS
from yfilter.index.candidates import RANK, RANKS_MAX
from yfilter.index.number_tests import DOUBLE, NUMBER, PAIRS_SLACK, WHOLE
from yfilter.language import query_ast as ast
from yfilter.language.functions import CURRENT, OF_PLACES
from yfilter.language.places import EXCHANGED
from yfilter.language.shapes import pattern_of
from yfilter.language.trees import Blank, NeedsWords, changed
from yfilter.language.words import EACH_WORD, WORD_FUNCTIONS
from yfilter.operators.compiler import LANGUAGE
from yfilter.operators.operators import (
    EACH_DATE,
    EACH_DATE_TIME,
    EACH_ITEM,
    FIRST_ITEM,
    GREATEST_ITEM,
    GREATEST_OF_ALL,
    LEAST_ITEM,
    LEAST_OF_ALL,
    ONLY_ITEM,
)

RANGES = (ast.Operator.LT, ast.Operator.LE, ast.Operator.GT, ast.Operator.GE)
_GREATER = (ast.Operator.GT, ast.Operator.GE)


def condition_of(selection: ast.Expression) -> ast.LeafCondition | None:
    """The comparison of one leaf that the index finds as it stands in a message; None for anything
    else: an attribute of any name, the order of texts, that there is a string value."""
    found = selection.leaf_condition()
    if found is None or not found.is_full:
        return None
    if found.operator is None:
        return None if found.kind is ast.NodeKind.SELF else found
    others = (ast.Operator.NE,) if isinstance(found.value, str) else RANGES
    return found if found.operator in (ast.Operator.EQ, *others) else None


class Derived(NamedTuple):
    """A comparison with a constant, or a text test, of a value that is computed of the element.

    ``items``: which items of the value count (EACH_ITEM and others of Operator).  A
    ``test`` is the name of a text test, whose text is the ``constant``, of ``matches`` the pattern
    and its flags, or the type of a date, or "number" for a condition on NUMBER or DOUBLE, the
    ``constant``, which stands for the value; else, or then, ``operator`` compares.
    ``condition`` says the same as an expression.  One that is ``negated`` is verified by its
    column, and not looked up.
    """

    value: ast.Expression
    items: int
    test: str
    operator: ast.Operator
    constant: str | ast.Number | ast.Expression | tuple[str | ast.Number, ...]
    condition: ast.Expression
    negated: bool = False

    @property
    def asked(self) -> tuple[ast.Expression, str, object]:
        """The value, the test of it and its constant."""
        return self.value, self.test, self.constant


MOMENTS = {"xs:date": EACH_DATE, "xs:dateTime": EACH_DATE_TIME}


def derived_of(condition: ast.Expression) -> Derived | None:
    """A comparison of a computed value with a literal, or a date, or a text test of it; None for
    all else."""
    match condition:
        case ast.Comparison():
            value, operator, constant = condition.compared()
            ranked = _ranked(value)
            if ranked is not None and isinstance(constant, ast.Literal):
                return _of_rank(ranked, operator, constant.value, condition)
            match constant:
                case ast.Literal() if near := _near(value, operator, constant, condition):
                    return near
                case ast.Literal():
                    found = Derived(value, EACH_ITEM, "", operator, constant.value, condition)
                case ast.FunctionCall(name, (ast.Literal(str(text)),)) if name in MOMENTS:
                    value = _without_cast(value, name)
                    moment = Derived(value, MOMENTS[name], name, operator, text, condition)
                    return moment if operator is not ast.Operator.NE and _is_column(value) else None
                case ast.FunctionCall("xs:dayTimeDuration", (ast.Literal(str(text)),)):
                    return _of_difference(value, operator, text, condition)
                case _:
                    return None
        case ast.Operation(name, (value, ast.Literal(constant))) if name in ast.VALUE_COMPARISONS:
            operator = ast.VALUE_COMPARISONS[name]
            found = Derived(value, ONLY_ITEM, "", operator, constant, condition)
        case _ if condition.origin in (ast.Origin.CONTEXT, ast.Origin.MESSAGE):
            return _of_last_predicate(condition)
        case ast.FunctionCall("exists", (filtered,)) if filtered.origin is ast.Origin.EXPRESSION:
            return _of_place_among(filtered, condition)
        case ast.FunctionCall("not", (asked,)):
            return _negation_of(derived_of(asked), condition)
        case ast.Quantified(False, bindings, asked):
            return _of_tuples(bindings, asked, condition)
        case _:
            test = _text_test(condition)
            return test if test is not None and _is_column(test.value) else None
    of_number = _of_number(found)
    if of_number is not None:
        return of_number
    if isinstance(found.constant, str):
        is_indexed = found.operator is ast.Operator.EQ
    else:
        is_indexed = found.operator in (ast.Operator.EQ, *RANGES)
    return found if is_indexed and _is_column(found.value) else None


def _negation_of(found: Derived | None, condition: ast.Expression) -> Derived | None:
    """A condition that must not hold, where the index finds it and it never raises an error, which
    ``not`` would raise, too.

    No item is above a bound, where the greatest one is not; no item is beside a bound
    (``_of_last_predicate``), where the least of all is above it."""
    if (
        found is None
        or (found.test == "number" and (found.operator in RANGES or _has_quotient(condition)))
        or found.test in MOMENTS
        or found.negated
        or not _never_fails(found.value)
    ):
        return None
    if found.items in (GREATEST_OF_ALL, LEAST_OF_ALL):
        return found._replace(operator=ast.NEGATED[found.operator], condition=condition)
    if found.operator is ast.Operator.EQ and found.items != ONLY_ITEM:
        return found._replace(condition=condition, negated=True)
    if found.operator in RANGES and found.items == EACH_ITEM and _is_finite(found.constant):
        items = GREATEST_ITEM if found.operator in _GREATER else LEAST_ITEM
        operator = ast.NEGATED[found.operator]
        return found._replace(items=items, operator=operator, condition=condition)
    return None


def _has_quotient(condition: ast.Expression) -> bool:
    """Whether there is ``idiv``, which is an error of NaN."""
    return any(
        isinstance(part, ast.Operation) and part.name == "idiv" for part in condition.within()
    )


def _is_finite(constant: object) -> bool:
    return not isinstance(constant, float) or isfinite(constant)


def _never_fails(value: ast.Expression) -> bool:
    if isinstance(value, ast.FunctionCall):
        is_safe = value.name in _SAFE or value.name in _SAFE_TEXTS
        return is_safe and all(map(_never_fails, value.arguments))
    origins = (ast.Origin.CONTEXT, ast.Origin.MESSAGE)
    return isinstance(value, ast.Literal) or value.origin in origins


def _of_difference(
    value: ast.Expression, operator: ast.Operator, duration: str, condition: ast.Expression
) -> Derived | None:
    """A moment less one that is known, or the other way round, as the moment alone; its constant is
    the known one, a sign and the duration that is added to it then."""
    match value:
        case ast.Operation(
            "-",
            (ast.FunctionCall(name) as moment, ast.FunctionCall(same, (ast.Literal(str(text)),))),
        ) if name == same:
            known = text, "", duration
        case ast.Operation(
            "-",
            (ast.FunctionCall(same, (ast.Literal(str(text)),)), ast.FunctionCall(name) as moment),
        ) if name == same:
            known, operator = (text, "-", duration), ast.MIRRORED[operator]
        case _:
            return None
    if name not in MOMENTS or operator is ast.Operator.NE:
        return None
    about = _without_cast(moment, name)
    found = Derived(about, MOMENTS[name], name, operator, known, condition)
    return found if _is_column(about) else None


def _without_cast(value: ast.Expression, name: str) -> ast.Expression:
    """``@a`` of ``xs:date(@a)``: comparing it with a date casts it as well."""
    match value:
        case ast.FunctionCall(cast, (path,)) if cast == name and path.is_location:
            return path if path.is_at_most_one() else value
    return value


def _ranked(value: ast.Expression) -> Derived | None:
    """The bound for each node that ``count(e[. > 7])`` counts, as one for the greatest of all."""
    match value:
        case ast.FunctionCall("count", (path,)) if path.origin is ast.Origin.CONTEXT and path.steps:
            *before, last = path.steps
            if not last.predicates:
                return None
            *kept, predicate = last.predicates
            bound = derived_of(predicate)
            if bound is None or bound.test or bound.items != EACH_ITEM:
                return None
            if bound.operator not in RANGES:
                return None
            nodes = path.with_steps((*before, replace(last, predicates=tuple(kept))))
            number = _number_of_each(nodes, bound.value)
            if number is not None and _is_finite(bound.constant) and _is_column(number):
                items = GREATEST_ITEM if bound.operator in _GREATER else LEAST_ITEM
                return bound._replace(value=number, items=items)
    return None


def _of_rank(
    bound: Derived, operator: ast.Operator, count: str | ast.Number, condition: ast.Expression
) -> Derived | None:
    """``count(e[. > 7]) > 2`` as a bound for the third greatest of ``e``."""
    if isinstance(count, Blank):
        raise NeedsWords
    if isinstance(count, str) or not isfinite(count):
        return None
    least = floor(count) + 1 if operator in (ast.Operator.GT, ast.Operator.LE) else ceil(count)
    if operator is ast.Operator.EQ and count == 0:
        least, operator = 1, ast.Operator.LT
    if operator not in RANGES or not 0 < least <= RANKS_MAX:
        return None
    relation = bound.operator if operator in _GREATER else ast.NEGATED[bound.operator]
    items = bound.items + RANK * (least - 1)
    return bound._replace(items=items, operator=relation, condition=condition)


def implied_of(condition: ast.Expression) -> Derived | None:
    """A condition that is looked up where another one holds: ``count(e[. > 7]) >= 2`` of
    ``count(e[. > 7]) = 2``, and that ``e - f`` is about 7 of ``e = f + 7``."""
    of_pairs = _of_pairs(condition)
    if of_pairs is not None:
        return of_pairs
    if not isinstance(condition, ast.Comparison) or condition.operator is not ast.Operator.EQ:
        return None
    value, _, constant = condition.compared()
    if not isinstance(constant, ast.Literal):
        return None
    ranked = _ranked(value)
    if ranked is None:
        return None
    return _of_rank(ranked, ast.Operator.GE, constant.value, condition)


_FAR = ast.Literal(1e9)  # the sum of two numbers whose difference is exact to PAIRS_SLACK
_MORE = (ast.Operator.EQ, *_GREATER)


def _of_pairs(condition: ast.Expression) -> Derived | None:
    """A comparison ``x = y + 7`` of two numbers as one of ``x - y``, for all pairs; arithmetic of
    doubles rounds, so it holds of some pairs more."""
    clauses: tuple[ast.Clause, ...] = ()
    asked = condition
    if isinstance(condition, ast.Quantified) and not condition.every:
        clauses = tuple(ast.ForClause(name, source) for name, source in condition.bindings)
        asked = condition.condition
    if not isinstance(asked, ast.Comparison) or asked.operator not in (*RANGES, ast.Operator.EQ):
        return None
    one, operator, other = asked.left, asked.operator, asked.right
    if isinstance(one, ast.Operation):
        one, operator, other = other, ast.MIRRORED[operator], one
    match other:
        case ast.Operation(
            "+" | "-" as sign, (other, ast.Literal(float() | int() | Decimal()) as n)
        ):
            pass
        case _:
            return None
    if not clauses and one.is_location and other.is_location:
        clauses = ast.ForClause("x", one), ast.ForClause("y", other)
        one, other = ast.variable("x"), ast.variable("y")
    if any(part.origin is not ast.Origin.VARIABLE or part.steps for part in (one, other)):
        return None
    if sign == "-":
        one, operator, other = other, ast.MIRRORED[operator], one
    pair = [ast.FunctionCall("number", (part,)) for part in (one, other)]
    amounts = [ast.FunctionCall("abs", (number,)) for number in pair]
    is_far = ast.Comparison(ast.Operation("+", tuple(amounts)), ast.Operator.GE, _FAR)
    beyond = ast.Literal(inf if operator in _MORE else -inf)
    difference = ast.Conditional(is_far, beyond, ast.Operation("-", tuple(pair)))
    value = ast.Flwor(clauses, None, difference)
    if not _is_column(value):
        return None
    if operator is ast.Operator.EQ:
        near = ast.Comparison(ast.FunctionCall("near", (DOUBLE, n)), operator, n)
        return Derived(value, EACH_ITEM, "number", operator, near, condition)
    sign = "+" if operator in _GREATER else "-"
    test = ast.Comparison(ast.Operation(sign, (DOUBLE, ast.Literal(PAIRS_SLACK))), operator, n)
    items = GREATEST_ITEM if operator in _GREATER else LEAST_ITEM
    return Derived(value, items, "number", operator, test, condition)


def _of_tuples(
    bindings: tuple[tuple[str, ast.Expression], ...],
    asked: ast.Expression,
    condition: ast.Expression,
) -> Derived | None:
    """``some $x in e, $y in f satisfies $x - $y > 7`` as a bound for the greatest ``for $x in e, $y
    in f return $x - $y``; of a text test the text of each."""
    clauses = tuple(ast.ForClause(name, source) for name, source in bindings)
    match asked:
        case ast.Comparison():
            value, operator, constant = asked.compared()
            of_all: ast.Expression = ast.Comparison(
                ast.Flwor(clauses, None, value), operator, constant
            )
        case ast.FunctionCall(name, (value, ast.Literal() as text, *flags)):
            if name not in OF_PLACES:
                value = ast.FunctionCall("string", (value,))
            each = ast.Flwor(clauses, None, value)
            of_all = ast.FunctionCall(name, (each, text, *flags))
        case _:
            return None
    found = derived_of(of_all)
    if found is None or found.test in MOMENTS:
        return None
    items = EACH_ITEM
    if found.operator in RANGES and _is_finite(found.constant):
        items = GREATEST_ITEM if found.operator in _GREATER else LEAST_ITEM
    return found._replace(items=items, condition=condition)


_ARITHMETIC = frozenset(("+", "-", "*", "div", "idiv", "mod", "negate"))
_NUMBER_FUNCTIONS = frozenset(("abs", *WHOLE))
_COUNTS = frozenset(("count", "string-length"))
_NUMBERS = (int, float, Decimal)


def _of_number(found: Derived) -> Derived | None:
    """Arithmetic of one number and literals, which differ from profile to profile, as a test of
    that number: ``count(b) mod 7 = 2`` of ``count(b)``, where NUMBER stands for it; ``@k * 7 > 2``
    of the double ``@k * 1``, for which DOUBLE does."""
    function = found.value
    if isinstance(function, ast.FunctionCall) and function.name in _NUMBER_FUNCTIONS:
        (function, *_) = function.arguments
    if not isinstance(function, ast.Operation) or not isinstance(found.constant, _NUMBERS):
        return None
    about, *others = dict.fromkeys(_counted(function)) or (None,)
    if others or about is None:
        return None
    number, place = about, DOUBLE
    if about.is_location:
        number = ast.Operation("*", (about, ast.Literal(1)))
    elif not isinstance(about, ast.FunctionCall):
        return None
    elif about.name in _COUNTS:
        place = NUMBER
    elif about.name == "sum":
        if not (about.arguments[0].is_location and _is_linear(function)):
            return None
    elif about.name != "number":
        return None
    if not _is_column(number):
        return None
    value = changed(found.value, lambda part: place if part == about else part)
    test = ast.Comparison(value, found.operator, ast.Literal(found.constant))
    operator = found.operator if found.operator in RANGES else ast.Operator.EQ
    return Derived(number, EACH_ITEM, "number", operator, test, found.condition)


def _is_linear(function: ast.Expression) -> bool:
    """Whether it is the same of the integer 0, the sum of nothing, as of a double."""
    return all(
        isinstance(part.value, int)
        if isinstance(part, ast.Literal)
        else not isinstance(part, ast.Operation) or part.name in ("+", "-", "*", "negate")
        for part in function.within()
    )


def _counted(value: ast.Expression) -> Iterator[ast.Expression]:
    """The parts of arithmetic that are no literals."""
    match value:
        case ast.Operation(name, operands) if name in _ARITHMETIC:
            for operand in operands:
                yield from _counted(operand)
        case ast.FunctionCall(name, (operand,)) if name in WHOLE:
            yield from _counted(operand)
        case ast.Literal():
            return
        case _:
            yield value


# Functions that never raise an error, whatever nodes they are about, and others of texts.
_SAFE = frozenset(
    ("count", "string", "string-length", "normalize-space", "number", "name", "place:read")
)
_SAFE_TEXTS = frozenset(("lower-case", "upper-case", "translate", "concat"))


def _of_place_among(filtered: ast.Expression, condition: ast.Expression) -> Derived | None:
    """``(b | c)[3]`` as ``1 to count(b | c) = 3``."""
    match filtered.steps, tuple(filtered.same_focus()):
        case (ast.LocationStep(predicates=(ast.Literal(int(place)),)) as step,), (nodes,) if (
            step.is_self
        ):
            found = _of_number_among(nodes, place, condition)
            return found if _is_column(found.value) else None
    return None


def _of_number_among(nodes: ast.Expression, place: int, condition: ast.Expression) -> Derived:
    value = ast.Operation("to", (ast.Literal(1), ast.FunctionCall("count", (nodes,))))
    return Derived(value, EACH_ITEM, "", ast.Operator.EQ, place, condition)


def _of_last_predicate(path: ast.Expression) -> Derived | None:
    """The existence of nodes as a comparison: ``a/b[c = "x"]`` as ``a/b/c = "x"``,
    ``//comment()[. = "x"]`` as ``//comment() = "x"``, ``a/b[count(c) = 2]`` as
    ``a/b/count(c) = 2``, ``b[3]`` as ``1 to count(b) = 3``, and ``a/b[not(. > 2)]`` as the least of
    all ``a/b``, which is not above 2 then."""
    if not path.steps or not path.steps[-1].predicates:
        return None
    *before, last = path.steps
    *kept, predicate = last.predicates
    base = path.with_steps((*before, replace(last, predicates=tuple(kept))))
    value: ast.Expression
    match predicate:
        case ast.Literal(int(place)) if not (before or last.descendant or _is_of_many(base)):
            return _of_number_among(base, place, path)
        case _ if predicate.is_location or isinstance(predicate, ast.Literal):
            return None
    found = derived_of(predicate)
    if found is None or found.test or found.negated:
        return None
    if found.items != EACH_ITEM:
        is_denied = isinstance(predicate, ast.FunctionCall) and predicate.name == "not"
        return _of_all(base, found, path) if is_denied else None
    match found.value:
        case ast.DOT:
            value = base
        case inner if inner.origin is ast.Origin.CONTEXT and not any(
            step.is_self for step in inner.steps[:1]
        ):
            value = base.with_steps((*base.steps, *inner.steps))
        case ast.FunctionCall(name, (inner,)) if name in _SAFE and inner.is_location:
            value = ast.Mapped(base, found.value)
        case _:
            return None
    return found._replace(value=value, condition=path) if _is_column(value) else None


def _of_all(nodes: ast.Expression, found: Derived, path: ast.Expression) -> Derived | None:
    """``nodes[not(. > 2)]``, or ``nodes[not(@a > 2)]``, of the numbers of all nodes; a value that
    is no number is on the side that the condition asks for."""
    if found.items not in (GREATEST_ITEM, LEAST_ITEM):
        return None
    value = _number_of_each(nodes, found.value)
    if value is None or not _is_column(value):
        return None
    items = LEAST_OF_ALL if found.items == GREATEST_ITEM else GREATEST_OF_ALL
    return found._replace(value=value, items=items, condition=path)


def _number_of_each(nodes: ast.Expression, value: ast.Expression) -> ast.Expression | None:
    """The nodes, or the number of the one attribute of each that a value is."""
    if value == ast.DOT:
        return nodes
    if value.is_location and value.is_at_most_one():
        return ast.Mapped(nodes, ast.FunctionCall("number", (value,)))
    return None


# The language in force with a hyphen behind it, as behind each of its parts.
_IN_FORCE = ast.FunctionCall(
    "concat", (ast.FunctionCall("lower-case", (LANGUAGE,)), ast.Literal("-"))
)


def _near(
    value: ast.Expression, operator: ast.Operator, limit: ast.Literal, condition: ast.Expression
) -> Derived | None:
    """``place:distance(a, "52,13") < 30`` as a test of the places in ``a``."""
    match value:
        case ast.FunctionCall("place:distance", (ast.Literal() as known, place)):
            pass
        case ast.FunctionCall("place:distance", (place, ast.Literal() as known)):
            pass
        case _:
            return None
    is_near = operator in (ast.Operator.LT, ast.Operator.LE)
    if not is_near or isinstance(limit.value, str) or not isinstance(known.value, str):
        return None
    asked = known.value, operator.value, limit.value
    return _of_places(place, "place:distance", asked, condition)


def _of_places(
    place: ast.Expression,
    name: str,
    constant: str | tuple[str | ast.Number, ...],
    condition: ast.Expression,
) -> Derived | None:
    value = ast.FunctionCall("place:read", (place,))
    found = Derived(value, EACH_ITEM, name, ast.Operator.EQ, constant, condition)
    return found if _is_column(value) else None


def _text_test(condition: ast.Expression) -> Derived | None:
    """A text test whose text or pattern is a literal, of any value."""
    match condition:
        case ast.FunctionCall(name, (place, ast.Literal(str(text)))) if name in EXCHANGED:
            return _of_places(place, name, text, condition)
        case ast.FunctionCall(name, (ast.Literal(str(text)), place)) if name in EXCHANGED:
            return _of_places(place, EXCHANGED[name], text, condition)
        case ast.FunctionCall("matches", (value, *_)):
            asked = pattern_of(condition)
            if asked is None:
                return None
            return Derived(value, FIRST_ITEM, "matches", ast.Operator.EQ, asked, condition)
        case ast.FunctionCall("lang", (ast.Literal(str(text)), ast.DOT)):
            return Derived(_IN_FORCE, FIRST_ITEM, "lang", ast.Operator.EQ, text, condition)
        case ast.FunctionCall(name, (value, ast.Literal(str(text)))) if name in TEXT_TESTS and not (
            name in EACH_WORD and EACH_WORD[name].every
        ):
            items = EACH_ITEM if name in WORD_FUNCTIONS else FIRST_ITEM
            if items == EACH_ITEM and not _is_text(value):
                return None  # an item of it may be an error
            return Derived(value, items, name, ast.Operator.EQ, text, condition)
        case _:
            return None


def _is_text(value: ast.Expression) -> bool:
    return value.is_at_most_one() or value.origin is not ast.Origin.EXPRESSION


_NOT_INDEXED = frozenset((*CURRENT, "xs:float"))


def _is_column(value: ast.Expression) -> bool:
    """Whether a value may differ from element to element, or from message to message, and depends
    on nothing else."""
    parts = list(value.within())
    if any(
        (isinstance(part, ast.FunctionCall) and part.name in _NOT_INDEXED)
        or (isinstance(part, ast.Cast) and part.type in _NOT_INDEXED)
        for part in parts
    ):
        return False
    return (
        not value.uses_position()
        and not _is_of_many(value)
        and all(map(_is_computed, parts))
        and (value.uses_context() or value.depends_on_message_alone())
        and not value.free_variables()
    )


def _is_of_many(value: ast.Expression) -> bool:
    """Whether it is of all nodes before or behind the element, which an operator asks for once
    for all elements; a number of these is a value of its own."""
    match value:
        case ast.FunctionCall("count", (counted,)) if (
            counted.origin is ast.Origin.CONTEXT and len(counted.steps) == 1
        ):
            return any(map(_is_of_many, counted.new_focus()))
    if value.origin is ast.Origin.MESSAGE:
        return False
    if any(map(_leads_to_many, value.steps)):
        return True
    return any(map(_is_of_many, (*value.same_focus(), *value.new_focus())))


def _leads_to_many(step: ast.LocationStep) -> bool:
    is_placed = bool(step.predicates) and isinstance(step.predicates[0], ast.Literal)
    return step.axis in ast.INVERSE and not is_placed


def _is_computed(part: ast.Expression) -> bool:
    is_known = isinstance(part, ast.FunctionCall | ast.Conditional | ast.Mapped | ast.Flwor)
    return is_known or part.is_location or part.is_of_its_parts
