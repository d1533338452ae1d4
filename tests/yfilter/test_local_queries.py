"""What is kept of local profiles, and that it is enough."""

from __future__ import annotations

import pytest

from yfilter.compiled_matcher import tree_of
from yfilter.errors import ProfileRefused
from yfilter.language.query_ast import Profile
from yfilter.language.query_parser import parse_profile
from yfilter.language.query_text import unparse
from yfilter.matcher import Matcher, check_profile

PROFILES = [
    "/a/b[@c = 'x']",
    "/a/*[@c = 'x'][d > 5]//e",
    '//a[b[@c = "it\'s"]/d < 1.5]/e',
    '/a[@c != "x"]/b[text() = "y"][.//d]',
    '/a/b[@c = "&lt;&#13;"]',
    "/a/b[2]",
    "/a/b[not(c)]",
    'declare default element namespace "urn:d"; /a[@b = 5]/c',
    'for $n in /a/b where $n/@c = "x" and $n/d > 3 return <r y="{$n/@c}">{$n/d}</r>',
    "for $n in /a/b, $m in $n/d return $m",
    "<r>{ for $n in //b return $n/d }</r>",
]
MESSAGE = b'<a c="y"><b c="x"><d>6</d><e/></b><b c="z"><d>1</d></b></a>'


@pytest.mark.parametrize("text", PROFILES)
def test_a_profile_by_its_shape_and_by_its_tree(text: str) -> None:
    profile = parse_profile(text)
    by_tree = Profile(profile.body)
    kept = profile.parts.text() if profile.parts else unparse(profile)
    assert kept == unparse(by_tree)
    assert tree_of(kept.encode()) == profile
    one, other = Matcher(), Matcher()
    one.add(profile, "p")
    assert one.add(by_tree, "q") == "q"
    assert one.statistics().queries == 1
    other.add(profile, "p")
    found = [
        [(m.bindings, m.results()) for m in matcher.match(MESSAGE)] for matcher in (one, other)
    ]
    assert found[0] == 2 * found[1]


def test_all_matches_of_the_first_message_are_told() -> None:
    matcher = Matcher()
    ids = {matcher.add(f'/a[@b != "{number}"]') for number in range(3_000)}
    assert set(matcher.matched_ids(b'<a b=""/>')) == ids


def test_a_match_is_rendered_by_the_profile_that_it_was_a_match_of() -> None:
    matcher = Matcher()
    matcher.add("for $n in /a/b[@c = 'x'] return $n", "p")
    (match,) = list(matcher.match(MESSAGE))
    matcher.remove("p")
    matcher.add("for $n in /a/b[@c = 'z'] return $n", "p")
    assert match.results() == [b'<b c="x"><d>6</d><e/></b>']
    (other,) = list(matcher.match(MESSAGE))
    assert other.results() == [b'<b c="z"><d>1</d></b>']


def test_a_profile_added_under_a_number_given_again_is_not_seen_by_an_older_match() -> None:
    matcher = Matcher()
    matcher.add("/a", "p")
    matches = matcher.match(MESSAGE)
    matcher.remove("p")
    matcher.add("/a/b", "q")
    assert list(matches) == []


def test_memory_comes_back() -> None:
    matcher = Matcher()
    sizes = []
    for turn in range(3):
        names = [matcher.add(f'/a{turn}/b[@c{turn} = "{n}"]', f"u{n}") for n in range(500)]
        for name in names:
            matcher.remove(name)
        statistics = matcher.statistics()
        assert statistics.profiles == statistics.queries == 0
        sizes.append((statistics.profiles_bytes, statistics.index_bytes_used))
    assert sizes[1] == sizes[2]


@pytest.mark.parametrize(
    "condition", ["+".join(["1"] * 900) + " = @b", "|".join("b" * 900), "*".join(["@c"] * 200)]
)
def test_a_tree_that_is_too_deep_is_refused_or_works(condition: str) -> None:
    text = f"/a[{condition}]"
    try:
        check_profile(text)
    except ProfileRefused as refused:
        assert refused.code == "too-deep"
    else:
        Matcher().add(text)
