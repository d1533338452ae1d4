"""Scanner: the ordinary XML message straight into the columns of an ElementStream.

Most messages are well-formed UTF-8 with elements, attributes, namespaces, text, CDATA sections,
comments and processing instructions.  The scanner reads these in one pass, without a Python object
for an element or a value.  Whatever else it meets (a DOCTYPE, another encoding, a name beyond
ASCII, anything malformed, in doubt or beyond a limit) it gives back: expat reads the message again
(``text``).  So no refusal is the scanner's, and what it accepts is what expat makes of it.

Each ``_read`` method stands on the first byte of what it reads and leaves ``_at`` behind it; it
returns False for "not ordinary".  No method steps over a byte it has not looked at: compiled, the
end of the bytes is a NUL, which nothing accepts; uncompiled, reading beyond it is an IndexError.

Columns are written by a ColumnWriter, names and namespaces go through a NameTable; both live across
messages.  A start tag is read in two steps, because a prefix may be declared after it is used:
first all attributes as they stand, then what their names mean.
"""

from __future__ import annotations

from array import array

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from formats.byte_kinds import (
    BYTE_KINDS,
    CDATA,
    COMMENT,
    DOUBLE_QUOTED,
    NAME,
    NAME_START,
    SINGLE_QUOTED,
    SPACE,
    TEXT,
)
from formats.characters import UTF_8_DECLARATION, is_utf_8
from formats.column_writer import ColumnWriter
from formats.element_stream import ElementStream
from formats.limits import MessageLimits
from formats.name_table import NO_NAMESPACE, NameTable
from formats.namespace_scope import NamespaceScope
from formats.references import read_reference

if cython.compiled:
    from cython.cimports.formats.words import first_bytes, is_ascii, word_at
else:
    from formats.words import first_bytes, is_ascii, word_at

_DEPTH_MAX = 1024  # elements open at a time
_ATTRIBUTES_MAX = 1024  # attributes of an element

COMPILED = cython.compiled
_IDLE: list[Scanner] = []  # as many as there were scans at the same time


def scan(data: bytes, limits: MessageLimits) -> ElementStream | None:
    """The element stream of an ordinary message, or None: then it is for expat to read."""
    scanner = _IDLE.pop() if _IDLE else Scanner()
    stream = scanner.scan(data, limits)
    _IDLE.append(scanner)
    return stream


