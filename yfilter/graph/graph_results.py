"""Does a graph profile match a message, and what is delivered of it?

SELECT delivers all solutions in one document, CONSTRUCT one graph, ASK the message: its graph, in
the syntax that was asked for.  Programs are kept, by the profile.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeAlias

from formats.element_stream import ElementStream
from yfilter.graph.construct import Triple, constructed, graph_text, message_text, template_columns
from yfilter.graph.join import MessageGraph
from yfilter.graph.join_program import JoinProgram
from yfilter.graph.query_ast import GraphQuery, QueryForm, ResultSyntax
from yfilter.graph.results_json import json_results
from yfilter.graph.results_xml import xml_results
from yfilter.graph.solutions import Solutions
from yfilter.graph.whole_query import whole_graph, whole_solutions, whole_truth
from yfilter.language.budget import Budget
from yfilter.language.profile_limits import EvaluationLimits

Message: TypeAlias = "ElementStream | MessageGraph"

_PROGRAMS_KEPT = 4_096
_programs: OrderedDict[int, tuple[GraphQuery, JoinProgram]] = OrderedDict()


def has_solution(query: GraphQuery, message: Message, limits: EvaluationLimits) -> bool:
    """Whether a message (striped) satisfies the pattern of a profile; of one with ``whole`` only
    the necessary part.  MatchLimitExceeded beyond the limits."""
    return program_of(query).holds(_graph(message), Budget(limits))


def graph_results(query: GraphQuery, message: Message, limits: EvaluationLimits) -> list[bytes]:
    """What is delivered of a message (striped): one result, or none where nothing is found.

    MatchLimitExceeded beyond the limits: solutions are tuples, results have bytes.
    """
    graph = _graph(message)
    budget = Budget(limits)
    match query.form:
        case QueryForm.SELECT:
            return _selected(query, graph, budget)
        case QueryForm.CONSTRUCT:
            triples = _constructed(query, graph, budget)
            return [graph_text(triples, query.results, budget)] if triples else []
        case QueryForm.ASK:
            return _asked(query, graph, budget)


def program_of(query: GraphQuery) -> JoinProgram:
    """The program of a profile, made once."""
    kept = _programs.get(id(query))
    if kept is not None and kept[0] is query:
        return kept[1]
    columns = query.variables
    if query.form is QueryForm.CONSTRUCT:
        columns = template_columns(query.template)
    program = JoinProgram(query.where, columns)
    _programs[id(query)] = (query, program)  # the profile is kept, so its id is nobody else's
    if len(_programs) > _PROGRAMS_KEPT:
        _programs.popitem(last=False)
    return program


def _graph(message: Message) -> MessageGraph:
    return message if isinstance(message, MessageGraph) else MessageGraph(message)


def _selected(query: GraphQuery, graph: MessageGraph, budget: Budget) -> list[bytes]:
    if query.whole:
        solutions = whole_solutions(query, graph, budget)
    else:
        solutions = _solutions(query, graph, budget)
        if query.is_distinct:
            solutions = solutions.distinct()
    if not solutions.rows:
        return []
    write = xml_results if query.results is ResultSyntax.XML else json_results
    return [write(solutions, budget)]


def _constructed(query: GraphQuery, graph: MessageGraph, budget: Budget) -> list[Triple]:
    if query.whole:
        return whole_graph(query, graph, budget)
    return constructed(query.template, _solutions(query, graph, budget), budget)


def _asked(query: GraphQuery, graph: MessageGraph, budget: Budget) -> list[bytes]:
    if query.whole:
        holds = whole_truth(query, graph, budget)
    else:
        holds = program_of(query).holds(graph, budget)
    if not holds:
        return []
    data = message_text(graph.stream, query.results)
    budget.charge_bytes(len(data))
    return [data]


def _solutions(query: GraphQuery, graph: MessageGraph, budget: Budget) -> Solutions:
    program = program_of(query)
    run = program.solutions(graph, budget)
    return Solutions(graph, program.columns, run.rows, run.extra)
