"""A second decoder of the binary and the dictionary form, written from docs/formats.md alone.

It shares no code with ``formats`` and believes its input: it is for valid payloads.  What it makes
is XML text, so that it can be held against any other reading by canonical XML.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr


def dictionary_version(strings: Sequence[str], values: Sequence[str]) -> bytes:
    """As under "Dictionaries"."""
    data = b""
    for words in (strings, values):
        data += len(words).to_bytes(4, "little")
        for word in words:
            data += len(word.encode()).to_bytes(4, "little") + word.encode()
    return hashlib.sha256(data).digest()[:4]


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        assert self.at + size <= len(self.data)
        self.at += size
        return self.data[self.at - size : self.at]

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value += (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def column(self, count: int) -> list[int]:
        width = self.take(1)[0]
        if width == 0:
            return [0] * count
        return [int.from_bytes(self.take(width), "little") for _ in range(count)]

    def words(self, count: int) -> list[str]:
        return [word.decode() for word in map(self.take, self.column(count))]

    def values(self, count: int, known: Sequence[str] | None) -> list[str]:
        if known is None:
            return self.words(count)
        numbers = self.column(count)
        literals = iter(self.words(numbers.count(0)))
        return [known[number - 1] if number else next(literals) for number in numbers]


def decode_to_xml(payload: bytes, strings: Sequence[str] = (), values: Sequence[str] = ()) -> str:
    """The message as text; ``strings`` and ``values`` are the dictionary's, if it takes one."""
    source = _Bytes(payload)
    magic = source.take(4)
    known = None
    if magic == bytes.fromhex("4f4e4401"):
        assert source.take(4) == dictionary_version(strings, values)
        known = values
    else:
        assert magic == bytes.fromhex("4f4e5801")
        strings = ()
    string_count, bindings, names, elements, attributes, declarations, contents = (
        source.varint() for _ in range(7)
    )
    texts = [*strings, *source.words(string_count)]
    prefix = [texts[number] for number in source.column(bindings)]
    namespace = [texts[number] for number in source.column(bindings)]
    bound = source.column(names)
    tags = []
    for binding, local in zip(bound, source.column(names), strict=True):
        tags.append(f"{prefix[binding]}:{texts[local]}" if prefix[binding] else texts[local])
    element_tag = [tags[number] for number in source.column(elements)]
    depth = source.column(elements)
    attribute_counts = source.column(elements)
    attribute_tag = [tags[number] for number in source.column(attributes)]
    markup = list(zip(attribute_tag, source.values(attributes, known), strict=True))
    inside: list[list[tuple[str, str]]] = []
    for count in attribute_counts:
        inside.append(markup[:count])
        del markup[:count]
    element = 0
    declared = source.column(declarations)
    for difference, binding in zip(declared, source.column(declarations), strict=True):
        element += difference
        name = f"xmlns:{prefix[binding]}" if prefix[binding] else "xmlns"
        inside[element].append((name, namespace[binding]))
    kinds, nexts = source.column(contents), source.column(contents)
    places = source.column(contents)
    pieces = list(zip(kinds, nexts, places, source.values(contents, known), strict=True))
    assert source.at == len(payload)
    return _write(element_tag, depth, inside, pieces)


def _write(
    tags: list[str],
    depths: list[int],
    inside: list[list[tuple[str, str]]],
    pieces: list[tuple[int, int, int, str]],
) -> str:
    out: list[str] = []
    open_tags: list[str] = []

    def close_to(depth: int) -> None:
        while len(open_tags) > depth:
            out.append(f"</{open_tags.pop()}>")

    at = 0
    for element in range(len(tags) + 1):
        while pieces and at + pieces[0][1] == element:
            kind, difference, depth, value = pieces.pop(0)
            at += difference
            close_to(depth)
            if kind == 0:
                out.append(escape(value, {"\r": "&#13;"}))
            else:
                out.append(f"<!--{value}-->" if kind == 1 else f"<?{value}?>")
        if element < len(tags):
            close_to(depths[element])
            attributes = "".join(
                f" {name}={quoteattr(value, {chr(13): '&#13;', chr(9): '&#9;', chr(10): '&#10;'})}"
                for name, value in inside[element]
            )
            out.append(f"<{tags[element]}{attributes}>")
            open_tags.append(tags[element])
    close_to(0)
    return "".join(out)
