"""The W3C's tests of the syntaxes of RDF: both readers read good texts as they say, and refuse
the others."""

from __future__ import annotations

from collections import Counter

import pytest
from pyoxigraph import RdfFormat, parse

from formats import GraphSyntax, MessageRefused, read_graph
from formats.characters import find_illegal_character
from formats.graph.oxigraph import FORMATS
from formats.graph.plain_striping import plain_graph_of_document
from tests.formats.graph.support import SyntaxTest, canonical, canonical_stream, w3c_tests

TESTS = list(w3c_tests())
COUNT = 992


def test_all_tests_are_there() -> None:
    if not TESTS:
        pytest.skip("the shared data is not here")
    assert len(TESTS) == COUNT, Counter(test.syntax for test in TESTS)


@pytest.mark.parametrize("is_compiled", [True, False])
@pytest.mark.parametrize("syntax", GraphSyntax)
def test_a_syntax_is_read_as_the_w3c_says(
    syntax: GraphSyntax, is_compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_compiled:
        monkeypatch.setattr("formats.graph.reader.AVAILABLE", False)
        monkeypatch.setattr("formats.graph.reader.graph_of_document", plain_graph_of_document)
    found = {test.name: outcome(test) for test in TESTS if test.syntax is syntax}
    wrong = {name: said for name, said in found.items() if said != "right"}
    assert not wrong, wrong


def outcome(test: SyntaxTest) -> str:
    try:
        stream = read_graph(test.data, test.syntax, base=test.base)
    except MessageRefused as refusal:
        if not test.good or (refusal.code == "bad-character" and has_no_xml(test)):
            return "right"
        return str(refusal)
    if not test.good or has_no_xml(test):
        return "accepted"
    if test.expected is None:
        return "right"
    expected = canonical(parse(test.expected, RdfFormat.N_QUADS))
    return "right" if canonical_stream(stream) == expected else "other triples"


def has_no_xml(test: SyntaxTest) -> bool:
    """Whether its good triples have characters that no XML text can hold."""
    return any(
        find_illegal_character(str(getattr(quad.object, "value", ""))) >= 0
        for quad in parse(test.data, FORMATS[test.syntax], base_iri=test.base)
    )
