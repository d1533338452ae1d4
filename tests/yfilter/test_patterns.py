"""Regular expressions against Python's engine (by elementpath's translation), and their bounds."""

from __future__ import annotations

import re

import pytest
from elementpath.regex import translate_pattern
from hypothesis import given, settings
from hypothesis import strategies as st

from yfilter.language.pattern_syntax import PatternError
from yfilter.language.patterns import MEMO_MAX, check_pattern, compile_pattern


@pytest.mark.parametrize(
    ("pattern", "flags", "text", "found"),
    [
        ("b", "", "abc", True),
        ("^b", "", "abc", False),
        ("^a.c$", "", "abc", True),
        ("^a.c$", "", "a\nc", False),
        ("^a.c$", "s", "a\nc", True),
        ("c$", "", "abc\n", False),
        ("c$", "m", "abc\nx", True),
        ("^x", "m", "abc\nx", True),
        ("^$", "m", "abc\n", False),
        ("ABC", "i", "xabcx", True),
        ("a b", "x", "ab", True),
        ("[a-c-[b]]{2}", "", "xacx", True),
        ("[a-c-[b]]{2}", "", "xabx", False),
        (r"\p{Lu}\d+", "", "xÄ7", True),
        (r"^\i\c*$", "", "name-1", True),
        ("a{2,3}b", "", "ab", False),
        ("^a{2,3}b", "", "aaab", True),
        ("^(a|bc)*?d", "", "abcad", True),
        ("", "", "", True),
        ("()*a", "", "ba", True),
        (r"\(\[\\", "", r"([\\", True),
    ],
)
def test_patterns(pattern: str, flags: str, text: str, found: bool) -> None:
    assert compile_pattern(pattern, flags).search(text) is found
    assert compile_pattern(pattern, flags).search_states(text) is found


@pytest.mark.parametrize(
    ("pattern", "flags", "reason"),
    [
        ("(a", "", "unterminated"),
        ("a{2", "", "quantifier"),
        ("*a", "", "quantifier"),
        ("[a", "", "unterminated"),
        (r"(a)\1", "", "back-reference"),
        ("a", "g", "'g' is not a flag"),
        ("a" * 257, "", "more than 256 characters"),
        ("(a{1000}){1000}", "", "states"),
        ("(((){2000}){2000}){2000}", "", "more than 2000 states"),
        ("a{99999999999999}", "", "too large"),
        ("(" * 17 + "a" + ")" * 17, "", "nested more than 16"),
        (r"\p{Nonsense}", "", "Nonsense"),
        ("(?=a)", "", "extension notation"),
    ],
)
def test_refused(pattern: str, flags: str, reason: str) -> None:
    with pytest.raises(PatternError, match=re.escape(reason)):
        check_pattern(pattern, flags, 256)


def test_no_pattern_takes_long() -> None:
    # A backtracking engine needs 2 ** 5000 steps for these.
    text = "a" * 5_000 + "!"
    for pattern in ("^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(.*a){12}b"):
        assert not compile_pattern(pattern).search_states(text)


def test_memory_is_bounded() -> None:
    pattern = compile_pattern("(a|b)*a(a|b){12}c")
    state = 1
    for _ in range(40):
        text = []
        for _ in range(1_000):
            state = state * 1103515245 + 12345 & 0x7FFFFFFF
            text.append("ab"[state >> 20 & 1])
        assert not pattern.search_states("".join(text))
        assert pattern.statistics()["remembered"] <= MEMO_MAX + 1


_atoms = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\n", r"\s", "^", "$", "A"])
_quantifiers = st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{1,2}", "{0,}", "*?"])


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    piece = st.tuples(inner, _quantifiers).map(
        lambda pair: f"({pair[0]}){pair[1]}" if pair[1] else pair[0]
    )
    sequence = st.lists(piece, max_size=3).map("".join)
    return st.lists(sequence, min_size=1, max_size=2).map("|".join)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(
    st.recursive(_atoms, _grown, max_leaves=6),
    st.text("ab\nA", max_size=6),
    st.sampled_from(["", "s", "m", "i", "sm"]),
)
def test_agrees_with_the_translation_to_python(pattern: str, text: str, flags: str) -> None:
    combined = sum({"s": re.DOTALL, "m": re.MULTILINE, "i": re.IGNORECASE}[flag] for flag in flags)
    expected = re.search(translate_pattern(pattern, combined), text, combined) is not None
    assert compile_pattern(pattern, flags).search(text) is expected
    assert compile_pattern(pattern, flags).search_states(text) is expected


@pytest.mark.parametrize(
    "pattern", ["(a)(b)?", "a.*?n", "(a|ab)(c|bcd)?", "[ab]+", "x*y", "(a+)(b*)", "b"]
)
def test_matches_are_those_of_a_backtracking_engine(pattern: str) -> None:
    text = "banana abcd aab xxyab y"
    found = [
        (start, end, tuple(span or (-1, -1) for span in groups))
        for start, end, groups in compile_pattern(pattern).finditer(text)
    ]
    wanted = [
        (match.start(), match.end(), tuple(match.span(i + 1) for i in range(match.re.groups)))
        for match in re.finditer(pattern, text)
    ]
    assert found == wanted