class Scanner:
    """One scan after the other."""

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

    def scan(self, data: bytes, limits: MessageLimits) -> ElementStream | None:
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

    def _set_limits(self, limits: MessageLimits) -> None:
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

    def _skip_prolog(self) -> None:
        """Step over byte order mark and XML declaration."""
        data = self._message
        self._at = 3 if data.startswith(b"\xef\xbb\xbf") else 0
        if data.startswith(self._xml_declaration, self._at):
            self._at += len(self._xml_declaration)
        elif found := UTF_8_DECLARATION.match(data, self._at):
            self._at = found.end()
            if self._at < 200:
                self._xml_declaration = found[0]

    def _read_document(self) -> cython.bint:
        data: cython.p_const_uchar = self._data
        byte: cython.uchar
        ok: cython.bint
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

    def _read_text(self) -> cython.bint:
        data: cython.p_const_uchar = self._data
        byte: cython.uchar
        code: cython.int
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

    def _read_cdata(self) -> cython.bint:
        if self._out.depth == 0 or not self._message.startswith(b"<![CDATA[", self._at):
            return False
        self._at += 9
        return self._copy_to_end(CDATA, ord("]"), 2)

    def _read_comment(self) -> cython.bint:
        if not self._message.startswith(b"<!--", self._at):
            return False
        self._at += 4
        self._out.close_text()
        if not self._copy_to_end(COMMENT, ord("-"), 2):
            return False
        self._out.close_content(1)  # ContentKind.COMMENT
        return True

    def _read_instruction(self) -> cython.bint:
        data: cython.p_const_uchar = self._data
        start: cython.Py_ssize_t = self._at + 2
        self._at = start
        self._out.close_text()
        if not self._read_name() or self._colon > start:
            return False
        if data[start : self._at].lower() == b"xml":
            return False
        self._out.copy_content(data, start, self._at)
        spaced: cython.bint = self._skip_space()
        if data[self._at] != ord("?") or data[self._at + 1] != ord(">"):
            if not spaced:
                return False
            self._out.put_content(ord(" "))
        if not self._copy_to_end(COMMENT, ord("?"), 1):
            return False
        self._out.close_content(2)  # ContentKind.PROCESSING_INSTRUCTION
        return True

    def _read_end_tag(self) -> cython.bint:
        data: cython.p_const_uchar = self._data
        i: cython.Py_ssize_t
        depth: cython.int = self._out.depth - 1
        if depth < 0:
            return False
        start: cython.Py_ssize_t = self._open_at[depth]
        length: cython.Py_ssize_t = self._open_end[depth] - start
        at: cython.Py_ssize_t = self._at + 2
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

    def _read_start_tag(self) -> cython.bint:
        data: cython.p_const_uchar = self._data
        byte: cython.uchar
        depth: cython.int = self._out.depth
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
        colon: cython.Py_ssize_t = self._colon
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

    def _close_element(self) -> None:
        if self._scope.size:
            self._scope.close(self._out.parent)
        self._out.close_element()

    def _read_attribute(self) -> cython.bint:
        data: cython.p_const_uchar = self._data
        quote: cython.uchar
        start: cython.Py_ssize_t = self._at
        attribute: cython.int = self._out.attributes - self._first_attribute
        if attribute >= self._attributes_max or not self._read_name():
            return False
        end: cython.Py_ssize_t = self._at
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

    def _read_value(self, quote: cython.uchar, plain: cython.int) -> cython.bint:
        """An attribute's value up to its closing quote, and that."""
        data: cython.p_const_uchar = self._data
        kinds: cython.p_const_uchar = self._kinds
        byte: cython.uchar
        code: cython.int
        i: cython.Py_ssize_t
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

    def _declare(self, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
        """The attribute ``xmlns`` or ``xmlns:p`` at a place, whose value was read last."""
        data: cython.p_const_uchar = self._data
        prefix_at: cython.Py_ssize_t = start + 6 if end > start + 5 else end
        prefix: bytes = data[prefix_at:end]
        namespace: bytes = self._out.take_value()
        if len(namespace) > self._namespace_bytes_max:
            return False
        binding: cython.int = self._names.bind(prefix, namespace)
        if binding < 0 or not self._scope.declare(data, prefix_at, end, self._out.parent, binding):
            return False
        self._out.declare(self._names.declaration(binding))
        return True

    def _resolve_names(self, depth: cython.int, colon: cython.Py_ssize_t) -> cython.bint:
        """The numbers of the names of the start tag at a depth, read so far."""
        i: cython.int
        name: cython.int
        at: cython.Py_ssize_t = self._open_at[depth]
        count: cython.int = self._out.attributes - self._first_attribute
        binding: cython.int = NO_NAMESPACE
        if self._scope.size or colon > at:
            binding = self._scope.binding_of(self._data, at, colon)
        if (
            binding < 0
            or count + self._scope.size - self._scope_before > self._attributes_max
            or self._out.attributes + self._out.declarations > self._attributes_total_max
        ):
            return False
        end: cython.Py_ssize_t = self._open_end[depth]
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

    def _read_name(self) -> cython.bint:
        """A name, with one colon at most: sets ``_colon`` (or one before the start)."""
        data: cython.p_const_uchar = self._data
        kinds: cython.p_const_uchar = self._kinds
        start: cython.Py_ssize_t = self._at
        colon: cython.Py_ssize_t = start - 1
        i: cython.Py_ssize_t = start
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

    def _read_reference(self) -> cython.int:
        """The code point of a reference to a character or a predefined entity, or -1."""
        found: cython.int = read_reference(self._data, self._at)
        if found < 0:
            return -1
        self._at += found & 15
        return found >> 4

    def _read_line_end(self) -> cython.bint:
        """A carriage return, alone or with a line feed: one line feed of content."""
        data: cython.p_const_uchar = self._data
        if data[self._at] != ord("\r"):
            return False
        self._at += 2 if data[self._at + 1] == ord("\n") else 1
        self._out.put_content(ord("\n"))
        return True

    def _copy(self, plain: cython.int) -> None:
        """Copy bytes that are plain to the content."""
        data: cython.p_const_uchar = self._data
        kinds: cython.p_const_uchar = self._kinds
        i: cython.Py_ssize_t = self._at
        while kinds[data[i]] & plain:
            i += 1
        self._out.copy_content(data, self._at, i)
        self._at = i

    def _copy_to_end(self, plain: cython.int, mark: cython.uchar, count: cython.int) -> cython.bint:
        """Copy up to ``count`` marks and a ``>`` (a comment's, a CDATA section's) and step over."""
        data: cython.p_const_uchar = self._data
        byte: cython.uchar
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

    def _copy_byte(self) -> None:
        self._out.copy_content(self._data, self._at, self._at + 1)
        self._at += 1

    def _skip_space(self) -> cython.bint:
        """Step over white space; whether there was any."""
        data: cython.p_const_uchar = self._data
        start: cython.Py_ssize_t = self._at
        # Only here the bytes may end without being malformed.
        while self._at < self._end and self._kinds[data[self._at]] & SPACE:
            self._at += 1
        return self._at > start
