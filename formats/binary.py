"""The binary wire form: the columns of an ElementStream, nothing parsed on receipt.

The paper's element stream format on the wire (section 4.3.2).  What can be derived (parents, ends,
offsets) is not sent; every column is sent in the narrowest width that holds it.

::

    magic "ONX" 01
    counts    S strings, B bindings, N names, E elements, A attributes, D declarations,
              C pieces of content                                        (7 varints)
    strings   lengths [S], bytes             prefixes, namespaces, local names, each once
    bindings  prefix [B], namespace [B]      string numbers: "this prefix means that namespace"
    names     binding [N], local [N]
    elements  name [E], depth [E], attribute count [E]
    attributes   name [A], length [A], bytes
    declarations element delta [D], binding [D]
    content   kind [C], next delta [C], depth [C], length [C], bytes

    column    width (0, 1, 2 or 4) and that many bytes per entry, little-endian

docs/formats.md gives the layout to the byte, with test vectors.  Decoding trusts nothing: see
``decode_binary``.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable
from itertools import accumulate, pairwise
from typing import NoReturn, TypeVar

from formats.element_stream import ContentKind, ElementStream
from formats.errors import DecodeError
from formats.limits import DEFAULT_LIMITS, MessageLimits
from formats.names import QualifiedName
from formats.stream_checks import InvalidStreamError, check_stream

MAGIC = b"ONX\x01"
_NUMBER_MAX = 2**31 - 1  # what array('i') holds
_Key = TypeVar("_Key")
_TYPECODES = {1: "B", 2: "H", 4: "I"}


def encode_binary(stream: ElementStream) -> bytes:
    """The wire form of a valid stream; equal streams have equal bytes."""
    strings: dict[str, int] = {}
    bindings: dict[tuple[str, str], int] = {}
    name_binding = [_number((n.prefix, n.namespace), bindings) for n in stream.names]
    declaration_binding = [_number(pair, bindings) for pair in stream.declarations]
    prefixes = [_number(prefix, strings) for prefix, _ in bindings]
    namespaces = [_number(namespace, strings) for _, namespace in bindings]
    locals_ = [_number(name.local, strings) for name in stream.names]
    encoded = [string.encode() for string in strings]
    elements, contents = len(stream), len(stream.content_kind)
    counts = (
        len(strings),
        len(bindings),
        len(stream.names),
        elements,
        len(stream.attribute_name),
        len(stream.declarations),
        contents,
    )
    depth = stream.element_depth
    return b"".join(
        (
            MAGIC,
            *map(_varint, counts),
            _column(map(len, encoded)),
            *encoded,
            _column(prefixes),
            _column(namespaces),
            _column(name_binding),
            _column(locals_),
            _column(stream.element_name),
            _column(depth),
            _column(_differences(stream.attribute_start)),
            _column(stream.attribute_name),
            _column(_differences(stream.attribute_offset)),
            stream.attribute_values,
            _column(_differences([0, *stream.declaration_element])),
            _column(declaration_binding),
            _column(stream.content_kind),
            _column(_differences([0, *stream.content_next])),
            _column(0 if parent < 0 else depth[parent] + 1 for parent in stream.content_parent),
            _column(_differences(stream.content_offset)),
            stream.content_values,
        )
    )


def decode_binary(data: bytes, limits: MessageLimits = DEFAULT_LIMITS) -> ElementStream:
    """The stream of a wire form, or DecodeError.

    Whatever the bytes are, the result is a stream that satisfies every invariant of ElementStream
    and that ``to_text`` writes as a well-formed document, or an error; time and memory are linear
    in ``len(data)``.

    Codes: ``bad-magic``, ``truncated``, ``trailing-bytes``, ``bad-count``, ``bad-column``,
    ``bad-number``, ``bad-string``, ``bad-structure``, those of ``stream_checks`` and those of
    MessageLimits.
    """
    if len(data) > limits.bytes_max:
        raise DecodeError(
            "too-large", f"the message has {len(data)} bytes; at most {limits.bytes_max} allowed"
        )
    return _Decoder(data).decode(limits)


class _Decoder:
    """One decoding: the sections in the order in which they come."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._offset = 0
        self._stream = ElementStream()
        # For the place of an error: column -> offset of its first entry, bytes per entry.
        self._places: dict[str, tuple[int, int]] = {}

    def decode(self, limits: MessageLimits) -> ElementStream:
        if self._data[: len(MAGIC)] != MAGIC:
            self._refuse("bad-magic", f"expected {MAGIC!r}, found {self._data[:4]!r}", 0)
        self._offset = len(MAGIC)
        counts = [self._count() for _ in range(7)]
        for count in counts:
            # Every entry of every table takes at least a byte in a valid message, so that a
            # short message cannot ask for much memory.
            if count > len(self._data) - self._offset:
                self._refuse("bad-count", f"{count} entries do not fit into the message")
        strings, bindings, names, elements, attributes, declarations, contents = counts
        table = self._read_names(strings, bindings, names)
        self._read_elements(elements, attributes)
        self._read_attributes(attributes)
        self._read_declarations(declarations, table)
        self._read_content(contents)
        if self._offset != len(self._data):
            self._refuse("trailing-bytes", "the message should end here")
        try:
            check_stream(self._stream, limits)
        except InvalidStreamError as error:
            start, width = self._places[error.column]
            raise DecodeError(error.code, error.reason, start + error.index * width) from None
        return self._stream

    def _read_names(self, strings: int, bindings: int, names: int) -> list[tuple[str, str]]:
        """Fill ``names``; returns the bindings as (prefix, namespace)."""
        texts = self._strings(strings)
        prefixes = self._column("binding_prefix", bindings, strings)
        namespaces = self._column("binding_namespace", bindings, strings)
        table = [(texts[p], texts[n]) for p, n in zip(prefixes, namespaces, strict=True)]
        bound = self._column("names", names, bindings)
        locals_ = self._column("name_local", names, strings)
        self._stream.names = [
            QualifiedName(*table[binding], texts[local])
            for binding, local in zip(bound, locals_, strict=True)
        ]
        return table

    def _strings(self, count: int) -> list[str]:
        ends = self._ends("strings", count)
        start = self._offset
        run = self._run(ends[-1])
        try:
            return [run[first:last].decode() for first, last in pairwise(ends)]
        except UnicodeDecodeError:
            self._refuse("bad-string", "a string is not UTF-8", start)

    def _read_elements(self, elements: int, attributes: int) -> None:
        stream = self._stream
        if not elements:
            self._refuse("bad-structure", "a message has a root element")
        stream.element_name = array("i", self._column("element_name", elements, len(stream.names)))
        depths = self._column("element_depth", elements)
        stream.element_depth = array("i", depths)
        counts = self._column("attribute_start", elements)
        stream.attribute_start = array("i", self._sums("attribute_start", counts))
        if stream.attribute_start[-1] != attributes:
            self._refuse_in(
                "attribute_start",
                0,
                f"{stream.attribute_start[-1]} attributes on elements, {attributes} in all",
            )
        parents, ends = [-1] * elements, [elements] * elements
        path: list[int] = []  # the open elements
        for element, depth in enumerate(depths):
            if depth > len(path) or (depth == 0) != (element == 0):
                self._refuse_in("element_depth", element, f"depth {depth} after {len(path) - 1}")
            while len(path) > depth:
                ends[path.pop()] = element
            if path:
                parents[element] = path[-1]
            path.append(element)
        stream.element_parent, stream.element_end = array("i", parents), array("i", ends)

    def _read_attributes(self, attributes: int) -> None:
        stream = self._stream
        stream.attribute_name = array(
            "i", self._column("attribute_name", attributes, len(stream.names))
        )
        ends = self._ends("attribute_length", attributes)
        stream.attribute_offset = array("i", ends)
        self._places["attribute_values"] = (self._offset, 1)
        stream.attribute_values = self._run(ends[-1])

    def _read_declarations(self, count: int, table: list[tuple[str, str]]) -> None:
        stream = self._stream
        deltas = self._column("declaration_element", count)
        elements = self._sums("declaration_element", deltas)[1:]
        if elements and elements[-1] >= len(stream):
            self._refuse_in("declaration_element", count - 1, f"no element {elements[-1]}")
        stream.declaration_element = array("i", elements)
        bound = self._column("declarations", count, len(table))
        stream.declarations = [table[binding] for binding in bound]

    def _read_content(self, count: int) -> None:
        stream = self._stream
        stream.content_kind = array("B", self._column("content_kind", count, len(ContentKind)))
        deltas = self._column("content_next", count)
        nexts = self._sums("content_next", deltas)[1:]
        if nexts and nexts[-1] > len(stream):
            self._refuse_in("content_next", count - 1, f"no element {nexts[-1]}")
        stream.content_next = array("i", nexts)
        depths = self._column("content_depth", count)
        stream.content_parent = array("i", self._content_parents(nexts, depths))
        ends = self._ends("content_length", count)
        stream.content_offset = array("i", ends)
        self._places["content_values"] = (self._offset, 1)
        stream.content_values = self._run(ends[-1])

    def _content_parents(self, nexts: list[int], depths: list[int]) -> list[int]:
        """The parent of each piece: the element at its depth that is open before ``next``.

        After element ``next - 1`` started, elements can only be closed until ``next`` starts.
        """
        element_depth = self._stream.element_depth
        parents = []
        path: list[int] = []  # element ``started`` - 1 and its ancestors
        started = 0
        for content, (following, depth) in enumerate(zip(nexts, depths, strict=True)):
            while started < following:
                del path[element_depth[started] :]
                path.append(started)
                started += 1
            lowest = element_depth[following] if following < len(element_depth) else 0
            if not lowest <= depth <= len(path):
                self._refuse_in(
                    "content_depth", content, f"depth {depth}, expected {lowest} to {len(path)}"
                )
            del path[depth:]
            parents.append(path[-1] if path else -1)
        return parents

    def _count(self) -> int:
        """A varint: seven bits per byte, lowest first, in as few bytes as possible."""
        value = shift = 0
        while True:
            if self._offset >= len(self._data):
                self._refuse("truncated", "the message ends inside its counts")
            byte = self._data[self._offset]
            self._offset += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift >= 35:
                self._refuse("bad-number", "a count of more than five bytes", self._offset - 1)
        if value > _NUMBER_MAX or (byte == 0 and shift > 7):
            self._refuse("bad-number", f"{value} is too large or not in its shortest form")
        return value

    def _column(self, name: str, count: int, bound: int = _NUMBER_MAX + 1) -> list[int]:
        """``count`` numbers, all below ``bound``."""
        width = self._run(1)[0]
        if width not in {0, 1, 2, 4}:
            self._refuse("bad-column", f"width {width}; expected 0, 1, 2 or 4", self._offset - 1)
        self._places[name] = (self._offset, width)
        run = self._run(count * width)
        if width == 0:
            values = [0] * count
        else:
            entries = array(_TYPECODES[width], run)
            if sys.byteorder == "big":
                entries.byteswap()
            values = entries.tolist()
        highest = max(values, default=0)
        if highest >= bound or (count and not bound):
            index = values.index(highest)
            self._refuse_in(name, index, f"{name} {highest}, expected less than {bound}")
        if _width(highest) != width:
            self._refuse_in(name, 0, f"{name} in {width} bytes per entry, {_width(highest)} do")
        return values

    def _sums(self, name: str, deltas: list[int]) -> list[int]:
        """0 and the running sums, one more than deltas."""
        sums = list(accumulate(deltas, initial=0))
        if sums[-1] > _NUMBER_MAX:
            self._refuse_in(name, len(deltas) - 1, f"{name} adds up to {sums[-1]}")
        return sums

    def _ends(self, name: str, count: int) -> list[int]:
        return self._sums(name, self._column(name, count))

    def _run(self, size: int) -> bytes:
        start, end = self._offset, self._offset + size
        if end > len(self._data):
            self._refuse("truncated", f"{size} bytes expected, {len(self._data) - start} left")
        self._offset = end
        return self._data[start:end]

    def _refuse(self, code: str, reason: str, offset: int = -1) -> NoReturn:
        raise DecodeError(code, reason, self._offset if offset < 0 else offset)

    def _refuse_in(self, column: str, index: int, reason: str) -> NoReturn:
        start, width = self._places[column]
        raise DecodeError("bad-structure", reason, start + index * width)


def _number(key: _Key, numbers: dict[_Key, int]) -> int:
    """The number of a key, the next free one when it is new."""
    return numbers.setdefault(key, len(numbers))


def _differences(values: Iterable[int]) -> list[int]:
    return [after - before for before, after in pairwise(values)]


def _width(highest: int) -> int:
    if highest < 0x100:
        return 1 if highest else 0
    return 2 if highest < 0x10000 else 4


def _column(values: Iterable[int]) -> bytes:
    entries = list(values)
    width = _width(max(entries, default=0))
    if not width:
        return b"\x00"
    column = array(_TYPECODES[width], entries)
    if sys.byteorder == "big":
        column.byteswap()
    return bytes((width,)) + column.tobytes()


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
