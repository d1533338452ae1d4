"""The needs of profiles, and that nothing else is needed: results of the message and of what is
left of it are the same."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from formats.element_stream import ElementStream
from formats.text import parse_text
from tests.yfilter.profile_strategies import messages, profiles
from tests.yfilter.projection.test_projector import left_of
from tests.yfilter.random_cases import random_flwor, random_message, random_profile
from yfilter.errors import ProfileRefused
from yfilter.index.index import Index
from yfilter.language.query_ast import Profile
from yfilter.language.query_parser import parse_profile
from yfilter.language.query_text import unparse
from yfilter.matcher import Matcher
from yfilter.matches import ProfileMatch
from yfilter.projection.needs import Need
from yfilter.projection.profile_needs import needs_of
from yfilter.projection.transformations import projector_of


def results(profile: Profile, stream: ElementStream) -> list[bytes]:
    """Canonical."""
    matcher = Matcher()
    matcher.add(profile)
    return [
        bytes(etree.tostring(etree.fromstring(result), method="c14n"))
        for match in matcher.match(stream)
        if isinstance(match, ProfileMatch)
        for result in match.results()
    ]


def project(stream: ElementStream, needs: Iterable[Need]) -> ElementStream:
    projector = projector_of(Index(), whole_share=2)
    for need in needs:
        projector.add(need, 0)
    return left_of(projector, stream)


def check(texts: list[str], stream: ElementStream) -> None:
    """Each alone, all together, and each again on what is left for all, as on the next link."""
    parsed = [parse_profile(text) for text in texts]
    needs = [needs_of(profile) for profile in parsed]
    for need in sum(needs, ()):
        assert Need.parse(need.text) == need
    together = project(stream, sum(needs, ()))
    for profile, own in zip(parsed, needs, strict=True):
        expected = results(profile, stream)
        for left in (project(stream, own), together, project(together, own)):
            assert results(profile, left) == expected, (profile.text, [need.text for need in own])


@pytest.mark.parametrize(
    ("profile", "needs"),
    [
        ("/a", ['["","/a",["subtree ."]]']),
        ("//*", ['["","",["subtree ."]]']),
        (
            'for $e in /f/e where $e/c/@t = "x" return <h>{$e/k}</h>',
            ['["/f/e","/*/c[@t = \\"x\\"]",["attribute c/@t","node .","subtree k"]]'],
        ),
        # The binding is the last step with conditions.
        (
            "for $k in /f/e[c]/k return $k",
            ['["/f/e","/*/c and /*/k",["node .","node c","subtree k"]]'],
        ),
        # What leads out of the binding is kept wherever it is.
        (
            "for $e in /f/e where /f/@l return <h>{count($e/../k)}</h>",
            ['["","",["attribute f/@l","node f/k"]]', '["/f/e","",["node ."]]'],
        ),
        # Alternatives are needs with the same paths.
        (
            "for $e in //e where $e/@a or $e/b return $e",
            ['["//e","/*/b",["subtree ."]]', '["//e","/*[@a]",["subtree ."]]'],
        ),
        # What no linear path says is left out of the condition, and kept where that holds.
        (
            "for $e in //e where $e/a and not($e/b = 1) return <h/>",
            ['["//e","/*/a",["node .","node a","value b"]]'],
        ),
        # Positions: all that are counted.
        ("for $e in /f/e[2] return $e", ['["","/f/e",["subtree f/e"]]']),
        (
            "for $e in /f/e return <h>{$e/p[1]/@k}</h>",
            ['["/f/e","",["attribute p/@k","node ."]]'],
        ),
        # Siblings: all elements of the name.
        (
            "for $e in /f/e return <h>{count($e/following-sibling::k)}</h>",
            ['["","",["node .//k"]]', '["/f/e","",["node ."]]'],
        ),
        # Nobody can say where the root of something is.
        ("for $e in /f/e return <h>{name(root($e)/*)}</h>", ['["","",["subtree ."]]']),
        # A copy that stands in every result is needed when there is any.
        (
            "<all>{for $e in /f/e[@k] return <h/>}{//x}</all>",
            ['["","/f/e[@k]",["subtree .//x"]]', '["/f/e","/*[@k]",["attribute @k"]]'],
        ),
    ],
)
def test_needs_of_a_profile(profile: str, needs: list[str]) -> None:
    assert [need.text for need in needs_of(parse_profile(profile))] == needs


@pytest.mark.parametrize("seed", range(25))
def test_random_paths_and_flwors(seed: int) -> None:
    rng = Random(seed)
    stream = random_message(rng).stream
    path = unparse(random_profile(rng))
    texts = [random_flwor(rng), random_flwor(rng), f"for $v in {path} return <x>{{$v}}</x>"]
    check(texts, stream)


@settings(max_examples=25, deadline=None)
@given(st.lists(profiles(), min_size=1, max_size=3), messages())
def test_random_profiles_of_the_whole_language(bodies: list[object], message: bytes) -> None:
    texts = [unparse(body) for body in bodies]  # type: ignore[arg-type]
    check(texts, parse_text(message))


AXES = (
    "self",
    "parent",
    "descendant",
    "descendant-or-self",
    "ancestor",
    "ancestor-or-self",
    "following-sibling",
    "preceding-sibling",
    "following",
    "preceding",
)


def wandering_path(rng: Random, start: str) -> str:
    """Along all axes, with positions and conditions that wander too."""
    path = start
    for _ in range(rng.randint(1, 3)):
        name = rng.choice(("a", "b", "c", "d", "*"))
        step = rng.choice((name, name, f"{rng.choice(AXES)}::{name}", f"/{name}", ".."))
        path += f"/{step}"
        if step != "..":
            path += rng.choice(
                ("", "", "[1]", "[last()]", "[position() > 1]", "[@n > 2]", "[b]", "[not(../c)]")
            )
    return path + rng.choice(("", "", "", "/@id", "/text()", "/node()"))


def wandering_profile(rng: Random) -> str:
    wander = [wandering_path(rng, "$v") for _ in range(3)]
    where = rng.choice((f"{wander[0]} = 'x'", f"count({wander[0]}) > 1", f"not({wander[0]})"))
    result = rng.choice(
        (
            f"<x>{{{wander[1]}}}</x>",
            f"<x n='{{count({wander[1]})}}'>{{string(({wander[2]})[1])}}</x>",
            f"<x>{{for $w in {wander[1]} order by $w return name(($w/.., $w)[1])}}</x>",
            f"<x>{{some $w in {wander[1]} satisfies $w << $v, deep-equal($v, {wander[2]})}}</x>",
            f"<x>{{let $w := ({wander[1]}, {wander[2]}) return ($w | $v)/..}}</x>",
        )
    )
    clause = rng.choice(("where", "where", "let $l := $v/b where $l and"))
    source = wandering_path(rng, "").removesuffix("/@id")
    return f"for $v in {source} {clause} {where} return {result}"


@pytest.mark.parametrize("seed", range(25))
def test_paths_that_lead_anywhere(seed: int) -> None:
    rng = Random(seed)
    texts: list[str] = []
    while len(texts) < 3:
        text = wandering_profile(rng)
        try:
            parse_profile(text)
        except ProfileRefused:
            continue
        texts.append(text)
    check(texts, random_message(rng).stream)


def test_the_systems_of_places_are_kept() -> None:
    stream = parse_text(
        b'<a srsName="CRS84" x="1"><b><p k="2">13.4 52.5</p><q/></b><b><p>13 52</p></b><c/></a>'
    )
    check(
        [
            'for $b in //b where place:inside($b/p, "52.5,13.4") return <h>{place:read($b)}</h>',
            'for $p in //p where place:distance($p, "52,13") < 1 return <h>{$p}</h>',
        ],
        stream,
    )
