"""What a graph profile should deliver for one message, by pyoxigraph alone.

Nothing of the system is imported here.  A message is a graph where its media type says so, or where
it is an XML document whose root element is ``rdf:RDF``; a document profile gets nothing of a graph
that is no document, and a graph profile nothing of a document that is no graph.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import pyoxigraph
from lxml import etree

from demo.independent_parse import parse

SPARQL_RESULTS = b"http://www.w3.org/2005/sparql-results#"
"""The namespace of results as XML."""

_FIRST_WORD = re.compile(r"(?:\s|#[^\n]*\n)*(PREFIX|BASE|SELECT|CONSTRUCT|ASK)\b", re.IGNORECASE)
_RDF_ROOT = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}RDF"
_VARIABLE, _VALUE = "urn:oracle:variable:", "urn:oracle:value"
_JSON, _XML = pyoxigraph.QueryResultsFormat.JSON, pyoxigraph.QueryResultsFormat.XML


def is_graph_profile(text: str) -> bool:
    """Whether it is SPARQL."""
    return _FIRST_WORD.match(text) is not None


def is_graph_type(media_type: str) -> bool:
    """Whether messages of this media type are graphs and no documents."""
    syntax = pyoxigraph.RdfFormat.from_media_type(media_type)
    return syntax is not None and syntax != pyoxigraph.RdfFormat.RDF_XML


def graph_refusal(data: bytes, media_type: str) -> str | None:
    """Why pyoxigraph refuses a graph, None when it takes it."""
    try:
        _parsed(data, media_type)
    except (SyntaxError, ValueError) as error:
        return str(error)
    return None


def expected_graph_results(text: str, data: bytes, media_type: str) -> list[bytes]:
    """One result, in any syntax, or none; compare by ``canonical_graph_result``."""
    dataset = _dataset(data, media_type)
    if dataset is None:
        return []
    store = pyoxigraph.Store()
    store.extend(dataset)
    found = store.query(text)
    if isinstance(found, pyoxigraph.QueryBoolean):
        return [data if not is_graph_type(media_type) else _n_quads(dataset)] if found else []
    if isinstance(found, pyoxigraph.QueryTriples):
        made = pyoxigraph.Dataset(
            pyoxigraph.Quad(triple.subject, triple.predicate, triple.object) for triple in found
        )
        return [_n_quads(made)] if len(made) else []
    solutions = found.serialize(format=_JSON)
    assert solutions is not None
    return [solutions] if _rows(solutions) else []


def canonical_graph_result(result: bytes) -> bytes | None:
    """The same for equal graphs, and for equal solutions in any order; blank nodes are known by
    what is said of them.  None for what is neither."""
    rows = _rows(result)
    if rows is not None:
        return _n_quads(pyoxigraph.Dataset(rows))
    try:
        quads = pyoxigraph.parse(result, format=pyoxigraph.RdfFormat.TRIG)
        return _n_quads(pyoxigraph.Dataset(quads))
    except (SyntaxError, ValueError):
        return None


def _rows(result: bytes) -> list[pyoxigraph.Quad] | None:
    """SPARQL results, each row a node that is said to have its bindings."""
    syntax = _JSON if result.lstrip()[:1] == b"{" else _XML
    try:
        solutions = pyoxigraph.parse_query_results(result, format=syntax)
        assert isinstance(solutions, pyoxigraph.QuerySolutions)
        return list(_quads(solutions))
    except (SyntaxError, ValueError):
        return None


def _quads(solutions: pyoxigraph.QuerySolutions) -> Iterator[pyoxigraph.Quad]:
    names = [variable.value for variable in solutions.variables]
    for solution in solutions:
        row = pyoxigraph.BlankNode()
        for name in names:
            value = solution[name]
            if value is not None:
                variable = pyoxigraph.NamedNode(_VARIABLE + name)
                assert not isinstance(value, pyoxigraph.Triple)
                yield pyoxigraph.Quad(row, variable, value)
        yield pyoxigraph.Quad(row, pyoxigraph.NamedNode(_VALUE), pyoxigraph.Literal("row"))


def _n_quads(dataset: pyoxigraph.Dataset) -> bytes:
    dataset.canonicalize(pyoxigraph.CanonicalizationAlgorithm.UNSTABLE)
    lines = sorted(f"{quad} ." for quad in dataset)
    return "\n".join(lines).encode()


def _parsed(data: bytes, media_type: str) -> pyoxigraph.Dataset:
    syntax = pyoxigraph.RdfFormat.from_media_type(media_type)
    return pyoxigraph.Dataset(pyoxigraph.parse(data, format=syntax))


@lru_cache(maxsize=8)
def _dataset(data: bytes, media_type: str) -> pyoxigraph.Dataset | None:
    if is_graph_type(media_type):
        return _parsed(data, media_type)
    try:
        is_rdf = parse(data).tag == _RDF_ROOT
    except etree.XMLSyntaxError:
        return None
    return _parsed(data, "application/rdf+xml") if is_rdf else None
