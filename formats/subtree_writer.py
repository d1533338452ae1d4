# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""SubtreeWriter: elements of a message as XML, in one pass over the columns.

All that is written of one message goes into one growing run of bytes: whole documents, what
``xml_writer`` copies, and results, which are pieces of it (yfilter/language/result_writer.py).
Within a subtree every declaration means what it meant in the message, and one that repeats what is
in force is left out; which declarations an element itself needs in a new place the caller says.

::

    <a x="1">t<b/>u</a>       inside of a:  t<b/>u

What a name can be in a tag lies ready, one after the other: ``<a``, ``</a>``, `` a="``.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from array import array
from bisect import bisect_left

from formats.element_stream import ElementStream
from formats.escapes import escaped_value

if not cython.compiled:
    from formats.words import bytes_below, copy_run, marks_in, marks_in_text, put_word, word_at

_SLACK = 8  # bytes behind the end: a word is written where only its first bytes count
_ROOM = 8192  # to begin with
_IN_VALUES, _IN_TEXT = 1, 2  # where an octet is escaped
_ESCAPED = bytes(
    _IN_VALUES * (octet in b'&<"\t\n\r') + _IN_TEXT * (octet in b"&<>\r") for octet in range(63)
)


class SubtreeWriter:
    """Writes of one message; ``stream`` is that message, ``used`` how much is written."""

    def __init__(self, stream: ElementStream) -> None:
        self.stream = stream
        label: bytes
        labels: list[bytes] = []
        ends = [0]
        end: cython.int = 0
        for name in stream.names:
            label = f"{name[0]}:{name[2]}".encode() if name[0] else name[2].encode()
            labels += (b"<", label, b"</", label, b"> ", label, b'="')
            end += 3 * len(label) + 7
            ends.append(end)
        self._tag_start = array("i", ends)
        self._tags_octets = b"".join(labels) + bytes(_SLACK)
        self._tags = self._tags_octets
        self.element_name = stream.element_name
        self._element_parent = stream.element_parent
        self.element_end = stream.element_end
        self.attribute_start = stream.attribute_start
        self.attribute_name = stream.attribute_name
        self._attribute_offset = stream.attribute_offset
        self._attribute_octets = stream.attribute_values
        self._attribute_values = stream.attribute_values
        self.content_kind = stream.content_kind
        self.content_parent = stream.content_parent
        self._content_next = stream.content_next
        self._content_offset = stream.content_offset
        self._content_octets = stream.content_values
        self._content_values = stream.content_values
        self._escaped_octets = _ESCAPED
        self._escaped = self._escaped_octets
        self._buffer = bytearray(_ROOM + _SLACK)
        self._data = self._buffer
        self._room = _ROOM
        self.used = 0
        self._declared = _written_declarations(stream) if stream.declarations else []
        declared = stream.declaration_element
        self._declaring = -1 if not declared or declared[len(declared) - 1] == 0 else len(declared)
        self._next_declared = len(declared)
        self._tag_open = False
        self._open = 0

    def document(self) -> bytes:
        """The message without XML declaration; comments and processing instructions outside the
        root element stand on lines of their own."""
        start: cython.Py_ssize_t = self.used
        content: cython.int
        count: cython.int = len(self._content_next)
        before: cython.int = 0
        self._reserve(len(self._content_octets) + len(self._attribute_octets) + 16 * count + 256)
        while before < count and self._content_next[before] == 0:
            self.put_piece(before)
            self.put(b"\n")
            before += 1
        self.put_element(0, b"".join(self._declared_on_root()))
        content = self.end_of_content(0, before)
        while content < count:
            self.put(b"\n")
            self.put_piece(content)
            content += 1
        return self.taken(start)

    def inside(self, element: cython.int, first: cython.int, last: cython.int) -> bytes:
        """What stands between the tags of an element; its content is that from first to last."""
        start: cython.Py_ssize_t = self.used
        self._put_inside(element, first, last)
        return self.taken(start)

    def attributes(self, element: cython.int) -> bytes:
        """The attributes of an element as in its start tag, each with a space before it."""
        start: cython.Py_ssize_t = self.used
        self._put_attributes(element)
        return self.taken(start)

    def taken(self, start: cython.Py_ssize_t) -> bytes:
        """What was written from a place on, which is then no longer in use."""
        self.used, start = start, self.used
        return bytes(self._data[self.used : start])

    def part(self, first: cython.Py_ssize_t, last: cython.Py_ssize_t) -> bytes:
        """What was written between two places."""
        return bytes(self._data[first:last])

    def put(self, octets: bytes) -> cython.int:
        """Bytes as they are."""
        data: cython.p_const_uchar = octets
        return self._put_run(data, 0, len(octets))

    def put_again(self, first: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.int:
        """What was written before at a place."""
        self._reserve(size)
        copy_run(self._data, self.used, self._data, first, size)
        self.used += size
        return 0

    def put_element(self, element: cython.int, declared: bytes) -> cython.int:
        """An element as a whole; ``declared`` is what its start tag declares."""
        first: cython.int = self.first_content(element)
        before: cython.Py_ssize_t
        self._put_start(self.element_name[element])
        self.put(declared)
        self._put_attributes(element)
        before = self.used
        self._put_octet(62)  # >
        self._put_inside(element, first, self.end_of_content(element, first))
        if self.used > before + 1:
            return self._put_end(element)
        self.used = before
        return self._put_two(47, 62)  # />

    def put_attribute(self, attribute: cython.int) -> cython.int:
        """An attribute as in a start tag, with a space before it."""
        name: cython.int = self.attribute_name[attribute]
        first: cython.int = self._tag_start[name]
        last: cython.int = self._tag_start[name + 1]
        self._put_tag(first + 2 * ((last - first - 7) // 3) + 4, last)
        self.put_value(attribute, _IN_VALUES)
        return self._put_octet(34)

    def put_value(self, attribute: cython.int, where: cython.int) -> cython.int:
        """The value of an attribute."""
        first: cython.int = self._attribute_offset[attribute]
        last: cython.int = self._attribute_offset[attribute + 1]
        return self._put_escaped(self._attribute_values, first, last, where)

    def put_text(self, content: cython.int, where: cython.int) -> cython.int:
        """A text node."""
        first: cython.int = self._content_offset[content]
        last: cython.int = self._content_offset[content + 1]
        return self._put_escaped(self._content_values, first, last, where)

    def put_piece(self, content: cython.int) -> cython.int:
        """A text node, comment or processing instruction."""
        kind: cython.int = self.content_kind[content]
        first: cython.int = self._content_offset[content]
        last: cython.int = self._content_offset[content + 1]
        if kind == 0:
            return self._put_escaped(self._content_values, first, last, _IN_TEXT)
        self.put(b"<!--" if kind == 1 else b"<?")
        self._put_run(self._content_values, first, last)
        return self.put(b"-->" if kind == 1 else b"?>")

    def put_string(self, element: cython.int, where: cython.int) -> cython.int:
        """All text in the subtree, end to end."""
        first: cython.int = self.first_content(element)
        content: cython.int
        for content in range(first, self.end_of_content(element, first)):
            if self.content_kind[content] == 0:
                self.put_text(content, where)
        return 0

    def put_escaped(self, octets: bytes, where: cython.int) -> cython.int:
        """Any string."""
        data: cython.p_const_uchar = octets
        return self._put_escaped(data, 0, len(octets), where)

    def put_name(self, name: cython.int, with_prefix: cython.bint) -> cython.int:
        first: cython.int = self._tag_start[name] + 1
        last: cython.int = first + (self._tag_start[name + 1] - first - 6) // 3
        place: cython.int
        if not with_prefix:
            for place in range(first, last):
                if self._tags[place] == 58:  # :
                    first = place + 1
                    break
        return self._put_run(self._tags, first, last)

    def first_content(self, element: cython.int) -> cython.int:
        """The first content of a subtree, if there is any."""
        return self._after(element + 1, 0)

    def end_of_content(self, element: cython.int, first: cython.int) -> cython.int:
        """One past the last content of a subtree whose first is known."""
        end: cython.int = self.element_end[element]
        last: cython.int = self._after(end, first)
        while (
            last < len(self._content_next)
            and self._content_next[last] == end
            and element <= self.content_parent[last] < end
        ):
            last += 1
        return last

    def is_plain(self, element: cython.int) -> cython.bint:
        """Whether nothing is declared below an element."""
        if self._declaring < 0:
            return True
        declared = self.stream.declaration_element
        end: cython.int = self.element_end[element]
        return bool(bisect_left(declared, element + 1) == bisect_left(declared, end))

    def _declared_on_root(self) -> list[bytes]:
        count = bisect_left(self.stream.declaration_element, 1)
        return self._declared[:count]

    def _put_inside(self, element: cython.int, first: cython.int, last: cython.int) -> cython.int:
        current: cython.int
        self._tag_open = False
        self._open = element
        if self._declaring >= 0:
            self._next_declared = bisect_left(self.stream.declaration_element, element + 1)
        for current in range(element + 1, self.element_end[element]):
            while first < last and self._content_next[first] <= current:
                self._put_content(first)
                first += 1
            self._close_down_to(self._element_parent[current])
            if self._tag_open:
                self._put_octet(62)  # >
            self._put_start(self.element_name[current])
            if self._next_declared < self._declaring:
                self._put_declarations(current)
            self._put_attributes(current)
            self._tag_open = True
            self._open = current
        while first < last:
            self._put_content(first)
            first += 1
        return self._close_down_to(element)

    def _put_declarations(self, element: cython.int) -> cython.int:
        declared = self.stream.declaration_element
        while self._next_declared < self._declaring and declared[self._next_declared] == element:
            self.put(self._declared[self._next_declared])
            self._next_declared += 1
        return 0

    def _put_attributes(self, element: cython.int) -> cython.int:
        attribute: cython.int
        for attribute in range(self.attribute_start[element], self.attribute_start[element + 1]):
            self.put_attribute(attribute)
        return 0

    def _put_content(self, content: cython.int) -> cython.int:
        self._close_down_to(self.content_parent[content])
        if self._tag_open:
            self._put_octet(62)  # >
            self._tag_open = False
        return self.put_piece(content)

    def _close_down_to(self, parent: cython.int) -> cython.int:
        while self._open != parent:
            if self._tag_open:
                self._put_two(47, 62)  # />
                self._tag_open = False
            else:
                self._put_end(self._open)
            self._open = self._element_parent[self._open]
        return 0

    def _put_start(self, name: cython.int) -> cython.int:
        """``<name``"""
        first: cython.int = self._tag_start[name]
        return self._put_tag(first, first + (self._tag_start[name + 1] - first - 7) // 3 + 1)

    def _put_end(self, element: cython.int) -> cython.int:
        """``</name>``"""
        name: cython.int = self.element_name[element]
        first: cython.int = self._tag_start[name]
        size: cython.int = (self._tag_start[name + 1] - first - 7) // 3
        return self._put_tag(first + size + 1, first + 2 * size + 4)

    def _put_tag(self, first: cython.Py_ssize_t, last: cython.Py_ssize_t) -> cython.int:
        """A piece of a tag, which is short."""
        # PERF: a word at a time, for a call to copy costs more (benchmarks results).
        used: cython.Py_ssize_t = self.used
        self._reserve(last - first)
        self.used += last - first
        while first < last:
            put_word(self._data, used, word_at(self._tags, first))
            used += 8
            first += 8
        return 0

    def _put_escaped(
        self,
        octets: cython.p_const_uchar,
        first: cython.Py_ssize_t,
        last: cython.Py_ssize_t,
        where: cython.int,
    ) -> cython.int:
        """``where``: _IN_VALUES or _IN_TEXT."""
        # PERF: eight bytes at a time, for few of them are escaped (benchmarks results).
        word: cython.ulonglong
        marks: cython.ulonglong
        octet: cython.int
        self._reserve(6 * (last - first))
        while first < last:
            if last - first >= 8:
                word = word_at(octets, first)
                put_word(self._data, self.used, word)
                marks = marks_in(word, 34) if where == _IN_VALUES else marks_in_text(word)
                if marks == 0:
                    self.used += 8
                    first += 8
                    continue
                self.used += bytes_below(marks)
                first += bytes_below(marks)
            octet = octets[first]
            first += 1
            if octet > 62 or not self._escaped[octet] & where:
                self._data[self.used] = octet
                self.used += 1
            else:
                self._put_reference(octet)
        return 0

    def _put_reference(self, octet: cython.int) -> cython.int:
        if octet == 38:
            return self.put(b"&amp;")
        if octet == 60:
            return self.put(b"&lt;")
        if octet == 62:
            return self.put(b"&gt;")
        if octet == 34:
            return self.put(b"&quot;")
        if octet == 9:
            return self.put(b"&#9;")
        return self.put(b"&#10;" if octet == 10 else b"&#13;")

    def _put_run(
        self, octets: cython.p_const_uchar, first: cython.Py_ssize_t, last: cython.Py_ssize_t
    ) -> cython.int:
        """As they are."""
        self._reserve(last - first)
        copy_run(self._data, self.used, octets, first, last - first)
        self.used += last - first
        return 0

    def _put_octet(self, octet: cython.int) -> cython.int:
        if self.used >= self._room:
            self._grow(1)
        self._data[self.used] = octet
        self.used += 1
        return 0

    def _put_two(self, octet: cython.int, other: cython.int) -> cython.int:
        self._put_octet(octet)
        return self._put_octet(other)

    def _reserve(self, size: cython.Py_ssize_t) -> cython.int:
        if self.used + size > self._room:
            self._grow(size)
        return 0

    def _grow(self, size: cython.Py_ssize_t) -> cython.int:
        self._room = self.used + size + self._room
        self._buffer += bytes(self._room + _SLACK - len(self._buffer))
        self._data = self._buffer
        return 0

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


def subtree_writer(stream: ElementStream) -> SubtreeWriter:
    """That of the message written from last is kept: much is made of one."""
    if not _LAST or _LAST[0].stream is not stream:
        _LAST[:] = [SubtreeWriter(stream)]
    return _LAST[0]


_LAST: list[SubtreeWriter] = []


def declaration(prefix: str, namespace: str) -> bytes:
    """A declaration as in a start tag, with a space before it."""
    return f' {f"xmlns:{prefix}" if prefix else "xmlns"}="{escaped_value(namespace)}"'.encode()


def _written_declarations(stream: ElementStream) -> list[bytes]:
    """Each declaration as it is written in its place, nothing for one that repeats another."""
    outside: dict[int, dict[str, str]] = {}
    written = []
    for element, (prefix, namespace) in zip(
        stream.declaration_element, stream.declarations, strict=True
    ):
        scope = outside.get(element)
        if scope is None:
            parent = stream.element_parent[element]
            scope = stream.namespaces_in_scope(parent) if parent >= 0 else {}
            outside = {element: scope}
        same = scope.get(prefix, "") == namespace
        written.append(b"" if same else declaration(prefix, namespace))
    return written
