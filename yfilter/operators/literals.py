"""Literals in conditions: what they ask of a value, or of a position."""

from __future__ import annotations

from decimal import Decimal
from math import isnan
from typing import Any

from yfilter.language.comparison import MIRRORED
from yfilter.language.query_ast import (
    Comparison,
    Expression,
    FunctionCall,
    Literal,
    Operation,
    Sequence,
)
from yfilter.language.query_ast import Operator as Relation
from yfilter.language.trees import split
from yfilter.operators.operators import EqualTo, NumberTest, OneOf, Ordered, Position, ValueTest

_POSITION = FunctionCall("position", ())


def literals(expression: Expression) -> list[Any] | None:
    """The values of a literal, or of a sequence of literals."""
    parts = split(expression, Sequence)
    values = [part.value for part in parts if isinstance(part, Literal)]
    return values if values and len(values) == len(parts) else None


def literal_test(relation: Relation, values: list[Any]) -> ValueTest | None:
    """What accepts an untyped value that compares so with some of these; None where the
    interpreter has to look."""
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) == len(values):
        return _text_test(relation, texts)
    if texts or len(values) > 1:
        return None
    number = _double(values[0])
    return None if isnan(number) else NumberTest(relation, number)


def _text_test(relation: Relation, texts: list[str]) -> ValueTest | None:
    if len(texts) == 1:
        if relation in (Relation.EQ, Relation.NE):
            return EqualTo(texts[0], relation is Relation.EQ)
        return Ordered(relation, texts[0])
    return OneOf(text.encode() for text in texts) if relation is Relation.EQ else None


def _double(value: int | Decimal | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("nan")


def position_of(predicate: Expression) -> Position | None:
    """A predicate of the kinds ``2``, ``last()``, ``last() - 1``, ``position() < 3``."""
    if isinstance(predicate, Comparison):
        relation, left, right = predicate.operator, predicate.left, predicate.right
        if left == _POSITION:
            pass
        elif right == _POSITION:
            relation, right = MIRRORED[relation], left
        else:
            return None
        return _placed(relation, right)
    return _placed(Relation.EQ, predicate)


def _placed(relation: Relation, place: Expression) -> Position | None:
    match place:
        case Literal(value) if not isinstance(value, str):
            return Position(relation, float(value))
        case FunctionCall("last", ()):
            return Position(relation, 0, from_last=True)
        case Operation("-", (FunctionCall("last", ()), Literal(int(value)))):
            return Position(relation, value, from_last=True)
        case _:
            return None
