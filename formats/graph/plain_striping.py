"""The striped form of a graph in plain Python, of triples that pyoxigraph has read (striped.py)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import pyoxigraph
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode

from formats.characters import find_illegal_character
from formats.element_stream import ElementStream
from formats.element_stream_builder import ElementStreamBuilder
from formats.errors import MessageRefused
from formats.graph import striped
from formats.graph.graph_limits import DEFAULT_GRAPH_LIMITS, GraphLimits, refuse_nodes
from formats.graph.literal_forms import NO_VALUE, derived_value, is_seconds, value_kind
from formats.graph.oxigraph_faults import refusal_of
from formats.graph.property_names import property_name
from formats.graph.striped import Closure
from formats.graph.vocabulary import RDF, RDF_TYPE, XSD
from formats.graph.xml_literal import with_texts
from formats.names import QualifiedName
from formats.text import to_text

_Node: TypeAlias = "NamedNode | BlankNode"
_Term: TypeAlias = "NamedNode | BlankNode | Literal"
_Group: TypeAlias = "tuple[_Node | DefaultGraph, _Node]"  # a graph and a subject
_Attributes: TypeAlias = "list[tuple[QualifiedName, str]]"


def plain_stripes(
    data: bytes,
    kind: pyoxigraph.RdfFormat,
    limits: GraphLimits,
    base: str | None,
    closure: Closure | None,
) -> ElementStream:
    """The striped form of a graph as bytes.  Raises MessageRefused as the compiled reader does, if
    not always with the same code."""
    groups: dict[_Group, dict[tuple[str, _Term], None]] = {}
    count, blanks = 0, set[BlankNode]()
    try:
        for quad in pyoxigraph.parse(data, kind, base_iri=base):
            count += 1
            if count > limits.triples_max:
                raise MessageRefused(
                    "too-many-triples", f"more than {limits.triples_max} triples, doubles included"
                )
            subject, thing = _taken(quad.subject, limits), _taken(quad.object, limits)
            graph = quad.graph_name
            if not isinstance(graph, DefaultGraph):
                _taken(graph, limits)
            blanks.update(each for each in (subject, thing, graph) if isinstance(each, BlankNode))
            if len(blanks) > limits.blank_nodes_max:
                refuse_nodes(limits.blank_nodes_max)
            assert not isinstance(subject, Literal)
            said = groups.setdefault((graph, subject), {})
            said[_taken(quad.predicate, limits).value, thing] = None
    except SyntaxError as error:
        raise refusal_of(error) from None
    if closure is not None:
        for (graph, _), said in list(groups.items()):
            for _, thing in said:
                if isinstance(thing, NamedNode) and closure.listed(thing.value.encode()):
                    groups.setdefault((graph, thing), {})
    return _Striper(groups, limits).striped(closure)


def plain_graph_of_document(
    stream: ElementStream,
    limits: GraphLimits = DEFAULT_GRAPH_LIMITS,
    base: str = "",
    closure: Closure | None = None,
) -> ElementStream:
    """The striped graph of an RDF/XML document; MessageRefused where it means none."""
    limits = limits.of(len(stream) // 4)
    document = to_text(with_texts(stream, limits))
    try:
        return plain_stripes(document, pyoxigraph.RdfFormat.RDF_XML, limits, base or None, closure)
    except MessageRefused as refusal:
        code = "rdf-syntax" if refusal.code == "malformed" else refusal.code
        raise MessageRefused(code, refusal.reason) from None


def _taken(term: object, limits: GraphLimits) -> _Term:
    """A term that a message may have; MessageRefused."""
    if isinstance(term, pyoxigraph.Triple):
        raise MessageRefused("triple-term", "a triple as a term (RDF 1.2) is not taken")
    assert isinstance(term, NamedNode | BlankNode | Literal)
    size = len(term.value.encode())
    if isinstance(term, Literal):
        if term.direction is not None:
            reason = "a string with the direction of its text (RDF 1.2) is not taken"
            raise MessageRefused("text-direction", reason)
        if size > limits.literal_bytes_max:
            reason = f"a literal has more than {limits.literal_bytes_max} bytes"
            raise MessageRefused("literal-too-long", reason)
        _taken(term.datatype, limits)
    elif size > limits.iri_bytes_max:
        reason = f"an IRI has more than {limits.iri_bytes_max} bytes"
        raise MessageRefused("iri-too-long", reason)
    place = find_illegal_character(term.value)
    if place >= 0:
        raise MessageRefused(
            "bad-character",
            f"the character U+{ord(term.value[place]):04X} cannot be carried: XML has no way to "
            "write it",
        )
    return term


class _Striper:
    """One graph, its subjects in order of first appearance."""

    def __init__(
        self, groups: dict[_Group, dict[tuple[str, _Term], None]], limits: GraphLimits
    ) -> None:
        self._groups = groups
        self._limits = limits
        self._out = ElementStreamBuilder()
        self._blanks: dict[BlankNode, str] = {}
        self._prefixes: dict[str, str] = {}
        self._names: dict[str, QualifiedName | None] = {}

    def striped(self, closure: Closure | None) -> ElementStream:
        for said in self._groups.values():
            for name, _ in said:
                if name not in self._names:
                    self._names[name] = self._name_of(name)
        declared = [(prefix, namespace) for namespace, prefix in self._prefixes.items()]
        self._open(striped.GRAPH, [], [("", striped.GRAPH_NAMESPACE), *declared])
        for (graph, subject), said in self._groups.items():
            kind, attributes = striped.SUBJECT, []
            if not isinstance(graph, DefaultGraph):
                kind = striped.NAMED_SUBJECT
                attributes = self._node(graph, striped.GRAPH_IRI, striped.GRAPH_BLANK)
            attributes += self._node(subject, striped.IRI_SUBJECT, striped.BLANK)
            self._open(kind, attributes)
            for name, thing in said:
                element = self._names[name]
                if element is None:
                    about = [*_said(striped.PROPERTY_IRI, name), *self._object(thing)]
                    self._leaf(striped.OTHER_PROPERTY, about)
                else:
                    self._check()
                    self._out.start_element(element, self._object(thing))
                    self._out.end_element()
            closed = list(self._closed(subject, said, closure))
            if closed:
                self._open(striped.CLOSURE, [])
                for kind, about in closed:
                    self._leaf(kind, about)
                self._out.end_element()
            self._out.end_element()
        self._out.end_element()
        limits = self._limits.message
        stream = self._out.finish()
        if len(stream.names) > limits.names_max:
            raise MessageRefused(
                "too-many-names", f"more than {limits.names_max} properties, names of elements"
            )
        if stream.written_size() > limits.expansion_max:
            raise _too_large(limits.expansion_max)
        return stream

    def _closed(
        self, subject: _Node, said: Iterable[tuple[str, _Term]], closure: Closure | None
    ) -> Iterator[tuple[str, _Attributes]]:
        """The elements below CLOSURE."""
        own = list(dict.fromkeys(thing for name, thing in said if name == RDF_TYPE))
        classes = own
        if closure is not None:
            iri = subject.value.encode() if isinstance(subject, NamedNode) else b""
            named = [one.value.encode() for one in own if isinstance(one, NamedNode)]
            others = [one for one in own if not isinstance(one, NamedNode)]
            classes = [*map(_named, closure.classes(iri, named)), *others]
            own = [*own, *map(_named, closure.listed(iri))]
        for each in classes:
            is_own = _said(striped.OWN, "") if each in own else []
            yield striped.CLASS, [*self._object(each), *is_own]
        for name, thing in said:
            digits = name.removeprefix(f"{RDF}_")
            if digits != name and digits.isascii() and digits.isdigit() and digits[0] != "0":
                yield striped.MEMBER, self._object(thing)
            if closure is not None:
                for above in closure.properties_above(name.encode()):
                    about = _said(striped.PROPERTY_IRI, above.decode())
                    yield striped.PROPERTY_ABOVE, [*about, *self._object(thing)]

    def _object(self, term: _Term) -> _Attributes:
        if not isinstance(term, Literal):
            return self._node(term, striped.IRI_OBJECT, striped.BLANK)
        if term.language is not None:
            language = _said(striped.LANGUAGE, term.language.lower())
            return [*_said(striped.TEXT, term.value), *language]
        datatype = term.datatype.value
        if datatype == f"{XSD}string":
            return _said(striped.STRING, term.value)
        said = [*_said(striped.LEXICAL, term.value), *_said(striped.DATATYPE, datatype)]
        kind = value_kind(datatype.encode())
        derived = derived_value(term.value.encode(), kind) if kind != NO_VALUE else b""
        if derived:
            told = striped.SECONDS if is_seconds(kind) else striped.NUMBER
            said += _said(told, derived.decode())
        return said

    def _node(self, term: _Node, iri: str, blank: str) -> _Attributes:
        if isinstance(term, BlankNode):
            return _said(blank, self._blanks.setdefault(term, str(len(self._blanks))))
        return _said(iri, term.value)

    def _name_of(self, iri: str) -> QualifiedName | None:
        """The name of a property's elements, None if it has none."""
        parts = property_name(iri)
        if parts is None:
            return None
        namespace, local = parts
        if namespace not in self._prefixes:
            count = len(self._prefixes)
            if count == self._limits.namespaces_max:
                reason = f"properties of more than {self._limits.namespaces_max} namespaces"
                raise MessageRefused("too-many-namespaces", reason)
            self._prefixes[namespace] = striped.PREFIXES.get(namespace) or f"n{count + 1}"
        return QualifiedName(self._prefixes[namespace], namespace, local)

    def _open(
        self, local: str, attributes: _Attributes, declared: Iterable[tuple[str, str]] = ()
    ) -> None:
        self._check()
        name = QualifiedName("", striped.GRAPH_NAMESPACE, local)
        self._out.start_element(name, attributes, list(declared))

    def _leaf(self, local: str, attributes: _Attributes) -> None:
        self._open(local, attributes)
        self._out.end_element()

    def _check(self) -> None:
        limits = self._limits.message
        if self._out.element_count >= limits.elements_max:
            reason = f"striped, the graph has more than {limits.elements_max} elements"
            raise MessageRefused("too-many-elements", reason)
        if self._out.value_bytes > limits.expansion_max:
            raise _too_large(limits.expansion_max)


def _said(name: str, value: str) -> _Attributes:
    return [(QualifiedName("", "", name), value)]


def _named(iri: bytes) -> NamedNode:
    return NamedNode(iri.decode())


def _too_large(size: int) -> MessageRefused:
    reason = f"striped, the graph has more than {size} bytes"
    return MessageRefused("entity-expansion", reason)
