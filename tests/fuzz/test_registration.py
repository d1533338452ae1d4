"""Registration checks end in a bounded number of steps, whatever the text says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

import pytest

from tests.fuzz.cost import CALLS_MAX, Meter, a_profile
from yfilter import ProfileRefused
from yfilter.language.profile_limits import DEFAULT_PROFILE_LIMITS
from yfilter.matcher import check_profile

NINES = "9" * 5_000
MANY = range(200)
BOTH = r"[\w\W-[\w]]"


def any_of(conditions: Iterable[str]) -> str:
    return f"//a[{' or '.join(conditions)}]"


def cased(number: int) -> str:
    return "".join(f"[!-{chr(0xE000 + 45 * number + each)}]" for each in range(45))


TEXTS = {
    "an integer of 5,000 digits": f"//a[b = {NINES}]",
    "a decimal of 5,000 digits": f"//a[b = 0.{NINES}]",
    "an exponent beyond all": "//a[b = 1e999999999 or b = 1e-999999999]",
    "an exponent of 5,000 digits": f"//a[b = 1e{NINES}]",
    "casts of 60,000 digits": f"//a[xs:integer('{'9' * 60_000}') = b]",
    "a year of 5,000 digits": f"//a[xs:dateTime('{NINES}-01-01T00:00:00') = b]",
    "parentheses": "(" * 100_000 + "1" + ")" * 100_000,
    "fewer parentheses": "(" * 30_000 + "1" + ")" * 30_000,
    "brackets": "//a" + "[b" * 20_000 + "]" * 20_000,
    "predicates": "//a" + "[1]" * 5_000,
    "signs": f"//a[b = {'-' * 60_000}1]",
    "calls in calls": f"//a[{'not(' * 10_000}b{')' * 10_000}]",
    "constructors": f"for $x in //a return {'<a>' * 10_000}{'</a>' * 10_000}",
    "attributes": "for $x in //a return <a" + "".join(f" a{n}='x'" for n in range(6_000)) + "/>",
    "comments in comments": "(:" * 15_000 + ":)" * 15_000 + "//a",
    "a reference to a character": f"//a[b = '&#{'9' * 60_000};']",
    "steps": "//a" * 20_000,
    "unions": "|".join(f"//a{n}" for n in range(2_000)),
    "alternatives": any_of(f"b{n} = 1" for n in range(4_000)),
    "alternatives of pairs": "//a[" + " and ".join(f"(b{n} = 1 or c = {n})" for n in MANY) + "]",
    "a list": f"//a[@b = ({', '.join(f'{n}' for n in range(4_000))})]",
    "a range": "//a[b = (1 to 1000000000000)]",
    "doubling variables": "declare variable $v0 := 1; "
    + "".join(f"declare variable $v{n + 1} := $v{n} + $v{n}; " for n in MANY)
    + "//a[b = $v200]",
    "repeats of repeats": "//a[matches(., '((a{1,1000}){1,1000}){1,1000}')]",
    "repeats of nothing": "//a[matches(., '(?:(?:(?:){2000}){2000}){2000}')]",
    "stars of stars": f"//a[matches(., '{'(?:' * 16}a{')*' * 16}')]",
    "back-references": rf"//a[replace(., '{'(a*)*' * 30}\1b', 'x') = 'x']",
    "constants": any_of(f"b = xs:date('20{n % 90 + 10}-01-01')" for n in range(900)),
    "constants of constants": "//a[b = (1" + ", xs:integer('1') + 1" * 2_500 + ")]",
    "ranges": any_of(f"b = count({n} to 100000000)" for n in range(900)),
    "a pattern of a constant": rf"//a[matches('{'a' * 30_000}', '(a*)*\1b')]",
    "a constant that grows": f"//a[replace('{'a' * 20_000}', 'a', '{'b' * 20_000}') = b]",
    "large classes": any_of(rf"matches(., '\w{{64}}{n}')" for n in range(1_000)),
    "classes less classes": any_of(f"matches(., '{BOTH * 19}{n}')" for n in MANY),
    "cases of classes": any_of(f"matches(., '{cased(n)}', 'i')" for n in MANY),
    "many patterns": any_of(f"matches(., '{'[a-c]?' * 40}{n}')" for n in range(60)),
}  # fmt: skip


def check(text: str) -> bool:
    """Whether it is accepted; TooCostly.  8,192 steps may take more calls than a message does."""
    with Meter(2 * CALLS_MAX) as meter:
        try:
            check_profile(text)
            is_accepted = True
        except ProfileRefused:
            is_accepted = False
    meter.check()
    return is_accepted


@pytest.mark.parametrize("name", TEXTS)
def test_no_text_costs_much_before_it_is_accepted_or_refused(name: str) -> None:
    check(TEXTS[name])


LONG: dict[str, Callable[[int], str]] = {
    "steps in one condition": lambda n: "/a[" + " and ".join(f"b{i} = 'x'" for i in range(n)) + "]",
    "alternatives that are no equalities": lambda n: (
        "/a[" + " and ".join(f"(b{i} = 'x' or c{i})" for i in range(n)) + "]"
    ),
    "attributes in a constructor": lambda n: (
        f"for $x in //a return <r>{'{attribute a {1}}' * n}</r>"
    ),
}


@pytest.mark.parametrize("name", LONG)
def test_a_text_twice_as_long_costs_twice_as_much(name: str) -> None:
    calls = []
    for size in (400, 800):
        with Meter() as meter:
            check_profile(LONG[name](size))
        calls.append(meter.calls)
    assert calls[1] < 2.4 * calls[0]


def test_the_patterns_of_a_profile_are_bounded_together() -> None:
    each = r"\w{64}"
    few = DEFAULT_PROFILE_LIMITS.ranges_max // 60_000
    assert check(any_of(f"matches(., '{each}{n}')" for n in range(few)))
    assert check(any_of(f"matches(., '{each}')" for _ in range(100)))
    with pytest.raises(ProfileRefused, match="too large together"):
        check_profile(any_of(f"matches(., '{each}{n}')" for n in range(100)))


@pytest.mark.parametrize("seed", range(4))
def test_random_texts(seed: int) -> None:
    print("seed", seed)
    chance = Random(seed)
    for _ in range(60):
        text = a_profile(chance)
        for _ in range(chance.randrange(4)):
            start = chance.randrange(len(text))
            part = text[start : start + chance.randrange(1, 12)]
            text = text[:start] + part * chance.choice((0, 2, 40, 2_000)) + text[start:]
        check(text)
