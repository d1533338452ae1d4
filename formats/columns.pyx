"""The columns of a message: filled from text, cut, and written as text.

ColumnWriter fills the columns of an ElementStream, and Scanner fills them from ordinary XML by way
of NameTable and NamespaceScope.  StreamSelection cuts a message for several links at once.
SubtreeWriter writes elements as XML.
"""

import pyexpat
import string
from array import array
from bisect import bisect_left
from functools import lru_cache
from itertools import accumulate
from typing import TypeAlias

from formats.characters import UTF_8_DECLARATION, is_utf_8
from formats.element_stream import NO_PIECES, ElementStream
from formats.escapes import escaped_value
from formats.limits import MessageLimits
from formats.names import XML_NAMESPACE, QualifiedName

cimport cython
from cpython.array cimport array as Array, clone
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.string cimport memcpy

from formats.words cimport (
    bytes_below, copy_run, first_bytes, is_ascii, marks_in, marks_in_text, part_of_word, put_word,
    word_at,
)


# -------------------------------------------------------------------------------------------------
# The content within an element as a range of its numbers, for compiled code.
#
# What ``ElementStream.content_within`` says, of the columns themselves.


cdef int content_from(const int[::1] content_next, int element) noexcept:
    """The first content within an element."""
    cdef int first = 0
    cdef int last = len(content_next)
    cdef int middle
    while first < last:
        middle = (first + last) >> 1
        if content_next[middle] <= element:
            first = middle + 1
        else:
            last = middle
    return first


cdef int content_to(
    const int[::1] content_next, const int[::1] content_parent, int element, int end
) noexcept:
    """One past the last content within an element, behind which ``end`` is the next element."""
    cdef int last = content_from(content_next, end - 1)
    while (
        last < len(content_next)
        and content_next[last] == end
        and element <= content_parent[last] < end
    ):
        last += 1
    return last


# -------------------------------------------------------------------------------------------------
# Column cuts: a piece of a room as a column of its own, and pieces copied from room to room.

cdef inline Array ints_of(Array kind, int[::1] room, Py_ssize_t first, Py_ssize_t last):
    cdef Array made = clone(kind, last - first, False)
    if last > first:
        memcpy(made.data.as_ints, &room[first], 4 * (last - first))
    return made

cdef inline Array octets_of(Array kind, unsigned char[::1] room, Py_ssize_t first, Py_ssize_t last):
    cdef Array made = clone(kind, last - first, False)
    if last > first:
        memcpy(made.data.as_uchars, &room[first], last - first)
    return made

cdef inline bytes bytes_of(unsigned char[::1] room, Py_ssize_t first, Py_ssize_t last):
    if last == first:
        return b""
    return PyBytes_FromStringAndSize(<char *>&room[first], last - first)

cdef inline int copy_octets(
    unsigned char[::1] target, Py_ssize_t at, const unsigned char[::1] source, Py_ssize_t first,
    Py_ssize_t count
) noexcept:
    if count > 0:
        memcpy(&target[at], &source[first], count)
    return 0


# -------------------------------------------------------------------------------------------------
# ColumnWriter: the columns of an ElementStream, filled row by row by the scanner.
#
# What ElementStreamBuilder does with Python values, this does with bytes of the message and scratch
# rows that live across messages; ``finish`` cuts the columns of one message out of them.
#
# Text is copied piece by piece (``copy_content``, ``put_content``); ``close_content`` makes one
# piece of content of all bytes copied since the last one.


_Declaration: TypeAlias = tuple[str, str]  # prefix, namespace

# Typecodes, in the order of the columns of elements, attributes and content.
_ELEMENT_CODES, _ATTRIBUTE_CODES, _CONTENT_CODES = "iiiii", "ii", "Biii"
_NO_ROWS = array("i")
_ROWS_KEPT_MAX = 1 << 16  # scratch that is kept for the next message
_BYTES_KEPT_MAX = 1 << 20


cdef class ColumnWriter:
    """The rows of one message after the other; a caller may read them, and must not change them.

    ``parent`` is the innermost open element (-1 for none), ``depth`` the number of open ones.  The
    columns are as in ElementStream, with room behind.
    """

    def __init__(self) -> None:
        self._bytes = 0
        self._empty_rows()

    cdef begin(self, Py_ssize_t size):
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

    cdef int open_element(self) except -1:
        """An element, child of the innermost open one; its name comes with ``name_element``."""
        cdef int element = self.elements
        if element + 2 >= self._element_rows:
            self._grow_elements(2 * self._element_rows)
        self.element_parent[element] = self.parent
        self.element_depth[element] = self.depth
        self.parent = element
        self.depth += 1
        self.elements = element + 1

    cdef void name_element(self, int name) noexcept:
        """The name of the element opened last, all of whose attributes are there."""
        self.element_name[self.elements - 1] = name
        self.attribute_start[self.elements] = self.attributes

    cdef void close_element(self) noexcept:
        cdef int element = self.parent
        self.element_end[element] = self.elements
        self.parent = self.element_parent[element]
        self.depth -= 1

    cdef declare(self, declaration):
        """A namespace declaration of the element opened last."""
        self.declare_on(self.elements - 1, declaration)

    cdef declare_on(self, int element, declaration):
        """The same, of an element whose row the caller sets."""
        if self._declaration_element is _NO_ROWS:
            self._declaration_element = array("i")
        self._declaration_element.append(element)
        self._declarations.append(declaration)
        self.declarations += 1

    cdef int close_attribute(self) except -1:
        """Make the bytes copied since the last attribute the value of the next one."""
        if self.attributes + 2 >= self._attribute_rows:
            self._grow_attributes(2 * self._attribute_rows)
        self.attributes += 1
        self.attribute_offset[self.attributes] = self.attribute_bytes

    cdef bytes take_value(self):
        """The bytes copied since the last attribute, taken back: they are no attribute's value."""
        start = self.attribute_offset[self.attributes]
        value = bytes(self._attribute_buffer[start : self.attribute_bytes])
        self.attribute_bytes = start
        return value

    cdef void copy_value(
        self, const unsigned char* data, Py_ssize_t start, Py_ssize_t end
    ) noexcept:
        """Bytes of an attribute's value."""
        _copy(data, start, end, self._attribute_values, self.attribute_bytes)
        self.attribute_bytes += end - start

    cdef Py_ssize_t copy_plain_value(
        self, const unsigned char* data, Py_ssize_t start, Py_ssize_t end, unsigned char quote
    ) noexcept:
        """Bytes of an attribute's value, with a word or more before ``end``; where that stops.

        It is there or before a quote, ``<``, ``&`` or a control character.
        """
        cdef Py_ssize_t stop = _copy_plain(
            data, start, end, quote, self._attribute_values, self.attribute_bytes
        )
        self.attribute_bytes += stop - start
        return stop

    cdef int put_value(self, int code) except -1:
        """A character of an attribute's value."""
        if code < 0x80:
            self._attribute_values[self.attribute_bytes] = code
            self.attribute_bytes += 1
        else:
            self._put(self._attribute_values, self.attribute_bytes, code)
            self.attribute_bytes += _width(code)

    cdef void copy_content(
        self, const unsigned char* data, Py_ssize_t start, Py_ssize_t end
    ) noexcept:
        """Bytes of text, a comment or an instruction."""
        _copy(data, start, end, self._content_values, self._content_bytes)
        self._content_bytes += end - start

    cdef Py_ssize_t copy_plain_text(
        self, const unsigned char* data, Py_ssize_t start, Py_ssize_t end
    ) noexcept:
        """As ``copy_plain_value``, bytes of text, up to a ``]`` instead of a quote."""
        cdef Py_ssize_t stop = _copy_plain(
            data, start, end, 93, self._content_values, self._content_bytes
        )
        self._content_bytes += stop - start
        return stop

    cdef int put_content(self, int code) except -1:
        """A character of text, a comment or an instruction."""
        if code < 0x80:
            self._content_values[self._content_bytes] = code
            self._content_bytes += 1
        else:
            self._put(self._content_values, self._content_bytes, code)
            self._content_bytes += _width(code)

    cdef int close_text(self) except -1:
        """Make a text node of the bytes copied since the last piece of content, if any."""
        if self._content_bytes > self.content_offset[self.contents]:
            self.close_content(0)  # ContentKind.TEXT

    cdef int close_content(self, int kind) except -1:
        """Make a piece of a ContentKind of the bytes copied since the last piece of content."""
        cdef int content = self.contents
        if content + 2 >= self._content_rows:
            self._grow_content(2 * self._content_rows)
        self.content_kind[content] = kind
        self.content_parent[content] = self.parent
        self.content_next[content] = self.elements
        self.contents = content + 1
        self.content_offset[content + 1] = self._content_bytes

    cdef reserve(self, Py_ssize_t elements, Py_ssize_t attributes, Py_ssize_t contents):
        """Makes room, for a caller that sets so many rows of the columns itself."""
        if elements + 2 > self._element_rows:
            self._grow_elements(elements + 2)
        if attributes + 2 > self._attribute_rows:
            self._grow_attributes(attributes + 2)
        if contents + 2 > self._content_rows:
            self._grow_content(contents + 2)

    cdef object finish(self, list names):
        """The message, of what was copied."""
        return self.finish_with(
            names,
            bytes(self._attribute_buffer[: self.attribute_bytes]),
            bytes(self._content_buffer[: self._content_bytes]),
        )

    cdef object finish_with(self, list names, bytes attribute_values, bytes content_values):
        """The message, with values from elsewhere."""
        of_elements, of_attributes = self._element_columns, self._attribute_columns
        of_content = self._content_columns
        stream: ElementStream = ElementStream.__new__(ElementStream)  # PERF: no empty columns first
        stream.pieces = NO_PIECES
        stream.accepted = None
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

    cdef int _put(self, unsigned char* values, Py_ssize_t place, int code) except -1:
        cdef Py_ssize_t i
        encoded: bytes = chr(code).encode()
        for i in range(len(encoded)):
            values[place + i] = encoded[i]

    cdef _empty_rows(self):
        self._element_columns = [array(code) for code in _ELEMENT_CODES]
        self._attribute_columns = [array(code) for code in _ATTRIBUTE_CODES]
        self._content_columns = [array(code) for code in _CONTENT_CODES]
        self._grow_elements(1024)
        self._grow_attributes(1024)
        self._grow_content(1024)

    cdef _grow_elements(self, Py_ssize_t rows):
        self._element_rows = rows
        self._element_columns = [_longer(column, rows) for column in self._element_columns]
        (
            self.element_name,
            self.element_parent,
            self.element_depth,
            self.element_end,
            self.attribute_start,
        ) = self._element_columns

    cdef _grow_attributes(self, Py_ssize_t rows):
        self._attribute_rows = rows
        self._attribute_columns = [_longer(column, rows) for column in self._attribute_columns]
        self.attribute_name, self.attribute_offset = self._attribute_columns

    cdef _grow_content(self, Py_ssize_t rows):
        self._content_rows = rows
        self._content_columns = [_longer(column, rows) for column in self._content_columns]
        (
            self.content_kind,
            self.content_parent,
            self.content_next,
            self.content_offset,
        ) = self._content_columns

    cdef _grow_bytes(self, Py_ssize_t size):
        self._bytes = size
        self._attribute_buffer = bytearray(size + 8)  # values are copied by words
        self._content_buffer = bytearray(size + 8)
        self._attribute_values = self._attribute_buffer
        self._content_values = self._content_buffer


