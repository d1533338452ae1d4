"""ColumnWriter: the columns of an ElementStream, filled row by row by the scanner.

What ElementStreamBuilder does with Python values, this does with bytes of the message and scratch
rows that live across messages; ``finish`` cuts the columns of one message out of them.

Text is copied piece by piece (``copy_content``, ``put_content``); what has come since the last
piece of content becomes one with ``close_content``.
"""

from __future__ import annotations

from array import array
from typing import Any, TypeAlias

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from formats.element_stream import NO_PIECES, ElementStream
from formats.names import QualifiedName

if cython.compiled:
    from cython.cimports.cpython.array import clone
    from cython.cimports.formats.words import bytes_below, marks_in, put_word, word_at
    from cython.cimports.libc.string import memcpy
else:
    from formats.words import bytes_below, marks_in, put_word, word_at

_Declaration: TypeAlias = tuple[str, str]  # prefix, namespace

# Typecodes, in the order of the columns of elements, attributes and content.
_ELEMENT_CODES, _ATTRIBUTE_CODES, _CONTENT_CODES = "iiiii", "ii", "Biii"
_NO_ROWS = array("i")
_ROWS_KEPT_MAX = 1 << 16  # scratch that is kept for the next message
_BYTES_KEPT_MAX = 1 << 20


