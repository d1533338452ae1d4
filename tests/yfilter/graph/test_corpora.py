"""Graph profiles made from the graphs of others: both engines find what pyoxigraph finds, or, where
it is alone, what rdflib finds.

The graphs are DCAT's examples, a model of a power grid and the data of the W3C's tests.  A profile
asks for triples that hang together in one of them, with variables for some of their terms.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from functools import cache
from random import Random

import pyoxigraph
import pytest
import rdflib
from pyoxigraph import BlankNode, Literal, NamedNode, Quad

from formats.element_stream import ElementStream
from formats.errors import MessageRefused
from formats.graph.graph_limits import GraphLimits
from formats.graph.reader import read_graph
from formats.graph.syntaxes import GraphSyntax
from formats.graph.writer import triples_of
from tests.formats.support import SHARED_DATA
from tests.oracle.reference import ReferenceMatcher
from tests.yfilter.graph.solution_sets import Solution, are_equal, solutions_of_json
from tests.yfilter.graph.test_join_oracle import oxigraph_solutions, rdflib_solutions
from tests.yfilter.graph.w3c_suite import ARCHIVE, BASE, files
from yfilter import Matcher, MatchLimits
from yfilter.graph.graph_query import parse_graph_query
from yfilter.language.profile_limits import EvaluationLimits

DATA = SHARED_DATA / "rdf"
FIRST = int(os.environ.get("ONYX_REFERENCE_FIRST", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("ONYX_REFERENCE_SEEDS", "4")))
QUERIES = {"dcat": 12, "grid": 4, "w3c": 12}  # of a seed
RDFLIB_MAX = 400  # triples
LIMITS = MatchLimits(evaluation=EvaluationLimits(tuples_max=300))
XSD = "http://www.w3.org/2001/XMLSchema#"

pytestmark = pytest.mark.skipif(not ARCHIVE.exists(), reason="no reference data here")


@cache
def graphs(folder: str) -> list[tuple[ElementStream, list[Quad]]]:
    """Those that have triples, with them."""
    read = ((graph, list(triples_of(graph))) for graph in _graphs(folder))
    return [pair for pair in read if pair[1]]


def _graphs(folder: str) -> Iterator[ElementStream]:
    for name, data in _texts(folder):
        syntax = GraphSyntax.RDF_XML if name.endswith((".rdf", ".xml.gz")) else GraphSyntax.TURTLE
        try:
            yield read_graph(data, syntax, base=BASE + name, limits=GraphLimits())
        except MessageRefused:
            assert folder == "w3c", name


def _texts(folder: str) -> Iterator[tuple[str, bytes]]:
    if folder == "w3c":
        yield from (item for item in files().items() if item[0].endswith((".ttl", ".rdf")))
        return
    for path in sorted((DATA / folder).iterdir()):
        yield (
            path.name,
            gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else (path.read_bytes()),
        )


@pytest.mark.parametrize("folder", QUERIES)
@pytest.mark.parametrize("seed", SEEDS)
def test_both_engines_find_in_graphs_of_others_what_others_find(
    folder: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rdflib, "NORMALIZE_LITERALS", False)  # which would forget digits as well
    rng = Random(f"{folder}/{seed}")
    some = alone = compared = 0
    while compared < QUERIES[folder]:
        graph, quads = rng.choice(graphs(folder))
        text = _query(rng, quads)
        compiled = _solutions(Matcher(LIMITS), text, graph)
        if compiled is None:  # it has very many
            continue
        compared += 1
        reference = _solutions(ReferenceMatcher(LIMITS), text, graph)
        assert reference is not None and are_equal(compiled, reference), text
        some += bool(reference)
        query = parse_graph_query(text)
        if not are_equal(reference, oxigraph_solutions(query, quads)):
            alone += 1
            assert len(quads) <= RDFLIB_MAX, text
            assert are_equal(reference, rdflib_solutions(query, quads)), text
    assert some >= QUERIES[folder] // 4
    assert alone <= QUERIES[folder] // 3


def _solutions(
    matcher: Matcher | ReferenceMatcher, text: str, graph: ElementStream
) -> list[Solution] | None:
    """None where a limit ends them."""
    matcher.add(text)
    found: list[Solution] = []
    for one in matcher.deliver(graph):
        if one.exceeded is not None:
            return None
        found += [solution for result in one.results for solution in solutions_of_json(result)]
    return found


def _query(rng: Random, quads: list[Quad]) -> str:
    """A SELECT of all variables, by triples that have terms in common."""
    taken = [rng.choice(quads)]
    while rng.random() < 0.6 and len(taken) < 4:
        terms = {term for quad in taken for term in (quad.subject, quad.object)}
        near = [quad for quad in quads if quad.subject in terms or quad.object in terms]
        taken.append(rng.choice(near))
    nodes = dict.fromkeys(term for quad in taken for term in (quad.subject, quad.object))
    names = {
        term: f"?v{number}"
        for number, term in enumerate(nodes)
        if isinstance(term, BlankNode) or rng.random() < (0.4 if isinstance(term, Literal) else 0.7)
    }
    names.setdefault(taken[0].subject, "?s")
    patterns = [
        f"{_said(quad.subject, names)} {quad.predicate} {_said(quad.object, names)} ."
        for quad in taken
    ]
    values = [term for term in names if isinstance(term, Literal)]
    if values and rng.random() < 0.7:
        term = rng.choice(values)
        patterns.append(f"FILTER({_condition(rng, names[term], term)})")
    start = names[taken[0].subject]
    other = rng.choice(quads)
    patterns.append(
        rng.choice(
            (
                *("", "", ""),
                f"OPTIONAL {{ {start} {other.predicate} ?o }}",
                f"FILTER NOT EXISTS {{ {start} {other.predicate} ?o }}",
                f"MINUS {{ {start} {other.predicate} ?o }}",
                f"{{ {start} {other.predicate} ?o }} UNION {{ {start} a ?o }}",
                f"BIND(str({start}) AS ?o)",
            )
        )
    )
    return f"SELECT * {{ {' '.join(patterns)} }}"


def _said(term: object, names: dict[object, str]) -> str:
    return names.get(term) or str(term)


def _condition(rng: Random, name: str, term: Literal) -> str:
    options = [f"{name} = {term}", f"sameTerm({name}, {term})", f"{name} IN ({term}, 1)"]
    if not term.language and term.datatype != NamedNode(XSD + "string"):
        options += [f"{name} {sign} {term}" for sign in ("!=", "<", ">=")]
        options += [f"datatype({name}) = {term.datatype}"]
    else:
        part = pyoxigraph.Literal(term.value[1:5])
        options += [f"contains(str({name}), {part})", f"strlen({name}) = {len(term.value)}"]
        options += [f'lang({name}) = "{term.language or ""}"', f'langMatches(lang({name}), "*")']
    return rng.choice(options)
