"""RDF as text into a striped element stream (formats/graph/striped.py).

Terms interns the terms of one graph, GraphBuilder collects its triples, and StripedWriter writes
them as columns.  RdfXmlReader reads RDF/XML from an element stream, and TurtleScanner reads the
ordinary Turtle and N-Quads; pyoxigraph reads the rest (formats/graph/oxigraph.py).
"""

# The types of numbers that are imported below.
cdef int DATE, DATE_TIME, DATE_TIME_STAMP, INTEGER, NO_VALUE

import re
from array import array
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol, TypeAlias

from formats.characters import is_colonless_name, is_utf_8
from formats.element_stream import ElementStream
from formats.errors import MessageRefused
from formats.graph import literal_forms, striped
from formats.graph.graph_limits import (
    DEFAULT_GRAPH_LIMITS, GraphLimits, refuse_markup, refuse_nodes,
)
from formats.graph.iris import find_bad_character, has_scheme, resolve, without_fragment
from formats.graph.literal_forms import (
    DATE,
    DATE_TIME,
    DATE_TIME_STAMP,
    INTEGER,
    NO_VALUE,
)
from formats.graph.property_names import known_property_name
from formats.graph.syntaxes import GraphSyntax
from formats.graph.vocabulary import RDF, RDF_TYPE, XSD
from formats.graph.xml_literal import xml_literal
from formats.limits import MessageLimits
from formats.names import XML_NAMESPACE, QualifiedName

cimport cython

from formats.columns cimport ColumnWriter


# -------------------------------------------------------------------------------------------------
# The numbers of valid literals, as literal_forms.py has them; the frequent forms are in C.

cdef enum:
    _DAYS_BEFORE_1970 = 719_468 + 146_097  # from March of the year -400

cdef bytes _XSD = XSD.encode()
cdef bytes _PLAIN_TIME = b"0000-00-00T00:00:00Z"


cdef bint is_seconds(int kind) noexcept:
    """As the function of that name in literal_forms.py."""
    return DATE_TIME <= kind <= DATE


cpdef bytes derived_value(bytes lexical, int kind):
    """The number or the seconds of a literal in ASCII, or nothing."""
    if kind == INTEGER and _is_plain_integer(lexical):
        return lexical
    if (kind == DATE_TIME or kind == DATE_TIME_STAMP) and _is_plain_time(lexical):
        return _plain_seconds(lexical)
    return literal_forms.derived_value(lexical, kind)


cdef bint _is_plain_integer(bytes lexical) except -1:
    """Whether its digits are those of its double."""
    cdef const unsigned char* data = lexical
    cdef Py_ssize_t size = len(lexical)
    cdef Py_ssize_t at = 0
    if size and data[0] == ord("-"):
        at = 1
    if size == at or size > 15 or data[at] == ord("0"):
        return size == 1 and data[0] == ord("0")
    while at < size:
        if not 48 <= data[at] <= 57:
            return False
        at += 1
    return True


cdef bint _is_plain_time(bytes lexical) except -1:
    """Whether it has the form ``2024-02-29T12:30:15Z``, with whatever digits."""
    cdef const unsigned char* data = lexical
    cdef const unsigned char* shape = _PLAIN_TIME
    cdef Py_ssize_t at
    if len(lexical) != 20:
        return False
    for at in range(20):
        if shape[at] == 48:
            if not 48 <= data[at] <= 57:
                return False
        elif data[at] != shape[at]:
            return False
    return True


cdef bytes _plain_seconds(bytes lexical):
    cdef const unsigned char* data = lexical
    cdef int year = 100 * _pair(data, 0) + _pair(data, 2)
    cdef int month = _pair(data, 5)
    cdef int day = _pair(data, 8)
    cdef int hour = _pair(data, 11)
    cdef int minute = _pair(data, 14)
    cdef int second = _pair(data, 17)
    cdef long long of_day = 3_600 * hour + 60 * minute + second
    if month < 1 or month > 12 or day < 1 or day > _days_of(year, month):
        return b""
    if minute > 59 or second > 59 or of_day > 86_400:
        return b""
    cdef long long days = _days_since_1970(year, month, day)
    return b"%d" % (86_400 * days + of_day)


cdef int _pair(const unsigned char* data, Py_ssize_t at) noexcept:
    """The number of two digits."""
    return 10 * (data[at] - 48) + data[at + 1] - 48


cdef int _days_of(int year, int month) noexcept:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31


cdef int _days_since_1970(int year, int month, int day) noexcept:
    """Of a year from 0, in the Gregorian calendar, before it was there too."""
    # Years begin in March, 400 of them are added so that none is negative.
    cdef int of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    cdef int since = year + 399 if month <= 2 else year + 400
    return 365 * since + since // 4 - since // 100 + since // 400 + of_year - _DAYS_BEFORE_1970


# -------------------------------------------------------------------------------------------------
# Terms: the IRIs, blank nodes and literals of one graph, each once, numbered from 0.
#
# The reader of each syntax asks here for the number of each term that it meets
# and gives the numbers to a GraphBuilder.  Values are bytes of UTF-8.  Term equality is RDF's: the
# same kind, characters, datatype and language (in lower case), so ``"5"^^xsd:integer`` and
# ``"05"^^xsd:integer`` are two terms.
#
# A term is refused where it is met: longer than its bound, or with a character that no XML text can
# hold (RDF allows U+0000 and others).  The refusal has no place; the reader knows it.

cdef enum:
    IRI = 0
    BLANK = 1
    STRING = 2
    TEXT = 3
    LITERAL = 4
    NO_TERM = -1
    TERM_KIND = 0
    TERM_DATATYPE = 1
    TERM_VALUE = 2
    TERM_WIDTH = 3


_ROOM = 256  # for terms, to begin with
cdef bytes _XSD_STRING = (XSD + "string").encode()


@cython.final
cdef class Terms:
    """The terms of a graph by their numbers.

    ``values``: IRI, label or lexical form.  ``extras``: the language of a TEXT; of a LITERAL that
    is a valid number or time this as a number (``literal_values``); nothing otherwise.  ``kind``,
    ``datatype`` and ``value_kind`` tell the rest.
    """

    cdef readonly list values, extras
    cdef int _count, _blank_count, _blanks_max
    cdef int[::1] _rows
    cdef Py_ssize_t _iri_bytes_max, _literal_bytes_max
    cdef bint _is_xml
    cdef dict _iris, _blanks, _strings, _texts, _literals, _datatype_kinds

    def __init__(self, limits: GraphLimits) -> None:
        self.values: list[bytes] = []
        self.extras: list[bytes] = []
        self._count = self._blank_count = 0
        self._blanks_max = limits.blank_nodes_max
        self._rows = array("i", bytes(4 * TERM_WIDTH * _ROOM))
        self._iri_bytes_max = limits.iri_bytes_max
        self._literal_bytes_max = limits.literal_bytes_max
        self._is_xml = False
        self._iris: dict[bytes, int] = {}
        self._blanks: dict[bytes, int] = {}
        self._strings: dict[bytes, int] = {}
        self._texts: dict[tuple[bytes, bytes], int] = {}
        self._literals: dict[tuple[bytes, int], int] = {}
        self._datatype_kinds: dict[int, int] = {}

    cpdef trust_characters(self):
        """All terms come from an XML document, so that it can hold their characters."""
        self._is_xml = True

    cdef int kind(self, int term) noexcept:
        """IRI, BLANK, STRING (xsd:string), TEXT (with a language) or LITERAL (any other)."""
        return self._rows[TERM_WIDTH * term + TERM_KIND]

    cdef int datatype(self, int term) noexcept:
        """The number of the datatype of a LITERAL, an IRI; NO_TERM of others."""
        return self._rows[TERM_WIDTH * term + TERM_DATATYPE]

    cdef int value_kind(self, int term) noexcept:
        """How a LITERAL is read, if it has a value; NO_VALUE otherwise."""
        return self._rows[TERM_WIDTH * term + TERM_VALUE]

    cdef int count(self) noexcept:
        """How many terms there are."""
        return self._count

    cpdef int iri(self, bytes value) except -1:
        """The number of an absolute IRI, which the caller has checked to be one."""
        found = self._iris.get(value)
        if found is None:
            if len(value) > self._iri_bytes_max:
                raise MessageRefused(
                    "iri-too-long", f"an IRI has more than {self._iri_bytes_max} bytes"
                )
            self._check(value)
            found = self._new(IRI, value, NO_TERM, NO_VALUE, b"")
            self._iris[value] = found
        return found

    def has_iri_below(self, start: bytes) -> bool:
        """Whether some IRI begins so."""
        return any(iri.startswith(start) for iri in self._iris)

    cpdef int blank(self, bytes label) except -1:
        """The number of the blank node that has a label in this message."""
        found = self._blanks.get(label)
        if found is None:
            found = self._blanks[label] = self._new_blank(label)
        return found

    cpdef int new_blank(self) except -1:
        """The number of a blank node that has no label."""
        return self._new_blank(b"")

    cdef int _new_blank(self, bytes label) except -1:
        self._blank_count += 1
        if self._blank_count > self._blanks_max:
            refuse_nodes(self._blanks_max)
        return self._new(BLANK, label, NO_TERM, NO_VALUE, b"")

    cpdef int string(self, bytes value) except -1:
        """The number of an xsd:string."""
        found = self._strings.get(value)
        if found is None:
            self._check_literal(value)
            found = self._new(STRING, value, NO_TERM, NO_VALUE, b"")
            self._strings[value] = found
        return found

    cpdef int text(self, bytes value, bytes language) except -1:
        """The number of a string with its language, a well-formed tag of ASCII."""
        key = (value, language.lower())
        found = self._texts.get(key)
        if found is None:
            self._check_literal(value)
            found = self._new(TEXT, value, NO_TERM, NO_VALUE, key[1])
            self._texts[key] = found
        return found

    cpdef int literal(self, bytes value, int datatype) except -1:
        """The number of a literal whose datatype is an IRI of this number."""
        key = (value, datatype)
        found = self._literals.get(key)
        if found is None:
            if self.values[datatype] == _XSD_STRING:
                return self.string(value)
            self._check_literal(value)
            kind = self._datatype_kinds.get(datatype)
            if kind is None:
                kind = literal_forms.value_kind(self.values[datatype])
                self._datatype_kinds[datatype] = kind
            derived = derived_value(value, kind) if kind else b""
            found = self._new(LITERAL, value, datatype, kind if derived else NO_VALUE, derived)
            self._literals[key] = found
        return found

    cdef int _new(self, int kind, bytes value, int datatype, int value_kind, bytes extra) except -1:
        cdef int number = self._count
        cdef Py_ssize_t row = TERM_WIDTH * number
        if row == len(self._rows):
            longer = array("i", bytes(8 * row))
            longer[:row] = array("i", bytes(self._rows))
            self._rows = longer
        self._rows[row + TERM_KIND] = kind
        self._rows[row + TERM_DATATYPE] = datatype
        self._rows[row + TERM_VALUE] = value_kind
        self.values.append(value)
        self.extras.append(extra)
        self._count = number + 1
        return number

    cdef _check_literal(self, bytes value):
        if len(value) > self._literal_bytes_max:
            raise MessageRefused(
                "literal-too-long", f"a literal has more than {self._literal_bytes_max} bytes"
            )
        self._check(value)

    cdef _check(self, bytes value):
        cdef const unsigned char* data = value
        cdef unsigned char byte
        cdef Py_ssize_t at
        cdef Py_ssize_t size = 0 if self._is_xml else len(value)
        for at in range(size):
            byte = data[at]
            if byte < 0x20:
                if byte != 0x09 and byte != 0x0A and byte != 0x0D:
                    _refuse_character(byte)
            elif byte == 0xEF and data[at + 1] == 0xBF and data[at + 2] >= 0xBE:
                _refuse_character(0xFFC0 | data[at + 2] & 0x3F)


