"""Joins over the graph of one message.

MessageGraph reads the terms and triples of a striped stream into tables that are indexed by
subject, property and object (TripleTable).  A query is a chain of operators (made by
join_program.py), each of which extends a row of bindings and hands it to the next; hash joins
collect rows in tables.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from formats.element_stream import ElementStream
from formats.graph.striped import (
    BLANK,
    CLASS,
    CLOSURE,
    DATATYPE,
    GRAPH_BLANK,
    GRAPH_IRI,
    GRAPH_NAMESPACE,
    IRI_OBJECT,
    IRI_SUBJECT,
    LANGUAGE,
    LEXICAL,
    MEMBER,
    NAMED_SUBJECT,
    OTHER_PROPERTY,
    OWN,
    PROPERTY_ABOVE,
    PROPERTY_IRI,
    STRING,
    SUBJECT,
    TEXT,
)
from formats.graph.vocabulary import RDF, RDFS, RDF_TYPE, XSD
from yfilter.errors import MatchLimitExceeded
from yfilter.graph.query_ast import Iri, LiteralTerm
from yfilter.graph.filter_functions import TermValue, value_of
from yfilter.graph.query_ast import BlankNode, GroundTerm
from yfilter.index.columns import ints
from yfilter.language.budget import Budget

cimport cython

from yfilter.index.value_hash cimport value_hash


# -------------------------------------------------------------------------------------------------
# TripleTable: triples of a message as rows of term numbers, found by what is given of them.
#
# ::
#
#     rows       [ graph subject property object below | ... ]
#     heads      of each kind of chain:  bucket -> row + 1, 0 for none
#     following  of each kind of chain:  row -> row + 1
#
# A chain is by any of subject, property and object, and always by the graph (0: the default graph).
# Chains of a kind are made when the first is asked for.  Keys of one bucket share a chain, so a
# walk along it compares each row, counted as a visit each, whatever strangers send.
# Rows of a chain come in their order in the message.

cpdef enum:
    # Fields of a row, terms by number; BELOW: the property stated, where PROPERTY is one above it.
    TRIPLE_GRAPH = 0
    TRIPLE_SUBJECT = 1
    TRIPLE_PROPERTY = 2
    TRIPLE_OBJECT = 3
    TRIPLE_BELOW = 4
    TRIPLE_WIDTH = 5

    # The key of a chain, added up; its graph is always given.
    BY_SUBJECT = 1
    BY_PROPERTY = 2
    BY_OBJECT = 4
    CHAIN_KINDS = 8


@cython.final
cdef class TripleTable:
    """``add`` the rows, at most ``capacity``; then go along chains with ``first`` and
    ``following``."""

    cdef readonly int[::1] rows
    cdef readonly int count
    cdef readonly int _capacity
    cdef int _built
    cdef unsigned int _mask
    cdef int[::1] _heads, following

    def __init__(self, capacity: int) -> None:
        buckets = 8
        while buckets < 2 * capacity:
            buckets *= 2
        self.rows = ints(TRIPLE_WIDTH * max(capacity, 1))
        self.count: int = 0
        self._capacity = capacity
        self._built = 0
        self._mask = buckets - 1
        self._heads = self.following = self.rows  # until a chain is asked for

    cpdef int add(self, int graph, int subject, int property, int object, int below) except -1:
        """One more row, before chains are asked for; IndexError beyond the capacity."""
        if self.count == self._capacity:
            raise IndexError("a table of triples is full")
        cdef Py_ssize_t at = TRIPLE_WIDTH * self.count
        self.rows[at + TRIPLE_GRAPH] = graph
        self.rows[at + TRIPLE_SUBJECT] = subject
        self.rows[at + TRIPLE_PROPERTY] = property
        self.rows[at + TRIPLE_OBJECT] = object
        self.rows[at + TRIPLE_BELOW] = below
        self.count += 1
        return 0

    def statements(self) -> list[tuple[int, int, int, int]]:
        """All rows as (graph, subject, property, object)."""
        return [
            (
                self.rows[at + TRIPLE_GRAPH],
                self.rows[at + TRIPLE_SUBJECT],
                self.rows[at + TRIPLE_PROPERTY],
                self.rows[at + TRIPLE_OBJECT],
            )
            for at in range(0, TRIPLE_WIDTH * self.count, TRIPLE_WIDTH)
        ]

    cdef int first(self, int kind, int graph, int subject, int property, int object) except -2:
        """The first row of the chain, or -1; what ``kind`` is not by has to be 0."""
        if not self._built & (1 << kind):
            self._build(kind)
        cdef Py_ssize_t place = kind * (<Py_ssize_t>(self._mask) + 1)
        place += _mixed(graph, subject, property, object) & self._mask
        return self._heads[place] - 1

    cdef inline int after(self, int kind, int row) noexcept:
        """The next row of the chain, or -1."""
        cdef Py_ssize_t place = <Py_ssize_t>(kind) * self._capacity + row
        return self.following[place] - 1

    cdef int _build(self, int kind) except -1:
        """Make the chains of a kind; backwards, as each row is put before the others."""
        cdef int row
        cdef Py_ssize_t at, place, heads
        cdef Py_ssize_t base = <Py_ssize_t>(kind) * self._capacity
        if self._built == 0:
            self._heads = ints(CHAIN_KINDS * (self._mask + 1))
            self.following = ints(CHAIN_KINDS * max(self._capacity, 1))
        heads = kind * (<Py_ssize_t>(self._mask) + 1)
        for row in range(self.count - 1, -1, -1):
            at = TRIPLE_WIDTH * <Py_ssize_t>(row)
            place = heads + (
                _mixed(
                    self.rows[at + TRIPLE_GRAPH],
                    self.rows[at + TRIPLE_SUBJECT] if kind & BY_SUBJECT else 0,
                    self.rows[at + TRIPLE_PROPERTY] if kind & BY_PROPERTY else 0,
                    self.rows[at + TRIPLE_OBJECT] if kind & BY_OBJECT else 0,
                )
                & self._mask
            )
            self.following[base + row] = self._heads[place]
            self._heads[place] = row + 1
        self._built |= 1 << kind
        return 0


cdef inline unsigned int _mixed(int graph, int subject, int property, int object) noexcept:
    # Typed, for the compiler takes a literal of more than 31 bits for an object.
    cdef unsigned long long prime = 0x9E3779B97F4A7C15
    cdef unsigned long long mask = 0xFFFFFFFFFFFFFFFF
    cdef unsigned long long mixed = <unsigned long long>(graph & 0x7FFFFFFF) * 0x45EBCA6B
    mixed += <unsigned long long>(subject & 0x7FFFFFFF) * 0x42B2AE35
    mixed += <unsigned long long>(property & 0x7FFFFFFF) * 0x27D4EB2F
    mixed += <unsigned long long>(object & 0x7FFFFFFF) * 0x165667B1
    mixed = (mixed * prime) & mask
    return (mixed >> 32) & 0xFFFFFFFF


# -------------------------------------------------------------------------------------------------
# MessageGraph: the graph of one message, read from the columns of its striped element stream.
#
# Terms are numbered from 1 in order of first appearance, equal terms are one number, and 0 is no
# term (formats/graph/striped.py says how each stands in the stream)::
#
#     terms     [ kind first last tag next | ... ]     values[first:last]: the IRI, label or lexical
#                                                      form; tag: the term of its language, datatype
#     buckets   hash of kind, tag and bytes -> the first term, ``next`` the others
#
# Stated triples are in ``stated``.  Triples that the taxonomies add are in tables of their own,
# made when they are asked for: ``classes`` (each subject with its classes and those above),
# ``own_classes`` (without those above) and ``above`` (each triple with its property and with those
# above).  Only patterns that ask for a closure see these.
#
# A message is read once, for all profiles that ask about it.

cpdef enum:
    # Fields of a term; TAG: the term of its language or datatype, NEXT: of the same bucket.
    TERM_KIND = 0
    TERM_FIRST = 1
    TERM_LAST = 2
    TERM_TAG = 3
    TERM_NEXT = 4
    TERM_WIDTH = 5

    # Kinds of terms.
    KIND_IRI = 1
    KIND_BLANK = 2
    KIND_STRING = 3
    KIND_TAGGED = 4
    KIND_TYPED = 5
    KIND_LANGUAGE = 6

    # The role of a name of the message; the roles of properties follow.
    ROLE_NONE = 0
    ROLE_SUBJECT = 1
    ROLE_NAMED_SUBJECT = 2
    ROLE_OTHER_PROPERTY = 3
    ROLE_CLOSURE = 4
    ROLE_CLASS = 5
    ROLE_PROPERTY_ABOVE = 6
    ROLE_MEMBER = 7
    ROLE_IRI_SUBJECT = 8
    ROLE_BLANK = 9
    ROLE_GRAPH_IRI = 10
    ROLE_GRAPH_BLANK = 11
    ROLE_IRI_OBJECT = 12
    ROLE_STRING = 13
    ROLE_TEXT = 14
    ROLE_LANGUAGE = 15
    ROLE_LEXICAL = 16
    ROLE_DATATYPE = 17
    ROLE_PROPERTY_IRI = 18
    ROLE_OWN = 19
    ROLES = 20

    # No term of the message.
    ABSENT_TERM = -1


TermKey: TypeAlias = "tuple[int, int, bytes, bytes]"

_ELEMENTS = {
    SUBJECT: ROLE_SUBJECT,
    NAMED_SUBJECT: ROLE_NAMED_SUBJECT,
    OTHER_PROPERTY: ROLE_OTHER_PROPERTY,
    CLOSURE: ROLE_CLOSURE,
    CLASS: ROLE_CLASS,
    PROPERTY_ABOVE: ROLE_PROPERTY_ABOVE,
    MEMBER: ROLE_MEMBER,
}
_ATTRIBUTES = {
    IRI_SUBJECT: ROLE_IRI_SUBJECT,
    BLANK: ROLE_BLANK,
    GRAPH_IRI: ROLE_GRAPH_IRI,
    GRAPH_BLANK: ROLE_GRAPH_BLANK,
    IRI_OBJECT: ROLE_IRI_OBJECT,
    STRING: ROLE_STRING,
    TEXT: ROLE_TEXT,
    LANGUAGE: ROLE_LANGUAGE,
    LEXICAL: ROLE_LEXICAL,
    DATATYPE: ROLE_DATATYPE,
    PROPERTY_IRI: ROLE_PROPERTY_IRI,
    OWN: ROLE_OWN,
}
_SEED = hash(b"terms") & 0x7FFFFFFF  # Python salts its hashes: nobody can prepare collisions
BLANK_LETTER = "b"
_NUMBERED = (RDF + "_").encode()  # rdf:_1 and on


@cython.final
cdef class MessageGraph:
    """``graphs``: the terms that name graphs; ``terms_kept`` and ``values_kept``: objects
    made of terms, by their numbers; ``written``: by the syntax of a result, likewise; ``stores``:
    what pyoxigraph has of it, without and with its classes."""

    cdef readonly object stream
    cdef readonly bytes values
    cdef readonly int term_count
    cdef readonly dict graphs
    cdef readonly TripleTable stated
    cdef readonly dict terms_kept
    cdef readonly dict values_kept
    cdef readonly dict written
    cdef readonly dict stores
    cdef TripleTable _classes, _own_classes, _above
    cdef int[::1] _terms, _buckets
    cdef int _mask, _bucket
    cdef unsigned long long _seed
    cdef int _graph, _graph_before
    cdef int[::1] _role
    cdef const int[::1] _name, _end, _attribute_start, _attribute_name, _attribute_offset

    def __init__(self, stream: ElementStream) -> None:
        self.stream = stream
        self.term_count = 0
        self.graphs: dict[int, None] = {}
        self.terms_kept: dict[int, GroundTerm] = {}
        self.values_kept: dict[int, object] = {}
        self.written: dict[str, dict[int, bytes]] = {}
        self.stores: dict[bool, Any] = {}
        self._classes = self._own_classes = self._above = None
        self._graph = self._graph_before = 0
        self._seed = _SEED
        self._name = stream.element_name
        self._end = stream.element_end
        self._attribute_start = stream.attribute_start
        self._attribute_name = stream.attribute_name
        self._attribute_offset = stream.attribute_offset
        capacity = len(stream.attribute_name) + len(stream.names) + 8
        self._terms = ints(TERM_WIDTH * capacity)
        buckets = 64
        while buckets < 2 * capacity:
            buckets *= 2
        self._buckets = ints(buckets)
        self._mask = buckets - 1
        self.values = stream.attribute_values
        self._read_names()
        self.stated = TripleTable(len(stream))
        self._read()

    cpdef object term(self, int number):
        """The term of a number."""
        found = self.terms_kept.get(number)
        if found is None:
            found = self.terms_kept[number] = self._made(number)
        return found

    cpdef int find(self, term) except -2:
        """The number of a term, or ABSENT_TERM if the message has no such term."""
        return self.find_key(key_of(term))

    cpdef int find_key(self, key) except -2:
        """``find`` by the ``key_of`` a term."""
        kind, tag_kind, tag, lexical = key
        cdef int place = 0
        if tag_kind:
            place = self._lookup(tag_kind, 0, tag, 0, len(tag))
            if place == 0:
                return ABSENT_TERM
        place = self._lookup(kind, place, lexical, 0, len(lexical))
        return place if place else ABSENT_TERM

    cpdef TripleTable classes(self):
        """(subject, rdf:type, class) of each stated class and of those above it, each once."""
        if self._classes is None:
            self._classes = self._typed(False)
        return self._classes

    cpdef TripleTable own_classes(self):
        """(subject, rdf:type, class) of each class that is stated or listed, each once."""
        if self._own_classes is None:
            self._own_classes = self._typed(True)
        return self._own_classes

    cpdef TripleTable above(self):
        """Each stated triple, and for each property above its own one more, each once; ``below``
        is the property stated."""
        cdef int member
        if self._above is None:
            rows: dict = {}
            between: dict[object, list[int]] = {}
            for graph, subject, prop, thing in self.stated.statements():
                rows[graph, subject, prop, thing, prop] = None
                between.setdefault((graph, subject, thing), []).append(prop)
            member = self._added(KIND_IRI, (RDFS + "member").encode())
            for role in (ROLE_PROPERTY_ABOVE, ROLE_MEMBER):
                for graph, subject, element in self._closures(role):
                    thing = self._object_of(element)
                    prop = (
                        member
                        if role == ROLE_MEMBER
                        else self._term_in(element, ROLE_PROPERTY_IRI, KIND_IRI, 0)
                    )
                    for below in between.get((graph, subject, thing), ()):
                        is_numbered = self.key(below)[3].startswith(_NUMBERED)
                        if below != prop and (is_numbered or role != ROLE_MEMBER):
                            rows[graph, subject, prop, thing, below] = None
            table = TripleTable(len(rows))
            for graph, subject, prop, thing, below in rows:
                table.add(graph, subject, prop, thing, below)
            self._above = table
        return self._above

    cdef int _read_names(self) except -1:
        """What each name of the message is: a role, or ROLES and the term of a property."""
        cdef int number
        cdef int first = len(self.values)
        self._role = ints(max(len(self.stream.names), 1))
        iris: list[bytes] = []
        properties: list[int] = []
        for number, name in enumerate(self.stream.names):
            namespace = name.namespace
            if not namespace:
                self._role[number] = _ATTRIBUTES.get(name.local, ROLE_NONE)
            elif namespace == GRAPH_NAMESPACE:
                self._role[number] = _ELEMENTS.get(name.local, ROLE_NONE)
            else:
                properties.append(number)
                iris.append((namespace + name.local).encode())
        self.values = b"".join([self.values, *iris])
        for number, iri in zip(properties, iris, strict=True):
            self._role[number] = ROLES + self._intern(KIND_IRI, 0, first, first + len(iri))
            first += len(iri)
        return 0

    cdef int _read(self) except -1:
        """The stated triples."""
        cdef int element = 1
        cdef int child, end, subject, prop, thing
        cdef int count = len(self.stream)
        while element < count:
            end = self._end[element]
            subject = self._subject_of(element)
            child = element + 1
            while child < end and subject:
                prop = self._property_of(child)
                if prop:
                    thing = self._object_of(child)
                    if thing:
                        self.stated.add(self._graph, subject, prop, thing, prop)
                child = self._end[child]
            element = end
        return 0

    cdef int _subject_of(self, int element) except -1:
        """The subject that an element is about, or 0; its graph is in ``_graph`` then."""
        cdef int role = self._role[self._name[element]]
        self._graph = 0
        if role == ROLE_NAMED_SUBJECT:
            self._graph = self._term_in(element, ROLE_GRAPH_IRI, KIND_IRI, 0)
            if self._graph == 0:
                self._graph = self._term_in(element, ROLE_GRAPH_BLANK, KIND_BLANK, 0)
            if self._graph == 0:
                return 0
            if self._graph != self._graph_before:
                self._graph_before = self._graph
                self.graphs[self._graph] = None
        elif role != ROLE_SUBJECT:
            return 0
        cdef int subject = self._term_in(element, ROLE_IRI_SUBJECT, KIND_IRI, 0)
        return subject if subject else self._term_in(element, ROLE_BLANK, KIND_BLANK, 0)

    cdef int _property_of(self, int element) except -1:
        """The property that an element states, or 0 for a closure."""
        cdef int role = self._role[self._name[element]]
        if role >= ROLES:
            return role - ROLES
        if role == ROLE_OTHER_PROPERTY:
            return self._term_in(element, ROLE_PROPERTY_IRI, KIND_IRI, 0)
        return 0

    cdef int _object_of(self, int element) except -1:
        """The object that the attributes of an element give, or 0."""
        cdef int attribute
        cdef int tag = 0
        cdef int text = -1
        cdef int kind = 0
        cdef int first, last, role
        for attribute in range(self._attribute_start[element], self._attribute_start[element + 1]):
            role = self._role[self._attribute_name[attribute]]
            first = self._attribute_offset[attribute]
            last = self._attribute_offset[attribute + 1]
            if role == ROLE_IRI_OBJECT:
                return self._intern(KIND_IRI, 0, first, last)
            if role == ROLE_STRING:
                return self._intern(KIND_STRING, 0, first, last)
            if role == ROLE_BLANK:
                return self._intern(KIND_BLANK, 0, first, last)
            if role == ROLE_TEXT:
                text = attribute
                kind = KIND_TAGGED
            elif role == ROLE_LEXICAL:
                text = attribute
                kind = KIND_TYPED
            elif role == ROLE_LANGUAGE:
                tag = self._intern(KIND_LANGUAGE, 0, first, last)
            elif role == ROLE_DATATYPE:
                tag = self._intern(KIND_IRI, 0, first, last)
        if text < 0 or tag == 0:
            return 0
        return self._intern(
            kind, tag, self._attribute_offset[text], self._attribute_offset[text + 1]
        )

    cdef int _term_in(self, int element, int role, int kind, int tag) except -1:
        """The term in the attribute of a role, or 0 if the element has none."""
        cdef int attribute
        for attribute in range(self._attribute_start[element], self._attribute_start[element + 1]):
            if self._role[self._attribute_name[attribute]] == role:
                return self._intern(
                    kind,
                    tag,
                    self._attribute_offset[attribute],
                    self._attribute_offset[attribute + 1],
                )
        return 0

    cdef TripleTable _typed(self, bint own_only):
        """(subject, rdf:type, class) of each stated class and of those of the closure, each once;
        ``own_only``: of the latter those that are OWN."""
        table = TripleTable(len(self.stream))
        cdef int type_number = self._added(KIND_IRI, RDF_TYPE.encode())
        seen: set[tuple[int, int, int]] = set()
        for graph, subject, prop, thing in self.stated.statements():
            if prop == type_number and (graph, subject, thing) not in seen:
                seen.add((graph, subject, thing))
                table.add(graph, subject, prop, thing, prop)
        for graph, subject, element in self._closures(ROLE_CLASS):
            if own_only and not self._has(element, ROLE_OWN):
                continue
            thing = self._object_of(element)
            if thing and (graph, subject, thing) not in seen:
                seen.add((graph, subject, thing))
                table.add(graph, subject, type_number, thing, type_number)
        return table

    cdef bint _has(self, int element, int role) noexcept:
        """Whether an element has the attribute of a role."""
        cdef int attribute
        for attribute in range(self._attribute_start[element], self._attribute_start[element + 1]):
            if self._role[self._attribute_name[attribute]] == role:
                return True
        return False

    cdef list _closures(self, int wanted):
        """(graph, subject, element) of each element of a role within a closure."""
        found: list[tuple[int, int, int]] = []
        for element in self.stream.children_of(0):
            subject = self._subject_of(element)
            if not subject:
                continue
            graph = self._graph
            for child in self.stream.children_of(element):
                if self._role[self._name[child]] == ROLE_CLOSURE:
                    found += [
                        (graph, subject, each)
                        for each in self.stream.children_of(child)
                        if self._role[self._name[each]] == wanted
                    ]
        return found

    cdef int _intern(self, int kind, int tag, int first, int last) except -1:
        """The number of the term whose bytes are ``values[first:last]``, a new one if need be."""
        cdef int number = self._lookup(kind, tag, self.values, first, last)
        if number:
            return number
        cdef Py_ssize_t at
        self.term_count += 1
        number = self.term_count
        at = TERM_WIDTH * <Py_ssize_t>(number)
        if at + TERM_WIDTH > len(self._terms):
            raise IndexError("a table of terms is full")
        self._terms[at + TERM_KIND] = kind
        self._terms[at + TERM_TAG] = tag
        self._terms[at + TERM_FIRST] = first
        self._terms[at + TERM_LAST] = last
        self._terms[at + TERM_NEXT] = self._buckets[self._bucket]
        self._buckets[self._bucket] = number
        return number

    cdef int _lookup(self, int kind, int tag, bytes data, int first, int last) noexcept:
        """The number of the term whose bytes are ``data[first:last]``, or 0; ``_bucket`` is where
        it belongs."""
        cdef const unsigned char* wanted = data
        cdef const unsigned char* values = self.values
        cdef Py_ssize_t at
        cdef int i, number, own
        self._bucket = value_hash(self._seed, 8 * tag + kind, wanted, first, last) & self._mask
        number = self._buckets[self._bucket]
        while number:
            at = TERM_WIDTH * <Py_ssize_t>(number)
            own = self._terms[at + TERM_FIRST]
            if (
                self._terms[at + TERM_KIND] == kind
                and self._terms[at + TERM_TAG] == tag
                and self._terms[at + TERM_LAST] - own == last - first
            ):
                i = 0
                while i < last - first and values[own + i] == wanted[first + i]:
                    i += 1
                if i == last - first:
                    return number
            number = self._terms[at + TERM_NEXT]
        return 0

    cdef int _added(self, int kind, bytes data) except -1:
        """The number of a term that need not stand in an attribute of the message."""
        cdef int number = self._lookup(kind, 0, data, 0, len(data))
        if number:
            return number
        cdef int first = len(self.values)
        self.values += data
        return self._intern(kind, 0, first, first + len(data))

    cpdef object key(self, int number):
        """The key of a term, as ``key_of`` gives it; a blank node's label without its letter."""
        cdef Py_ssize_t at = TERM_WIDTH * <Py_ssize_t>(number)
        cdef int kind = self._terms[at + TERM_KIND]
        lexical = self.values[self._terms[at + TERM_FIRST] : self._terms[at + TERM_LAST]]
        cdef int tag = self._terms[at + TERM_TAG]
        if tag == 0:
            return kind, 0, b"", lexical
        at = TERM_WIDTH * <Py_ssize_t>(tag)
        text = self.values[self._terms[at + TERM_FIRST] : self._terms[at + TERM_LAST]]
        return kind, self._terms[at + TERM_KIND], text, lexical

    cdef object _made(self, int number):
        kind, _, tag, lexical = self.key(number)
        text = lexical.decode()
        if kind == KIND_IRI:
            return Iri(text)
        if kind == KIND_BLANK:
            return BlankNode(BLANK_LETTER + text)
        if kind == KIND_STRING:
            return LiteralTerm(text)
        if kind == KIND_TAGGED:
            return LiteralTerm(text, language=tag.decode())
        return LiteralTerm(text, tag.decode())