cdef Array _cut(Array rows, Py_ssize_t count):
    """The first rows of a column, as an array of their own."""
    # PERF: a slice takes three times as long, for the object that says which, and a decoding of a
    # small message makes twelve (python -m benchmarks formats: decode_over_own_parser).
    column = clone(rows, count, False)
    memcpy(column.data.as_chars, rows.data.as_chars, count * rows.ob_descr.itemsize)
    return column


cdef void _copy(
    const unsigned char* data, Py_ssize_t start, Py_ssize_t end, unsigned char* values,
    Py_ssize_t place
) noexcept:
    cdef Py_ssize_t i
    for i in range(end - start):
        values[place + i] = data[start + i]


cdef Py_ssize_t _copy_plain(
    const unsigned char* data, Py_ssize_t start, Py_ssize_t end, unsigned char mark,
    unsigned char* values, Py_ssize_t place
) noexcept:
    # PERF: the next copy overwrites the bytes that this one copies too much.
    cdef Py_ssize_t at = start
    cdef unsigned long long word, marks
    while at + 8 <= end:
        word = word_at(data, at)
        put_word(values, place + at - start, word)
        marks = marks_in(word, mark)
        if marks:
            return at + bytes_below(marks)
        at += 8
    return at


cdef int _width(int code) noexcept:
    """The bytes of a character from 0x80 in UTF-8."""
    return 2 if code < 0x800 else 3 if code < 0x10000 else 4


def _longer(column: array[int], rows: int) -> array[int]:
    longer = array(column.typecode, bytes(rows * column.itemsize))
    longer[: len(column)] = column
    return longer


# -------------------------------------------------------------------------------------------------
# NameTable: from the bytes of a name, as they stand in a message, to its QualifiedName.
#
# The table lives across messages, because they repeat each other's names: a name known from before
# costs one hash look-up and no Python object.  What a name means depends on the namespace its
# prefix is bound to, so the key is (binding, bytes), where a binding is the number of a (prefix,
# namespace) pair, 0 for no namespace, 1 for the prefix ``xml``.
#
# Every message numbers its own names from 0 in the order of their first use, as in ElementStream;
# the table remembers for each name its number in the message that used it last.
#
# Bounded whatever strangers send: at most NAMES_MAX names, BINDINGS_MAX bindings, RAW_MAX bytes; a
# look-up looks at PROBES_MAX slots at most.  A table beyond a bound is ``worn``: it takes no new
# entries (a message that needs one goes another way), and the next message begins with an empty
# one.
#
# ::
#
#     slots   [ -1 | 2 | -1 | 0 | 1 ]      open addressing, twice as many slots as names
#                    |
#     name    2:  binding 3, bytes "p:b"  ->  QualifiedName("p", "urn:p", "b"), meaning 2,
#                 number 5 in message 17
#
# The answers about a name are a row of NAME_WIDTH numbers, a cache line::
#
#     FIRST, SECOND     its first 16 bytes
#     SHAPE             length << 32 | binding
#     RAW               where all its bytes are
#     MESSAGE, NUMBER   the message that used it last, its number there
#     MEANING           a name
#     TAG               of that one: the start tag that had it last as an attribute

cdef enum:
    PROBES_MAX = 32

cpdef enum:
    # Fields of a name.
    NAME_FIRST = 0
    NAME_SECOND = 1
    NAME_SHAPE = 2
    NAME_RAW = 3
    NAME_MESSAGE = 4
    NAME_NUMBER = 5
    NAME_MEANING = 6
    NAME_TAG = 7
    NAME_WIDTH = 8


NAMES_MAX = 8_192
BINDINGS_MAX = 4_096
RAW_MAX = 256 * 1024


_RESERVED_NAMESPACES = (XML_NAMESPACE.encode(), b"http://www.w3.org/2000/xmlns/")