class ColumnWriter:
    """The rows of one message after the other; what the caller reads, it must not change.

    ``parent`` is the innermost open element (-1 for none), ``depth`` the number of open ones.  The
    columns are as in ElementStream, with room behind.
    """

    def __init__(self) -> None:
        self._bytes = 0
        self._empty_rows()

    def begin(self, size: cython.Py_ssize_t) -> None:
        """A new message whose values have at most ``size`` bytes."""
        if self._bytes < size or self._bytes > _BYTES_KEPT_MAX:
            self._grow_bytes(max(size, 16 * 1024))
        if self._element_rows + self._attribute_rows + self._content_rows > _ROWS_KEPT_MAX:
            self._empty_rows()
        self.elements = 0
        self.attributes = 0
        self.contents = 0
        self.declarations = 0
        self.depth = 0
        self.parent = -1
        self.attribute_bytes = 0
        self._content_bytes = 0
        self._declaration_element = _NO_ROWS  # shared by all messages without declarations
        self._declarations: list[tuple[str, str]] = []

    def open_element(self) -> None:
        """An element, child of the innermost open one; its name comes with ``name_element``."""
        element: cython.int = self.elements
        if element + 2 >= self._element_rows:
            self._grow_elements(2 * self._element_rows)
        self.element_parent[element] = self.parent
        self.element_depth[element] = self.depth
        self.parent = element
        self.depth += 1
        self.elements = element + 1

    def name_element(self, name: cython.int) -> None:
        """The name of the element opened last, all of whose attributes are there."""
        self.element_name[self.elements - 1] = name
        self.attribute_start[self.elements] = self.attributes

    def close_element(self) -> None:
        element: cython.int = self.parent
        self.element_end[element] = self.elements
        self.parent = self.element_parent[element]
        self.depth -= 1

    def declare(self, declaration: _Declaration) -> None:
        """A namespace declaration of the element opened last."""
        self.declare_on(self.elements - 1, declaration)

    def declare_on(self, element: cython.int, declaration: _Declaration) -> None:
        """The same, of an element whose row the caller sets."""
        if self._declaration_element is _NO_ROWS:
            self._declaration_element = array("i")
        self._declaration_element.append(element)
        self._declarations.append(declaration)
        self.declarations += 1

    def close_attribute(self) -> None:
        """What was copied since the last attribute is the value of the next one."""
        if self.attributes + 2 >= self._attribute_rows:
            self._grow_attributes(2 * self._attribute_rows)
        self.attributes += 1
        self.attribute_offset[self.attributes] = self.attribute_bytes

    def take_value(self) -> bytes:
        """What was copied since the last attribute, which is no attribute's value after all."""
        start = self.attribute_offset[self.attributes]
        value = bytes(self._attribute_buffer[start : self.attribute_bytes])
        self.attribute_bytes = start
        return value

    def copy_value(
        self, data: cython.p_const_uchar, start: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> None:
        """Bytes of an attribute's value."""
        _copy(data, start, end, self._attribute_values, self.attribute_bytes)
        self.attribute_bytes += end - start

    def copy_plain_value(
        self,
        data: cython.p_const_uchar,
        start: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        quote: cython.uchar,
    ) -> cython.Py_ssize_t:
        """Bytes of an attribute's value, with a word or more before ``end``; where that stops.

        It is there or before a quote, ``<``, ``&`` or a control character.
        """
        stop: cython.Py_ssize_t = _copy_plain(
            data, start, end, quote, self._attribute_values, self.attribute_bytes
        )
        self.attribute_bytes += stop - start
        return stop

    def put_value(self, code: cython.int) -> None:
        """A character of an attribute's value."""
        if code < 0x80:
            self._attribute_values[self.attribute_bytes] = code
            self.attribute_bytes += 1
        else:
            self._put(self._attribute_values, self.attribute_bytes, code)
            self.attribute_bytes += _width(code)

    def copy_content(
        self, data: cython.p_const_uchar, start: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> None:
        """Bytes of text, a comment or an instruction."""
        _copy(data, start, end, self._content_values, self._content_bytes)
        self._content_bytes += end - start

    def copy_plain_text(
        self, data: cython.p_const_uchar, start: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """As ``copy_plain_value``, bytes of text, up to a ``]`` instead of a quote."""
        stop: cython.Py_ssize_t = _copy_plain(
            data, start, end, 93, self._content_values, self._content_bytes
        )
        self._content_bytes += stop - start
        return stop

    def put_content(self, code: cython.int) -> None:
        """A character of text, a comment or an instruction."""
        if code < 0x80:
            self._content_values[self._content_bytes] = code
            self._content_bytes += 1
        else:
            self._put(self._content_values, self._content_bytes, code)
            self._content_bytes += _width(code)

    def close_text(self) -> None:
        """What was copied since the last piece of content is a text node, if there is any."""
        if self._content_bytes > self.content_offset[self.contents]:
            self.close_content(0)  # ContentKind.TEXT

    def close_content(self, kind: cython.int) -> None:
        """What was copied since the last piece of content is one of a ContentKind."""
        content: cython.int = self.contents
        if content + 2 >= self._content_rows:
            self._grow_content(2 * self._content_rows)
        self.content_kind[content] = kind
        self.content_parent[content] = self.parent
        self.content_next[content] = self.elements
        self.contents = content + 1
        self.content_offset[content + 1] = self._content_bytes

    def reserve(
        self,
        elements: cython.Py_ssize_t,
        attributes: cython.Py_ssize_t,
        contents: cython.Py_ssize_t,
    ) -> None:
        """Makes room, for a caller that sets so many rows of the columns itself."""
        if elements + 2 > self._element_rows:
            self._grow_elements(elements + 2)
        if attributes + 2 > self._attribute_rows:
            self._grow_attributes(attributes + 2)
        if contents + 2 > self._content_rows:
            self._grow_content(contents + 2)

    def finish(self, names: list[QualifiedName]) -> ElementStream:
        """The message, of what was copied."""
        return self.finish_with(
            names,
            bytes(self._attribute_buffer[: self.attribute_bytes]),
            bytes(self._content_buffer[: self._content_bytes]),
        )

    def finish_with(
        self, names: list[QualifiedName], attribute_values: bytes, content_values: bytes
    ) -> ElementStream:
        """The message, with values from elsewhere."""
        of_elements, of_attributes = self._element_columns, self._attribute_columns
        of_content = self._content_columns
        stream: ElementStream = ElementStream.__new__(ElementStream)  # PERF: no empty columns first
        stream.pieces = NO_PIECES
        stream.names = names
        stream.element_name = _cut(of_elements[0], self.elements)
        stream.element_parent = _cut(of_elements[1], self.elements)
        stream.element_depth = _cut(of_elements[2], self.elements)
        stream.element_end = _cut(of_elements[3], self.elements)
        stream.attribute_start = _cut(of_elements[4], self.elements + 1)
        stream.attribute_name = _cut(of_attributes[0], self.attributes)
        stream.attribute_offset = _cut(of_attributes[1], self.attributes + 1)
        stream.attribute_values = attribute_values
        stream.declaration_element = self._declaration_element
        stream.declarations = self._declarations
        stream.content_kind = _cut(of_content[0], self.contents)
        stream.content_parent = _cut(of_content[1], self.contents)
        stream.content_next = _cut(of_content[2], self.contents)
        stream.content_offset = _cut(of_content[3], self.contents + 1)
        stream.content_values = content_values
        return stream

    def _put(self, values: cython.p_uchar, place: cython.Py_ssize_t, code: cython.int) -> None:
        i: cython.Py_ssize_t
        encoded: bytes = chr(code).encode()
        for i in range(len(encoded)):
            values[place + i] = encoded[i]

    def _empty_rows(self) -> None:
        self._element_columns = [array(code) for code in _ELEMENT_CODES]
        self._attribute_columns = [array(code) for code in _ATTRIBUTE_CODES]
        self._content_columns = [array(code) for code in _CONTENT_CODES]
        self._grow_elements(1024)
        self._grow_attributes(1024)
        self._grow_content(1024)

    def _grow_elements(self, rows: cython.Py_ssize_t) -> None:
        self._element_rows = rows
        self._element_columns = [_longer(column, rows) for column in self._element_columns]
        (
            self.element_name,
            self.element_parent,
            self.element_depth,
            self.element_end,
            self.attribute_start,
        ) = self._element_columns

    def _grow_attributes(self, rows: cython.Py_ssize_t) -> None:
        self._attribute_rows = rows
        self._attribute_columns = [_longer(column, rows) for column in self._attribute_columns]
        self.attribute_name, self.attribute_offset = self._attribute_columns

    def _grow_content(self, rows: cython.Py_ssize_t) -> None:
        self._content_rows = rows
        self._content_columns = [_longer(column, rows) for column in self._content_columns]
        (
            self.content_kind,
            self.content_parent,
            self.content_next,
            self.content_offset,
        ) = self._content_columns

    def _grow_bytes(self, size: cython.Py_ssize_t) -> None:
        self._bytes = size
        self._attribute_buffer = bytearray(size + 8)  # values are copied by words
        self._content_buffer = bytearray(size + 8)
        self._attribute_values = self._attribute_buffer
        self._content_values = self._content_buffer


def _cut(rows: Any, count: cython.Py_ssize_t) -> Any:
    """The first rows of a column, as an array of their own."""
    if not cython.compiled:
        return rows[:count]
    # PERF: a slice takes three times as long, for the object that says which, and a decoding of a
    # small message makes twelve (python -m benchmarks formats: decode_over_own_parser).
    column = clone(rows, count, False)
    memcpy(column.data.as_chars, rows.data.as_chars, count * rows.ob_descr.itemsize)
    return column


def _copy(
    data: cython.p_const_uchar,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    values: cython.p_uchar,
    place: cython.Py_ssize_t,
) -> None:
    i: cython.Py_ssize_t
    for i in range(end - start):
        values[place + i] = data[start + i]


def _copy_plain(
    data: cython.p_const_uchar,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    mark: cython.uchar,
    values: cython.p_uchar,
    place: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    # PERF: what is copied too much is overwritten by what comes next.
    at: cython.Py_ssize_t = start
    word: cython.ulonglong
    marks: cython.ulonglong
    while at + 8 <= end:
        word = word_at(data, at)
        put_word(values, place + at - start, word)
        marks = marks_in(word, mark)
        if marks:
            return at + bytes_below(marks)
        at += 8
    return at


def _width(code: cython.int) -> cython.int:
    """The bytes of a character from 0x80 in UTF-8."""
    return 2 if code < 0x800 else 3 if code < 0x10000 else 4


def _longer(column: array[int], rows: int) -> array[int]:
    longer = array(column.typecode, bytes(rows * column.itemsize))
    longer[: len(column)] = column
    return longer
