"""Conditions on arithmetic of a number, held against the arithmetic itself, number by number."""

from __future__ import annotations

from decimal import Decimal
from math import inf, nan, nextafter
from random import Random
from typing import cast

import pytest

from yfilter.index.number_tests import NumberTests, about_number
from yfilter.language import query_ast as ast
from yfilter.language.atoms import arithmetic, compare, negate
from yfilter.language.function_library import NUMBER_FUNCTIONS
from yfilter.language.nodes import Atom, DynamicError
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.query_parser import reread
from yfilter.language.query_text import unparse
from yfilter.operators.compiler import Compiler
from yfilter.operators.operators import MessageColumns, OperatorTable

LITERALS = ("0", "1", "2", "3", "7", "-1", "0.3", "1e1", "12", "0.1", "1e300", "-2.5", "100")
DOUBLE, COUNT = "number(position())", "position()"
FORMS = (
    *("{x} + {a}", "{x} - {a}", "{a} - {x}", "{x} * {a}", "{x} div {a}", "{x} idiv {a}"),
    *("{x} mod {a}", "({x} + {a}) mod {b}", "({x} - {a}) mod {b}", "-{x} * {a} + {b}"),
    *("({x} - {a}) div {b}", "({x} idiv {a}) * {b}", "abs({x} - {a})", "abs({a} * {x} + {b})"),
    *("floor({x} div {a})", "ceiling({a} - {x})", "round({x} * {a}) + {b}", "{x} - floor({x})"),
)


def result(expression: ast.Expression, number: Atom) -> Atom:
    """The value of an expression, where ``position()`` is a number."""
    match expression:
        case ast.Literal(value):
            return value
        case ast.Operation("negate", (operand,)):
            return negate(result(operand, number))
        case ast.Operation(name, (left, right)):
            return arithmetic(name, result(left, number), result(right, number))
        case ast.FunctionCall("abs", (operand,)):
            found = result(operand, number)
            assert isinstance(found, int | float | Decimal)
            return found if found >= 0 else negate(found)
        case ast.FunctionCall("floor" | "ceiling" | "round" as name, (operand,)):
            return cast(Atom, NUMBER_FUNCTIONS[name](result(operand, number)))
        case _:
            return number


def no_tests() -> NumberTests:
    return NumberTests(OperatorTable(MessageColumns(), EvaluationLimits(), Compiler))


def holds(test: ast.Comparison, number: Atom) -> bool:
    assert isinstance(test.right, ast.Literal)
    try:
        return compare(result(test.left, number), test.operator, test.right.value)
    except DynamicError:
        return False


def numbers_about(rng: Random, said: float | str | None) -> list[float]:
    """Numbers of all kinds, among them those beside each that is named."""
    named: list[float | str] = []
    if isinstance(said, str):
        named += [] if said.startswith("if") else said.split()[1:]
    elif said is not None:
        named = [said]
    found = [rng.choice((0.0, -0.0, 1.0, 1e-300, 5e-324, 1e308, -1e308, inf, -inf, nan, 1e16))]
    found += [rng.uniform(-20, 20), float(rng.randrange(-20, 150))]
    for one in map(float, named):
        found += [one, nextafter(one, inf), nextafter(one, -inf)]
    return found


@pytest.mark.parametrize("seed", range(40))
def test_a_number_passes_the_tests_that_hold_of_it(seed: int) -> None:
    rng = Random(seed)
    for _ in range(60):
        about = rng.choice((DOUBLE, COUNT))
        form = rng.choice(FORMS).format(x=about, a=rng.choice(LITERALS), b=rng.choice(LITERALS))
        relation = rng.choice(("=", "<", "<=", ">", ">=", "!="))
        test = reread(f"({form}) {relation} {rng.choice(LITERALS)}").body
        assert isinstance(test, ast.Comparison)
        operator, said = about_number(test)
        if said is None:
            continue  # division by zero, or a number beyond those that doubles count
        tests = no_tests()
        if isinstance(said, str):
            assert operator is ast.Operator.EQ
            tests.add(1, said, 5)
        for number in numbers_about(rng, said):
            if about == COUNT and not 0 <= number < 1 << 53:
                continue
            given = int(number) if about == COUNT else number
            found = 5 in tests.find(1, float(given)) if isinstance(said, str) else None
            found = operator.holds(given, said) if found is None else found
            assert found == holds(test, given), (seed, unparse(test), number)


def test_a_function_that_rises_is_a_bound_and_no_test() -> None:
    for form in ("{} * 3 > 7", "7 - {} >= 2.5", "-({} + 1) div 3 < 2", "abs({}) >= 0"):
        test = reread(form.format(DOUBLE)).body
        assert isinstance(test, ast.Comparison)
        operator, bound = about_number(test)
        assert isinstance(bound, float) == (not form.startswith("abs")), (form, operator, bound)


def test_tests_that_are_removed_hold_no_longer() -> None:
    tests = no_tests()
    tests.add(1, "within 1.0 2.0 5.0 6.0", 7)
    tests.add(1, "mod 1.0 3.0 0.0", 8)
    tests.add(1, "if position() mod 2 > 0", 9)
    assert [list(tests.find(1, number)) for number in (2.0, 3.0, 5.0)] == [[7, 8], [9], [7, 8, 9]]
    tests.remove(1, 8)
    tests.remove(1, 9)
    assert [list(tests.find(1, number)) for number in (2.0, 3.0, 5.0)] == [[7], [], [7]]
