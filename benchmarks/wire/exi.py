"""The size of a message as EXI, without a schema: what the wire formats are held against.

Efficient XML Interchange 1.0 (W3C), default options: no prefixes, comments and instructions.  An
encoder of our own, since none to be had from a registry here writes EXI without a schema (the npm
package exificient.js knows no other elements than its grammars'); only sizes are used of what it
makes.  With compression (section 9 there) the events are in one channel and the values of each
name in one more; up to 100 values all are one DEFLATE stream.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from formats import ContentKind, ElementStream, QualifiedName

_XML, _XSI = "http://www.w3.org/XML/1998/namespace", "http://www.w3.org/2001/XMLSchema-instance"
_VALUES_TOGETHER_MAX = 100
_Key = tuple[str, str]  # namespace, local


def exi_size(stream: ElementStream) -> int:
    """Bytes, bit-packed."""
    encoder = _Encoder(stream, packed=True)
    encoder.write()
    return 1 + (encoder.structure.bits + 7) // 8


def exi_compressed_size(stream: ElementStream) -> int:
    """Bytes, with compression."""
    encoder = _Encoder(stream, packed=False)
    encoder.write()
    structure = bytes(encoder.structure.data)
    channels = [(channel.count, bytes(channel.data)) for channel in encoder.channels.values()]
    # The header has the options then: compression, and nothing else.
    if sum(count for count, _ in channels) <= _VALUES_TOGETHER_MAX:
        return 2 + len(_deflated([structure, *(data for _, data in channels)]))
    small = [data for count, data in channels if count <= _VALUES_TOGETHER_MAX]
    large = [data for count, data in channels if count > _VALUES_TOGETHER_MAX]
    streams = [[structure], *([small] if small else []), *([data] for data in large)]
    return 2 + sum(len(_deflated(parts)) for parts in streams)


def _deflated(parts: Sequence[bytes]) -> bytes:
    deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
    return deflater.compress(b"".join(parts)) + deflater.flush()


@dataclass(slots=True)
class _Channel:
    """``packed``: only bits are counted; otherwise every number takes whole bytes."""

    packed: bool
    bits: int = 0
    count: int = 0
    data: bytearray = field(default_factory=bytearray)

    def code(self, value: int, choices: int) -> None:
        """One of so many."""
        bits = max(0, choices - 1).bit_length()
        self.bits += bits
        if not self.packed:
            self.data += value.to_bytes((bits + 7) // 8, "little")

    def number(self, value: int) -> None:
        while value >= 0x80:
            self._byte(value & 0x7F | 0x80)
            value >>= 7
        self._byte(value)

    def text(self, value: str) -> None:
        for character in value:
            self.number(ord(character))

    def _byte(self, value: int) -> None:
        self.bits += 8
        if not self.packed:
            self.data.append(value)


class _Grammar:
    """The two built-in grammars of one element name, and what each has learnt: keys of events in
    the order of their codes are last learnt first."""

    def __init__(self) -> None:
        self.start: list[object] = []
        self.content: list[object] = ["end"]


class _Encoder:
    def __init__(self, stream: ElementStream, packed: bool) -> None:
        self._stream = stream
        self._packed = packed
        self.structure = _Channel(packed)
        self.channels: dict[_Key, _Channel] = {}
        self._grammars: dict[_Key, _Grammar] = {}
        self._uris = ["", _XML, _XSI]
        self._locals: dict[str, list[str]] = {
            _XML: ["base", "id", "lang", "space"],
            _XSI: ["nil", "type"],
        }
        self._global_values: dict[str, int] = {}
        self._local_values: dict[_Key, dict[str, int]] = {}

    def write(self) -> None:
        """Elements, attributes and text in document order; the document's own events take no
        bits."""
        self._name(self._key(self._stream.name_of(0)))
        self._element(0, 0)

    def _element(self, element: int, content: int) -> int:
        """The element, whose first piece of content may be ``content``; returns the next piece."""
        stream = self._stream
        key = self._key(stream.name_of(element))
        grammar = self._grammars.setdefault(key, _Grammar())
        at_start = True
        for attribute in stream.attributes_of(element):
            name = self._key(stream.names[stream.attribute_name[attribute]])
            self._event(grammar, True, ("attribute", name))
            self._value(name, stream.attribute_value(attribute))
        children = iter(stream.children_of(element))
        child = next(children, None)
        last = stream.element_end[element]
        while True:
            while content < len(stream.content_kind) and stream.content_parent[content] < 0:
                content += 1
            following = child if child is not None else last
            if (
                content < len(stream.content_kind)
                and stream.content_parent[content] == element
                and stream.content_next[content] <= following
            ):
                if stream.content_kind[content] == ContentKind.TEXT:
                    self._event(grammar, at_start, "text")
                    self._value(key, stream.content_value(content))
                    at_start = False
                content += 1
            elif child is not None:
                self._event(grammar, at_start, ("start", self._key(stream.name_of(child))))
                at_start = False
                content = self._element(child, content)
                child = next(children, None)
            else:
                self._event(grammar, at_start, "end")
                return content

    def _event(self, grammar: _Grammar, at_start: bool, event: object) -> None:
        learnt = grammar.start if at_start else grammar.content
        if event in learnt:
            self.structure.code(len(learnt) - 1 - learnt.index(event), len(learnt) + 1)
            return
        self.structure.code(len(learnt), len(learnt) + 1)
        kind = event[0] if isinstance(event, tuple) else event
        choices = ["end", "attribute", "start", "text"] if at_start else ["start", "text"]
        self.structure.code(choices.index(str(kind)), len(choices))
        if isinstance(event, tuple):
            self._name(event[1])
        learnt.append(event)

    def _name(self, key: _Key) -> None:
        uri, local = key
        choices = len(self._uris) + 1
        if uri in self._uris:
            self.structure.code(self._uris.index(uri) + 1, choices)
        else:
            self.structure.code(0, choices)
            self.structure.number(len(uri))
            self.structure.text(uri)
            self._uris.append(uri)
        known = self._locals.setdefault(uri, [])
        if local in known:
            self.structure.number(0)
            self.structure.code(known.index(local), len(known))
        else:
            self.structure.number(len(local) + 1)
            self.structure.text(local)
            known.append(local)

    def _value(self, key: _Key, value: str) -> None:
        channel = self.structure
        if not self._packed:
            channel = self.channels.setdefault(key, _Channel(False))
        channel.count += 1
        of_name = self._local_values.setdefault(key, {})
        if value in of_name:
            channel.number(0)
            channel.code(of_name[value], len(of_name))
        elif value in self._global_values:
            channel.number(1)
            channel.code(self._global_values[value], len(self._global_values))
        else:
            channel.number(len(value) + 2)
            channel.text(value)
            if value:
                of_name[value] = len(of_name)
                self._global_values[value] = len(self._global_values)

    @staticmethod
    def _key(name: QualifiedName) -> _Key:
        return name.namespace, name.local
