"""Needs are necessary, and read from the cache as without it."""

from __future__ import annotations

from random import Random

import pytest

from registration.planning.exclusiveness import Need, canonical_value, needs_of
from registration.planning.need_reader import NeedReader
from registration.planning.pattern_reader import PatternReader
from tests.yfilter.random_cases import random_flwor, random_message, random_profile
from yfilter import Matcher, ProfileRefused, parse_profile
from yfilter.language.query_text import unparse

NITF = '/nitf[head/pubdata[@edition.area = "SF"]][.//tobject.subject[@type = "Stock"]]'

CASES = [
    (NITF, {"/nitf//tobject.subject/@type": ["Stock"], "/nitf/head/pubdata/@edition.area": ["SF"]}),
    ('/a[b = "x"]', {"/a/b/.": ["x"]}),
    ('/a[b/text() = "x"]', {"/a/b/text()": ["x"]}),
    ('/a["x" = b]', {"/a/b/.": ["x"]}),
    ('/a[@n = 7.0][@m = "007"]', {"/a/@m": ["7"], "/a/@n": ["7"]}),
    ('/a[@x = "1" or @x = "2"]', {"/a/@x": ["1", "2"]}),
    ('/a[@x = ("p", "q")]', {"/a/@x": ["p", "q"]}),
    ('/a[(@x = "1" and b) or (@x = "2" and c/@y = "3")]', {"/a/@x": ["1", "2"]}),
    ('/a[b/@x = "1" or c/@x = "1"]', {}),
    ('/a[not(@x = "1")][@y != "2"][@z > 3]', {}),
    ('for $n in /a/b where $n/@x = "1" return <r y="2">{$n}</r>', {"/a/b/@x": ["1"]}),
    ('declare namespace p = "urn:p"; //p:a/b[. = "2"]', {"//Q{urn:p}a/b/.": ["2"]}),
    ('/a[@x="it""s"]', {"/a/@x": ['it"s']}),
    ('/a[@x="a&amp;b"]', {"/a/@x": ["a&b"]}),
    ("for $n in /a return <a>it's {$n[@x='1']} isn't</a>", {}),
    ('/a (: don\'t :)[@x = "1"] (: "never" :)', {"/a/@x": ["1"]}),
    ('/a[matches(b, "[x]")][@c = "1"]', {"/a/@c": ["1"]}),
    ('/a[count(b[@x = "1"]) = 0]', {}),
]


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[text for text, _ in CASES])
def test_needs(text: str, expected: dict[str, list[str]]) -> None:
    needs = tuple(Need(pattern, tuple(values)) for pattern, values in expected.items())
    reader = NeedReader()
    assert needs_of(parse_profile(text)) == needs
    assert reader.read(text) == needs
    assert reader.read(text) == needs  # now from the cache


def test_constants_are_put_back_into_the_shape() -> None:
    reader = NeedReader()
    for number in range(50):
        (first, second) = reader.read(f"/a[@x = \"v{number}\"][b = '{number}.50']")
        assert first == Need("/a/@x", (f"v{number}",))
        assert second == Need("/a/b/.", (f"{number}.5",))
    assert (reader._read, reader._analysed, len(reader._texts._shapes)) == (50, 0, 1)


def test_a_refused_profile_is_refused_whatever_was_read_before() -> None:
    reader = NeedReader()
    reader.read('/a[matches(b, "x")][@c = "1"]')
    for text in ('/a[matches(b, "[")][@c = "1"]', '/a[@c = "\x01"]', "/a[", 'a[@c = "1"]'):
        for _ in range(2):
            with pytest.raises(ProfileRefused):
                reader.read(text)


CONSTANTS = ["x", "1", "01", "2.50", 'it"s', "it's", "a&amp;b", "<", "(:", "]", "=", "= 5", ""]
FORMS = [
    "/a[@x = {}]",
    "/a[@x={}][b/@y = {}]",
    "/a[@x = {} or @x = {}]",
    "/a[(@x = {} and b) or (@x = {} and c/@y = {})]",
    "/a[@x = ({}, {})]",
    "/a[contains(b, {})][@y = {}]",
    "/a[count(b) = {}][@y = {}]",
    "/a[@x != {}][@y = {}]",
    "/a[{} = @x]",
    "/a[@x = {} + 1]",
    "/a[b[@x = {}]/c = {}][{}]",
    "/a[@x = {}][@x = {}]",
    "for $n in /a where $n/@x = {} return $n/b[c = {}]",
    "for $n in /a where $n/@x = {} return <r y='{}'>{{$n}}</r>",
    "/a (: {} :)[@x = {}]",
    "/a[not(@x = {})][@y = {}]",
]


@pytest.mark.parametrize("form", FORMS)
def test_a_text_is_read_the_same_whatever_came_before(form: str) -> None:
    """Each text by one reader that has seen all others, and by the parser alone."""
    rng = Random(form)
    reader = NeedReader()
    agreed = 0
    for _ in range(150):
        written = [
            rng.choice(['"{}"', "'{}'", "{}"]).format(rng.choice(CONSTANTS)) for _ in range(3)
        ]
        text = form.format(*written)
        try:
            expected = needs_of(parse_profile(text))
        except ProfileRefused:
            with pytest.raises(ProfileRefused):
                reader.read(text)
            continue
        agreed += 1
        assert reader.read(text) == expected, text
    assert agreed


@pytest.mark.parametrize(
    ("values", "canonical"),
    [
        (("1", "01", "1.0", " 1 ", "+1", "1e0"), "1"),
        (("0.50", ".5", "5e-1"), "0.5"),
        (("-0", "0"), "0"),
        (("nan",), "nan"),
        (("1_0",), "1_0"),
        (("x1",), "x1"),
    ],
)
def test_values_that_can_be_equal_have_one_text(values: tuple[str, ...], canonical: str) -> None:
    assert {canonical_value(value) for value in values} == {canonical}


@pytest.mark.parametrize("seed", range(10))
def test_a_message_that_matches_has_what_the_profile_needs(seed: int) -> None:
    """Held against the engine; profiles by the hundred share one reader, as in a population."""
    rng = Random(seed)
    reader = NeedReader()
    matched = 0
    for _ in range(8):
        texts = [unparse(random_profile(rng)) for _ in range(8)] + [random_flwor(rng)]
        needs = {f"p{number}": reader.read(text) for number, text in enumerate(texts)}
        for number, text in enumerate(texts):
            assert needs[f"p{number}"] == needs_of(parse_profile(text)), text
        patterns = {need.pattern for found in needs.values() for need in found}
        pattern_reader = PatternReader(patterns)
        matcher = Matcher()
        for number, text in enumerate(texts):
            matcher.add(parse_profile(text), f"p{number}")
        message = random_message(rng)
        values = pattern_reader.values(message.stream)
        for name in matcher.matched_ids(message.stream):
            matched += 1
            for need in needs[name]:
                assert set(need.values) & set(values.get(need.pattern, ())), (need, message.text)
    assert matched, f"seed {seed} tried nothing"
