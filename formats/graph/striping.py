"""GraphBuilder: the triples of a graph, one after the other, into a striped ElementStream.

What is striped, and how, says ``striped.py``.  Whoever reads a graph asks ``terms`` for the numbers
of its terms and adds triples of these; the columns are written at the end, when it is known which
triples a subject has.

::

    added       (s1 p1 o1) (s2 p2 o2) (s1 p3 o3)
    rows        0          1          2               property, object, and the next of the group
    groups      0: subject s1, rows 0, 2      1: subject s2, row 1

A group is a subject in a graph.  Rows and groups are known by where they begin in their columns.
Doubles are left out by a hash table of rows with open addressing, salted as Python's hashes are, so
that nobody can prepare triples that collide.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, Protocol

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from formats.element_stream import ElementStream
from formats.errors import MessageRefused
from formats.graph.graph_limits import DEFAULT_GRAPH_LIMITS, GraphLimits
from formats.graph.property_names import known_property_name
from formats.graph.striped_writer import StripedWriter, refuse_expansion
from formats.graph.terms import Terms
from formats.graph.vocabulary import RDF, RDF_TYPE

if cython.compiled:
    from cython.cimports.formats.graph.striped_writer import E_ABOVE, E_CLASS, E_MEMBER, OWN_CLASS
    from cython.cimports.formats.graph.terms import BLANK, IRI, LITERAL, NO_TERM, STRING
else:
    from formats.graph.striped_writer import E_ABOVE, E_CLASS, E_MEMBER, OWN_CLASS
    from formats.graph.terms import BLANK, IRI, LITERAL, NO_TERM, STRING

if not cython.compiled:
    IS_TYPE, IS_MEMBER, HAS_ABOVE, HAS_NO_NAME = 1, 2, 4, 8
    ROW_GROUP, ROW_PROPERTY, ROW_OBJECT, ROW_NEXT, ROW_WIDTH = range(5)
    GROUP_SUBJECT, GROUP_GRAPH, GROUP_FIRST, GROUP_LAST, GROUP_WIDTH = range(5)

_RDF = RDF.encode()
_TYPE = RDF_TYPE.encode()
_MEMBER = _RDF + b"_"
_ROWS, _SUBJECTS = 256, 256  # room to begin with; the rows' is a power of two
_NUMBER_BYTES = 11  # of a blank node, at most
_NOTHING = array("i", [-1])


class Closure(Protocol):
    """What taxonomies make of a graph's types and properties; all are IRIs."""

    def classes(self, subject: bytes, types: list[bytes]) -> list[bytes]:
        """The types of a subject ("" for a blank node), those that are listed of it, and all
        classes above them, each once."""

    def properties_above(self, name: bytes) -> list[bytes]:
        """All properties above one, without it."""

    def listed(self, iri: bytes) -> Sequence[bytes]:
        """The classes that are listed of an IRI, which has them wherever it stands."""


class GraphBuilder:
    """One graph: ``terms`` and ``add``, then ``finish``, once."""

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
        row: cython.int = self._row_end
        slot: cython.uint = self._slot(group, property, object)
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
        group: cython.int
        row: cython.int
        self._close(closure)
        self._check_sizes()
        writer: StripedWriter = StripedWriter(self.terms, self._limits)
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

    def _group(self, subject: cython.int, graph: cython.int) -> cython.int:
        """The group of a subject in a graph."""
        group: cython.int
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

    def _new_group(self, subject: cython.int, graph: cython.int) -> cython.int:
        group: cython.int = self._group_end
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

    def _size(self, term: cython.int) -> cython.Py_ssize_t:
        """The bytes of the values that say a term, at most."""
        terms: Terms = self.terms
        kind: cython.int = terms.kind(term)
        if kind == BLANK:
            return _NUMBER_BYTES
        size: cython.Py_ssize_t = len(terms.values[term])
        if kind == LITERAL:
            return size + len(terms.values[terms.datatype(term)]) + len(terms.extras[term])
        if kind == IRI or kind == STRING:
            return size
        return size + len(terms.extras[term])

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
                self._rows[row + ROW_OBJECT] == object
                and self._rows[row + ROW_PROPERTY] == property
                and self._rows[row + ROW_GROUP] == group
            ):
                return slot
            slot = (slot + 1) & slots

    def _grow_rows(self, rows: cython.Py_ssize_t) -> None:
        row: cython.int
        slot: cython.uint
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

    def _close(self, closure: Closure | None) -> None:
        """Find what stands below CLOSURE."""
        group: cython.int
        row: cython.int
        property: cython.int  # noqa: A001
        kind: cython.int
        self._role = _NOTHING * self.terms.count()
        special: cython.bint = False
        for row in range(0, self._row_end, ROW_WIDTH):
            property = self._rows[row + ROW_PROPERTY]  # noqa: A001
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

    def _role_of(self, name: bytes, closure: Closure | None) -> cython.int:
        """What a property asks for, below CLOSURE above all; nothing: 0."""
        role: cython.int = 0
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

    def _close_group(self, group: cython.int, closure: Closure | None) -> None:
        role: cython.int
        types: list[int] = []
        found: list[tuple[int, int, int]] = []
        row: cython.int = self._groups[group + GROUP_FIRST]
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

    def _add_listed(self, closure: Closure) -> None:
        """Every object that is listed gets a group, for its classes."""
        row: cython.int
        object: cython.int  # noqa: A001
        for row in range(0, self._row_end, ROW_WIDTH):
            object = self._rows[row + ROW_OBJECT]  # noqa: A001
            if self.terms.kind(object) == IRI and closure.listed(self.terms.values[object]):
                self._group(object, self._groups[self._rows[row + ROW_GROUP] + GROUP_GRAPH])

    def _iri_of(self, subject: cython.int) -> bytes:
        """ "" for a blank node."""
        terms: Terms = self.terms
        return terms.values[subject] if terms.kind(subject) == IRI else b""

    def _classes(self, name: bytes, types: list[int], closure: Closure) -> list[int]:
        """The classes of the subject of an IRI ("" for a blank node) with these types, which may
        be anything."""
        terms: Terms = self.terms
        named = [terms.values[each] for each in types if terms.kind(each) == IRI]
        others = [each for each in types if terms.kind(each) != IRI]
        return [terms.iri(each) for each in closure.classes(name, named)] + others

    def _check_sizes(self) -> None:
        elements: cython.Py_ssize_t = self._group_end // GROUP_WIDTH + self._row_end // ROW_WIDTH
        for found in self._closed:
            if found is not None:
                elements += 1 + len(found)
                for _, name, object in found:  # noqa: A001
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


def _is_member(name: bytes) -> bool:
    """Whether a property is rdf:_1, rdf:_2 .."""
    digits = name[len(_MEMBER) :]
    return name.startswith(_MEMBER) and digits.isdigit() and not digits.startswith(b"0")


def _longer(column: Any, rows: cython.Py_ssize_t) -> Any:
    longer = _NOTHING * rows
    if len(column):
        longer[: len(column)] = array("i", bytes(column))
    return longer