def key_of(term: GroundTerm) -> TermKey:
    """The key of a term: its kind, the kind of its tag (0: none), the tag, its bytes."""
    if isinstance(term, Iri):
        return KIND_IRI, 0, b"", term.value.encode()
    if isinstance(term, BlankNode):
        return KIND_BLANK, 0, b"", term.label.encode()
    lexical = term.lexical.encode()
    if term.language:
        return KIND_TAGGED, KIND_LANGUAGE, term.language.encode(), lexical
    if term.datatype == XSD + "string":
        return KIND_STRING, 0, b"", lexical
    return KIND_TYPED, KIND_IRI, term.datatype.encode(), lexical


# -------------------------------------------------------------------------------------------------
# The operators of a join program, and a Run of one on the graph of one message.
#
# Operators hang in a chain.  ``each`` goes on to the ``following`` one once for each way in which
# its own part of the pattern can be satisfied with what is bound so far, and takes back what it has
# bound before it returns: a nested loop over hash chains (G-ToPSS, section 4.3: the joins of
# binding tables).  It returns 1 as soon as what follows has enough, else 0::
#
#     MatchTriple ?c rss:items ?s -> MatchTriple ?s ?li ?i -> Test ?n < 5 -> Emit ?c ?i
#
# Bindings are in slots, one a variable and one a constant: a term's number in the message, 0 if
# unbound.  Terms that an expression makes and the message does not have are numbered from -2 down,
# for the run; -1 is a constant that the message does not have.
#
# Everything met is a visit, charged to the budget that a profile has for a message.

