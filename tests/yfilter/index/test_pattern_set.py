"""Sets of patterns against searches for each pattern alone."""

from __future__ import annotations

import random

import pytest

from yfilter.index import pattern_set
from yfilter.index.pattern_set import BLOCK_PATTERNS_MAX, BLOCKS_MAX, PatternSet
from yfilter.language.patterns import compile_pattern


def written(pattern: str) -> str:
    of_re2 = compile_pattern(pattern).written
    assert of_re2 is not None
    return of_re2


def filled(patterns: dict[int, str]) -> PatternSet:
    together = PatternSet()
    for number, pattern in patterns.items():
        together.add(number, written(pattern))
    return together


def found_alone(patterns: dict[int, str], text: str) -> list[int]:
    return [n for n, pattern in patterns.items() if compile_pattern(pattern).search_states(text)]


def random_text(chance: random.Random, length: int) -> str:
    return "".join(chance.choice("abcé\n") for _ in range(length))


def random_pattern(chance: random.Random) -> str:
    pieces = ["a", "b", "é", "^c", "a$", ".", "[^a]", "b*", "(a|cé)+", "a{2,3}", r"\d?", "$"]
    return "".join(chance.choice(pieces) for _ in range(chance.randint(0, 4)))


@pytest.mark.parametrize("block_max", [1, 2, 7, BLOCK_PATTERNS_MAX])
@pytest.mark.parametrize("blocks_max", [3, 1_000])
def test_adds_and_removes(block_max: int, blocks_max: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern_set, "BLOCK_PATTERNS_MAX", block_max)
    monkeypatch.setattr(pattern_set, "BLOCKS_MAX", blocks_max)
    chance = random.Random(block_max)
    together, patterns = PatternSet(), dict[int, str]()
    for step in range(300):
        if patterns and chance.random() < (0.7 if step % 100 > 60 else 0.3):
            number = chance.choice(list(patterns))
            del patterns[number]
            together.remove(number)
        else:
            number = chance.choice([n for n in range(400) if n not in patterns])
            patterns[number] = random_pattern(chance)
            together.add(number, written(patterns[number]))
        text = random_text(chance, 6)
        assert sorted(together.find(text.encode())) == sorted(found_alone(patterns, text))
        assert len(together) == len(patterns)
        assert len(together._blocks) <= 2 * 400 // block_max + 2


def test_blocks_that_are_full_become_one() -> None:
    patterns = {number: f"x{number}y" for number in range(BLOCK_PATTERNS_MAX * BLOCKS_MAX + 2)}
    together = filled(patterns)
    assert len(together._blocks) == 2
    for number in (0, 1_000, len(patterns) - 1):
        assert together.find(f"x{number}y".encode()) == [number]
        together.remove(number)
        assert together.find(f"x{number}y".encode()) == []


def test_blocks_are_compiled_when_asked_after_a_change() -> None:
    together = filled({number: f"x{number}y" for number in range(600)})

    def compiled() -> int:
        assert together.find(b"x7y") == [7]
        return sum(block.compiled for block in together._blocks)

    assert sum(block.compiled for block in together._blocks) == 0
    assert compiled() == compiled() == 3
    together.add(600, "z")  # to the third block
    assert compiled() == 4
    for number in range(100, 227):
        together.remove(number)  # only marked
    assert compiled() == 4
    together.remove(227)  # half are gone
    assert compiled() == 5
    assert together.find(b"x100y") == []
    for number in range(601, 900):
        together.add(number, "z")  # into the room in the first and the third
    assert compiled() == 8
    assert len(together._blocks) == 4


def test_numbers_are_given_once() -> None:
    together = filled({1: "a"})
    with pytest.raises(ValueError, match="there is a pattern 1"):
        together.add(1, "b")
    together.remove(1)
    with pytest.raises(KeyError):
        together.remove(1)
    together.add(1, "b")
    assert together.find(b"a") == []
    assert together.find(b"b") == [1]


def test_hostile_patterns_are_searched_for_together() -> None:
    patterns = {n: f"{chr(97 + n % 16)}.*{chr(97 + n // 16)}.*c{{1,50}}" for n in range(256)}
    together = filled(patterns)
    for pattern in ("(a+)+$", "(a|aa)+!$"):
        patterns[len(patterns)] = pattern
        together.add(len(together), written(pattern))
    text = "".join(random.Random(1).choice("abcdefghijklmnop") for _ in range(60)) + "a" * 500 + "b"
    assert sorted(together.find(text.encode())) == found_alone(patterns, text)
    assert [bool(block.singles) for block in together._blocks] == [False, True]  # of two


def test_what_is_too_large_together_is_searched_for_singly() -> None:
    patterns = {number: rf"^{number}:\w{{10}}" for number in range(100)}
    together = filled(patterns)
    assert together.find(b"42:abcdefghij") == [42]
    assert sum(bool(block.singles) for block in together._blocks) == 1
    together.remove(42)
    assert together.find(b"42:abcdefghij") == []
    for number in range(4, 100):
        if number != 42:
            together.remove(number)
    assert together.find(b"1:abcdefghij") == [1]
    assert sum(bool(block.singles) for block in together._blocks) == 0


def test_a_search_without_enough_memory_misses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """RE2 says only that it found nothing, not even the pattern that is in every text."""

    class Failing:
        def Match(self, text: bytes) -> list[int] | None:  # noqa: N802
            return None

    monkeypatch.setattr(pattern_set, "compile_re2_set", lambda patterns: Failing())
    together = filled({1: "a", 2: "b", 3: "a.b"})
    assert sorted(together.find(b"a-b")) == [1, 2, 3]
    assert together.find(b"b-a") == [1, 2]
    assert sum(bool(block.singles) for block in together._blocks) == 1
