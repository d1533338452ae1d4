"""Random texts, good and damaged: the parser of another SPARQL processor takes the same ones."""

from __future__ import annotations

from random import Random

import pytest

from tests.yfilter.graph.random_queries import PROLOGUE, RandomQuery
from yfilter import ProfileRefused
from yfilter.graph.graph_query import parse_graph_query
from yfilter.graph.query_text import unparse

pyoxigraph = pytest.importorskip("pyoxigraph")
TEXTS = 400
DAMAGE = "{}()[].;,?*+/^|!<>=\"'@: -"
# Here the parser refuses more than SPARQL does, and may.
STRICTER = {"unknown-function", "grouping", "duplicate-variable", "character"}


def is_query(text: str) -> bool:
    """Whether the other processor can read it."""
    try:
        pyoxigraph.Store().query(text)
    except SyntaxError:
        return False
    except RuntimeError:  # it was read, and cannot be answered
        return True
    return True


def damaged(random: Random, text: str) -> str:
    """One character less or more behind the prologue, or the end missing."""
    place = random.randrange(len(PROLOGUE), len(text) + 1)
    kind = random.randrange(3)
    if kind == 0 and text[place : place + 1] != " ":  # two words in one are read as two there
        return text[:place] + text[place + 1 :]
    return text[:place] + (random.choice(DAMAGE) + text[place:] if kind == 1 else "")


@pytest.mark.parametrize("seed", range(5))
def test_the_same_texts_are_queries(seed: int) -> None:
    taken = 0
    for number in range(TEXTS):
        random = Random(f"{seed}/{number}")
        text = RandomQuery(random).text()
        if number % 3 == 0:
            text = damaged(random, text)
        try:
            query = parse_graph_query(text)
        except ProfileRefused as refusal:
            assert refusal.code in STRICTER or not is_query(text), f"{seed}/{number}: {refusal}"
            continue
        taken += 1
        assert is_query(text), f"{seed}/{number}: {text}"
        written = unparse(query)
        assert parse_graph_query(written) == query, f"{seed}/{number}: {text}"
        assert is_query(written), f"{seed}/{number}: {written}"
    assert taken > TEXTS // 4
