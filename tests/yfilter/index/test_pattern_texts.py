"""The texts that patterns need, against what the patterns find."""

from __future__ import annotations

from random import Random

import pytest

from yfilter import Matcher
from yfilter.index.pattern_texts import OCTETS_MAX, OCTETS_MIN, texts_of
from yfilter.language.patterns import compile_pattern
from yfilter.language.words import Spacing, spaced


@pytest.mark.parametrize(
    ("key", "texts"),
    [
        ("/storm", {"storm"}),
        (
            r"/^\s*storm[- ](warning|air)\d",
            {f"storm{c}{w}" for c in "- " for w in ("warning", "air")},
        ),
        ("/(jpe?g|png)$", {"jpeg", "jpg", "png"}),
        ("/ab[cd]e", {"abce", "abde"}),
        ("/a.*storm.*bc", {"storm"}),
        ("/(storm|alert){2}", {"stormstorm", "stormalert", "alertstorm", "alertalert"}),
        ("/x(ab){2,}", {"abab"}),
        ("/(storm)?alert", {"stormalert", "alert"}),
        ("/é€x", {"é€x"}),
        ("i/Storm É", {"storm É", "storm é"}),
        ("i/kelvin", {"kelvin"}),
        ("q/a.b", {"a.b"}),
        ("x/a b c", {"abc"}),
        # None that all texts have, or only short ones.
        ("/(storm)?", set()),
        ("/storm|.", set()),
        ("/ab", set()),
        (r"/\d+\.\d", set()),
        ("/[a-e]xx", set()),
    ],
)
def test_texts(key: str, texts: set[str]) -> None:
    flags, _, pattern = key.partition("/")
    needed = texts_of(compile_pattern(pattern, flags), flags)
    assert needed.texts == {text.encode() for text in texts}
    assert needed.folded is ("i/" in key and bool(texts))


_PIECES = [
    "ab",
    "Ba",
    "é",
    "^",
    "$",
    ".",
    "[ab]",
    "[^a]",
    "b*",
    "(a|cé)+",
    "a{2,3}",
    "(?:ab)?",
    "k",
]
_TEXTS = ["ab", "ab", "Ba", "AB", "aa", "b", "é", "É", "cé", "k", "\u212a", "\n"]


@pytest.mark.parametrize("flags", ["", "i", "s"])
@pytest.mark.parametrize("seed", range(20))
def test_a_text_in_which_a_pattern_is_found_has_one_that_it_needs(seed: int, flags: str) -> None:
    print("seed", seed)
    rng = Random(seed)
    found = 0
    for _ in range(200):
        pattern = "".join(rng.choices(_PIECES, k=rng.randint(1, 4)))
        if rng.random() < 0.3:
            pattern += f"|{rng.choice(_PIECES)}{rng.choice(_PIECES)}"
        compiled = compile_pattern(pattern, flags)
        needed = texts_of(compiled, flags)
        assert all(OCTETS_MIN <= len(text) <= OCTETS_MAX for text in needed.texts)
        for _ in range(10):
            text = "".join(rng.choices(_TEXTS, k=rng.randint(2, 8)))
            if needed.texts and compiled.search_states(text):
                octets = text.encode()
                value = spaced(octets, Spacing.CASELESS) if needed.folded else octets
                assert any(one in value for one in needed.texts), (pattern, text)
                found += 1
    assert found


@pytest.mark.parametrize("seed", range(6))
def test_patterns_are_found_as_each_alone_while_they_come_and_go(seed: int) -> None:
    print("seed", seed)
    rng = Random(seed)
    matcher = Matcher()
    patterns: dict[str, tuple[str, str]] = {}
    for step in range(150):
        if patterns and rng.random() < 0.35:
            gone = rng.choice(sorted(patterns))
            matcher.remove(gone)
            del patterns[gone]
        else:
            middle = rng.choice(("[0-9]+", ".*", "(x|yz)?", ""))
            word, other = (rng.choice(("storm", "Rain", "sné", "ab")) for _ in range(2))
            chosen = f"{rng.choice(('', '^'))}{word}{middle}{other}", rng.choice(("", "i"))
            said = "".join(f', "{flag}"' for flag in chosen[1:] if flag)
            patterns[matcher.add(f'//e[matches(., "{chosen[0]}"{said})]')] = chosen
        if step % 5 == 4:
            words = ["storm", "STORM", "rain", "Rain", "snÉ", "sné", "ab", "7", "x", "yz", " "]
            value = "".join(rng.choices(words, k=rng.randint(0, 6)))
            expected = {
                name
                for name, (pattern, flags) in patterns.items()
                if compile_pattern(pattern, flags).search_states(value)
            }
            assert set(matcher.matched_ids(f"<e>{value}</e>".encode())) == expected
    for name in patterns:
        matcher.remove(name)
    left, empty = matcher.statistics(), Matcher().statistics()
    assert (left.index_atoms, left.index_nodes) == (empty.index_atoms, empty.index_nodes)
