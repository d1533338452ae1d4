"""Operators answer what the interpreter answers, condition by condition, on every element."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from benchmarks.random_queries import Level, QueryWriter, random_message
from formats.element_stream import ElementStream
from formats.text import parse_text
from yfilter.errors import MatchLimitExceeded, ProfileRefused
from yfilter.language.evaluation import MessageEvaluator
from yfilter.language.nodes import element_node
from yfilter.language.positions import is_positional
from yfilter.language.profile_limits import DEFAULT_EVALUATION_LIMITS, EvaluationLimits
from yfilter.language.query_ast import Expression, PathExpression
from yfilter.language.query_parser import parse_profile
from yfilter.operators.message_columns import MessageColumns
from yfilter.operators.operator_table import OperatorTable


class Asked:
    """A table of operators, and the message that it is asked about."""

    def __init__(self, limits: EvaluationLimits = DEFAULT_EVALUATION_LIMITS) -> None:
        self.columns = MessageColumns()
        self.table = OperatorTable(self.columns, limits)

    def elements(self, number: int, stream: ElementStream) -> list[int]:
        """The elements that a condition holds on."""
        self.columns.bind_columns(stream)
        self.table.begin(stream)
        return [element for element in range(len(stream)) if self.table.answer(number, element)]


def condition_of(text: str) -> Expression:
    """What stands in brackets behind ``//*``."""
    body = parse_profile(f'declare namespace u = "urn:u"; //*[{text}]').body
    assert isinstance(body, PathExpression)
    return body.steps[-1].predicates[0]


def interpreted(condition: Expression, stream: ElementStream) -> list[int]:
    found = []
    for element in range(len(stream)):
        evaluator = MessageEvaluator(stream)
        if evaluator.holds(condition, element_node(element), {}):
            found.append(element)
    return found


def random_conditions(rng: Random, count: int) -> Iterator[str]:
    """Conditions that are no positions, and that the language takes."""
    while count:
        text = QueryWriter(rng, Level.XPATH_2)._condition(".", rng.randint(1, 4))
        try:
            condition = condition_of(text)
        except (ProfileRefused, AssertionError):
            continue
        if not is_positional(condition):
            count -= 1
            yield text


@pytest.mark.parametrize("seed", range(40))
def test_random_conditions_hold_where_the_interpreter_says(seed: int) -> None:
    rng = Random(seed)
    asked = Asked()
    messages = [parse_text(random_message(rng)) for _ in range(4)]
    texts = list(random_conditions(rng, 30))
    numbers = [asked.table.acquire(condition_of(text)) for text in texts]
    for stream in messages:
        for text, number in zip(texts, numbers, strict=True):
            try:
                expected = interpreted(condition_of(text), stream)
            except MatchLimitExceeded:
                continue
            assert asked.elements(number, stream) == expected, (seed, text)
    for number in numbers:
        asked.table.release(number)
    assert asked.table.statistics() == {"operators": 0, "operators_interpreted": 0}