cpdef enum:
    # Slots of every run: one that is never bound, which stands for the default graph, too, and one
    # for terms that no expression reads.
    SLOT_UNBOUND = 0
    SLOT_ANY = 1
    SLOTS_FIRST = 2

    # Where a triple pattern looks.
    SOURCE_STATED = 0
    SOURCE_CLASSES = 1
    SOURCE_ABOVE = 2
    SOURCE_OWN_CLASSES = 3

    # Visits that are charged at once.
    VISITS_CHARGED = 256

    # Of a row that is kept: without its columns, of a column, and what is charged at once.
    ROW_BYTES = 56
    POINTER_BYTES = 8
    ROW_BYTES_CHARGED = 1048576

cdef class Operator


_EXTRA_FIRST = -2

Condition: TypeAlias = "Callable[[Run], bool | None]"
Expression: TypeAlias = "Callable[[Run], TermValue | None]"


@cython.final
cdef class Run:
    """One evaluation of a program.

    ``rows``: the solutions; ``extra``: the terms that the message does not have.
    """

    cdef readonly MessageGraph graph
    cdef readonly object budget
    cdef readonly list rows
    cdef readonly list extra
    cdef dict _extra_numbers, _extra_values, _tables
    cdef list _collected
    cdef TripleTable _classes, _own_classes, _above
    cdef int[::1] slots
    cdef int _visits, _row_bytes
    cdef bint _first_only

    def __init__(
        self, graph: MessageGraph, budget: Budget, slot_count: int, sources: int, first_only: bool
    ) -> None:
        self.graph = graph
        self.budget = budget
        self.rows: list[tuple[int, ...]] = []
        self.extra: list[GroundTerm] = []
        self._extra_numbers: dict[GroundTerm, int] = {}
        self._extra_values: dict[int, TermValue] = {}
        self._tables: dict[object, list[tuple[int, ...]]] = {}
        self._collected: list[tuple[int, ...]] = []
        self._first_only = first_only
        self._visits = VISITS_CHARGED
        self._row_bytes = 0
        # Before any term is made, so that those of the message stay as they are.
        self._classes = graph.classes() if sources & (1 << SOURCE_CLASSES) else None
        self._own_classes = graph.own_classes() if sources & (1 << SOURCE_OWN_CLASSES) else None
        self._above = graph.above() if sources & (1 << SOURCE_ABOVE) else None
        self.slots = ints(slot_count)

    cpdef int set_slot(self, int slot, int number) except -1:
        """Bind a constant before the run."""
        self.slots[slot] = number
        return 0

    cdef inline int visit(self) except -1:
        """Counts something met; MatchLimitExceeded when the budget is used up."""
        self._visits -= 1
        if self._visits < 0:
            self._charge()
        return 0

    cdef int _charge(self) except -1:
        self._visits = VISITS_CHARGED - 1
        self.budget.charge(VISITS_CHARGED)
        return 0

    cdef int count_row(self, int columns) except -1:
        """Counts a row that is about to be kept: a tuple, and its memory."""
        self.budget.charge_tuple()
        self._row_bytes += ROW_BYTES + POINTER_BYTES * columns
        if self._row_bytes > ROW_BYTES_CHARGED:
            self.budget.charge_memory(self._row_bytes)
            self._row_bytes = 0
        return 0

    cpdef int finish(self) except -1:
        """Charges what was not charged yet."""
        self.budget.charge(VISITS_CHARGED - self._visits)
        self._visits = VISITS_CHARGED
        return 0

    cpdef object value(self, int slot):
        """The term in a slot, or None."""
        cdef int number = self.slots[slot]
        if number == 0:
            return None
        kept = self.graph.values_kept if number > 0 else self._extra_values
        found = kept.get(number)
        if found is None:
            found = kept[number] = value_of(self.term(number))
            if number > 0:
                found.number = number
        return found

    cpdef bint is_bound(self, int slot) noexcept:
        return self.slots[slot] != 0

    cpdef object term(self, int number):
        """The term of a number."""
        if number > 0:
            return self.graph.term(number)
        return self.extra[_EXTRA_FIRST - number]

    cpdef int number_of(self, term) except 0:
        """The number of a term, a new one if need be."""
        cdef int number
        if isinstance(term, (Iri, LiteralTerm)):
            number = self.graph.find(term)
            if number > 0:
                return number
        found = self._extra_numbers.get(term)
        if found is None:
            found = self._extra_numbers[term] = _EXTRA_FIRST - len(self.extra)
            self.extra.append(term)
        return found

    cdef TripleTable table(self, int source):
        if source == SOURCE_STATED:
            return self.graph.stated
        return self._classes if source == SOURCE_CLASSES else self._above

    cpdef bint exists(self, Operator head) except -1:
        """Whether the chain is satisfied with what is bound."""
        return head.each(self) == 1

    cpdef bint run(self, Operator head) except -1:
        """All of a program; whether it stopped because it has enough."""
        try:
            stopped = head.each(self) == 1
        except RecursionError:  # uncompiled only, where a profile has very many patterns
            raise MatchLimitExceeded("too-many-visits", "a profile has too many patterns") from None
        self.finish()
        return stopped