cdef class NameTable:
    """Names and namespace bindings met so far; one message at a time (``begin``)."""

    def __init__(self) -> None:
        self._message = 0
        # Python salts its hashes per process, so that nobody can prepare names that collide.
        self._seed = (hash(b"names") | 1) & 0xFFFFFFFF
        self._empty()
        self.begin(0)

    cpdef begin(self, Py_ssize_t size):
        """A new message of so many bytes: its names count from 0."""
        self._last_word = size - 16
        # Half of the table is always left for the names that a message brings.
        if (
            self.worn
            or 2 * self.used > NAMES_MAX
            or 2 * self._raw_size > RAW_MAX
            or 2 * len(self._declarations) > BINDINGS_MAX
        ):
            self._empty()
        self._message += 1
        self.message_size = 0
        self._message_names: list[QualifiedName] = []

    cpdef list message_names(self):
        """The names of the present message."""
        return self._message_names

    cpdef int bind(self, bytes prefix, bytes namespace) except -2:
        """The number of a namespace declaration.

        UNKNOWN if the table is worn, or the declaration is forbidden or the xml prefix's own.
        """
        if not namespace:
            return UNKNOWN if prefix else NO_NAMESPACE
        key = (prefix, namespace)
        found = self._binding_ids.get(key)
        if found is not None:
            return found
        if prefix.startswith(b"xml") or namespace in _RESERVED_NAMESPACES:
            return UNKNOWN
        if not prefix.isascii() and not _is_name(prefix):
            return UNKNOWN
        if len(self._declarations) == BINDINGS_MAX:
            self.worn = True
            return UNKNOWN
        self._binding_ids[key] = len(self._declarations)
        self._declarations.append((prefix.decode(), namespace.decode()))
        return len(self._declarations) - 1

    cpdef tuple declaration(self, int binding):
        """The (prefix, namespace) of a binding."""
        return self._declarations[binding]

    cdef int find(
        self, const unsigned char* data, Py_ssize_t at, Py_ssize_t end, Py_ssize_t colon,
        int binding, long long tag
    ) except -2:
        """The number in the present message of the name ``data[at:end]``, or UNKNOWN.

        ``colon`` is the place of its colon, or ``at - 1``.  For an attribute ``tag`` is a number of
        its start tag, which never repeats in the life of the table; one whose meaning the tag has
        already is UNKNOWN.  For an element it is 0.
        """
        cdef Py_ssize_t row, meaning
        cdef int name, _probe
        cdef unsigned long long first
        cdef unsigned long long second = 0
        cdef unsigned long long shape = end - at
        cdef unsigned int slot
        if at <= self._last_word:
            first = word_at(data, at)
            if end - at > 8:
                second = first_bytes(word_at(data, at + 8), min(end - at - 8, 8))
            else:
                first = first_bytes(first, end - at)
        else:
            first = part_of_word(data, at, min(end - at, 8))
            if end - at > 8:
                second = part_of_word(data, at + 8, min(end - at - 8, 8))
        shape = shape << 32 | binding
        slot = self._slot(data, at, end, first, second, shape)
        for _probe in range(PROBES_MAX):
            name = self._slots[slot]
            if name < 0:
                name = self._learn(data, at, end, colon, binding)
                if name < 0:
                    return UNKNOWN
                self._slots[slot] = name
                row = NAME_WIDTH * name
                self._rows[row + NAME_FIRST] = first
                self._rows[row + NAME_SECOND] = second
                self._rows[row + NAME_SHAPE] = shape
            row = NAME_WIDTH * name
            if (
                self._rows[row + NAME_FIRST] == first
                and self._rows[row + NAME_SECOND] == second
                and self._rows[row + NAME_SHAPE] == shape
                and (end - at <= 16 or self._is(name, data, at, end))
            ):
                if tag:
                    meaning = NAME_WIDTH * self._rows[row + NAME_MEANING] + NAME_TAG
                    if self._rows[meaning] == tag:
                        return UNKNOWN
                    self._rows[meaning] = tag
                self._last = name
                if self._rows[row + NAME_MESSAGE] != self._message:
                    self._rows[row + NAME_MESSAGE] = self._message
                    self._rows[row + NAME_NUMBER] = self.message_size
                    self.message_size += 1
                    self._message_names.append(self._names[name])
                return self._rows[row + NAME_NUMBER]
            slot = (slot + 1) & self._mask
        self.worn = True
        return UNKNOWN

    cdef last_name(self):
        """The name that was found last."""
        return self._names[self._last]

    cdef int first_of_meaning(self, int number) noexcept:
        """The first number in the present message with the meaning of the name found last.

        ``number`` is that one's; where names are found with tags, this is not to be asked.
        """
        cdef Py_ssize_t row = (
            NAME_WIDTH * self._rows[NAME_WIDTH * self._last + NAME_MEANING] + NAME_TAG
        )
        cdef unsigned long long low = 0xFFFFFFFF
        cdef unsigned long long message = self._message & low
        if self._rows[row] >> 32 != message:
            self._rows[row] = message << 32 | number
        return self._rows[row] & low

    cpdef unsigned int slot_of(self, bytes name) noexcept:
        """Where the probing for a name in no namespace begins."""
        cdef unsigned long long first = part_of_word(name, 0, min(len(name), 8))
        cdef unsigned long long second = part_of_word(name, 8, max(min(len(name) - 8, 8), 0))
        cdef unsigned long long shape = len(name)
        return self._slot(name, 0, len(name), first, second, shape << 32)

    cdef unsigned int _slot(
        self, const unsigned char* data, Py_ssize_t at, Py_ssize_t end, unsigned long long first,
        unsigned long long second, unsigned long long shape
    ) noexcept:
        # Typed, for the compiler takes a literal of more than 31 bits for an object.
        cdef unsigned long long prime = 0x9E3779B97F4A7C15
        cdef unsigned long long mask = 0xFFFFFFFFFFFFFFFF
        cdef unsigned long long mixed = ((first ^ self._seed) * prime) & mask
        cdef Py_ssize_t place
        mixed ^= mixed >> 32
        mixed = ((mixed ^ second ^ shape) * prime) & mask
        if end - at > 16:
            for place in range(at + 16, end - 8, 8):
                mixed ^= mixed >> 32
                mixed = ((mixed ^ word_at(data, place)) * prime) & mask
            mixed ^= mixed >> 32
            mixed = ((mixed ^ word_at(data, end - 8)) * prime) & mask
        return (mixed >> 40) & self._mask

    cdef bint _is(
        self, int name, const unsigned char* data, Py_ssize_t at, Py_ssize_t end
    ) noexcept:
        """Whether these are the bytes of a name of the same length."""
        cdef Py_ssize_t i
        cdef Py_ssize_t raw_at = self._rows[NAME_WIDTH * name + NAME_RAW]
        for i in range(end - at):
            if self._raw[raw_at + i] != data[at + i]:
                return False
        return True

    cdef int _learn(
        self, const unsigned char* data, Py_ssize_t at, Py_ssize_t end, Py_ssize_t colon,
        int binding
    ) except -2:
        """A new name, or UNKNOWN; the caller sets what it is found by."""
        cdef Py_ssize_t i
        cdef int name = self.used
        if name == NAMES_MAX or self._raw_size + end - at > RAW_MAX:
            self.worn = True
            return UNKNOWN
        prefix, namespace = self._declarations[binding]
        written: bytes = data[colon + 1 : end]
        if not written.isascii() and not _is_name(written):
            return UNKNOWN
        local = written.decode()
        self._names.append(QualifiedName(prefix, namespace, local))
        self._rows[NAME_WIDTH * name + NAME_MEANING] = self._meanings.setdefault(
            (namespace, local), name
        )
        self._rows[NAME_WIDTH * name + NAME_RAW] = self._raw_size
        for i in range(end - at):
            self._raw[self._raw_size + i] = data[at + i]
        self._raw_size += end - at
        self.used += 1
        return name

    cdef void spoil(self) noexcept:
        """Forget all names with the next message."""
        self.worn = True

    cdef _empty(self):
        self.worn = False
        self.used: int = 0
        self._last = 0
        self._raw_size: int = 0
        self._mask: int = 2 * NAMES_MAX - 1
        self._slots: array[int] = array("i", [-1]) * (2 * NAMES_MAX)
        self._rows: array[int] = array("Q", bytes(8 * NAME_WIDTH * NAMES_MAX))
        self._raw = bytearray(RAW_MAX)
        self._names: list[QualifiedName] = []
        self._meanings: dict[tuple[str, str], int] = {}
        self._declarations: list[tuple[str, str]] = [("", ""), ("xml", XML_NAMESPACE)]
        self._binding_ids: dict[tuple[bytes, bytes], int] = {}