def _refuse_character(code: int) -> None:
    raise MessageRefused(
        "bad-character",
        f"the character U+{code:04X} cannot be carried: XML has no way to write it",
    )


# -------------------------------------------------------------------------------------------------
# StripedWriter: subjects and triples, in their order, into the columns of a striped graph.
#
# One graph: ``begin``, then for each subject ``open_subject``, its triples, ``write_closure``,
# ``close_subject``; ``finish``.  The names of elements and attributes are numbered as they are
# first used, those of the striped form itself (``own``) as those of properties.

cdef enum:
    E_GRAPH = 0
    E_SUBJECT = 1
    E_NAMED_SUBJECT = 2
    E_OTHER = 3
    E_CLOSURE = 4
    E_CLASS = 5
    E_ABOVE = 6
    E_MEMBER = 7
    A_SUBJECT = 8
    A_BLANK = 9
    A_GRAPH = 10
    A_GRAPH_BLANK = 11
    A_IRI = 12
    A_STRING = 13
    A_TEXT = 14
    A_LANGUAGE = 15
    A_LEXICAL = 16
    A_DATATYPE = 17
    A_NUMBER = 18
    A_SECONDS = 19
    A_PROPERTY = 20
    A_OWN = 21
    OWN_NAMES = 22

    # In place of E_CLASS: with A_OWN.
    OWN_CLASS = -1


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
cdef list _OWN_NAMES = [
    *(QualifiedName("", striped.GRAPH_NAMESPACE, local) for local in _OWN_ELEMENTS),
    *(QualifiedName("", "", local) for local in _OWN_ATTRIBUTES),
]
_Element: TypeAlias = tuple[int, int, int]  # its name, a property, an object
_NAMES_KEPT_MAX = 8_192
cdef dict _known_names = {}  # prefix, name, its size
cdef list _OWN_SIZES = [len(name.local) for name in _OWN_NAMES]
cdef list _DIGITS = [b"%d" % number for number in range(256)]
_NOTHING = array("i", [-1])
cdef list _IDLE = []  # as many as there were graphs written at the same time


@cython.final
cdef class StripedWriter:
    """Writes one graph of these terms, of which no more come."""

    cdef Terms _terms
    cdef object _limits
    cdef ColumnWriter _out
    cdef Py_ssize_t _written, _names_max
    cdef int _blanks
    cdef int[::1] _own
    cdef dict _namespaces
    cdef list _names, _name_sizes, _property_names, _blank_numbers

    def __init__(self, terms: Terms, limits: GraphLimits) -> None:
        self._terms = terms
        self._limits = limits
        self._names_max = limits.message.names_max
        self._names: list[QualifiedName] = []
        self._name_sizes: list[int] = []
        self._own = _NOTHING * OWN_NAMES
        self._property_names = [-1] * terms.count()
        self._blank_numbers = [-1] * terms.count()
        self._blanks = 0
        self._namespaces: dict[str, str] = {}
        self._out: ColumnWriter = _IDLE.pop() if _IDLE else ColumnWriter()

    cdef begin(self, Py_ssize_t size):
        """The root element of a graph whose values have at most so many bytes."""
        self._written = size
        self._out.begin(max(size, 1))
        self._out.open_element()
        self._out.declare(("", striped.GRAPH_NAMESPACE))
        self._name(self._own_name(E_GRAPH))

    cdef finish(self):
        """The graph.

        Raises MessageRefused (``too-many-names``, ``entity-expansion``).
        """
        self._out.close_element()
        self._check_written()
        stream: ElementStream = self._out.finish(self._names)
        _IDLE.append(self._out)
        return stream

    cdef int open_subject(self, int subject, int graph) except -1:
        """The element of a subject, in a named graph or in the default one, -1."""
        cdef int number = self._own_name(E_NAMED_SUBJECT if graph >= 0 else E_SUBJECT)
        self._out.open_element()
        if graph >= 0:
            self._write_node(graph, A_GRAPH, A_GRAPH_BLANK)
        self._write_node(subject, A_SUBJECT, A_BLANK)
        self._name(number)

    cdef void close_subject(self) noexcept:
        self._out.close_element()

    cdef write_closure(self, list found):
        """CLOSURE of a subject: elements with a property, PROPERTY_ABOVE's, and an object each;
        OWN_CLASS in place of CLASS for one that is OWN."""
        cdef ColumnWriter out = self._out
        cdef int number
        out.open_element()
        self._name(self._own_name(E_CLOSURE))
        for element, name, object in found:
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

    cdef int write_triple(self, int property, int object) except -1:
        """A property of the subject that is open."""
        cdef ColumnWriter out = self._out
        cdef int name = self._property_names[property]
        if name == -1:
            name = self._property_name(property)
            self._property_names[property] = name
        cdef int number = name if name >= 0 else self._own_name(E_OTHER)
        out.open_element()
        if name < 0:
            self._write_value(A_PROPERTY, self._terms.values[property])
        self._write_object(object)
        self._name(number)
        out.close_element()

    cdef int _write_object(self, int term) except -1:
        cdef bint seconds
        cdef Terms terms = self._terms
        cdef int kind = terms.kind(term)
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
                seconds = is_seconds(terms.value_kind(term))
                self._write_value(A_SECONDS if seconds else A_NUMBER, terms.extras[term])
        else:
            self._write_value(A_TEXT, value)
            self._write_value(A_LANGUAGE, terms.extras[term])

    cdef int _write_node(self, int term, int iri, int blank) except -1:
        """An IRI or a blank node, each as an attribute of its own."""
        if self._terms.kind(term) == BLANK:
            self._write_value(blank, self._blank(term))
        else:
            self._write_value(iri, self._terms.values[term])

    cdef int _write_value(self, int name, bytes value) except -1:
        cdef ColumnWriter out = self._out
        out.copy_value(value, 0, len(value))
        out.attribute_name[out.attributes] = self._own_name(name)
        out.close_attribute()

    cdef bytes _blank(self, int term):
        cdef int number = self._blank_numbers[term]
        if number < 0:
            number = self._blanks
            self._blank_numbers[term] = number
            self._blanks += 1
        return _DIGITS[number] if number < 256 else b"%d" % number

    cdef int _name(self, int number) except -1:
        """Name the element opened last, all of whose attributes are there."""
        self._out.name_element(number)
        self._written += self._name_sizes[number]

    cdef int _own_name(self, int name) except -1:
        """The number of a name of the striped form itself."""
        cdef int number = self._own[name]
        if number < 0:
            number = self._own[name] = self._new_name(_OWN_NAMES[name], _OWN_SIZES[name])
        return number

    cdef int _new_name(self, name, int size) except -1:
        if len(self._names) == self._names_max:
            raise MessageRefused(
                "too-many-names", f"more than {self._names_max} properties, names of elements"
            )
        self._names.append(name)
        self._name_sizes.append(size)
        return len(self._names) - 1

    cdef int _property_name(self, int term) except? -1:
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

    cdef str _new_prefix(self, str namespace):
        if len(self._namespaces) == self._limits.namespaces_max:
            raise MessageRefused(
                "too-many-namespaces",
                f"properties of more than {self._limits.namespaces_max} namespaces",
            )
        prefix = striped.PREFIXES.get(namespace) or f"n{len(self._namespaces) + 1}"
        self._namespaces[namespace] = prefix
        self._out.declare_on(0, (prefix, namespace))
        self._written += len(prefix) + len(namespace.encode())
        return prefix

    cdef _check_written(self):
        limits = self._limits.message
        self._written += 2 * self._out.attributes + len(striped.GRAPH_NAMESPACE)
        if self._written > limits.expansion_max:
            refuse_expansion(limits)


def refuse_expansion(limits: MessageLimits) -> None:
    raise MessageRefused(
        "entity-expansion", f"striped, the graph has more than {limits.expansion_max} bytes"
    )


# -------------------------------------------------------------------------------------------------
# GraphBuilder: the triples of a graph, one after the other, into a striped ElementStream.
#
# ``striped.py`` defines the striped form.  The reader of a syntax asks ``terms`` for the
# numbers of its terms and adds triples of these; the columns are written at the end, when it is
# known which triples a subject has.
#
# ::
#
#     added       (s1 p1 o1) (s2 p2 o2) (s1 p3 o3)
#     rows        0          1          2               property, object, and the next of the group
#     groups      0: subject s1, rows 0, 2      1: subject s2, row 1
#
# A group is a subject in a graph.  Rows and groups are known by where they begin in their columns.
# Doubles are left out by a hash table of rows with open addressing, salted as Python's hashes are,
# so that nobody can prepare triples that collide.

cdef enum:
    IS_TYPE = 1
    IS_MEMBER = 2
    HAS_ABOVE = 4
    HAS_NO_NAME = 8
    ROW_GROUP = 0
    ROW_PROPERTY = 1
    ROW_OBJECT = 2
    ROW_NEXT = 3
    ROW_WIDTH = 4
    GROUP_SUBJECT = 0
    GROUP_GRAPH = 1
    GROUP_FIRST = 2
    GROUP_LAST = 3
    GROUP_WIDTH = 4


cdef bytes _RDF = RDF.encode()
cdef bytes _TYPE = RDF_TYPE.encode()
cdef bytes _MEMBER = _RDF + b"_"
_ROWS, _SUBJECTS = 256, 256  # room to begin with; the rows' is a power of two
_NUMBER_BYTES = 11  # of a blank node, at most


class Closure(Protocol):
    """The types and properties that taxonomies add to a graph's own; all are IRIs."""

    def classes(self, subject: bytes, types: list[bytes]) -> list[bytes]:
        """The types of a subject ("" for a blank node), those that are listed of it, and all
        classes above them, each once."""

    def properties_above(self, name: bytes) -> list[bytes]:
        """All properties above one, without it."""

    def listed(self, iri: bytes) -> Sequence[bytes]:
        """The classes that are listed of an IRI, which has them wherever it stands."""