cdef class Operator:
    """One of a chain; nothing follows the last."""

    cdef public Operator following

    def __init__(self, following: Operator | None = None) -> None:
        self.following: Operator = following

    cdef int each(self, Run run) except -1:
        """1 if what follows has enough."""
        raise NotImplementedError


cdef class MatchTriple(Operator):
    """A triple pattern: a slot for each place, ``below`` for the property stated (or 0)."""

    cdef int _source, _graph, _subject, _property, _object, _below
    cdef bint _repeats

    def __init__(
        self, source: int, graph: int, places: tuple[int, int, int], below: int, following: Operator
    ) -> None:
        self.following = following
        self._source = source
        self._graph = graph
        self._subject, self._property, self._object = places
        self._below = below
        self._repeats = len({*places, below}) < 4

    cdef int each(self, Run run) except -1:
        cdef TripleTable table = run.table(self._source)
        cdef int graph = run.slots[self._graph]
        cdef int subject = run.slots[self._subject]
        cdef int prop = run.slots[self._property]
        cdef int thing = run.slots[self._object]
        cdef int below = run.slots[self._below]
        cdef int kind = 0
        cdef int stopped = 0
        cdef int row
        cdef Py_ssize_t at
        if subject:
            kind += BY_SUBJECT
        if prop:
            kind += BY_PROPERTY
        if thing:
            kind += BY_OBJECT
        row = table.first(kind, graph, subject, prop, thing)
        while row >= 0:
            run.visit()
            at = TRIPLE_WIDTH * <Py_ssize_t>(row)
            if (
                table.rows[at + TRIPLE_GRAPH] == graph
                and (subject == 0 or table.rows[at + TRIPLE_SUBJECT] == subject)
                and (prop == 0 or table.rows[at + TRIPLE_PROPERTY] == prop)
                and (thing == 0 or table.rows[at + TRIPLE_OBJECT] == thing)
                and (below == 0 or table.rows[at + TRIPLE_BELOW] == below)
                and (not self._repeats or self._agrees(table, at))
            ):
                run.slots[self._subject] = table.rows[at + TRIPLE_SUBJECT]
                run.slots[self._property] = table.rows[at + TRIPLE_PROPERTY]
                run.slots[self._object] = table.rows[at + TRIPLE_OBJECT]
                if self._below:
                    run.slots[self._below] = table.rows[at + TRIPLE_BELOW]
                stopped = self.following.each(run)
                if stopped:
                    break
            row = table.after(kind, row)
        run.slots[self._subject] = subject
        run.slots[self._property] = prop
        run.slots[self._object] = thing
        run.slots[self._below] = below
        return stopped

    cdef bint _agrees(self, TripleTable table, Py_ssize_t at) noexcept:
        """Whether places with the same variable have the same term."""
        cdef int subject = table.rows[at + TRIPLE_SUBJECT]
        cdef int prop = table.rows[at + TRIPLE_PROPERTY]
        cdef int thing = table.rows[at + TRIPLE_OBJECT]
        cdef int below = table.rows[at + TRIPLE_BELOW]
        return (
            (self._subject != self._property or subject == prop)
            and (self._subject != self._object or subject == thing)
            and (self._property != self._object or prop == thing)
            and (self._below != self._subject or below == subject)
            and (self._below != self._object or below == thing)
        )


