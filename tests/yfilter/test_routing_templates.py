"""Routing queries made by shape are those that are made one at a time."""

from __future__ import annotations

import re
from decimal import Decimal
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.workload import ProfileMaker, make_schema
from tests.examples import examples
from tests.yfilter.profile_strategies import profiles
from tests.yfilter.random_cases import random_flwor, random_profile
from yfilter.engine.linear_paths import Conjunction, LinearPath, routing_query
from yfilter.engine.routing_templates import made_by_shape, read_conjunction, routing_query_of
from yfilter.errors import ProfileRefused
from yfilter.language.query_ast import Constructor, Flwor, PathExpression, Profile
from yfilter.language.query_parser import parse_profile
from yfilter.language.query_text import unparse
from yfilter.language.shapes import Shaped, Word, take_apart

REAL = Path(__file__).resolve().parents[1] / "profiles_for_real_messages"
Said = list[tuple[str, tuple[LinearPath, ...]]]


def said(conjunctions: tuple[Conjunction, ...]) -> Said:
    """All that can be seen of them: the text of the whole, and what it is made of."""
    return [(each.text, each.paths) for each in conjunctions]


def check(profile: Profile) -> None:
    one_at_a_time = routing_query(profile)
    assert said(routing_query_of(profile)) == said(one_at_a_time)
    for conjunction in one_at_a_time:
        read = read_conjunction(conjunction.text)
        assert (read.text, read.paths) == (conjunction.text, conjunction.paths)


@pytest.mark.parametrize(
    "text",
    [
        '/a[@x = "1"]//b/*[c]',
        '/a[b/c][b/d = "x"]/e[@k = 5][. > 7]',
        "/a[b/c]/b",  # what one path says, another implies
        '/a[@x = "1"][b]/b[@x = "1"]',
        '/a[@y = "1"][@x = "1"][@x = "1"]',
        '/a[/x/y = "z"][contains(b, "c")]',
        "/a['<\">' = @b]/c",
        'for $n in /a/b where $n/@c = "x" and $n//d = "y" return <r>{ $n/e, 1.5 }</r>',
        'for $n in /a where $n/b = "x" or $n/c = "y" return $n/b',
        '/a[b = "x" or c = "y"] | //d[@e]',
        '/a[b = "x" or b = "x"] | //d[@e] | //d[@e]',
    ],
)
def test_what_is_made_by_shape(text: str) -> None:
    profile = parse_profile(text)
    made = made_by_shape(profile)
    assert made is not None
    assert said(made) == said(routing_query(profile))


@pytest.mark.parametrize(
    "text",
    [
        "/a[count(b) > 0]",  # whether it asks for a b depends on the number
        "/a[count(b) > -1]",
        '/a[contains(b, "")]',
        '/a[string(b) = ""]',
        "/a[@b = 1.50][@b = 1.5]",
        "/a[@b = 1.5e0]",
        "/a[@b = -1]",
        'declare namespace p = "urn:p"; /p:a[@p:b = "x"]/*:c/p:*',
        f"/a[{' or '.join(f'b{n}/c' for n in range(40))}]",
        "/" + "a" * 1_000 + "".join(f"[b{n}]" for n in range(100)),  # which is said a hundred times
    ],
)
def test_what_depends_on_the_words(text: str) -> None:
    profile = parse_profile(text)
    assert made_by_shape(profile) is None
    check(profile)


@examples(300)
@given(profiles(odd=True))
def test_random_profiles(body: PathExpression | Flwor | Constructor) -> None:
    check(parse_profile(unparse(body)))
    check(Profile.of_parts(take_apart(body)))


@examples(100)
@given(profiles(), st.data())
def test_random_words_of_one_shape(
    body: PathExpression | Flwor | Constructor, data: st.DataObject
) -> None:
    """Few words, so that many are equal."""
    shape, words = take_apart(body)
    of_type: dict[type, list[Word]] = {
        str: ["a", "b", "c"],
        int: [0, 1, 5],
        float: [0.0, 1.0],
        Decimal: [Decimal("1.5"), Decimal("1.50")],
    }
    for _ in range(4):
        others = tuple([data.draw(st.sampled_from(of_type[type(word)])) for word in words])
        check(Profile.of_parts(Shaped(shape, others)))


@pytest.mark.parametrize("seed", range(20))
def test_random_paths_and_flwors(seed: int) -> None:
    rng = Random(seed)
    for _ in range(20):
        check(parse_profile(unparse(random_profile(rng, conditions=0.6))))
        check(parse_profile(random_flwor(rng)))


@pytest.mark.parametrize("file", sorted(REAL.glob("*.xq")), ids=lambda file: str(file.stem))
def test_profiles_for_real_messages(file: Path) -> None:
    for text in re.split(r"\(: ===.*?=== :\)", file.read_text(encoding="utf-8")):
        try:
            profile = parse_profile(text.strip())
        except ProfileRefused:
            continue
        check(profile)


def test_generated_profiles() -> None:
    made = 0
    for text in islice(ProfileMaker(make_schema(1), 1).distinct(), 1_000):
        profile = parse_profile(text)
        check(profile)
        made += made_by_shape(profile) is not None
    assert made == 1_000


@pytest.mark.parametrize(
    "text",
    [
        '/a[@b = "x and /c"]',
        '/a[@b = "x"" and /c[@d = ""y"]',
        '/a[@b = "x"] and /c[@d = "y and /e"]',
        "/a/b and /a/c[@d]",
        "/Q{urn:p}a and /b",
        '/a["x" = @b]',
    ],
)
def test_conjunctions_are_read_as_they_are_parsed(text: str) -> None:
    read, parsed = read_conjunction(text), Conjunction.parse(text)
    assert (read.text, read.paths) == (parsed.text, parsed.paths)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/a and",
        "/a and /b]",
        "/a[b]",
        "/a[b and /c]",
        "/a or /b",
        "/b and /a",
        "/a and /a",
        "/a ",
        "/a and  /b",
        "/a[@y][@x]",
        "/a['x' = @b]",
        "/a/@b",
        "for $x in /a return $x",
    ],
)
def test_what_is_not_canonical_is_refused(text: str) -> None:
    with pytest.raises(ProfileRefused) as parsed:
        Conjunction.parse(text)
    with pytest.raises(ProfileRefused) as read:
        read_conjunction(text)
    assert str(read.value) == str(parsed.value)
