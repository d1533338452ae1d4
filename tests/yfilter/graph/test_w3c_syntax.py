"""The W3C's tests of SPARQL 1.0 and 1.1: what is a query is read, what is none is refused."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from pathlib import Path, PurePosixPath

import pytest

from yfilter import ProfileRefused
from yfilter.graph.graph_query import parse_graph_query
from yfilter.graph.query_text import unparse

pyoxigraph = pytest.importorskip("pyoxigraph")
TESTS = Path(__file__).resolve().parents[4] / "shared" / "data" / "rdf" / "w3c-rdf-tests.tar.gz"
pytestmark = pytest.mark.skipif(not TESTS.exists(), reason="the W3C's tests are not here")

_ROOT = "file:///"
_TESTS_OF_QUERIES = """
    PREFIX mf: <http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#>
    PREFIX qt: <http://www.w3.org/2001/sw/DataAccess/tests/test-query#>
    SELECT ?kind ?file { ?test a ?kind ; mf:action ?action OPTIONAL { ?action qt:query ?query }
                         BIND(coalesce(?query, ?action) AS ?file) FILTER(isIRI(?file)) }
"""
# Of queries that are none for a profile: more than one message, functions that nobody has, and
# variables without a value, which a user has misspelt.
OTHERWISE = {"unsupported", "unknown-function"}


@cache
def _files() -> dict[str, bytes]:
    with tarfile.open(TESTS) as archive:
        return {
            member.name: archive.extractfile(member).read()  # type: ignore[union-attr]
            for member in archive
            if member.isfile() and member.name.startswith(("sparql/sparql10", "sparql/sparql11"))
        }


def _cases(*, negative: bool) -> Iterator[tuple[str, str]]:
    """The name and text of each query."""
    for name, data in sorted(_files().items()):
        if PurePosixPath(name).name != "manifest.ttl":
            continue
        store = pyoxigraph.Store()
        store.load(BytesIO(data), format=pyoxigraph.RdfFormat.TURTLE, base_iri=_ROOT + name)
        for found in store.query(_TESTS_OF_QUERIES):
            file = found["file"].value.removeprefix(_ROOT)
            if file.endswith(".rq") and ("Negative" in found["kind"].value) == negative:
                yield file, _files()[file].decode()


def test_queries_are_read_and_written() -> None:
    read = 0
    for name, text in _cases(negative=False):
        try:
            query = parse_graph_query(f"BASE <http://example.org/base/>\n{text}")
        except ProfileRefused as refusal:
            assert refusal.code in OTHERWISE, f"{name}: {refusal}"
            continue
        read += 1
        assert parse_graph_query(unparse(query)) == query, name
        assert not query.whole or pyoxigraph.Store().query(query.whole) is not None
    assert read > 700


def test_what_is_no_query_is_refused() -> None:
    refused = 0
    for name, text in _cases(negative=True):
        with pytest.raises(ProfileRefused) as refusal:
            parse_graph_query(f"BASE <http://example.org/base/>\n{text}")
        assert refusal.value.code not in OTHERWISE, f"{name}: {refusal.value}"
        refused += 1
    assert refused > 80