cdef class MatchClass(Operator):
    """A subject that is stated or listed to be of one of some classes, each subject once."""

    cdef int _graph, _subject
    cdef list _classes

    def __init__(
        self, graph: int, subject: int, classes: Sequence[int], following: Operator
    ) -> None:
        """Slots; those of ``classes`` are of constants."""
        self.following = following
        self._graph = graph
        self._subject = subject
        self._classes = list(classes)

    cdef int each(self, Run run) except -1:
        cdef TripleTable table = run._own_classes
        cdef int graph = run.slots[self._graph]
        cdef int subject = run.slots[self._subject]
        cdef int thing, found, slot, row
        cdef Py_ssize_t at
        cdef int stopped = 0
        cdef int kind = BY_OBJECT
        seen: set[int] = set()
        if subject:
            kind += BY_SUBJECT
        for slot in self._classes:
            if stopped or (subject and seen):
                break
            run.visit()
            thing = run.slots[slot]
            row = table.first(kind, graph, subject, 0, thing)
            while row >= 0 and not stopped:
                run.visit()
                at = TRIPLE_WIDTH * <Py_ssize_t>(row)
                found = table.rows[at + TRIPLE_SUBJECT]
                if (
                    table.rows[at + TRIPLE_GRAPH] == graph
                    and table.rows[at + TRIPLE_OBJECT] == thing
                    and subject in (0, found)
                    and found not in seen
                ):
                    seen.add(found)
                    run.slots[self._subject] = found
                    stopped = self.following.each(run)
                    run.slots[self._subject] = subject
                row = table.after(kind, row)
        return stopped


