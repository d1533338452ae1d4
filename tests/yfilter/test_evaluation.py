"""Evaluation on values chosen by hand; tests/demo/test_oracle.py compares with elementpath."""

from __future__ import annotations

import pytest

from formats.text import parse_text
from tests.oracle.evaluation import MessageEvaluator
from tests.yfilter.evaluated import evaluate, holds, select
from yfilter.errors import MatchLimitExceeded
from yfilter.language.functions import NODES
from yfilter.language.nodes import DOCUMENT, Node, NodeType, Value, element_node
from yfilter.language.numbers import number_text, parse_double
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.query_parser import parse_expression, parse_path

MESSAGE = parse_text(
    b"""<r xmlns:p="urn:p" n="5" e=""><!--c--><a n="4">x</a>t<a n=" 1e1 "><b>5</b>6</a>"""
    b"""<p:a p:n="INF" n="word">y<b/></p:a></r>"""
)
ROOT = 0


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        # a number on one side: numerically, values that are no number left out
        ("@n = 5", True),
        ("@n = '5'", True),
        ("@n = '5.0'", False),
        ("@n = 5.0", True),
        ("a/@n > 9", True),
        ("a/@n < 4", False),
        ("9 < a/@n", True),
        ("*/@n != 4", True),
        ("*[@n = 'word']/@n != 5", False),
        ("not(*[@n = 'word']/@n = 5)", True),
        ("@e = 0", False),
        ("*/@Q{urn:p}n > 1e300", True),
        ("nothing = 5", False),
        ("nothing != 5", False),
        # strings and two paths: by code point
        ("a = 'x'", True),
        ("a != 'x'", True),
        ("a < 'A'", True),  # "56"
        ("a/@n < @n", True),
        ("a/b = @n", True),
        ("a/@n = 'word'", False),
        ("'a' < 'B'", False),
        ("'\U00010000' > '\uffee'", True),
        # numbers that are no literals
        ("count(a) = 2", True),
        ("count(nothing) = 0", True),
        ("string-length(.) = 6", False),
        ("string-length() = 5", True),
        ("number(a/@n) = 4", True),
        ("number(nothing) = number(nothing)", False),
        ("number(nothing) != number(nothing)", True),
        ("number('x') < 5 or number('x') >= 5", False),
        ("string(-0) = '0' and string(-0e0) = '-0'", True),
        # effective boolean values
        ("a", True),
        ("@e", True),
        ("nothing", False),
        ("'' or nothing", False),
        ("'x' and 5", True),
        ("not(0) and not(number('x')) and not('')", True),
        ("count(nothing) or not(a)", False),
        # functions
        ("contains(., 'xt')", True),
        ("contains(a, '5')", False),  # of the first a only
        ("a[contains(., '5')]", True),
        ("contains(nothing, '')", True),
        ("starts-with(., 'x') and ends-with(., 'y')", True),
        ("lower-case('ÄB') = 'äb' and upper-case('äß') = 'ÄSS'", True),
        ("normalize-space(' \u00a0 a \n b ') = '\u00a0 a b'", True),
        ("matches(a/b, '^[0-9]$') and not(matches(., '^[0-9]$'))", True),
        ("matches(., 'X', 'i')", True),
        ("string-join(a/@n, '|') = '4| 1e1 '", True),
        ("concat(count(a), nothing, @n, 1.50, 1e6) = '251.51.0E6'", True),
        ("string(a) = 'x' and string(nothing) = ''", True),
        ("string(1000000) = '1000000' and string(1e6) = '1.0E6'", True),
        ("string(contains(., 'x')) = 'true'", True),
        # axes
        ("a/../@n = 5", True),
        ("a/@n/..[. = 'x']", True),
        ("text()/.. = .", True),
        ("b", False),
        (".//b", True),
        ("//b/../..[@n = 5]", True),
        ("/r/@n = @n", True),
        ("/a", False),
        ("..", True),
        ("../..", False),
        (".//@Q{urn:p}n", True),
        (".//text() = '6'", True),
        ("text() = '6'", False),
        ("/r/..", True),
    ],
)
def test_conditions(condition: str, expected: bool) -> None:
    assert holds(parse_expression(condition), MESSAGE, ROOT) is expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a/@n < 5", True),
        ("a/@n > 0 and a/@n <= 1 and a/@n >= 1", True),
        ("a/@n > 1 or a/@n < 1", False),
        ("a/@n != 1", True),
        ("a[@n = 1]/@n != 1", False),
        ("a[@n = 'NaN']/@n = number('NaN')", False),
        ("a[@n = 'NaN']/@n != number('NaN')", True),
    ],
)
def test_nan_among_numbers(condition: str, expected: bool) -> None:
    message = parse_text(b'<r><a n="NaN"/><a n="1"/><a n="NaN"/></r>')
    assert holds(parse_expression(condition), message, 0) is expected


