"""BinaryReader: a binary form straight into the columns of an ElementStream (docs/formats.md).

Three passes, each over one run of bytes and without a Python object for an element or a value:
structure, attribute values, content.  The head, which gives names their meaning, is the same for
most messages of a source and is looked up (``wire_names``).

Nothing is trusted: every number is held against its bound before it is used, and before anything
grows.  Nothing is read beyond the run that it is in; a message that ends too early is refused.
"""

from __future__ import annotations

from array import array

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from formats.attribute_sets import AttributeSets
from formats.characters import is_processing_instruction
from formats.column_writer import ColumnWriter
from formats.element_stream import ElementStream
from formats.limits import MessageLimits
from formats.names import QualifiedName
from formats.value_reader import ValueReader
from formats.wire_bytes import WireBytes
from formats.wire_events import (
    AFTER,
    ATTRIBUTES,
    COMMENT,
    ELEMENT,
    END,
    INSTRUCTION,
    NUMBER_MAX,
    TEXT,
    WITH_TEXT,
)
from formats.wire_model import WireModel
from formats.wire_names import XML_BINDING, WireNames
from formats.wire_scope import WireScope

_NO_SET = -1
_NAMES_KEPT_MAX = 1 << 14  # scratch that is kept for the next message
_IDLE: list[BinaryReader] = []  # as many as there were readings at the same time


def read_binary(
    form: bytes, at: cython.Py_ssize_t, model: WireModel, limits: MessageLimits
) -> ElementStream:
    """The stream of the form whose head begins at ``at``; DecodeError."""
    reader: BinaryReader = _IDLE.pop() if _IDLE else BinaryReader()
    try:
        return reader.read(form, at, model, limits)
    finally:
        _IDLE.append(reader)