cdef class Test(Operator):
    """FILTER: goes on where the condition is true, neither false nor an error."""

    cdef object _condition

    def __init__(self, condition: Condition, following: Operator) -> None:
        self.following = following
        self._condition = condition

    cdef int each(self, Run run) except -1:
        run.visit()
        if self._condition(run) is True:
            return self.following.each(run)
        return 0


cdef class Assign(Operator):
    """BIND: a variable whose expression is an error stays as it is."""

    cdef object _value
    cdef int _slot

    def __init__(self, value: Expression, slot: int, following: Operator) -> None:
        self.following = following
        self._value = value
        self._slot = slot

    cdef int each(self, Run run) except -1:
        cdef int before = run.slots[self._slot]
        cdef int number, stopped
        run.visit()
        value = self._value(run)
        if value is None:
            return self.following.each(run)
        number = value.number or run.number_of(value.term)
        if before and before != number:
            return 0
        run.slots[self._slot] = number
        stopped = self.following.each(run)
        run.slots[self._slot] = before
        return stopped


cdef class Branches(Operator):
    """UNION: each of the chains, which all go on in the same place."""

    cdef list _heads

    def __init__(self, heads: Sequence[Operator]) -> None:
        self._heads = list(heads)

    cdef int each(self, Run run) except -1:
        cdef Operator operator
        for head in self._heads:
            operator = head
            if operator.each(run):
                return 1
        return 0


