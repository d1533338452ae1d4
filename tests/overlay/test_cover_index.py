"""The cover index finds what a comparison of all pairs finds, without comparing all pairs."""

from __future__ import annotations

from random import Random

import pytest

from overlay.routing import routing_table
from overlay.routing.routing_table import CoverIndex
from yfilter.engine.containment import Pattern, covers
from yfilter.engine.linear_paths import Conjunction, routing_query
from yfilter.language.query_parser import parse_profile


def pattern(profile: str) -> Pattern:
    (disjunct,) = routing_query(parse_profile(profile))
    return Pattern(disjunct)


def random_profile(rng: Random, names: str = "abcd") -> str:
    text = ""
    for _ in range(rng.randint(1, 4)):
        text += rng.choice(["/", "/", "//"]) + rng.choice(names + "*")
        if rng.random() < 0.35:
            value = rng.choice(['= "1"', '= "2"', '= "3"', "> 1", "", "< 3"])
            text += f"[@{rng.choice('xy*')} {value}]"
        if rng.random() < 0.15:
            text += f"[.//{rng.choice(names)}]"
    return text


@pytest.mark.parametrize("seed", range(10))
def test_the_index_finds_what_all_pairs_would(seed: int) -> None:
    rng = Random(seed)
    patterns = [pattern(random_profile(rng)) for _ in range(120)]
    index: CoverIndex[Pattern] = CoverIndex()
    inside: set[Pattern] = set()
    for _ in range(300):
        one = rng.choice(patterns)
        if one in inside:
            index.remove(one)
            inside.remove(one)
        else:
            index.add(one)
            inside.add(one)
    for one in patterns:
        others = inside - {one}
        assert set(index.covering(one)) == {other for other in others if covers(other, one)}
        assert set(index.covered(one)) == {other for other in others if covers(one, other)}
    for one in inside:
        index.remove(one)
    assert len(index) == 0
    assert not index._root.edges and not index._root.ends  # nothing is left behind


def test_two_paths_of_one_disjunct_may_end_in_one_place() -> None:
    index: CoverIndex[Pattern] = CoverIndex()
    one = Pattern(Conjunction.parse('/a/b[@x = "1"] and /a/b[@x = "2"]'))
    index.add(one)
    assert list(index.covered(pattern("//b"))) == [one]
    with pytest.raises(ValueError, match="already"):
        index.add(one)
    index.remove(one)
    assert list(index.covered(pattern("//b"))) == []


def test_few_of_very_many_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equalities with many values: what could not cover, or be covered, is not looked at."""
    index: CoverIndex[Pattern] = CoverIndex()
    rng = Random(1)
    for number in range(5_000):
        path = "".join(rng.choice(["/", "/", "//"]) + rng.choice("abcdefgh") for _ in range(4))
        index.add(pattern(f'{path}[@id = "v{number % 1_000}"]'))
    compared = []
    monkeypatch.setattr(routing_table, "covers", lambda *pair: compared.append(pair))
    for number in range(100):
        one = pattern(f'/a/b/c/d[@id = "v{number}"]')
        list(index.covering(one))
        index.covered(one)
    assert 0 < len(compared) / 100 < 5
