"""The evaluation tests of SPARQL 1.0 and 1.1 by the W3C, from an archive beside the repository."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath

import pyoxigraph

from tests.formats.support import SHARED_DATA

ARCHIVE = SHARED_DATA / "rdf" / "w3c-rdf-tests.tar.gz"
BASE = "http://www.w3.org/tests/"
MANIFEST = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
QUERY = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
RESULT = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
# What is no matter of one query and one message.
OTHER = ("entailment", "service", "csv-tsv-res", "json-res")


@dataclass(frozen=True)
class Case:
    """Paths in the archive; ``graphs``: (name, path) of the named graphs."""

    name: str
    query: str
    data: tuple[str, ...]
    graphs: tuple[tuple[str, str], ...]
    result: str


@cache
def files() -> dict[str, bytes]:
    """The archive's files below sparql/, by their paths."""
    with tarfile.open(ARCHIVE) as archive:
        return {
            member.name.removeprefix("./"): archive.extractfile(member).read()  # type: ignore[union-attr]
            for member in archive
            if member.isfile() and member.name.removeprefix("./").startswith("sparql/sparql1")
        }


def cases() -> Iterator[Case]:
    """All evaluation tests, in the order of the archive's paths."""
    for path in sorted(files()):
        folder = PurePosixPath(path).parent
        if not path.endswith("manifest.ttl") or folder.name in OTHER or "sparql12" in path:
            continue
        store = pyoxigraph.Store()
        store.load(files()[path], format=pyoxigraph.RdfFormat.TURTLE, base_iri=BASE + path)
        tests = store.quads_for_pattern(
            None,
            pyoxigraph.NamedNode(RDF + "type"),
            pyoxigraph.NamedNode(MANIFEST + "QueryEvaluationTest"),
        )
        for quad in sorted(tests, key=str):
            yield _case(store, quad.subject, folder.name)


def quads_of(path: str, graph: str = "") -> Iterator[pyoxigraph.Quad]:
    """The triples of a file of data, in a named graph if it is one."""
    endings = {"ttl": pyoxigraph.RdfFormat.TURTLE, "rdf": pyoxigraph.RdfFormat.RDF_XML}
    name = pyoxigraph.NamedNode(graph) if graph else pyoxigraph.DefaultGraph()
    for quad in pyoxigraph.parse(
        files()[path],
        format=endings.get(path.rpartition(".")[2], pyoxigraph.RdfFormat.TURTLE),
        base_iri=BASE + path,
        rename_blank_nodes=True,
    ):
        yield pyoxigraph.Quad(quad.subject, quad.predicate, quad.object, name)


def result_set(path: str) -> tuple[list[dict[str, object]], bool | None]:
    """The solutions in a file that describes them as a graph; and the answer to ASK."""
    store = pyoxigraph.Store()
    store.extend(quads_of(path))
    rows = []
    for solution in _objects(store, None, RESULT + "solution"):
        row: dict[str, object] = {}
        for binding in _objects(store, solution, RESULT + "binding"):
            name = _objects(store, binding, RESULT + "variable")[0].value
            row[name] = _objects(store, binding, RESULT + "value")[0]
        rows.append(row)
    truths = _objects(store, None, RESULT + "boolean")
    return rows, truths[0].value == "true" if truths else None


def _case(store: pyoxigraph.Store, test: object, folder: str) -> Case:
    action = _objects(store, test, MANIFEST + "action")[0]
    name = _objects(store, test, MANIFEST + "name")[0].value
    graphs = []
    for graph in _objects(store, action, QUERY + "graphData"):
        named = graph.value
        graphs.append((named, _path(named)))
    return Case(
        f"{folder}: {name}",
        _path(_objects(store, action, QUERY + "query")[0].value),
        tuple(_path(each.value) for each in _objects(store, action, QUERY + "data")),
        tuple(graphs),
        _path(_objects(store, test, MANIFEST + "result")[0].value),
    )


def _path(iri: str) -> str:
    return iri.removeprefix(BASE)


def _objects(store: pyoxigraph.Store, subject: object, prop: str) -> list:  # type: ignore[type-arg]
    quads = store.quads_for_pattern(subject, pyoxigraph.NamedNode(prop), None)  # type: ignore[arg-type]
    return [quad.object for quad in quads]
