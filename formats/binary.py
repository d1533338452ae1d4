"""The binary and the dictionary wire form: the columns of an ElementStream, nothing parsed on
receipt.

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

The dictionary form has its own magic, then the version of a Dictionary.  String numbers begin with
the dictionary's strings, so that only new ones are sent; before each lengths column of values
stands one that says which values are the dictionary's (0: literal, otherwise 1 + its number), and
only literals have a length and bytes.

docs/formats.md gives the layout to the byte, with test vectors.  Decoding trusts nothing: see
``decode_binary``.
"""

from __future__ import annotations

from array import array
from itertools import accumulate, pairwise
from typing import NoReturn

from formats.binary_encoder import DICTIONARY_MAGIC, MAGIC
from formats.columns import (
    NUMBER_MAX,
    read_entries,
    width_of,
)
from formats.dictionary import (
    ONLY_EMPTY,
    VERSION_BYTES,
    Dictionary,
    DictionaryLookup,
)
from formats.element_stream import ContentKind, ElementStream
from formats.errors import DecodeError
from formats.limits import DEFAULT_LIMITS, MessageLimits
from formats.names import QualifiedName
from formats.stream_checks import InvalidStreamError, check_stream


def decode_binary(data: bytes, limits: MessageLimits = DEFAULT_LIMITS) -> ElementStream:
    """The stream of a binary form, or DecodeError.

    Whatever the bytes are, the result is a stream that satisfies every invariant of ElementStream
    and that ``to_text`` writes as a well-formed document, or an error; time and memory are linear
    in ``len(data)``.

    Codes: ``bad-magic``, ``truncated``, ``trailing-bytes``, ``bad-count``, ``bad-column``,
    ``bad-number``, ``bad-string``, ``bad-structure``, those of ``stream_checks`` and those of
    MessageLimits.
    """
    _check_head(data, MAGIC, limits)
    return _Decoder(data, len(MAGIC), None).decode(limits)


def decode_dictionary(
    data: bytes,
    limits: MessageLimits = DEFAULT_LIMITS,
    dictionaries: DictionaryLookup = ONLY_EMPTY,
) -> ElementStream:
    """The stream of a dictionary form, or DecodeError; all as for ``decode_binary``.

    One more code: ``unknown-dictionary``.
    """
    _check_head(data, DICTIONARY_MAGIC, limits)
    start = len(DICTIONARY_MAGIC)
    version = data[start : start + VERSION_BYTES]
    if len(version) < VERSION_BYTES:
        raise DecodeError("truncated", "the message ends inside its dictionary's version", start)
    dictionary = dictionaries(version)
    if dictionary is None:
        raise DecodeError("unknown-dictionary", f"no dictionary has version {version.hex()}", start)
    return _Decoder(data, start + VERSION_BYTES, dictionary).decode(limits)


def _check_head(data: bytes, magic: bytes, limits: MessageLimits) -> None:
    if len(data) > limits.bytes_max:
        raise DecodeError(
            "too-large", f"the message has {len(data)} bytes; at most {limits.bytes_max} allowed"
        )
    if data[: len(magic)] != magic:
        raise DecodeError("bad-magic", f"expected {magic!r}, found {data[: len(magic)]!r}")


