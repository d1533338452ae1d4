"""ReferenceGraph: graph profiles on one message, as standard SPARQL that pyoxigraph answers.

A pattern that asks for the taxonomies asks for a property of its own instead, of which the store
has a triple for each that the message's closure gives::

    ?s a/rdfs:subClassOf* <c>                  ?s <urn:onyx:reference:instance> <c>
    ?s a/^rdfs:subClassOf* <c>                 ?s <urn:onyx:reference:one-of:0> <c>
    ?s ?p ?o . ?p rdfs:subPropertyOf* <q>      ?s ?x ?o, ?x: <urn:onyx:reference:below:0:p>

No other pattern of such a query sees these properties.  pyoxigraph keeps the value of a number and
not its digits; results have the literal of the message where it is known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

import pyoxigraph
from pyoxigraph import Literal, NamedNode, Quad, Store

from formats.element_stream import ElementStream
from formats.escapes import escaped_text, escaped_value
from formats.graph import striped
from formats.graph.vocabulary import RDF, RDF_TYPE, XSD
from formats.graph.writer import closure_of, triples_of
from yfilter.errors import MatchLimitExceeded
from yfilter.graph.construct import Triple, graph_text, message_text
from yfilter.graph.oxigraph_terms import from_oxigraph
from yfilter.graph.query_ast import (
    INSTANCE_PROPERTY,
    Bind,
    Closure,
    Filter,
    FilterCall,
    GraphQuery,
    Group,
    Iri,
    LiteralTerm,
    Not,
    QueryForm,
    ResultSyntax,
    TriplePattern,
    Variable,
)
from yfilter.graph.query_text import term_text, unparse
from yfilter.graph.terms import BlankNode, GroundTerm
from yfilter.language.budget import Budget, too_much_time
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.trees import changed, nodes_of

AT_ONCE_MAX = 1_000_000  # combinations of triples that a query may look at in a slice of time

_OWN = "urn:onyx:reference:"
_INSTANCE = f"{_OWN}instance"
_TYPE = NamedNode(RDF_TYPE)
_NO_KEYWORD = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|<[^<>\s]*>|[?$]\w+|\w*:\w*")
_SERVICE = re.compile(r"\bSERVICE\b", re.IGNORECASE)
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_XML_HEAD = '<?xml version="1.0"?>\n<sparql xmlns="http://www.w3.org/2005/sparql-results#"><head>'
_VISITS = 32  # of a triple that is loaded


class ReferenceGraph:
    """The graph of one message (striped); all raise MatchLimitExceeded beyond the limits."""

    def __init__(self, stream: ElementStream, limits: EvaluationLimits) -> None:
        self._stream = stream
        self._limits = limits
        try:
            self._stated = list(dict.fromkeys(triples_of(stream)))
            self._closed = list(closure_of(stream))
        except (KeyError, ValueError) as error:  # of a message that somebody has striped by hand
            raise MatchLimitExceeded("not-striped", f"no striped graph: {error}") from None
        self._literals: dict[Literal, Literal] | None = None  # as they stand, by their values
        self._stores: dict[tuple[Quad, ...], Store] = {}

    def holds(self, query: GraphQuery) -> bool:
        """Whether there is a solution; of an ASK its answer."""
        if query.form is QueryForm.ASK:
            return bool(self._answer(query, Budget(self._limits)))
        return bool(self.results(query))

    def count(self, query: GraphQuery) -> int:
        """How many results there are."""
        return len(self.results(query))

    def solutions(self, group: Group, columns: Sequence[Variable]) -> tuple[int, list[_Row]]:
        """How many solutions a group has, and these."""
        query = GraphQuery(QueryForm.SELECT, group, tuple(columns))
        budget = Budget(self._limits)
        rows = self._rows(
            self._answer(query, budget), [term_text(one)[1:] for one in columns], budget
        )
        return len(rows), rows

    def results(self, query: GraphQuery) -> list[bytes]:
        """One result, or none where nothing is found."""
        budget = Budget(self._limits)
        answer = self._answer(query, budget)
        if isinstance(answer, pyoxigraph.QueryTriples):
            triples: dict[Triple, None] = {}
            for found in answer:
                budget.charge_tuple()
                subject, prop, thing = map(self._term, found)
                assert subject is not None and isinstance(prop, Iri) and thing is not None
                triples[subject, prop, thing] = None
            return [graph_text(triples, query.results, budget)] if triples else []
        if isinstance(answer, pyoxigraph.QuerySolutions):
            names = [column.name for column in query.variables]
            if query.whole:
                names = [column.value for column in answer.variables]
            rows = self._rows(answer, names, budget)
            write = _xml_results if query.results is ResultSyntax.XML else _json_results
            data = write(names, rows) if rows else b""
        else:
            data = message_text(self._stream, query.results) if answer else b""
        budget.charge_bytes(len(data))
        return [data] if data else []

    def _answer(self, query: GraphQuery, budget: Budget) -> object:
        text, closures = _asked(query)
        more: list[Quad] = []
        for pattern, name in closures:
            more += self._made_for(pattern, name)
        if INSTANCE_PROPERTY in query.whole:
            more += self._classes(INSTANCE_PROPERTY)
        size = len(self._stated) + len(more)
        patterns = sum(isinstance(node, TriplePattern) for node in nodes_of(query.where))
        if not budget.limits.is_final("too-much-time") and (
            query.whole or size ** max(patterns, 1) > AT_ONCE_MAX
        ):
            raise too_much_time(budget.limits)
        budget.charge(_VISITS * size)
        try:
            return self._store(more).query(text)
        except (SyntaxError, OSError, RuntimeError, ValueError) as error:
            reason = f"a query cannot be answered: {error}"
            raise MatchLimitExceeded("query-failed", reason) from error

    def _store(self, more: list[Quad]) -> Store:
        """The triples of the message and some more."""
        key = tuple(more)
        found = self._stores.get(key)
        if found is None:
            found = Store()
            found.extend((*self._stated, *more))
            self._stores[key] = found
        return found

    # -- closures

    def _made_for(self, pattern: TriplePattern, name: str) -> Iterable[Quad]:
        """The triples that stand for a closure under a property of this name."""
        match pattern.closure:
            case Closure.INSTANCE:
                return self._classes(name)
            case Closure.INSTANCE_ABOVE:
                return self._of_classes(pattern, name)
            case _:
                return self._below(pattern.above, name)

    def _classes(self, name: str, *, own_only: bool = False) -> list[Quad]:
        """Each subject with its classes, and unless only its own are asked for those above."""
        stated = [quad for quad in self._stated if quad.predicate == _TYPE]
        closed = [
            quad
            for kind, quad, is_own in self._closed
            if kind == striped.CLASS and (is_own or not own_only)
        ]
        return [_renamed(quad, name) for quad in dict.fromkeys((*stated, *closed))]

    def _of_classes(self, pattern: TriplePattern, name: str) -> list[Quad]:
        """Each subject of one of the classes of a pattern, under the one that it names."""
        assert isinstance(pattern.object, Iri)
        asked = NamedNode(pattern.object.value)
        wanted = {asked, *map(NamedNode, pattern.classes)}
        found = [quad for quad in self._classes(name, own_only=True) if quad.object in wanted]
        of_asked = (Quad(one.subject, one.predicate, asked, one.graph_name) for one in found)
        return list(dict.fromkeys(of_asked))

    def _below(self, above: str, name: str) -> list[Quad]:
        """Each triple of a property that is the one asked for, or below it."""
        stated = [quad for quad in self._stated if quad.predicate.value == above]
        between: dict[object, list[Quad]] = {}
        for quad in self._stated:
            key = quad.subject, quad.object, quad.graph_name
            between.setdefault(key, []).append(quad)
        for kind, quad, _ in self._closed:
            if kind != striped.CLASS and quad.predicate.value == above:
                for below in between.get((quad.subject, quad.object, quad.graph_name), ()):
                    is_numbered = below.predicate.value.startswith(f"{RDF}_")
                    if kind != striped.MEMBER or is_numbered:
                        stated.append(below)
        return [_renamed(quad, name + quad.predicate.value) for quad in dict.fromkeys(stated)]

    # -- terms

    def _rows(self, answer: object, names: Sequence[str], budget: Budget) -> list[_Row]:
        assert isinstance(answer, pyoxigraph.QuerySolutions)
        rows = []
        for solution in answer:
            budget.charge_tuple()
            rows.append([self._term(solution[name]) for name in names])
        return rows

    def _term(self, term: object) -> GroundTerm | None:
        """A term of an answer, a number with the digits that it has in the message."""
        if isinstance(term, Literal) and term.datatype.value not in _KEPT:
            if self._literals is None:
                self._literals = self._as_stored()
            term = self._literals.get(term, term)
        return from_oxigraph(term)

    def _as_stored(self) -> dict[Literal, Literal]:
        """The literals of the message, each by the literal that pyoxigraph makes of it; of several
        the first."""
        literals = [quad.object for quad in self._stated if isinstance(quad.object, Literal)]
        store = Store()
        store.extend(
            Quad(NamedNode(f"{_OWN}{place}"), _TYPE, one) for place, one in enumerate(literals)
        )
        stored = {str(quad.subject.value): quad.object for quad in store}
        found: dict[Literal, Literal] = {}
        for place, one in enumerate(literals):
            kept = stored[f"{_OWN}{place}"]
            assert isinstance(kept, Literal)
            found.setdefault(kept, one)
        return found


_KEPT = frozenset((XSD + "string", RDF + "langString", XSD + "boolean"))
_Row: TypeAlias = "list[GroundTerm | None]"


def _renamed(quad: Quad, name: str) -> Quad:
    return Quad(quad.subject, NamedNode(name), quad.object, quad.graph_name)


@lru_cache(maxsize=4096)
def _asked(query: GraphQuery) -> tuple[str, tuple[tuple[TriplePattern, str], ...]]:
    """The text of a query, with the patterns of which each has a property of its own instead."""
    if query.whole:
        if _SERVICE.search(_NO_KEYWORD.sub(" ", query.whole)):
            raise MatchLimitExceeded("query-failed", "SERVICE is not answered")
        return query.whole, ()
    closures: dict[TriplePattern, str] = {}
    for node in nodes_of(query.where):
        if isinstance(node, TriplePattern) and node.closure is not Closure.NONE:
            closures.setdefault(node, _name_of(node, len(closures)))
    if not closures:
        return unparse(query), ()

    def change(node: object) -> object:
        if not isinstance(node, TriplePattern):
            return node
        if node in closures:
            return _instead(node, closures[node])
        return _without_own(node) if isinstance(node.property, Variable) else node

    return unparse(replace(query, where=changed(query.where, change))), tuple(closures.items())


def _name_of(pattern: TriplePattern, number: int) -> str:
    match pattern.closure:
        case Closure.INSTANCE:
            return _INSTANCE
        case Closure.INSTANCE_ABOVE:
            return f"{_OWN}one-of:{number}"
        case _:
            return f"{_OWN}below:{number}:"


def _instead(pattern: TriplePattern, name: str) -> TriplePattern | Group:
    """The pattern that asks for the property of its own."""
    if pattern.closure is not Closure.PROPERTY:
        return TriplePattern(pattern.subject, Iri(name), pattern.object)
    helper = Variable(f"reference{name.split(':')[-2]}")
    asked = TriplePattern(pattern.subject, helper, pattern.object)
    text = FilterCall("str", (helper,))
    prefix = LiteralTerm(name)
    assert isinstance(pattern.property, Variable)
    below = FilterCall("iri", (FilterCall("strafter", (text, prefix)),))
    return Group(
        (asked, Filter(FilterCall("strstarts", (text, prefix))), Bind(below, pattern.property))
    )


def _without_own(pattern: TriplePattern) -> Group:
    """A pattern of any property, which sees only those of the message."""
    assert isinstance(pattern.property, Variable)
    text = FilterCall("str", (pattern.property,))
    return Group((pattern, Filter(Not(FilterCall("strstarts", (text, LiteralTerm(_OWN)))))))


def _json_results(names: Sequence[str], rows: list[_Row]) -> bytes:
    found = [
        {name: _json_term(term) for name, term in zip(names, row, strict=True) if term is not None}
        for row in rows
    ]
    document = {"head": {"vars": names}, "results": {"bindings": found}}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _json_term(term: GroundTerm) -> dict[str, str]:
    if isinstance(term, Iri):
        return {"type": "uri", "value": term.value}
    if isinstance(term, BlankNode):
        return {"type": "bnode", "value": term.label}
    said = {"type": "literal", "value": term.lexical}
    if term.language:
        return {**said, "xml:lang": term.language}
    return said if term.datatype == XSD + "string" else {**said, "datatype": term.datatype}


def _xml_results(names: Sequence[str], rows: list[_Row]) -> bytes:
    head = "".join(f'<variable name="{escaped_value(name)}"/>' for name in names)
    found = []
    for row in rows:
        bound = [(name, term) for name, term in zip(names, row, strict=True) if term is not None]
        told = (f'<binding name="{name}">{_xml_term(term)}</binding>' for name, term in bound)
        found.append(f"<result>{''.join(told)}</result>")
    return f"{_XML_HEAD}{head}</head><results>{''.join(found)}</results></sparql>\n".encode()


def _xml_term(term: GroundTerm) -> str:
    if isinstance(term, Iri):
        return f"<uri>{_xml_text(term.value)}</uri>"
    if isinstance(term, BlankNode):
        return f"<bnode>{term.label}</bnode>"
    kind = ""
    if term.language:
        kind = f' xml:lang="{escaped_value(term.language)}"'
    elif term.datatype != XSD + "string":
        kind = f' datatype="{escaped_value(term.datatype)}"'
    return f"<literal{kind}>{_xml_text(term.lexical)}</literal>"


def _xml_text(text: str) -> str:
    return escaped_text(_NOT_XML.sub("\ufffd", text))
