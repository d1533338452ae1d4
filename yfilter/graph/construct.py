"""CONSTRUCT: the graph that a template makes of solutions, and how it is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeAlias

from formats.element_stream import ElementStream
from formats.errors import FormatError
from formats.graph.reader import read_graph
from formats.graph.syntaxes import GraphSyntax
from formats.graph.vocabulary import XSD
from formats.graph.writer import has_named_graphs, write_graph
from yfilter.errors import MatchLimitExceeded
from yfilter.graph import query_ast as sparql
from yfilter.language.budget import Budget

Triple: TypeAlias = "tuple[sparql.GroundTerm, sparql.Iri, sparql.GroundTerm]"


class FoundSolutions(Protocol):
    """Rows of term numbers, 0 for none, one a column; ``solutions.py``."""

    @property
    def columns(self) -> tuple[sparql.Variable, ...]: ...

    @property
    def rows(self) -> Sequence[tuple[int, ...]]: ...

    def term(self, number: int) -> sparql.GroundTerm: ...


_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})


def template_columns(template: Sequence[sparql.TriplePattern]) -> tuple[sparql.Variable, ...]:
    """The variables of a template that solutions bind, in order of first appearance."""
    places = (place for each in template for place in (each.subject, each.property, each.object))
    found = dict.fromkeys(place for place in places if isinstance(place, sparql.Variable))
    return tuple(each for each in found if not each.is_blank)


def constructed(
    template: Sequence[sparql.TriplePattern], solutions: FoundSolutions, budget: Budget
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
