"""GraphBuilder: the triples of a graph, one after the other, into a striped ElementStream.

What is striped, and how, says ``striped.py``.  Whoever reads a graph asks ``terms`` for the numbers
of its terms and adds triples of these; the columns are written at the end, when it is known which
triples a subject has.

::

    added       (s1 p1 o1) (s2 p2 o2) (s1 p3 o3)
    rows        0          1          2               property, object, and the next of the group
    groups      0: subject s1, rows 0, 2      1: subject s2, row 1

A group is a subject in a graph.  Doubles are left out by a hash table of rows with open addressing,
salted as Python's hashes are, so that nobody can prepare triples that collide.
"""

from __future__ import annotations

from array import array
from typing import Any, Protocol

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from formats.column_writer import ColumnWriter
from formats.element_stream import ElementStream
from formats.errors import MessageRefused
from formats.graph import striped
from formats.graph.graph_limits import DEFAULT_GRAPH_LIMITS, GraphLimits
from formats.graph.literal_values import is_seconds
from formats.graph.property_names import property_name
from formats.graph.terms import Terms
from formats.names import QualifiedName

if cython.compiled:
    from cython.cimports.formats.graph.terms import BLANK, IRI, LITERAL, NO_TERM, STRING
else:
    from formats.graph.terms import BLANK, IRI, LITERAL, NO_TERM, STRING

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_TYPE = RDF.encode() + b"type"
_MEMBER = RDF.encode() + b"_"

# Names of the striped form, in the order of their numbers in _Names.
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
)
_OWN_NAMES = [
    *(QualifiedName("", striped.GRAPH_NAMESPACE, local) for local in _OWN_ELEMENTS),
    *(QualifiedName("", "", local) for local in _OWN_ATTRIBUTES),
]
if not cython.compiled:
    E_GRAPH, E_SUBJECT, E_NAMED_SUBJECT, E_OTHER, E_CLOSURE, E_CLASS, E_ABOVE, E_MEMBER = range(8)
    A_SUBJECT, A_BLANK, A_GRAPH, A_GRAPH_BLANK, A_IRI, A_STRING, A_TEXT = range(8, 15)
    A_LANGUAGE, A_LEXICAL, A_DATATYPE, A_NUMBER, A_SECONDS, A_PROPERTY, OWN_NAMES = range(15, 22)

# How namespaces are abbreviated where people look at a striped graph; all others are n1, n2, ..
_PREFIXES = {
    RDF: "rdf",
    "http://www.w3.org/2000/01/rdf-schema#": "rdfs",
    "http://www.w3.org/2002/07/owl#": "owl",
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://purl.org/dc/terms/": "dcterms",
    "http://purl.org/rss/1.0/": "rss",
    "http://www.w3.org/ns/dcat#": "dcat",
    "http://www.w3.org/2004/02/skos/core#": "skos",
    "http://xmlns.com/foaf/0.1/": "foaf",
    "http://schema.org/": "schema",
}
_PROPERTIES_KEPT_MAX = 8_192
_NUMBER_BYTES = 11  # of a blank node, at most
_known_properties: dict[bytes, tuple[str, str] | None] = {}
_known_names: dict[bytes, QualifiedName] = {}
_IDLE: list[ColumnWriter] = []  # as many as there were graphs finished at the same time


class Closure(Protocol):
    """What taxonomies make of a graph's types and properties; all are IRIs."""

    def classes(self, subject: bytes, types: list[bytes]) -> list[bytes]:
        """The types of a subject ("" for a blank node), those that are listed of it, and all
        classes above them, each once."""

    def properties_above(self, name: bytes) -> list[bytes]:
        """All properties above one, without it."""

    def lists(self, iri: bytes) -> bool:
        """Whether classes of an IRI are listed, so that it has some wherever it stands."""


