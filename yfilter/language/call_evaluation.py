"""Evaluates calls of declared functions, and ``typeswitch``.

A call within a call is one deeper, up to ``EvaluationLimits.calls_max``.  Elements that a function
constructs are written after it has returned; they know how deep they are by their focus.
"""

from __future__ import annotations

from collections.abc import Mapping

from yfilter.errors import MatchLimitExceeded
from yfilter.language.budget import CALL_COST
from yfilter.language.evaluator import Evaluator
from yfilter.language.nodes import Focus, Functions, Value
from yfilter.language.query_ast import FunctionDeclaration, Typeswitch, UserCall
from yfilter.language.recursion import deep_recursion
from yfilter.language.type_evaluation import as_declared, is_of_type


def user_call(evaluator: Evaluator, call: UserCall, focus: Focus) -> Value:
    depth = focus.functions.depth + 1 if focus.functions else 1
    if depth > evaluator.limits.calls_max:
        raise MatchLimitExceeded(
            "too-many-calls",
            f"a profile's functions call each other more than {evaluator.limits.calls_max} deep",
        )
    evaluator.charge(CALL_COST)
    if depth == 1:
        with deep_recursion():
            return _called(evaluator, call, focus, depth)
    return _called(evaluator, call, focus, depth)


def _called(evaluator: Evaluator, call: UserCall, focus: Focus, depth: int) -> Value:
    table: Mapping[tuple[str, int], FunctionDeclaration]
    if call.library:
        table = {(one.name, len(one.parameters)): one for one in call.library}
    else:
        assert focus.functions is not None  # only bodies have calls without a library
        table = focus.functions.table
    function = table[call.name, len(call.arguments)]
    variables = {
        name: as_declared(evaluator, evaluator.value(argument, focus), type_)
        for (name, type_), argument in zip(function.parameters, call.arguments, strict=True)
    }
    inside = Focus(None, 1, 1, variables, Functions(table, depth))
    return as_declared(evaluator, evaluator.value(function.body, inside), function.result)


def typeswitch(evaluator: Evaluator, expression: Typeswitch, focus: Focus) -> Value:
    value = evaluator.value(expression.operand, focus)
    for case in expression.cases:
        if not case.types or any(is_of_type(evaluator, value, type_) for type_ in case.types):
            if case.variable:
                variables = {**focus.variables, case.variable: value}
                focus = focus._replace(variables=variables)
            return evaluator.value(case.result, focus)
    raise AssertionError("a typeswitch without a default")
