"""What people are told about a profile: true of the engine, and no more than is needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from formats.element_stream import ElementStream
from formats.text import parse_text
from tests.yfilter import interpreted
from tests.yfilter.evaluated import select
from tests.yfilter.random_cases import random_flwor, random_message, random_profile
from yfilter import Matcher, MatchLimitExceeded, MatchLimits, ProfileRefused
from yfilter.explanation import Explanation, Part
from yfilter.language.matching_path import matching_path
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.query_ast import Profile
from yfilter.language.query_parser import parse_profile
from yfilter.language.query_text import unparse

MESSAGE = parse_text(b"<o><a n='1'><b>5</b></a><a n='2'/></o>")


def explained(profile: str, message: ElementStream | None = MESSAGE) -> Explanation:
    return Matcher().explain(profile, message)


def all_parts(parts: tuple[Part, ...]) -> Iterator[Part]:
    for part in parts:
        yield part
        yield from all_parts(part.parts)


# -- without a message


def test_what_is_indexed_and_what_is_not() -> None:
    found = explained("/o/a[@n = 1][b > 3][not(c)]", None)
    assert found.matching_path == "/o/a[@n = 1][b > 3][not(c)]"
    assert found.linear_paths == ("/o/a", "/o/a/b")
    parts = list(all_parts(found.parts))
    assert [(part.kind, part.text) for part in parts] == [
        ("step", "/o"),
        ("step", "/a"),
        ("selection", "[@n = 1]"),
        ("nested path", "[b[. > 3]]"),
        ("step", "/b"),
        ("selection", "[. > 3]"),
        ("residual", "[not(c)]"),
    ]
    assert [(part.text, part.by) for part in parts if part.by != "index"] == [
        ("[not(c)]", "operator")
    ]
    assert all(part.outcome is None for part in parts)
    assert found.served_by == "the index, by /o/a[@n = 1], then what is left"
    assert (found.remainder, found.matched, found.results) == ("", None, None)
    assert found.routing_query == (("/o/a[@n = 1]/b[. > 3]",),)


PLACED = "count(preceding-sibling::a) + 1"


def test_a_position_among_siblings_is_a_condition_and_others_are_left_to_the_end() -> None:
    found = explained("//a[2]/b", None)
    assert (found.matching_path, found.remainder) == (f"//a[{PLACED} = 2]/b", "")
    assert found.routing_query == (("//a/b",),)
    found = explained("//a/following::b", None)
    assert (found.matching_path, found.remainder) == ("//b[preceding::a]", "")
    found = explained("//a[c]/following::b", None)
    assert (found.matching_path, found.remainder) == ("//a[c]", "//a[c]/following::b")
    assert found.remainder_by == "operator"
    assert found.routing_query == (("//a/c",),)


@pytest.mark.parametrize(
    ("profile", "by"),
    [
        ("/a[not(b)]", ""),
        ("/a | /b[c]", "index"),
        ("/a[last()] | /b", "index"),
        ("/a[position() mod 2 = 0]", ""),
        ("/a[if (position() = 2) then @x else @y]", ""),
        ("/a[(if (position() = 2) then 1 else 2) = 1]", "operator"),
        ("for $a in /a, $b in $a/b where $a/c = $b/d return $b", "operator"),
    ],
)
def test_who_decides_what_the_matching_path_does_not_say(profile: str, by: str) -> None:
    found = explained(profile, None)
    assert found.remainder_by == by
    assert bool(found.remainder) == bool(by)
    assert (f"What is left, by the {by}\n" in str(found)) == bool(by)


@pytest.mark.parametrize(
    ("condition", "by"),
    [
        ("@b", "index"),
        ("b/c[@d = 1]", "index"),
        ("@b = ('x', 'y')", "operator"),
        ("b or c", "operator"),
        ("some $b in b satisfies $b/c > 2", "index"),
        ("every $b in b satisfies try { $b } catch * { '' }", "operator"),
        ("codepoint-equal(b, 'x')", "elementpath"),
    ],
)
def test_who_decides_a_condition(condition: str, by: str) -> None:
    ((step,), text) = (
        explained(f"/a[{condition}]", None).parts,
        str(explained(f"/a[{condition}]")),
    )
    (part,) = step.parts
    assert part.by == by
    assert (f", by {by})" in text) == (by != "index")


@pytest.mark.parametrize(
    ("profile", "access"),
    [
        ("/o//a/*", "/o//a/*"),
        ('/o/a[@n = "1"]/b', '/o/a[@n = "1"]/b'),
        ("/o/a[1 < @n]/b", "/o/a[@n > 1]/b"),
        ('/o[a/text() = "number"]/b', '/o/a[text() = "number"], then what is left'),
        ('//a[@n = ("1", "2")]', '//a[@n = "1"] or //a[@n = "2"]'),
        ("/o/b | //c[not(d)]", "/o/b or //c, then what is left"),
        (
            '//a[xs:date(b) < xs:date("2026-01-02")]',
            "//a[xs:date(b) < 2026-01-02T00:00:00Z]",
        ),
        ('//a[contains-token(@n, "x")]', '//a[@n contains-token "x"]'),
        (
            "//a[contains(concat(' ', normalize-space(@n), ' '), ' x ')]",
            '//a[@n contains-token "x"]',
        ),
        ('//a[@n contains text "Storm"]', '//a[@n contains text "storm"]'),
        (
            '//a[@n contains text {"B c", "d"}]',
            '//a[@n contains text "b c"] or //a[@n contains text "d"]',
        ),
        (
            '//a[@n contains text "St.*" using wildcards using case sensitive]',
            '//a[@n contains text "St.*" using case sensitive using wildcards]',
        ),
    ],
)
def test_the_access_path_by_which_the_index_finds_a_profile(profile: str, access: str) -> None:
    assert explained(profile, None).served_by == f"the index, by {access}"


def test_a_registered_profile_is_explained_as_it_is_served() -> None:
    matcher = Matcher()
    for number in range(3):
        matcher.add(f'/a[@many = "{number}"]')
    matcher.add('/a[@few = "1"][@many = "1"]', "it")
    assert '[@many = "1"], then what is left' in matcher.explain("it").served_by
    before = matcher.statistics()
    assert matcher.explain("it", b"<a few='1'/>").matched is False
    assert matcher.explain("/b[c]", b"<b><c/></b>").matched is True
    assert matcher.statistics() == before  # nothing was added, no message counted
    assert matcher.explain(parse_profile("/b"), b"<b/>").results == 1
    with pytest.raises(ProfileRefused):
        matcher.explain("nobody")


# -- on a message


@pytest.mark.parametrize(
    ("profile", "failure", "results"),
    [
        ("/o/a[b = 5]", None, 1),
        ("/o/a[b = 6]/c", ("[. = 6]", "/o/a[b[. = 6]]", "/o/a[b]", ("/o/a[1]/b",)), 0),
        ("/o/x/a", ("/x", "/o/x", "/o", ("/o",)), 0),
        ("/x", ("/x", "/x", "", ()), 0),
        ("/o[a[@n = 1][@m]]", ("[@m]", "/o[a[@n = 1][@m]]", "/o[a[@n = 1]]", ("/o/a[1]",)), 0),
        ("/o/a[not(@n)]/b", ("[not(@n)]", "/o/a[not(@n)]", "/o/a", ("/o/a[1]", "/o/a[2]")), 0),
        ("//a[2]/b", ("/b", f"//a[{PLACED} = 2]/b", f"//a[{PLACED} = 2]", ("/o/a[2]",)), 0),
        ("for $a in //a where $a/@n > 1 return <r/>", None, 1),
    ],
)
def test_the_first_part_that_does_not_hold(
    profile: str, failure: tuple[str, str, str, tuple[str, ...]] | None, results: int
) -> None:
    found = explained(profile)
    assert (found.matched, found.results) == (failure is None, results)
    if failure is None:
        assert found.failure is None
    else:
        assert found.failure is not None
        assert (
            found.failure.text,
            found.failure.statement,
            found.failure.before,
            found.failure.positions,
        ) == failure


def test_parts_say_on_which_elements_they_held() -> None:
    found = explained("/o/a[@n][b]/x/y")
    outcomes = [
        (
            part.text,
            part.outcome and (part.outcome.asked, part.outcome.kept, part.outcome.positions),
        )
        for part in all_parts(found.parts)
    ]
    assert outcomes == [
        ("/o", (1, 1, ("/o",))),
        ("/a", (1, 2, ("/o/a[1]", "/o/a[2]"))),
        ("[@n]", (2, 2, ("/o/a[1]", "/o/a[2]"))),
        ("[b]", (2, 1, ("/o/a[1]",))),
        ("/b", (2, 1, ("/o/a[1]/b",))),
        ("/x", (1, 0, ())),
        ("/y", None),  # comes after what failed
    ]


def test_the_text_of_an_explanation() -> None:
    assert str(explained('/o/a[b = 6]["x" = c]')).splitlines() == [
        "Matching path",
        '  /o/a[b = 6]["x" = c]',
        "",
        "Served by",
        "  the index, by /o/a/b[. = 6], then what is left",
        "",
        "Linear paths, found by the automaton",
        "  /o/a",
        "  /o/a/b",
        "  /o/a/c",
        "",
        "Parts, and what they leave of the message",
        "  /o               1 found        /o",
        "  /a               2 found        /o/a[1], /o/a[2]",
        "    [b[. = 6]]     0 of 2         (nested path)",
        "      /b           1 found        /o/a[1]/b",
        "        [. = 6]    0 of 1         (selection)",
        '    [c[. = "x"]]   not looked at  (nested path)',
        "      /c           not looked at",
        '        [. = "x"]  not looked at  (selection)',
        "",
        "Routing query",
        "  /o/a/b[. = 6]",
        '     and /o/a/c[. = "x"]',
        "",
        "On the message",
        "  does not match; the first that does not hold: [. = 6]",
        "    asked of       /o/a[1]/b",
        "    there is       /o/a[b]",
        "    there is no    /o/a[b[. = 6]]",
    ]


def test_the_page_on_profiles_shows_a_real_one() -> None:
    page = (Path(__file__).parents[2] / "docs" / "profiles.md").read_text()
    shown = page.partition("onyx profile explain - --message order.xml\n")[2].partition("```")[0]
    message = page.partition("```xml\n")[2].partition("```")[0]
    lines = str(explained('/order/item[@price > 100][tag = "tea"]', parse_text(message.encode())))
    for part in shown.split("…\n"):
        assert part.strip("\n") in lines


def test_many_elements_are_counted_and_some_named() -> None:
    message = parse_text(b"<o>" + b"<a/>" * 100 + b"</o>")
    (_, step) = explained("/o/a", message).parts
    assert step.outcome is not None
    assert (step.outcome.kept, len(step.outcome.positions)) == (100, 5)
    assert "/o/a[5] and 95 more" in str(explained("/o/a", message))


def test_an_explanation_costs_no_more_than_a_condition_may() -> None:
    matcher = Matcher(MatchLimits(evaluation=EvaluationLimits(visits_max=50)))
    message = b"<a>" + b"<b/>" * 100 + b"</a>"
    with pytest.raises(MatchLimitExceeded):
        matcher.explain("//b[count(//b) > 0]", message)


def test_names_and_prefixes_of_the_message_stand_in_positions() -> None:
    message = parse_text(b'<p:o xmlns:p="u"><p:a/><a/><p:a/></p:o>')
    (_, step) = explained('declare namespace q = "u"; /q:o/q:a', message).parts
    assert step.outcome is not None and step.outcome.positions == ("/p:o/p:a[1]", "/p:o/p:a[2]")


# -- true and minimal, on random profiles and messages


def check(profile: Profile, message: ElementStream) -> bool:
    """Whether it matches; the explanation is that of the engine, and its failure minimal."""
    found = Matcher().explain(profile, message)
    matcher = Matcher()
    matcher.add(profile)
    assert found.matched == bool(list(matcher.match(message))), unparse(profile)
    assert found.matched == interpreted.matches(profile, message), unparse(profile)
    failure = found.failure
    assert (failure is None) == found.matched
    if failure is None:
        assert found.results
    elif failure.statement == found.remainder:
        assert failure.before == found.matching_path
        assert select(matching_path(profile), message)
    else:
        assert not select(matching_path(parse_profile(failure.statement)), message)
        if failure.before:
            assert select(matching_path(parse_profile(failure.before)), message)
            assert failure.positions
        assert failure.text.strip("[]/") in failure.statement
    return failure is None


@pytest.mark.parametrize("seed", range(6))
def test_an_explanation_holds_exactly_when_the_engine_matches(seed: int) -> None:
    rng = Random(seed)
    outcomes = []
    for _ in range(8):
        message = random_message(rng)
        for _ in range(4):
            outcomes.append(check(Profile(random_profile(rng, conditions=0.6)), message.stream))
        for _ in range(2):
            outcomes.append(check(parse_profile(random_flwor(rng)), message.stream))
    assert {True, False} <= set(outcomes)
