"""GraphAnswers: whether a message has a solution of a graph profile, and the results of it.

What was read of a message is kept as long as the same message is asked about: its triples as tables
(``MessageGraph``), and its text as it is delivered.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator
from json.encoder import encode_basestring
from typing import TypeAlias

import pyoxigraph

from formats.element_stream import ElementStream
from formats.escapes import escaped_text, escaped_value
from formats.graph.syntaxes import GraphSyntax
from formats.graph.writer import triples_of, write_graph
from yfilter.errors import MatchLimitExceeded
from yfilter.graph import query_ast as sparql
from yfilter.graph.join import KIND_BLANK, KIND_IRI, KIND_TAGGED, KIND_TYPED, MessageGraph, TermKey
from yfilter.graph.join_program import JoinProgram
from yfilter.graph.query_text import asked_at
from yfilter.graph.solutions import (
    RowLayout,
    Solutions,
    Triple,
    constructed,
    from_oxigraph,
    graph_text,
    message_text,
    published_syntax,
    solutions_of,
    template_columns,
    to_oxigraph,
)
from yfilter.language.budget import Budget, too_much_time
from yfilter.language.profile_limits import EvaluationLimits

# -------------------------------------------------------------------------------------------------
# Does a graph profile match a message, and what is delivered of it?
#
# SELECT delivers all solutions in one document, CONSTRUCT one graph, ASK the message: its graph, in
# the syntax that was asked for.  Programs are kept, by the profile.


# -------------------------------------------------------------------------------------------------
# SPARQL 1.1 Query Results JSON Format.


_SYNTAX = "json"
_IS_PLAIN = re.compile(rb'[^"\\\x00-\x1f]*+').fullmatch


def json_results(solutions: Solutions, budget: Budget) -> bytes:
    """All solutions as one document; MatchLimitExceeded if it is too large."""
    names = [encode_basestring(column.name).encode() for column in solutions.columns]
    layout = RowLayout(b"{", [name + b":" for name in names], b"", b",", b"}")
    rows = layout.rows(solutions.rows, solutions.written(_SYNTAX, _json_term), budget)
    head = b'{"head":{"vars":[' + b",".join(names) + b']},"results":{"bindings":['
    return head + b",".join(rows) + b"]}}"


def _json_term(key: TermKey) -> bytes:
    kind, _, tag, lexical = key
    value = _string(lexical)
    if kind == KIND_IRI:
        return b'{"type":"uri","value":%b}' % value
    if kind == KIND_BLANK:
        return b'{"type":"bnode","value":%b}' % value
    if kind == KIND_TAGGED:
        return b'{"type":"literal","value":%b,"xml:lang":%b}' % (value, _string(tag))
    if kind == KIND_TYPED:
        return b'{"type":"literal","value":%b,"datatype":%b}' % (value, _string(tag))
    return b'{"type":"literal","value":%b}' % value


def _string(text: bytes) -> bytes:
    if _IS_PLAIN(text) is not None:
        return b'"' + text + b'"'
    return encode_basestring(text.decode()).encode()


# -------------------------------------------------------------------------------------------------
# SPARQL Query Results XML Format.


_XML_SYNTAX = "xml"
_HEAD = '<?xml version="1.0"?>\n<sparql xmlns="http://www.w3.org/2005/sparql-results#"><head>'
# A profile may have a literal with characters that no XML text can hold; a message has none.
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_REPLACEMENT = "\ufffd"


def xml_results(solutions: Solutions, budget: Budget) -> bytes:
    """All solutions as one document; MatchLimitExceeded if it is too large."""
    names = [escaped_value(column.name) for column in solutions.columns]
    opens = [f'<binding name="{name}">'.encode() for name in names]
    layout = RowLayout(b"<result>", opens, b"</binding>", b"", b"</result>")
    rows = layout.rows(solutions.rows, solutions.written(_XML_SYNTAX, _xml_term), budget)
    head = "".join(f'<variable name="{name}"/>' for name in names)
    return b"".join([f"{_HEAD}{head}</head><results>".encode(), *rows, b"</results></sparql>\n"])


def _xml_term(key: TermKey) -> bytes:
    kind, _, tag, lexical = key
    value = escaped_text(_NOT_XML.sub(_REPLACEMENT, lexical.decode()))
    if kind == KIND_IRI:
        return f"<uri>{value}</uri>".encode()
    if kind == KIND_BLANK:
        return f"<bnode>{value}</bnode>".encode()
    if kind == KIND_TAGGED:
        return f'<literal xml:lang="{escaped_value(tag.decode())}">{value}</literal>'.encode()
    if kind == KIND_TYPED:
        return f'<literal datatype="{escaped_value(tag.decode())}">{value}</literal>'.encode()
    return f"<literal>{value}</literal>".encode()


# -------------------------------------------------------------------------------------------------
# Queries that the tree of a graph profile does not say, answered by pyoxigraph on one message.
#
# Nothing ends pyoxigraph before it has its first solution.  So who gives profiles slices of time
# (EvaluationLimits.late_messages) never has such a query answered on the spot: ``too-much-time`` is
# said at once, and so it goes to the process for what takes long (yfilter/late_process.py), which
# ends with the query if that takes too long.


VISITS = 32  # of a triple that is loaded


def whole_solutions(query: sparql.GraphQuery, graph: MessageGraph, budget: Budget) -> Solutions:
    """The solutions of a SELECT."""
    answer = _answer(query, graph, budget)
    assert isinstance(answer, pyoxigraph.QuerySolutions)
    columns = [sparql.Variable(variable.value) for variable in answer.variables]
    return solutions_of(graph, columns, _rows(answer, len(columns), budget))


def whole_graph(query: sparql.GraphQuery, graph: MessageGraph, budget: Budget) -> list[Triple]:
    """The triples of a CONSTRUCT, each once."""
    answer = _answer(query, graph, budget)
    assert isinstance(answer, pyoxigraph.QueryTriples)
    triples: dict[Triple, None] = {}
    for found in answer:
        budget.charge_tuple()
        subject, prop, thing = map(from_oxigraph, (found.subject, found.predicate, found.object))
        assert subject is not None and isinstance(prop, sparql.Iri) and thing is not None
        triples[subject, prop, thing] = None
    return list(triples)


def whole_truth(query: sparql.GraphQuery, graph: MessageGraph, budget: Budget) -> bool:
    """The answer to an ASK."""
    return bool(_answer(query, graph, budget))


def _answer(query: sparql.GraphQuery, graph: MessageGraph, budget: Budget) -> object:
    if not budget.limits.is_final("too-much-time"):
        raise too_much_time(budget.limits)
    text = asked_at(query.whole, graph.stream.accepted)
    try:
        return _store(graph, sparql.INSTANCE_PROPERTY in query.whole, budget).query(text)
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
    instance = pyoxigraph.NamedNode(sparql.INSTANCE_PROPERTY)
    for number, subject, _, above in graph.classes().statements():
        name = to_oxigraph(graph.term(number)) if number else pyoxigraph.DefaultGraph()
        node, thing = to_oxigraph(graph.term(subject)), to_oxigraph(graph.term(above))
        yield pyoxigraph.Quad(node, instance, thing, name)  # type: ignore[arg-type]


def _rows(
    answer: pyoxigraph.QuerySolutions, count: int, budget: Budget
) -> Iterator[list[sparql.GroundTerm | None]]:
    for solution in answer:
        budget.charge_tuple()
        yield [from_oxigraph(solution[place]) for place in range(count)]


# -------------------------------------------------------------------------------------------------


Message: TypeAlias = "ElementStream | MessageGraph"

_PROGRAMS_KEPT = 4_096
_programs: OrderedDict[int, tuple[sparql.GraphQuery, JoinProgram]] = OrderedDict()


def has_solution(query: sparql.GraphQuery, message: Message, limits: EvaluationLimits) -> bool:
    """Whether a message (striped) satisfies the pattern of a profile; of one with ``whole`` only
    the necessary part.  MatchLimitExceeded beyond the limits."""
    return program_of(query).holds(_graph(message), Budget(limits))


def graph_results(
    query: sparql.GraphQuery, message: Message, limits: EvaluationLimits
) -> list[bytes]:
    """What is delivered of a message (striped): one result, or none where nothing is found.

    MatchLimitExceeded beyond the limits: solutions are tuples, results have bytes.
    """
    graph = _graph(message)
    budget = Budget(limits)
    match query.form:
        case sparql.QueryForm.SELECT:
            return _selected(query, graph, budget)
        case sparql.QueryForm.CONSTRUCT:
            triples = _constructed(query, graph, budget)
            return [graph_text(triples, query.results, budget)] if triples else []
        case sparql.QueryForm.ASK:
            return _asked(query, graph, budget)


def program_of(query: sparql.GraphQuery) -> JoinProgram:
    """The program of a profile, made once."""
    kept = _programs.get(id(query))
    if kept is not None and kept[0] is query:
        return kept[1]
    columns = query.variables
    if query.form is sparql.QueryForm.CONSTRUCT:
        columns = template_columns(query.template)
    program = JoinProgram(query.where, columns)
    _programs[id(query)] = (query, program)  # the profile is kept, so its id is nobody else's
    if len(_programs) > _PROGRAMS_KEPT:
        _programs.popitem(last=False)
    return program


def _graph(message: Message) -> MessageGraph:
    return message if isinstance(message, MessageGraph) else MessageGraph(message)


def _selected(query: sparql.GraphQuery, graph: MessageGraph, budget: Budget) -> list[bytes]:
    if query.whole:
        solutions = whole_solutions(query, graph, budget)
    else:
        solutions = _solutions(query, graph, budget)
        if query.is_distinct:
            solutions = solutions.distinct()
    if not solutions.rows:
        return []
    write = xml_results if query.results is sparql.ResultSyntax.XML else json_results
    return [write(solutions, budget)]


def _constructed(query: sparql.GraphQuery, graph: MessageGraph, budget: Budget) -> list[Triple]:
    if query.whole:
        return whole_graph(query, graph, budget)
    return constructed(query.template, _solutions(query, graph, budget), budget)


def _asked(query: sparql.GraphQuery, graph: MessageGraph, budget: Budget) -> list[bytes]:
    if query.whole:
        holds = whole_truth(query, graph, budget)
    else:
        holds = program_of(query).holds(graph, budget)
    if not holds:
        return []
    data = message_text(graph.stream, query.results)
    budget.charge_bytes(len(data))
    return [data]


def _solutions(query: sparql.GraphQuery, graph: MessageGraph, budget: Budget) -> Solutions:
    program = program_of(query)
    run = program.solutions(graph, budget)
    return Solutions(graph, program.columns, run.rows, run.extra)


# -------------------------------------------------------------------------------------------------


class GraphAnswers:
    """Of striped streams; all raise MatchLimitExceeded beyond the limits."""

    def __init__(self, limits: EvaluationLimits) -> None:
        self._limits = limits
        self._stream: ElementStream | None = None
        self._graph: MessageGraph | None = None
        self._text = b""

    def has_results(self, query: sparql.GraphQuery, stream: ElementStream) -> bool:
        """Whether ``results`` gives any; for ASK, whether the message is one."""
        if query.whole or not query.always_constructs:
            return bool(self.results(query, stream))
        return has_solution(query, self._read(stream), self._limits)

    def results(self, query: sparql.GraphQuery, stream: ElementStream) -> list[bytes]:
        """The results; the message as it came as ``text`` has it."""
        return graph_results(query, self._read(stream), self._limits)

    def text(self, stream: ElementStream) -> bytes:
        """A message that was published as a graph, as it is delivered: N-Triples, or N-Quads where
        it has named graphs."""
        self._look_at(stream)
        if not self._text:
            self._text = write_graph(stream, self.syntax(stream))
        return self._text

    def syntax(self, stream: ElementStream) -> GraphSyntax:
        """In which ``text`` is."""
        return published_syntax(stream)

    def _read(self, stream: ElementStream) -> MessageGraph:
        self._look_at(stream)
        if self._graph is None:
            self._graph = MessageGraph(stream)
        return self._graph

    def _look_at(self, stream: ElementStream) -> None:
        if stream is not self._stream:
            self._stream, self._graph, self._text = stream, None, b""
