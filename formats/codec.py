"""The wire formats of a message, and how to get from the element stream to each and back.

A wire format is a *form* (text, or the columns of docs/formats.md) and how it is compressed.
Adding a form is a row in the table below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from formats.binary import decode_binary, decode_dictionary, encode_binary, encode_dictionary
from formats.compression import Compression, compress, decompress
from formats.compression_dictionary import (
    CompressionDictionary,
    CompressionDictionaryLookup,
    no_compression_dictionary,
)
from formats.dictionary import EMPTY_DICTIONARY, ONLY_EMPTY, Dictionary, DictionaryLookup
from formats.element_stream import ElementStream
from formats.errors import DecodeError
from formats.limits import DEFAULT_LIMITS, MessageLimits
from formats.text import parse_text, to_text


class WireFormat(StrEnum):
    """How a message is written on the wire; the value travels in frames and settings."""

    TEXT = "text"
    TEXT_ZSTD = "text+zstd"
    TEXT_ZLIB = "text+zlib"
    BINARY = "binary"
    BINARY_ZSTD = "binary+zstd"
    BINARY_ZLIB = "binary+zlib"
    DICTIONARY = "dictionary"
    DICTIONARY_ZSTD = "dictionary+zstd"
    DICTIONARY_ZLIB = "dictionary+zlib"

    # PERF: attributes of the members, set below, since every message asks for them.
    form: WireFormat  # the same without compression
    compression: Compression
    codec: Codec  # of its form

    @property
    def without_dictionary(self) -> WireFormat:
        """What both ends can read whatever they know: binary in place of dictionary."""
        return WireFormat(self.value.replace("dictionary", "binary"))


@dataclass(frozen=True, slots=True)
class Codec:
    """One form; ``decode`` raises MessageRefused or DecodeError."""

    encode: Callable[[ElementStream, Dictionary], bytes]
    decode: Callable[[bytes, MessageLimits, DictionaryLookup], ElementStream]


_CODECS = {
    WireFormat.TEXT: Codec(
        lambda stream, _: to_text(stream), lambda data, limits, _: parse_text(data, limits)
    ),
    WireFormat.BINARY: Codec(
        lambda stream, _: encode_binary(stream), lambda data, limits, _: decode_binary(data, limits)
    ),
    WireFormat.DICTIONARY: Codec(encode_dictionary, decode_dictionary),
}
FORMS = tuple(_CODECS)
"""The formats without compression."""

for _one in WireFormat:
    _form, _, _packing = _one.value.partition("+")
    _one.form, _one.compression = WireFormat(_form), Compression(_packing)
    _one.codec = _CODECS[_one.form]


def encode(
    stream: ElementStream,
    wire_format: WireFormat,
    dictionary: Dictionary = EMPTY_DICTIONARY,
    *,
    level: int | None = None,
    trained: CompressionDictionary | None = None,
) -> bytes:
    """The payload; ``dictionary`` matters to the dictionary form only, ``level`` (None: default)
    and ``trained`` to the compressed formats only (see ``compress``)."""
    form = wire_format.codec.encode(stream, dictionary)
    if wire_format.compression:
        form = compress(form, wire_format.compression, level, trained)
    return form


def decode(
    payload: bytes,
    wire_format: WireFormat,
    limits: MessageLimits = DEFAULT_LIMITS,
    dictionaries: DictionaryLookup = ONLY_EMPTY,
    trained: CompressionDictionaryLookup = no_compression_dictionary,
) -> ElementStream:
    """The element stream of a payload; MessageRefused (text) or DecodeError (all other faults)."""
    if wire_format.compression:
        payload = unpack(payload, wire_format, limits, trained)
    return wire_format.codec.decode(payload, limits, dictionaries)


def unpack(
    payload: bytes,
    wire_format: WireFormat,
    limits: MessageLimits = DEFAULT_LIMITS,
    trained: CompressionDictionaryLookup = no_compression_dictionary,
) -> bytes:
    """The payload in ``wire_format.form``; DecodeError when it is damaged or too long, or packed
    with a compression dictionary that ``trained`` does not know (``unknown-dictionary``)."""
    if wire_format.compression is not Compression.NONE and len(payload) > packed_bytes_max(
        limits.bytes_max
    ):
        reason = f"{len(payload)} compressed bytes are more than {limits.bytes_max} could become"
        raise DecodeError("too-large", reason)
    return decompress(payload, wire_format.compression, limits.bytes_max, trained)


def packed_bytes_max(size: int) -> int:
    """What ``size`` bytes become at most when compression finds nothing to save."""
    return size + size // 128 + 128


def dictionary_bytes_max(stream: ElementStream, binary: int) -> int:
    """An upper bound of the dictionary form, by the size of the ``binary`` one: where a dictionary
    helps nothing it costs at most four bytes for each entry."""
    entries = len(stream.element_name) + len(stream.attribute_name) + len(stream.content_kind)
    return binary + 4 * entries + 64


def encoded_bytes_max(stream: ElementStream) -> int:
    """An upper bound of what ``encode`` makes of a message, in any format; quick to compute.

    Text escapes a byte as at most six, writes an element's name twice with at most five more
    characters and an attribute's once with four; binary takes at most six numbers for each entry.
    """
    values = len(stream.attribute_values) + len(stream.content_values)
    declared = sum(len(prefix) + len(uri) for prefix, uri in stream.declarations)
    names = [sum(map(len, name)) for name in stream.names]
    entries = len(stream.element_name) + len(stream.attribute_name) + len(stream.content_kind)
    longest = 4 * max(names, default=0)  # UTF-8 takes at most four bytes a character
    return (
        6 * values
        + entries * (2 * longest + 32)
        + len(stream.declarations) * 32
        + 4 * 6 * (declared + sum(names))
        + 256
    )