class _Decoder:
    """One decoding: the sections in the order in which they come."""

    def __init__(self, data: bytes, start: int, dictionary: Dictionary | None) -> None:
        self._data = data
        self._offset = start
        self._dictionary = dictionary
        self._stream = ElementStream()
        # For the place of an error: column -> offset of its first entry, bytes per entry.
        self._places: dict[str, tuple[int, int]] = {}

    def decode(self, limits: MessageLimits) -> ElementStream:
        counts = [self._count() for _ in range(7)]
        for count in counts:
            # Every entry of every table takes at least a byte in a valid message, so that a
            # short message cannot ask for much memory.
            if count > len(self._data) - self._offset:
                self._refuse("bad-count", f"{count} entries do not fit into the message")
        strings, bindings, names, elements, attributes, declarations, contents = counts
        table = self._read_names(strings, bindings, names)
        self._read_elements(elements, attributes)
        self._read_attributes(attributes, limits)
        self._read_declarations(declarations, table)
        self._read_content(contents, limits)
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
        literals = self._strings(strings)
        known = self._dictionary.strings if self._dictionary else ()
        split, total = len(known), len(known) + strings

        def text(number: int) -> str:
            return known[number] if number < split else literals[number - split]

        prefixes = self._column("binding_prefix", bindings, total)
        namespaces = self._column("binding_namespace", bindings, total)
        table = [(text(p), text(n)) for p, n in zip(prefixes, namespaces, strict=True)]
        bound = self._column("names", names, bindings)
        locals_ = self._column("name_local", names, total)
        self._stream.names = [
            QualifiedName(*table[binding], text(local))
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

    def _read_attributes(self, attributes: int, limits: MessageLimits) -> None:
        stream = self._stream
        stream.attribute_name = array(
            "i", self._column("attribute_name", attributes, len(stream.names))
        )
        offsets, run = self._values("attribute", attributes, limits)
        stream.attribute_offset, stream.attribute_values = array("i", offsets), run

    def _read_declarations(self, count: int, table: list[tuple[str, str]]) -> None:
        stream = self._stream
        deltas = self._column("declaration_element", count)
        elements = self._sums("declaration_element", deltas)[1:]
        if elements and elements[-1] >= len(stream):
            self._refuse_in("declaration_element", count - 1, f"no element {elements[-1]}")
        stream.declaration_element = array("i", elements)
        bound = self._column("declarations", count, len(table))
        stream.declarations = [table[binding] for binding in bound]

    def _read_content(self, count: int, limits: MessageLimits) -> None:
        stream = self._stream
        stream.content_kind = array("B", self._column("content_kind", count, len(ContentKind)))
        deltas = self._column("content_next", count)
        nexts = self._sums("content_next", deltas)[1:]
        if nexts and nexts[-1] > len(stream):
            self._refuse_in("content_next", count - 1, f"no element {nexts[-1]}")
        stream.content_next = array("i", nexts)
        depths = self._column("content_depth", count)
        stream.content_parent = array("i", self._content_parents(nexts, depths))
        offsets, run = self._values("content", count, limits)
        stream.content_offset, stream.content_values = array("i", offsets), run

    def _values(self, kind: str, count: int, limits: MessageLimits) -> tuple[list[int], bytes]:
        """Offsets and run of values; those that are the dictionary's are filled in."""
        known = self._dictionary.values if self._dictionary else ()
        numbers: list[int] = []
        if self._dictionary:
            numbers = self._column(f"{kind}_word", count, len(known) + 1)
        literal_count = numbers.count(0) if numbers else count
        ends = self._ends(f"{kind}_length", literal_count)
        start = self._offset
        self._places[f"{kind}_values"] = (start, 1)
        run = self._run(ends[-1])
        if literal_count == count:
            return ends, run
        self._places[f"{kind}_values"] = (start, 0)  # numbers of bytes are not those of the wire
        literals = pairwise(ends)
        spans = [(0, 0) if number else next(literals) for number in numbers]
        lengths = [
            len(known[number - 1]) if number else last - first
            for number, (first, last) in zip(numbers, spans, strict=True)
        ]
        # A number may stand for many bytes; they are counted before they are made.
        if sum(lengths) > limits.expansion_max:
            reason = f"{sum(lengths)} bytes of values, at most {limits.expansion_max} are allowed"
            self._refuse("entity-expansion", reason, start)
        filled = [
            known[number - 1] if number else run[first:last]
            for number, (first, last) in zip(numbers, spans, strict=True)
        ]
        return list(accumulate(lengths, initial=0)), b"".join(filled)

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
        if value > NUMBER_MAX or (byte == 0 and shift > 7):
            self._refuse("bad-number", f"{value} is too large or not in its shortest form")
        return value

    def _column(self, name: str, count: int, bound: int = NUMBER_MAX + 1) -> list[int]:
        """``count`` numbers, all below ``bound``."""
        width = self._run(1)[0]
        if width not in {0, 1, 2, 4}:
            self._refuse("bad-column", f"width {width}; expected 0, 1, 2 or 4", self._offset - 1)
        self._places[name] = (self._offset, width)
        run = self._run(count * width)
        values = read_entries(run, width) if width else [0] * count
        highest = max(values, default=0)
        if count and highest >= bound:
            index = values.index(highest)
            self._refuse_in(name, index, f"{name} {highest}, expected less than {bound}")
        if width_of(highest) != width:
            self._refuse_in(name, 0, f"{name} in {width} bytes per entry, {width_of(highest)} do")
        return values

    def _sums(self, name: str, deltas: list[int]) -> list[int]:
        """0 and the running sums, one more than deltas."""
        sums = list(accumulate(deltas, initial=0))
        if sums[-1] > NUMBER_MAX:
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
