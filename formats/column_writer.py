"""ColumnWriter: the columns of an ElementStream, filled row by row by the scanner.

What ElementStreamBuilder does with Python values, this does with bytes of the message and scratch
rows that live across messages; ``finish`` cuts the columns of one message out of them.

Text is copied piece by piece (``copy_content``, ``put_content``); what has come since the last
piece of content becomes one with ``close_content``.
"""

from __future__ import annotations

from array import array
from typing import TypeAlias

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from formats.element_stream import ElementStream
from formats.names import QualifiedName

_Declaration: TypeAlias = tuple[str, str]  # prefix, namespace

_COLUMN_CODES = "iiiiiiiBiii"  # typecodes, in the order of ColumnWriter._grow_rows
_ROWS_KEPT_MAX = 1 << 16  # scratch that is kept for the next message
_BYTES_KEPT_MAX = 1 << 20


class ColumnWriter:
    """The rows of one message after the other; what the caller reads, it must not change.

    ``parent`` is the innermost open element (-1 for none), ``depth`` the number of open ones.
    """

    def __init__(self) -> None:
        self._bytes = 0
        self._empty_rows()

    def begin(self, size: cython.Py_ssize_t) -> None:
        """A new message whose values have at most ``size`` bytes."""
        if self._bytes < size or self._bytes > _BYTES_KEPT_MAX:
            self._grow_bytes(max(size, 16 * 1024))
        if self._rows > _ROWS_KEPT_MAX:
            self._empty_rows()
        self.elements = 0
        self.attributes = 0
        self.contents = 0
        self.depth = 0
        self.parent = -1
        self.attribute_bytes = 0
        self._content_bytes = 0
        self._declaration_element = array("i")
        self._declarations: list[tuple[str, str]] = []

    def open_element(self) -> None:
        """An element, child of the innermost open one; its name comes with ``name_element``."""
        element: cython.int = self.elements
        if element + 2 >= self._rows:
            self._grow_rows(2 * self._rows)
        self._element_parent[element] = self.parent
        self._element_depth[element] = self.depth
        self.parent = element
        self.depth += 1
        self.elements = element + 1

    def name_element(self, name: cython.int) -> None:
        """The name of the element opened last, all of whose attributes are there."""
        self._element_name[self.elements - 1] = name
        self._attribute_start[self.elements] = self.attributes

    def close_element(self) -> None:
        element: cython.int = self.parent
        self._element_end[element] = self.elements
        self.parent = self._element_parent[element]
        self.depth -= 1

    def declare(self, declaration: _Declaration) -> None:
        """A namespace declaration of the element opened last."""
        self._declaration_element.append(self.elements - 1)
        self._declarations.append(declaration)

    def declaration_count(self) -> cython.Py_ssize_t:
        return len(self._declarations)

    def close_attribute(self) -> None:
        """What was copied since the last attribute is the value of the next one."""
        if self.attributes + 2 >= self._rows:
            self._grow_rows(2 * self._rows)
        self.attributes += 1
        self._attribute_offset[self.attributes] = self.attribute_bytes

    def name_attribute(self, attribute: cython.int, name: cython.int) -> None:
        self._attribute_name[attribute] = name

    def take_value(self) -> bytes:
        """What was copied since the last attribute, which is no attribute's value after all."""
        start = self._attribute_offset[self.attributes]
        value = bytes(self._attribute_buffer[start : self.attribute_bytes])
        self.attribute_bytes = start
        return value

    def copy_value(
        self, data: cython.p_const_uchar, start: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> None:
        """Bytes of an attribute's value."""
        i: cython.Py_ssize_t
        place: cython.Py_ssize_t = self.attribute_bytes
        for i in range(end - start):
            self._attribute_values[place + i] = data[start + i]
        self.attribute_bytes = place + end - start

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
        i: cython.Py_ssize_t
        place: cython.Py_ssize_t = self._content_bytes
        for i in range(end - start):
            self._content_values[place + i] = data[start + i]
        self._content_bytes = place + end - start

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
        if self._content_bytes > self._content_offset[self.contents]:
            self.close_content(0)  # ContentKind.TEXT

    def close_content(self, kind: cython.int) -> None:
        """What was copied since the last piece of content is one of a ContentKind."""
        content: cython.int = self.contents
        if content + 2 >= self._rows:
            self._grow_rows(2 * self._rows)
        self._content_kind[content] = kind
        self._content_parent[content] = self.parent
        self._content_next[content] = self.elements
        self.contents = content + 1
        self._content_offset[content + 1] = self._content_bytes

    def finish(self, names: list[QualifiedName]) -> ElementStream:
        """The message."""
        elements, attributes, contents = self.elements, self.attributes, self.contents
        columns = self._columns
        stream = ElementStream.__new__(ElementStream)  # PERF: without 16 empty columns first
        stream.names = names
        stream.element_name = columns[0][:elements]
        stream.element_parent = columns[1][:elements]
        stream.element_depth = columns[2][:elements]
        stream.element_end = columns[3][:elements]
        stream.attribute_start = columns[4][: elements + 1]
        stream.attribute_name = columns[5][:attributes]
        stream.attribute_offset = columns[6][: attributes + 1]
        stream.attribute_values = bytes(self._attribute_buffer[: self.attribute_bytes])
        stream.declaration_element = self._declaration_element
        stream.declarations = self._declarations
        stream.content_kind = columns[7][:contents]
        stream.content_parent = columns[8][:contents]
        stream.content_next = columns[9][:contents]
        stream.content_offset = columns[10][: contents + 1]
        stream.content_values = bytes(self._content_buffer[: self._content_bytes])
        return stream

    def _put(self, values: cython.uchar[::1], place: cython.Py_ssize_t, code: cython.int) -> None:
        i: cython.Py_ssize_t
        encoded: bytes = chr(code).encode()
        for i in range(len(encoded)):
            values[place + i] = encoded[i]

    def _empty_rows(self) -> None:
        self._columns = [array(code) for code in _COLUMN_CODES]
        self._grow_rows(1024)

    def _grow_rows(self, rows: cython.Py_ssize_t) -> None:
        self._rows = rows
        self._columns = [_longer(column, rows) for column in self._columns]
        (
            self._element_name,
            self._element_parent,
            self._element_depth,
            self._element_end,
            self._attribute_start,
            self._attribute_name,
            self._attribute_offset,
            self._content_kind,
            self._content_parent,
            self._content_next,
            self._content_offset,
        ) = self._columns

    def _grow_bytes(self, size: cython.Py_ssize_t) -> None:
        self._bytes = size
        self._attribute_buffer = bytearray(size)
        self._content_buffer = bytearray(size)
        self._attribute_values = self._attribute_buffer
        self._content_values = self._content_buffer


def _width(code: cython.int) -> cython.int:
    """The bytes of a character from 0x80 in UTF-8."""
    return 2 if code < 0x800 else 3 if code < 0x10000 else 4


def _longer(column: array[int], rows: int) -> array[int]:
    longer = array(column.typecode, bytes(rows * column.itemsize))
    longer[: len(column)] = column
    return longer
