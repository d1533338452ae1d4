"""GraphAnswers: whether a message has a solution of a graph profile, and the results of it.

What was read of a message is kept as long as the same message is asked about: its triples as tables
(``MessageGraph``), and its text as it is delivered.
"""

from __future__ import annotations

from formats.element_stream import ElementStream
from formats.graph.syntaxes import GraphSyntax
from formats.graph.writer import write_graph
from yfilter.graph.certain_template import always_constructs
from yfilter.graph.construct import published_syntax
from yfilter.graph.graph_results import graph_results, has_solution
from yfilter.graph.join import MessageGraph
from yfilter.graph.query_ast import GraphQuery
from yfilter.language.profile_limits import EvaluationLimits


class GraphAnswers:
    """Of striped streams; all raise MatchLimitExceeded beyond the limits."""

    def __init__(self, limits: EvaluationLimits) -> None:
        self._limits = limits
        self._stream: ElementStream | None = None
        self._graph: MessageGraph | None = None
        self._text = b""

    def has_results(self, query: GraphQuery, stream: ElementStream) -> bool:
        """Whether ``results`` gives any; for ASK, whether the message is one."""
        if query.whole or not always_constructs(query):
            return bool(self.results(query, stream))
        return has_solution(query, self._read(stream), self._limits)

    def results(self, query: GraphQuery, stream: ElementStream) -> list[bytes]:
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