class BinaryReader:
    """One reading after the other."""

    def __init__(self) -> None:
        self._source = WireBytes()
        self._out = ColumnWriter()
        self._values = ValueReader(self._source)
        self._sets = AttributeSets(self._source)
        self._scope = WireScope(self._source)
        self._limits: MessageLimits | None = None
        self._message = 0
        self._grow_names(64)
        self._depth_room = 0
        self._reserve_depth(32)

    def read(
        self, form: bytes, at: cython.Py_ssize_t, model: WireModel, limits: MessageLimits
    ) -> ElementStream:
        """As ``read_binary``."""
        source: WireBytes = self._source
        out: ColumnWriter = self._out
        if limits is not self._limits:
            self._set_limits(limits)
        source.begin(form, at)
        self._model = model
        self._read_head(limits)
        bit_bytes: cython.Py_ssize_t = source.number()
        token_bytes: cython.Py_ssize_t = source.number()
        attribute_bytes: cython.Py_ssize_t = source.number()
        content_bytes: cython.Py_ssize_t = source.number()
        bits: cython.Py_ssize_t = source.at
        tokens: cython.Py_ssize_t = bits + bit_bytes
        attribute_codes: cython.Py_ssize_t = tokens + token_bytes
        content_codes: cython.Py_ssize_t = attribute_codes + attribute_bytes
        run: cython.Py_ssize_t = content_codes + content_bytes
        if run > source.size:
            source.refuse("truncated", "the message ends before its values")
        # Each has a code of a byte at least: no more of them can be meant.
        self._attributes_max = attribute_bytes
        self._contents_max = content_bytes
        self._begin()
        # Every event is a bit at least.
        elements_max: cython.Py_ssize_t = min(8 * bit_bytes, self._elements_max)
        out.reserve(
            elements_max,
            min(attribute_bytes, self._attributes_total_max),
            min(content_bytes, 8 * bit_bytes),
        )
        self._reserve_depth(min(elements_max, self._depth_max))
        source.at, source.stop = tokens, attribute_codes
        self._read_structure(bits, tokens)
        self._values.begin(model, run, self._written, self._expansion_max)
        source.at, source.stop = attribute_codes, content_codes
        attribute_values = self._values.read(out.attributes, out.attribute_offset)
        source.at, source.stop = content_codes, run
        content_values = self._values.read(out.contents, out.content_offset)
        self._check_content(content_values)
        if self._values.run != source.size:
            source.at = self._values.run
            source.refuse("trailing-bytes", "the message should end here")
        return out.finish_with(self._names_used, attribute_values, content_values)

    def _set_limits(self, limits: MessageLimits) -> None:
        self._limits = limits
        self._depth_max = min(limits.depth_max, NUMBER_MAX)
        self._elements_max = min(limits.elements_max, NUMBER_MAX // 2)
        self._attributes_each_max = limits.attributes_max
        self._attributes_total_max = min(limits.attributes_total_max, NUMBER_MAX // 2)
        self._names_max = limits.names_max
        self._expansion_max = min(limits.expansion_max, NUMBER_MAX // 2)

    def _read_head(self, limits: MessageLimits) -> None:
        source: WireBytes = self._source
        size: cython.Py_ssize_t = source.number()
        end: cython.Py_ssize_t = source.at + size
        if end > source.size:
            source.refuse("truncated", "the message ends inside its head")
        head: bytes = source.data[source.at : end]
        self._names = self._model.names_in(head, source.at, limits)
        source.at = end

    def _begin(self) -> None:
        """Scratch for a message with the names of the head."""
        model: WireModel = self._model
        count: cython.int = self._names.count
        if count == 0:
            self._source.refuse("bad-structure", "a message has a root element")
        if count > self._name_room or self._name_room > _NAMES_KEPT_MAX >= count:
            self._grow_names(count)
        model.expect(self._predicted, self._set_of, count)
        self._message += 1
        self._names_used: list[QualifiedName] = []
        self._written = 0
        self._sets.begin(model, self._names, self._attributes_each_max)
        self._scope.begin(self._names, self._attributes_each_max)
        self._out.begin(0)

    def _read_structure(  # noqa: PLR0915 - one loop over events, see PERF
        self, bits: cython.Py_ssize_t, stop: cython.Py_ssize_t
    ) -> None:
        """All events, of which the bits lie from ``bits`` to ``stop``."""
        # PERF: rows are set here and not by ColumnWriter, whose calls would take as long again
        # (python -m benchmarks formats: decode_over_own_parser).
        source: WireBytes = self._source
        out: ColumnWriter = self._out
        names: WireNames = self._names
        data: cython.p_const_uchar = source.data
        bit: cython.Py_ssize_t = 8 * bits
        context: cython.int = 0
        event: cython.int
        name: cython.int
        depth: cython.int = 0
        element: cython.int = 0
        content: cython.int = 0
        parent: cython.int = -1
        attribute_set: cython.int = _NO_SET
        after_text: cython.bint = False
        while True:
            if bit >= 8 * stop:
                source.refuse("truncated", "the bits end before the message does")
            if (data[bit >> 3] >> (bit & 7)) & 1:
                event = self._predicted[context]
            else:
                event = source.number()
                if event - ELEMENT >= names.count:
                    source.refuse("bad-structure", f"no event {event}")
                if event >= ELEMENT or event <= TEXT:
                    self._predicted[context] = event
            bit += 1
            if event >= ELEMENT:
                name = event - ELEMENT
                if (
                    element >= self._elements_max
                    or depth >= self._depth_max
                    or (depth == 0 and element > 0)
                ):
                    self._refuse_element(element, depth)
                if attribute_set == _NO_SET:
                    attribute_set = self._set_of[name]
                else:
                    self._set_of[name] = attribute_set
                self._open_name[depth] = name
                out.element_parent[element] = parent
                out.element_depth[element] = depth
                out.element_name[element] = self._start(name, element, attribute_set)
                parent = element
                depth += 1
                element += 1
                out.attribute_start[element] = out.attributes
                attribute_set = _NO_SET
                context = 4 * (name + 1)
                after_text = False
            elif TEXT <= event <= INSTRUCTION:
                if content >= self._contents_max:
                    source.refuse("bad-count", "more content than there are values")
                if event == TEXT:
                    if after_text or depth == 0:
                        source.refuse("bad-content", "text next to text or outside the root")
                    context |= WITH_TEXT
                after_text = event == TEXT
                out.content_kind[content] = event - TEXT
                out.content_parent[content] = parent
                out.content_next[content] = element
                content += 1
            elif event == END:
                if depth == 0:
                    break
                depth -= 1
                context = 4 * (self._open_name[depth] + 1) + AFTER
                if self._scope.undo > 0:
                    self._scope.close(parent)
                out.element_end[parent] = element
                parent = out.element_parent[parent]
                after_text = False
            elif event == ATTRIBUTES:
                if attribute_set != _NO_SET:
                    source.refuse("bad-structure", "the attributes of one element twice")
                attribute_set = self._sets.read()
                continue
            else:
                self._scope.announce(source.number())
                continue
            if attribute_set != _NO_SET or self._scope.announced > 0:
                source.refuse("bad-structure", "attributes or declarations without an element")
        out.elements = element
        out.contents = content
        self._check_end(bit, stop)

    def _check_end(self, bit: cython.Py_ssize_t, stop: cython.Py_ssize_t) -> None:
        source: WireBytes = self._source
        if self._out.elements == 0:
            source.refuse("bad-structure", "a message has a root element")
        if source.at != source.stop:
            source.refuse("trailing-bytes", "the structure should end here")
        if (bit + 7) >> 3 != stop or (bit & 7 and source.data[bit >> 3] >> (bit & 7)):
            source.at = bit >> 3
            source.refuse("trailing-bytes", "bits behind the last event")

    def _start(
        self, name: cython.int, element: cython.int, attribute_set: cython.int
    ) -> cython.int:
        """The start of an element: its attributes' names; returns its own name's number."""
        names: WireNames = self._names
        declared: cython.int = self._scope.announced
        if declared > 0:
            self._written += self._scope.open(element, self._out)
        if self._seen[name] != self._message:
            self._meet(name)
        binding: cython.int = names.binding[name]
        if self._scope.in_force[names.prefix[binding]] != binding:
            self._refuse_prefix(name)
        self._written += names.size[name]
        number: cython.int = self._number_of[name]
        if attribute_set > 0 or declared > 0:
            self._add_attributes(attribute_set, declared)
        if self._written > self._expansion_max:
            reason = f"names of more than {self._expansion_max} bytes"
            self._source.refuse("entity-expansion", reason)
        return number

    def _add_attributes(self, attribute_set: cython.int, declared: cython.int) -> None:
        """The names of the attributes of one element; their values come later."""
        out: ColumnWriter = self._out
        source: WireBytes = self._source
        names: WireNames = self._names
        i: cython.int
        name: cython.int
        binding: cython.int
        attribute: cython.int = out.attributes
        count: cython.int = self._sets.choose(attribute_set)
        total: cython.longlong = attribute + count
        if (
            count + declared > self._attributes_each_max
            or total + out.declarations > self._attributes_total_max
        ):
            source.refuse("too-many-attributes", f"{count} with {total} in the whole message")
        if total > self._attributes_max:
            source.refuse("bad-count", "more attributes than there are values")
        for i in range(self._sets.start, self._sets.end):
            name = self._sets.member(i)
            if self._seen[name] != self._message:
                self._meet(name)
            binding = names.binding[name]
            # The default namespace does not hold for attributes.
            if binding > XML_BINDING and (
                names.prefix[binding] == 0 or self._scope.in_force[names.prefix[binding]] != binding
            ):
                self._refuse_prefix(name)
            self._written += names.size[name]
            out.attribute_name[attribute] = self._number_of[name]
            attribute += 1
        out.attributes = attribute

    def _meet(self, name: cython.int) -> None:
        """The first use of a name in this message, where names count in that order."""
        if self._names.binding[name] < 0 and not self._names.resolve(name):
            reason = f"no prefix for the dictionary's name {name}"
            self._source.refuse("undeclared-prefix", reason)
        self._seen[name] = self._message
        self._number_of[name] = len(self._names_used)
        self._names_used.append(self._names.names[name])
        if len(self._names_used) > self._names_max:
            self._source.refuse("too-many-names", f"more than {self._names_max} names")

    def _refuse_element(self, element: cython.int, depth: cython.int) -> None:
        if depth == 0:
            self._source.refuse("bad-structure", "a second root element")
        if depth >= self._depth_max:
            self._source.refuse("too-deep", f"more than {self._depth_max} levels")
        self._source.refuse("too-many-elements", f"more than {self._elements_max} elements")

    def _refuse_prefix(self, name: cython.int) -> None:
        qualified = self._names.names[name]
        self._source.refuse(
            "undeclared-prefix",
            f"prefix {qualified.prefix!r} does not mean {qualified.namespace!r} here",
        )

    def _check_content(self, values: bytes) -> None:
        """Text is never empty; comments and instructions can be written as XML."""
        out: ColumnWriter = self._out
        i: cython.int
        for i in range(out.contents):
            if out.content_kind[i] + TEXT == TEXT:
                if out.content_offset[i] == out.content_offset[i + 1]:
                    self._source.refuse("bad-content", "an empty text node")
                continue
            value = values[out.content_offset[i] : out.content_offset[i + 1]]
            if not _can_be_written(out.content_kind[i] + TEXT, value.decode()):
                self._source.refuse("bad-content", "not a comment or instruction of XML")

    def _reserve_depth(self, depth: cython.Py_ssize_t) -> None:
        if depth > self._depth_room:
            self._depth_room = depth
            self._open_name = array("i", bytes(4 * depth))

    def _grow_names(self, count: cython.int) -> None:
        self._name_room = count
        self._predicted = array("i", bytes(16 * (count + 1)))
        self._set_of = array("i", bytes(4 * count))
        self._number_of = array("i", bytes(4 * count))
        self._seen = array("q", bytes(8 * count))


def _can_be_written(kind: int, value: str) -> bool:
    """Whether a value, whose characters are those of XML, can be a comment or instruction."""
    if kind == COMMENT:
        return not ("--" in value or value.endswith("-") or "\r" in value)
    target, space, data = value.partition(" ")
    return is_processing_instruction(target, data) and bool(space) == bool(data)
