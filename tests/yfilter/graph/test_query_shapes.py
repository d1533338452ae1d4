"""Graph profiles of one shape are read once, and say what they say when they are read alone."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random

import pytest

from formats.graph.reader import read_graph
from formats.graph.syntaxes import GraphSyntax
from tests.yfilter.graph.random_graphs import RandomCase
from tests.yfilter.graph.random_queries import RandomQuery
from yfilter import ProfileRefused
from yfilter.engine.linear_paths import routing_query
from yfilter.engine.routing_templates import routing_query_of
from yfilter.graph.graph_query import QueryShapes, parse_anew
from yfilter.graph.query_ast import GraphQuery
from yfilter.graph.query_text import unparse
from yfilter.graph.stars import graph_part
from yfilter.language.query_ast import Profile
from yfilter.matcher import Matcher

PROLOGUE = "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
_REPLACED = re.compile(r'"[A-Za-z ]+"|<http://[^>]*>|(?<=[ (])[0-9]+(?:\.[0-9]+)?(?=[ )])')
_INSTEAD = (
    *('"Bob"', '"x"', '"en"', '"^a"', '"("', "7", "12345", "1234567890", "007", "3.50", "2.0"),
    *("<http://e/a>", "<http://e.org/x#y>", "<http://e/9>", "<http://e/%zz>", "<urn:a>"),
    "<http://www.w3.org/2001/XMLSchema#string>",
)


def varied(random: Random, text: str) -> str:
    """The text with other words, and perhaps no query any more."""
    head, separator, body = text.partition("ASK")
    return head + separator + _REPLACED.sub(lambda _: random.choice(_INSTEAD), body)


def outcome(read: object, text: str) -> GraphQuery | tuple[str, int, int]:
    try:
        return read(text)  # type: ignore[operator, no-any-return]
    except ProfileRefused as refusal:
        return refusal.code, refusal.line, refusal.column


@pytest.mark.parametrize("seed", range(4))
def test_it_makes_no_difference_whether_a_shape_is_known(seed: int) -> None:
    shapes = QueryShapes(parse_anew)
    made = 0
    for number in range(120):
        random = Random(f"{seed}/{number}")
        source = RandomCase(random).query() if number % 3 else RandomQuery(random).text()
        for text in (source, *(varied(random, source) for _ in range(4))):
            alone, again = outcome(parse_anew, text), outcome(shapes.read, text)
            assert again == alone, text
            if not isinstance(again, GraphQuery) or not isinstance(alone, GraphQuery):
                continue
            assert again.results == alone.results
            assert graph_part(again) == graph_part(alone), text
            made += again.known_part is not None
    assert made > 50


def read_both(shapes: QueryShapes, *texts: str) -> list[bool]:
    """Whether the texts are made of their shapes; they say what they say alone."""
    found = []
    for text in texts:
        query, alone = shapes.read(PROLOGUE + text), parse_anew(PROLOGUE + text)
        assert query == alone and graph_part(query) == graph_part(alone)
        found.append(query.known_part is not None)
    return found


def test_words_make_no_shapes() -> None:
    shapes = QueryShapes(parse_anew)
    text = 'SELECT ?x {{ ?x :p "{}" ; :q ?y ; :r <http://e/{}> FILTER(?y < {}) }}'
    assert (
        read_both(shapes, text.format("Ann", "a", 5), text.format("B'b", "b/c#d", 17)) == [True] * 2
    )
    assert len(shapes.texts.entries) == 1
    assert read_both(shapes, text.format("Ann", "a", "2.50")) == [True]  # a decimal is another kind
    assert len(shapes.texts.entries) == 2


def test_what_is_no_plain_constant_belongs_to_the_shape() -> None:
    shapes = QueryShapes(parse_anew)
    property_text = "ASK {{ ?x <http://e/{}> 'a' }}"
    assert read_both(shapes, *(property_text.format(p) for p in ("a", "b", "9"))) == [True] * 3
    years = ("ASK { ?x :p ?y FILTER(year(?y) = 2003) }", "ASK { ?x :p ?y FILTER(year(?y) = 2004) }")
    assert read_both(shapes, *years) == [True] * 2
    patterns = ("ASK { ?x :p ?y FILTER regex(?y, 'a') }", "ASK { ?x :p ?y FILTER regex(?y, 'b*') }")
    assert read_both(shapes, *patterns) == [True] * 2
    with pytest.raises(ProfileRefused, match="regular expression"):
        shapes.read(f"{PROLOGUE}ASK {{ ?x :p ?y FILTER regex(?y, '(') }}")


def test_equal_words_and_whole_queries_are_read_by_themselves() -> None:
    shapes = QueryShapes(parse_anew)
    assert (
        read_both(
            shapes,
            "ASK { ?x :p ?y FILTER(?y IN ('a', 'a')) }",
            "SELECT ?x { ?x :p 'a' } LIMIT 5",
            "ASK { ?x :p '''a''' }",
            r"ASK { ?x :p 'a\tb' }",
        )
        == [False] * 4
    )


def test_a_query_that_was_changed_is_not_what_its_shape_says() -> None:
    query = QueryShapes(parse_anew).read(PROLOGUE + "ASK { ?x :p 'a' }")
    other = parse_anew(PROLOGUE + "ASK { ?x :q 'b' }")
    assert graph_part(replace(query, where=other.where)) == graph_part(other)


@pytest.mark.parametrize("seed", range(3))
def test_the_index_finds_queries_made_of_words_where_it_finds_others(seed: int) -> None:
    random = Random(seed)
    case = RandomCase(random)
    shapes = QueryShapes(parse_anew)
    made, alone = Matcher(), Matcher()
    shaped = 0
    for _ in range(150):
        text = case.query()
        try:
            profile = Profile(parse_anew(text), text)
        except ProfileRefused:
            continue
        words = shapes.made_of_words(text)
        if words is None:
            made.add(profile)
        else:
            shaped += 1
            again = Profile.of_parts(words, text)
            assert words.text() == unparse(words.fill())
            assert routing_query_of(again) == routing_query(profile)
            made.add(again)
        alone.add(profile)
    assert shaped > 20
    found = 0
    for _ in range(40):
        stream = read_graph(case.graph().encode(), GraphSyntax.TRIG)
        assert sorted(made.matched_ids(stream)) == sorted(alone.matched_ids(stream))
        found += len(made.matched_ids(stream))
    assert found > 100


def test_the_oldest_shapes_are_forgotten() -> None:
    shapes = QueryShapes(parse_anew, keys_max=3)
    for name in "abcdefgh":
        assert read_both(shapes, f"ASK {{ ?x :{name} 'a' }}") == [True]
    assert len(shapes.texts.entries) == 3


def test_a_shape_may_be_learned_with_its_second_text() -> None:
    shapes = QueryShapes(parse_anew, learns_at_once=False)
    texts = [f"{PROLOGUE}ASK {{ ?x :p '{word}' }}" for word in "abc"]
    assert read_both(shapes, *texts) == [False, True, True]
    assert len(shapes.texts.entries) == 1
