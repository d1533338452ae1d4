"""MessageGraph: the graph of one message, read from the columns of its striped element stream.

Terms are numbered from 1 in order of first appearance, equal terms are one number, and 0 is no
term (formats/graph/striped.py says how each stands in the stream)::

    terms     [ kind first last tag next | ... ]     values[first:last]: the IRI, label or lexical
                                                     form; tag: the term of its language, datatype
    buckets   hash of kind, tag and bytes -> the first term, ``next`` the others

What is stated is in ``stated``.  What the taxonomies make of it is in tables of its own, made when
they are asked for: ``classes`` (each subject with its classes and those above), ``own_classes``
(without those above) and ``above`` (each triple with its property and with those above).  Only
patterns that ask for a closure see these.

A message is read once, for all profiles that ask about it.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from formats.graph.vocabulary import RDF, RDF_TYPE, RDFS, XSD

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

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
from yfilter.graph.query_ast import Iri, LiteralTerm
from yfilter.graph.terms import BlankNode, GroundTerm
from yfilter.index.columns import ints

if cython.compiled:
    from cython.cimports.yfilter.graph.triple_table import TripleTable
    from cython.cimports.yfilter.index.value_hash import value_hash
else:
    from yfilter.graph.triple_table import TripleTable
    from yfilter.index.value_hash import value_hash

if not cython.compiled:
    TERM_KIND, TERM_FIRST, TERM_LAST, TERM_TAG, TERM_NEXT, TERM_WIDTH = range(6)
    KIND_IRI, KIND_BLANK, KIND_STRING, KIND_TAGGED, KIND_TYPED, KIND_LANGUAGE = range(1, 7)
    ROLE_NONE, ROLE_SUBJECT, ROLE_NAMED_SUBJECT, ROLE_OTHER_PROPERTY = range(4)
    ROLE_CLOSURE, ROLE_CLASS, ROLE_PROPERTY_ABOVE, ROLE_MEMBER = range(4, 8)
    ROLE_IRI_SUBJECT, ROLE_BLANK, ROLE_GRAPH_IRI, ROLE_GRAPH_BLANK = range(8, 12)
    ROLE_IRI_OBJECT, ROLE_STRING, ROLE_TEXT, ROLE_LANGUAGE = range(12, 16)
    ROLE_LEXICAL, ROLE_DATATYPE, ROLE_PROPERTY_IRI, ROLE_OWN, ROLES = range(16, 21)
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


class MessageGraph:
    """``graphs``: the terms that name graphs; ``terms_kept`` and ``values_kept``: what others made
    of terms, by their numbers; ``written``: by the syntax of a result, likewise; ``stores``:
    what pyoxigraph has of it, without and with its classes."""

    def __init__(self, stream: ElementStream) -> None:
        self.stream = stream
        self.term_count: cython.int = 0
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

    def term(self, number: cython.int) -> GroundTerm:
        """The term of a number."""
        found = self.terms_kept.get(number)
        if found is None:
            found = self.terms_kept[number] = self._made(number)
        return found

    def find(self, term: Iri | LiteralTerm) -> cython.int:
        """The number of a term, or ABSENT_TERM if the message has no such term."""
        return self.find_key(key_of(term))

    def find_key(self, key: TermKey) -> cython.int:
        """``find`` by the ``key_of`` a term."""
        kind, tag_kind, tag, lexical = key
        place: cython.int = 0
        if tag_kind:
            place = self._lookup(tag_kind, 0, tag, 0, len(tag))
            if place == 0:
                return ABSENT_TERM
        place = self._lookup(kind, place, lexical, 0, len(lexical))
        return place if place else ABSENT_TERM

    def classes(self) -> TripleTable:
        """(subject, rdf:type, class) of each stated class and of those above it, each once."""
        if self._classes is None:
            self._classes = self._typed(False)
        return self._classes

    def own_classes(self) -> TripleTable:
        """(subject, rdf:type, class) of each class that is stated or listed, each once."""
        if self._own_classes is None:
            self._own_classes = self._typed(True)
        return self._own_classes

    def above(self) -> TripleTable:
        """Each stated triple, and for each property above its own one more, each once; ``below``
        is the property stated."""
        if self._above is None:
            rows: dict[tuple[int, ...], None] = {}
            between: dict[object, list[int]] = {}
            for graph, subject, prop, thing in self.stated.statements():
                rows[graph, subject, prop, thing, prop] = None
                between.setdefault((graph, subject, thing), []).append(prop)
            member: cython.int = self._added(KIND_IRI, (RDFS + "member").encode())
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

    def _read_names(self) -> cython.int:
        """What each name of the message is: a role, or ROLES and the term of a property."""
        number: cython.int
        first: cython.int = len(self.values)
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

    def _read(self) -> cython.int:
        """The stated triples."""
        element: cython.int = 1
        child: cython.int
        end: cython.int
        subject: cython.int
        prop: cython.int
        thing: cython.int
        count: cython.int = len(self.stream)
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

    def _subject_of(self, element: cython.int) -> cython.int:
        """The subject that an element is about, or 0; its graph is in ``_graph`` then."""
        role: cython.int = self._role[self._name[element]]
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
        subject: cython.int = self._term_in(element, ROLE_IRI_SUBJECT, KIND_IRI, 0)
        return subject if subject else self._term_in(element, ROLE_BLANK, KIND_BLANK, 0)

    def _property_of(self, element: cython.int) -> cython.int:
        """The property that an element states, or 0 for a closure."""
        role: cython.int = self._role[self._name[element]]
        if role >= ROLES:
            return role - ROLES
        if role == ROLE_OTHER_PROPERTY:
            return self._term_in(element, ROLE_PROPERTY_IRI, KIND_IRI, 0)
        return 0

    def _object_of(self, element: cython.int) -> cython.int:
        """The object that the attributes of an element give, or 0."""
        attribute: cython.int
        tag: cython.int = 0
        text: cython.int = -1
        kind: cython.int = 0
        first: cython.int
        last: cython.int
        role: cython.int
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

    def _term_in(
        self, element: cython.int, role: cython.int, kind: cython.int, tag: cython.int
    ) -> cython.int:
        """The term in the attribute of a role, or 0 if the element has none."""
        attribute: cython.int
        for attribute in range(self._attribute_start[element], self._attribute_start[element + 1]):
            if self._role[self._attribute_name[attribute]] == role:
                return self._intern(
                    kind,
                    tag,
                    self._attribute_offset[attribute],
                    self._attribute_offset[attribute + 1],
                )
        return 0

    def _typed(self, own_only: cython.bint) -> TripleTable:
        """(subject, rdf:type, class) of each stated class and of those of the closure, each once;
        ``own_only``: of the latter those that are OWN."""
        table = TripleTable(len(self.stream))
        type_number: cython.int = self._added(KIND_IRI, RDF_TYPE.encode())
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

    def _has(self, element: cython.int, role: cython.int) -> cython.bint:
        """Whether an element has the attribute of a role."""
        attribute: cython.int
        for attribute in range(self._attribute_start[element], self._attribute_start[element + 1]):
            if self._role[self._attribute_name[attribute]] == role:
                return True
        return False

    def _closures(self, wanted: cython.int) -> list[tuple[int, int, int]]:
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

    def _intern(
        self, kind: cython.int, tag: cython.int, first: cython.int, last: cython.int
    ) -> cython.int:
        """The number of the term whose bytes are ``values[first:last]``, a new one if need be."""
        number: cython.int = self._lookup(kind, tag, self.values, first, last)
        if number:
            return number
        at: cython.Py_ssize_t
        self.term_count += 1
        number = self.term_count
        at = TERM_WIDTH * cython.cast(cython.Py_ssize_t, number)
        if at + TERM_WIDTH > len(self._terms):
            raise IndexError("a table of terms is full")
        self._terms[at + TERM_KIND] = kind
        self._terms[at + TERM_TAG] = tag
        self._terms[at + TERM_FIRST] = first
        self._terms[at + TERM_LAST] = last
        self._terms[at + TERM_NEXT] = self._buckets[self._bucket]
        self._buckets[self._bucket] = number
        return number

    def _lookup(
        self,
        kind: cython.int,
        tag: cython.int,
        data: bytes,
        first: cython.int,
        last: cython.int,
    ) -> cython.int:
        """The number of the term whose bytes are ``data[first:last]``, or 0; ``_bucket`` is where
        it belongs."""
        wanted: cython.p_const_uchar = data
        values: cython.p_const_uchar = self.values
        at: cython.Py_ssize_t
        i: cython.int
        number: cython.int
        own: cython.int
        self._bucket = value_hash(self._seed, 8 * tag + kind, wanted, first, last) & self._mask
        number = self._buckets[self._bucket]
        while number:
            at = TERM_WIDTH * cython.cast(cython.Py_ssize_t, number)
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

    def _added(self, kind: cython.int, data: bytes) -> cython.int:
        """The number of a term that need not stand in an attribute of the message."""
        number: cython.int = self._lookup(kind, 0, data, 0, len(data))
        if number:
            return number
        first: cython.int = len(self.values)
        self.values += data
        return self._intern(kind, 0, first, first + len(data))

    def key(self, number: cython.int) -> TermKey:
        """What a term is, as ``key_of`` gives it; the label of a blank node without its letter."""
        at: cython.Py_ssize_t = TERM_WIDTH * cython.cast(cython.Py_ssize_t, number)
        kind: cython.int = self._terms[at + TERM_KIND]
        lexical = self.values[self._terms[at + TERM_FIRST] : self._terms[at + TERM_LAST]]
        tag: cython.int = self._terms[at + TERM_TAG]
        if tag == 0:
            return kind, 0, b"", lexical
        at = TERM_WIDTH * cython.cast(cython.Py_ssize_t, tag)
        text = self.values[self._terms[at + TERM_FIRST] : self._terms[at + TERM_LAST]]
        return kind, self._terms[at + TERM_KIND], text, lexical

    def _made(self, number: cython.int) -> GroundTerm:
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
    """What a term is found by: its kind, the kind of its tag (0: none), the tag, its bytes."""
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
