# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""MessageView: one message as the index sees it.

The columns of the message, the labels of its names, the elements level by level (``order``)
and of each name (``positions`` from ``position_start`` on), and for each element its own atoms,
those that hold on it: by each attribute, text node, and, where a profile asks for it, string value.
All ranges of a value are one row, which has its attribute in ``own_ranges`` and the number; else it
is 0, and ``own_atom`` is the atom.  Of the rows of a value the first on which the trie has an edge
has the attribute's edge in ``own_asks``, which leads to the others, too; else that is 0.
A value is looked up by its bytes as they stand in the stream; it becomes a number only where
numbers are compared with it.  A view is bound to one message after another and keeps its columns.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython


from array import array

from formats.element_stream import ElementStream
from yfilter.index.columns import doubles, grown, ints

if cython.compiled:
    from cython.cimports.yfilter.index.atoms import AtomTable
    from cython.cimports.yfilter.index.number_reader import number_in
    from cython.cimports.yfilter.index.symbols import SymbolTable
    from cython.cimports.yfilter.index.text_tests import TextTests
    from cython.cimports.yfilter.operators.message_columns import MessageColumns
else:
    from yfilter.index.atoms import (
        AT_MOST,
        ATOM_EDGES,
        ATOM_LENGTH,
        ATOM_PLACE,
        ATOM_SEEN,
        ATOM_WIDTH,
        GREATER,
        LESS,
        AtomTable,
    )
    from yfilter.index.number_reader import number_in
    from yfilter.index.symbols import STRING_VALUE, TEXT_NODE, SymbolTable
    from yfilter.index.text_tests import TextTests
    from yfilter.index.trie import EDGE_ATTRIBUTE, EDGE_SHIFT
    from yfilter.operators.message_columns import MessageColumns


NAN: cython.double = float("nan")


