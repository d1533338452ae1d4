"""Writing the binary and the dictionary form; their layout is in ``binary``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

from formats.columns import differences, write_column, write_varint
from formats.dictionary import EMPTY_DICTIONARY, Dictionary
from formats.element_stream import ElementStream

MAGIC = b"ONX\x01"
DICTIONARY_MAGIC = b"OND\x01"
_Key = TypeVar("_Key")


def encode_binary(stream: ElementStream) -> bytes:
    """The binary form of a valid stream; equal streams have equal bytes."""
    return b"".join((MAGIC, *_parts(stream, None)))


def encode_dictionary(stream: ElementStream, dictionary: Dictionary = EMPTY_DICTIONARY) -> bytes:
    """The dictionary form of a valid stream; equal streams have equal bytes."""
    return b"".join((DICTIONARY_MAGIC, dictionary.version, *_parts(stream, dictionary)))


def _parts(stream: ElementStream, dictionary: Dictionary | None) -> Iterator[bytes]:
    """What follows the head."""
    known = dictionary.string_numbers if dictionary else {}
    new: dict[str, int] = {}

    def number_of(string: str) -> int:
        found = known.get(string)
        return len(known) + _number(string, new) if found is None else found

    bindings: dict[tuple[str, str], int] = {}
    name_binding = [_number((n.prefix, n.namespace), bindings) for n in stream.names]
    declaration_binding = [_number(pair, bindings) for pair in stream.declarations]
    prefixes = [number_of(prefix) for prefix, _ in bindings]
    namespaces = [number_of(namespace) for _, namespace in bindings]
    locals_ = [number_of(name.local) for name in stream.names]
    literals = [string.encode() for string in new]
    for count in (
        len(literals),
        len(bindings),
        len(stream.names),
        len(stream),
        len(stream.attribute_name),
        len(stream.declarations),
        len(stream.content_kind),
    ):
        yield write_varint(count)
    yield write_column(map(len, literals))
    yield from literals
    depth = stream.element_depth
    for column in (
        prefixes,
        namespaces,
        name_binding,
        locals_,
        stream.element_name,
        depth,
        differences(stream.attribute_start),
        stream.attribute_name,
    ):
        yield write_column(column)
    yield from _value_parts(stream.attribute_offset, stream.attribute_values, dictionary)
    for column in (
        differences([0, *stream.declaration_element]),
        declaration_binding,
        stream.content_kind,
        differences([0, *stream.content_next]),
        [0 if parent < 0 else depth[parent] + 1 for parent in stream.content_parent],
    ):
        yield write_column(column)
    yield from _value_parts(stream.content_offset, stream.content_values, dictionary)


def _value_parts(
    offsets: Sequence[int], run: bytes, dictionary: Dictionary | None
) -> Iterable[bytes]:
    """Values as lengths and bytes; with a dictionary, by number where that is shorter."""
    plain = (write_column(differences(offsets)), run)
    if dictionary is None:
        return plain
    numbers, lengths, literals = [], [], []
    for first, last in pairwise(offsets):
        number = dictionary.value_numbers.get(run[first:last], -1)
        numbers.append(number + 1)
        if number < 0:
            lengths.append(last - first)
            literals.append(run[first:last])
    chosen = (write_column(numbers), write_column(lengths), b"".join(literals))
    all_literal = (b"\x00", *plain)
    return chosen if sum(map(len, chosen)) < sum(map(len, all_literal)) else all_literal


def _number(key: _Key, numbers: dict[_Key, int]) -> int:
    """The number of a key, the next free one when it is new."""
    return numbers.setdefault(key, len(numbers))
