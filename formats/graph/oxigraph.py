"""Graphs read by pyoxigraph, which does no I/O of its own: what it reads is the bytes it is given.

Its errors become MessageRefused, with the place where it says one.  A graph becomes N-Quads, within
pyoxigraph, which the scanner reads piece by piece.

PERF: 76 ms instead of 230 for half a megabyte with 60,000 triples; an object for each was most.
"""

from __future__ import annotations

from typing import IO, TypeAlias, cast

import pyoxigraph

from formats.errors import MessageRefused
from formats.graph import striping
from formats.graph.oxigraph_faults import refusal_of
from formats.graph.striping import GraphBuilder, Terms
from formats.graph.syntaxes import GraphSyntax
from formats.graph.writer import FORMATS

_Term: TypeAlias = (
    pyoxigraph.NamedNode | pyoxigraph.BlankNode | pyoxigraph.Literal | pyoxigraph.Triple
)
_NO_GRAPH = -1
_PIECE = 64 * 1024  # bytes of N-Quads that are scanned at once


def add_triples(
    builder: GraphBuilder, data: bytes, syntax: GraphSyntax, base: str | None = None
) -> None:
    """Add all triples of a graph to a builder.  ``base``: what relative IRIs are relative to.

    Raises MessageRefused: ``malformed``, ``relative-iri``, ``undeclared-prefix``,
    ``remote-context``, ``unknown-encoding``, ``triple-term``, ``text-direction`` and what the
    builder does not take.
    """
    lines = _Lines(builder)
    try:
        triples = pyoxigraph.parse(data, FORMATS[syntax], base_iri=base)
        pyoxigraph.serialize(triples, cast("IO[bytes]", lines), pyoxigraph.RdfFormat.N_QUADS)
        lines.scan()
    except SyntaxError as error:
        raise refusal_of(error) from None


class _Lines:
    """A file of N-Quads, which are scanned while they are written."""

    def __init__(self, builder: GraphBuilder) -> None:
        self._builder = builder
        self._waiting = bytearray()

    def write(self, data: bytes) -> int:
        self._waiting += data
        if len(self._waiting) >= _PIECE and b"\n" in data:
            self.scan()
        return len(data)

    def flush(self) -> None:
        """pyoxigraph calls it."""

    def scan(self) -> None:
        """All lines that are whole; those that are not ordinary one by one."""
        end = self._waiting.rfind(b"\n") + 1
        left = bytes(self._waiting[:end])
        del self._waiting[:end]
        try:
            while left := left[striping.scan_lines(left, self._builder) :]:
                line, _, left = left.partition(b"\n")
                _add_line(self._builder, line)
        except MessageRefused as refusal:  # with a place that nobody knows
            raise MessageRefused(refusal.code, refusal.reason) from None


def _add_line(builder: GraphBuilder, line: bytes) -> None:
    terms = builder.terms
    for quad in pyoxigraph.parse(line, pyoxigraph.RdfFormat.N_QUADS):
        graph = quad.graph_name
        builder.add(
            _number(terms, quad.subject),
            terms.iri(quad.predicate.value.encode()),
            _number(terms, quad.object),
            _NO_GRAPH if type(graph) is pyoxigraph.DefaultGraph else _number(terms, graph),
        )


def _number(terms: Terms, term: _Term) -> int:
    if isinstance(term, pyoxigraph.Triple):
        raise MessageRefused("triple-term", "a triple as a term (RDF 1.2) is not taken")
    number: int
    value = term.value.encode()
    if isinstance(term, pyoxigraph.NamedNode):
        number = terms.iri(value)
    elif isinstance(term, pyoxigraph.BlankNode):
        number = terms.blank(value)
    elif term.direction is not None:
        raise MessageRefused(
            "text-direction", "a string with the direction of its text (RDF 1.2) is not taken"
        )
    elif term.language is not None:
        number = terms.text(value, term.language.encode())
    else:
        number = terms.literal(value, terms.iri(term.datatype.value.encode()))
    return number