class GraphBuilder:
    """One graph: ``terms`` and ``add``, then ``finish``, once."""

    def __init__(self, limits: GraphLimits = DEFAULT_GRAPH_LIMITS) -> None:
        self.terms = Terms(limits)
        self.triples = 0  # as they came
        self._limits = limits
        self._triples_max = limits.triples_max
        self._rows = 0
        self._groups = 0
        self._bytes = 0  # of values, at most
        self._named: dict[tuple[int, int], int] = {}
        # By group: the elements below CLOSURE, with a property (PROPERTY_ABOVE's) and an object.
        self._closed: list[list[tuple[int, int, int]] | None] = []
        self._salt = hash(b"triples") & 0x7FFFFFFF
        self._row_group = self._row_property = self._row_object = self._row_next = array("i")
        self._group_subject = self._group_graph = self._group_first = self._group_last = array("i")
        self._subject_group = array("i")
        self._slots = array("i")
        self._grow_rows(256)
        self._grow_groups(32)
        self._grow_subjects(256)

    def add(
        self,
        subject: cython.int,
        property: cython.int,  # noqa: A002 - RDF's word
        object: cython.int,  # noqa: A002
        graph: cython.int = -1,
    ) -> None:
        """A triple of terms' numbers, in a named graph or, with -1, in the default one.

        Raises MessageRefused (``too-many-triples``).
        """
        if self.triples == self._triples_max:
            raise MessageRefused(
                "too-many-triples", f"more than {self._triples_max} triples, doubles included"
            )
        self.triples += 1
        group: cython.int = self._group(subject, graph)
        row: cython.int = self._rows
        slot: cython.uint = self._slot(group, property, object)
        if self._slots[slot] < 0:
            self._slots[slot] = row
            self._row_group[row] = group
            self._row_property[row] = property
            self._row_object[row] = object
            if self._group_first[group] < 0:
                self._group_first[group] = row
            else:
                self._row_next[self._group_last[group]] = row
            self._row_next[row] = -1
            self._group_last[group] = row
            self._rows += 1
            self._bytes += self._size(object)
            if self._rows == len(self._row_group):
                self._grow_rows(2 * len(self._row_group))

    def finish(self, closure: Closure | None = None) -> ElementStream:
        """The striped graph.

        Raises MessageRefused with the codes of MessageLimits, and ``too-many-namespaces``.
        """
        out: ColumnWriter = _IDLE.pop() if _IDLE else ColumnWriter()
        try:
            return self._finish(out, closure)
        finally:
            _IDLE.append(out)

    def _finish(self, out: ColumnWriter, closure: Closure | None) -> ElementStream:
        group: cython.int
        self._close(closure)
        self._check_sizes()
        self._out = out
        out.begin(max(self._bytes, 1))
        self._begin_names()
        out.open_element()
        out.declare(("", striped.GRAPH_NAMESPACE))
        self._name(self._own_name(E_GRAPH))
        for group in range(self._groups):
            self._write_group(group)
        out.close_element()
        self._check_written()
        return out.finish(self._names)

    # Triples

    def _group(self, subject: cython.int, graph: cython.int) -> cython.int:
        """The group of a subject in a graph."""
        group: cython.int
        if graph < 0:
            if subject >= len(self._subject_group):
                self._grow_subjects(max(2 * len(self._subject_group), subject + 1))
            group = self._subject_group[subject]
            if group < 0:
                group = self._new_group(subject, graph)
                self._subject_group[subject] = group
            return group
        key = (subject, graph)
        found = self._named.get(key)
        if found is None:
            found = self._named[key] = self._new_group(subject, graph)
        return found

    def _new_group(self, subject: cython.int, graph: cython.int) -> cython.int:
        group: cython.int = self._groups
        if group == len(self._group_subject):
            self._grow_groups(2 * group)
        self._group_subject[group] = subject
        self._group_graph[group] = graph
        self._group_first[group] = -1
        self._groups = group + 1
        self._bytes += self._size(subject)
        if graph >= 0:
            self._bytes += self._size(graph)
        return group

    def _size(self, term: cython.int) -> cython.Py_ssize_t:
        """The bytes of the values that say a term, at most."""
        terms: Terms = self.terms
        kind: cython.int = terms.kinds[term]
        if kind == BLANK:
            return _NUMBER_BYTES
        size: cython.Py_ssize_t = len(terms.values[term])
        if kind == LITERAL:
            return size + len(terms.values[terms.details[term]]) + len(terms.derived[term])
        if kind == IRI or kind == STRING:
            return size
        return size + len(terms.languages[term])

    def _slot(
        self,
        group: cython.int,
        property: cython.int,  # noqa: A002
        object: cython.int,  # noqa: A002
    ) -> cython.uint:
        """The slot of a triple, or the free one where it belongs."""
        prime: cython.ulonglong = 0x9E3779B97F4A7C15
        mask: cython.ulonglong = 0xFFFFFFFFFFFFFFFF
        low: cython.ulonglong = 0xFFFFFFFF
        mixed: cython.ulonglong = (group ^ self._salt) & low
        row: cython.int
        mixed = (mixed * prime) & mask
        mixed ^= mixed >> 29
        mixed = ((mixed ^ property) * prime) & mask
        mixed ^= mixed >> 32
        mixed = ((mixed ^ object) * prime) & mask
        slots: cython.uint = len(self._slots) - 1
        slot: cython.uint = (mixed >> 32) & slots
        while True:
            row = self._slots[slot]
            if row < 0 or (
                self._row_object[row] == object
                and self._row_property[row] == property
                and self._row_group[row] == group
            ):
                return slot
            slot = (slot + 1) & slots

    def _grow_rows(self, rows: cython.Py_ssize_t) -> None:
        row: cython.int
        slot: cython.uint
        self._row_group = _longer(self._row_group, rows)
        self._row_property = _longer(self._row_property, rows)
        self._row_object = _longer(self._row_object, rows)
        self._row_next = _longer(self._row_next, rows)
        self._slots = array("i", [-1]) * (2 * rows)
        for row in range(self._rows):
            slot = self._slot(self._row_group[row], self._row_property[row], self._row_object[row])
            self._slots[slot] = row

    def _grow_groups(self, groups: cython.Py_ssize_t) -> None:
        self._group_subject = _longer(self._group_subject, groups)
        self._group_graph = _longer(self._group_graph, groups)
        self._group_first = _longer(self._group_first, groups)
        self._group_last = _longer(self._group_last, groups)

    def _grow_subjects(self, subjects: cython.Py_ssize_t) -> None:
        self._subject_group = _longer(self._subject_group, subjects)

    # Closure

    def _close(self, closure: Closure | None) -> None:
        """Find what stands below CLOSURE."""
        group: cython.int
        row: cython.int
        property: cython.int  # noqa: A001
        name: bytes
        above: list[list[int] | None] = [None] * len(self.terms.kinds)  # by property
        is_member: list[bool] = [False] * len(self.terms.kinds)
        type_property: cython.int = -1
        for row in range(self._rows):
            property = self._row_property[row]  # noqa: A001
            if above[property] is None:
                name = self.terms.values[property]
                if name == _TYPE:
                    type_property = property
                is_member[property] = _is_member(name)
                above[property] = (
                    [self.terms.iri(each) for each in closure.properties_above(name)]
                    if closure is not None
                    else []
                )
        if closure is not None:
            self._add_listed(closure)
        for group in range(self._groups):
            types: list[int] = []
            found: list[tuple[int, int, int]] = []
            row = self._group_first[group]
            while row >= 0:
                property = self._row_property[row]  # noqa: A001
                if property == type_property:
                    types.append(self._row_object[row])
                if is_member[property]:
                    found.append((E_MEMBER, NO_TERM, self._row_object[row]))
                for each in above[property] or ():
                    found.append((E_ABOVE, each, self._row_object[row]))
                row = self._row_next[row]
            classes = types
            if closure is not None:
                classes = self._classes(self._group_subject[group], types, closure)
            if classes:
                found = [(E_CLASS, NO_TERM, each) for each in classes] + found
            self._closed.append(found or None)

    def _add_listed(self, closure: Closure) -> None:
        """Every object that is listed gets a group, for its classes."""
        row: cython.int
        for row in range(self._rows):
            object: cython.int = self._row_object[row]  # noqa: A001
            if self.terms.kinds[object] == IRI and closure.lists(self.terms.values[object]):
                self._group(object, self._group_graph[self._row_group[row]])

    def _classes(self, subject: cython.int, types: list[int], closure: Closure) -> list[int]:
        """The classes of a subject with these types, which may be anything."""
        terms: Terms = self.terms
        name = terms.values[subject] if terms.kinds[subject] == IRI else b""
        named = [terms.values[each] for each in types if terms.kinds[each] == IRI]
        others = [each for each in types if terms.kinds[each] != IRI]
        return [terms.iri(each) for each in closure.classes(name, named)] + others

    def _check_sizes(self) -> None:
        elements: cython.Py_ssize_t = 1 + self._groups + self._rows
        for found in self._closed:
            if found is not None:
                elements += 1 + len(found)
                for _, name, object in found:  # noqa: A001
                    self._bytes += self._size(object)
                    if name >= 0:
                        self._bytes += self._size(name)
        limits = self._limits.message
        if elements > limits.elements_max:
            raise MessageRefused(
                "too-many-elements",
                f"striped, the graph has more than {limits.elements_max} elements",
            )
        if self._bytes > limits.expansion_max:
            self._refuse_expansion()

    # Columns

    def _begin_names(self) -> None:
        self._names: list[QualifiedName] = []
        self._name_sizes: list[int] = []
        self._written = self._bytes
        self._own = array("i", [-1]) * OWN_NAMES
        self._property_names = [-1] * len(self.terms.kinds)
        self._blank_numbers = [-1] * len(self.terms.kinds)
        self._blanks = 0
        self._namespaces: dict[str, str] = {}

    def _write_group(self, group: cython.int) -> None:
        out: ColumnWriter = self._out
        graph: cython.int = self._group_graph[group]
        row: cython.int = self._group_first[group]
        number: cython.int = self._own_name(E_NAMED_SUBJECT if graph >= 0 else E_SUBJECT)
        out.open_element()
        if graph >= 0:
            self._write_node(graph, A_GRAPH, A_GRAPH_BLANK)
        self._write_node(self._group_subject[group], A_SUBJECT, A_BLANK)
        self._name(number)
        while row >= 0:
            self._write_triple(self._row_property[row], self._row_object[row])
            row = self._row_next[row]
        found = self._closed[group]
        if found is not None:
            out.open_element()
            self._name(self._own_name(E_CLOSURE))
            for element, name, object in found:  # noqa: A001
                number = self._own_name(element)
                out.open_element()
                if name >= 0:
                    self._write_value(A_PROPERTY, self.terms.values[name])
                self._write_object(object)
                self._name(number)
                out.close_element()
            out.close_element()
        out.close_element()

    def _write_triple(
        self,
        property: cython.int,  # noqa: A002
        object: cython.int,  # noqa: A002
    ) -> None:
        out: ColumnWriter = self._out
        name: cython.int = self._property_names[property]
        if name == -1:
            name = self._property_name(property)
            self._property_names[property] = name
        number: cython.int = name if name >= 0 else self._own_name(E_OTHER)
        out.open_element()
        if name < 0:
            self._write_value(A_PROPERTY, self.terms.values[property])
        self._write_object(object)
        self._name(number)
        out.close_element()

    def _write_object(self, term: cython.int) -> None:
        terms: Terms = self.terms
        kind: cython.int = terms.kinds[term]
        value: bytes = terms.values[term]
        if kind == IRI:
            self._write_value(A_IRI, value)
        elif kind == STRING:
            self._write_value(A_STRING, value)
        elif kind == BLANK:
            self._write_value(A_BLANK, self._blank(term))
        elif kind == LITERAL:
            self._write_value(A_LEXICAL, value)
            self._write_value(A_DATATYPE, terms.values[terms.details[term]])
            if terms.derived[term]:
                seconds: cython.bint = is_seconds(terms.value_kinds[term])
                self._write_value(A_SECONDS if seconds else A_NUMBER, terms.derived[term])
        else:
            self._write_value(A_TEXT, value)
            self._write_value(A_LANGUAGE, terms.languages[term])

    def _write_node(self, term: cython.int, iri: cython.int, blank: cython.int) -> None:
        """An IRI or a blank node, each as an attribute of its own."""
        if self.terms.kinds[term] == BLANK:
            self._write_value(blank, self._blank(term))
        else:
            self._write_value(iri, self.terms.values[term])

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
        return b"%d" % number

    def _name(self, number: cython.int) -> None:
        """Name the element opened last, all of whose attributes are there."""
        self._out.name_element(number)
        self._written += self._name_sizes[number]

    def _own_name(self, name: cython.int) -> cython.int:
        """The number of a name of the striped form itself."""
        number: cython.int = self._own[name]
        if number < 0:
            number = self._own[name] = self._new_name(_OWN_NAMES[name])
        return number

    def _new_name(self, name: QualifiedName) -> cython.int:
        self._names.append(name)
        self._name_sizes.append(len(str(name).encode()))
        return len(self._names) - 1

    def _property_name(self, term: cython.int) -> cython.int:
        """The number of the name of a property's elements, -2 if it has none."""
        iri: bytes = self.terms.values[term]
        if iri not in _known_properties:
            if len(_known_properties) >= _PROPERTIES_KEPT_MAX:
                _known_properties.clear()
                _known_names.clear()
            _known_properties[iri] = property_name(iri.decode())
        parts = _known_properties[iri]
        if parts is None:
            return -2
        namespace, local = parts
        prefix = self._namespaces.get(namespace)
        if prefix is None:
            prefix = self._new_prefix(namespace)
        name = _known_names.get(iri)
        if name is None or name.prefix != prefix:
            name = _known_names[iri] = QualifiedName(prefix, namespace, local)
        return self._new_name(name)

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
            self._refuse_expansion()

    def _refuse_expansion(self) -> None:
        raise MessageRefused(
            "entity-expansion",
            f"striped, the graph has more than {self._limits.message.expansion_max} bytes",
        )


def _is_member(name: bytes) -> bool:
    """Whether a property is rdf:_1, rdf:_2 .."""
    digits = name[len(_MEMBER) :]
    return name.startswith(_MEMBER) and digits.isdigit() and not digits.startswith(b"0")


def _longer(column: Any, rows: cython.Py_ssize_t) -> Any:
    longer = array("i", [-1]) * rows
    longer[: len(column)] = array("i", column)
    return longer
