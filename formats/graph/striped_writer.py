"""StripedWriter: subjects and triples, in their order, into the columns of a striped graph.

One graph: ``begin``, then for each subject ``open_subject``, its triples, ``write_closure``,
``close_subject``; ``finish``.  The names of elements and attributes are numbered as they are first
used, those of the striped form itself (``own``) as those of properties.
"""

from __future__ import annotations

from array import array
from typing import TypeAlias

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from formats.column_writer import ColumnWriter
from formats.element_stream import ElementStream
from formats.errors import MessageRefused
from formats.graph import striped
from formats.graph.graph_limits import GraphLimits
from formats.graph.property_names import known_property_name
from formats.graph.terms import Terms
from formats.graph.vocabulary import RDF, RDFS
from formats.limits import MessageLimits
from formats.names import QualifiedName

if cython.compiled:
    from cython.cimports.formats.graph.literal_values import NO_VALUE, is_seconds
    from cython.cimports.formats.graph.terms import BLANK, IRI, LITERAL, STRING
else:
    from formats.graph.literal_values import NO_VALUE, is_seconds
    from formats.graph.terms import BLANK, IRI, LITERAL, STRING

if not cython.compiled:
    E_GRAPH, E_SUBJECT, E_NAMED_SUBJECT, E_OTHER, E_CLOSURE, E_CLASS, E_ABOVE, E_MEMBER = range(8)
    A_SUBJECT, A_BLANK, A_GRAPH, A_GRAPH_BLANK, A_IRI, A_STRING, A_TEXT = range(8, 15)
    A_LANGUAGE, A_LEXICAL, A_DATATYPE, A_NUMBER, A_SECONDS, A_PROPERTY, A_OWN = range(15, 22)
    OWN_NAMES, OWN_CLASS = 22, -1

# The names of the striped form itself, in the order of their numbers.
_OWN_ELEMENTS = (
    striped.GRAPH,
    striped.SUBJECT,
    striped.NAMED_SUBJECT,
    striped.OTHER_PROPERTY,
    striped.CLOSURE,
    striped.CLASS,
    striped.PROPERTY_ABOVE,
    striped.MEMBER,
)
_OWN_ATTRIBUTES = (
    striped.IRI_SUBJECT,
    striped.BLANK,
    striped.GRAPH_IRI,
    striped.GRAPH_BLANK,
    striped.IRI_OBJECT,
    striped.STRING,
    striped.TEXT,
    striped.LANGUAGE,
    striped.LEXICAL,
    striped.DATATYPE,
    striped.NUMBER,
    striped.SECONDS,
    striped.PROPERTY_IRI,
    striped.OWN,
)
_OWN_NAMES = [
    *(QualifiedName("", striped.GRAPH_NAMESPACE, local) for local in _OWN_ELEMENTS),
    *(QualifiedName("", "", local) for local in _OWN_ATTRIBUTES),
]
# How namespaces are abbreviated where people look at a striped graph; all others are n1, n2, ..
_PREFIXES = {
    RDF: "rdf",
    RDFS: "rdfs",
    "http://www.w3.org/2002/07/owl#": "owl",
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://purl.org/dc/terms/": "dcterms",
    "http://purl.org/rss/1.0/": "rss",
    "http://www.w3.org/ns/dcat#": "dcat",
    "http://www.w3.org/2004/02/skos/core#": "skos",
    "http://xmlns.com/foaf/0.1/": "foaf",
    "http://schema.org/": "schema",
}
_Element: TypeAlias = tuple[int, int, int]  # its name, a property, an object
_NAMES_KEPT_MAX = 8_192
_known_names: dict[bytes, tuple[str, QualifiedName, int]] = {}  # prefix, name, its size
_OWN_SIZES = [len(name.local) for name in _OWN_NAMES]
_DIGITS = [b"%d" % number for number in range(256)]
_NOTHING = array("i", [-1])
_IDLE: list[ColumnWriter] = []  # as many as there were graphs written at the same time


