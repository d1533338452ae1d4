"""BinaryWriter: an ElementStream as a binary form (docs/formats.md); the way back of
``binary_reader``.

Equal streams have equal bytes, in every process: names, sets of attributes and literals are
numbered in the order of their first use, and what is expected is what the reader expects there.
"""

from __future__ import annotations

from array import array

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

if cython.compiled:
    from cython.cimports.formats.columns import bytes_of, numbers_of
else:
    from formats.columns import bytes_of, numbers_of

from formats.element_stream import ElementStream
from formats.names import QualifiedName
from formats.value_writer import ValueWriter
from formats.wire_events import (
    AFTER,
    ATTRIBUTES,
    DECLARATION,
    ELEMENT,
    END,
    TEXT,
    WITH_TEXT,
)
from formats.wire_head import WireHead
from formats.wire_model import WireModel

_NAMES_KEPT_MAX = 1 << 14  # scratch that is kept for the next message
_BYTES_KEPT_MAX = 1 << 20
_NUMBER_BYTES = 5  # the longest number
_IDLE: list[BinaryWriter] = []  # as many as there were writings at the same time


def write_binary(stream: ElementStream, model: WireModel) -> bytes:
    """The form of a valid stream, from its head on."""
    writer: BinaryWriter = _IDLE.pop() if _IDLE else BinaryWriter()
    try:
        return writer.write(stream, model)
    finally:
        _IDLE.append(writer)


