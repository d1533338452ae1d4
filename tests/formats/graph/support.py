"""What the tests of graphs share: graphs by chance, isomorphism by pyoxigraph, the W3C's tests."""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyoxigraph
import pytest
from hypothesis import strategies as st
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, RdfFormat

from formats import ElementStream, GraphSyntax, MessageRefused
from formats.graph import oxigraph, striping
from formats.graph.striping import GraphBuilder
from formats.graph.syntaxes import by_file_name
from formats.graph.writer import triples_of
from tests.formats.support import SHARED_DATA

SCANNED = [GraphSyntax.TURTLE, GraphSyntax.TRIG, GraphSyntax.N_TRIPLES, GraphSyntax.N_QUADS]
RDF_DATA = SHARED_DATA / "rdf"
XSD = "http://www.w3.org/2001/XMLSchema#"
_W3C = RDF_DATA / "w3c-rdf-tests.tar.gz"
_MANIFEST = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
_TEST_TYPES = "http://www.w3.org/ns/rdftest#"
_TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")


def canonical(quads: Iterable[Quad]) -> str:
    """The same text for graphs that differ in nothing but labels of blank nodes and order."""
    dataset = pyoxigraph.Dataset(quads)
    dataset.canonicalize(pyoxigraph.CanonicalizationAlgorithm.UNSTABLE)
    return "\n".join(sorted(map(str, dataset)))


def canonical_stream(stream: ElementStream) -> str:
    return canonical(triples_of(stream))


@dataclass(frozen=True, slots=True)
class SyntaxTest:
    """One test of the W3C: whether ``data`` is taken, and what triples it has, if that is said."""

    name: str
    syntax: GraphSyntax
    data: bytes
    base: str | None
    good: bool
    expected: bytes | None


def w3c_tests() -> Iterator[SyntaxTest]:
    """All tests of syntaxes; none where the archive is not there."""
    if not _W3C.exists():
        return
    with tarfile.open(_W3C) as archive:
        files = {
            member.name.removeprefix("./"): file.read()
            for member in archive
            if "/sparql/" not in f"/{member.name}" and (file := archive.extractfile(member))
        }
    for path in sorted(files):
        if path.startswith("rdf/") and path.endswith("/manifest.ttl"):
            yield from _tests_of(path.removesuffix("manifest.ttl"), files)


def _tests_of(folder: str, files: dict[str, bytes]) -> Iterator[SyntaxTest]:
    here = "http://manifest.example/"
    facts: dict[str, dict[NamedNode, str]] = {}
    for quad in pyoxigraph.parse(files[f"{folder}manifest.ttl"], RdfFormat.TURTLE, base_iri=here):
        if isinstance(quad.subject, NamedNode) and isinstance(quad.object, NamedNode | Literal):
            facts.setdefault(quad.subject.value, {})[quad.predicate] = quad.object.value
    bases = [fact.get(NamedNode(f"{_MANIFEST}assumedTestBase")) for fact in facts.values()]
    base = next((each for each in bases if each), None)
    for name, fact in facts.items():
        kind = fact.get(_TYPE, "")
        if not kind.startswith(_TEST_TYPES):
            continue
        action = fact[NamedNode(f"{_MANIFEST}action")].removeprefix(here)
        result = fact.get(NamedNode(f"{_MANIFEST}result"))
        syntax = by_file_name(action)
        assert syntax is not None, action
        yield SyntaxTest(
            name=f"{folder.split('/')[-2]}/{name.partition('#')[2]}",
            syntax=syntax,
            data=files[folder + action],
            base=base and base + action,
            good="Negative" not in kind,
            expected=(result and files[folder + result.removeprefix(here)]) or None,
        )


_IRIS = st.sampled_from(
    [
        "http://example.org/a",
        "http://example.org/b",
        "urn:x:y",
        "http://example.org/#é",
        "http://www.w3.org/1999/02/22-rdf-syntax-ns#nil",
        "http://example.org/?a=1&b='2'",
    ]
).map(NamedNode)
_PROPERTIES = st.sampled_from(
    [
        "http://example.org/p",
        "http://example.org/q",
        "http://other.example/ns#p",
        "http://example.org/9",  # no XML name
        "urn:onyx:graph",
        "http://www.w3.org/2000/xmlns/p",
        "http://www.w3.org/1999/02/22-rdf-syntax-ns#type",
        "http://www.w3.org/1999/02/22-rdf-syntax-ns#_1",
        "http://www.w3.org/1999/02/22-rdf-syntax-ns#first",
        "http://example.org/日本",
    ]
).map(NamedNode)
NAMED_PROPERTIES = _PROPERTIES.filter(
    lambda each: not each.value.endswith("/9") and "xmlns" not in each.value
)
_BLANKS = st.integers(0, 3).map(lambda number: BlankNode(f"x{number}"))
_VALUES = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff")
    | st.sampled_from("\t\n\r\"\\'<>&#"),
    max_size=8,
)
_LITERALS = st.one_of(
    _VALUES.map(Literal),
    st.builds(
        lambda value, tag: Literal(value, language=tag), _VALUES, st.sampled_from(["en", "de-at"])
    ),
    st.builds(
        lambda value, name: Literal(value, datatype=NamedNode(XSD + name)),
        _VALUES | st.sampled_from(["5", "05", "-1.50", "1e3", "INF", "2020-02-29", "true"]),
        st.sampled_from(["integer", "decimal", "double", "date", "dateTime", "byte", "boolean"]),
    ),
)
_GRAPHS = st.just(DefaultGraph()) | _IRIS | _BLANKS


def quads(
    named: bool = True, properties: st.SearchStrategy[NamedNode] = _PROPERTIES
) -> st.SearchStrategy[list[Quad]]:
    """Small datasets with much in common among their triples."""
    graphs = _GRAPHS if named else st.just(DefaultGraph())
    one = st.builds(Quad, _IRIS | _BLANKS, properties, _IRIS | _BLANKS | _LITERALS, graphs)
    return st.lists(one, max_size=12)


def scanned(data: bytes, syntax: GraphSyntax) -> str:
    """What the scanner does with a graph: ``taken``, ``given back`` or ``refused``.

    Fails where what it takes or refuses is not what pyoxigraph makes of it.
    """
    builder = GraphBuilder()
    try:
        if not striping.scan(data, syntax, builder):
            return "given back"
    except MessageRefused as refusal:
        again = GraphBuilder()
        with pytest.raises(MessageRefused) as caught:
            oxigraph.add_triples(again, data, syntax)
        assert caught.value.code in {refusal.code, "malformed", "relative-iri", "undeclared-prefix"}
        return "refused"
    found = canonical_stream(builder.finish())
    assert found == canonical(pyoxigraph.parse(data, oxigraph.FORMATS[syntax])), data
    return "taken"