cdef class Optionally(Operator):
    """OPTIONAL: the inner chain, which goes on behind a Raise; without it where it never does."""

    cdef Operator _inner
    cdef int _flag

    def __init__(self, inner: Operator, flag: int, following: Operator) -> None:
        self.following = following
        self._inner = inner
        self._flag = flag

    cdef int each(self, Run run) except -1:
        run.slots[self._flag] = 0
        if self._inner.each(run):
            return 1
        if run.slots[self._flag]:
            return 0
        return self.following.each(run)


cdef class Raise(Operator):
    """The end of an optional chain."""

    cdef int _flag

    def __init__(self, flag: int, following: Operator) -> None:
        self.following = following
        self._flag = flag

    cdef int each(self, Run run) except -1:
        run.slots[self._flag] = 1
        return self.following.each(run)


cdef class Without(Operator):
    """MINUS: goes on where the inner chain, which ends with Found, is not satisfied."""

    cdef Operator _inner

    def __init__(self, inner: Operator, following: Operator) -> None:
        self.following = following
        self._inner = inner

    cdef int each(self, Run run) except -1:
        if self._inner.each(run):
            return 0
        return self.following.each(run)


cdef class Found(Operator):
    """The end of a chain of which one solution is enough."""

    cdef int each(self, Run run) except -1:
        return 1


