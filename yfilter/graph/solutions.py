"""Solutions: what a pattern binds in one message, and what writers of results keep of terms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

import pyoxigraph

from formats.element_stream import ElementStream
from formats.errors import FormatError
from formats.graph.reader import read_graph
from formats.graph.syntaxes import GraphSyntax
from formats.graph.vocabulary import XSD
from formats.graph.writer import has_named_graphs, write_graph
from yfilter.errors import MatchLimitExceeded
from yfilter.graph import query_ast as sparql
from yfilter.graph.join import (
    BLANK_LETTER,
    KIND_BLANK,
    MessageGraph,
    TermKey,
    key_of,
)
from yfilter.graph.query_ast import GroundTerm, Iri
from yfilter.language.budget import Budget

_EXTRA_FIRST = -2
_LETTER = BLANK_LETTER.encode()
_CHARGED = 4096  # bytes that are charged at once


@dataclass(frozen=True)
class Solutions:
    """``rows``: a term's number for each of ``columns``, 0 for none; those from -2 down are terms
    of ``extra``, which the message does not have."""

    graph: MessageGraph
    columns: tuple[sparql.Variable, ...]
    rows: Sequence[tuple[int, ...]]
    extra: Sequence[GroundTerm]

    def term(self, number: int) -> GroundTerm:
        """The term of a number."""
        return self.graph.term(number) if number > 0 else self.extra[_EXTRA_FIRST - number]

    def _key(self, number: int) -> TermKey:
        if number < 0:
            return key_of(self.extra[_EXTRA_FIRST - number])
        kind, tag_kind, tag, lexical = self.graph.key(number)
        if kind == KIND_BLANK:
            lexical = _LETTER + lexical
        return kind, tag_kind, tag, lexical

    def written(self, syntax: str, write: Callable[[TermKey], bytes]) -> dict[int, bytes]:
        """All terms of the rows by their numbers, 0 left out; those of the message are written
        once for all who ask for this syntax."""
        shared = self.graph.written.setdefault(syntax, {})
        texts = {}
        for number in set(chain.from_iterable(self.rows)):
            text = shared.get(number)
            if text is None and number:
                text = write(self._key(number))
                if number > 0:
                    shared[number] = text
            if text is not None:
                texts[number] = text
        return texts

    def distinct(self) -> Solutions:
        """Each row once, in the order of the first."""
        rows = list(dict.fromkeys(self.rows))
        return Solutions(self.graph, self.columns, rows, self.extra)


@dataclass(frozen=True)
class RowLayout:
    """How a row is written: ``before`` and ``after`` each term, ``separator`` between two."""

    opening: bytes
    before: Sequence[bytes]
    after: bytes
    separator: bytes
    closing: bytes

    def rows(
        self, rows: Iterable[tuple[int, ...]], texts: dict[int, bytes], budget: Budget
    ) -> list[bytes]:
        """The rows with the texts of their terms, what is unbound left out; MatchLimitExceeded if
        they are too large."""
        # PERF: most rows bind all columns, and are filled in at once; benchmarks graph.
        places = [before.replace(b"%", b"%%") + b"%b" + self.after for before in self.before]
        full = self.opening + self.separator.join(places) + self.closing
        written = []
        size = 0
        for row in rows:
            if 0 in row:
                bound = zip(self.before, row, strict=True)
                fields = [each + texts[number] + self.after for each, number in bound if number]
                text = self.opening + self.separator.join(fields) + self.closing
            else:
                text = full % tuple([texts[number] for number in row])
            written.append(text)
            size += len(text)
            if size > _CHARGED:
                budget.charge_bytes(size)
                size = 0
        budget.charge_bytes(size)
        return written


def solutions_of(
    graph: MessageGraph,
    columns: Sequence[sparql.Variable],
    found: Iterable[Sequence[GroundTerm | None]],
) -> Solutions:
    """Solutions that somebody else has found, as terms."""
    numbers: dict[GroundTerm | None, int] = {None: 0}
    extra: list[GroundTerm] = []
    rows = []
    for terms in found:
        for term in terms:
            if term is not None and term not in numbers:
                numbers[term] = _EXTRA_FIRST - len(extra)
                extra.append(term)
        rows.append(tuple(numbers[term] for term in terms))
    return Solutions(graph, tuple(columns), rows, extra)


# -------------------------------------------------------------------------------------------------
# CONSTRUCT: the graph that a template makes of solutions, and how it is written.


Triple: TypeAlias = "tuple[sparql.GroundTerm, sparql.Iri, sparql.GroundTerm]"


_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})


def template_columns(template: Sequence[sparql.TriplePattern]) -> tuple[sparql.Variable, ...]:
    """The variables of a template that solutions bind, in order of first appearance."""
    places = (place for each in template for place in (each.subject, each.property, each.object))
    found = dict.fromkeys(place for place in places if isinstance(place, sparql.Variable))
    return tuple(each for each in found if not each.is_blank)


def constructed(
    template: Sequence[sparql.TriplePattern], solutions: Solutions, budget: Budget
) -> list[Triple]:
    """The triples, each once.  Blank nodes of the template are new for each solution; what is no
    triple (an unbound variable, a literal as a subject) is left out."""
    triples: dict[Triple, None] = {}
    for number, row in enumerate(solutions.rows):
        bound = {
            column: solutions.term(place)
            for column, place in zip(solutions.columns, row, strict=True)
            if place
        }
        for pattern in template:
            budget.charge()
            triple = _triple(pattern, bound, number)
            if triple is not None:
                triples[triple] = None
    return list(triples)


def graph_text(triples: Iterable[Triple], syntax: sparql.ResultSyntax, budget: Budget) -> bytes:
    """A graph in a syntax of graphs; MatchLimitExceeded if it is too large, or where RDF/XML has no
    name for a property (``not-writable``)."""
    written = b"".join(_lines(triples, budget))
    if syntax is sparql.ResultSyntax.N_TRIPLES:
        return written
    try:
        return message_text(read_graph(written, GraphSyntax.N_TRIPLES), syntax)
    except FormatError as error:
        raise _not_writable(error.reason) from None


def published_syntax(stream: ElementStream) -> GraphSyntax:
    """In which a message (striped) is delivered as it came."""
    return GraphSyntax.N_QUADS if has_named_graphs(stream) else GraphSyntax.N_TRIPLES


def message_text(stream: ElementStream, syntax: sparql.ResultSyntax) -> bytes:
    """A message (striped) in a syntax of graphs.  MatchLimitExceeded where that cannot say it."""
    is_named = syntax is not sparql.ResultSyntax.AS_PUBLISHED
    wanted = GraphSyntax(syntax) if is_named else published_syntax(stream)
    try:
        return write_graph(stream, wanted)
    except FormatError as error:
        raise _not_writable(error.reason) from None


def _not_writable(reason: str) -> MatchLimitExceeded:
    return MatchLimitExceeded("not-writable", f"a result cannot be written: {reason}")


def _triple(
    pattern: sparql.TriplePattern, bound: dict[sparql.Variable, sparql.GroundTerm], number: int
) -> Triple | None:
    subject = _filled(pattern.subject, bound, number)
    prop = _filled(pattern.property, bound, number)
    thing = _filled(pattern.object, bound, number)
    if subject is None or isinstance(subject, sparql.LiteralTerm) or thing is None:
        return None
    return (subject, prop, thing) if isinstance(prop, sparql.Iri) else None


def _filled(
    term: sparql.Term, bound: dict[sparql.Variable, sparql.GroundTerm], number: int
) -> sparql.GroundTerm | None:
    if not isinstance(term, sparql.Variable):
        return term
    if term.is_blank:
        return sparql.BlankNode(f"n{number}_{term.name.removeprefix('_:')}")
    return bound.get(term)


def _lines(triples: Iterable[Triple], budget: Budget) -> Iterator[bytes]:
    for triple in triples:
        line = f"{' '.join(map(term_text, triple))} .\n".encode()
        budget.charge_bytes(len(line))
        yield line


def term_text(term: sparql.GroundTerm) -> str:
    """A term as N-Triples has it."""
    if isinstance(term, sparql.Iri):
        return f"<{term.value}>"
    if isinstance(term, sparql.BlankNode):
        return f"_:{term.label}"
    text = f'"{term.lexical.translate(_ESCAPES)}"'
    if term.language:
        return f"{text}@{term.language}"
    return text if term.datatype == XSD + "string" else f"{text}^^<{term.datatype}>"


# -------------------------------------------------------------------------------------------------
# Terms to those of pyoxigraph and back.


def to_oxigraph(
    term: GroundTerm,
) -> pyoxigraph.NamedNode | pyoxigraph.BlankNode | pyoxigraph.Literal:
    """ValueError for an IRI that is none."""
    if isinstance(term, Iri):
        return pyoxigraph.NamedNode(term.value)
    if isinstance(term, sparql.BlankNode):
        return pyoxigraph.BlankNode(term.label)
    if term.language:
        return pyoxigraph.Literal(term.lexical, language=term.language)
    return pyoxigraph.Literal(term.lexical, datatype=pyoxigraph.NamedNode(term.datatype))


def from_oxigraph(term: object) -> GroundTerm | None:
    """None for what a message's graph cannot have."""
    if isinstance(term, pyoxigraph.NamedNode):
        return Iri(term.value)
    if isinstance(term, pyoxigraph.BlankNode):
        return sparql.BlankNode(term.value)
    if isinstance(term, pyoxigraph.Literal):
        if term.language:
            return sparql.LiteralTerm(term.value, language=term.language)
        return sparql.LiteralTerm(term.value, term.datatype.value)
    return None
