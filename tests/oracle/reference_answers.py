"""ReferenceGraph: graph profiles on one message, as standard SPARQL that pyoxigraph answers.

A pattern that asks for the taxonomies asks for a property of its own instead, of which the store
has a triple for each that the message's closure gives::

    ?s a/rdfs:subClassOf* <c>                  ?s <urn:onyx:reference:instance> <c>
    ?s a/^rdfs:subClassOf* <c>                 ?s <urn:onyx:reference:one-of:0> <c>
    ?s ?p ?o . ?p rdfs:subPropertyOf* <q>      ?s ?x ?o, ?x: <urn:onyx:reference:below:0:p>

No other pattern of such a query sees these properties.

Where pyoxigraph does not say what SPARQL 1.1 says, it is asked something else:

- It keeps the value of a number and not its digits.  A literal that it would change has a datatype
  of its own in the store and in patterns, and filters look at the literal itself.
- It finds a date with a time zone unequal to one without, and orders terms that are equal whatever
  they are, where SPARQL has errors.
- It binds the variable of GRAPH before its group is evaluated.  The group is evaluated with another
  variable, and a triple with <urn:onyx:reference:graph> joins the two.

Queries of which the whole text is kept are asked as they are, by the compiled engine too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeAlias

import pyoxigraph
from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad, Store

from formats.element_stream import ElementStream
from formats.escapes import escaped_text, escaped_value
from formats.graph import striped
from formats.graph.vocabulary import RDF, RDF_TYPE, XSD
from formats.graph.writer import closure_of, triples_of
from yfilter.errors import MatchLimitExceeded
from yfilter.graph.group_variables import possible
from yfilter.graph.query_ast import (
    INSTANCE_PROPERTY,
    Bind,
    BlankNode,
    Closure,
    Exists,
    Filter,
    GraphQuery,
    GroundTerm,
    Group,
    GroupElement,
    InGraph,
    Iri,
    LiteralTerm,
    Membership,
    Minus,
    QueryForm,
    ResultSyntax,
    TriplePattern,
    Variable,
    negation,
)
from yfilter.graph.query_text import asked_at, term_text, unparse
from yfilter.graph.solutions import Triple, from_oxigraph, graph_text, message_text
from yfilter.language import query_ast as ast
from yfilter.language.budget import Budget, too_much_time
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.query_ast import Operator
from yfilter.language.trees import changed, nodes_of, parts_of

AT_ONCE_MAX = 1_000_000  # combinations of triples that a query may look at in a slice of time

_OWN = "urn:onyx:reference:"
_INSTANCE = f"{_OWN}instance"
_GRAPH = f"{_OWN}graph"
_TYPED = f"{_OWN}typed:"
_MOMENTS = (Iri(XSD + "dateTime"), Iri(XSD + "date"))
_ORDERED = (*_MOMENTS, Iri(XSD + "string"), Iri(XSD + "boolean"))
_FALSE = LiteralTerm("false", XSD + "boolean")
_ERROR = ast.FunctionCall("iri", (_FALSE,))
_TYPE = NamedNode(RDF_TYPE)
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
        literals = {quad.object for quad in self._stated if isinstance(quad.object, Literal)}
        self._coded = _coded(literals)
        self._stores: dict[tuple[bool, tuple[Quad, ...]], Store] = {}

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
            for triple in answer:
                budget.charge_tuple()
                subject, prop, thing = map(_term, triple)
                assert subject is not None and isinstance(prop, Iri) and thing is not None
                triples[subject, prop, thing] = None
            return [graph_text(triples, query.results, budget)] if triples else []
        if isinstance(answer, pyoxigraph.QuerySolutions):
            names = [column.name for column in query.variables]
            if query.whole:
                names = [column.value for column in answer.variables]
            rows = self._rows(answer, names, budget)
            write = _xml_results if query.results is ResultSyntax.XML else _json_results
            found = [write(names, rows)] if rows else []
        else:
            found = [message_text(self._stream, query.results)] if answer else []
        budget.charge_bytes(sum(map(len, found)))
        return found

    def _answer(self, query: GraphQuery, budget: Budget) -> object:
        text, closures, has_graphs = _asked(query)
        text = asked_at(text, self._stream.accepted) if query.whole else text
        more: list[Quad] = self._named() if has_graphs else []
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
            return self._store(more, not query.whole).query(text)
        except (SyntaxError, OSError, RuntimeError, ValueError) as error:
            reason = f"a query cannot be answered: {error}"
            raise MatchLimitExceeded("query-failed", reason) from error

    def _store(self, more: list[Quad], is_exact: bool) -> Store:
        """The triples of the message and some more; ``is_exact``: with literals as they stand."""
        key = is_exact, tuple(more)
        found = self._stores.get(key)
        if found is None:
            found = Store()
            coded = self._coded if is_exact else {}
            found.extend(
                Quad(one.subject, one.predicate, coded.get(one.object, one.object), one.graph_name)
                for one in (*self._stated, *more)
            )
            self._stores[key] = found
        return found

    def _named(self) -> list[Quad]:
        """Of each named graph that it is itself, in all graphs."""
        graphs = dict.fromkeys((DefaultGraph(), *(quad.graph_name for quad in self._stated)))
        names = [name for name in graphs if not isinstance(name, DefaultGraph)]
        return [Quad(one, NamedNode(_GRAPH), one, graph) for one in names for graph in graphs]

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
            rows.append([_term(solution[name]) for name in names])
        return rows


_Row: TypeAlias = "list[GroundTerm | None]"


def _renamed(quad: Quad, name: str) -> Quad:
    return Quad(quad.subject, NamedNode(name), quad.object, quad.graph_name)


def _term(term: object) -> GroundTerm | None:
    """A term of an answer, a literal with its own datatype."""
    if isinstance(term, Literal) and term.datatype.value.startswith(_TYPED):
        return LiteralTerm(term.value, term.datatype.value.removeprefix(_TYPED))
    return from_oxigraph(term)


def _coded(literals: Iterable[Literal]) -> dict[object, Literal]:
    """Those that pyoxigraph would change, with the ones that it keeps instead."""
    numbered = dict(enumerate(literals))
    store = Store()
    store.extend(Quad(NamedNode(f"{_OWN}{number}"), _TYPE, one) for number, one in numbered.items())
    found: dict[object, Literal] = {}
    for quad in store:
        one = numbered[int(str(quad.subject.value).removeprefix(_OWN))]
        if quad.object != one:
            found[one] = Literal(one.value, datatype=NamedNode(_TYPED + one.datatype.value))
    return found


@lru_cache(maxsize=4096)
def _asked(query: GraphQuery) -> tuple[str, tuple[tuple[TriplePattern, str], ...], bool]:
    """The text of a query, with the patterns of which each has a property of its own instead, and
    whether it asks for the names of graphs."""
    if query.whole:
        return query.whole, (), False
    closures: dict[TriplePattern, str] = {}
    graphs = 0
    for node in nodes_of(query.where):
        if isinstance(node, TriplePattern) and node.closure is not Closure.NONE:
            closures.setdefault(node, _name_of(node, len(closures)))
    has_own = bool(closures) or any(map(_sees_its_graph, nodes_of(query.where)))

    def change(node: object) -> object:
        nonlocal graphs
        if isinstance(node, TriplePattern):
            if node in closures:
                return _instead(node, closures[node])
            return _without_own(node) if isinstance(node.property, Variable) else node
        if isinstance(node, InGraph) and _sees_its_graph(node):
            graphs += 1
            hidden = Variable(f"referencegraph{graphs}")
            return Group(
                (InGraph(hidden, node.group), TriplePattern(hidden, Iri(_GRAPH), node.graph))
            )
        return node

    where = changed(query.where, _without_disjoint)
    where = changed(where, change) if has_own else where
    text = unparse(replace(query, where=_exact(where), template=_exact(query.template)))
    return text, tuple(closures.items()), bool(graphs)


def _sees_its_graph(node: object) -> bool:
    """Whether a group of GRAPH has the variable of its graph in it."""
    if not isinstance(node, InGraph) or not isinstance(node.graph, Variable):
        return False
    return any(each == node.graph for each in nodes_of(node.group))


def _without_disjoint(node: object) -> object:
    """A group without each MINUS that has no variable in common with what is before it, and so
    takes nothing away; pyoxigraph finds the variable of GRAPH in common."""
    if not isinstance(node, Group):
        return node
    kept: list[GroupElement] = []
    for element in node.elements:
        before = possible(Group(tuple(kept)))
        if not isinstance(element, Minus) or possible(element.group) & before:
            kept.append(element)
    return Group(tuple(kept))


# -- literals that have a datatype of their own


def _exact(node: Any) -> Any:
    """A part of a query that asks for literals by their digits, and compares their values."""
    match node:
        case LiteralTerm():
            return _kept(node)
        case Filter(condition):
            return Filter(_valued(condition))
        case Bind(value, variable):
            return Bind(_termed(value), variable)
        case tuple():
            return tuple(map(_exact, node))
    parts = parts_of(node)
    return node if parts is None else type(node)(*map(_exact, parts))


@lru_cache(maxsize=4096)
def _kept(term: LiteralTerm) -> LiteralTerm:
    """The literal that stands for it in the store."""
    is_plain = term.language or not _coded(
        [Literal(term.lexical, datatype=NamedNode(term.datatype))]
    )
    return term if is_plain else LiteralTerm(term.lexical, _TYPED + term.datatype)


def _termed(value: ast.Expression) -> ast.Expression:
    """An expression that gives the term that a variable has, where it gives one."""
    match value:
        case Variable() | LiteralTerm():
            return _exact(value)
        case ast.FunctionCall("if", (condition, one, other)):
            return ast.FunctionCall("if", (_valued(condition), _termed(one), _termed(other)))
        case ast.FunctionCall("coalesce", arguments):
            return ast.FunctionCall("coalesce", tuple(map(_termed, arguments)))
    return _valued(value)


def _valued(value: Any) -> Any:
    """An expression in which variables stand for the literals themselves."""
    match value:
        case Variable():
            kind = ast.FunctionCall("str", (ast.FunctionCall("datatype", (value,)),))
            own = ast.FunctionCall(
                "iri", (ast.FunctionCall("strafter", (kind, LiteralTerm(_TYPED))),)
            )
            literal = ast.FunctionCall("strdt", (ast.FunctionCall("str", (value,)), own))
            is_kept = ast.FunctionCall("strstarts", (kind, LiteralTerm(_TYPED)))
            return ast.FunctionCall(
                "coalesce", (ast.FunctionCall("if", (is_kept, literal, value)), value)
            )
        case ast.FunctionCall("bound" | "str", (Variable(),)):
            return value
        case ast.FunctionCall("str", (LiteralTerm(lexical),)):
            return LiteralTerm(lexical)
        case ast.FunctionCall("sameterm", arguments):
            return ast.FunctionCall("sameterm", tuple(map(_termed, arguments)))
        case Exists(group, is_negated):
            return Exists(_exact(group), is_negated)
        case ast.Comparison(left, operator, right):
            return _compared(_valued(left), operator, _valued(right))
        case tuple():
            return tuple(map(_valued, value))
    parts = parts_of(value)
    return value if parts is None else type(value)(*map(_valued, parts))


def _compared(left: ast.Expression, operator: Operator, right: ast.Expression) -> ast.Expression:
    """A comparison; an error of what has no order, and of dates of which nobody knows the order."""
    compared = ast.Comparison(left, operator, right)
    kind, other = (ast.FunctionCall("datatype", (side,)) for side in (left, right))
    is_same = ast.Comparison(kind, Operator.EQ, other)
    if operator not in (Operator.EQ, Operator.NE):
        numbers = ast.And(
            (ast.FunctionCall("isnumeric", (left,)), ast.FunctionCall("isnumeric", (right,)))
        )
        others = ast.And((is_same, Membership(kind, _ORDERED)))
        return ast.FunctionCall("if", (ast.Or((numbers, others)), compared, _ERROR))
    ordered = (ast.Comparison(left, each, right) for each in (Operator.LT, Operator.GE))
    moments = ast.FunctionCall("coalesce", (ast.And((is_same, Membership(kind, _MOMENTS))), _FALSE))
    unknown = ast.And((moments, negation(ast.Or(tuple(ordered)))))
    return ast.FunctionCall("if", (unknown, _ERROR, compared))


# -- closures


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
    text = ast.FunctionCall("str", (helper,))
    prefix = LiteralTerm(name)
    assert isinstance(pattern.property, Variable)
    below = ast.FunctionCall("iri", (ast.FunctionCall("strafter", (text, prefix)),))
    return Group(
        (
            asked,
            Filter(ast.FunctionCall("strstarts", (text, prefix))),
            Bind(below, pattern.property),
        )
    )


def _without_own(pattern: TriplePattern) -> Group:
    """A pattern of any property, which sees only those of the message."""
    assert isinstance(pattern.property, Variable)
    text = ast.FunctionCall("str", (pattern.property,))
    return Group(
        (pattern, Filter(negation(ast.FunctionCall("strstarts", (text, LiteralTerm(_OWN))))))
    )


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
