"""Crowds find what lxml finds: profiles that share the equality that finds them and differ in a
bound, those that no equality finds but bounds on both sides, and those that a name alone finds."""

from __future__ import annotations

from random import Random

import pytest

from tests.yfilter.random_cases import Message
from tests.yfilter.test_matcher_oracle import bindings, expected, routed, router
from yfilter import Matcher
from yfilter.index.automaton import CROWD_MIN, FAR_ROWS
from yfilter.language.query_parser import parse_profile

# {0} and {1} are bounds, {2} is a name; each is one place that a comparison can stand at.
PLACES = [
    '/a[@s = "A"]/b[@n > {0}]',
    '/a[@s = "A"]/b[@n <= {0}]',
    '/a[@s = "A"][@m < {0}]/b',
    '/a[@s = "A"]/b[c/@n >= {0}]',
    '/a[@s = "A"]/b[c/d/@n < {0}]',
    '/a[@s = "A"]/b[.//d/@n > {0}]',
    '/a[@s = "A"]/b[*/@n > {0}]',
    '/a[@s = "A"]/b[text() > {0}]',
    '/a[@s = "A"]/b[count(c/d) * 2 > {0}]',
    '/a[@s = "A"][sum(b/@n[number() = number()]) > {0}]/b',
    "/a[count(b) = 2]/b[number(@n) < {0}][@m < {1}]",
    '/a[@s = "A"]/b[. < {0}]',
    '/a[@s = "A"]/b[c[d]/@n > {0}][@n < 1000]',
    '/a[@s = "A"]/b[@n > {0}][@m < {1}][c]',
    '//b[@s = "A"][@n >= {0}]',
    '//b[@s = "A"]//c[@n >= {0}]',
    '//b[@s = "A"]//c[d/@n < {0}]/d',
    '//b[@s = "A"][c[@m = 5]/@n >= {0}]//c/d',
    '/a[@s = "A"][b[@m = 5][c/@n > {0}]]/b',
    '/a[@s = "A"][b[c[d/@n < {0}][@m > 1]]]/b[@m = 2]',
    '/a[@s = "A"][b[c/@n > {0}]/c/@m = 2]/b',
    '/a[@s = "A"][b[@n > {0}]/c[@n > {0}]]/b',
    '/a[@s = "A"][*[@m = 2][c/@n > {0}]]/b',
    '/a[@s = "A"][b[@m = 2]/c[@s = "B"][d/@n <= {0}]]/b[string-length(@m) > 0]',
    "/a/b[@n > {0} and @n < {1}]",
    "/a/b[@n <= {1}][@n >= {0}]",
    "//b[@n >= {0}][@n < {1}]",
    "//b[@n >= {0}][@n < {1}]/c",
    "//b[@n >= {0}]//c[@n < {1}]",
    "/a[@m < {1}]/b[@n > {0}][@n < {1}]",
    "/a/b[c[@n > {0} and @n < {1}]]",
    "/a/b[c/@n > {0} and c/@n < {1}]",
    "/a/b[text() > {0} and text() < {1}]",
    "//c[. > {0} and . < {1}]",
    "/a/b[@n > {0} and @m < {1}]",
    "/a/b[count(c) * 3 > {0} and count(c) * 3 < {1}]",
    "//b[@{2}]",
    '/a/b[@{2} != "{0}"]',
    '//b[@{2} != "5"]//c[@n]',
    "/a[@{2}]/b[c/@{2}]",
    "/a/b[@{2} and @n > {0}]",
    "/a/b[not(@{2})][@m]",
    '//b[c[@{2} != "5"]]/c/d',
]
NAMES = [*"nmk", *(f"k{number}" for number in range(9))]
NUMBERS = ("-3", "0", "2", "5", "7.5", "7.50", "11", "none", "")


def crowd(rng: Random, places: list[str], many: int) -> list[str]:
    """Different profiles of some places."""
    return [
        rng.choice(places).format(
            round(rng.uniform(-4, 12), 2), rng.randrange(-4, 12), rng.choice(NAMES)
        )
        for _ in range(many)
    ]


def message(rng: Random) -> Message:
    def element(name: str, below: str) -> str:
        attributes = "".join(
            f' {other}="{rng.choice(NUMBERS)}"' for other in "nm" if rng.random() < 0.8
        )
        attributes += f' {rng.choice(NAMES[2:])}="{rng.choice(NUMBERS)}"'
        one = rng.choice(("A", "A", "B"))
        return f'<{name} s="{one}"{attributes}>{rng.choice(NUMBERS)}{below}</{name}>'

    def several(name: str, below: str) -> str:
        return "".join(element(name, below) for _ in range(rng.randrange(4)))

    return Message(element("a", several("b", several("c", several("d", "")))).encode())


