"""Evaluates calls of declared functions, declared variables, ``typeswitch`` and ``try``.

A call within a call is one deeper, up to ``EvaluationLimits.calls_max``.  Elements that a function
constructs are written after it has returned; they know how deep they are by their focus.
"""

from __future__ import annotations

from yfilter.errors import MatchLimitExceeded
from yfilter.language.budget import CALL_COST
from yfilter.language.elementpath_bridge import evaluate
from yfilter.language.evaluator import Evaluator
from yfilter.language.namespaces import ERROR_NAMESPACE
from yfilter.language.nodes import Construction, DynamicError, Focus, Functions, Library, Value
from yfilter.language.query_ast import ERROR_VARIABLES, TryCatch, Typeswitch, UserCall
from yfilter.language.recursion import deep_recursion
from yfilter.language.type_evaluation import as_declared, is_of_type


def user_call(evaluator: Evaluator, call: UserCall, focus: Focus) -> Value:
    if call.is_variable:
        return _declared_variable(evaluator, call, focus)
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
    table = _table(evaluator, call, focus)
    function = table[call.name, len(call.arguments)]
    variables = {
        name: as_declared(evaluator, evaluator.value(argument, focus), type_)
        for (name, type_), argument in zip(function.parameters, call.arguments, strict=True)
    }
    inside = Focus(None, 1, 1, variables, Functions(table, depth))
    return as_declared(evaluator, evaluator.value(function.body, inside), function.result)


def _table(evaluator: Evaluator, call: UserCall, focus: Focus) -> Library:
    """The declared functions and variables that a call sees."""
    if call.library:
        return evaluator.declared.table(call.library)
    assert focus.functions is not None  # only what is declared has calls without a library
    return focus.functions.table


def _declared_variable(evaluator: Evaluator, call: UserCall, focus: Focus) -> Value:
    """Its value, which is found when it is first asked for; an error once found is, too."""
    table = _table(evaluator, call, focus)
    declaration = table[call.name, 0]
    known = evaluator.declared.values.get(id(declaration))
    evaluator.charge()
    if known is None:
        depth = focus.functions.depth if focus.functions else 0
        inside = Focus(None, 1, 1, {}, Functions(table, depth))
        try:
            known = evaluator.value(declaration.body, inside)
        except DynamicError as error:
            known = error
        evaluator.declared.values[id(declaration)] = known
    if isinstance(known, DynamicError):
        raise known
    return known


def typeswitch(evaluator: Evaluator, expression: Typeswitch, focus: Focus) -> Value:
    value = evaluator.value(expression.operand, focus)
    for case in expression.cases:
        if not case.types or any(is_of_type(evaluator, value, type_) for type_ in case.types):
            if case.variable:
                variables = {**focus.variables, case.variable: value}
                focus = focus._replace(variables=variables)
            return evaluator.value(case.result, focus)
    raise AssertionError("a typeswitch without a default")


def try_catch(evaluator: Evaluator, expression: TryCatch, focus: Focus) -> Value:
    """Within ``try`` errors are raised as in XQuery, whatever becomes of them elsewhere."""
    outer, evaluator.strict = evaluator.strict, True
    try:
        value = evaluator.value(expression.body, focus)
        for item in value:
            if isinstance(item, Construction):
                evaluator.materialised(item)  # else its errors would come behind the try
        return value
    except DynamicError as error:
        raised = error
    finally:
        evaluator.strict = outer
    for clause in expression.clauses:
        if any(test.accepts(raised.namespace, raised.local) for test in clause.names):
            prefix = "err:" if raised.namespace == ERROR_NAMESPACE else ""
            name = evaluate("QName($a0, $a1)", raised.namespace, prefix + raised.local)
            bound: tuple[Value, ...] = (name, [raised.reason], raised.value)
            scope = {**focus.variables, **dict(zip(ERROR_VARIABLES, bound, strict=True))}
            return evaluator.value(clause.result, focus._replace(variables=scope))
    raise raised
