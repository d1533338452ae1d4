"""Regular expressions as XPath 3.1 has them: what they match, what is refused, what they cost.

What Saxon finds is asked in test_patterns_oracle.py.
"""

from __future__ import annotations

import re

import pytest

from yfilter.errors import MatchLimitExceeded, ProfileRefused
from yfilter.language.budget import Budget
from yfilter.language.patterns import Pattern, PatternError, check_pattern, compile_pattern
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.query_parser import parse_profile


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
        ("a[ ]b", "x", "a b", True),
        (r"\ [ b", "x", "[b", True),
        ("a.b", "q", "a.b", True),
        ("a.b", "qx", "acb", False),
        ("A.B", "qi", "a.b", True),
        # \s \w \d \i \c are XML Schema's, inside brackets and outside
        (r"\s", "", "\xa0", False),
        (r"[\s]", "", "\xa0", False),
        (r"^\S$", "", "\u2003", True),
        (r"\w", "", "_", False),
        (r"^\w+$", "", "50€$+<=>^~e\u0301", True),
        (r"\W", "", "50€", False),
        (r"[\W]", "", "_", True),
        (r"^\d$", "", "\u0669", True),
        (r"^\D$", "", "\xb2", True),
        (r"^\i$", "", ":", True),
        (r"^\I\C$", "", "- ", True),
        (r"^\c$", "", "\U00020000", True),
        (r"^\p{IsBasicLatin}+$", "", "a~", True),
        (r"^\P{IsBasicLatin}+$", "", "éß", True),
        (r"^[\p{IsGreek}-[\p{Lu}]]$", "", "ω", True),
        (r"^[\p{IsGreek}-[\p{Lu}]]$", "", "Ω", False),
        (r"^[^a-c-[x]]$", "", "x", False),
        ("^[a-c-e]+$", "", "b-e", True),
        (r"\p{Lu}", "i", "a", False),
        ("^[A-Z-[I]]$", "i", "\u212a", True),  # KELVIN SIGN
        ("^[A-Z-[I]]$", "i", "i", False),
        ("[^Q]", "i", "q", False),
        ("^ſ$", "i", "S", True),
        ("^a.c$", "", "a\rc", False),
        ("a\n^", "m", "a\n", False),
        ("a\n^b", "m", "a\nb\n", True),
        (r"([md])[aeiou]\1", "i", "Mum", True),
        (r"^(?:(a)|b)\1c$", "", "bc", True),
        (r"(a)\10", "", "aa0", True),
        (r"^(.)(.)(.)(.)(.)(.)(.)(.)(.)(.)\10$", "", "abcdefghijj", True),
        (r"(a*)*\1b", "", "aab", True),
        ("^(?:a|b){2,3}?$", "", "abb", True),
        ("^[ab]{1500}$", "", "ab" * 750, True),
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
    compiled = compile_pattern(pattern, flags)
    assert compiled.search(text, Budget(EvaluationLimits()).charge) is found
    assert compiled.search_states(text, Budget(EvaluationLimits()).charge) is found


