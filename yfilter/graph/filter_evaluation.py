"""Expressions of filters as functions of a Run, with SPARQL's logic of three values.

A condition gives True, False or None, an error; an expression a value or None.  Both are made once
for a program (join_program.py); what they look at are the run's slots.
"""

from __future__ import annotations

from collections.abc import Callable

from yfilter.graph.filter_functions import FUNCTIONS
from yfilter.graph.join import Condition, Expression, Operator, Run
from yfilter.graph.query_ast import (
    AllOf,
    AnyOf,
    Arithmetic,
    Exists,
    FilterCall,
    FilterComparison,
    FilterExpression,
    Group,
    Iri,
    LiteralTerm,
    Membership,
    Not,
    Variable,
)
from yfilter.graph.term_values import TermValue, value_of
from yfilter.graph.value_operators import (
    arithmetic,
    at_most,
    effective_truth,
    equal,
    less,
    negated,
    negative,
    of_truth,
)
from yfilter.language.comparison import Operator as Relation


class FilterCompiler:
    """``slot_of`` gives the slot of a variable, ``exists`` the chain of a group in EXISTS."""

    def __init__(
        self, slot_of: Callable[[Variable], int], exists: Callable[[Group], Operator]
    ) -> None:
        self._slot_of = slot_of
        self._exists = exists

    def condition(self, expression: FilterExpression) -> Condition:
        """The effective boolean value of an expression."""
        match expression:
            case AllOf(parts):
                return _joined([self.condition(part) for part in parts], decisive=False)
            case AnyOf(parts):
                return _joined([self.condition(part) for part in parts], decisive=True)
            case Not(operand):
                inner = self.condition(operand)
                return lambda run: negated(inner(run))
            case FilterComparison(left, operator, right):
                return _comparison(self.expression(left), operator, self.expression(right))
            case Membership(operand, choices, is_negated):
                found = _membership(self.expression(operand), [*map(self.expression, choices)])
                return (lambda run: negated(found(run))) if is_negated else found
            case Exists(group, is_negated):
                head = self._exists(group)
                return lambda run: run.exists(head) is not is_negated
            case FilterCall("bound", (Variable() as variable,)):
                slot = self._slot_of(variable)
                return lambda run: bool(run.is_bound(slot))
            case _:
                value = self.expression(expression)
                return lambda run: effective_truth(value(run))

    def expression(self, expression: FilterExpression) -> Expression:
        """The value of an expression."""
        match expression:
            case Variable():
                slot = self._slot_of(expression)
                return lambda run: run.value(slot)
            case Iri() | LiteralTerm():
                constant = value_of(expression)
                return lambda _run: constant
            case Arithmetic("negate", (operand,)):
                inner = self.expression(operand)
                return lambda run: negative(inner(run))
            case Arithmetic(operator, operands):
                return _arithmetic(operator, [*map(self.expression, operands)])
            case FilterCall("bound"):
                return self._truth(expression)
            case FilterCall("if", (condition, one, other)):
                test = self.condition(condition)
                return _choice(test, self.expression(one), self.expression(other))
            case FilterCall("coalesce", arguments):
                return _first_of([*map(self.expression, arguments)])
            case FilterCall(name, arguments):
                return _call(name, [*map(self.expression, arguments)])
            case _:
                return self._truth(expression)

    def _truth(self, expression: FilterExpression) -> Expression:
        condition = self.condition(expression)
        return lambda run: of_truth(condition(run))


def _joined(parts: list[Condition], decisive: bool) -> Condition:
    """``decisive`` where some part is, else an error where some part is one, else the opposite."""

    def hold(run: Run) -> bool | None:
        truth: bool | None = not decisive
        for part in parts:
            found = part(run)
            if found is decisive:
                return decisive
            if found is None:
                truth = None
        return truth

    return hold


def _comparison(left: Expression, operator: Relation, right: Expression) -> Condition:
    match operator:
        case Relation.EQ:
            return lambda run: equal(left(run), right(run))
        case Relation.NE:
            return lambda run: negated(equal(left(run), right(run)))
        case Relation.LT:
            return lambda run: less(left(run), right(run))
        case Relation.LE:
            return lambda run: at_most(left(run), right(run))
        case Relation.GT:
            return lambda run: less(right(run), left(run))
        case Relation.GE:
            return lambda run: at_most(right(run), left(run))


def _membership(operand: Expression, choices: list[Expression]) -> Condition:
    def hold(run: Run) -> bool | None:
        value = operand(run)
        truth: bool | None = False
        for choice in choices:
            run.budget.charge()
            found = equal(value, choice(run))
            if found is True:
                return True
            if found is None:
                truth = None
        return truth

    return hold


def _arithmetic(operator: str, operands: list[Expression]) -> Expression:
    def value(run: Run) -> TermValue | None:
        result = operands[0](run)
        for operand in operands[1:]:
            result = arithmetic(operator, result, operand(run))
        return result

    return value


def _choice(test: Condition, one: Expression, other: Expression) -> Expression:
    def value(run: Run) -> TermValue | None:
        truth = test(run)
        if truth is None:
            return None
        return one(run) if truth else other(run)

    return value


def _first_of(parts: list[Expression]) -> Expression:
    def value(run: Run) -> TermValue | None:
        for part in parts:
            found = part(run)
            if found is not None:
                return found
        return None

    return value


def _call(name: str, arguments: list[Expression]) -> Expression:
    called = FUNCTIONS[name]

    def value(run: Run) -> TermValue | None:
        values = []
        for argument in arguments:
            found = argument(run)
            if found is None:
                return None
            values.append(found)
        return called(values, run.budget)

    return value
