"""A profile of a known shape and the same profile by its tree alone give the same index."""

from __future__ import annotations

import re
from random import Random

import pytest

from benchmarks.workload import ProfileMaker, make_schema
from tests.yfilter.figures import figures
from tests.yfilter.random_cases import (
    random_flwor,
    random_linear_profile,
    random_message,
    random_profile,
)
from yfilter.compiled_matcher import indexed_part
from yfilter.engine.readings import Readings
from yfilter.index.index import Index
from yfilter.language.query_ast import Profile
from yfilter.language.query_parser import parse_profile
from yfilter.language.query_text import unparse

VISITS_MAX = 10_000_000


def by_shape(index: Index, text: str) -> int:
    return index.add(indexed_part(parse_profile(text)).ways)


def by_tree(index: Index, text: str) -> int:
    return index.add(indexed_part(Profile(parse_profile(text).body)).ways)


def content(index: Index) -> list[object]:
    """All that stands in an index, wherever it stands."""
    columns = (index._trie.node_rows, index._trie.query_rows, index._twig_trie.node_rows)
    tables = (index._records.words, index._atoms.rows, index._atoms.numbers)
    values = [index._atoms.describe(atom) for atom in range(1, index._atoms.bound)]
    # Hashes of values differ from process to process, but not within one.
    return [*(list(column) for column in (*columns, *tables)), values, figures(index)]


def sizes(index: Index) -> dict[str, int]:
    names = ("nodes", "queries", "atoms", "records", "twigs", "symbols", "attributes")
    statistics = figures(index)
    return {f"index_{name}": getattr(statistics, f"index_{name}") for name in names}


def random_texts(seed: int) -> list[str]:
    rng = Random(seed)
    texts = [unparse(draw(rng)) for draw in (random_profile, random_linear_profile) * 60]
    texts += [random_flwor(rng) for _ in range(20)]
    # Once more with other words, so that recipes are used again.
    words = dict(zip("abcdxyz", rng.sample("abcdxyz", 7), strict=True))
    return texts + [re.sub(r"\b[abcdxyz]\b", lambda word: words[word[0]], text) for text in texts]


@pytest.mark.parametrize("seed", range(6))
def test_random_profiles_by_shape_and_by_tree(seed: int) -> None:
    rng = Random(seed)
    one, other = Index(), Index()
    empty = sizes(one)
    live: list[int] = []
    for text in random_texts(seed):
        added = by_shape(one, text)
        assert added == by_tree(other, text), (seed, text)
        live.append(added)
        if rng.random() < 0.3:
            gone = live.pop(rng.randrange(len(live)))
            one.remove(gone)
            other.remove(gone)
    assert len(live) > 20
    for _ in range(10):
        stream = Readings(random_message(rng).stream)
        assert set(one.match(stream, VISITS_MAX)) == set(other.match(stream, VISITS_MAX)), seed
    for query in live:
        one.remove(query)
    assert sizes(one) == empty


@pytest.mark.parametrize("seed", range(3))
def test_each_random_profile_alone(seed: int) -> None:
    same = 0
    for text in random_texts(seed):
        one, other = Index(), Index()
        assert by_shape(one, text) == by_tree(other, text)
        assert sizes(one) == sizes(other), (seed, text)
        if not re.search(r"]\[| and |^for", text):  # else conditions may have another order
            assert content(one) == content(other), (seed, text)
            same += 1
    assert same > 30


def test_generated_profiles_by_shape_and_by_tree() -> None:
    maker = ProfileMaker(make_schema(7), 7)
    texts = [text for text in map(maker.text, range(1_500)) if "][" not in text]
    one, other = Index(), Index()
    for text in texts:
        added = by_shape(one, text)
        assert added == by_tree(other, text), text
    assert content(one) == content(other)
    for query in range(1, len(texts), 2):
        one.remove(query)
        other.remove(query)
    assert content(one) == content(other)
