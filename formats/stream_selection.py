# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""StreamSelection: what several takers keep of a message, written as a message for each.

A taker takes elements in document order: one bare, with its attributes that are marked; or with all
below it, as a *run* that is copied column by column, without a look at any value::

    element   0:a  1:b  2:c  3:d  4:e          0:a  1:b  2:c  3:d
    taken     BARE WHOLE          -     ->
    parent    -1    0    1    2    0          -1    0    1    2

What is written costs what it keeps, however large the message is.  Names that nothing is called any
more leave the table where they are many; else it stays the same object, whose head in the binary
forms is known.

Whatever is taken has a parent that is taken bare, or stands in a run.  So no two texts ever become
neighbours.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from array import array

from formats.element_stream import NO_PIECES, ElementStream
from formats.names import QualifiedName

if cython.compiled:
    from cython.cimports.formats.column_cuts import bytes_of, copy_octets, ints_of, octets_of
    from cython.cimports.formats.content_range import content_from, content_to
else:
    from formats.column_cuts import bytes_of, copy_octets, ints_of, octets_of
    from formats.content_range import content_from, content_to

BARE = 0  # the element
VALUE = 1  # with all below it, but for attributes that are not marked
WHOLE = 2  # with all below it

_ROOM_KEPT_MAX = 1 << 20  # elements or attributes


