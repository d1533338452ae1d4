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
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

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
from yfilter.graph.query_text import unparse
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

    def __init__(self, stream: ElementStream) -> None:
        self._stream = stream
        try:
            self._stated = list(dict.fromkeys(triples_of(stream)))
            self._closed = list(closure_of(stream))
        except (KeyError, ValueError) as error:  # of a message that somebody has striped by hand
            raise MatchLimitExceeded("not-striped", f"no striped graph: {error}") from None
        self._literals: dict[Literal, Literal] = {}  # as they stand, by their values
        self._stores: dict[tuple[Quad, ...], Store] = {}

    def holds(self, query: GraphQuery, limits: EvaluationLimits) -> bool:
        """Whether there is a solution; of an ASK its answer."""
        if query.form is QueryForm.ASK:
            return bool(self._answer(query, Budget(limits)))
        return bool(self.results(query, limits))

    def results(self, query: GraphQuery, limits: EvaluationLimits) -> list[bytes]:
        """One result, or none where nothing is found."""
        budget = Budget(limits)
        answer = self._answer(query, budget)
        if isinstance(answer, pyoxigraph.QuerySolutions):
            return self._solutions(query, answer, budget)
        if isinstance(answer, pyoxigraph.QueryTriples):
            triples: dict[Triple, None] = {}
            for found in answer:
                budget.charge_tuple()
                subject, prop = self._term(found.subject), self._term(found.predicate)
                thing = self._term(found.object)
                assert subject is not None and isinstance(prop, Iri) and thing is not None
                triples[subject, prop, thing] = None
            return [graph_text(triples, query.results, budget)] if triples else []
        if not answer:
            return []
        data = message_text(self._stream, query.results)
        budget.charge_bytes(len(data))
        return [data]

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
            found = self._stores[key] = Store()
            found.extend((*self._stated, *more))
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

    def _term(self, term: object) -> GroundTerm | None:
        """A term of an answer, a number with the digits that it has in the message."""
        if isinstance(term, Literal) and term.datatype.value not in _KEPT:
            if not self._literals:
                self._literals = dict(self._as_stored())
            term = self._literals.get(term, term)
        return from_oxigraph(term)

    def _as_stored(self) -> Iterator[tuple[Literal, Literal]]:
        """The literals of the message, each by the literal that pyoxigraph makes of it."""
        for quad in reversed(self._stated):
            if isinstance(quad.object, Literal) and quad.object.datatype.value not in _KEPT:
                store = Store()
                store.add(quad)
                for kept in store:
                    assert isinstance(kept.object, Literal)
                    yield kept.object, quad.object

    def _solutions(
        self, query: GraphQuery, answer: pyoxigraph.QuerySolutions, budget: Budget
    ) -> list[bytes]:
        names = [column.name for column in query.variables]
        if query.whole:
            names = [column.value for column in answer.variables]
        rows = []
        for solution in answer:
            budget.charge_tuple()
            terms = ((name, self._term(solution[name])) for name in names)
            rows.append([(name, term) for name, term in terms if term is not None])
        if not rows:
            return []
        write = _xml_results if query.results is ResultSyntax.XML else _json_results
        data = write(names, rows)
        budget.charge_bytes(len(data))
        return [data]


_KEPT = frozenset((XSD + "string", RDF + "langString", XSD + "boolean"))
_Row = list[tuple[str, GroundTerm]]


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


def _json_results(names: list[str], rows: list[_Row]) -> bytes:
    found = [{name: _json_term(term) for name, term in row} for row in rows]
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


def _xml_results(names: list[str], rows: list[_Row]) -> bytes:
    head = "".join(f'<variable name="{escaped_value(name)}"/>' for name in names)
    found = "".join(f"<result>{''.join(map(_xml_binding, row))}</result>" for row in rows)
    return f"{_XML_HEAD}{head}</head><results>{found}</results></sparql>\n".encode()


def _xml_binding(bound: tuple[str, GroundTerm]) -> str:
    name, term = bound
    if isinstance(term, Iri):
        text = f"<uri>{_xml_text(term.value)}</uri>"
    elif isinstance(term, BlankNode):
        text = f"<bnode>{term.label}</bnode>"
    else:
        kind = ""
        if term.language:
            kind = f' xml:lang="{escaped_value(term.language)}"'
        elif term.datatype != XSD + "string":
            kind = f' datatype="{escaped_value(term.datatype)}"'
        text = f"<literal{kind}>{_xml_text(term.lexical)}</literal>"
    return f'<binding name="{escaped_value(name)}">{text}</binding>'


def _xml_text(text: str) -> str:
    return escaped_text(_NOT_XML.sub("\ufffd", text))
