"""A second decoder of the binary and the dictionary form, written from docs/formats.md alone.

It shares no code with ``formats`` and believes its input: it is for valid payloads.  What it makes
is XML text, so that it can be held against any other reading by canonical XML.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

XML = "http://www.w3.org/XML/1998/namespace"


@dataclass(frozen=True)
class Known:
    """A dictionary, as under "Dictionaries"."""

    strings: Sequence[str] = ()
    values: Sequence[str] = ()
    names: Sequence[tuple[str, str]] = ()
    attributes: Sequence[Sequence[int]] = ()
    first: Sequence[int] = ()
    following: Sequence[int] = ()
    root: int = 6

    def version(self) -> bytes:
        data = b""
        for words in (self.strings, self.values):
            data += _four(len(words)) + b"".join(map(_word, words))
        data += _four(len(self.names))
        data += b"".join(_word(part) for name in self.names for part in name)
        for attributes in self.attributes:
            data += _four(len(attributes)) + b"".join(map(_four, attributes))
        data += b"".join(map(_four, [*self.first, *self.following, self.root]))
        return hashlib.sha256(data).digest()[:4]


def _four(value: int) -> bytes:
    return value.to_bytes(4, "little")


def _word(word: str) -> bytes:
    return _four(len(word.encode())) + word.encode()


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        assert self.at + size <= len(self.data)
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value += (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def word(self, known: Known) -> str:
        value = self.number()
        return known.strings[value // 2] if value % 2 else self.take(value // 2).decode()

    @property
    def is_read(self) -> bool:
        return self.at == len(self.data)


def decode_to_xml(payload: bytes, known: Known | None = None) -> str:
    """The message as text; ``known`` is the dictionary, if it takes one."""
    source = _Bytes(payload)
    magic = source.take(2).hex()
    if magic == "4f82":
        assert known is not None
        assert source.take(4) == known.version()
    else:
        assert magic == "4f02"
        known = Known()
    head = _Bytes(source.take(source.number()))
    bindings = [("", ""), ("xml", XML)]
    for _ in range(head.number()):
        bindings.append((head.word(known), head.word(known)))
    tags: list[str | None] = []
    for namespace, local in known.names:
        prefix = next((prefix for prefix, bound in bindings if bound == namespace), None)
        tags.append(None if prefix is None else f"{prefix}:{local}" if prefix else local)
    for _ in range(head.number()):
        prefix = bindings[head.number()][0]
        local = head.word(known)
        tags.append(f"{prefix}:{local}" if prefix else local)
    assert head.is_read
    sizes = [source.number() for _ in range(4)]
    bits, tokens, attribute_codes, content_codes = (_Bytes(source.take(size)) for size in sizes)
    events = _read_events(bits.data, tokens, known, len(tags))
    attribute_count = sum(len(event[2]) for event in events if event[0] == "start")
    content_count = sum(event[0] in "tci" for event in events)
    attribute_values = _values(attribute_codes, attribute_count, source, known)
    content_values = _values(content_codes, content_count, source, known)
    assert source.is_read
    return _write(events, tags, bindings, attribute_values, content_values)


# (t, c or i), (end,) or (start, name, attributes, bindings declared)
_Event = tuple[str, int, Sequence[int], Sequence[int]]


def _read_events(bits: bytes, tokens: _Bytes, known: Known, names: int) -> list[_Event]:
    expected = _expected(known, names)
    sets: list[Sequence[int]] = [()]
    for attributes in known.attributes:
        if tuple(attributes) not in sets:
            sets.append(tuple(attributes))
    set_of = [sets.index(tuple(attributes)) for attributes in known.attributes]
    set_of += [0] * (names - len(set_of))
    events: list[_Event] = []
    context = ("before", 0, False)
    open_names: list[int] = []
    chosen: int | None = None
    declared: list[int] = []
    bit = 0
    while True:
        if bits[bit // 8] >> bit % 8 & 1:
            event = expected[context]
        else:
            event = tokens.number()
            if event < 2 or event > 5:
                expected[context] = event
        bit += 1
        if event == 0 and not open_names:
            break
        if event == 0:
            name = open_names.pop()
            context = ("after", name, False)
            events.append(("end", name, (), ()))
        elif event < 4:
            events.append(("tci"[event - 1], 0, (), ()))
            if event == 1:
                context = (context[0], context[1], True)
        elif event == 4:
            chosen = tokens.number()
            if chosen == len(sets):
                sets.append([tokens.number() for _ in range(tokens.number())])
        elif event == 5:
            declared.append(tokens.number())
        else:
            name = event - 6
            if chosen is not None:
                set_of[name] = chosen
            events.append(("start", name, sets[set_of[name]], declared))
            chosen, declared = None, []
            open_names.append(name)
            context = ("of", name, False)
    assert tokens.is_read
    assert len(bits) == (bit + 7) // 8
    return events


def _expected(known: Known, names: int) -> dict[tuple[str, int, bool], int]:
    expected: dict[tuple[str, int, bool], int] = {("before", 0, False): known.root}
    for name in range(names):
        of, after = 1, 1
        if name < len(known.names):
            of, after = known.first[name], known.following[name]
        expected["of", name, False] = of
        expected["after", name, False] = after
        in_grammar = name < len(known.names)
        expected["of", name, True] = of if of >= 6 else 0
        expected["after", name, True] = after if in_grammar else 0
    return expected


def _values(codes: _Bytes, count: int, run: _Bytes, known: Known) -> list[str]:
    literals: list[str] = []
    values = []
    for _ in range(count):
        code = codes.number()
        if code % 2 == 0:
            literals.append(run.take(code // 2).decode())
            values.append(literals[-1])
        else:
            values.append(known.values[code // 4] if code % 4 == 3 else literals[code // 4])
    assert codes.is_read
    return values


def _write(
    events: Sequence[_Event],
    tags: Sequence[str | None],
    bindings: Sequence[tuple[str, str]],
    attribute_values: list[str],
    content_values: list[str],
) -> str:
    out: list[str] = []
    values, pieces = iter(attribute_values), iter(content_values)
    for kind, name, attributes, declared in events:
        if kind == "start":
            markup = ""
            for binding in declared:
                prefix, namespace = bindings[binding]
                label = f"xmlns:{prefix}" if prefix else "xmlns"
                markup += f" {label}={quoteattr(namespace)}"
            for attribute in attributes:
                quoted = quoteattr(next(values), {"\r": "&#13;", "\t": "&#9;", "\n": "&#10;"})
                markup += f" {tags[attribute]}={quoted}"
            out.append(f"<{tags[name]}{markup}>")
        elif kind == "end":
            out.append(f"</{tags[name]}>")
        elif kind == "t":
            out.append(escape(next(pieces), {"\r": "&#13;"}))
        else:
            out.append(f"<!--{next(pieces)}-->" if kind == "c" else f"<?{next(pieces)}?>")
    return "".join(out)
