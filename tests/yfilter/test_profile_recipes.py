"""A profile that is read by its recipe is the one that its text says."""

from __future__ import annotations

import msgpack
import pytest

from yfilter.language import profile_recipes
from yfilter.language.profile_recipes import ProfileRecipes, Recipe
from yfilter.language.query_parser import parse_profile
from yfilter.matcher import Matcher
from yfilter.matches import ProfileMatch

TEXTS = [
    "/a/b//c/*",
    '/nitf//series[@id = "x"][. > 5]',
    "/a[b = 'its']/c[. < 9.50 or @n = -3]",
    '//a[b/@c = "x"][2]',
    "/a[. = 1e3]",
    'for $i in //item where $i/@id = "x" return $i/name',
    "<all>{ for $x in //x order by $x/@k return <y>{ $x/z, 7, 1.5 }</y> }</all>",
    "//a[matches(@b, '^x.*y$')] | //c",
    "PREFIX e: <http://e/> SELECT ?i { ?i e:p 'x' ; e:n ?n ; a <http://e/C> FILTER(?n < 9.5) }",
    "# results: text/turtle\nCONSTRUCT { ?i <http://e/q> 'a \"b\"' } { ?i <http://e/p> 7, 'c' }",
]
PARSED_ON_THEIR_OWN = [
    "/a[b = 'it''s']",
    "/a[. = 123456789012345678901234567890]",
    '//a[b/@c = "&amp;"]',
    'declare namespace p = "urn:p"; //p:a[@b = 3]/p:c',
    "ASK { ?x <http://e/p> 'a', 'a' }",
]
MESSAGE = b'<nitf><series id="x">7</series><item id="x"><name>n</name></item><a><b/></a></nitf>'


def stored(recipe: Recipe | None) -> Recipe | None:
    """As it comes from a disk."""
    return msgpack.unpackb(msgpack.packb(recipe))  # type: ignore[no-any-return]


@pytest.mark.parametrize("text", TEXTS)
def test_a_recipe_makes_the_same_profile(text: str) -> None:
    writing, reading = ProfileRecipes(), ProfileRecipes()
    for _ in range(3):  # a shape of graphs is learned when it is met again
        parsed = parse_profile(text)
    recipe = stored(writing.write(parsed))
    assert recipe is not None
    for number, shape in writing.new.items():
        reading.restore(number, shape)
    read = reading.read(recipe, text)
    assert (read.text, read.parts, read.body) == (text, parsed.parts, parsed.body)
    matcher = Matcher()
    matcher.add(parsed, "parsed")
    matcher.add(read, "read")
    found = [match for match in matcher.match(MESSAGE) if isinstance(match, ProfileMatch)]
    assert len(found) in (0, 2)
    assert matcher.statistics().queries == 1


@pytest.mark.parametrize("text", PARSED_ON_THEIR_OWN)
def test_what_has_no_shape_has_no_recipe(text: str) -> None:
    assert ProfileRecipes().write(parse_profile(text)) is None


def test_profiles_of_one_shape_share_it() -> None:
    recipes = ProfileRecipes()
    first, second = (recipes.write(parse_profile(f'/a[@b = "{word}"]')) for word in "xy")
    assert (first, second) == ([["/a", 0, "b", "x"]], [["/a", 0, "b", "y"]])
    assert len(recipes.new) == 1


def test_there_are_so_many_shapes_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile_recipes, "SHAPES_MAX", 1)
    recipes = ProfileRecipes()
    assert recipes.write(parse_profile("/a[@b = 1]")) is not None
    assert recipes.write(parse_profile("/a[b]")) is None
    assert recipes.write(parse_profile("/a[@c = 2]")) is not None
    assert recipes.write(parse_profile("/a/b")) is not None