class StreamSelection:
    """``begin`` with a message and mark; for each taker ``begin_taker``, ``take``, ``selected``.

    Takers are bits: ``attributes`` are those that keep an attribute, ``wholes`` those that keep all
    of an element, which counts within a VALUE only.
    """

    def __init__(self) -> None:
        self.attributes = array("Q", bytes(8))
        self.wholes = array("Q", bytes(8))
        self._ints = array("i")
        self._octet_column = array("B")
        self._numbers = array("i", bytes(4))
        self._kinds = array("B", bytes(1))
        self._octets = array("B", bytes(1))
        self._used = array("i", bytes(4))
        self._runs_room(64)

    def begin(self, stream: ElementStream) -> cython.int:
        """Nothing is marked of a message."""
        elements: cython.Py_ssize_t = len(stream.element_name)
        attributes: cython.Py_ssize_t = len(stream.attribute_name)
        place: cython.Py_ssize_t
        if elements > len(self.wholes) or len(self.wholes) > _ROOM_KEPT_MAX >= elements:
            self.wholes = array("Q", bytes(8 * (elements + elements // 2 + 256)))
        if attributes > len(self.attributes) or len(self.attributes) > _ROOM_KEPT_MAX >= attributes:
            self.attributes = array("Q", bytes(8 * (attributes + attributes // 2 + 256)))
        for place in range(elements):
            self.wholes[place] = 0
        for place in range(attributes):
            self.attributes[place] = 0
        self._stream = stream
        self._element_name = stream.element_name
        self._element_parent = stream.element_parent
        self._element_depth = stream.element_depth
        self._element_end = stream.element_end
        self._attribute_start = stream.attribute_start
        self._attribute_name = stream.attribute_name
        self._attribute_offset = stream.attribute_offset
        self._attribute_values = stream.attribute_values
        self._declaration_element = stream.declaration_element
        self._content_kind = stream.content_kind
        self._content_parent = stream.content_parent
        self._content_next = stream.content_next
        self._content_offset = stream.content_offset
        self._content_values = stream.content_values
        return 0

    def begin_taker(self, taker: cython.ulonglong) -> cython.int:
        """Nothing is taken yet by this one."""
        self._taker = taker
        self._count = 0
        self.elements = 0
        self._attributes = 0
        self._attribute_bytes = 0
        self._contents = 0
        self._content_bytes = 0
        return 0

    def take(self, element: cython.int, kind: cython.int) -> cython.int:
        """Behind all that was taken before."""
        run: cython.Py_ssize_t = self._count
        first: cython.int
        last: cython.int
        if run == len(self._first):
            self._runs_room(2 * run)
        last = element + 1 if kind == 0 else self._element_end[element]
        self._first[run] = element
        self._end[run] = last
        self._kind[run] = kind
        self._place[run] = self.elements
        self._count = run + 1
        self.elements += last - element
        self._count_attributes(element, last, kind)
        self._content_first[run] = self._content_last[run] = 0
        if kind != 0:
            first = content_from(self._content_next, element)
            last = content_to(
                self._content_next, self._content_parent, element, self._element_end[element]
            )
            self._content_first[run] = first
            self._content_last[run] = last
            self._contents += last - first
            self._content_bytes += self._content_offset[last] - self._content_offset[first]
        return 0

    def kept_bytes(self) -> cython.Py_ssize_t:
        """Bytes of the values that are taken."""
        return self._attribute_bytes + self._content_bytes

    def place_of(self, element: cython.int) -> cython.int:
        """The number of an element that is taken in ``selected``."""
        first: cython.Py_ssize_t = 0
        last: cython.Py_ssize_t = self._count
        middle: cython.Py_ssize_t
        while first < last:
            middle = (first + last) >> 1
            if self._first[middle] <= element:
                first = middle + 1
            else:
                last = middle
        return self._place[first - 1] + element - self._first[first - 1]

    def selected(self) -> ElementStream:
        """The message with what is taken; content outside the root element is not kept."""
        elements: cython.Py_ssize_t = self.elements
        attributes: cython.Py_ssize_t = self._attributes
        contents: cython.Py_ssize_t = self._contents
        values: cython.Py_ssize_t = self._attribute_bytes
        starts: cython.Py_ssize_t = 4 * elements
        names: cython.Py_ssize_t = starts + elements + 1
        offsets: cython.Py_ssize_t = names + attributes
        parents: cython.Py_ssize_t = offsets + attributes + 1
        nexts: cython.Py_ssize_t = parents + contents
        ends: cython.Py_ssize_t = nexts + contents
        size: cython.Py_ssize_t = ends + contents + 1
        self._make_room(size, contents, values + self._content_bytes)
        self._copy_elements(elements)
        self._copy_attributes(starts, names, offsets)
        self._copy_content(parents, nexts, ends, values)
        # PERF: a message may be written for many takers: cut out of one room, and without __init__.
        room, ints = self._numbers, self._ints
        result: ElementStream = ElementStream.__new__(ElementStream)
        result.names = self._used_names(elements, names, attributes)
        result.element_name = ints_of(ints, room, 0, elements)
        result.element_parent = ints_of(ints, room, elements, 2 * elements)
        result.element_depth = ints_of(ints, room, 2 * elements, 3 * elements)
        result.element_end = ints_of(ints, room, 3 * elements, starts)
        result.attribute_start = ints_of(ints, room, starts, names)
        result.attribute_name = ints_of(ints, room, names, offsets)
        result.attribute_offset = ints_of(ints, room, offsets, parents)
        result.attribute_values = bytes_of(self._octets, 0, values)
        result.content_kind = octets_of(self._octet_column, self._kinds, 0, contents)
        result.content_parent = ints_of(ints, room, parents, nexts)
        result.content_next = ints_of(ints, room, nexts, ends)
        result.content_offset = ints_of(ints, room, ends, size)
        result.content_values = bytes_of(self._octets, values, values + self._content_bytes)
        result.declaration_element = ints_of(ints, room, 0, 0)
        result.declarations = []
        result.pieces = NO_PIECES
        if len(self._declaration_element):
            self._copy_declarations(result)
        return result

    # -- what is taken

    def _count_attributes(
        self, element: cython.int, last: cython.int, kind: cython.int
    ) -> cython.int:
        first: cython.int
        attribute: cython.int
        if kind == 2:
            self._count_all(self._attribute_start[element], self._attribute_start[last])
            return 0
        while element < last:
            if kind == 1 and self.wholes[element] & self._taker:
                first = element
                while element < last and self.wholes[element] & self._taker:
                    element += 1
                self._count_all(self._attribute_start[first], self._attribute_start[element])
                continue
            for attribute in range(
                self._attribute_start[element], self._attribute_start[element + 1]
            ):
                if self.attributes[attribute] & self._taker:
                    self._count_all(attribute, attribute + 1)
            element += 1
        return 0

    def _count_all(self, first: cython.int, last: cython.int) -> cython.int:
        self._attributes += last - first
        self._attribute_bytes += self._attribute_offset[last] - self._attribute_offset[first]
        return 0

    # -- columns

    def _copy_elements(self, elements: cython.Py_ssize_t) -> cython.int:
        """Name, parent, depth and end, one behind the other."""
        run: cython.Py_ssize_t
        old: cython.int
        place: cython.int
        shift: cython.int
        open_: cython.Py_ssize_t = 0  # bare elements around
        parent: cython.int = -1
        numbers = self._numbers
        for run in range(self._count):
            old = self._first[run]
            place = self._place[run]
            while open_ and self._element_end[self._open_old[open_ - 1]] <= old:
                open_ -= 1
                numbers[3 * elements + self._open_new[open_]] = place
            parent = self._open_new[open_ - 1] if open_ else -1
            shift = place - old
            numbers[elements + place] = parent
            if self._kind[run] == 0:
                numbers[place] = self._element_name[old]
                numbers[2 * elements + place] = self._element_depth[old]
                self._open_old[open_] = old
                self._open_new[open_] = place
                open_ += 1
                continue
            for old in range(self._first[run], self._end[run]):
                numbers[old + shift] = self._element_name[old]
                numbers[2 * elements + old + shift] = self._element_depth[old]
                numbers[3 * elements + old + shift] = self._element_end[old] + shift
            for old in range(self._first[run] + 1, self._end[run]):
                numbers[elements + old + shift] = self._element_parent[old] + shift
        while open_:
            open_ -= 1
            numbers[3 * elements + self._open_new[open_]] = elements
        return 0

    def _copy_attributes(
        self, starts: cython.Py_ssize_t, names: cython.Py_ssize_t, offsets: cython.Py_ssize_t
    ) -> cython.int:
        run: cython.Py_ssize_t
        old: cython.int
        attribute: cython.int
        at: cython.int
        size: cython.int
        is_whole: cython.bint
        kept: cython.int = 0
        values: cython.int = 0
        numbers = self._numbers
        numbers[starts] = 0
        numbers[offsets] = 0
        for run in range(self._count):
            for old in range(self._first[run], self._end[run]):
                is_whole = self._kind[run] == 2
                if self._kind[run] == 1 and self.wholes[old] & self._taker:
                    is_whole = True
                for attribute in range(self._attribute_start[old], self._attribute_start[old + 1]):
                    if is_whole or self.attributes[attribute] & self._taker:
                        numbers[names + kept] = self._attribute_name[attribute]
                        at = self._attribute_offset[attribute]
                        size = self._attribute_offset[attribute + 1] - at
                        copy_octets(self._octets, values, self._attribute_values, at, size)
                        values += size
                        kept += 1
                        numbers[offsets + kept] = values
                starts += 1
                numbers[starts] = kept
        return 0

    def _copy_content(
        self,
        parents: cython.Py_ssize_t,
        nexts: cython.Py_ssize_t,
        ends: cython.Py_ssize_t,
        values: cython.Py_ssize_t,
    ) -> cython.int:
        run: cython.Py_ssize_t
        old: cython.int
        at: cython.int
        shift: cython.int
        moved: cython.int
        size: cython.int
        kept: cython.int = 0
        written: cython.int = 0
        numbers = self._numbers
        numbers[ends] = 0
        for run in range(self._count):
            if self._content_first[run] == self._content_last[run]:
                continue
            shift = self._place[run] - self._first[run]
            at = self._content_offset[self._content_first[run]]
            moved = written - at
            for old in range(self._content_first[run], self._content_last[run]):
                self._kinds[kept] = self._content_kind[old]
                numbers[parents + kept] = self._content_parent[old] + shift
                numbers[nexts + kept] = self._content_next[old] + shift
                kept += 1
                numbers[ends + kept] = self._content_offset[old + 1] + moved
            size = self._content_offset[self._content_last[run]] - at
            copy_octets(self._octets, values + written, self._content_values, at, size)
            written += size
        return 0

    def _used_names(
        self, elements: cython.Py_ssize_t, names: cython.Py_ssize_t, attributes: cython.Py_ssize_t
    ) -> list[QualifiedName]:
        """Without those that are not used, if they are a quarter or more."""
        known = self._stream.names
        count: cython.Py_ssize_t = len(known)
        place: cython.Py_ssize_t
        used: cython.int = 0
        numbers = self._numbers
        if count > len(self._used):
            self._used = array("i", bytes(8 * count))
        for place in range(count):
            self._used[place] = 0
        for place in range(elements):
            self._used[numbers[place]] = 1
        for place in range(names, names + attributes):
            self._used[numbers[place]] = 1
        for place in range(count):
            used += self._used[place]
        if 4 * used > 3 * count:
            return known
        kept: list[QualifiedName] = []
        for place in range(count):
            if self._used[place]:
                self._used[place] = len(kept)
                kept.append(known[place])
        for place in range(elements):
            numbers[place] = self._used[numbers[place]]
        for place in range(names, names + attributes):
            numbers[place] = self._used[numbers[place]]
        return kept

    def _copy_declarations(self, result: ElementStream) -> cython.int:
        run: cython.Py_ssize_t = 0
        place: cython.Py_ssize_t
        element: cython.int
        for place in range(len(self._declaration_element)):
            element = self._declaration_element[place]
            while run < self._count and self._end[run] <= element:
                run += 1
            if run == self._count:
                break
            if self._first[run] <= element:
                shifted = self._place[run] + element - self._first[run]
                result.declaration_element.append(shifted)
                result.declarations.append(self._stream.declarations[place])
        return 0

    # -- room

    def _runs_room(self, count: cython.Py_ssize_t) -> cython.int:
        rooms = [array("i", bytes(4 * count)) for _ in range(8)]
        for room, old in zip(rooms, self._run_rooms if count > 64 else (), strict=False):
            room[: len(old)] = old
        self._run_rooms: list[array[int]] = rooms
        self._first, self._end, self._kind, self._place = rooms[:4]
        self._content_first, self._content_last, self._open_old, self._open_new = rooms[4:]
        return 0

    def _make_room(
        self, numbers: cython.Py_ssize_t, kinds: cython.Py_ssize_t, octets: cython.Py_ssize_t
    ) -> cython.int:
        if numbers > len(self._numbers) or len(self._numbers) > 10 * _ROOM_KEPT_MAX >= numbers:
            self._numbers = array("i", bytes(4 * (numbers + numbers // 2)))
        if kinds > len(self._kinds):
            self._kinds = array("B", bytes(kinds + kinds // 2))
        if octets > len(self._octets) or len(self._octets) > 10 * _ROOM_KEPT_MAX >= octets:
            self._octets = array("B", bytes(octets + octets // 2))
        return 0