class StripedWriter:
    """Writes one graph of these terms, of which no more come."""

    def __init__(self, terms: Terms, limits: GraphLimits) -> None:
        self._terms = terms
        self._limits = limits
        self._names: list[QualifiedName] = []
        self._name_sizes: list[int] = []
        self._own = _NOTHING * OWN_NAMES
        self._property_names = [-1] * terms.count()
        self._blank_numbers = [-1] * terms.count()
        self._blanks = 0
        self._namespaces: dict[str, str] = {}
        self._out: ColumnWriter = _IDLE.pop() if _IDLE else ColumnWriter()

    def begin(self, size: cython.Py_ssize_t) -> None:
        """The root element of a graph whose values have at most so many bytes."""
        self._written = size
        self._out.begin(max(size, 1))
        self._out.open_element()
        self._out.declare(("", striped.GRAPH_NAMESPACE))
        self._name(self._own_name(E_GRAPH))

    def finish(self) -> ElementStream:
        """The graph.

        Raises MessageRefused (``too-many-names``, ``entity-expansion``).
        """
        self._out.close_element()
        self._check_written()
        stream: ElementStream = self._out.finish(self._names)
        _IDLE.append(self._out)
        return stream

    def open_subject(self, subject: cython.int, graph: cython.int) -> None:
        """The element of a subject, in a named graph or in the default one, -1."""
        number: cython.int = self._own_name(E_NAMED_SUBJECT if graph >= 0 else E_SUBJECT)
        self._out.open_element()
        if graph >= 0:
            self._write_node(graph, A_GRAPH, A_GRAPH_BLANK)
        self._write_node(subject, A_SUBJECT, A_BLANK)
        self._name(number)

    def close_subject(self) -> None:
        self._out.close_element()

    def write_closure(self, found: list[_Element]) -> None:
        """CLOSURE of a subject: elements with a property, PROPERTY_ABOVE's, and an object each;
        OWN_CLASS in place of CLASS for one that is OWN."""
        out: ColumnWriter = self._out
        number: cython.int
        out.open_element()
        self._name(self._own_name(E_CLOSURE))
        for element, name, object in found:  # noqa: A001
            number = self._own_name(E_CLASS if element == OWN_CLASS else element)
            out.open_element()
            if name >= 0:
                self._write_value(A_PROPERTY, self._terms.values[name])
            self._write_object(object)
            if element == OWN_CLASS:
                self._write_value(A_OWN, b"")
            self._name(number)
            out.close_element()
        out.close_element()

    def write_triple(
        self,
        property: cython.int,  # noqa: A002
        object: cython.int,  # noqa: A002
    ) -> None:
        """A property of the subject that is open."""
        out: ColumnWriter = self._out
        name: cython.int = self._property_names[property]
        if name == -1:
            name = self._property_name(property)
            self._property_names[property] = name
        number: cython.int = name if name >= 0 else self._own_name(E_OTHER)
        out.open_element()
        if name < 0:
            self._write_value(A_PROPERTY, self._terms.values[property])
        self._write_object(object)
        self._name(number)
        out.close_element()

    def _write_object(self, term: cython.int) -> None:
        terms: Terms = self._terms
        kind: cython.int = terms.kind(term)
        value: bytes = terms.values[term]
        if kind == IRI:
            self._write_value(A_IRI, value)
        elif kind == STRING:
            self._write_value(A_STRING, value)
        elif kind == BLANK:
            self._write_value(A_BLANK, self._blank(term))
        elif kind == LITERAL:
            self._write_value(A_LEXICAL, value)
            self._write_value(A_DATATYPE, terms.values[terms.datatype(term)])
            if terms.value_kind(term) != NO_VALUE:
                seconds: cython.bint = is_seconds(terms.value_kind(term))
                self._write_value(A_SECONDS if seconds else A_NUMBER, terms.extras[term])
        else:
            self._write_value(A_TEXT, value)
            self._write_value(A_LANGUAGE, terms.extras[term])

    def _write_node(self, term: cython.int, iri: cython.int, blank: cython.int) -> None:
        """An IRI or a blank node, each as an attribute of its own."""
        if self._terms.kind(term) == BLANK:
            self._write_value(blank, self._blank(term))
        else:
            self._write_value(iri, self._terms.values[term])

    def _write_value(self, name: cython.int, value: bytes) -> None:
        out: ColumnWriter = self._out
        out.copy_value(value, 0, len(value))
        out.attribute_name[out.attributes] = self._own_name(name)
        out.close_attribute()

    def _blank(self, term: cython.int) -> bytes:
        number: cython.int = self._blank_numbers[term]
        if number < 0:
            number = self._blanks
            self._blank_numbers[term] = number
            self._blanks += 1
        return _DIGITS[number] if number < 256 else b"%d" % number

    def _name(self, number: cython.int) -> None:
        """Name the element opened last, all of whose attributes are there."""
        self._out.name_element(number)
        self._written += self._name_sizes[number]

    def _own_name(self, name: cython.int) -> cython.int:
        """The number of a name of the striped form itself."""
        number: cython.int = self._own[name]
        if number < 0:
            number = self._own[name] = self._new_name(_OWN_NAMES[name], _OWN_SIZES[name])
        return number

    def _new_name(self, name: QualifiedName, size: cython.int) -> cython.int:
        self._names.append(name)
        self._name_sizes.append(size)
        return len(self._names) - 1

    def _property_name(self, term: cython.int) -> cython.int:
        """The number of the name of a property's elements, -2 if it has none."""
        iri: bytes = self._terms.values[term]
        parts = known_property_name(iri)
        if parts is None:
            return -2
        namespace, local = parts
        prefix = self._namespaces.get(namespace)
        if prefix is None:
            prefix = self._new_prefix(namespace)
        known = _known_names.get(iri)
        if known is None or known[0] != prefix:
            if len(_known_names) >= _NAMES_KEPT_MAX:
                _known_names.clear()
            name = QualifiedName(prefix, namespace, local)
            known = _known_names[iri] = (prefix, name, len(str(name).encode()))
        return self._new_name(known[1], known[2])

    def _new_prefix(self, namespace: str) -> str:
        if len(self._namespaces) == self._limits.namespaces_max:
            raise MessageRefused(
                "too-many-namespaces",
                f"properties of more than {self._limits.namespaces_max} namespaces",
            )
        prefix = _PREFIXES.get(namespace) or f"n{len(self._namespaces) + 1}"
        self._namespaces[namespace] = prefix
        self._out.declare_on(0, (prefix, namespace))
        self._written += len(prefix) + len(namespace.encode())
        return prefix

    def _check_written(self) -> None:
        limits = self._limits.message
        if len(self._names) > limits.names_max:
            raise MessageRefused(
                "too-many-names", f"more than {limits.names_max} properties, names of elements"
            )
        self._written += 2 * self._out.attributes + len(striped.GRAPH_NAMESPACE)
        if self._written > limits.expansion_max:
            refuse_expansion(limits)


def refuse_expansion(limits: MessageLimits) -> None:
    raise MessageRefused(
        "entity-expansion", f"striped, the graph has more than {limits.expansion_max} bytes"
    )
