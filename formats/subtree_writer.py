# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""SubtreeWriter: what is inside an element of a message, as XML, in one pass over the columns.

For subtrees without namespace declarations, which is nearly all that is copied: nothing has to be
known there but where a tag ends.  ``xml_writer`` writes the element itself and all other subtrees.

::

    <a x="1">t<b/>u</a>       inside of a:  t<b/>u
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from array import array

from formats.element_stream import ElementStream

_ROOM_KEPT_MAX = 1 << 20
_IN_VALUES, _IN_TEXT = 1, 2  # where an octet is escaped
_ESCAPED = bytes(
    _IN_VALUES * (octet in b'&<"\t\n\r') + _IN_TEXT * (octet in b"&<>\r") for octet in range(63)
)


class SubtreeWriter:
    """Writes of one message; ``stream`` is that message."""

    def __init__(self, stream: ElementStream) -> None:
        self.stream = stream
        labels = [str(name).encode() for name in stream.names]
        self._label_start = array("i", [0, *_ends(labels)])
        self._labels_octets = b"".join(labels)
        self._labels = self._labels_octets
        self._element_name = stream.element_name
        self._element_parent = stream.element_parent
        self._element_end = stream.element_end
        self._attribute_start = stream.attribute_start
        self._attribute_name = stream.attribute_name
        self._attribute_offset = stream.attribute_offset
        self._attribute_octets = stream.attribute_values
        self._attribute_values = stream.attribute_values
        self._content_kind = stream.content_kind
        self._content_parent = stream.content_parent
        self._content_next = stream.content_next
        self._content_offset = stream.content_offset
        self._content_octets = stream.content_values
        self._content_values = stream.content_values
        self._escaped_octets = _ESCAPED
        self._escaped = self._escaped_octets
        self._out = array("B", bytes(1024))
        self._label_max = max(map(len, labels), default=0)
        self._tag_open = False
        self._open = 0
        self._looked_at = 0

    def inside(self, element: cython.int, first: cython.int, last: cython.int) -> bytes:
        """What stands between the tags of an element; its content is that from first to last."""
        current: cython.int
        used: cython.Py_ssize_t = 0
        self._open = element
        self._tag_open = False
        self._reserve(element, first, last)
        out: cython.uchar[::1] = self._out
        for current in range(element + 1, self._element_end[element]):
            while first < last and self._content_next[first] <= current:
                used = self._put_content(out, used, first)
                first += 1
            used = self._close_down_to(out, used, self._element_parent[current])
            if self._tag_open:
                used = self._put(out, used, b">", 0, 1)
            used = self._put_label(out, used, 60, self._element_name[current])  # <
            used = self._put_attributes(out, used, current)
            self._tag_open = True
            self._open = current
        while first < last:
            used = self._put_content(out, used, first)
            first += 1
        used = self._close_down_to(out, used, element)
        return bytes(out[:used])

    def element(self, element: cython.int, declarations: bytes) -> bytes:
        """An element as a whole, in which nothing is declared but what stands in its start tag."""
        label: bytes = self._label(self._element_name[element])
        first: cython.int = self._after(element + 1, 0)
        last: cython.int = self._end_of_content(element, first)
        inside: bytes
        start = b"<" + label + declarations + self.attributes(element)
        inside = self.inside(element, first, last)
        if not inside:
            return start + b"/>"
        return start + b">" + inside + b"</" + label + b">"

    def string(self, element: cython.int) -> str:
        """All text in the subtree, end to end."""
        first: cython.int = self._after(element + 1, 0)
        last: cython.int = self._end_of_content(element, first)
        piece: cython.int
        found = []
        for piece in range(first, last):
            if self._content_kind[piece] == 0:
                found.append(
                    self._content_octets[
                        self._content_offset[piece] : self._content_offset[piece + 1]
                    ]
                )
        return b"".join(found).decode()

    def children(self, element: cython.int, name: cython.int) -> list[int]:
        """The child elements of a name; of any for -1."""
        child: cython.int = element + 1
        found = []
        self._looked_at += 1
        while child < self._element_end[element]:
            self._looked_at += 1
            if name < 0 or self._element_name[child] == name:
                found.append(child)
            child = self._element_end[child]
        return found

    def looked_at(self) -> int:
        """How many elements ``children`` has looked at since this was asked last."""
        count = self._looked_at
        self._looked_at = 0
        return count

    def attribute(self, element: cython.int, name: cython.int) -> cython.int:
        """The attribute of a name, -1 if the element has none."""
        attribute: cython.int
        for attribute in range(self._attribute_start[element], self._attribute_start[element + 1]):
            if self._attribute_name[attribute] == name:
                return attribute
        return -1

    def attributes(self, element: cython.int) -> bytes:
        """The attributes of an element as in its start tag, each with a space before it."""
        self._reserve(element, 0, 0)
        return bytes(self._out[: self._put_attributes(self._out, 0, element)])

    def _label(self, name: cython.int) -> bytes:
        first: cython.int = self._label_start[name]
        last: cython.int = self._label_start[name + 1]
        return self._labels_octets[first:last]

    def _after(self, following: cython.int, first: cython.int) -> cython.int:
        """The first content, from one on, that comes before an element or a later one."""
        last: cython.int = len(self._content_next)
        middle: cython.int
        while first < last:
            middle = (first + last) >> 1
            if self._content_next[middle] < following:
                first = middle + 1
            else:
                last = middle
        return first

    def _end_of_content(self, element: cython.int, first: cython.int) -> cython.int:
        """One past the last content of a subtree whose first is known."""
        end: cython.int = self._element_end[element]
        last: cython.int = self._after(end, first)
        while (
            last < len(self._content_next)
            and self._content_next[last] == end
            and element <= self._content_parent[last] < end
        ):
            last += 1
        return last

    def _put_attributes(
        self, out: cython.uchar[::1], used: cython.Py_ssize_t, element: cython.int
    ) -> cython.Py_ssize_t:
        attribute: cython.int
        first: cython.int
        last: cython.int
        for attribute in range(self._attribute_start[element], self._attribute_start[element + 1]):
            used = self._put_label(out, used, 32, self._attribute_name[attribute])
            used = self._put(out, used, b'="', 0, 2)
            first = self._attribute_offset[attribute]
            last = self._attribute_offset[attribute + 1]
            used = self._put_escaped(out, used, self._attribute_values, first, last, _IN_VALUES)
            used = self._put(out, used, b'"', 0, 1)
        return used

    def _put_content(
        self, out: cython.uchar[::1], used: cython.Py_ssize_t, content: cython.int
    ) -> cython.Py_ssize_t:
        kind: cython.int = self._content_kind[content]
        first: cython.int = self._content_offset[content]
        last: cython.int = self._content_offset[content + 1]
        used = self._close_down_to(out, used, self._content_parent[content])
        if self._tag_open:
            used = self._put(out, used, b">", 0, 1)
            self._tag_open = False
        if kind == 0:
            return self._put_escaped(out, used, self._content_values, first, last, _IN_TEXT)
        if kind == 1:
            used = self._put(out, used, b"<!--", 0, 4)
            used = self._put(out, used, self._content_values, first, last)
            return self._put(out, used, b"-->", 0, 3)
        used = self._put(out, used, b"<?", 0, 2)
        used = self._put(out, used, self._content_values, first, last)
        return self._put(out, used, b"?>", 0, 2)

    def _close_down_to(
        self, out: cython.uchar[::1], used: cython.Py_ssize_t, parent: cython.int
    ) -> cython.Py_ssize_t:
        while self._open != parent:
            if self._tag_open:
                used = self._put(out, used, b"/>", 0, 2)
                self._tag_open = False
            else:
                used = self._put(out, used, b"<", 0, 1)
                used = self._put_label(out, used, 47, self._element_name[self._open])  # /
                used = self._put(out, used, b">", 0, 1)
            self._open = self._element_parent[self._open]
        return used

    def _put_label(
        self,
        out: cython.uchar[::1],
        used: cython.Py_ssize_t,
        before: cython.int,
        name: cython.int,
    ) -> cython.Py_ssize_t:
        out[used] = before
        first: cython.int = self._label_start[name]
        return self._put(out, used + 1, self._labels, first, self._label_start[name + 1])

    def _put_escaped(
        self,
        out: cython.uchar[::1],
        used: cython.Py_ssize_t,
        octets: cython.p_const_uchar,
        first: cython.int,
        last: cython.int,
        where: cython.int,
    ) -> cython.Py_ssize_t:
        """``where``: _IN_VALUES or _IN_TEXT."""
        place: cython.int
        octet: cython.int
        for place in range(first, last):
            octet = octets[place]
            if octet > 62 or not self._escaped[octet] & where:
                out[used] = octet
                used += 1
            else:
                used = self._put_reference(out, used, octet)
        return used

    def _put_reference(
        self, out: cython.uchar[::1], used: cython.Py_ssize_t, octet: cython.int
    ) -> cython.Py_ssize_t:
        if octet == 38:
            return self._put(out, used, b"&amp;", 0, 5)
        if octet == 60:
            return self._put(out, used, b"&lt;", 0, 4)
        if octet == 62:
            return self._put(out, used, b"&gt;", 0, 4)
        if octet == 34:
            return self._put(out, used, b"&quot;", 0, 6)
        if octet == 9:
            return self._put(out, used, b"&#9;", 0, 4)
        if octet == 10:
            return self._put(out, used, b"&#10;", 0, 5)
        return self._put(out, used, b"&#13;", 0, 5)

    def _put(
        self,
        out: cython.uchar[::1],
        used: cython.Py_ssize_t,
        octets: cython.p_const_uchar,
        first: cython.int,
        last: cython.int,
    ) -> cython.Py_ssize_t:
        """As they are."""
        place: cython.int
        for place in range(first, last):
            out[used] = octets[place]
            used += 1
        return used

    def _reserve(self, element: cython.int, first: cython.int, last: cython.int) -> None:
        """Room for whatever an element and its content can become."""
        # PERF: asked for once, so that nothing is asked for an octet.
        end: cython.int = self._element_end[element]
        elements: cython.Py_ssize_t = end - element
        start: cython.int = self._attribute_start[element]
        stop: cython.int = self._attribute_start[end]
        pieces: cython.Py_ssize_t = last - first
        needed: cython.Py_ssize_t = 2 * elements * (self._label_max + 3) + 7 * pieces
        needed += (stop - start) * (self._label_max + 4)
        needed += 6 * (self._attribute_offset[stop] - self._attribute_offset[start])
        needed += 5 * (self._content_offset[last] - self._content_offset[first])
        if needed > len(self._out) or len(self._out) > _ROOM_KEPT_MAX:
            self._out = array("B", bytes(needed + 64))


def _ends(labels: list[bytes]) -> list[int]:
    total = 0
    ends = []
    for label in labels:
        total += len(label)
        ends.append(total)
    return ends