@pytest.mark.parametrize(
    ("pattern", "flags", "reason"),
    [
        ("(a", "", "a '(' without its ')' at character 1 of the regular expression (FORX0002)"),
        ("a)b", "", "a ')' without its '(' at character 2"),
        ("a{2", "", "a '{' without a quantifier, such as {2,3} at character 2"),
        ("a{,2}", "", "a '{' without a quantifier"),
        ("a{3,2}", "", "less than its first"),
        ("b|*a", "", "the quantifier '*' follows nothing to repeat at character 3"),
        ("a**", "", "a quantifier after a quantifier at character 3"),
        ("a  (", "x", "a '(' without its ')' at character 4"),
        ("[a", "", "a '[' without its ']' at character 1"),
        ("[]", "", "an empty class"),
        ("[b-a]", "", "ends before it begins"),
        ("[a[b]]", "", r"a '[' in a class that is not written '\['"),
        (r"[a-\d]", "", "a range that ends with more than one character"),
        ("[a-z-[b]c]", "", "goes on behind what is subtracted"),
        ("a]", "", r"a ']' that is not written '\]' at character 2"),
        (r"\e", "", r"'\e' is not an escape"),
        (r"\pL", "", r"without a category or block, such as \p{L}"),
        (r"(a)\2", "", "no group 2 that is closed before the back-reference at character 4"),
        (r"(a\1)", "", "no group 1 that is closed"),
        ("a", "g", "'g' is not a flag of a regular expression (FORX0001)"),
        ("a" * 257, "", "more than 256 characters"),
        ("((a{1,1000}){1,1000}){1,1000}", "", "more than 16,384 states"),
        ("(((){2000}){2000}){2000}", "", "more than 16,384 states"),
        ("(?:(?:(?:){2000}){2000}){2000}", "", "more than 16,384 states"),
        ("a{99999999999999}", "", "a repetition of more than 16,384"),
        ("(" * 17 + "a" + ")" * 17, "", "nested more than 16"),
        ("[a-" * 17 + "[b]" + "]" * 17, "", "nested more than 16"),
        (r"\p{Nonsense}", "", "without a category or block"),
        (r"\p{Zz}", "", "no category or block {Zz}"),
        (r"\p{IsNonsense}", "", "no category or block {IsNonsense}"),
        ("(?=a)", "", "the quantifier '?' follows nothing to repeat"),
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


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^((a+)+)\1$", "a" * 60 + "!"),  # back-references: exponential
        ("[ab]{1500}c", "ab" * 50_000),  # too large for RE2: 1,500 states a character
        ("(a|b)*a(a|b){60}c", "ab" * 10_000),  # RE2, and many states
    ],
)
def test_a_budget_ends_what_takes_long(pattern: str, text: str) -> None:
    budget = Budget(EvaluationLimits(visits_max=100_000))
    with pytest.raises(MatchLimitExceeded, match="looks at too many nodes"):
        compile_pattern(pattern).search(text, budget.charge)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("replace(., 'a*', 'b')", "FORX0003"),
        ("tokenize(., '(a?)\\1^$')", "FORX0003"),
        ("replace(., 'a', '$')", "FORX0004"),
        ("replace(., 'a', 'b\\')", "FORX0004"),
        ("matches(., 'a', 'g')", "FORX0001"),
        ("matches(., '(a')", "FORX0002"),
    ],
)
def test_what_can_only_be_an_error_is_refused(call: str, code: str) -> None:
    with pytest.raises(ProfileRefused, match=code):
        parse_profile(f"//a[{call}]")
    parse_profile(r"//a[replace(., 'a', '\\$1\$', 'q') = replace(., 'a', '$1\$')]")


def test_only_what_is_quick_is_searched_for_without_a_budget() -> None:
    assert Pattern(r"^\w+@\w+$", "").is_quick
    assert not Pattern(r"(a)\1", "").is_quick
    assert not Pattern("(a|b){100}", "").is_quick
    assert not Pattern("^a", "m").is_quick


@pytest.mark.parametrize(
    "pattern",
    [
        "a+?(?:n*?|b)+",
        "(?:|a)*b",
        "(?:a*)*n",
        "(?:b??)*?a",
        "(a)(b)?",
        "a.*?n",
        "(a|ab)(c|bcd)?",
        "[ab]+",
        "x*y",
        "(a+)(b*)",
        "b",
    ],
)
def test_matches_are_those_of_a_backtracking_engine(pattern: str) -> None:
    for text in ("banana abcd aab xxyab y", "bänana äbcd 𝔸aab\U0001f600 xxyab y"):
        wanted = [
            (match.start(), match.end(), tuple(match.span(i + 1) for i in range(match.re.groups)))
            for match in re.finditer(pattern, text)
        ]
        for written in (pattern, f"{pattern}|z{{1200}}"):  # by RE2, and by states
            found = [
                (start, end, tuple(span or (-1, -1) for span in groups))
                for start, end, groups in compile_pattern(written).finditer(text)
            ]
            assert found == wanted


@pytest.mark.parametrize(
    ("pattern", "flags", "expected"),
    [
        ("a.{12}c", "", True),
        ("a.{13}c", "", False),  # sets of states that do not come again
        ("[ab]*a[ab]{20}", "", False),
        ("^[A-Z]{2}[0-9]{6}$", "", True),
        ("presidential elections", "i", True),  # a letter with its other cases is one
    ],
)
def test_the_index_searches_only_for_what_takes_little_more_than_reading(
    pattern: str, flags: str, expected: bool
) -> None:
    assert compile_pattern(pattern, flags).is_quick is expected
