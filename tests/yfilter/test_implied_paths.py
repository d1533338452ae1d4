"""The routing query says what conditions imply, and never loses a message that matches."""

from __future__ import annotations

from random import Random

import pytest

from benchmarks.random_queries import Level, QueryWriter, random_message
from formats.text import parse_text
from yfilter import LinkTarget, Matcher, ProfileMatch, RouteMatch, parse_profile, routing_query
from yfilter.errors import ProfileRefused


@pytest.mark.parametrize(
    ("profile", "routing"),
    [
        ("/a[count(b/c) > 1]", ["/a/b/c"]),
        ("/a[count(b/c) >= 0]", ["/a"]),
        ("/a[count(b) = 0]", ["/a"]),
        ("/a[1 < count(b)]", ["/a/b"]),
        ("/a[b eq 'x']", ['/a/b[. = "x"]']),
        ("/a[number(b) > 5]", ["/a/b"]),
        ("/a[number(b) != 5]", ["/a"]),
        ("/a[lower-case(b) = 'x']", ["/a/b"]),
        ("/a[string(b) = '']", ["/a"]),
        ("/a[b/following-sibling::c eq 'x']", ["/a/b"]),
        ("/a[b/c = d]", ["/a/b/c and /a/d"]),
        ("/a[some $v in b satisfies $v = 1]", ["/a/b[. = 1]"]),
        ("/a[every $v in b satisfies $v = 1]", ["/a"]),
        ("/a[b[count(c) = 2] or exists(d)]", ["/a/b/c", "/a/d"]),
        ("/a[not(b)][b[2] << c]", ["/a/b and /a/c"]),
        ("for $a in /a, $b in $a/b return <r/>", ["/a/b"]),
        ("for $a in /a, $b in $a/b where $b/@n > 5 and $a/c return <r/>",
         ["/a/b[@n > 5] and /a/c"]),
        ("for $a in /a for $b in $a/b, $c in $b/c where $c = $a/@id return <r/>", ["/a[@id]/b/c"]),
        ("for $a in /a, $b in $a/b where not($b/c) return <r/>", ["/a/b"]),
        ("for $a in /a, $b in $a/b[2] where $b/c = 1 return <r/>", ["/a"]),
        ("for $a in /a let $l := $a/b for $b in $l/c where $b/d or $b/e return <r/>",
         ["/a/b/c/d", "/a/b/c/e"]),
        ("for $a in /a, $b in //b return <r/>", ["//b and /a"]),
        ("(<a>{//x}</a>, //b)", ["/*"]),
        ("/a[b | c]", ["/a/b", "/a/c"]),
    ],
)  # fmt: skip
def test_what_is_implied(profile: str, routing: list[str]) -> None:
    assert [str(conjunction) for conjunction in routing_query(parse_profile(profile))] == routing


@pytest.mark.parametrize("seed", range(12))
def test_what_matches_satisfies_the_routing_query(seed: int) -> None:
    """Whole random profiles, joined to at least two for clauses in many cases."""
    rng = Random(seed)
    writer = QueryWriter(rng, Level.XQUERY)
    matcher = Matcher()
    for number in range(60):
        text = writer.profile()
        try:
            matcher.add(text, str(number))
        except ProfileRefused:
            continue
        for conjunction in routing_query(parse_profile(text)):
            matcher.add_route(conjunction, LinkTarget("root", str(number)))
    matched = 0
    for _ in range(10):
        found = list(matcher.match(parse_text(random_message(rng)), "root"))
        links = {match.link for match in found if isinstance(match, RouteMatch)}
        profiles = {match.profile_id for match in found if isinstance(match, ProfileMatch)}
        matched += len(profiles)
        assert profiles <= links
    assert matched > 5
