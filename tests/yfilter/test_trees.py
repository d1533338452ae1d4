"""What goes through syntax trees, and what is remembered of their nodes."""

from __future__ import annotations

import pytest

from yfilter.language.query_ast import FunctionCall, Literal
from yfilter.language.query_parser import parse_anew
from yfilter.language.trees import by_identity, is_taller


def test_what_was_made_of_a_very_node_is_remembered() -> None:
    calls = []

    @by_identity(2)
    def made(node: object, other: int) -> int:
        calls.append((node, other))
        return len(calls)

    one, two, three = (Literal("x") for _ in range(3))
    assert [made(one, 1), made(one, 1), made(one, 2), made(one, 1)] == [1, 1, 2, 1]
    assert [made(two, 1), made(three, 1)] == [3, 4]  # equal nodes, and not that one
    assert made(one, 1) == 5  # so many, and no more


@pytest.mark.parametrize("height", [1, 2, 7, 40])
def test_the_height_of_a_tree(height: int) -> None:
    tree: Literal | FunctionCall = Literal("x")
    for _ in range(height - 1):
        tree = FunctionCall("concat", (Literal("y"), tree))
    assert is_taller(tree, height - 1)
    assert not is_taller(tree, height)


def test_operators_in_a_row_are_as_tall_as_they_are_many() -> None:
    assert is_taller(parse_anew("//a[" + "+".join("b" * 60) + " = 1]"), 60)
    assert not is_taller(parse_anew("//a[" + " or ".join("b" * 60) + "]"), 10)
