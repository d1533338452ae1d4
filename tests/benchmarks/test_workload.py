"""The generated workload: what its documentation says of it holds."""

from __future__ import annotations

import re
from itertools import islice
from random import Random

import lxml.etree
import pytest

from benchmarks.workload import DocumentSchema, ProfileMaker, make_messages, make_schema
from benchmarks.workload.messages import DEPTH_MAX
from benchmarks.workload.profiles import STEPS_MAX
from yfilter import parse_profile
from yfilter.language.query_ast import PathExpression

SEED = 3


@pytest.fixture(scope="module")
def schema() -> DocumentSchema:
    return make_schema(SEED)


def texts(schema: DocumentSchema, number: int, ordinary: float = 1.0) -> list[str]:
    return list(islice(ProfileMaker(schema, SEED).distinct(ordinary), number))


def matching(paths: list[str], messages: list[bytes]) -> float:
    """The share of pairs that match."""
    compiled = [lxml.etree.XPath(f"boolean({path})") for path in paths]
    trees = [lxml.etree.fromstring(message) for message in messages]
    hits = sum(bool(path(tree)) for path in compiled for tree in trees)
    return hits / (len(paths) * len(trees))


def test_a_seed_gives_the_same_and_another_seed_other_things(schema: DocumentSchema) -> None:
    again, other = make_schema(SEED), make_schema(SEED + 1)
    assert list(again.types) == list(schema.types)
    assert list(other.types) != list(schema.types)
    assert make_messages(again, 1, 2, 3_000) == make_messages(schema, 1, 2, 3_000)
    assert make_messages(schema, 2, 2, 3_000) != make_messages(schema, 1, 2, 3_000)
    assert texts(again, 50) == texts(schema, 50)


def test_messages_are_valid_and_of_the_size_asked_for(schema: DocumentSchema) -> None:
    for size in (500, 10_000):
        for message in make_messages(schema, SEED, 10, size):
            assert size * 0.9 <= len(message) <= size + 1_000
            root = lxml.etree.fromstring(message)
            assert root.tag == schema.root
            for element in root.iter():
                depth = 1 + sum(1 for _ in element.iterancestors())
                assert depth <= DEPTH_MAX
                assert {child.tag for child in element} <= set(schema.children[element.tag])
                allowed = {name for name, _ in schema.types[element.tag].attributes}
                assert set(element.attrib) <= allowed


def test_elements_contain_themselves_somewhere(schema: DocumentSchema) -> None:
    assert any(name in inner for name, inner in schema.children.items())


def test_profiles_are_distinct_and_in_the_language(schema: DocumentSchema) -> None:
    made = texts(schema, 300, ordinary=0.5)
    assert len(set(made)) == len(made)
    for text in made:
        body = parse_profile(text).body
        assert isinstance(body, PathExpression)
        assert 1 <= len(body.steps) <= STEPS_MAX


def test_profiles_have_the_proportions_that_are_promised(schema: DocumentSchema) -> None:
    made = texts(schema, 2_000)
    outer = [re.sub(r"\[[^\[\]]*(\[[^\]]*\])*[^\[\]]*\]", "", text) for text in made]
    steps = [step for text in outer for step in re.findall(r"/+[^/]+", text)]
    assert 0.1 < sum(step.startswith("//") for step in steps) / len(steps) < 0.2
    assert 0.1 < sum(step.endswith("*") for step in steps) / len(steps) < 0.2
    nested = [text for text in made if re.search(r"\[(?!@|text\(\))", text)]
    assert 0.15 < len(nested) / len(made) < 0.25
    plain = [text.count("[") for text in made if text not in set(nested)]
    assert set(plain) == {0, 1, 2}


def test_ordinary_profiles_match_some_messages_and_narrow_ones_hardly_any(
    schema: DocumentSchema,
) -> None:
    messages = make_messages(schema, SEED, 20, 10_000)
    assert 0.01 < matching(texts(schema, 500), messages) < 0.15
    assert matching(texts(schema, 500, ordinary=0.0), messages) < 0.001


def test_values_that_are_frequent_in_messages_are_not_the_rare_ones(
    schema: DocumentSchema,
) -> None:
    domain = next(d for d in schema.domains.values() if d.size > 10_000 and not d.numeric)
    random = Random(SEED)
    drawn = {domain.draw(random) for _ in range(1_000)}
    rare = {domain.draw_rare(random) for _ in range(1_000)}
    assert len(drawn) < len(rare)
