"""Linear paths, conjunctions as text, and Map()."""

from __future__ import annotations

from random import Random

import pytest

from tests.yfilter.random_cases import random_profile
from yfilter.engine.linear_paths import (
    ANY_DOCUMENT,
    CONJUNCTION_LIMITS,
    Conjunction,
    LinearPath,
    LinearStep,
    routing_query,
)
from yfilter.errors import ProfileRefused
from yfilter.language.query_ast import NameTest, Profile
from yfilter.language.query_parser import parse_profile


def routing(profile: str, disjuncts_max: int = 32) -> list[str]:
    return [str(part) for part in routing_query(parse_profile(profile), disjuncts_max)]


@pytest.mark.parametrize(
    ("profile", "conjunctions"),
    [
        ("/a", ["/a"]),
        ("$msg/a//b[@id]", ["/a//b[@id]"]),
        ("/a[@x][@y = 1]", ["/a[@x][@y = 1]"]),
        ("/a[@y = 1 and @x]", ["/a[@x][@y = 1]"]),
        # n nested paths give n + 1 linear paths; one that another implies says nothing.
        ("/a[b/c]/d", ["/a/b/c and /a/d"]),
        ("/a[b/c]", ["/a/b/c"]),
        ("/a[@x][b]//d", ["/a[@x]//d and /a[@x]/b"]),
        ("/a[b[@x]/c[d]]", ["/a/b[@x]/c/d"]),
        ("/a[b[@x][d]/c]", ["/a/b[@x]/c and /a/b[@x]/d"]),
        ("/a[.//b]", ["/a//b"]),
        # A comparison is about the last node of its path.
        ('/a[b/@id = "x"]', ['/a/b[@id = "x"]']),
        ('/a[b/text() = "x"]', ['/a/b[text() = "x"]']),
        ('/a[b = "x"]', ['/a/b[. = "x"]']),
        ("/a[3 < b/@n]", ["/a/b[@n > 3]"]),
        ('/a[contains(b/@id, "x")]', ['/a/b[@id[contains(., "x")]]']),
        ("/a[count(b) > 0]", ["/a/b"]),
        ("/a[count(b) >= 1 and count(c) != 0 and count(d) = 2]", ["/a/b and /a/c and /a/d"]),
        ("/a[b = c]", ["/a/b and /a/c"]),
        ("/a/b/@id", ["/a/b[@id]"]),
        ("//@id", ["//*[@id]"]),
        ("/a[b/..]", ["/a/b"]),
        ("/a[/x/y]", ["/a and /x/y"]),
        ("/a[b][/a/@z]", ["/a/b and /a[@z]"]),
        # or: one conjunction for each way, unless the element alone decides.
        ("/a[@x or @y]", ["/a[@x or @y]"]),
        ("/a[b or @y]/c", ["/a/b and /a/c", "/a[@y]/c"]),
        ("/a[b or c][d or e]", [f"/a/{x} and /a/{y}" for x in "bc" for y in "de"]),
        ("/a[.//@id]/b", ["/a//*[@id] and /a/b", "/a[@id]/b"]),
        # What linear paths cannot say is left out.
        ("/a[not(b)]", ["/a"]),
        ("/a[not(@b)]", ["/a[not(@b)]"]),
        ("/a[b][not(c)]", ["/a/b"]),
        ("/a[b or not(c)]", ["/a"]),
        ("/a[count(b) = 0]", ["/a"]),
        ("/a[count(b) < 2]", ["/a"]),
        ("/a[count(b) > -1]", ["/a"]),
        ("/a[count(b) >= 0]", ["/a"]),
        ("/a[count(b) != 1]", ["/a"]),
        ("/a[count(b) <= 1]", ["/a"]),
        ("/a/b[../c]", ["/a/b"]),
        ('/a[contains(b, "")]', ["/a"]),
        ('/a[matches(b, "x*")]', ["/a"]),
        (
            'declare namespace p = "urn:p"; /p:a/*[p:b/@id]//*:c/p:*',
            ["/Q{urn:p}a/*//*:c/Q{urn:p}* and /Q{urn:p}a/*/Q{urn:p}b[@id]"],
        ),
        (
            'for $n in /nitf where $n/head/@area = "SF" and $n//s return <x>{$n/t}</x>',
            ['/nitf//s and /nitf/head[@area = "SF"]'],
        ),
    ],
)
def test_map_makes_a_disjunction_of_conjunctions(profile: str, conjunctions: list[str]) -> None:
    assert routing(profile) == sorted(conjunctions)