def _is_name(written: bytes) -> bool:
    """Whether this, beyond ASCII, is a name without a colon to expat, which has tables of its own;
    asked once for each name."""
    try:
        pyexpat.ParserCreate("utf-8").Parse(b"<" + written + b"/>", True)
    except pyexpat.ExpatError:
        return False
    return True


# -------------------------------------------------------------------------------------------------
# NamespaceScope: which prefix is bound to what at a place in a message.
#
# A stack of declarations, innermost last, each with the element that made it; a prefix is a piece
# of the message's own bytes, the default namespace one of length 0, a binding a number of
# NameTable.

cdef enum:
    NO_NAMESPACE = 0
    XML_BINDING = 1
    UNKNOWN = -1


SCOPE_MAX = 256  # declarations in scope at a time


@cython.final
cdef class NamespaceScope:
    """At most SCOPE_MAX declarations, so that a look-up may try one after the other."""

    cdef readonly int size
    cdef int[::1] _element, _prefix_at, _prefix_end, _binding

    def __init__(self) -> None:
        self.size = 0
        self._element = array("i", bytes(4 * SCOPE_MAX))
        self._prefix_at = array("i", bytes(4 * SCOPE_MAX))
        self._prefix_end = array("i", bytes(4 * SCOPE_MAX))
        self._binding = array("i", bytes(4 * SCOPE_MAX))

    cdef void clear(self) noexcept:
        self.size = 0

    cdef bint declare(
        self, const unsigned char* data, Py_ssize_t at, Py_ssize_t end, int element, int binding
    ) except -1:
        """Bind the prefix ``data[at:end]``; False if that element has bound it, or it is full."""
        cdef int scope = self.size
        if scope == SCOPE_MAX:
            return False
        while scope > 0 and self._element[scope - 1] == element:
            scope -= 1
            if self._is(scope, data, at, end):
                return False
        self._element[self.size] = element
        self._prefix_at[self.size] = at
        self._prefix_end[self.size] = end
        self._binding[self.size] = binding
        self.size += 1
        return True

    cdef void close(self, int element) noexcept:
        """The declarations of an element are over."""
        while self.size > 0 and self._element[self.size - 1] == element:
            self.size -= 1

    cdef int binding_of(self, const unsigned char* data, Py_ssize_t at, Py_ssize_t colon) except -2:
        """The binding of the prefix ``data[at:colon]`` (of the default if that is empty)."""
        cdef int scope = self.size
        cdef Py_ssize_t end = colon if colon > at else at
        while scope > 0:
            scope -= 1
            if self._is(scope, data, at, end):
                return self._binding[scope]
        if end == at:
            return NO_NAMESPACE
        return XML_BINDING if data[at:end] == b"xml" else UNKNOWN

    cdef bint _is(
        self, int scope, const unsigned char* data, Py_ssize_t at, Py_ssize_t end
    ) noexcept:
        """Whether the prefix of a declaration is ``data[at:end]``."""
        cdef Py_ssize_t i
        cdef Py_ssize_t known = self._prefix_at[scope]
        if self._prefix_end[scope] - known != end - at:
            return False
        for i in range(end - at):
            if data[known + i] != data[at + i]:
                return False
        return True


# -------------------------------------------------------------------------------------------------
# References to characters and to the five predefined entities: those that need no declaration.

cdef enum:
    NONE = -1


cpdef int read_reference(const unsigned char* data, Py_ssize_t at) noexcept:
    """The reference at ``data[at]``, an ampersand: its code point times 16 plus its length.

    NONE if it is not of these, is malformed, stands for a character that XML does not allow, or
    has more digits than it needs (7 decimal, 6 hexadecimal).
    """
    cdef Py_ssize_t start, i
    cdef int code = 0
    if data[at + 1] != ord("#"):
        return _predefined(data, at)
    if data[at + 2] == ord("x"):
        start = i = at + 3
        while i < start + 6 and _hexadecimal(data[i]) >= 0:
            code = 16 * code + _hexadecimal(data[i])
            i += 1
    else:
        start = i = at + 2
        while i < start + 7 and ord("0") <= data[i] <= ord("9"):
            code = 10 * code + data[i] - ord("0")
            i += 1
    if i == start or data[i] != ord(";") or not _is_character(code):
        return NONE
    return 16 * code + i + 1 - at


cdef int _predefined(const unsigned char* data, Py_ssize_t at) noexcept:
    cdef unsigned char first = data[at + 1]
    if first == ord("l") or first == ord("g"):
        if data[at + 2] == ord("t") and data[at + 3] == ord(";"):
            return 16 * (ord("<") if first == ord("l") else ord(">")) + 4
    elif first == ord("a"):
        if data[at + 2] == ord("m"):
            if data[at + 3] == ord("p") and data[at + 4] == ord(";"):
                return 16 * ord("&") + 5
        elif data[at + 2] == ord("p") and data[at + 3] == ord("o"):
            if data[at + 4] == ord("s") and data[at + 5] == ord(";"):
                return 16 * ord("'") + 6
    elif first == ord("q") and data[at + 2] == ord("u") and data[at + 3] == ord("o"):
        if data[at + 4] == ord("t") and data[at + 5] == ord(";"):
            return 16 * ord('"') + 6
    return NONE


cdef int _hexadecimal(unsigned char digit) noexcept:
    if ord("0") <= digit <= ord("9"):
        return digit - ord("0")
    digit |= 0x20  # lower case
    return digit - ord("a") + 10 if ord("a") <= digit <= ord("f") else -1


cdef bint _is_character(int code) noexcept:
    if code < 0x20:
        return code == 0x9 or code == 0xA or code == 0xD
    return code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or 0x10000 <= code <= 0x10FFFF


# -------------------------------------------------------------------------------------------------
# The kinds of bytes: the roles that a byte of XML in UTF-8 may have, as bits, and their table.
#
# Bytes from 0x80 count as plain in every value, since the scanner has checked that the whole is
# UTF-8, and as nothing in names, since names beyond ASCII are not ordinary.

cdef enum:
    NAME_START = 0x01  # the first character of a name
    NAME = 0x02  # the others, without the colon
    SPACE = 0x04
    # Plain: stands for itself and ends nothing, in
    TEXT = 0x08
    CDATA = 0x10
    COMMENT = 0x20  # and processing instructions
    DOUBLE_QUOTED = 0x40
    SINGLE_QUOTED = 0x80

_VALUES = TEXT | CDATA | COMMENT | DOUBLE_QUOTED | SINGLE_QUOTED


def _byte_kinds() -> bytes:
    kinds = [0] * 0x20 + [_VALUES] * 0xE0
    for characters, are in (
        ("\t\n", TEXT | CDATA | COMMENT),
        (" \t\r\n", SPACE),
        (string.ascii_letters + "_", NAME_START | NAME),
        (string.digits + "-.", NAME),
        (map(chr, range(0x80, 0x100)), NAME_START | NAME),  # as NameTable has it checked
    ):
        for character in characters:
            kinds[ord(character)] |= are
    for characters, are_not in (
        ("<&", TEXT | DOUBLE_QUOTED | SINGLE_QUOTED),
        ("]", TEXT | CDATA),
        ("-?", COMMENT),
        ('"', DOUBLE_QUOTED),
        ("'", SINGLE_QUOTED),
    ):
        for character in characters:
            kinds[ord(character)] &= ~are_not
    return bytes(kinds)


cdef bytes BYTE_KINDS = _byte_kinds()