@pytest.mark.parametrize("place", range(len(PLACES)))
def test_a_crowd_matches_what_lxml_selects(place: int) -> None:
    rng = Random(place)
    matcher = Matcher()
    profiles = {matcher.add(text): text for text in crowd(rng, [PLACES[place]], 3 * CROWD_MIN)}
    for _ in range(12):
        drawn = message(rng)
        assert bindings(matcher, drawn) == expected(drawn, profiles), drawn.text


@pytest.mark.parametrize("seed", range(6))
def test_crowds_that_come_and_go_match_what_lxml_selects(seed: int) -> None:
    rng = Random(seed)
    matcher = Matcher()
    profiles: dict[str, str] = {}
    for _ in range(12):
        for name in rng.sample(sorted(profiles), len(profiles) // 4):
            matcher.remove(name)
            del profiles[name]
        for text in crowd(rng, rng.sample(PLACES, 3), 2 * CROWD_MIN):
            profiles[matcher.add(text)] = text
        drawn = message(rng)
        assert bindings(matcher, drawn) == expected(drawn, profiles), drawn.text


@pytest.mark.parametrize("seed", range(6))
def test_links_whose_conjunctions_are_a_crowd_lose_no_message(seed: int) -> None:
    rng = Random(seed)
    # A routing query leaves out what is computed, and so says less.
    said = [place for place in PLACES if "count(" not in place and "sum(" not in place]
    texts = crowd(rng, rng.sample(said, 3), 4 * CROWD_MIN)
    matcher = router([parse_profile(text) for text in texts])
    for _ in range(10):
        drawn = message(rng)
        wanted = {number for number, text in enumerate(texts) if drawn.select(text)}
        assert routed(matcher, drawn) == wanted, drawn.text


@pytest.mark.parametrize(
    "place",
    [
        '/a[@s = "A"]/b[@n > {}][@m < 1000]',
        '/a[@s = "A"][b[@s = "B"][@n > {}]]/b[@m = 1]',
        "/a/b[count(c) = 1][number(@n) > {}]",
        '/a[@s = "A"][b[@s = "B"][c/@n > {}][c/@m = 3]]/b[@m = 1]',
    ],
)
def test_a_crowd_is_not_looked_at_one_by_one(place: str) -> None:
    """As many candidates as there are bounds that the value satisfies, however many there are."""
    looked_at = []
    for many in (200, 2000):
        matcher = Matcher()
        for number in range(many):
            matcher.add(place.format(number))
        drawn = Message(b'<a s="A"><b s="B" n="100" m="1"><c n="100" m="3"/></b></a>')
        assert len(bindings(matcher, drawn)) == 100
        before = matcher.statistics().candidates_profile
        assert len(bindings(matcher, drawn)) == 100
        looked_at.append(matcher.statistics().candidates_profile - before)
    assert looked_at == [100, 100]


@pytest.mark.parametrize(
    "place",
    [
        "/a/b[@n > {0} and @n < {0}.5]",
        "//b[@n < {0}.5][@n > {0}]",
        "//b[@k{0}]",
        '/a/b[@k{0} != "x"]',
        '/a[b/@k{0}]/b[@n != "x"]',
    ],
)
def test_a_crowd_without_an_equality_is_not_looked_at_one_by_one(place: str) -> None:
    matcher = Matcher()
    for number in range(1_000):
        matcher.add(place.format(number))
    drawn = Message(b'<a><b n="500.2" k500="1" k="2"/><b n="1500"/></a>')
    assert len(bindings(matcher, drawn)) == 1
    assert matcher.statistics().candidates_profile <= 2 * FAR_ROWS


@pytest.mark.parametrize("compared", [">", "<"])
def test_of_a_crowd_that_is_alike_only_those_that_hold_are_taken(compared: str) -> None:
    """However many have a bound that a value of some other element satisfies."""
    matcher = Matcher()
    for number in range(1000):
        matcher.add(f'/a[@s = "A"][b[@s = "B"][@n {compared} {number}]]/b[@s = "C"]')
    drawn = Message(
        b'<a s="A"><b s="B" n="-1"/><b s="B" n="600"/><b s="C" n="2000"/><b s="C" n="-2000"/></a>'
    )
    matching = 600 if compared == ">" else 1000
    assert len(bindings(matcher, drawn)) == matching
    other = Message(b'<a s="A"><b s="B"/><b s="C" n="2000"/><b s="C" n="-2000"/></a>')
    before = matcher.statistics().candidates_profile
    assert not bindings(matcher, other)
    assert matcher.statistics().candidates_profile == before