cdef class EachGraph(Operator):
    """GRAPH with a variable: each named graph in turn, for the slot ``graph``."""

    cdef int _graph, _variable

    def __init__(self, graph: int, variable: int, following: Operator) -> None:
        self.following = following
        self._graph = graph
        self._variable = variable

    cdef int each(self, Run run) except -1:
        cdef int before = run.slots[self._variable]
        cdef int number
        cdef int stopped = 0
        for number in run.graph.graphs:
            run.visit()
            if before and before != number:
                continue
            run.slots[self._graph] = number
            run.slots[self._variable] = number
            stopped = self.following.each(run)
            if stopped:
                break
        run.slots[self._graph] = 0
        run.slots[self._variable] = before
        return stopped


cdef class IsGraph(Operator):
    """GRAPH with an IRI: goes on if the message has such a graph."""

    cdef int _graph

    def __init__(self, graph: int, following: Operator) -> None:
        self.following = following
        self._graph = graph

    cdef int each(self, Run run) except -1:
        if run.slots[self._graph] in run.graph.graphs:
            return self.following.each(run)
        return 0


cdef class Emit(Operator):
    """The end of a program."""

    cdef tuple _columns

    def __init__(self, columns: Sequence[int]) -> None:
        self._columns = tuple(columns)

    cdef int each(self, Run run) except -1:
        if run._first_only:
            return 1
        run.count_row(len(self._columns))
        run.rows.append(tuple([run.slots[slot] for slot in self._columns]))
        return 0


# -------------------------------------------------------------------------------------------------
# Operators of a join program that go through rows: of VALUES, and of groups for themselves.


Rows: TypeAlias = "list[tuple[int, ...]]"


cdef class RowJoin(Operator):
    """Goes on for each of some rows that agrees with what is bound."""

    cdef tuple _slots

    def __init__(self, slots: Sequence[int], following: Operator) -> None:
        self.following = following
        self._slots = tuple(slots)

    cdef int each_of(self, rows, Run run) except -1:
        cdef int place, bound, number
        cdef int stopped = 0
        cdef int count = len(self._slots)
        before: list[int] = [run.slots[place] for place in self._slots]
        for row in rows:
            run.visit()
            for place in range(count):
                number = row[place]
                bound = before[place]
                if number and bound and number != bound:
                    break
            else:
                for place in range(count):
                    number = row[place]
                    if number:
                        run.slots[self._slots[place]] = number
                stopped = self.following.each(run)
                for place in range(count):
                    run.slots[self._slots[place]] = before[place]
                if stopped:
                    break
        return stopped


cdef class EachRow(RowJoin):
    """VALUES: rows of the slots of constants, 0 for UNDEF."""

    cdef tuple _rows

    def __init__(
        self, slots: Sequence[int], rows: Sequence[tuple[int, ...]], following: Operator
    ) -> None:
        super().__init__(slots, following)
        self._rows = tuple(rows)

    cdef int each(self, Run run) except -1:
        cdef int place
        rows = []
        for row in self._rows:
            run.visit()
            numbers = []
            for place in row:
                numbers.append(run.slots[place])
            rows.append(tuple(numbers))
        return self.each_of(rows, run)


cdef class Table:
    """The solutions of a group that is evaluated for itself: its own variables begin unbound.

    ``columns``: the slots of its variables; ``hidden``: those of them that are bound outside
    without being meant; ``depends``: whether it looks at others that are bound outside (within
    EXISTS), so that it has to be evaluated each time; else once for each graph.
    """

    cdef readonly tuple columns
    cdef Operator _inner
    cdef tuple _hidden
    cdef int _graph
    cdef bint _depends

    def __init__(
        self, inner: Operator, columns: Sequence[int], hidden: Sequence[int], graph: int,
        depends: bool
    ) -> None:
        self.columns = tuple(columns)
        self._inner = inner
        self._hidden = tuple(hidden)
        self._graph = graph
        self._depends = depends

    cdef object rows(self, Run run):
        cdef int slot
        key = (self, run.slots[self._graph])
        kept = None if self._depends else run._tables.get(key)
        if kept is None:
            before = [run.slots[slot] for slot in self._hidden]
            outside = run._collected
            run._collected = []
            for slot in self._hidden:
                run.slots[slot] = 0
            self._inner.each(run)
            for slot, number in zip(self._hidden, before, strict=True):
                run.slots[slot] = number
            kept = run._collected
            run._collected = outside
            if not self._depends:
                run._tables[key] = kept
        return kept


cdef class JoinTable(RowJoin):
    """The rows of a table that are compatible with what is bound."""

    cdef Table _table

    def __init__(self, table: Table, following: Operator) -> None:
        super().__init__(table.columns, following)
        self._table = table

    cdef int each(self, Run run) except -1:
        return self.each_of(self._table.rows(run), run)


cdef class WithoutTable(Operator):
    """MINUS: goes on where no row is compatible that has a variable in common."""

    cdef Table _table

    def __init__(self, table: Table, following: Operator) -> None:
        self.following = following
        self._table = table

    cdef int each(self, Run run) except -1:
        cdef int place, bound, number
        cdef bint is_common
        columns: tuple[int, ...] = self._table.columns
        for row in self._table.rows(run):
            run.visit()
            is_common = False
            for place in range(len(columns)):
                number = row[place]
                bound = run.slots[columns[place]]
                if number and bound:
                    if number != bound:
                        break
                    is_common = True
            else:
                if is_common:
                    return 0
        return self.following.each(run)


cdef class Collect(Operator):
    """The end of the chain of a table."""

    cdef tuple _columns

    def __init__(self, columns: Sequence[int]) -> None:
        self._columns = tuple(columns)

    cdef int each(self, Run run) except -1:
        run.count_row(len(self._columns))
        run._collected.append(tuple([run.slots[slot] for slot in self._columns]))
        return 0