def test_nodes_are_in_document_order_and_once() -> None:
    nodes = select(parse_path(".//text()/.."), MESSAGE, element_node(ROOT))
    assert [node.number for node in nodes] == [0, 1, 2, 3, 4]
    texts = select(parse_path("//text()"), MESSAGE)
    evaluator = MessageEvaluator(MESSAGE)
    assert [evaluator.string_value(node) for node in texts] == ["x", "t", "5", "6", "y"]
    everything = sorted(
        [
            DOCUMENT,
            *select(parse_path("//*"), MESSAGE),
            *texts,
            *select(parse_path("//@*"), MESSAGE),
        ]
    )
    kinds = "".join(node.type.name[0] for node in everything)
    assert kinds == "D" + "EAA" + "EAC" + "C" + "EAECC" + "EAACE"


def test_select_from_other_nodes() -> None:
    (attribute,) = select(parse_path("/r/@n"), MESSAGE)
    assert attribute == Node(0, NodeType.ATTRIBUTE, 0)
    assert select(parse_path(".."), MESSAGE, attribute) == [element_node(0)]
    assert select(parse_path(".."), MESSAGE, element_node(0)) == [DOCUMENT]
    assert select(parse_path("r"), MESSAGE, DOCUMENT) == [element_node(0)]
    assert select(parse_path("."), MESSAGE, DOCUMENT) == [DOCUMENT]
    assert select(parse_path("r[@n]"), MESSAGE, attribute) == []


def test_variables() -> None:
    condition = parse_expression("$v/b = 5 and $w = 'x'", variables={"v": NODES, "w": NODES})
    variables: dict[str, Value] = {"v": [element_node(2)], "w": ["x"]}
    assert holds(condition, MESSAGE, ROOT, variables)
    assert not holds(condition, MESSAGE, ROOT, {**variables, "w": ["y"]})
    assert evaluate(parse_expression("$w", variables={"w": NODES}), MESSAGE, DOCUMENT, variables)


def test_the_cost_is_bounded() -> None:
    message = parse_text(b"<a>" * 200 + b"</a>" * 200)
    condition = parse_expression(".//a[.//a[.//a[.//b]]]")
    with pytest.raises(MatchLimitExceeded) as caught:
        holds(condition, message, 0)
    assert caught.value.code == "too-many-visits"
    evaluator = MessageEvaluator(message, EvaluationLimits(visits_max=199))
    assert len(evaluator.select(parse_path(".//a"), element_node(0), {})) == 199
    with pytest.raises(MatchLimitExceeded):
        evaluator.select(parse_path("/a"), DOCUMENT, {})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5.0),
        (" \t\n5\r", 5.0),
        ("+5.", 5.0),
        (".5e-1", 0.05),
        ("-0", 0.0),
        ("INF", float("inf")),
        (" -INF ", float("-inf")),
        ("1e999", float("inf")),
        *((wrong, None) for wrong in ("", " ", "x", "1_0", "infinity", "inf", "nan", "+INF")),
        *((wrong, None) for wrong in ("0x1", "1e", "5 5", "٥", ".", "1,5", "5\u00a0")),
    ],
)
def test_what_is_a_number(text: str, value: float | None) -> None:
    assert parse_double(text) == value


def test_nan_is_a_number_that_equals_nothing() -> None:
    nan = parse_double("NaN")
    assert nan is not None
    assert nan != nan  # noqa: PLR0124


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5, "5"),
        (10**7, "10000000"),
        (5.0, "5"),
        (0.1, "0.1"),
        (-2.50, "-2.5"),
        (999999.5, "999999.5"),
        (1e6, "1.0E6"),
        (1234567.0, "1.234567E6"),
        (1e-6, "0.000001"),
        (1.5e-7, "1.5E-7"),
        (1e300, "1.0E300"),
        (0.0, "0"),
        (-0.0, "-0"),
        (float("inf"), "INF"),
        (float("-inf"), "-INF"),
        (float("nan"), "NaN"),
    ],
)
def test_how_a_number_is_written(value: float, text: str) -> None:
    assert number_text(value) == text
