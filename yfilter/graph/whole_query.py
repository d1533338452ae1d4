"""Queries that the tree of a graph profile does not say, answered by pyoxigraph on one message.

Nothing ends pyoxigraph before it has its first solution.  So who gives profiles slices of time
(EvaluationLimits.late_messages) never has such a query answered on the spot: ``too-much-time`` is
said at once, and so it goes to the process for what takes long (yfilter/late_process.py), which
ends with the query if that takes too long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import pyoxigraph

from formats.graph.writer import triples_of
from yfilter.errors import MatchLimitExceeded
from yfilter.graph.construct import Triple
from yfilter.graph.join import MessageGraph
from yfilter.graph.oxigraph_terms import from_oxigraph, to_oxigraph
from yfilter.graph.query_ast import INSTANCE_PROPERTY, GraphQuery, Iri, Variable
from yfilter.graph.solutions import Solutions, solutions_of
from yfilter.graph.terms import GroundTerm
from yfilter.language.budget import Budget, too_much_time

VISITS = 32  # of a triple that is loaded
_NO_KEYWORD = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|<[^<>\s]*>|[?$]\w+|\w*:\w*")
_SERVICE = re.compile(r"\bSERVICE\b", re.IGNORECASE)


def whole_solutions(query: GraphQuery, graph: MessageGraph, budget: Budget) -> Solutions:
    """The solutions of a SELECT."""
    answer = _answer(query, graph, budget)
    assert isinstance(answer, pyoxigraph.QuerySolutions)
    columns = [Variable(variable.value) for variable in answer.variables]
    return solutions_of(graph, columns, _rows(answer, len(columns), budget))


def whole_graph(query: GraphQuery, graph: MessageGraph, budget: Budget) -> list[Triple]:
    """The triples of a CONSTRUCT, each once."""
    answer = _answer(query, graph, budget)
    assert isinstance(answer, pyoxigraph.QueryTriples)
    triples: dict[Triple, None] = {}
    for found in answer:
        budget.charge_tuple()
        subject, prop, thing = map(from_oxigraph, (found.subject, found.predicate, found.object))
        assert subject is not None and isinstance(prop, Iri) and thing is not None
        triples[subject, prop, thing] = None
    return list(triples)


def whole_truth(query: GraphQuery, graph: MessageGraph, budget: Budget) -> bool:
    """The answer to an ASK."""
    return bool(_answer(query, graph, budget))


def _answer(query: GraphQuery, graph: MessageGraph, budget: Budget) -> object:
    if not budget.limits.is_final("too-much-time"):
        raise too_much_time(budget.limits)
    _check(query.whole)
    try:
        return _store(graph, INSTANCE_PROPERTY in query.whole, budget).query(query.whole)
    except (SyntaxError, OSError, ValueError) as error:  # the last: an IRI that it does not take
        raise MatchLimitExceeded("query-failed", f"a query cannot be answered: {error}") from error


def _store(graph: MessageGraph, with_classes: bool, budget: Budget) -> pyoxigraph.Store:
    """What a message states; and the classes of its subjects, for who asks for them."""
    found = graph.stores.get(with_classes)
    if found is None:
        budget.charge(VISITS * graph.stated.count)
        found = pyoxigraph.Store()
        found.extend(triples_of(graph.stream))
        if with_classes:
            found.extend(_classes(graph))
        graph.stores[with_classes] = found
    return found


def _classes(graph: MessageGraph) -> Iterator[pyoxigraph.Quad]:
    instance = pyoxigraph.NamedNode(INSTANCE_PROPERTY)
    for number, subject, _, above in graph.classes().statements():
        name = to_oxigraph(graph.term(number)) if number else pyoxigraph.DefaultGraph()
        node, thing = to_oxigraph(graph.term(subject)), to_oxigraph(graph.term(above))
        yield pyoxigraph.Quad(node, instance, thing, name)  # type: ignore[arg-type]


def _rows(
    answer: pyoxigraph.QuerySolutions, count: int, budget: Budget
) -> Iterator[list[GroundTerm | None]]:
    for solution in answer:
        budget.charge_tuple()
        yield [from_oxigraph(solution[place]) for place in range(count)]


@lru_cache
def _check(text: str) -> None:
    """A query asks nobody else: pyoxigraph would send requests for SERVICE."""
    if _SERVICE.search(_NO_KEYWORD.sub(" ", text)):
        raise MatchLimitExceeded("query-failed", "SERVICE is not answered")
