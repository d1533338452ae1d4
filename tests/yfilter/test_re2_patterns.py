"""What RE2 finds against the NFA of patterns.py, and so against Python's engine."""

from __future__ import annotations

import random
import re

import pytest
from elementpath.regex import translate_pattern

from yfilter.language import patterns
from yfilter.language.patterns import Pattern, compile_pattern, compile_re2

FLAGS = {"s": re.DOTALL, "m": re.MULTILINE}


def as_re2(pattern: str, flags: str = "") -> str | None:
    """As RE2 has it, None for what it refuses, or would find elsewhere as well."""
    compiled = compile_pattern(pattern, flags)
    is_exact = compiled.is_linear and not ("m" in flags and "^" in pattern)
    written = compiled.written if is_exact else None
    return None if written is None or compile_re2(written) is None else written


def found(written: str, text: str) -> bool:
    compiled = compile_re2(written)
    assert compiled is not None
    return compiled.search(text.encode()) is not None


@pytest.mark.parametrize(
    ("pattern", "flags", "written"),
    [
        ("", "", ""),
        ("aé", "", r"\x{61}\x{e9}"),
        ("^a$", "", r"\A\x{61}\z"),
        ("a$", "m", r"\x{61}(?m:$)"),
        ("^a", "m", None),  # a line begins behind the last newline only to RE2
        ("ak", "i", r"[\x{41}\x{61}][\x{4b}\x{6b}\x{212a}]"),
        ("a b", "x", r"\x{61}\x{62}"),
        (".", "", r"[\x{0}-\x{9}\x{b}-\x{c}\x{e}-\x{10ffff}]"),
        (".", "s", r"[\x{0}-\x{10ffff}]"),
        (r"\.\n\r\t\\\-", "", r"\x{2e}\x{a}\x{d}\x{9}\x{5c}\x{2d}"),
        (r"(a)\1", "", None),
        ("(a|bc)+?", "", r"(?:((?:\x{61}|\x{62}\x{63})))+?"),
        ("(?:a)", "", r"\x{61}"),
        ("a*b?c{2}", "", r"(?:\x{61})*(?:\x{62})?(?:\x{63}){2,2}"),
        ("d{1,3}e{2,}", "", r"(?:\x{64}){1,3}(?:\x{65}){2,}"),
        ("[b-da^]", "", r"[\x{5e}\x{61}-\x{64}]"),
        (r"[^\-\]]", "", r"[\x{0}-\x{2c}\x{2e}-\x{5c}\x{5e}-\x{10ffff}]"),
        ("[a-f-[b-d]]", "", r"[\x{61}\x{65}-\x{66}]"),
        (r"\p{IsBasicLatin}", "", r"[\x{0}-\x{7f}]"),
        ("a{1000}", "", r"(?:\x{61}){1000,1000}"),
        # More than RE2 repeats at once.
        ("a{1001}", "", r"(?:(?:\x{61}){1000}(?:\x{61}){1})"),
        ("a{2,1003}?", "", r"(?:(?:\x{61}){2}(?:\x{61}){0,1000}?(?:\x{61}){0,1}?)"),
        ("a{1001,}", "", r"(?:(?:\x{61}){1000}(?:\x{61}){1}(?:\x{61})*)"),
        ("(a){1001}", "", None),
        ("(a{40}){40}", "", None),
        (r"\w{500}", "", None),  # more than RE2's memory holds
    ],
)
def test_written(pattern: str, flags: str, written: str | None) -> None:
    assert as_re2(pattern, flags) == written


_ATOMS = ["a", "b", "é", ".", "[ab]", "[^aé]", r"\n", r"[\d-[b]]", "^", "$", "(?:)"]
_QUANTIFIERS = ["", "", "", "*", "+", "?", "{2}", "{0}", "{1,2}", "{0,}", "*?", "{1,3}?"]


def _random_pattern(chance: random.Random, depth: int) -> str:
    def piece() -> str:
        if depth and chance.random() < 0.4:
            return f"({_random_pattern(chance, depth - 1)}){chance.choice(_QUANTIFIERS)}"
        atom = chance.choice(_ATOMS)
        return atom if atom in "^$" else atom + chance.choice(_QUANTIFIERS)

    branches = ("".join(piece() for _ in range(chance.randint(0, 3))) for _ in range(2))
    return "|".join(branches) if chance.random() < 0.3 else next(branches)


@pytest.mark.parametrize("depth", [1, 3])  # Python may take years for groups in groups
@pytest.mark.parametrize("seed", range(10))
def test_agrees_with_the_nfa_and_with_python(seed: int, depth: int) -> None:
    print("seed", seed)
    chance = random.Random(seed)
    written_so_far = 0
    for _ in range(100):
        pattern, flags = _random_pattern(chance, depth), chance.choice(["", "s", "m", "sm"])
        combined = sum(FLAGS[flag] for flag in flags)
        pythons = re.compile(translate_pattern(pattern, combined), combined)
        ours = compile_pattern(pattern, flags)
        written = as_re2(pattern, flags)
        written_so_far += written is not None
        for _ in range(10):
            text = "".join(
                chance.choice("abé1\n\r \U0001f600") for _ in range(chance.randint(0, 6))
            )
            expected = ours.search_states(text)
            if depth == 1:
                assert (pythons.search(text) is not None) is expected, (pattern, flags, text)
            assert ours.search(text) is expected, (pattern, flags, text)
            if written is not None:
                assert found(written, text) is expected, (pattern, flags, text)
    assert written_so_far > 50


def test_without_re2_the_nfa_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "_library", lambda: None)
    assert as_re2("a") is None
    assert Pattern("^a[bc]+$", "").search("abcb")
    assert not Pattern("^a[bc]+$", "").search("abcd")


def test_hostile_patterns_end() -> None:
    # A backtracking engine needs 2 ** 1000 steps for these.
    text = "a" * 1_000 + "!"
    for pattern in ("^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(.*a){12}b", "(a?){300}a{300}b"):
        written = as_re2(pattern)
        assert written is not None
        assert not found(written, text)
        assert not compile_pattern(pattern).search(text)
