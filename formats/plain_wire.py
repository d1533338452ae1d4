"""The binary and the dictionary form in plain Python, by docs/formats.md.

A form is read as the text that it says, which expat then reads: so everything that a decoder has to
check is checked there, and the names are those that a text may have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from formats.element_stream import ElementStream
from formats.errors import DecodeError, MessageRefused
from formats.escapes import escaped_text, escaped_value
from formats.grammar import (
    ATTRIBUTES,
    DECLARATION,
    ELEMENT,
    END,
    INSTRUCTION,
    NUMBER_MAX,
    TEXT,
    Grammar,
)
from formats.limits import MessageLimits
from formats.names import XML_NAMESPACE
from formats.text import parse_with_expat

_LITERAL_BYTES_MAX = 64  # of a value that is written once and then by its number
_Context = tuple[str, int, bool]  # before, of or after; a name number; with text
_BEFORE: _Context = ("before", 0, False)


class PlainModel:
    """The words and the grammar of a dictionary, for both ways."""

    def __init__(self, strings: Sequence[str], values: Sequence[bytes], grammar: Grammar) -> None:
        self.strings = strings
        self.values = values
        self.grammar = grammar
        self.string_numbers = {word: number for number, word in enumerate(strings)}
        self.value_numbers = {value: number for number, value in enumerate(values)}
        self.name_numbers = {name: number for number, name in enumerate(grammar.names)}


class _Expected:
    """The expectations of the next event, and of the attributes of an element, that both ends have;
    ``sets`` and ``set_of`` [name] are lists of attributes."""

    def __init__(self, grammar: Grammar, count: int) -> None:
        known = len(grammar.names)
        self.events: dict[_Context, int] = {_BEFORE: grammar.root}
        for name in range(count):
            first, after = TEXT, TEXT
            if name < known:
                first, after = grammar.first[name], grammar.following[name]
            self.events["of", name, False] = first
            self.events["after", name, False] = after
            self.events["of", name, True] = first if first >= ELEMENT else END
            self.events["after", name, True] = after if name < known else END
        self.sets = {members: number for number, members in enumerate(_distinct(grammar))}
        self.set_of = [self.sets[tuple(members)] for members in grammar.attributes]
        self.set_of += [0] * (count - known)


def _distinct(grammar: Grammar) -> dict[tuple[int, ...], None]:
    return dict.fromkeys([(), *map(tuple, grammar.attributes)])


# -- reading


def read_form(data: bytes, at: int, model: PlainModel, limits: MessageLimits) -> ElementStream:
    """The stream of a form whose head begins at ``at``, or DecodeError."""
    try:
        text = "".join(_Reader(data, at, model, limits).text())
    except (IndexError, KeyError, StopIteration, RuntimeError):
        raise DecodeError("bad-structure", "a number is out of range", at) from None
    except UnicodeDecodeError:
        raise DecodeError("bad-value", "a value is not UTF-8", at) from None
    try:
        return parse_with_expat(text.encode(), limits)
    except MessageRefused as refusal:
        code = "bad-structure" if refusal.code == "malformed" else refusal.code
        raise DecodeError(code, refusal.reason, at) from None


class _Bytes:
    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def take(self, size: int) -> bytes:
        if self.at + size > len(self.data):
            raise DecodeError("truncated", "the message ends too early", self.at)
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value += (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                if value > NUMBER_MAX or (byte == 0 and shift > 7):
                    break
                return value
            if shift > 28:
                break
        raise DecodeError("bad-number", "a number is too long", self.at)

    def word(self, model: PlainModel) -> str:
        value = self.number()
        return model.strings[value // 2] if value % 2 else self.take(value // 2).decode()

    def end(self) -> None:
        if self.at != len(self.data):
            raise DecodeError("trailing-bytes", "a part is longer than it may be", self.at)


class _Reader:
    def __init__(self, data: bytes, at: int, model: PlainModel, limits: MessageLimits) -> None:
        source = _Bytes(data, at)
        self._model = model
        self._size = 0
        self._limits = limits
        head = _Bytes(source.take(source.number()))
        bindings = [("", ""), ("xml", XML_NAMESPACE)]
        for _ in range(head.number()):
            bindings.append((head.word(model), head.word(model)))
        self._bindings = bindings
        self._tags: list[str] = []  # "" of a name that cannot be used
        for namespace, local in model.grammar.names:
            found = (prefix for prefix, bound in bindings if bound == namespace)
            prefix = next(found, None)
            self._tags.append("" if prefix is None else f"{prefix}:{local}".lstrip(":"))
        for _ in range(head.number()):
            prefix = bindings[head.number()][0]
            self._tags.append(f"{prefix}:{head.word(model)}".lstrip(":"))
        head.end()
        sizes = [source.number() for _ in range(4)]
        self._bits, tokens, *codes = (_Bytes(source.take(size)) for size in sizes)
        self._tokens = tokens
        self._run = source
        self._codes = codes
        self._expected = _Expected(model.grammar, len(self._tags))

    def text(self) -> Iterator[str]:
        """The message as XML, piece by piece.  Attribute values stand before all content."""
        markup: list[str | None] = []  # None: a piece of content
        for kind, part in self._structure():
            markup.append(part)
            if kind:
                self._kinds.append(kind)
        self._codes[0].end()
        pieces = self._values(self._codes[1])
        kinds = iter(self._kinds)
        for part in markup:
            if part is not None:
                yield part
                continue
            kind, value = next(kinds), self._charged(next(pieces))
            if kind == TEXT:
                yield escaped_text(value)
            else:
                yield f"<?{value}?>" if kind == INSTRUCTION else f"<!--{value}-->"
        self._codes[1].end()
        self._run.end()

    _kinds: list[int]

    def _structure(self) -> Iterator[tuple[int, str | None]]:
        """(0, markup), or (kind, None) of a piece of content."""
        self._kinds = []
        expected, tokens, tags = self._expected, self._tokens, self._tags
        values = self._values(self._codes[0])
        sets = list(expected.sets)
        context, open_names, declared = _BEFORE, list[int](), ""
        chosen = -1
        for bit in range(8 * len(self._bits.data)):
            if self._bits.data[bit >> 3] >> (bit & 7) & 1:
                event = expected.events[context]
            else:
                event = tokens.number()
                if event <= TEXT or event >= ELEMENT:
                    expected.events[context] = event
            if event == END and not open_names:
                tokens.end()
                if (bit + 8) // 8 != len(self._bits.data):
                    raise DecodeError("trailing-bytes", "there are more bits than events", bit)
                return
            if event == END:
                name = open_names.pop()
                context = ("after", name, False)
                yield 0, self._charged(f"</{tags[name]}>")
            elif event <= INSTRUCTION:
                yield event, None
                if event == TEXT:
                    context = (context[0], context[1], True)
            elif event == ATTRIBUTES:
                chosen = tokens.number()
                if chosen == len(sets):
                    sets.append(tuple([tokens.number() for _ in range(tokens.number())]))
            elif event == DECLARATION:
                prefix, namespace = self._bindings[tokens.number()]
                label = f"xmlns:{prefix}" if prefix else "xmlns"
                declared += self._charged(f' {label}="{escaped_value(namespace)}"')
            else:
                name = event - ELEMENT
                if chosen >= 0:
                    expected.set_of[name] = chosen
                told = "".join(
                    self._charged(f' {self._tag(each)}="{escaped_value(next(values))}"')
                    for each in sets[expected.set_of[name]]
                )
                yield 0, self._charged(f"<{self._tag(name)}{declared}{told}>")
                chosen, declared = -1, ""
                open_names.append(name)
                context = ("of", name, False)
        raise DecodeError("truncated", "the events do not end", len(self._bits.data))

    def _tag(self, name: int) -> str:
        if not self._tags[name]:
            raise DecodeError("undeclared-prefix", "no prefix means the namespace of a name")
        return self._tags[name]

    def _values(self, codes: _Bytes) -> Iterator[str]:
        literals: list[str] = []
        while codes.at < len(codes.data):
            code = codes.number()
            if code % 2 == 0:
                literals.append(self._run.take(code // 2).decode())
                yield literals[-1]
            elif code % 4 == 3:
                yield self._model.values[code // 4].decode()
            else:
                yield literals[code // 4]

    def _charged(self, part: str) -> str:
        """The part, if there may be so much.  A value is charged before many stand in one tag."""
        self._size += len(part)
        if self._size > 8 * self._limits.expansion_max:
            reason = f"values, names and namespaces have more than {self._limits.expansion_max}"
            raise DecodeError("entity-expansion", f"{reason} bytes")
        return part


# -- writing


def write_form(stream: ElementStream, model: PlainModel) -> bytes:
    """The form of a valid stream, from its head on."""
    bindings: dict[tuple[str, str], int] = {("", ""): 0, ("xml", XML_NAMESPACE): 1}
    first = {"": 0, XML_NAMESPACE: 1}
    used = [(name.prefix, name.namespace) for name in stream.names]
    for binding in (*used, *stream.declarations):
        first.setdefault(binding[1], bindings.setdefault(binding, len(bindings)))
    own: list[bytes] = []
    numbers: list[int] = []
    for name, binding in zip(stream.names, used, strict=True):
        known = model.name_numbers.get((name.namespace, name.local))
        if known is not None and first[name.namespace] == bindings[binding]:
            numbers.append(known)
        else:
            numbers.append(len(model.name_numbers) + len(own))
            own.append(_number(bindings[binding]) + _word(name.local, model))
    bound = [_word(word, model) for binding in list(bindings)[2:] for word in binding]
    head = b"".join((_number(len(bindings) - 2), *bound, _number(len(own)), *own))
    expected = _Expected(model.grammar, len(model.name_numbers) + len(own))
    bits, tokens = _structure(stream, numbers, bindings, expected)
    attributes = [
        stream.attribute_value(each).encode() for each in range(len(stream.attribute_name))
    ]
    content = [stream.content_value(each).encode() for each in range(len(stream.content_kind))]
    attribute_codes, attribute_run = _coded(attributes, model)
    content_codes, content_run = _coded(content, model)
    parts = (bits, tokens, attribute_codes, content_codes)
    sizes = [_number(len(part)) for part in parts]
    return b"".join((_number(len(head)), head, *sizes, *parts, attribute_run, content_run))


def _structure(
    stream: ElementStream,
    numbers: Sequence[int],
    bindings: dict[tuple[str, str], int],
    expected: _Expected,
) -> tuple[bytes, bytes]:
    """Bits and tokens."""
    bits: list[bool] = []
    tokens: list[int] = []

    def write(context: _Context, event: int) -> None:
        bits.append(expected.events[context] == event)
        if not bits[-1]:
            tokens.append(event)
            if event >= ELEMENT or event <= TEXT:
                expected.events[context] = event

    context, lineage, content = _BEFORE, [-1], 0
    for element in range(len(stream) + 1):
        while True:
            parent = lineage[-1]
            if (
                content < len(stream.content_kind)
                and stream.content_next[content] == element
                and stream.content_parent[content] == parent
            ):
                kind = stream.content_kind[content] + TEXT
                write(context, kind)
                if kind == TEXT:
                    context = (context[0], context[1], True)
                content += 1
            elif parent >= 0 and stream.element_end[parent] == element:
                write(context, END)
                lineage.pop()
                context = ("after", numbers[stream.element_name[parent]], False)
            else:
                break
        if element == len(stream):
            write(context, END)
            break
        for binding in stream.declarations_of(element):
            write(context, DECLARATION)
            tokens.append(bindings[binding])
        name = numbers[stream.element_name[element]]
        members = tuple(
            [numbers[stream.attribute_name[each]] for each in stream.attributes_of(element)]
        )
        is_new = members not in expected.sets
        chosen = expected.sets.setdefault(members, len(expected.sets))
        if chosen != expected.set_of[name]:
            write(context, ATTRIBUTES)
            tokens += [chosen, len(members), *members] if is_new else [chosen]
            expected.set_of[name] = chosen
        write(context, name + ELEMENT)
        lineage.append(element)
        context = ("of", name, False)
    packed = bytearray((len(bits) + 7) // 8)
    for place, bit in enumerate(bits):
        packed[place >> 3] |= bit << (place & 7)
    return bytes(packed), b"".join(map(_number, tokens))


def _coded(values: Sequence[bytes], model: PlainModel) -> tuple[bytes, bytes]:
    """Codes and run."""
    codes: list[int] = []
    run: list[bytes] = []
    literals: dict[bytes, int] = {}
    for value in values:
        known = model.value_numbers.get(value)
        if known is not None:
            codes.append(4 * known + 3)
        elif value in literals:
            codes.append(4 * literals[value] + 1)
        else:
            if 0 < len(value) <= _LITERAL_BYTES_MAX:
                literals[value] = len(run)
            codes.append(2 * len(value))
            run.append(value)
    return b"".join(map(_number, codes)), b"".join(run)


def _word(word: str, model: PlainModel) -> bytes:
    number = model.string_numbers.get(word)
    if number is not None:
        return _number(2 * number + 1)
    encoded = word.encode()
    return _number(2 * len(encoded)) + encoded


def _number(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