# -------------------------------------------------------------------------------------------------
# Scanner: the ordinary XML message straight into the columns of an ElementStream.
#
# Most messages are well-formed UTF-8 with elements, attributes, namespaces, text, CDATA sections,
# comments and processing instructions.  The scanner reads these in one pass, without a Python
# object for an element or a value.  Whatever else it meets (a DOCTYPE, another encoding, anything
# malformed, in doubt or beyond a limit) it gives back: expat reads the message again (``text``).
# So no refusal is the scanner's, and what it accepts is what expat makes of it.
#
# Each ``_read`` method stands on the first byte of what it reads and leaves ``_at`` behind it; it
# returns False for "not ordinary".  No method steps over a byte it has not looked at: compiled, the
# end of the bytes is a NUL, which nothing accepts; uncompiled, reading beyond it is an IndexError.
#
# Columns are written by a ColumnWriter, names and namespaces go through a NameTable; both live
# across messages.  A start tag is read in two steps, because a prefix may be declared after it is
# used: first all attributes as they stand, then what their names mean.


_DEPTH_MAX = 1024  # elements open at a time
_ATTRIBUTES_MAX = 1024  # attributes of an element

_IDLE: list[Scanner] = []  # as many as there were scans at the same time


def scan(data: bytes, limits: MessageLimits) -> ElementStream | None:
    """The element stream of an ordinary message, or None: then it is for expat to read."""
    scanner = _IDLE.pop() if _IDLE else Scanner()
    stream = scanner.scan(data, limits)
    _IDLE.append(scanner)
    return stream


