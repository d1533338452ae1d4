"""What a graph profile's result takes: the first solution of a message, and each further one.

Both profiles join two stars.  One has a single solution, the other one for each triple; what the
second takes more, over its solutions but one, is what each further one takes.  Each is asked of a
message whose terms nobody has written yet.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import thread_time_ns

import pyoxigraph

from benchmarks.benchmark import WrongAnswers
from benchmarks.graph.catalogue import Catalogue, written
from benchmarks.report import Report
from benchmarks.samples import mean
from formats import GraphSyntax, read_graph
from yfilter.graph.graph_query import parse_graph_query
from yfilter.graph.join import MessageGraph
from yfilter.graph_answers import graph_results, has_solution, program_of
from yfilter.language.budget import Budget
from yfilter.language.profile_limits import EvaluationLimits

_ALL = "SELECT ?s ?p ?o ?t WHERE { ?s ?p ?o . ?s a ?t }"
_LIMITS = EvaluationLimits()


def measure_results(report: Report, options: argparse.Namespace) -> None:
    """Adds ``message_graph_us``, ``candidate_us``, ``first_result_us``, ``further_solution_us``."""
    catalogue = Catalogue(options.seed)
    times: dict[str, list[float]] = {name: [] for name in _LABELS}
    for number in range(options.messages):
        message = catalogue.message(number)
        for name, found in _measured(number, message, options.rounds).items():
            times[name].append(found)
    for name, label in _LABELS.items():
        report.figure(f"{name}_us", label, mean(times[name]), "us")


_LABELS = {
    "message_graph": "a message's terms and triples as numbers, once for all profiles",
    "candidate": "whether a candidate has a solution",
    "first_result": "the result of a profile with one solution",
    "further_solution": "each further solution",
}


def _measured(number: int, message: list[pyoxigraph.Quad], rounds: int) -> dict[str, float]:
    """Microseconds, by name."""
    stream = read_graph(written(message, pyoxigraph.RdfFormat.N_TRIPLES), GraphSyntax.N_TRIPLES)
    one, every = parse_graph_query(_about_one(message)), parse_graph_query(_ALL)
    counts = [
        len(program_of(query).solutions(MessageGraph(stream), Budget(_LIMITS)).rows)
        for query in (one, every)
    ]
    if counts != [1, len(message)]:
        raise WrongAnswers(f"message {number}: {counts} solutions, not 1 and {len(message)}")
    graphs = [MessageGraph(stream) for _ in range(3 * rounds)]
    first = _quickest(lambda: graph_results(one, graphs.pop(), _LIMITS), rounds)
    all_of_them = _quickest(lambda: graph_results(every, graphs.pop(), _LIMITS), rounds)
    return {
        "message_graph": _quickest(lambda: MessageGraph(stream), rounds),
        "candidate": _quickest(lambda: has_solution(one, graphs[0], _LIMITS), rounds),
        "first_result": first,
        "further_solution": (all_of_them - first) / (len(message) - 1),
    }


def _about_one(message: list[pyoxigraph.Quad]) -> str:
    """A query with one solution: of a reference that stands once, and the type of its subject."""
    objects = [quad.object for quad in message]
    reference = next(
        quad
        for quad in message
        if isinstance(quad.object, pyoxigraph.NamedNode)
        and quad.predicate.value.partition("prop/rel")[1]
        and objects.count(quad.object) == 1
    )
    return f"SELECT ?s ?t WHERE {{ ?s {reference.predicate} {reference.object} . ?s a ?t }}"


def _quickest(work: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = thread_time_ns()
        work()
        times.append(thread_time_ns() - start)
    return min(times) / 1000
