"""Random patterns on random graphs have the solutions that independent processors find."""

from __future__ import annotations

import os
from random import Random

import pyoxigraph
import pytest
import rdflib

from tests.yfilter.graph.messages import striped
from tests.yfilter.graph.random_patterns import RandomPattern, random_quads
from tests.yfilter.graph.solution_sets import (
    Solution,
    Term,
    are_equal,
    literal,
    solutions_of_json,
    solutions_of_oxigraph,
    solutions_of_xml,
)
from yfilter.graph.graph_query import parse_graph_query
from yfilter.graph.group_variables import possible
from yfilter.graph.query_ast import GraphQuery, Group, QueryForm, ResultSyntax
from yfilter.graph.query_text import unparse
from yfilter.graph_answers import graph_results, has_solution
from yfilter.language.profile_limits import EvaluationLimits

LIMITS = EvaluationLimits()
SEEDS = int(os.environ.get("ONYX_GRAPH_SEEDS", "8"))  # of some cases each
CASES = 60
WITH_RDFLIB = 12


def case(seed: str, *, graphs: bool = True) -> tuple[list[pyoxigraph.Quad], GraphQuery]:
    """A message and a query of all variables."""
    random = Random(seed)
    message = random_quads(random, graphs)
    where = RandomPattern(random, exists=graphs, graphs=graphs).group()
    return message, select(where)


def select(where: Group, results: ResultSyntax = ResultSyntax.JSON) -> GraphQuery:
    columns = sorted(
        (each for each in possible(where) if not each.is_blank), key=lambda each: each.name
    )
    return GraphQuery(QueryForm.SELECT, where, tuple(columns), results=results)


def found(query: GraphQuery, message: list[pyoxigraph.Quad]) -> list[Solution]:
    results = graph_results(query, striped(message), LIMITS)
    read = solutions_of_json if query.results is ResultSyntax.JSON else solutions_of_xml
    return [solution for result in results for solution in read(result)]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_solutions_are_those_of_pyoxigraph(seed: int) -> None:
    some = 0
    for number in range(CASES):
        message, query = case(f"{seed}/{number}")
        expected = oxigraph_solutions(query, message)
        assert are_equal(found(query, message), expected), f"{seed}/{number}: {unparse(query)}"
        assert has_solution(query, striped(message), LIMITS) == bool(expected)
        some += bool(expected)
    assert some > CASES // 8


@pytest.mark.parametrize("seed", range(SEEDS))
def test_solutions_are_those_of_rdflib(seed: int) -> None:
    """Where it alone says otherwise, it is wrong."""
    alone = 0
    for number in range(WITH_RDFLIB):
        message, query = case(f"r{seed}/{number}", graphs=False)
        solutions = found(query, message)
        if not are_equal(solutions, rdflib_solutions(query, message)):
            alone += 1
            expected = oxigraph_solutions(query, message)
            assert are_equal(solutions, expected), f"r{seed}/{number}: {unparse(query)}"
    assert alone <= WITH_RDFLIB // 3


@pytest.mark.parametrize("seed", range(SEEDS))
def test_names_of_blank_nodes_and_the_order_of_triples_mean_nothing(seed: int) -> None:
    for number in range(CASES):
        message, query = case(f"m{seed}/{number}")
        other = [renamed(quad) for quad in message]
        Random(number).shuffle(other)
        assert are_equal(found(query, message), found(query, other)), f"m{seed}/{number}"


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_query_that_was_written_and_read_has_the_same_solutions(seed: int) -> None:
    for number in range(CASES):
        message, query = case(f"w{seed}/{number}")
        again = parse_graph_query(unparse(query))
        in_xml = select(query.where, ResultSyntax.XML)
        assert are_equal(found(query, message), found(again, message)), f"w{seed}/{number}"
        assert are_equal(found(query, message), found(in_xml, message)), f"w{seed}/{number}"


def oxigraph_solutions(query: GraphQuery, message: list[pyoxigraph.Quad]) -> list[Solution]:
    store = pyoxigraph.Store()
    store.extend(message)
    answer = store.query(unparse(query))
    assert isinstance(answer, pyoxigraph.QuerySolutions)
    names = [each.value for each in answer.variables if not each.value.startswith("__")]
    return solutions_of_oxigraph({name: one[name] for name in names} for one in answer)


def rdflib_solutions(query: GraphQuery, message: list[pyoxigraph.Quad]) -> list[Solution]:
    """Without named graphs."""
    graph = rdflib.Graph()
    triples = [quad.triple for quad in message]
    text = pyoxigraph.serialize(triples, format=pyoxigraph.RdfFormat.N_TRIPLES)
    graph.parse(data=text, format="nt")
    rows = []
    for binding in graph.query(unparse(query)).bindings:
        named = {str(name): term_of_rdflib(term) for name, term in binding.items()}
        rows.append(frozenset(each for each in named.items() if not each[0].startswith("__")))
    return rows


def term_of_rdflib(term: object) -> Term:
    if isinstance(term, rdflib.URIRef):
        return ("uri", str(term), "")
    if isinstance(term, rdflib.BNode):
        return ("bnode", str(term), "")
    assert isinstance(term, rdflib.Literal)
    return literal(str(term), str(term.datatype or ""), term.language or "")


def renamed(quad: pyoxigraph.Quad) -> pyoxigraph.Quad:
    subject, thing = (
        pyoxigraph.BlankNode(f"x{each.value}") if isinstance(each, pyoxigraph.BlankNode) else each
        for each in (quad.subject, quad.object)
    )
    return pyoxigraph.Quad(subject, quad.predicate, thing, quad.graph_name)