@cython.final
cdef class Scanner:
    """One scan after the other."""

    cdef bytes _message, _xml_declaration
    cdef const unsigned char* _data
    cdef const unsigned char* _kinds
    cdef ColumnWriter _out
    cdef NameTable _names
    cdef NamespaceScope _scope
    cdef object _limits
    cdef long long _tag
    cdef Py_ssize_t _at, _end, _colon
    cdef int _scope_before, _first_attribute

    cdef Py_ssize_t _bytes_max, _name_bytes_max, _namespace_bytes_max
    cdef Py_ssize_t _depth_max, _elements_max, _attributes_max, _attributes_total_max, _names_max

    cdef int[::1] _open_at, _open_end
    cdef int[::1] _name_at, _name_end, _name_colon

    def __init__(self) -> None:
        self._kinds = BYTE_KINDS
        self._out = ColumnWriter()
        self._names = NameTable()
        self._scope = NamespaceScope()
        self._tag = 0  # start tags in the life of the scanner
        self._xml_declaration = b"<?xml version='1.0'?>"  # the last one met
        # Raw names: of the open elements, of the attributes of a start tag.
        self._open_at = array("i", bytes(4 * _DEPTH_MAX))
        self._open_end = array("i", bytes(4 * _DEPTH_MAX))
        self._name_at = array("i", bytes(4 * _ATTRIBUTES_MAX))
        self._name_end = array("i", bytes(4 * _ATTRIBUTES_MAX))
        self._name_colon = array("i", bytes(4 * _ATTRIBUTES_MAX))
        self._limits: MessageLimits | None = None

    cpdef scan(self, bytes data, limits):
        """As the function ``scan``."""
        if limits is not self._limits:
            self._set_limits(limits)
        if len(data) > self._bytes_max or not (is_ascii(data, len(data)) or is_utf_8(data)):
            return None
        self._message = data
        self._data = data
        self._end = len(data)
        self._scope.clear()
        self._out.begin(self._end)
        self._names.begin(self._end)
        self._skip_prolog()
        try:
            ordinary = self._read_document()
        except IndexError:  # see above
            ordinary = False
        return self._out.finish(self._names.message_names()) if ordinary else None

    cdef _set_limits(self, limits):
        self._limits = limits
        # What expansion_max counts can be no more than the message where nothing expands.
        self._bytes_max = min(limits.bytes_max, limits.expansion_max, 0x7FFFFFFF)
        self._depth_max = min(limits.depth_max, _DEPTH_MAX)
        self._elements_max = limits.elements_max
        self._attributes_max = min(limits.attributes_max, _ATTRIBUTES_MAX)
        self._attributes_total_max = limits.attributes_total_max
        self._names_max = limits.names_max
        self._name_bytes_max = limits.name_bytes_max
        self._namespace_bytes_max = limits.namespace_bytes_max

    cdef _skip_prolog(self):
        """Step over byte order mark and XML declaration."""
        data = self._message
        self._at = 3 if data.startswith(b"\xef\xbb\xbf") else 0
        if data.startswith(self._xml_declaration, self._at):
            self._at += len(self._xml_declaration)
        elif found := UTF_8_DECLARATION.match(data, self._at):
            self._at = found.end()
            if self._at < 200:
                self._xml_declaration = found[0]

    cdef bint _read_document(self) except -1:
        cdef const unsigned char* data = self._data
        cdef unsigned char byte
        cdef bint ok
        while self._at < self._end:
            if data[self._at] != ord("<"):
                ok = self._read_text() if self._out.depth else self._skip_space()
            else:
                byte = data[self._at + 1]
                if byte == ord("/"):
                    ok = self._read_end_tag()
                elif byte == ord("!"):
                    byte = data[self._at + 2]
                    ok = self._read_comment() if byte == ord("-") else self._read_cdata()
                elif byte == ord("?"):
                    ok = self._read_instruction()
                else:
                    ok = self._read_start_tag()
            if not ok:
                return False
        return self._out.depth == 0 and self._out.elements > 0

    cdef bint _read_text(self) except -1:
        cdef const unsigned char* data = self._data
        cdef unsigned char byte
        cdef int code
        while True:
            self._at = self._out.copy_plain_text(data, self._at, self._end)
            if self._kinds[data[self._at]] & TEXT:  # white space, or near the end
                self._copy(TEXT)
            byte = data[self._at]
            if byte == ord("<"):
                return True
            if byte == ord("&"):
                code = self._read_reference()
                if code < 0:
                    return False
                self._out.put_content(code)
            elif byte == ord("]"):
                if data[self._at + 1] == ord("]") and data[self._at + 2] == ord(">"):
                    return False
                self._copy_byte()
            elif not self._read_line_end():
                return False

    cdef bint _read_cdata(self) except -1:
        if self._out.depth == 0 or not self._message.startswith(b"<![CDATA[", self._at):
            return False
        self._at += 9
        return self._copy_to_end(CDATA, ord("]"), 2)

    cdef bint _read_comment(self) except -1:
        if not self._message.startswith(b"<!--", self._at):
            return False
        self._at += 4
        self._out.close_text()
        if not self._copy_to_end(COMMENT, ord("-"), 2):
            return False
        self._out.close_content(1)  # ContentKind.COMMENT
        return True

    cdef bint _read_instruction(self) except -1:
        cdef const unsigned char* data = self._data
        cdef Py_ssize_t start = self._at + 2
        self._at = start
        self._out.close_text()
        if not self._read_name() or self._colon > start:
            return False
        target: bytes = data[start : self._at]
        if target.lower() == b"xml" or not (target.isascii() or _is_name(target)):
            return False
        self._out.copy_content(data, start, self._at)
        cdef bint spaced = self._skip_space()
        if data[self._at] != ord("?") or data[self._at + 1] != ord(">"):
            if not spaced:
                return False
            self._out.put_content(ord(" "))
        if not self._copy_to_end(COMMENT, ord("?"), 1):
            return False
        self._out.close_content(2)  # ContentKind.PROCESSING_INSTRUCTION
        return True

    cdef bint _read_end_tag(self) except -1:
        cdef const unsigned char* data = self._data
        cdef Py_ssize_t i
        cdef int depth = self._out.depth - 1
        if depth < 0:
            return False
        cdef Py_ssize_t start = self._open_at[depth]
        cdef Py_ssize_t length = self._open_end[depth] - start
        cdef Py_ssize_t at = self._at + 2
        if length <= 8 and at + 8 <= self._end:
            if first_bytes(word_at(data, at) ^ word_at(data, start), length):
                return False
        else:
            for i in range(length):
                if data[at + i] != data[start + i]:
                    return False
        self._at = at + length
        if data[self._at] != ord(">") and not (self._skip_space() and data[self._at] == ord(">")):
            return False
        self._at += 1
        self._out.close_text()
        self._close_element()
        return True

    cdef bint _read_start_tag(self) except -1:
        cdef const unsigned char* data = self._data
        cdef unsigned char byte
        cdef int depth = self._out.depth
        if (
            (depth == 0 and self._out.elements > 0)
            or depth >= self._depth_max
            or self._out.elements >= self._elements_max
        ):
            return False
        self._out.close_text()
        self._out.open_element()
        self._at += 1
        self._open_at[depth] = self._at
        if not self._read_name():
            return False
        self._open_end[depth] = self._at
        cdef Py_ssize_t colon = self._colon
        self._first_attribute = self._out.attributes
        self._scope_before = self._scope.size
        while self._kinds[data[self._at]] & SPACE and self._skip_space():
            byte = data[self._at]
            if byte == ord(">") or byte == ord("/"):
                break
            if not self._read_attribute():
                return False
        if not self._resolve_names(depth, colon):
            return False
        if data[self._at] == ord("/"):
            self._at += 1
            self._close_element()
        if data[self._at] != ord(">"):
            return False
        self._at += 1
        return True

    cdef void _close_element(self) noexcept:
        if self._scope.size:
            self._scope.close(self._out.parent)
        self._out.close_element()

    cdef bint _read_attribute(self) except -1:
        cdef const unsigned char* data = self._data
        cdef unsigned char quote
        cdef Py_ssize_t start = self._at
        cdef int attribute = self._out.attributes - self._first_attribute
        if attribute >= self._attributes_max or not self._read_name():
            return False
        cdef Py_ssize_t end = self._at
        self._name_at[attribute] = start
        self._name_end[attribute] = end
        self._name_colon[attribute] = self._colon
        if data[self._at] != ord("=") and not (self._skip_space() and data[self._at] == ord("=")):
            return False
        self._at += 1
        if self._kinds[data[self._at]] & SPACE:
            self._skip_space()
        quote = data[self._at]
        self._at += 1
        if quote == ord('"'):
            if not self._read_value(quote, DOUBLE_QUOTED):
                return False
        elif quote != ord("'") or not self._read_value(quote, SINGLE_QUOTED):
            return False
        if (
            data[start] == ord("x")
            and (end - start == 5 or self._colon == start + 5)
            and data[start : start + 5] == b"xmlns"
        ):
            return self._declare(start, end)
        self._out.close_attribute()
        return True

    cdef bint _read_value(self, unsigned char quote, int plain) except -1:
        """An attribute's value up to its closing quote, and that."""
        cdef const unsigned char* data = self._data
        cdef const unsigned char* kinds = self._kinds
        cdef unsigned char byte
        cdef int code
        cdef Py_ssize_t i
        while True:
            i = self._at = self._out.copy_plain_value(data, self._at, self._end, quote)
            while kinds[data[i]] & plain:  # near the end
                i += 1
            if i > self._at:
                self._out.copy_value(data, self._at, i)
                self._at = i
            byte = data[i]
            if byte == quote:
                self._at += 1
                return True
            if byte == ord("&"):
                code = self._read_reference()
                if code < 0:
                    return False
                self._out.put_value(code)
            elif kinds[byte] & SPACE:  # a line end or a tab: one blank
                self._at += 1
                if byte == ord("\r") and data[self._at] == ord("\n"):
                    self._at += 1
                self._out.put_value(ord(" "))
            else:
                return False

    cdef bint _declare(self, Py_ssize_t start, Py_ssize_t end) except -1:
        """The attribute ``xmlns`` or ``xmlns:p`` at a place, whose value was read last."""
        cdef const unsigned char* data = self._data
        cdef Py_ssize_t prefix_at = start + 6 if end > start + 5 else end
        prefix: bytes = data[prefix_at:end]
        namespace: bytes = self._out.take_value()
        if len(namespace) > self._namespace_bytes_max:
            return False
        cdef int binding = self._names.bind(prefix, namespace)
        if binding < 0 or not self._scope.declare(data, prefix_at, end, self._out.parent, binding):
            return False
        self._out.declare(self._names.declaration(binding))
        return True

    cdef bint _resolve_names(self, int depth, Py_ssize_t colon) except -1:
        """The numbers of the names of the start tag at a depth, read so far."""
        cdef int i, name
        cdef Py_ssize_t at = self._open_at[depth]
        cdef int count = self._out.attributes - self._first_attribute
        cdef int binding = NO_NAMESPACE
        if self._scope.size or colon > at:
            binding = self._scope.binding_of(self._data, at, colon)
        if (
            binding < 0
            or count + self._scope.size - self._scope_before > self._attributes_max
            or self._out.attributes + self._out.declarations > self._attributes_total_max
        ):
            return False
        cdef Py_ssize_t end = self._open_end[depth]
        name = self._names.find(self._data, at, end, colon, binding, 0)
        if name < 0:
            return False
        self._out.name_element(name)
        self._tag += 1
        for i in range(count):
            at = self._name_at[i]
            colon = self._name_colon[i]
            binding = self._scope.binding_of(self._data, at, colon) if colon > at else NO_NAMESPACE
            if binding < 0:
                return False
            end = self._name_end[i]
            name = self._names.find(self._data, at, end, colon, binding, self._tag)
            if name < 0:
                return False
            self._out.attribute_name[self._first_attribute + i] = name
        return self._names.message_size <= self._names_max

    cdef bint _read_name(self) noexcept:
        """A name, with one colon at most: sets ``_colon`` (or one before the start)."""
        cdef const unsigned char* data = self._data
        cdef const unsigned char* kinds = self._kinds
        cdef Py_ssize_t start = self._at
        cdef Py_ssize_t colon = start - 1
        cdef Py_ssize_t i = start
        if not kinds[data[i]] & NAME_START:
            return False
        while True:
            i += 1
            if kinds[data[i]] & NAME:
                continue
            if data[i] != ord(":"):
                break
            if colon > start or not kinds[data[i + 1]] & NAME_START:
                return False
            colon = i
        self._at, self._colon = i, colon
        return i - start <= self._name_bytes_max

    cdef int _read_reference(self) noexcept:
        """The code point of a reference to a character or a predefined entity, or -1."""
        cdef int found = read_reference(self._data, self._at)
        if found < 0:
            return -1
        self._at += found & 15
        return found >> 4

    cdef bint _read_line_end(self) except -1:
        """A carriage return, alone or with a line feed: one line feed of content."""
        cdef const unsigned char* data = self._data
        if data[self._at] != ord("\r"):
            return False
        self._at += 2 if data[self._at + 1] == ord("\n") else 1
        self._out.put_content(ord("\n"))
        return True

    cdef void _copy(self, int plain) noexcept:
        """Copy bytes that are plain to the content."""
        cdef const unsigned char* data = self._data
        cdef const unsigned char* kinds = self._kinds
        cdef Py_ssize_t i = self._at
        while kinds[data[i]] & plain:
            i += 1
        self._out.copy_content(data, self._at, i)
        self._at = i

    cdef bint _copy_to_end(self, int plain, unsigned char mark, int count) except -1:
        """Copy up to ``count`` marks and a ``>`` (a comment's, a CDATA section's) and step over."""
        cdef const unsigned char* data = self._data
        cdef unsigned char byte
        while True:
            self._copy(plain)
            byte = data[self._at]
            if byte == mark and (count == 1 or data[self._at + 1] == mark):
                if data[self._at + count] == ord(">"):
                    self._at += count + 1
                    return True
                if mark == ord("-"):
                    return False  # "--" within a comment
            if byte == ord("]") or byte == ord("-") or byte == ord("?"):
                self._copy_byte()
            elif not self._read_line_end():
                return False

    cdef void _copy_byte(self) noexcept:
        self._out.copy_content(self._data, self._at, self._at + 1)
        self._at += 1

    cdef bint _skip_space(self) noexcept:
        """Step over white space; whether there was any."""
        cdef const unsigned char* data = self._data
        cdef Py_ssize_t start = self._at
        # Only here the bytes may end without being malformed.
        while self._at < self._end and self._kinds[data[self._at]] & SPACE:
            self._at += 1
        return self._at > start


