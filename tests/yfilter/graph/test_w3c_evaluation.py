"""The W3C's evaluation tests: whatever the language takes has the solutions that they say, by both
engines."""

from __future__ import annotations

import pyoxigraph
import pytest

from formats.element_stream import ElementStream
from tests.oracle.reference_answers import ReferenceGraph
from tests.yfilter.graph.messages import striped
from tests.yfilter.graph.solution_sets import (
    Solution,
    are_equal,
    solutions_of_json,
    solutions_of_oxigraph,
    solutions_of_xml,
)
from tests.yfilter.graph.w3c_suite import ARCHIVE, BASE, Case, cases, files, quads_of, result_set
from yfilter.errors import ProfileRefused
from yfilter.graph.graph_query import parse_graph_query
from yfilter.graph.query_ast import GraphQuery, QueryForm
from yfilter.graph_answers import graph_results, has_solution
from yfilter.language.profile_limits import EvaluationLimits

LIMITS = EvaluationLimits()
CASES = list(cases()) if ARCHIVE.exists() else []
NOT_TAKEN = {"unsupported"}  # FROM
OTHERWISE = {
    # Of two tests of one query with contradictory results the other one is what SPARQL says.
    "optional-filter: dawg-optional-filter-005-simplified": "simplifies before it translates",
    # What is answered by pyoxigraph is as it has it.
    "aggregates: COUNT: no GROUP BY inside of GRAPH": "an aggregate of a graph without solutions",
    "aggregates: GROUP_CONCAT with same language tag": "SPARQL 1.2: the language is kept",
    "aggregates: GROUP_CONCAT with one element": "SPARQL 1.2: the language is kept",
    "functions: BNODE(str)": "one blank node for all solutions",
    "functions: IRI()/URI()": "BASE does not reach functions",
    **{
        f"property-path: {path} with {end} being a constant on the empty dataset": "no such node"
        for path in "*?"
        for end in ("start", "end")
    },
}

ACCEPTED = 1_790_000_000_000_000  # microseconds, for NOW()

pytestmark = pytest.mark.skipif(not CASES, reason=f"{ARCHIVE} is not here")


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_solutions_are_those_of_the_w3c(case: Case, engine: str) -> None:
    if case.name in OTHERWISE:
        pytest.skip(OTHERWISE[case.name])
    query = query_of(case)
    message = message_of(case)
    if engine == "compiled":
        results, holds = graph_results(query, message, LIMITS), has_solution(query, message, LIMITS)
    else:
        graph = ReferenceGraph(message, LIMITS)
        results, holds = graph.results(query), graph.holds(query)
    expected, truth = expected_of(case)
    if query.form is QueryForm.ASK:
        assert bool(results) is truth
    elif query.form is QueryForm.CONSTRUCT:
        found = (
            list(pyoxigraph.parse(results[0], format=pyoxigraph.RdfFormat.N_TRIPLES))
            if results
            else []
        )
        assert canonical(found) == canonical(quads_of(case.result))
    else:
        solutions = [one for result in results for one in solutions_of_json(result)]
        if query.is_distinct or "REDUCED" not in files()[case.query].decode().upper():
            assert are_equal(solutions, expected), (solutions, expected)
        else:
            assert set(solutions) == set(expected)
        assert holds or not expected


def query_of(case: Case) -> GraphQuery:
    text = files()[case.query].decode()
    try:
        return parse_graph_query(text)
    except ProfileRefused:
        pass
    try:
        return parse_graph_query(f"BASE <{BASE}{case.query}>\n{text}")  # for relative IRIs
    except ProfileRefused as refused:
        assert refused.code in NOT_TAKEN
        pytest.skip(f"{refused.code}: {refused.reason}")


def message_of(case: Case) -> ElementStream:
    quads = [quad for path in case.data for quad in quads_of(path)]
    for name, path in case.graphs:
        quads += quads_of(path, name)
    message = striped(quads)
    message.accepted = ACCEPTED
    return message


def expected_of(case: Case) -> tuple[list[Solution], bool | None]:
    data = files()[case.result]
    if case.result.endswith(".srx"):
        return solutions_of_xml(data), b"<boolean>true" in data
    if case.result.endswith(".srj"):
        return solutions_of_json(data), None
    rows, truth = result_set(case.result)
    return solutions_of_oxigraph(rows), truth


def canonical(triples: object) -> pyoxigraph.Dataset:
    dataset = pyoxigraph.Dataset(
        pyoxigraph.Quad(each.subject, each.predicate, each.object)
        for each in triples  # type: ignore[attr-defined]
    )
    dataset.canonicalize(pyoxigraph.CanonicalizationAlgorithm.UNSTABLE)
    return dataset
