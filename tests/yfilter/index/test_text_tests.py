"""Text tests: all that hold of a value, in one pass, as Python's own functions have them."""

from __future__ import annotations

from random import Random

import pytest

from yfilter import Matcher
from yfilter.language.patterns import compile_pattern

LETTERS = "abß€"


def holds(name: str, value: str, text: str) -> bool:
    match name:
        case "contains":
            return text in value
        case "starts-with":
            return value.startswith(text)
        case "ends-with":
            return value.endswith(text)
        case _:
            return compile_pattern(text).search(value)


def word(rng: Random, least: int, most: int) -> str:
    return "".join(rng.choices(LETTERS, k=rng.randint(least, most)))


@pytest.mark.parametrize("seed", range(6))
def test_each_test_holds_where_it_does_alone_while_tests_come_and_go(seed: int) -> None:
    rng = Random(seed)
    matcher = Matcher()
    tests: dict[str, tuple[str, str, str]] = {}
    for step in range(120):
        if tests and rng.random() < 0.3:
            gone = rng.choice(sorted(tests))
            matcher.remove(gone)
            del tests[gone]
        else:
            name = rng.choice(("contains", "starts-with", "ends-with", "matches"))
            text = word(rng, 0, 4)
            if name == "matches":
                text = rng.choice(("", "^")) + text + rng.choice(("", "+", "$", "[ab]?")) or "a"
                text = text.replace("^+", "a+")
            test = name, rng.choice("kl"), text
            tests[matcher.add(f'//e[{name}(@{test[1]}, "{text}")]')] = test
        if step % 10 == 9:
            values = {attribute: word(rng, 0, 7) for attribute in "kl" if rng.random() < 0.8}
            written = "".join(f' {name}="{value}"' for name, value in values.items())
            expected = {
                number
                for number, (name, attribute, text) in tests.items()
                if holds(name, values.get(attribute, ""), text)
            }
            assert set(matcher.matched_ids(f"<r><e{written}/></r>".encode())) == expected, seed
    for name in tests:
        matcher.remove(name)
    empty = Matcher().statistics()
    assert {key: getattr(matcher.statistics(), key) for key in ("index_atoms", "index_nodes")} == {
        key: getattr(empty, key) for key in ("index_atoms", "index_nodes")
    }


def test_a_test_is_looked_up_and_no_candidate_verified() -> None:
    matcher = Matcher()
    for number in range(1_000):
        matcher.add(f'//e[contains(@k, "v{number:04}")]')
        matcher.add(f"//e[matches(@k, '^v{number:04}[a-z]')]")
    assert sorted(matcher.matched_ids(b'<e k="v0123x"/>')) == ["p247", "p248"]
    sizes = matcher.statistics()
    assert (sizes.operators, sizes.candidates_profile) == (0, 0)


def test_long_and_empty_texts_and_patterns_that_match_nothing_are_verified() -> None:
    matcher = Matcher()
    matcher.add(f'/e[contains(@k, "{"a" * 65}")]', "long")
    matcher.add('/e[contains(@k, "")]', "empty")
    matcher.add('/e[matches(@k, "^$")]', "nothing")
    assert matcher.matched_ids(b"<e/>") == ["empty", "nothing"] or set(
        matcher.matched_ids(b"<e/>")
    ) == {"empty", "nothing"}
    assert set(matcher.matched_ids(f'<e k="{"a" * 70}"/>'.encode())) == {"long", "empty"}
    assert matcher.statistics().operators == 3