# -------------------------------------------------------------------------------------------------
# StreamSelection: what several takers keep of a message, written as a message for each.
#
# A taker takes elements in document order: one bare, with its attributes that are marked; or with
# all below it, as a *run* that is copied column by column, without a look at any value::
#
#     element   0:a  1:b  2:c  3:d  4:e          0:a  1:b  2:c  3:d
#     taken     BARE WHOLE          -     ->
#     parent    -1    0    1    2    0          -1    0    1    2
#
# A cut costs as much as it keeps, however large the message is.  Names that nothing is called
# any more leave the table where they are many; else it stays the same object, whose head in the
# binary forms is known.
#
# Whatever is taken has a parent that is taken bare, or stands in a run.  So no two texts ever
# become neighbours.


BARE = 0  # the element
VALUE = 1  # with all below it, but for attributes that are not marked
WHOLE = 2  # with all below it

_ROOM_KEPT_MAX = 1 << 20  # elements or attributes


cdef class StreamSelection:
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

    cpdef int begin(self, object stream) except -1:
        """Nothing is marked of a message."""
        cdef Py_ssize_t elements = len(stream.element_name)
        cdef Py_ssize_t attributes = len(stream.attribute_name)
        cdef Py_ssize_t place
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

    cpdef int begin_taker(self, unsigned long long taker) except -1:
        """Nothing is taken yet by this one."""
        self._taker = taker
        self._count = 0
        self.elements = 0
        self._attributes = 0
        self._attribute_bytes = 0
        self._contents = 0
        self._content_bytes = 0
        return 0

    cpdef int take(self, int element, int kind) except -1:
        """Behind all that was taken before."""
        cdef Py_ssize_t run = self._count
        cdef int first, last
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

    cpdef Py_ssize_t kept_bytes(self) except -1:
        """Bytes of the values that are taken."""
        return self._attribute_bytes + self._content_bytes

    cpdef int place_of(self, int element) except -1:
        """The number of an element that is taken in ``selected``."""
        cdef Py_ssize_t first = 0
        cdef Py_ssize_t last = self._count
        cdef Py_ssize_t middle
        while first < last:
            middle = (first + last) >> 1
            if self._first[middle] <= element:
                first = middle + 1
            else:
                last = middle
        return self._place[first - 1] + element - self._first[first - 1]

    cpdef object selected(self):
        """The message with what is taken; content outside the root element is not kept."""
        cdef Py_ssize_t elements = self.elements
        cdef Py_ssize_t attributes = self._attributes
        cdef Py_ssize_t contents = self._contents
        cdef Py_ssize_t values = self._attribute_bytes
        cdef Py_ssize_t starts = 4 * elements
        cdef Py_ssize_t names = starts + elements + 1
        cdef Py_ssize_t offsets = names + attributes
        cdef Py_ssize_t parents = offsets + attributes + 1
        cdef Py_ssize_t nexts = parents + contents
        cdef Py_ssize_t ends = nexts + contents
        cdef Py_ssize_t size = ends + contents + 1
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
        result.accepted = None
        if len(self._declaration_element):
            self._copy_declarations(result)
        return result

    # -- selected elements

    cdef int _count_attributes(self, int element, int last, int kind) except -1:
        cdef int first, attribute
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

    cdef int _count_all(self, int first, int last) noexcept:
        self._attributes += last - first
        self._attribute_bytes += self._attribute_offset[last] - self._attribute_offset[first]
        return 0

    # -- columns

    cdef int _copy_elements(self, Py_ssize_t elements) except -1:
        """Name, parent, depth and end, one behind the other."""
        cdef Py_ssize_t run
        cdef int old, place, shift
        cdef Py_ssize_t open_ = 0  # bare elements around
        cdef int parent = -1
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

    cdef int _copy_attributes(
        self, Py_ssize_t starts, Py_ssize_t names, Py_ssize_t offsets
    ) except -1:
        cdef Py_ssize_t run
        cdef int old, attribute, at, size
        cdef bint is_whole
        cdef int kept = 0
        cdef int values = 0
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

    cdef int _copy_content(
        self, Py_ssize_t parents, Py_ssize_t nexts, Py_ssize_t ends, Py_ssize_t values
    ) except -1:
        cdef Py_ssize_t run
        cdef int old, at, shift, moved, size
        cdef int kept = 0
        cdef int written = 0
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

    cdef object _used_names(self, Py_ssize_t elements, Py_ssize_t names, Py_ssize_t attributes):
        """Without those that are not used, if they are a quarter or more."""
        known = self._stream.names
        cdef Py_ssize_t count = len(known)
        cdef Py_ssize_t place
        cdef int used = 0
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

    cdef int _copy_declarations(self, object result) except -1:
        cdef Py_ssize_t run = 0
        cdef Py_ssize_t place
        cdef int element
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

    cdef int _runs_room(self, Py_ssize_t count) except -1:
        rooms = [array("i", bytes(4 * count)) for _ in range(8)]
        for room, old in zip(rooms, self._run_rooms if count > 64 else (), strict=False):
            room[: len(old)] = old
        self._run_rooms: list[array[int]] = rooms
        self._first, self._end, self._kind, self._place = rooms[:4]
        self._content_first, self._content_last, self._open_old, self._open_new = rooms[4:]
        return 0

    cdef int _make_room(self, Py_ssize_t numbers, Py_ssize_t kinds, Py_ssize_t octets) except -1:
        if numbers > len(self._numbers) or len(self._numbers) > 10 * _ROOM_KEPT_MAX >= numbers:
            self._numbers = array("i", bytes(4 * (numbers + numbers // 2)))
        if kinds > len(self._kinds):
            self._kinds = array("B", bytes(kinds + kinds // 2))
        if octets > len(self._octets) or len(self._octets) > 10 * _ROOM_KEPT_MAX >= octets:
            self._octets = array("B", bytes(octets + octets // 2))
        return 0


# -------------------------------------------------------------------------------------------------
# SubtreeWriter: elements of a message as XML, in one pass over the columns.
#
# All that is written of one message goes into one growing run of bytes: whole documents, what
# ``xml_writer`` copies, and results, which are pieces of it (yfilter/language/result_writer.py).
# Within a subtree every declaration means what it meant in the message, and one that repeats what
# is in force is left out; which declarations an element itself needs in a new place the caller
# says.
#
# ::
#
#     <a x="1">t<b/>u</a>       inside of a:  t<b/>u
#
# The forms of a name in a tag lie ready, one after the other: ``<a``, ``</a>``, `` a="``.

cdef enum:
    _SLACK = 8  # bytes behind the end: a word is written where only its first bytes count
    _ROOM = 8192  # to begin with


_ESCAPED = bytes(
    IN_VALUES * (octet in b'&<"\t\n\r') + IN_TEXT * (octet in b"&<>\r") for octet in range(63)
)


@lru_cache(maxsize=4_096)
def _forms(name: QualifiedName) -> bytes:
    label = str(name)
    return f'<{label}</{label}> {label}="'.encode()


cdef class SubtreeWriter:
    """Writes of one message; ``stream`` is that message, ``used`` how much is written."""

    def __init__(self, stream: ElementStream) -> None:
        self.stream = stream
        forms = list(map(_forms, stream.names))
        self._tag_start = array("i", accumulate(map(len, forms), initial=0))
        self._tags_octets = b"".join(forms) + bytes(_SLACK)
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

    cpdef bytes document(self):
        """The message without XML declaration; comments and processing instructions outside the
        root element stand on lines of their own."""
        cdef Py_ssize_t start = self.used
        cdef int content
        cdef int count = len(self._content_next)
        cdef int before = 0
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

    cpdef bytes inside(self, int element, int first, int last):
        """The bytes between the tags of an element with the content from first to last."""
        cdef Py_ssize_t start = self.used
        self._put_inside(element, first, last)
        return self.taken(start)

    cpdef bytes attributes(self, int element):
        """The attributes of an element as in its start tag, each with a space before it."""
        cdef Py_ssize_t start = self.used
        self._put_attributes(element)
        return self.taken(start)

    cpdef bytes taken(self, Py_ssize_t start):
        """The bytes written from a place on; the place is then free again."""
        self.used, start = start, self.used
        return bytes(self._data[self.used : start])

    cpdef bytes part(self, Py_ssize_t first, Py_ssize_t last):
        """The bytes written between two places."""
        return self._data[first:last]

    cpdef int put(self, bytes octets) except -1:
        """Bytes as they are."""
        cdef const unsigned char* data = octets
        return self._put_run(data, 0, len(octets))

    cpdef int put_again(self, Py_ssize_t first, Py_ssize_t size) except -1:
        """Write the bytes at an earlier place once more."""
        self._reserve(size)
        copy_run(self._data, self.used, self._data, first, size)
        self.used += size
        return 0

    cpdef int put_element(self, int element, bytes declared) except -1:
        """An element as a whole; ``declared`` is what its start tag declares."""
        cdef int first = self.first_content(element)
        cdef Py_ssize_t before
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

    cpdef int put_attribute(self, int attribute) except -1:
        """An attribute as in a start tag, with a space before it."""
        cdef int name = self.attribute_name[attribute]
        cdef int first = self._tag_start[name]
        cdef int last = self._tag_start[name + 1]
        self._put_tag(first + 2 * ((last - first - 7) // 3) + 4, last)
        self.put_value(attribute, IN_VALUES)
        return self._put_octet(34)

    cpdef int put_value(self, int attribute, int where) except -1:
        """The value of an attribute."""
        cdef int first = self._attribute_offset[attribute]
        cdef int last = self._attribute_offset[attribute + 1]
        return self._put_escaped(self._attribute_values, first, last, where)

    cpdef int put_text(self, int content, int where) except -1:
        """A text node."""
        cdef int first = self._content_offset[content]
        cdef int last = self._content_offset[content + 1]
        return self._put_escaped(self._content_values, first, last, where)

    cpdef int put_piece(self, int content) except -1:
        """A text node, comment or processing instruction."""
        cdef int kind = self.content_kind[content]
        cdef int first = self._content_offset[content]
        cdef int last = self._content_offset[content + 1]
        if kind == 0:
            return self._put_escaped(self._content_values, first, last, IN_TEXT)
        self.put(b"<!--" if kind == 1 else b"<?")
        self._put_run(self._content_values, first, last)
        return self.put(b"-->" if kind == 1 else b"?>")

    cpdef int put_string(self, int element, int where) except -1:
        """All text in the subtree, end to end."""
        cdef int first = self.first_content(element)
        cdef int content
        for content in range(first, self.end_of_content(element, first)):
            if self.content_kind[content] == 0:
                self.put_text(content, where)
        return 0

    cpdef int put_escaped(self, bytes octets, int where) except -1:
        """Any string."""
        cdef const unsigned char* data = octets
        return self._put_escaped(data, 0, len(octets), where)

    cpdef int put_name(self, int name, bint with_prefix) except -1:
        cdef int first = self._tag_start[name] + 1
        cdef int last = first + (self._tag_start[name + 1] - first - 6) // 3
        cdef int place
        if not with_prefix:
            for place in range(first, last):
                if self._tags[place] == 58:  # :
                    first = place + 1
                    break
        return self._put_run(self._tags, first, last)

    cpdef int first_content(self, int element) noexcept:
        """The first content of a subtree, if there is any."""
        return self._after(element + 1, 0)

    cpdef int end_of_content(self, int element, int first) noexcept:
        """One past the last content of a subtree whose first is known."""
        cdef int end = self.element_end[element]
        cdef int last = self._after(end, first)
        while (
            last < len(self._content_next)
            and self._content_next[last] == end
            and element <= self.content_parent[last] < end
        ):
            last += 1
        return last

    cpdef bint is_plain(self, int element) except -1:
        """Whether nothing is declared below an element."""
        if self._declaring < 0:
            return True
        declared = self.stream.declaration_element
        cdef int end = self.element_end[element]
        return bool(bisect_left(declared, element + 1) == bisect_left(declared, end))

    cdef list _declared_on_root(self):
        count = bisect_left(self.stream.declaration_element, 1)
        return self._declared[:count]

    cdef int _put_inside(self, int element, int first, int last) except -1:
        cdef int current
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

    cdef int _put_declarations(self, int element) except -1:
        declared = self.stream.declaration_element
        while self._next_declared < self._declaring and declared[self._next_declared] == element:
            self.put(self._declared[self._next_declared])
            self._next_declared += 1
        return 0

    cdef int _put_attributes(self, int element) except -1:
        cdef int attribute
        for attribute in range(self.attribute_start[element], self.attribute_start[element + 1]):
            self.put_attribute(attribute)
        return 0

    cdef int _put_content(self, int content) except -1:
        self._close_down_to(self.content_parent[content])
        if self._tag_open:
            self._put_octet(62)  # >
            self._tag_open = False
        return self.put_piece(content)

    cdef int _close_down_to(self, int parent) except -1:
        while self._open != parent:
            if self._tag_open:
                self._put_two(47, 62)  # />
                self._tag_open = False
            else:
                self._put_end(self._open)
            self._open = self._element_parent[self._open]
        return 0

    cdef int _put_start(self, int name) except -1:
        """``<name``"""
        cdef int first = self._tag_start[name]
        return self._put_tag(first, first + (self._tag_start[name + 1] - first - 7) // 3 + 1)

    cdef int _put_end(self, int element) except -1:
        """``</name>``"""
        cdef int name = self.element_name[element]
        cdef int first = self._tag_start[name]
        cdef int size = (self._tag_start[name + 1] - first - 7) // 3
        return self._put_tag(first + size + 1, first + 2 * size + 4)

    cdef int _put_tag(self, Py_ssize_t first, Py_ssize_t last) except -1:
        """A piece of a tag, which is short."""
        # PERF: a word at a time, for a call to copy costs more (benchmarks results).
        cdef Py_ssize_t used = self.used
        self._reserve(last - first)
        self.used += last - first
        while first < last:
            put_word(self._data, used, word_at(self._tags, first))
            used += 8
            first += 8
        return 0

    cdef int _put_escaped(
        self, const unsigned char* octets, Py_ssize_t first, Py_ssize_t last, int where
    ) except -1:
        """``where``: IN_VALUES or IN_TEXT."""
        # PERF: eight bytes at a time, for few of them are escaped (benchmarks results).
        cdef unsigned long long word, marks
        cdef int octet
        self._reserve(6 * (last - first))
        while first < last:
            if last - first >= 8:
                word = word_at(octets, first)
                put_word(self._data, self.used, word)
                marks = marks_in(word, 34) if where == IN_VALUES else marks_in_text(word)
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

    cdef int _put_reference(self, int octet) except -1:
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

    cdef int _put_run(
        self, const unsigned char* octets, Py_ssize_t first, Py_ssize_t last
    ) except -1:
        """As they are."""
        self._reserve(last - first)
        copy_run(self._data, self.used, octets, first, last - first)
        self.used += last - first
        return 0

    cdef int _put_octet(self, int octet) except -1:
        if self.used >= self._room:
            self._grow(1)
        self._data[self.used] = octet
        self.used += 1
        return 0

    cdef int _put_two(self, int octet, int other) except -1:
        self._put_octet(octet)
        return self._put_octet(other)

    cdef int _reserve(self, Py_ssize_t size) except -1:
        if self.used + size > self._room:
            self._grow(size)
        return 0

    cdef int _grow(self, Py_ssize_t size) except -1:
        self._room = self.used + size + self._room
        self._buffer += bytes(self._room + _SLACK - len(self._buffer))
        self._data = self._buffer
        return 0

    cdef int _after(self, int following, int first) noexcept:
        """The first content, from one on, that comes before an element or a later one."""
        cdef int last = len(self._content_next)
        cdef int middle
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
