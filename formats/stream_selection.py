# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""StreamSelection: the elements, attributes and content of a message that are to be kept.

Marks are set on the columns of an element stream; ``selected`` is the message with what is marked,
made by copying what is marked and numbering it anew, without a look at any value::

    element   0:a  1:b  2:c  3:d  4:e          0:a  1:b  2:e
    mark       1    3    0    0    7     ->
    parent    -1    0    1    2    0          -1    0    0

Names that nothing is called any more leave the table where they are many; else it stays the same
object, whose head in the binary forms is known.

The marks of a valid selection: a marked element has a marked parent, and the children of one with
CONTENT are marked.  So no two texts ever become neighbours.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from array import array

from formats.element_stream import ElementStream

KEPT = 1  # the element is there
CONTENT = 2  # its own text, comments and processing instructions are, too
ATTRIBUTES = 4  # all its attributes are, too

_ROOM_KEPT_MAX = 1 << 20  # elements or attributes


class StreamSelection:
    """``begin`` with a message, mark its ``elements`` and ``attributes``, ask for ``selected``."""

    def __init__(self) -> None:
        self._element_room = array("B", bytes(256))
        self._attribute_room = array("B", bytes(256))
        self._before_room = array("i", bytes(4 * 257))
        self._number_room = array("i", bytes(4))
        self.elements = self._element_room
        self.attributes = self._attribute_room
        self._before = self._before_room

    def begin(self, stream: ElementStream) -> cython.int:
        """Nothing is marked of a message with so many elements."""
        elements: cython.Py_ssize_t = len(stream.element_name)
        attributes: cython.Py_ssize_t = len(stream.attribute_name)
        place: cython.Py_ssize_t
        self.stream = stream
        if elements > len(self.elements) or len(self.elements) > _ROOM_KEPT_MAX >= elements:
            self._element_room = array("B", bytes(elements + elements // 2 + 256))
            self._before_room = array("i", bytes(4 * (elements + elements // 2 + 257)))
            self.elements = self._element_room
            self._before = self._before_room
        if attributes > len(self.attributes) or len(self.attributes) > _ROOM_KEPT_MAX >= attributes:
            self._attribute_room = array("B", bytes(attributes + attributes // 2 + 256))
            self.attributes = self._attribute_room
        for place in range(elements):
            self.elements[place] = 0
        for place in range(attributes):
            self.attributes[place] = 0
        self._element_name = stream.element_name
        self._element_parent = stream.element_parent
        self._element_depth = stream.element_depth
        self._element_end = stream.element_end
        self._attribute_start = stream.attribute_start
        self._attribute_name = stream.attribute_name
        self._attribute_offset = stream.attribute_offset
        self._attribute_values = stream.attribute_values
        self._content_kind = stream.content_kind
        self._content_parent = stream.content_parent
        self._content_next = stream.content_next
        self._content_offset = stream.content_offset
        self._content_values = stream.content_values
        return elements

    def kept_bytes(self) -> cython.Py_ssize_t:
        """Bytes of the values that are kept, and of all: a measure of what is saved."""
        place: cython.Py_ssize_t
        attribute: cython.Py_ssize_t
        kept: cython.Py_ssize_t = 0
        for place in range(len(self._element_parent)):
            if not self.elements[place]:
                continue
            if self.elements[place] & 4:
                kept += (
                    self._attribute_offset[self._attribute_start[place + 1]]
                    - self._attribute_offset[self._attribute_start[place]]
                )
                continue
            for attribute in range(self._attribute_start[place], self._attribute_start[place + 1]):
                if self.attributes[attribute]:
                    kept += (
                        self._attribute_offset[attribute + 1] - self._attribute_offset[attribute]
                    )
        for place in range(len(self._content_parent)):
            if self._content_parent[place] >= 0 and self.elements[self._content_parent[place]] & 2:
                kept += self._content_offset[place + 1] - self._content_offset[place]
        return kept

    def selected(self) -> ElementStream:
        """The message with what is marked; content outside the root element is not kept."""
        result = ElementStream()
        result.names = self.stream.names
        self._select_elements(result)
        self._select_attributes(result)
        self._select_names(result)
        self._select_declarations(result)
        self._select_content(result)
        return result

    def place_of(self, element: cython.int) -> cython.int:
        """The number of a marked element in ``selected``, once that was asked for."""
        return self._before[element]

    def _select_elements(self, result: ElementStream) -> cython.int:
        count: cython.Py_ssize_t = len(self._element_parent)
        old: cython.Py_ssize_t
        kept: cython.int = 0
        new: cython.int
        for old in range(count):
            self._before[old] = kept
            if self.elements[old]:
                kept += 1
        self._before[count] = kept
        size: cython.Py_ssize_t = 4 * kept
        result.element_name = array("i", bytes(size))
        result.element_parent = array("i", bytes(size))
        result.element_depth = array("i", bytes(size))
        result.element_end = array("i", bytes(size))
        name: cython.int[::1] = result.element_name
        parent: cython.int[::1] = result.element_parent
        depth: cython.int[::1] = result.element_depth
        end: cython.int[::1] = result.element_end
        for old in range(count):
            if self.elements[old]:
                new = self._before[old]
                name[new] = self._element_name[old]
                depth[new] = self._element_depth[old]
                end[new] = self._before[self._element_end[old]]
                parent[new] = -1
                if self._element_parent[old] >= 0:
                    parent[new] = self._before[self._element_parent[old]]
        return 0

    def _select_attributes(self, result: ElementStream) -> cython.int:
        elements: cython.Py_ssize_t = len(self._element_parent)
        kept: cython.int = 0
        values: cython.int = 0
        element: cython.Py_ssize_t
        old: cython.Py_ssize_t
        first: cython.int
        place: cython.int
        for element in range(elements):
            if not self.elements[element]:
                continue
            for old in range(self._attribute_start[element], self._attribute_start[element + 1]):
                if self.elements[element] & 4:
                    self.attributes[old] = 1
                if self.attributes[old]:
                    kept += 1
                    values += self._attribute_offset[old + 1] - self._attribute_offset[old]
        result.attribute_start = array("i", bytes(4 * (self._before[elements] + 1)))
        result.attribute_name = array("i", bytes(4 * kept))
        result.attribute_offset = array("i", bytes(4 * (kept + 1)))
        if not kept:
            return 0
        run = bytearray(values + 1)
        start: cython.int[::1] = result.attribute_start
        name: cython.int[::1] = result.attribute_name
        offset: cython.int[::1] = result.attribute_offset
        out: cython.uchar[::1] = run
        kept = 0
        values = 0
        for element in range(elements):
            if not self.elements[element]:
                continue
            for old in range(self._attribute_start[element], self._attribute_start[element + 1]):
                if self.attributes[old]:
                    name[kept] = self._attribute_name[old]
                    first = self._attribute_offset[old]
                    for place in range(self._attribute_offset[old + 1] - first):
                        out[values + place] = self._attribute_values[first + place]
                    values += self._attribute_offset[old + 1] - first
                    kept += 1
                    offset[kept] = values
            start[self._before[element] + 1] = kept
        result.attribute_values = bytes(run[:values])
        return 0

    def _select_names(self, result: ElementStream) -> cython.int:
        """Without those that are not used, if they are a quarter or more."""
        count: cython.Py_ssize_t = len(self.stream.names)
        place: cython.Py_ssize_t
        used: cython.int = 0
        self._number_room = array("i", bytes(4 * count))
        number: cython.int[::1] = self._number_room
        elements: cython.int[::1] = result.element_name
        attributes: cython.int[::1] = result.attribute_name
        for place in range(len(elements)):
            number[elements[place]] = 1
        for place in range(len(attributes)):
            number[attributes[place]] = 1
        for place in range(count):
            if number[place]:
                number[place] = used
                used += 1
            else:
                number[place] = -1
        if 4 * used > 3 * count:
            return 0
        result.names = [self.stream.names[place] for place in range(count) if number[place] >= 0]
        for place in range(len(elements)):
            elements[place] = number[elements[place]]
        for place in range(len(attributes)):
            attributes[place] = number[attributes[place]]
        return 0

    def _select_declarations(self, result: ElementStream) -> cython.int:
        place: cython.Py_ssize_t
        declared = self.stream.declaration_element
        for place in range(len(declared)):
            element: cython.int = declared[place]
            if self.elements[element]:
                result.declaration_element.append(self._before[element])
                result.declarations.append(self.stream.declarations[place])
        return 0

    def _select_content(self, result: ElementStream) -> cython.int:
        count: cython.Py_ssize_t = len(self._content_parent)
        kept: cython.int = 0
        values: cython.int = 0
        old: cython.Py_ssize_t
        parent: cython.int
        first: cython.int
        place: cython.int
        for old in range(count):
            parent = self._content_parent[old]
            if parent >= 0 and self.elements[parent] & 2:
                kept += 1
                values += self._content_offset[old + 1] - self._content_offset[old]
        if not kept:
            return 0
        result.content_kind = array("B", bytes(kept))
        result.content_parent = array("i", bytes(4 * kept))
        result.content_next = array("i", bytes(4 * kept))
        result.content_offset = array("i", bytes(4 * (kept + 1)))
        run = bytearray(values + 1)
        kinds: cython.uchar[::1] = result.content_kind
        parents: cython.int[::1] = result.content_parent
        nexts: cython.int[::1] = result.content_next
        offset: cython.int[::1] = result.content_offset
        out: cython.uchar[::1] = run
        kept = 0
        values = 0
        for old in range(count):
            parent = self._content_parent[old]
            if parent < 0 or not self.elements[parent] & 2:
                continue
            kinds[kept] = self._content_kind[old]
            parents[kept] = self._before[parent]
            nexts[kept] = self._before[self._content_next[old]]
            first = self._content_offset[old]
            for place in range(self._content_offset[old + 1] - first):
                out[values + place] = self._content_values[first + place]
            values += self._content_offset[old + 1] - first
            kept += 1
            offset[kept] = values
        result.content_values = bytes(run[:values])
        return 0
