"""WireModel: what both ends of a link expect of a message before its first byte (docs/formats.md).

The arrays behind a Dictionary, as the reader and the writer of the binary forms use them: which
*event* to expect in which *context*, which attributes to expect on which element, and the values
that have a number.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from formats.element_stream import ElementStream
from formats.grammar import Grammar
from formats.limits import MessageLimits
from formats.wire_events import ELEMENT, END, PROBES_MAX, TEXT
from formats.wire_head import WireHead
from formats.wire_names import WireNames
from formats.wire_words import WireWords

VALUE_BYTES_MAX = 256  # longer values are not looked up
_HEADS_MAX = 64  # heads remembered, and names in all of them
_HEAD_NAMES_MAX = 100_000
_HEAD_BYTES_MAX = 4_096


class WireModel:
    """One dictionary's expectations; shared by all messages, changed by none."""

    def __init__(self, strings: Sequence[str], values: Sequence[bytes], grammar: Grammar) -> None:
        self.words = WireWords(strings, grammar.names)
        self._set_predictions(grammar)
        self._set_attributes(grammar)
        self._set_values(values)
        self._read: dict[bytes, WireNames] = {}
        self._written: dict[object, WireHead] = {}  # by names and declarations

    def names_in(self, head: bytes, offset: cython.Py_ssize_t, limits: MessageLimits) -> WireNames:
        """What a head says, which begins at ``offset``; read once for all messages that have it."""
        names = self._read.get(head)
        if names is None or names.limits is not limits:
            names = WireNames(self.words, head, offset, limits)
            if len(head) <= _HEAD_BYTES_MAX:
                self._make_room(self._read, names.count)
                self._read[head] = names
        return names

    def head_of(self, stream: ElementStream) -> WireHead:
        """The head of a stream; made once for streams with the same names and declarations."""
        key = (tuple(stream.names), tuple(stream.declarations))
        head = self._written.get(key)
        if head is None:
            head = WireHead(stream, self.words)
            if len(head.form) <= _HEAD_BYTES_MAX:
                self._make_room(self._written, head.count)
                self._written[key] = head
        return head

    def _make_room(self, kept: dict[Any, Any], names: cython.int) -> None:
        if len(kept) >= min(_HEADS_MAX, _HEAD_NAMES_MAX // (names + 1) + 1):
            kept.clear()

    def expect(
        self, predicted: cython.int[::1], set_of: cython.int[::1], count: cython.int
    ) -> cython.int:
        """Begin a message of so many names: what is expected in each context and of each name."""
        i: cython.int
        known: cython.int = self.words.name_count
        for i in range(4 * (known + 1)):
            predicted[i] = self.predicted[i]
        for i in range(4 * (known + 1), 4 * (count + 1), 2):
            predicted[i] = TEXT
            predicted[i + 1] = END
        for i in range(known):
            set_of[i] = self.expected_set[i]
        for i in range(known, count):
            set_of[i] = 0
        return 0

    def find_value(
        self, data: cython.p_const_uchar, at: cython.Py_ssize_t, size: cython.Py_ssize_t
    ) -> cython.int:
        """The number of the value ``data[at:at + size]``, or -1."""
        _probe: cython.int
        i: cython.Py_ssize_t
        number: cython.int
        start: cython.Py_ssize_t
        if size > VALUE_BYTES_MAX or self.value_count == 0:
            return -1
        slot: cython.uint = value_hash(data, at, size) & self._value_mask
        for _probe in range(PROBES_MAX):
            number = self._value_slots[slot]
            if number < 0:
                return -1
            start = self.value_start[number]
            if self.value_start[number + 1] - start == size:
                for i in range(size):
                    if self.value_data[start + i] != data[at + i]:
                        break
                else:
                    return number
            slot = (slot + 1) & self._value_mask
        return -1

    def _set_predictions(self, grammar: Grammar) -> None:
        predicted = array("i", [grammar.root, END, END, END])
        for first, following in zip(grammar.first, grammar.following, strict=True):
            after_text = first if first >= ELEMENT else END
            predicted.extend((first, after_text, following, following))
        self.predicted = predicted

    def _set_attributes(self, grammar: Grammar) -> None:
        numbers: dict[tuple[int, ...], int] = {(): 0}
        expected = array("i")
        for attributes in grammar.attributes:
            expected.append(numbers.setdefault(attributes, len(numbers)))
        starts, members = array("i", [0]), array("i")
        for attributes in numbers:
            members.extend(attributes)
            starts.append(len(members))
        members.append(0)  # a view of nothing is not to be had
        expected.append(0)
        self.set_numbers = numbers
        self.set_count = len(numbers)
        self.expected_set = expected
        self.set_start, self.set_members = starts, members

    def _set_values(self, values: Sequence[bytes]) -> None:
        starts = array("i", [0, *accumulate(map(len, values))])
        joined = b"".join(values) + b"\0"
        size = 16
        while size < 2 * len(values):
            size *= 2
        slots = array("i", [-1]) * size
        for number, value in enumerate(values):
            slot: cython.uint = value_hash(value, 0, len(value)) & (size - 1)
            for _ in range(PROBES_MAX):
                if slots[slot] < 0:
                    slots[slot] = number
                    break
                slot = (slot + 1) & (size - 1)
        self.value_count = len(values)
        self.value_start = starts
        self._values = joined
        self.value_data = joined
        self._value_slots, self._value_mask = slots, size - 1


def value_hash(
    data: cython.p_const_uchar, at: cython.Py_ssize_t, size: cython.Py_ssize_t
) -> cython.uint:
    """A hash of a value's length, beginning and end; the same in every process."""
    i: cython.Py_ssize_t
    factor: cython.uint = 16_777_619
    mask: cython.uint = 0xFFFFFFFF
    hashed: cython.uint = 2_166_136_261
    hashed = ((hashed ^ cython.cast(cython.uint, size)) * factor) & mask
    for i in range(at, at + min(size, 6)):
        hashed = ((hashed ^ data[i]) * factor) & mask
    for i in range(at + max(size - 4, 6), at + size):
        hashed = ((hashed ^ data[i]) * factor) & mask
    return hashed ^ (hashed >> 15)