def test_what_would_be_too_many_conjunctions_becomes_what_they_have_in_common() -> None:
    profile = "/a[@z][(b and d) or (c and d) or (d and e)]/f"
    assert len(routing(profile, 3)) == 3
    assert routing(profile, 2) == ["/a[@z]/d and /a[@z]/f"]
    assert routing("/a[b or c]", 1) == ["/a"]
    # Of two conditions the one with more alternatives gives way.
    assert routing("/a[b or c][d or e or f]", 4) == ["/a/b", "/a/c"]
    with pytest.raises(ValueError, match="at least 1"):
        routing("/a", 0)


def test_alternatives_never_multiply_beyond_the_bound() -> None:
    profile = "/a" + "[b or c or d]" * 40 + "/x[" + " or ".join(f"y{n}" for n in range(40)) + "]"
    assert 1 <= len(routing(profile)) <= 32


def test_a_conjunction_is_canonical() -> None:
    a = LinearPath((LinearStep(False, NameTest("", "a")),))
    b = LinearPath((LinearStep(True, NameTest("", "b")),))
    assert Conjunction((a, b, a)) == Conjunction((b, a))
    assert str(Conjunction((a, b, a))) == "//b and /a"
    with pytest.raises(ValueError, match="at least one path"):
        Conjunction(())


def test_selections_of_a_step_are_canonical() -> None:
    assert Conjunction.parse("/a[@x][@y]") == routing_query(parse_profile("/a[@y][@x][@y]"))[0]


@pytest.mark.parametrize("seed", range(40))
def test_every_conjunction_is_read_back_from_its_text(seed: int) -> None:
    rng = Random(seed)
    for _ in range(20):
        for conjunction in routing_query(Profile(random_profile(rng, conditions=0.6))):
            assert Conjunction.parse(str(conjunction)) == conjunction


@pytest.mark.parametrize(
    "profile",
    [
        '/a[@x = "it""s \'&amp;\' ] and /b["]',
        "/a[@x = '&#10;&#13;&#9;']",
        'declare namespace p = "http://x/?a=1&amp;b={2}"; /p:a[@p:x]',
        'declare default element namespace "urn:d"; /a/b[@x and text() = "y"]//*',
        "/a[@n = -1.5e3 or @m != 0.1]",
        '/a[normalize-space() = "x"][string-length(@b) > 2]',
    ],
)
def test_awkward_texts_are_read_back(profile: str) -> None:
    for conjunction in routing_query(parse_profile(profile)):
        assert Conjunction.parse(str(conjunction)) == conjunction


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "syntax"),
        ("/a and", "syntax"),
        ("/a]", "syntax"),
        ("/a] [/b", "syntax"),
        ("a", "not-linear"),
        ("@a", "not-linear"),
        ("/a/@b", "not-linear"),
        ("/a[b]", "not-linear"),
        ("/a[not(b)]", "not-linear"),
        ("/a or /b", "not-linear"),
        ("not(/a)", "not-linear"),
        ("/a and (/b or /c)", "not-linear"),
        ('/a = "x"', "not-linear"),
        ("$msg", "not-linear"),
        ("/b and /a", "not-linear"),  # not the canonical order
        ("/a and /a", "not-linear"),
        ("/a ", "not-linear"),
        ("/a[@y][@x]", "not-linear"),
        ("/" + "a" * CONJUNCTION_LIMITS.length_max, "too-long"),
        ("/a[" + "(" * 200 + "@x" + ")" * 200 + "]", "too-deep"),
    ],
)
def test_any_other_text_is_refused(text: str, code: str) -> None:
    with pytest.raises(ProfileRefused) as refused:
        Conjunction.parse(text)
    assert refused.value.code == code


def test_a_conjunction_too_long_for_its_neighbours_leaves_paths_out() -> None:
    declaration = f'declare namespace p = "{"u" * 1024}"; '
    branches = "".join(f"[p:b{number}]" for number in range(20))
    profile = parse_profile(f"{declaration}{'/p:a' * 20}{branches}")
    (conjunction,) = routing_query(profile)
    # Each path has 21 steps of more than 1,024 characters.
    assert len(conjunction.paths) == CONJUNCTION_LIMITS.length_max // 21_600
    assert Conjunction.parse(str(conjunction)) == conjunction
    (nothing_left,) = routing_query(parse_profile(f"{declaration}{'/p:a' * 256}"))
    assert nothing_left == ANY_DOCUMENT