class BinaryWriter:
    """One writing after the other."""

    def __init__(self) -> None:
        self._values = ValueWriter()
        self._last_head: WireHead | None = None
        self._last_model: WireModel | None = None
        self._grow_names(64)
        self._grow_bytes(4096)
        self._open_names = array("i", bytes(4 * 32))
        self._open_name = self._open_names

    def write(self, stream: ElementStream, model: WireModel) -> bytes:
        """As ``write_binary``."""
        self._model = model
        self._head = self._find_head(stream)
        self._begin(stream)
        self._element_name = numbers_of(stream.element_name)
        self._element_end = numbers_of(stream.element_end)
        self._attribute_start = numbers_of(stream.attribute_start)
        self._attribute_name = numbers_of(stream.attribute_name)
        self._declaration_element = numbers_of(stream.declaration_element)
        self._declarations = len(stream.declarations)
        self._content_kind = bytes_of(stream.content_kind)
        self._content_next = numbers_of(stream.content_next)
        self._content_parent = numbers_of(stream.content_parent)
        self._write_structure(len(stream.element_name), len(stream.content_kind))
        bit_bytes: cython.Py_ssize_t = (self._bit + 7) >> 3
        token_bytes: cython.Py_ssize_t = self._token
        attribute_codes, attribute_run = self._values.write(
            model, stream.attribute_offset, stream.attribute_values
        )
        content_codes, content_run = self._values.write(
            model, stream.content_offset, stream.content_values
        )
        for size in (bit_bytes, token_bytes, len(attribute_codes), len(content_codes)):
            self._put(size)
        bits: cython.p_const_uchar = self._bit_buffer
        tokens: cython.p_const_uchar = self._token_buffer
        return b"".join(
            (
                self._head.form,
                tokens[token_bytes : self._token],
                bits[:bit_bytes],
                tokens[:token_bytes],
                attribute_codes,
                content_codes,
                attribute_run,
                content_run,
            )
        )

    def _find_head(self, stream: ElementStream) -> WireHead:
        """The head of the message before, where that has the same names; otherwise a new one."""
        i: cython.Py_ssize_t
        names: list[QualifiedName] = stream.names
        head = self._last_head
        if (
            head is not None
            and self._last_model is self._model
            and len(head.names) == len(names)
            and head.declarations == stream.declarations
        ):
            for i in range(len(names)):
                if head.names[i] is not names[i]:
                    break
            else:
                return head
        self._last_head = self._model.head_of(stream)
        self._last_model = self._model
        return self._last_head

    def _begin(self, stream: ElementStream) -> None:
        model: WireModel = self._model
        count: cython.int = self._head.count
        if count > self._name_room or self._name_room > _NAMES_KEPT_MAX >= count:
            self._grow_names(count)
        model.expect(self._predicted, self._set_of, count)
        # An element is at most four events of two numbers, beside its attributes' names and its
        # declarations; a piece of content is one.  Behind them come four sizes.
        elements: cython.Py_ssize_t = len(stream.element_name)
        contents: cython.Py_ssize_t = len(stream.content_kind)
        declarations: cython.Py_ssize_t = len(stream.declarations)
        attributes: cython.Py_ssize_t = len(stream.attribute_name)
        room: cython.Py_ssize_t = _NUMBER_BYTES * (
            5 * elements + attributes + contents + 2 * declarations + 12
        )
        if room > len(self._token_buffer) or len(self._token_buffer) > _BYTES_KEPT_MAX >= room:
            self._grow_bytes(room)
        self._bit = 0
        self._token = 0
        self._set_element: list[int] = []  # of the message's own sets: who had it first
        self._own_sets: dict[tuple[int, ...], int] = {}

    def _write_structure(self, elements: cython.int, contents: cython.int) -> None:
        number: cython.int[::1] = self._head.number
        context: cython.int = 0
        depth: cython.int = 0
        element: cython.int = 0
        content: cython.int = 0
        declaration: cython.int = 0
        parent: cython.int = -1
        name: cython.int
        kind: cython.int
        while True:
            # Content first: it belongs to the innermost open element, or another one ends before.
            if (
                content < contents
                and self._content_next[content] == element
                and self._content_parent[content] == parent
            ):
                kind = self._content_kind[content] + TEXT
                self._write_event(context, kind)
                if kind == TEXT:
                    context |= WITH_TEXT
                content += 1
            elif depth > 0 and self._element_end[parent] == element:
                self._write_event(context, END)
                depth -= 1
                context = 4 * (number[self._element_name[parent]] + 1) + AFTER
                parent = self._open_name[depth - 1] if depth > 0 else -1
            elif element == elements:
                self._write_event(context, END)
                break
            else:
                name = number[self._element_name[element]]
                while (
                    declaration < self._declarations
                    and self._declaration_element[declaration] == element
                ):
                    self._write_event(context, DECLARATION)
                    self._put(self._head.declared[declaration])
                    declaration += 1
                if not self._has_expected(name, element):
                    self._write_set(context, name, element)
                self._write_event(context, name + ELEMENT)
                if depth >= len(self._open_names):
                    self._open_names = self._open_names * 2
                    self._open_name = self._open_names
                self._open_name[depth] = element
                depth += 1
                parent = element
                element += 1
                context = 4 * (name + 1)

    def _write_event(self, context: cython.int, event: cython.int) -> None:
        bit: cython.Py_ssize_t = self._bit
        self._bit = bit + 1
        if bit & 7 == 0:
            self._bits[bit >> 3] = 0
        if self._predicted[context] == event:
            self._bits[bit >> 3] |= 1 << (bit & 7)
        else:
            self._put(event)
            if event >= ELEMENT or event <= TEXT:
                self._predicted[context] = event

    def _has_expected(self, name: cython.int, element: cython.int) -> cython.bint:
        """Whether an element has the attributes that are expected of its name, in that order."""
        model: WireModel = self._model
        number: cython.int[::1] = self._head.number
        i: cython.int
        first: cython.int = self._attribute_start[element]
        count: cython.int = self._attribute_start[element + 1] - first
        expected: cython.int = self._set_of[name]
        own: cython.int = expected - model.set_count
        start: cython.int
        if own < 0:
            start = model.set_start[expected]
            if model.set_start[expected + 1] - start != count:
                return False
            for i in range(count):
                if model.set_members[start + i] != number[self._attribute_name[first + i]]:
                    return False
            return True
        start = self._attribute_start[self._set_element[own]]
        if self._attribute_start[self._set_element[own] + 1] - start != count:
            return False
        for i in range(count):
            if self._attribute_name[start + i] != self._attribute_name[first + i]:
                return False
        return True

    def _write_set(self, context: cython.int, name: cython.int, element: cython.int) -> None:
        """The attributes of an element, which are expected from then on."""
        i: cython.int
        first: cython.int = self._attribute_start[element]
        end: cython.int = self._attribute_start[element + 1]
        members = tuple([self._head.number[self._attribute_name[i]] for i in range(first, end)])
        known = self._model.set_numbers.get(members)
        self._write_event(context, ATTRIBUTES)
        if known is None:
            known = self._own_sets.get(members)
        if known is not None:
            self._put(known)
        else:
            known = self._model.set_count + len(self._own_sets)
            self._own_sets[members] = known
            self._set_element.append(element)
            self._put(known)
            self._put(end - first)
            for i in range(first, end):
                self._put(self._head.number[self._attribute_name[i]])
        self._set_of[name] = known

    def _put(self, number: cython.int) -> None:
        while number >= 0x80:
            self._tokens[self._token] = number & 0x7F | 0x80
            self._token += 1
            number >>= 7
        self._tokens[self._token] = number
        self._token += 1

    def _grow_names(self, count: cython.int) -> None:
        self._name_room = count
        self._predicted = array("i", bytes(16 * (count + 1)))
        self._set_of = array("i", bytes(4 * count))

    def _grow_bytes(self, size: cython.Py_ssize_t) -> None:
        self._token_buffer = bytearray(max(size, 4096))
        self._bit_buffer = bytearray(max(size, 4096) // 8)
        self._tokens, self._bits = self._token_buffer, self._bit_buffer