class MessageView(MessageColumns):
    """``bind`` to a message; then ask about its elements."""

    def __init__(self, atoms: AtomTable, text_tests: TextTests) -> None:
        super().__init__()
        self.atoms = atoms
        self._text_tests = text_tests
        self.names = 0
        self.position_start = ints(256)
        self._allocate(256, 256, 1024)
        self._seen = array("Q", bytes(8 * 64))
        self.own_atom = ints(1024)
        self.own_asks = ints(1024)
        self.own_ranges = ints(1024)
        self.own_number = doubles(1024)

    def bind(self, stream: ElementStream, symbols: SymbolTable) -> None:
        """Look at a message, whose names were translated last."""
        self.bind_columns(stream)
        self.label = symbols.label
        self.attribute = symbols.attribute
        self.names = len(stream.names)
        if self.names + 2 > len(self.position_start):
            self.position_start = ints(2 * self.names + 2)
        if (
            self.elements >= len(self.own_start) - 1
            or len(self.content_kind) > len(self._text_asked)
            or len(self.attribute_name) > len(self._asked)
        ):
            self._allocate(
                2 * self.elements, 2 * len(self.content_kind), 2 * len(self.attribute_name)
            )
        self._sort_by_name(symbols.first)
        self._sort_by_depth()
        self._find_atoms()

    # -- questions about elements

    def holds(self, element: cython.int, atom: cython.int) -> cython.bint:
        """Whether an equality holds on an element."""
        i: cython.int
        if not (self._signature[element] >> (atom & 63)) & 1:
            return False
        for i in range(self.own_start[element], self.own_start[element + 1]):
            if self.own_atom[i] == atom:
                return True
        return False

    def has_atom(self, atom: cython.int) -> cython.bint:
        """Whether an equality holds somewhere in the message."""
        i: cython.int
        # PERF: the filter says no to most without a look at the atom, which is a cache miss.
        if not (self._seen[(atom >> 6) & 63] >> (atom & 63)) & 1:
            return False
        i = self.atoms.atoms[ATOM_WIDTH * atom + ATOM_SEEN]
        return i < self._own_count and self.own_atom[i] == atom

    def exists(self, element: cython.int, attribute: cython.int) -> cython.bint:
        """Whether an element has an attribute or a text node."""
        i: cython.int
        if attribute == TEXT_NODE:
            return self.text_first[element] >= 0
        for i in range(self.attribute_start[element], self.attribute_start[element + 1]):
            if self.attribute[self.attribute_name[i]] == attribute:
                return True
        return False

    def differs(self, element: cython.int, attribute: cython.int, atom: cython.int) -> cython.bint:
        """Whether an element has such a value that is not the one of an equality."""
        i: cython.int
        if attribute == STRING_VALUE:
            if not self.only_text:
                return self._stream.string_value(element) != self.atoms.value(atom)
            return not self._is_value(
                atom,
                True,
                self.content_offset[self.within_first[element]],
                self.content_offset[self.within_last[element]],
            )
        if attribute == TEXT_NODE:
            i = self.text_first[element]
            while i >= 0:
                if not self._is_value(
                    atom, True, self.content_offset[i], self.content_offset[i + 1]
                ):
                    return True
                i = self.text_next[i]
            return False
        for i in range(self.attribute_start[element], self.attribute_start[element + 1]):
            if self.attribute[self.attribute_name[i]] == attribute:
                return not self._is_value(
                    atom, False, self.attribute_offset[i], self.attribute_offset[i + 1]
                )
        return False

    def compares(
        self,
        element: cython.int,
        attribute: cython.int,
        operator: cython.int,
        number: cython.double,
    ) -> cython.bint:
        """Whether an element has such a value that, as a number, compares so with another."""
        return _compared(self.number(element, attribute, operator <= AT_MOST), operator, number)

    def number(
        self, element: cython.int, attribute: cython.int, smallest: cython.bint
    ) -> cython.double:
        """The smallest or the largest number of such values of an element; NaN if none is one."""
        i: cython.int
        number: cython.double
        found: cython.double = NAN
        if attribute == STRING_VALUE:
            if not self.only_text:
                text = self._stream.string_value(element).encode()
                return number_in(text, 0, len(text))
            return number_in(
                self.content_values,
                self.content_offset[self.within_first[element]],
                self.content_offset[self.within_last[element]],
            )
        if attribute == TEXT_NODE:
            i = self.text_first[element]
            while i >= 0:
                number = number_in(
                    self.content_values, self.content_offset[i], self.content_offset[i + 1]
                )
                found = further(found, number, smallest)
                i = self.text_next[i]
            return found
        for i in range(self.attribute_start[element], self.attribute_start[element + 1]):
            if self.attribute[self.attribute_name[i]] == attribute:
                return number_in(
                    self.attribute_values, self.attribute_offset[i], self.attribute_offset[i + 1]
                )
        return found

    # -- binding

    def _allocate(
        self, elements: cython.int, contents: cython.int, attributes: cython.int
    ) -> cython.int:
        self.own_start = ints(elements + 2)
        self.positions = ints(elements + 2)
        self.order = ints(elements + 2)
        self._level_start = ints(elements + 2)
        self._signature = array("Q", bytes(8 * elements + 16))
        self._text_asked = ints(contents + 1)
        self._text_found = ints(contents + 1)
        self._asked = ints(attributes + 1)
        self._found = ints(attributes + 1)
        return 0

    def _sort_by_name(self, first: cython.int[::1]) -> cython.int:
        """The elements of each name, in document order; equal names under the first of them."""
        name: cython.int
        element: cython.int
        for name in range(self.names + 2):
            self.position_start[name] = 0
        for element in range(self.elements):
            self.position_start[first[self.name[element]] + 2] += 1
        for name in range(2, self.names + 2):
            self.position_start[name] += self.position_start[name - 1]
        for element in range(self.elements):
            name = first[self.name[element]] + 1
            self.positions[self.position_start[name]] = element
            self.position_start[name] += 1
        return 0

    def _sort_by_depth(self) -> cython.int:
        """The elements level by level, in document order within a level."""
        element: cython.int
        depth: cython.int
        for depth in range(self.deepest + 2):
            self._level_start[depth] = 0
        for element in range(self.elements):
            self._level_start[self.depth[element] + 1] += 1
        for depth in range(1, self.deepest + 1):
            self._level_start[depth] += self._level_start[depth - 1]
        for element in range(self.elements):
            depth = self.depth[element]
            self.order[self._level_start[depth]] = element
            self._level_start[depth] += 1
        return 0

    def _find_atoms(self) -> cython.int:
        element: cython.int
        i: cython.int
        texts: cython.bint = self._is_asked_for(TEXT_NODE)
        strings: cython.bint = self._is_asked_for(STRING_VALUE)
        attribute_values: cython.p_const_uchar = self.attribute_values
        content_values: cython.p_const_uchar = self.content_values
        self._own_count = 0
        self._find_values(texts)
        for i in range(64):
            self._seen[i] = 0
        for element in range(self.elements):
            self.own_start[element] = self._own_count
            self._signature[element] = 0
            for i in range(self.attribute_start[element], self.attribute_start[element + 1]):
                self._asking = self._asked[i] << EDGE_SHIFT | EDGE_ATTRIBUTE
                if self._found[i]:
                    self._add_own(element, self._found[i])
                if self._asked[i] and self.atoms.tests[self._asked[i]]:
                    self._look_up_texts(element, i)
                if self._asked[i] and self._has_numbers(self._asked[i]):
                    self._look_up_number(
                        element,
                        self._asked[i],
                        number_in(
                            attribute_values, self.attribute_offset[i], self.attribute_offset[i + 1]
                        ),
                    )
            if texts:
                i = self.text_first[element]
                while i >= 0:
                    self._asking = TEXT_NODE << EDGE_SHIFT | EDGE_ATTRIBUTE
                    if self._text_found[i]:
                        self._add_own(element, self._text_found[i])
                    if self._has_numbers(TEXT_NODE):
                        self._look_up_number(
                            element,
                            TEXT_NODE,
                            number_in(
                                content_values, self.content_offset[i], self.content_offset[i + 1]
                            ),
                        )
                    i = self.text_next[i]
            if strings:
                self._look_up_string_value(element)
        self.own_start[self.elements] = self._own_count
        return 0

    def _find_values(self, texts: cython.bint) -> cython.int:
        """The equalities that hold by attributes and texts, as far as somebody asks for them."""
        count: cython.int = len(self.attribute_name)
        bound: cython.int = len(self.atoms.equalities)
        i: cython.int
        attribute: cython.int
        for i in range(count):
            attribute = self.attribute[self.attribute_name[i]]
            if attribute >= bound or not self._is_asked_for(attribute):
                attribute = 0
            self._asked[i] = attribute
        self.atoms.find_all(
            self.attribute_values, self._asked, self.attribute_offset, count, self._found
        )
        if texts:
            count = len(self.content_kind)
            for i in range(count):
                self._text_asked[i] = self.content_kind[i] == 0
            self.atoms.find_all(
                self.content_values, self._text_asked, self.content_offset, count, self._text_found
            )
        return 0

    def _look_up_texts(self, element: cython.int, place: cython.int) -> cython.int:
        """The text tests that hold by the value of an attribute of the message."""
        tests: TextTests = self._text_tests
        i: cython.int
        count: cython.int = tests.find(
            self._asked[place],
            self.attribute_values,
            self.attribute_offset[place],
            self.attribute_offset[place + 1],
        )
        for i in range(count):
            self._add_own(element, tests.found[i])
        return 0

    def _is_asked_for(self, attribute: cython.int) -> cython.bint:
        return (
            self.atoms.equalities[attribute] > 0
            or self.atoms.tests[attribute] > 0
            or self._has_numbers(attribute)
        )

    def _has_numbers(self, attribute: cython.int) -> cython.bint:
        """Whether somebody compares the values of an attribute with numbers."""
        return self.atoms.range_counts[attribute] > 0 or self.atoms.number_equalities[attribute] > 0

    def _look_up_number(
        self, element: cython.int, attribute: cython.int, number: cython.double
    ) -> cython.int:
        """The equality and the ranges that hold by a value that is this number, or NaN."""
        atom: cython.int
        own: cython.int
        if number != number:  # noqa: PLR0124 - NaN
            return 0
        if self.atoms.number_equalities[attribute] > 0:
            atom = self.atoms.find_number(attribute, number)
            if atom:
                self._add_own(element, atom)
        if self.atoms.range_counts[attribute] > 0:
            own = self._new_own(True)
            self.own_ranges[own] = attribute
            self.own_number[own] = number
        return 0

    def _look_up_string_value(self, element: cython.int) -> cython.int:
        values: cython.p_const_uchar = self.content_values
        first: cython.int = 0
        last: cython.int
        atom: cython.int
        if self.only_text:
            first = self.content_offset[self.within_first[element]]
            last = self.content_offset[self.within_last[element]]
        else:
            text = self._stream.string_value(element).encode()
            values = text
            last = len(text)
        self._asking = STRING_VALUE << EDGE_SHIFT | EDGE_ATTRIBUTE
        if last - first <= self.atoms.length_max[STRING_VALUE]:
            atom = self.atoms.find(STRING_VALUE, values, first, last)
            if atom:
                self._add_own(element, atom)
        if self._has_numbers(STRING_VALUE):
            self._look_up_number(element, STRING_VALUE, number_in(values, first, last))
        return 0

    def _add_own(self, element: cython.int, atom: cython.int) -> cython.int:
        """An equality that holds."""
        bit: cython.ulonglong = 1
        own: cython.int = self._new_own(self.atoms.atoms[ATOM_WIDTH * atom + ATOM_EDGES] != 0)
        self.own_atom[own] = atom
        self._signature[element] |= bit << (atom & 63)
        self._seen[(atom >> 6) & 63] |= bit << (atom & 63)
        self.atoms.atoms[ATOM_WIDTH * atom + ATOM_SEEN] = own
        return 0

    def _new_own(self, has_edge: cython.bint) -> cython.int:
        own: cython.int = self._own_count
        if own >= len(self.own_atom):
            self.own_atom = grown(self.own_atom, 2 * own)
            self.own_asks = grown(self.own_asks, 2 * own)
            self.own_ranges = grown(self.own_ranges, 2 * own)
            self.own_number = grown(self.own_number, 2 * own)
        self.own_atom[own] = 0
        self.own_ranges[own] = 0
        self.own_asks[own] = 0
        if has_edge:
            self.own_asks[own] = self._asking
            self._asking = 0
        self._own_count = own + 1
        return own

    # -- values

    def _is_value(
        self, atom: cython.int, content: cython.bint, first: cython.int, last: cython.int
    ) -> cython.bint:
        i: cython.int
        place: cython.int = self.atoms.atoms[ATOM_WIDTH * atom + ATOM_PLACE]
        if self.atoms.atoms[ATOM_WIDTH * atom + ATOM_LENGTH] != last - first:
            return False
        for i in range(last - first):
            if self.atoms.octets[place + i] != self._octet(content, first + i):
                return False
        return True

    def _octet(self, content: cython.bint, place: cython.int) -> cython.int:
        if content:
            return self.content_values[place]
        return self.attribute_values[place]


def further(one: cython.double, other: cython.double, smallest: cython.bint) -> cython.double:
    """The smaller or the larger of two numbers; the other one where one is NaN."""
    if one != one:  # noqa: PLR0124 - NaN
        return other
    if smallest:
        return other if other < one else one
    return other if other > one else one


@cython.cfunc
@cython.exceptval(check=False)
def _compared(value: cython.double, operator: cython.int, number: cython.double) -> cython.bint:
    if operator == LESS:
        return value < number
    if operator == AT_MOST:
        return value <= number
    if operator == GREATER:
        return value > number
    return value >= number
