"""xs:decimal: exact, and an error where it has too many digits."""

from __future__ import annotations

from decimal import Decimal

import pytest

from formats.text import parse_text
from tests.yfilter.evaluated import evaluate
from yfilter.language.function_library import NUMBER_FUNCTIONS
from yfilter.language.nodes import DynamicError
from yfilter.language.numbers import DIGITS_MAX
from yfilter.language.query_parser import parse_expression

BIG = "79228162514264337593543950335"
STREAM = parse_text(b"<x/>")


def text_of(expression: str) -> str:
    (value,) = evaluate(parse_expression(f"string({expression})"), STREAM)
    return str(value)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (f"-{BIG}.0 - 1.0", "-79228162514264337593543950336"),
        (f"-({BIG}.5)", f"-{BIG}.5"),
        (f"{BIG}.5 + 0.00000000000000000001", f"{BIG}.50000000000000000001"),
        (f"{BIG}.5 * {BIG}.5", "6277101735386680763835789423128438253588091106870490562560.25"),
        (
            f"{BIG}{BIG}.5 idiv 0.5",
            "158456325028528675187087900671" + "58456325028528675187087900671",
        ),
        (f"{BIG}{BIG}.5 mod 1", "0.5"),
        ("1.0 div 3", "0.3333333333333333333333333333333333333333"),
        (f"round({BIG}.5)", "79228162514264337593543950336"),
        (f"round-half-to-even({BIG}.55, 1)", f"{BIG}.6"),
        (f"floor(-{BIG}.5)", "-79228162514264337593543950336"),
        (f"abs(-{BIG}.5)", f"{BIG}.5"),
        (f"sum(({BIG}.5, 1))", "79228162514264337593543950336.5"),
        (f"avg(({BIG}.5, 1))", "39614081257132168796771975168.25"),
    ],
)
def test_digits_are_exact(expression: str, value: str) -> None:
    assert text_of(expression) == value


LARGE = "xs:decimal(string-join((for $i in 1 to 4000 return '9'), ''))"


@pytest.mark.parametrize("operation", ["* {0}", "div (1 div {0})", "idiv (1 div {0})"])
def test_too_many_digits_are_an_error(operation: str) -> None:
    with pytest.raises(DynamicError, match="FOAR0002"):
        text_of(f"{LARGE} {operation.format(LARGE)}")


def test_digits_behind_the_point_beyond_the_bound_are_rounded_away() -> None:
    assert text_of(f"(1.0 div {LARGE}) * (1.0 div {LARGE}) * 1.0") == "0"
    assert NUMBER_FUNCTIONS["round-half-to-even"](1.5, -DIGITS_MAX - 1) == 0


@pytest.mark.parametrize("number", [15, 1.5, Decimal("1.5")])
def test_any_number_of_digits_can_be_asked_for(number: int | float | Decimal) -> None:
    rounded = NUMBER_FUNCTIONS["round"]
    assert rounded(number, 10**9) == rounded(number, DIGITS_MAX) == number
    assert rounded(number, -(10**9)) == rounded(number, -DIGITS_MAX) == 0