@cython.final
cdef class GraphBuilder:
    """One graph: ``terms`` and ``add``, then ``finish``, once."""

    cdef readonly Terms terms
    cdef readonly Py_ssize_t triples
    cdef object _limits
    cdef Py_ssize_t _triples_max, _bytes
    cdef int _row_end, _group_end, _salt
    cdef dict _named, _above
    cdef int[::1] _rows, _groups, _subject_group, _slots, _role
    cdef list _closed

    def __init__(self, limits: GraphLimits = DEFAULT_GRAPH_LIMITS) -> None:
        self.terms = Terms(limits)
        self.triples = 0  # as they came
        self._limits = limits
        self._triples_max = limits.triples_max
        self._row_end = 0
        self._group_end = 0
        self._bytes = 0  # of values, at most
        self._named: dict[tuple[int, int], int] = {}
        # By group: the elements below CLOSURE, with a property (PROPERTY_ABOVE's) and an object.
        self._closed: list[list[tuple[int, int, int]] | None] = []
        self._above: dict[int, list[int]] = {}  # by property
        self._salt = hash(b"triples") & 0x7FFFFFFF
        self._rows = array("i")
        self._groups = array("i")
        self._subject_group = _NOTHING * _SUBJECTS
        self._slots = array("i")
        self._grow_rows(_ROWS)
        self._groups = _NOTHING * (GROUP_WIDTH * _SUBJECTS)

    cpdef int add(self, int subject, int property, int object, int graph=-1) except -1:
        """A triple of terms' numbers, in a named graph or, with -1, in the default one.

        Raises MessageRefused (``too-many-triples``).
        """
        if self.triples == self._triples_max:
            raise MessageRefused(
                "too-many-triples", f"more than {self._triples_max} triples, doubles included"
            )
        self.triples += 1
        cdef int group = self._group(subject, graph)
        cdef int row = self._row_end
        cdef unsigned int slot = self._slot(group, property, object)
        if self._slots[slot] < 0:
            self._slots[slot] = row
            self._rows[row + ROW_GROUP] = group
            self._rows[row + ROW_PROPERTY] = property
            self._rows[row + ROW_OBJECT] = object
            if self._groups[group + GROUP_FIRST] < 0:
                self._groups[group + GROUP_FIRST] = row
            else:
                self._rows[self._groups[group + GROUP_LAST] + ROW_NEXT] = row
            self._rows[row + ROW_NEXT] = -1
            self._groups[group + GROUP_LAST] = row
            self._row_end += ROW_WIDTH
            self._bytes += self._size(object)
            if self._row_end == len(self._rows):
                self._grow_rows(2 * self._row_end // ROW_WIDTH)

    def finish(self, closure: Closure | None = None) -> ElementStream:
        """The striped graph.

        Raises MessageRefused with the codes of MessageLimits, and ``too-many-namespaces``.
        """
        cdef int group, row
        self._close(closure)
        self._check_sizes()
        cdef StripedWriter writer = StripedWriter(self.terms, self._limits)
        writer.begin(self._bytes)
        for group in range(0, self._group_end, GROUP_WIDTH):
            writer.open_subject(
                self._groups[group + GROUP_SUBJECT], self._groups[group + GROUP_GRAPH]
            )
            row = self._groups[group + GROUP_FIRST]
            while row >= 0:
                writer.write_triple(self._rows[row + ROW_PROPERTY], self._rows[row + ROW_OBJECT])
                row = self._rows[row + ROW_NEXT]
            found = self._closed[group // GROUP_WIDTH]
            if found is not None:
                writer.write_closure(found)
            writer.close_subject()
        return writer.finish()

    # Triples

    cdef int _group(self, int subject, int graph) except -1:
        """The group of a subject in a graph."""
        cdef int group
        if graph < 0:
            if subject >= len(self._subject_group):
                self._subject_group = _longer(self._subject_group, 2 * subject)
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

    cdef int _new_group(self, int subject, int graph) except -1:
        cdef int group = self._group_end
        if group == len(self._groups):
            self._groups = _longer(self._groups, 2 * group)
        self._groups[group + GROUP_SUBJECT] = subject
        self._groups[group + GROUP_GRAPH] = graph
        self._groups[group + GROUP_FIRST] = -1
        self._group_end = group + GROUP_WIDTH
        self._bytes += self._size(subject)
        if graph >= 0:
            self._bytes += self._size(graph)
        return group

    cdef Py_ssize_t _size(self, int term) except -1:
        """The bytes of the values that say a term, at most."""
        cdef Terms terms = self.terms
        cdef int kind = terms.kind(term)
        if kind == BLANK:
            return _NUMBER_BYTES
        cdef Py_ssize_t size = len(terms.values[term])
        if kind == LITERAL:
            return size + len(terms.values[terms.datatype(term)]) + len(terms.extras[term])
        if kind == IRI or kind == STRING:
            return size
        return size + len(terms.extras[term])

    cdef unsigned int _slot(self, int group, int property, int object) noexcept:
        """The slot of a triple, or the free one where it belongs."""
        cdef unsigned long long prime = 0x9E3779B97F4A7C15
        cdef unsigned long long mask = 0xFFFFFFFFFFFFFFFF
        cdef unsigned long long low = 0xFFFFFFFF
        cdef unsigned long long mixed = (group ^ self._salt) & low
        cdef int row
        mixed = (mixed * prime) & mask
        mixed ^= mixed >> 29
        mixed = ((mixed ^ property) * prime) & mask
        mixed ^= mixed >> 32
        mixed = ((mixed ^ object) * prime) & mask
        cdef unsigned int slots = len(self._slots) - 1
        cdef unsigned int slot = (mixed >> 32) & slots
        while True:
            row = self._slots[slot]
            if row < 0 or (
                self._rows[row + ROW_OBJECT] == object
                and self._rows[row + ROW_PROPERTY] == property
                and self._rows[row + ROW_GROUP] == group
            ):
                return slot
            slot = (slot + 1) & slots

    cdef _grow_rows(self, Py_ssize_t rows):
        cdef int row
        cdef unsigned int slot
        self._rows = _longer(self._rows, ROW_WIDTH * rows)
        self._slots = _NOTHING * (2 * rows)
        for row in range(0, self._row_end, ROW_WIDTH):
            slot = self._slot(
                self._rows[row + ROW_GROUP],
                self._rows[row + ROW_PROPERTY],
                self._rows[row + ROW_OBJECT],
            )
            self._slots[slot] = row

    # Closure

    cdef _close(self, closure):
        """Find what stands below CLOSURE."""
        cdef int group, row, property, kind
        self._role = _NOTHING * self.terms.count()
        cdef bint special = False
        for row in range(0, self._row_end, ROW_WIDTH):
            property = self._rows[row + ROW_PROPERTY]
            if self._role[property] < 0:
                kind = self._role_of(self.terms.values[property], closure)
                self._role[property] = kind
                if kind & ~HAS_NO_NAME:
                    special = True
            if self._role[property] & HAS_NO_NAME:  # its IRI is written as a value, each time
                self._bytes += len(self.terms.values[property])
        if closure is not None:
            self._add_listed(closure)
            special = True
        self._closed = [None] * (self._group_end // GROUP_WIDTH)
        if special:
            for group in range(0, self._group_end, GROUP_WIDTH):
                self._close_group(group, closure)

    cdef int _role_of(self, bytes name, closure) except -1:
        """The role of a property, by the taxonomies (CLOSURE) first; 0 for none."""
        cdef int role = 0
        if name.startswith(_RDF):
            if name == _TYPE:
                role = IS_TYPE
            elif _is_member(name):
                role = IS_MEMBER
        if known_property_name(name) is None:
            role |= HAS_NO_NAME
        if closure is not None:
            above = [self.terms.iri(each) for each in closure.properties_above(name)]
            if above:
                self._above[self.terms.iri(name)] = above
                role |= HAS_ABOVE
        return role

    cdef _close_group(self, int group, closure):
        cdef int role
        types: list[int] = []
        found: list[tuple[int, int, int]] = []
        cdef int row = self._groups[group + GROUP_FIRST]
        while row >= 0:
            role = self._role[self._rows[row + ROW_PROPERTY]]
            if role:
                if role & IS_TYPE:
                    types.append(self._rows[row + ROW_OBJECT])
                if role & IS_MEMBER:
                    found.append((E_MEMBER, NO_TERM, self._rows[row + ROW_OBJECT]))
                if role & HAS_ABOVE:
                    for each in self._above[self._rows[row + ROW_PROPERTY]]:
                        found.append((E_ABOVE, each, self._rows[row + ROW_OBJECT]))
            row = self._rows[row + ROW_NEXT]
        classes = types
        if closure is not None:
            name = self._iri_of(self._groups[group + GROUP_SUBJECT])
            classes = self._classes(name, types, closure)
            types += [self.terms.iri(one) for one in closure.listed(name)]
        if classes:
            own = set(types)
            said = [(OWN_CLASS if each in own else E_CLASS, NO_TERM, each) for each in classes]
            found = said + found
        if found:
            self._closed[group // GROUP_WIDTH] = found

    cdef _add_listed(self, closure):
        """Every object that is listed gets a group, for its classes."""
        cdef int row, object
        for row in range(0, self._row_end, ROW_WIDTH):
            object = self._rows[row + ROW_OBJECT]
            if self.terms.kind(object) == IRI and closure.listed(self.terms.values[object]):
                self._group(object, self._groups[self._rows[row + ROW_GROUP] + GROUP_GRAPH])

    def _iri_of(self, int subject) -> bytes:
        """ "" for a blank node."""
        cdef Terms terms = self.terms
        return terms.values[subject] if terms.kind(subject) == IRI else b""

    def _classes(self, name: bytes, types: list[int], closure: Closure) -> list[int]:
        """The classes of the subject of an IRI ("" for a blank node) with these types, which may
        be anything."""
        cdef Terms terms = self.terms
        named = [terms.values[each] for each in types if terms.kind(each) == IRI]
        others = [each for each in types if terms.kind(each) != IRI]
        return [terms.iri(each) for each in closure.classes(name, named)] + others

    cdef _check_sizes(self):
        cdef Py_ssize_t elements = self._group_end // GROUP_WIDTH + self._row_end // ROW_WIDTH
        for found in self._closed:
            if found is not None:
                elements += 1 + len(found)
                for _, name, object in found:
                    self._bytes += self._size(object)
                    if name >= 0:
                        self._bytes += self._size(name)
        limits = self._limits.message
        if elements >= limits.elements_max:  # and the root
            raise MessageRefused(
                "too-many-elements",
                f"striped, the graph has more than {limits.elements_max} elements",
            )
        if self._bytes > limits.expansion_max:
            refuse_expansion(limits)


cdef bint _is_member(bytes name) except -1:
    """Whether a property is rdf:_1, rdf:_2 .."""
    digits = name[len(_MEMBER) :]
    return name.startswith(_MEMBER) and digits.isdigit() and not digits.startswith(b"0")


cdef _longer(object column, Py_ssize_t rows):
    longer = _NOTHING * rows
    if len(column):
        longer[: len(column)] = array("i", bytes(column))
    return longer


# -------------------------------------------------------------------------------------------------
# The roles of names in an RDF/XML document (RDF 1.1 XML Syntax, sections 5.1 and 6.1).
#
# Of an element::
#
#     PLAIN_ELEMENT       a class, or a property
#     DESCRIPTION         rdf:Description: a node, and no property
#     LIST_ITEM           rdf:li: a property, and no node
#     NO_ELEMENT          a name of the syntax, or one that has gone out of it
#     BARE_ELEMENT        a name in no namespace
#
# Of an attribute::
#
#     IGNORED             XML's own, but for xml:lang and xml:base
#     PROPERTY_ATTRIBUTE  a property whose object is a string
#     TYPE .. PARSE_TYPE  the syntax's; rdf:type is a property whose object is an IRI
#     LANGUAGE_OF, BASE   xml:lang, xml:base
#     NO_ATTRIBUTE        a name of the syntax that no attribute has, or one that has gone out of it
#     BARE_ATTRIBUTE      any other name in no namespace

cpdef enum:
    # What an element is there for.
    PLAIN_ELEMENT = 1
    DESCRIPTION = 2
    LIST_ITEM = 3
    NO_ELEMENT = 4
    BARE_ELEMENT = 5
    # What an attribute is there for.
    IGNORED = 1
    PROPERTY_ATTRIBUTE = 2
    TYPE = 3
    ID = 4
    ABOUT = 5
    NODE_ID = 6
    RESOURCE = 7
    DATATYPE_OF = 8
    PARSE_TYPE = 9
    LANGUAGE_OF = 10
    BASE = 11
    NO_ATTRIBUTE = 12
    BARE_ATTRIBUTE = 13


_OF_THE_SYNTAX = {
    "ID": ID,
    "about": ABOUT,
    "nodeID": NODE_ID,
    "resource": RESOURCE,
    "datatype": DATATYPE_OF,
    "parseType": PARSE_TYPE,
}
_GONE = {"aboutEach", "aboutEachPrefix", "bagID"}
# Written without a prefix before 2004, and in feeds to this day.
_WITHOUT_PREFIX = {"ID", "about", "parseType", "resource", "type"}


@lru_cache(4096)
def element_kind(name: QualifiedName) -> int:
    """What an element of this name is there for."""
    if not name.namespace:
        return BARE_ELEMENT
    if name.namespace != RDF:
        return PLAIN_ELEMENT
    if name.local == "Description":
        return DESCRIPTION
    if name.local == "li":
        return LIST_ITEM
    taken = name.local in _OF_THE_SYNTAX or name.local in _GONE or name.local == "RDF"
    return NO_ELEMENT if taken else PLAIN_ELEMENT


@lru_cache(4096)
def iri_of_name(name: QualifiedName) -> bytes:
    """The IRI that a name means, or nothing if that is none."""
    iri = (name.namespace + name.local).encode()
    return b"" if find_bad_character(iri) >= 0 or not has_scheme(iri) else iri


@lru_cache(4096)
def attribute_kind(name: QualifiedName) -> int:
    """What an attribute of this name is there for."""
    if name.namespace == XML_NAMESPACE:
        return {"lang": LANGUAGE_OF, "base": BASE}.get(name.local, IGNORED)
    if (name.prefix or name.local).lower().startswith("xml"):
        return IGNORED
    if name.namespace not in {"", RDF}:
        return PROPERTY_ATTRIBUTE
    if not name.namespace and name.local not in _WITHOUT_PREFIX:
        return BARE_ATTRIBUTE
    if name.local == "type":
        return TYPE
    if name.local in _OF_THE_SYNTAX:
        return _OF_THE_SYNTAX[name.local]
    taken = name.local in _GONE or name.local in {"RDF", "Description", "li"}
    return NO_ATTRIBUTE if taken else PROPERTY_ATTRIBUTE


# -------------------------------------------------------------------------------------------------
# RdfAttributes: the attributes of one element of an RDF/XML document after the other, and what
# they mean there.
#
# Base and language hold for an element and all within it; there is a row of both for each depth,
# and one below them all for the document.

cdef enum:
    _NONE = -1
    _BAD = 0
    _OTHER = 1
    _OF_SCHEME = 2
    _LETTER = 3
    _PLUS = 0x2b  # +
    _COLON = 0x3a  # :
    _LOW_LINE = 0x5f  # _
    _NUMBER_SIGN = 0x23  # #


_LANGUAGE = re.compile(rb"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")
# What an octet can be in an IRI.
cdef bytes _IRI_OCTETS = bytes(
    _BAD
    if octet <= 0x20 or octet in b'<>"{}|^`\\'
    else _LETTER
    if octet < 0x80 and chr(octet).isalpha()
    else _OF_SCHEME
    if octet in b"0123456789+-."
    else _OTHER
    for octet in range(256)
)
cdef const unsigned char* _OCTETS = _IRI_OCTETS


@cython.final
cdef class RdfAttributes:
    """Those of the element that was read last; an attribute is its number in the document, or -1.

    ``given``: the attribute of each kind from ID to PARSE_TYPE; ``properties``: all that are
    properties.
    """

    cdef object _stream
    cdef const int[::1] _element_depth, _attribute_start, _attribute_name, _attribute_offset
    cdef bytes _attribute_values
    cdef int[::1] _kind_of_name
    cdef readonly int depth
    cdef list _bases, _languages
    cdef int _element, _row
    cdef readonly int[::1] given
    cdef readonly list properties

    def __init__(self, stream: ElementStream, base: bytes) -> None:
        cdef int i
        cdef int depth = 0
        self._stream = stream
        self._element_depth = stream.element_depth
        self._attribute_start = stream.attribute_start
        self._attribute_name = stream.attribute_name
        self._attribute_offset = stream.attribute_offset
        self._attribute_values = stream.attribute_values
        self._kind_of_name = array("i", bytes(4 * len(stream.names)))
        for i in range(len(stream)):
            depth = max(depth, self._element_depth[i])
        self.depth = depth
        self._bases = [without_fragment(base)] * (depth + 2)
        self._languages = [b""] * (depth + 2)
        self._element = 0
        self._row = 0
        self.given = array("i", [_NONE]) * (PARSE_TYPE + 1)
        self.properties: list[int] = []

    cpdef read(self, int element):
        """Go to an element; MessageRefused where it has an attribute that RDF/XML has not."""
        cdef int attribute, kind
        cdef int base = _NONE
        cdef int row = self._element_depth[element] + 1
        for kind in range(ID, PARSE_TYPE + 1):
            self.given[kind] = _NONE
        if self.properties:
            self.properties = []
        self._element = element
        self._row = row
        self._bases[row] = self._bases[row - 1]
        self._languages[row] = self._languages[row - 1]
        for attribute in range(self._attribute_start[element], self._attribute_start[element + 1]):
            kind = self.kind_of(attribute)
            if ID <= kind <= PARSE_TYPE:
                if self.given[kind] >= 0:
                    self.refuse(
                        "rdf-syntax", f"{self._name_of(attribute)} with a prefix and without"
                    )
                self.given[kind] = attribute
            elif PROPERTY_ATTRIBUTE <= kind <= TYPE:
                self.properties.append(attribute)
            elif kind == LANGUAGE_OF:
                self._languages[row] = self._language_of(attribute)
            elif kind == BASE:
                base = attribute
            elif kind != IGNORED:
                self.refuse("rdf-syntax", f"an attribute is named {self._name_of(attribute)}")
        if base >= 0:
            self._bases[row] = self._base_of(base)

    cpdef int kind_of(self, int attribute) except -1:
        """What an attribute is there for (``above``)."""
        cdef int name = self._attribute_name[attribute]
        if self._kind_of_name[name] == 0:
            self._kind_of_name[name] = attribute_kind(self._stream.names[name])
        return self._kind_of_name[name]

    cpdef check_only(self, int allowed, int also_allowed):
        """Refuse all that are given, and properties, but for these kinds."""
        cdef int kind
        cdef int attribute = self.properties[0] if self.properties else _NONE
        for kind in range(ID, PARSE_TYPE + 1):
            if kind not in (allowed, also_allowed) and self.given[kind] >= 0:
                attribute = self.given[kind]
        if attribute >= 0:
            self.refuse("rdf-syntax", f"the attribute {self._name_of(attribute)} cannot stand here")

    cpdef bytes value(self, int attribute):
        cdef Py_ssize_t start = self._attribute_offset[attribute]
        cdef Py_ssize_t end = self._attribute_offset[attribute + 1]
        return self._attribute_values[start:end]

    cpdef bytes name(self, int attribute):
        """The value of an attribute that has to be a name without a colon."""
        value = self.value(attribute)
        if not _is_plain_name(value, len(value)) and not is_colonless_name(value.decode()):
            self.refuse("rdf-syntax", f"{_shown(value)} is not a name without a colon")
        return value

    cpdef bytes iri(self, int attribute):
        """The IRI that an attribute refers to."""
        return self.resolved(self.value(attribute))

    cpdef bytes language(self):
        """That of the element's texts, or none."""
        return self._languages[self._row]

    cpdef bytes resolved(self, bytes reference):
        """The IRI that a reference is, at the base of the element."""
        base: bytes
        iri: bytes = reference
        if _is_absolute(reference, len(reference)):
            return reference
        base = self._bases[self._row]
        # PERF: of very many in some documents (python -m benchmarks graph: rdf_xml_over_parse).
        if base and _is_fragment(reference, len(reference)):
            return base + reference
        if not has_scheme(reference):
            if not base:
                self.refuse("relative-iri", f"{_shown(reference)}, and nothing it is relative to")
            iri = resolve(base, reference)
        if find_bad_character(iri) >= 0:
            self.refuse("bad-iri", f"{_shown(iri)} is not an IRI")
        return iri

    cpdef bytes iri_of_name(self, int name):
        """The IRI that a name of the document means."""
        qualified = self._stream.names[name]
        iri: bytes = iri_of_name(qualified)
        if not iri:
            said = f"{qualified.namespace}{qualified.local}"[:100]
            self.refuse("bad-iri", f"{said!r}, of the name {qualified}, is not an IRI")
        return iri

    cpdef refuse(self, str code, str reason, int element=_NONE):
        """MessageRefused, for the element read last or another."""
        place = _place_of(self._stream, element if element >= 0 else self._element)
        raise MessageRefused(code, f"{place}: {reason}")

    cdef str _name_of(self, int attribute):
        return str(self._stream.names[self._attribute_name[attribute]])

    cdef bytes _language_of(self, int attribute):
        value = self.value(attribute)
        if value and not _is_language(value):
            self.refuse("bad-language", f"{_shown(value)} is not a language tag")
        return value

    cdef bytes _base_of(self, int attribute):
        """The base that an xml:base says, itself relative to the one around it."""
        iri: bytes = resolve(self._bases[self._row - 1], without_fragment(self.value(attribute)))
        if find_bad_character(iri) >= 0 or not has_scheme(iri):
            self.refuse("bad-iri", f"{_shown(iri)} is not a base")
        return iri


@lru_cache(256)
def _is_language(value: bytes) -> bool:
    return _LANGUAGE.fullmatch(value) is not None


def _shown(reference: bytes) -> str:
    return repr(reference.decode()[:100])


def _place_of(stream: ElementStream, element: int) -> str:
    """Where an element is, as a path: ``/rdf:RDF/item[2]/title``."""
    steps = []
    while element >= 0:
        name, parent = stream.element_name[element], stream.element_parent[element]
        alike = [
            sibling
            for sibling in (stream.children_of(parent) if parent >= 0 else [element])
            if stream.element_name[sibling] == name
        ]
        place = f"[{alike.index(element) + 1}]" if len(alike) > 1 else ""
        steps.append(f"/{stream.names[name]}{place}")
        element = parent
    return "".join(reversed(steps))


cdef bint _is_absolute(const unsigned char* iri, Py_ssize_t size) noexcept:
    """Whether this is an IRI with a scheme and without a character that IRIs have not.

    A no may be wrong: ``resolved`` says what is to be said then.
    """
    cdef Py_ssize_t at = 0
    while at < size and _OCTETS[iri[at]] >= _OF_SCHEME:
        at += 1
    if at in (0, size) or iri[at] != _COLON or _OCTETS[iri[0]] != _LETTER:
        return False
    while at < size and _OCTETS[iri[at]] != _BAD:
        at += 1
    return at == size


cdef bint _is_fragment(const unsigned char* reference, Py_ssize_t size) noexcept:
    """Whether this is a fragment, without a character that IRIs have not."""
    cdef Py_ssize_t at = 1
    if size == 0 or reference[0] != _NUMBER_SIGN:
        return False
    while at < size and _OCTETS[reference[at]] != _BAD:
        at += 1
    return at == size


cdef bint _is_plain_name(const unsigned char* name, Py_ssize_t size) noexcept:
    """Whether this is a name of ASCII without a colon."""
    cdef Py_ssize_t at
    if size == 0 or not (_OCTETS[name[0]] == _LETTER or name[0] == _LOW_LINE):
        return False
    for at in range(size):
        if not (_OCTETS[name[at]] >= _OF_SCHEME or name[at] == _LOW_LINE) or name[at] == _PLUS:
            return False
    return True


# -------------------------------------------------------------------------------------------------
# RDF/XML: the graph that a document means, read off its columns (W3C, RDF 1.1 XML Syntax).
#
# The document has been parsed; nothing of it is parsed again.  In RDF/XML elements are nodes and
# properties in turn, so one walk in document order is enough, with a row for each open element::
#
#     <rdf:RDF>                                  DOCUMENT    its children are nodes
#       <ex:Page rdf:about="/a">                 NODE        its children are properties
#         <ex:title>Hello</ex:title>             a leaf: its text is a literal
#         <ex:author>                            PROPERTY    its one child is the object, a node
#           <ex:Person/>
#         </ex:author>
#         <ex:parts rdf:parseType="Collection">  COLLECTION  its children are the members, nodes
#           <ex:Page/>
#         </ex:parts>
#         <ex:size rdf:parseType="Resource">     NODE        a blank node, without an element
#           <ex:width>7</ex:width>
#         </ex:size>
#       </ex:Page>
#     </rdf:RDF>
#
# Text that is no literal is white space, or the document means no graph.  What the recommendation
# leaves open: white space in a property whose object an attribute names is passed over, and a
# comment within a literal too.

cpdef enum:
    # What an open element is.
    DOCUMENT = 0
    NODE = 1
    PROPERTY = 2
    COLLECTION = 3


def is_rdf(stream: ElementStream) -> bool:
    """Whether a document says that it is RDF/XML: its root element is rdf:RDF."""
    root = stream.name_of(0)
    return root.local == "RDF" and root.namespace == RDF


def graph_of_document(
    stream: ElementStream, limits: GraphLimits = DEFAULT_GRAPH_LIMITS, base: str = "",
    closure: Closure | None = None
) -> ElementStream:
    """The striped graph (``striped.py``) of an RDF/XML document, whose root may be a node, too.

    ``base``: the IRI that relative references are relative to where no xml:base says another one;
    without either they are refused.  ``closure``: the types and properties that taxonomies add.

    Raises MessageRefused where the document means no graph, which says nothing against it as a
    document: ``rdf-syntax``, ``duplicate-id``, ``relative-iri``, ``bad-iri``, ``bad-language``;
    and with the codes of the limits.
    """
    limits = limits.of(len(stream) // 4)
    builder = GraphBuilder(limits)
    RdfXmlReader(stream, builder, base.encode(), limits).read()
    return builder.finish(closure)


@cython.final
cdef class RdfXmlReader:
    """The triples of one document, told to a builder in document order; ``read``, once."""

    cdef object _stream
    cdef GraphBuilder _out
    cdef Terms _terms
    cdef RdfAttributes _attributes
    cdef Py_ssize_t _literal_bytes_max, _markup_max, _markup_left
    cdef int[::1] _given
    cdef const int[::1] _element_name, _element_end, _attribute_name
    cdef const unsigned char[::1] _content_kind
    cdef const int[::1] _content_parent, _content_next, _content_offset
    cdef bytes _content_octets
    cdef const unsigned char* _content_values
    cdef int[::1] _kind_of_name, _term_of_name
    cdef int[::1] _kind, _end, _subject, _property, _statement, _items, _last_cell
    cdef set _ids
    cdef int _top, _content, _type

    def __init__(
        self, stream: ElementStream, builder: GraphBuilder, base: bytes, limits: GraphLimits
    ) -> None:
        self._stream = stream
        self._out = builder
        self._terms = builder.terms
        self._terms.trust_characters()
        self._literal_bytes_max = limits.literal_bytes_max
        self._markup_max = self._markup_left = limits.markup_max
        self._attributes = RdfAttributes(stream, base)
        self._given = self._attributes.given
        self._element_name = stream.element_name
        self._element_end = stream.element_end
        self._attribute_name = stream.attribute_name
        self._content_kind = stream.content_kind
        self._content_parent = stream.content_parent
        self._content_next = stream.content_next
        self._content_offset = stream.content_offset
        self._content_octets = stream.content_values
        self._content_values = stream.content_values
        self._content = 0  # the first piece that is not read
        # Of each name of the message, as it is met: its role and its term.
        self._kind_of_name = array("i", bytes(4 * len(stream.names)))
        self._term_of_name = array("i", [_NONE]) * len(stream.names)
        # A row for each open element.
        cdef int rows = self._attributes.depth + 2
        self._kind = array("i", bytes(4 * rows))
        self._end = array("i", bytes(4 * rows))
        self._subject = array("i", bytes(4 * rows))
        self._property = array("i", bytes(4 * rows))
        self._statement = array("i", bytes(4 * rows))
        self._items = array("i", bytes(4 * rows))
        self._last_cell = array("i", bytes(4 * rows))
        self._top = 0
        self._ids: set[bytes] = set()
        self._type = self._rdf_term(b"type")

    cpdef read(self):
        """Tell all triples; MessageRefused if the document means no graph."""
        cdef int element = 0
        cdef int last = len(self._stream)
        self._kind[0] = DOCUMENT
        self._end[0] = last
        if is_rdf(self._stream):
            self._attributes.read(0)
            self._attributes.check_only(_NONE, _NONE)
            self._push(DOCUMENT, 0, _NONE)
            element = 1
        while element < last:
            self._check_content(element)
            self._close_before(element)
            if self._kind[self._top] == NODE:
                element = self._read_property(element)
            else:
                element = self._read_node(element)
        self._check_content(last)
        self._close_before(last)

    cdef int _read_node(self, int element) except -1:
        """A node element: section 7.2.11; returns the element after it."""
        cdef int i, subject
        cdef RdfAttributes attributes = self._attributes
        given = self._given
        cdef int kind = self._kind_of_element(element)
        attributes.read(element)
        if kind >= LIST_ITEM:
            self._refuse_name(element)
        if (given[ID] >= 0) + (given[ABOUT] >= 0) + (given[NODE_ID] >= 0) > 1:
            attributes.refuse("rdf-syntax", "two of rdf:ID, rdf:about and rdf:nodeID")
        if given[RESOURCE] >= 0 or given[DATATYPE_OF] >= 0 or given[PARSE_TYPE] >= 0:
            attributes.refuse("rdf-syntax", "an attribute of a property on a node")
        if given[ID] >= 0:
            subject = self._new_id()
        elif given[ABOUT] >= 0:
            subject = self._terms.iri(attributes.iri(given[ABOUT]))
        elif given[NODE_ID] >= 0:
            subject = self._terms.blank(attributes.name(given[NODE_ID]))
        else:
            subject = self._terms.new_blank()
        self._refer_to(subject)
        if kind != DESCRIPTION:
            self._out.add(subject, self._type, self._term_of(self._element_name[element]))
        for i in range(len(attributes.properties)):
            self._add_attribute(subject, attributes.properties[i])
        self._push(NODE, element, subject)
        return element + 1

    cdef _refer_to(self, int node):
        """State the triple by which the element around a node refers to it."""
        cdef int cell
        cdef int top = self._top
        if self._kind[top] == PROPERTY:
            if self._items[top]:
                self._attributes.refuse("rdf-syntax", "a second node in one property")
            self._items[top] = 1
            self._add(self._subject[top], self._property[top], node, self._statement[top])
        elif self._kind[top] == COLLECTION:
            cell = self._terms.new_blank()
            self._add_cell(top, cell)
            self._out.add(cell, self._rdf_term(b"first"), node)
            self._last_cell[top] = cell

    cdef _add_cell(self, int row, int cell):
        """The next cell of a collection, or what is in place of one at its end."""
        if self._last_cell[row] >= 0:
            self._out.add(self._last_cell[row], self._rdf_term(b"rest"), cell)
        else:
            self._add(self._subject[row], self._property[row], cell, self._statement[row])

    cdef int _read_property(self, int element) except -1:
        """A property element: sections 7.2.14 to 7.2.21; returns the element after it."""
        cdef RdfAttributes attributes = self._attributes
        cdef int kind = self._kind_of_element(element)
        attributes.read(element)
        if kind == DESCRIPTION or kind >= NO_ELEMENT:
            self._refuse_name(element)
        if self._given[ABOUT] >= 0:
            attributes.refuse("rdf-syntax", "rdf:about on a property")
        cdef int property_term
        if kind == LIST_ITEM:
            self._items[self._top] += 1
            property_term = self._rdf_term(b"_%d" % self._items[self._top])
        else:
            property_term = self._term_of(self._element_name[element])
        cdef int subject = self._subject[self._top]
        cdef int statement = self._new_id() if self._given[ID] >= 0 else _NONE
        if self._given[PARSE_TYPE] >= 0:
            return self._read_parse_type(element, subject, property_term, statement)
        if self._element_end[element] > element + 1:
            attributes.check_only(ID, _NONE)
            self._push(PROPERTY, element, subject)
            self._property[self._top] = property_term
            self._statement[self._top] = statement
        else:
            self._add(subject, property_term, self._object_of_leaf(element), statement)
        return element + 1

    cdef int _read_parse_type(
        self, int element, int subject, int property_term, int statement
    ) except -1:
        cdef int node
        parse_type = self._attributes.value(self._given[PARSE_TYPE])
        self._attributes.check_only(ID, PARSE_TYPE)
        if parse_type == b"Resource":
            node = self._terms.new_blank()
            self._add(subject, property_term, node, statement)
            self._push(NODE, element, node)
        elif parse_type == b"Collection":
            self._push(COLLECTION, element, subject)
            self._property[self._top] = property_term
            self._statement[self._top] = statement
            self._last_cell[self._top] = _NONE
        else:
            # Whatever else it says is read as "Literal".
            value = self._markup(element)
            literal = self._terms.literal(value, self._rdf_term(b"XMLLiteral"))
            self._add(subject, property_term, literal, statement)
            self._content = max(self._content, self._stream.content_within(element).stop)
            return self._element_end[element]
        return element + 1

    cdef bytes _markup(self, int element):
        """The canonical form of what an element contains."""
        self._markup_left -= self._element_end[element] - element - 1
        if self._markup_left < 0:
            refuse_markup(self._markup_max)
        return xml_literal(self._stream, element, self._literal_bytes_max)

    cdef int _object_of_leaf(self, int element) except -1:
        """The object of a property element that contains no element."""
        cdef int datatype, i, node
        cdef RdfAttributes attributes = self._attributes
        given = self._given
        if given[RESOURCE] >= 0:
            node = self._terms.iri(attributes.iri(given[RESOURCE]))
        elif given[NODE_ID] >= 0:
            node = self._terms.blank(attributes.name(given[NODE_ID]))
        elif attributes.properties:
            node = self._terms.new_blank()
        elif given[DATATYPE_OF] >= 0:
            datatype = self._terms.iri(attributes.iri(given[DATATYPE_OF]))
            return self._terms.literal(self._text_of(element), datatype)
        else:
            return self._literal(self._text_of(element))
        # Text of it that is not white space is found by _check_content.
        if given[DATATYPE_OF] >= 0:
            attributes.refuse("rdf-syntax", "rdf:datatype, though the object is no literal")
        if given[RESOURCE] >= 0 and given[NODE_ID] >= 0:
            attributes.refuse("rdf-syntax", "both rdf:resource and rdf:nodeID")
        for i in range(len(attributes.properties)):
            self._add_attribute(node, attributes.properties[i])
        return node

    cdef _add_attribute(self, int subject, int attribute):
        """The triple of a property attribute."""
        cdef int value
        cdef RdfAttributes attributes = self._attributes
        if attributes.kind_of(attribute) == TYPE:
            self._out.add(subject, self._type, self._terms.iri(attributes.iri(attribute)))
        else:
            value = self._literal(attributes.value(attribute))
            self._out.add(subject, self._term_of(self._attribute_name[attribute]), value)

    cdef _add(self, int subject, int property_term, int object_term, int statement):
        """A triple, and what is said of it where its property has an rdf:ID (section 7.3)."""
        cdef GraphBuilder out = self._out
        out.add(subject, property_term, object_term)
        if statement >= 0:
            out.add(statement, self._type, self._rdf_term(b"Statement"))
            out.add(statement, self._rdf_term(b"subject"), subject)
            out.add(statement, self._rdf_term(b"predicate"), property_term)
            out.add(statement, self._rdf_term(b"object"), object_term)

    # Terms

    cdef int _literal(self, bytes value) except -1:
        language: bytes = self._attributes.language()
        return self._terms.text(value, language) if language else self._terms.string(value)

    cdef int _new_id(self) except -1:
        """The IRI that an rdf:ID names, which no other in the document does."""
        name: bytes = self._attributes.name(self._given[ID])
        iri: bytes = self._attributes.resolved(b"#" + name)
        if iri in self._ids:
            self._attributes.refuse("duplicate-id", f"a second rdf:ID {name.decode()}")
        self._ids.add(iri)
        return self._terms.iri(iri)

    cdef int _rdf_term(self, bytes local) except -1:
        return self._terms.iri(_RDF + local)

    cdef int _term_of(self, int name) except -1:
        """The IRI that a name means."""
        if self._term_of_name[name] < 0:
            self._term_of_name[name] = self._terms.iri(self._attributes.iri_of_name(name))
        return self._term_of_name[name]

    # Elements

    cdef int _kind_of_element(self, int element) except -1:
        cdef int name = self._element_name[element]
        if self._kind_of_name[name] == 0:
            self._kind_of_name[name] = element_kind(self._stream.names[name])
        return self._kind_of_name[name]

    cdef void _push(self, int kind, int element, int subject) noexcept:
        """A row for an element."""
        self._top += 1
        self._kind[self._top] = kind
        self._end[self._top] = self._element_end[element]
        self._subject[self._top] = subject
        self._items[self._top] = 0

    cdef _close_before(self, int element):
        """The rows of elements that have ended."""
        while self._top > 0 and self._end[self._top] <= element:
            if self._kind[self._top] == COLLECTION:
                self._add_cell(self._top, self._rdf_term(b"nil"))
            self._top -= 1

    # Content

    cdef bytes _text_of(self, int element):
        """The text of an element that contains no other; it counts as read."""
        cdef int piece = self._content
        found: bytes = b""
        parts: list[bytes] = []
        cdef Py_ssize_t start, end
        while piece < len(self._content_next) and self._content_parent[piece] == element:
            if self._content_kind[piece] == 0:  # ContentKind.TEXT
                start, end = self._content_offset[piece], self._content_offset[piece + 1]
                found = self._content_octets[start:end]
                parts.append(found)
            piece += 1
        self._content = piece
        return found if len(parts) < 2 else b"".join(parts)

    cdef _check_content(self, int element):
        """Refuse text before the start of an element that is neither read yet nor white space."""
        cdef int piece = self._content
        cdef Py_ssize_t at
        while piece < len(self._content_next) and self._content_next[piece] <= element:
            if self._content_kind[piece] == 0:  # ContentKind.TEXT
                for at in range(self._content_offset[piece], self._content_offset[piece + 1]):
                    if self._content_values[at] not in b" \t\r\n":
                        parent = self._content_parent[piece]
                        reason = "text that is not white space"
                        self._attributes.refuse("rdf-syntax", reason, parent)
            piece += 1
        self._content = piece

    cdef _refuse_name(self, int element):
        name = self._stream.name_of(element)
        what = "a name of RDF/XML itself" if name.namespace else "in no namespace"
        self._attributes.refuse("rdf-syntax", f"the element is named {name}, {what}", element)


# -------------------------------------------------------------------------------------------------
# TurtleTerms: the terms of ordinary Turtle and its kin, as numbers, and what is between them.
#
# The lower half of TurtleScanner, whose docstring says what is ordinary, and where methods stand.
# A number below 0 is no term.

cdef enum:
    NAME = 1
    LOCAL = 2
    IRI_BYTE = 4
    HOST = 8
    SPACE = 16
    BEHIND = 32
    ESCAPABLE = 64


_PLAIN_LANGUAGE = re.compile(rb"[A-Za-z]{2,3}(?:-[A-Za-z]{4})?(?:-(?:[A-Za-z]{2}|[0-9]{3}))?")
_ESCAPE = re.compile(rb"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.?))", re.DOTALL)
_ESCAPED = {
    b"t": b"\t",
    b"b": b"\b",
    b"n": b"\n",
    b"r": b"\r",
    b"f": b"\f",
    b'"': b'"',
    b"'": b"'",
    b"\\": b"\\",
}


def _kinds() -> bytes:
    """What each byte may be part of: NAME a prefix, LOCAL the local part of a name; IRI_BYTE an IRI
    behind its host, HOST that; SPACE; BEHIND: it may follow a name or a number; ESCAPABLE: with a
    backslash it may be in a local part, and then in an IRI (not ``#`` and ``%``)."""
    letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    name = letters + b"_-"
    # Beyond ASCII U+00C0 to U+CFFF, without U+0080 to U+00BF, some of which no IRI may have.
    beyond = bytes([*range(0x80, 0xC0), *range(0xC3, 0xED)])
    kinds = bytearray(256)
    for bit, members in (
        (1, name),
        (2, name + b".:"),
        (4, name + b".~!$&'()*+,;=:@/?" + beyond),
        (8, name + b".~"),
        (16, b" \t\r\n"),
        (32, b" \t\r\n,;.)]}#"),
        (64, b"_~.-!$&'()*+,;=/?@"),
    ):
        for byte in members:
            kinds[byte] |= bit
    return bytes(kinds)


cdef bytes _TURTLE_OCTETS = _kinds()


cdef class TurtleTerms:
    """``in_lines``: as N-Triples has them, without prefixes."""

    cdef bytes _message
    cdef const unsigned char* _data
    cdef const unsigned char* _kinds
    cdef Py_ssize_t _at, _end
    cdef bint _in_lines
    cdef Terms _terms
    cdef dict _namespaces, _known, _datatypes

    def __init__(self, data: bytes, terms: Terms, in_lines: bool) -> None:
        self._message = data
        self._data = data
        self._kinds = _TURTLE_OCTETS
        self._at = 0
        self._end = len(data)
        self._in_lines = in_lines
        self._terms = terms
        self._namespaces: dict[bytes, bytes] = {}
        self._known: dict[bytes, int] = {}  # prefixed names as they stand
        self._datatypes: dict[bytes, int] = {}

    cdef int _read_named_node(self) except? -1:
        """An IRI, a prefixed name or a blank node's label."""
        cdef const unsigned char* data = self._data
        if data[self._at] == ord("<"):
            return self._read_iri()
        if data[self._at] == ord("_"):
            return self._read_label()
        return self._read_prefixed()

    cdef int _read_iri(self) except? -1:
        cdef Py_ssize_t start = self._at + 1
        if not self._skip_iri():
            return NO_TERM
        return self._terms.iri(self._data[start : self._at - 1])

    cdef int _skip_iri(self) noexcept:
        """Step over an absolute IRI in brackets; 0: not ordinary, 2: it ends with its host."""
        cdef const unsigned char* data = self._data
        cdef const unsigned char* kinds = self._kinds
        cdef Py_ssize_t at = self._at + 1
        cdef int fragments = 0
        if not kinds[data[at]] & NAME or data[at] < ord("A") or data[at] == ord("_"):
            return 0
        while kinds[data[at]] & NAME and data[at] != ord("_"):
            at += 1
        if data[at] != ord(":"):
            return 0
        at += 1
        if data[at] == ord("/") and data[at + 1] == ord("/"):
            at += 2
            while kinds[data[at]] & HOST:
                at += 1
            if data[at] == ord(":"):
                at += 1
                while 48 <= data[at] <= 57:
                    at += 1
            if data[at] == ord(">"):
                self._at = at + 1
                return 2
            if data[at] != ord("/") and data[at] != ord("#") and data[at] != ord("?"):
                return 0
        while True:
            while kinds[data[at]] & IRI_BYTE:
                at += 1
            if data[at] == ord(">"):
                self._at = at + 1
                return 1
            if data[at] == ord("#") and not fragments:
                fragments = 1
            elif data[at] != ord("%") or not (_is_hex(data[at + 1]) and _is_hex(data[at + 2])):
                return 0
            at += 1

    cdef int _read_label(self) except? -1:
        """A blank node with a label."""
        cdef const unsigned char* data = self._data
        cdef Py_ssize_t start = self._at + 2
        if data[self._at + 1] != ord(":"):
            return NO_TERM
        self._at = start
        while self._kinds[data[self._at]] & NAME or data[self._at] == ord("."):
            self._at += 1
        while self._at > start and data[self._at - 1] == ord("."):
            self._at -= 1
        if (
            self._at == start
            or data[start] == ord("-")
            or data[start] == ord(".")
            or not self._kinds[data[self._at]] & BEHIND
        ):
            return NO_TERM
        return self._terms.blank(self._data[start : self._at])

    cdef int _read_prefixed(self) except? -1:
        cdef const unsigned char* data = self._data
        cdef Py_ssize_t start = self._at
        cdef Py_ssize_t colon
        cdef bint escaped
        self._skip_name()
        colon = self._at
        if data[colon] != ord(":"):
            return NO_TERM
        self._at += 1
        escaped = self._skip_local()
        if not self._kinds[data[self._at]] & BEHIND:
            return NO_TERM
        token: bytes = self._data[start : self._at]
        found = self._known.get(token)
        if found is not None:
            return found
        if data[colon + 1] == ord("-") or data[colon + 1] == ord("."):
            return NO_TERM
        namespace = self._namespaces.get(self._data[start:colon])
        if namespace is None:
            return NO_TERM
        local: bytes = self._data[colon + 1 : self._at]
        if escaped:
            # Without a host a slash could begin one.
            if b"://" not in namespace:
                return NO_TERM
            local = local.replace(b"\\", b"")
        cdef int number = self._terms.iri(namespace + local)
        self._known[token] = number
        return number

    cdef bint _skip_local(self) noexcept:
        """Step over the local part of a name, without dots at its end; whether it has escapes."""
        cdef const unsigned char* data = self._data
        cdef const unsigned char* kinds = self._kinds
        cdef Py_ssize_t at = self._at
        cdef bint escaped = False
        cdef Py_ssize_t end = at  # behind the last byte that is no dot
        while True:
            if kinds[data[at]] & LOCAL:
                at += 1
                if data[at - 1] != ord("."):
                    end = at
            elif data[at] == ord("\\") and kinds[data[at + 1]] & ESCAPABLE:
                escaped = True
                at += 2
                end = at
            else:
                self._at = end
                return escaped

    cdef void _skip_name(self) noexcept:
        """Step over the prefix of a name, which may be nothing."""
        cdef const unsigned char* data = self._data
        cdef unsigned char byte = data[self._at] | 0x20
        if 97 <= byte <= 122:
            while self._kinds[data[self._at]] & NAME:
                self._at += 1

    cdef int _read_literal(self) except? -1:
        cdef const unsigned char* data = self._data
        text = self._read_string()
        if text is None:
            return NO_TERM
        cdef Py_ssize_t start
        cdef int datatype
        if data[self._at] == ord("^"):
            if data[self._at + 1] != ord("^"):
                return NO_TERM
            self._at += 2
            if data[self._at] == ord("<"):
                datatype = self._read_iri()
            elif self._in_lines or data[self._at] == ord("_"):
                return NO_TERM
            else:
                datatype = self._read_prefixed()
            # rdf:langString has to have a language.
            if datatype < 0 or self._terms.values[datatype].startswith(_RDF):
                return NO_TERM
            return self._terms.literal(text, datatype)
        if data[self._at] == ord("@"):
            start = self._at + 1
            self._at = start
            while self._kinds[data[self._at]] & NAME:
                self._at += 1
            if not self._kinds[data[self._at]] & BEHIND:
                return NO_TERM
            tag: bytes = self._data[start : self._at]
            return self._terms.text(text, tag) if _PLAIN_LANGUAGE.fullmatch(tag) else NO_TERM
        return self._terms.string(text)

    cdef bytes _read_string(self):
        """The text of a string in single or double quotes, short or long."""
        cdef const unsigned char* data = self._data
        cdef unsigned char quote = data[self._at]
        cdef Py_ssize_t start = self._at + 1
        cdef Py_ssize_t at = start
        cdef bint escaped = False
        cdef int quotes = 1
        cdef unsigned char byte
        if data[at] == quote and data[at + 1] == quote:
            if self._in_lines:
                return None
            quotes = 3
            start = at = at + 2
        while True:
            byte = data[at]
            if byte == quote:
                if quotes == 1 or (data[at + 1] == quote and data[at + 2] == quote):
                    break
                at += 1
            elif byte == ord("\\"):
                escaped = True
                at += 2
                if at > self._end:
                    return None
            elif byte == 0 or (quotes == 1 and (byte == 10 or byte == 13)):
                return None
            else:
                at += 1
        self._at = at + quotes
        value: bytes = self._data[start:at]
        return _unescaped(value) if escaped else value

    cdef int _read_number(self) except? -1:
        cdef const unsigned char* data = self._data
        cdef Py_ssize_t at = self._at
        cdef Py_ssize_t digits
        name: bytes = b"integer"
        if data[at] == ord("+") or data[at] == ord("-"):
            at += 1
        digits = at
        while 48 <= data[at] <= 57:
            at += 1
        digits = at - digits
        # A dot may be the end of the graph.
        if data[at] == ord(".") and at + 1 < self._end and 48 <= data[at + 1] <= 57:
            name = b"decimal"
            at += 1
            while 48 <= data[at] <= 57:
                at += 1
                digits += 1
        if not digits:
            return NO_TERM
        if data[at] | 0x20 == ord("e"):
            name = b"double"
            at += 1
            if data[at] == ord("+") or data[at] == ord("-"):
                at += 1
            digits = at
            while 48 <= data[at] <= 57:
                at += 1
            if at == digits:
                return NO_TERM
        if not self._kinds[data[at]] & BEHIND:
            return NO_TERM
        if data[at] == ord(".") and at + 1 < self._end and data[at + 1] | 0x20 == ord("e"):
            return NO_TERM  # 1.e5
        return self._read_plain(at - self._at, name)

    cdef int _read_plain(self, Py_ssize_t size, bytes name) except? -1:
        """A literal that is written without quotes, of a datatype of XML Schema."""
        cdef Py_ssize_t start = self._at
        found = self._datatypes.get(name)
        cdef int datatype
        if found is None:
            datatype = self._terms.iri(_XSD + name)
            self._datatypes[name] = datatype
        else:
            datatype = found
        self._at += size
        return self._terms.literal(self._data[start : self._at], datatype)

    cdef bint _is_word(self, bytes word) except -1:
        """Whether a keyword stands here, in any case, with white space behind."""
        cdef Py_ssize_t end = self._at + len(word)
        if end >= self._end or not self._kinds[self._data[end]] & SPACE:
            return False
        return self._message[self._at : end].lower() == word

    cdef bint _is_bare(self, bytes word) except -1:
        """Whether a word stands here by itself."""
        cdef Py_ssize_t end = self._at + len(word)
        if not self._message.startswith(word, self._at) or end >= self._end:
            return False
        return self._kinds[self._data[end]] & BEHIND != 0

    # Space

    cdef void _skip_space(self) noexcept:
        """Step over white space and comments."""
        cdef const unsigned char* data = self._data
        # Only here the bytes may end without being malformed.
        while self._at < self._end:
            if self._kinds[data[self._at]] & SPACE:
                self._at += 1
            elif data[self._at] == ord("#"):
                while self._at < self._end and data[self._at] != 10 and data[self._at] != 13:
                    self._at += 1
            else:
                break

    cdef void _skip_blanks(self) noexcept:
        """Step over white space within a line."""
        cdef const unsigned char* data = self._data
        while self._at < self._end and (data[self._at] == 32 or data[self._at] == 9):
            self._at += 1


cdef bint _is_hex(unsigned char byte) noexcept:
    return 48 <= byte <= 57 or 97 <= byte | 0x20 <= 102


def _unescaped(value: bytes) -> bytes | None:
    """A string without its escapes, or None if one of them is none."""
    faults = []

    def meant(found: re.Match[bytes]) -> bytes:
        digits = found[1] or found[2]
        try:
            return chr(int(digits, 16)).encode() if digits else _ESCAPED[found[3]]
        except (ValueError, KeyError, OverflowError):
            faults.append(found[0])
            return b""

    text = _ESCAPE.sub(meant, value)
    return None if faults else text


# -------------------------------------------------------------------------------------------------
# TurtleScanner: ordinary Turtle, TriG, N-Triples and N-Quads straight into a GraphBuilder.
#
# It reads in one pass, without an object for a triple.  Whatever it meets beyond the ordinary (an
# IRI that is relative or has a host that is no plain name, a rare language tag, escapes in names,
# RDF 1.2, anything malformed or in doubt) it gives back: pyoxigraph reads the graph again.  So what
# is malformed is refused by that one, and what the scanner accepts is what that one makes of it.
#
# Each ``_read`` method stands on the first byte of what it reads and leaves ``_at`` behind it; it
# returns False, or no term, for "not ordinary".  No method steps over a byte that it has not looked
# at: compiled, the end of the bytes is a NUL, which nothing accepts; uncompiled, reading beyond it
# is an IndexError.

cdef enum:
    _DEPTH_MAX = 100


_NAMED = {GraphSyntax.TRIG, GraphSyntax.N_QUADS}
_IN_LINES = {GraphSyntax.N_TRIPLES, GraphSyntax.N_QUADS}


def scan(data: bytes, syntax: GraphSyntax, builder: GraphBuilder) -> bool:
    """Add the triples of an ordinary graph to a builder.

    False: it is for pyoxigraph to read, and the builder of no use any more.  Raises MessageRefused,
    with the place, for what the builder does not take.
    """
    return TurtleScanner(data, syntax, builder).scan()


def scan_lines(data: bytes, builder: GraphBuilder) -> int:
    """Add the triples of N-Quads up to the first line that is not ordinary: where that begins."""
    scanner = TurtleScanner(data, GraphSyntax.N_QUADS, builder)
    return len(data) if scanner.scan() else scanner.line


@cython.final
cdef class TurtleScanner(TurtleTerms):
    """One scan."""

    cdef readonly int line  # of lines, where the last one begins
    cdef int _depth, _graph, _type, _first, _rest, _nil
    cdef bint _named
    cdef GraphBuilder _builder

    def __init__(self, data: bytes, syntax: GraphSyntax, builder: GraphBuilder) -> None:
        super().__init__(data, builder.terms, syntax in _IN_LINES)
        self._depth = self.line = 0
        self._graph = NO_TERM
        self._named = syntax in _NAMED
        self._builder = builder
        self._type = self._first = self._rest = self._nil = NO_TERM

    def scan(self) -> bool:
        """As the function ``scan``."""
        if not is_utf_8(self._message):
            return False
        try:
            return self._read_lines() if self._in_lines else self._read_document()
        except IndexError:  # see above
            return False
        except MessageRefused as refusal:
            before = self._message[: self._at]
            line = before.count(b"\n") + 1
            column = len(before[before.rfind(b"\n") + 1 :].decode(errors="replace")) + 1
            raise MessageRefused(refusal.code, refusal.reason, line, column) from None

    # N-Triples and N-Quads

    cdef bint _read_lines(self) except -1:
        cdef const unsigned char* data = self._data
        cdef int subject
        cdef int property  # - RDF's words
        cdef int object, graph
        while True:
            self._skip_space()
            if self._at == self._end:
                return True
            self.line = self._at
            subject = self._read_node()
            if subject < 0:
                return False
            self._skip_blanks()
            if data[self._at] != ord("<"):
                return False
            property = self._read_iri()
            if property < 0:
                return False
            self._skip_blanks()
            object = self._read_literal() if data[self._at] == ord('"') else self._read_node()
            if object < 0:
                return False
            self._skip_blanks()
            graph = NO_TERM
            if self._named and data[self._at] != ord("."):
                graph = self._read_node()
                if graph < 0:
                    return False
                self._skip_blanks()
            if data[self._at] != ord("."):
                return False
            self._builder.add(subject, property, object, graph)
            self._at += 1
            self._skip_blanks()
            if self._at < self._end and data[self._at] not in (10, 13, 35):  # line end, comment
                return False

    cdef int _read_node(self) except? -1:
        """An IRI in brackets or a blank node's label."""
        cdef const unsigned char* data = self._data
        if data[self._at] == ord("<"):
            return self._read_iri()
        if data[self._at] == ord("_"):
            return self._read_label()
        return NO_TERM

    # Turtle and TriG

    cdef bint _read_document(self) except -1:
        cdef unsigned char byte
        cdef const unsigned char* data = self._data
        while True:
            self._skip_space()
            if self._at == self._end:
                return True
            byte = data[self._at]
            if byte == ord("@"):
                if not self._read_prefix(b"@prefix", True):
                    return False
            elif (byte | 0x20) == ord("p") and self._is_word(b"prefix"):
                if not self._read_prefix(b"prefix", False):
                    return False
            elif not (self._read_named() if self._named else self._read_triples()):
                return False
            elif data[self._at - 1] != ord("}"):
                if data[self._at] != ord("."):
                    return False
                self._at += 1

    cdef bint _read_named(self) except -1:
        """A block of a graph, or triples of the default one."""
        cdef const unsigned char* data = self._data
        cdef Py_ssize_t start = self._at
        cdef int graph
        if data[self._at] == ord("{"):
            return self._read_block(NO_TERM)
        cdef bint is_graph = (data[self._at] | 0x20) == ord("g") and self._is_word(b"graph")
        if is_graph:
            self._at += 5
            self._skip_space()
        elif data[self._at] == ord("[") or data[self._at] == ord("("):
            return self._read_triples_to_dot()
        graph = self._read_named_node()
        if graph < 0:
            return False
        self._skip_space()
        if data[self._at] == ord("{"):
            return self._read_block(graph)
        if is_graph:
            return False
        self._at = start
        return self._read_triples_to_dot()

    cdef bint _read_triples_to_dot(self) except -1:
        """Triples in front of a dot, which is left."""
        return self._read_triples() and self._data[self._at] == ord(".")

    cdef bint _read_block(self, int graph) except -1:
        cdef const unsigned char* data = self._data
        self._graph = graph
        self._at += 1
        while True:
            self._skip_space()
            if data[self._at] == ord("}"):
                self._at += 1
                self._graph = NO_TERM
                return True
            if not self._read_triples():
                return False
            if data[self._at] == ord("."):
                self._at += 1
            elif data[self._at] != ord("}"):
                return False

    cdef bint _read_prefix(self, bytes word, bint dot) except -1:
        """The declaration of a prefix."""
        cdef const unsigned char* data = self._data
        if not self._message.startswith(word, self._at) and dot:
            return False
        self._at += len(word)
        if not self._kinds[data[self._at]] & SPACE:
            return False
        self._skip_space()
        cdef Py_ssize_t start = self._at
        self._skip_name()
        if data[self._at] != ord(":"):
            return False
        prefix: bytes = self._data[start : self._at]
        self._at += 1
        self._skip_space()
        start = self._at + 1
        # More bytes could continue a host that stands alone.
        if data[self._at] != ord("<") or self._skip_iri() != 1:
            return False
        self._namespaces[prefix] = self._data[start : self._at - 1]
        self._known.clear()
        if dot:
            self._skip_space()
            if data[self._at] != ord("."):
                return False
            self._at += 1
        return True

    cdef bint _read_triples(self) except -1:
        """A subject with its properties, up to what is behind them."""
        cdef const unsigned char* data = self._data
        cdef int subject
        cdef bint alone = False
        cdef unsigned char byte = data[self._at]
        if byte == ord("["):
            subject = self._terms.new_blank()
            self._at += 1
            self._skip_space()
            alone = data[self._at] != ord("]")
            if alone and not self._read_properties(subject):
                return False
            if data[self._at] != ord("]"):
                return False
            self._at += 1
        elif byte == ord("("):
            self._at += 1
            self._skip_space()
            if data[self._at] == ord(")"):
                self._at += 1
                subject = self._nil_term()
            else:
                subject = self._terms.new_blank()
                if not self._read_items(subject):
                    return False
        else:
            subject = self._read_named_node()
            if subject < 0:
                return False
        self._skip_space()
        if alone and (data[self._at] == ord(".") or data[self._at] == ord("}")):
            return True
        return self._read_properties(subject)

    cdef bint _read_properties(self, int subject) except -1:
        """Properties with their objects, up to what is behind them."""
        cdef const unsigned char* data = self._data
        cdef int property
        cdef unsigned char byte
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            return False
        while True:
            if data[self._at] == ord("a") and self._kinds[data[self._at + 1]] & SPACE:
                self._at += 1
                property = self._type_term()
            elif data[self._at] == ord("_"):
                return False
            else:
                property = self._read_named_node()
                if property < 0:
                    return False
            while True:
                self._skip_space()
                if not self._read_object(subject, property):
                    return False
                self._skip_space()
                if data[self._at] != ord(","):
                    break
                self._at += 1
            if data[self._at] != ord(";"):
                break
            while data[self._at] == ord(";"):
                self._at += 1
                self._skip_space()
            byte = data[self._at]
            if byte == ord(".") or byte == ord("]") or byte == ord("}"):
                break
        self._depth -= 1
        return True

    cdef bint _read_object(self, int subject, int property) except -1:
        """An object, and the triple that it completes."""
        cdef const unsigned char* data = self._data
        cdef int object
        cdef unsigned char byte = data[self._at]
        cdef bint nested = False
        if byte == ord("["):
            object = self._terms.new_blank()
            self._at += 1
            self._skip_space()
            if data[self._at] == ord("]"):
                self._at += 1
            else:
                nested = True
        elif byte == ord("("):
            self._at += 1
            self._skip_space()
            if data[self._at] == ord(")"):
                self._at += 1
                object = self._nil_term()
            else:
                object = self._terms.new_blank()
                nested = True
        elif byte == ord('"') or byte == ord("'"):
            object = self._read_literal()
        elif byte == ord("+") or byte == ord("-") or byte == ord(".") or 48 <= byte <= 57:
            object = self._read_number()
        elif byte == ord("t") and self._is_bare(b"true"):
            object = self._read_plain(4, b"boolean")
        elif byte == ord("f") and self._is_bare(b"false"):
            object = self._read_plain(5, b"boolean")
        else:
            object = self._read_named_node()
        if object < 0:
            return False
        self._builder.add(subject, property, object, self._graph)
        if not nested:
            return True
        if byte == ord("("):
            return self._read_items(object)
        if not self._read_properties(object) or data[self._at] != ord("]"):
            return False
        self._at += 1
        return True

    cdef bint _read_items(self, int node) except -1:
        """The items of a collection that begins with a node, and the bracket behind them."""
        cdef const unsigned char* data = self._data
        cdef int following
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            return False
        while True:
            if not self._read_object(node, self._first_term()):
                return False
            self._skip_space()
            if data[self._at] == ord(")"):
                break
            following = self._terms.new_blank()
            self._builder.add(node, self._rest_term(), following, self._graph)
            node = following
        self._at += 1
        self._builder.add(node, self._rest_term(), self._nil_term(), self._graph)
        self._depth -= 1
        return True

    # Terms of RDF itself

    cdef int _type_term(self) except -1:
        if self._type < 0:
            self._type = self._terms.iri(_RDF + b"type")
        return self._type

    cdef int _first_term(self) except -1:
        if self._first < 0:
            self._first = self._terms.iri(_RDF + b"first")
        return self._first

    cdef int _rest_term(self) except -1:
        if self._rest < 0:
            self._rest = self._terms.iri(_RDF + b"rest")
        return self._rest

    cdef int _nil_term(self) except -1:
        if self._nil < 0:
            self._nil = self._terms.iri(_RDF + b"nil")
        return self._nil
