"""The wire forms of a message, and how to get from one to the element stream and back.

A broker names the form in the frame that carries the message; what a peer understands is agreed
upon when the link is set up.  A further form is one more row in the table below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from formats.binary import decode_binary, encode_binary
from formats.element_stream import ElementStream
from formats.limits import DEFAULT_LIMITS, MessageLimits
from formats.text import parse_text, to_text


class WireFormat(StrEnum):
    """How a message is written on the wire; the value travels in frames and settings."""

    TEXT = "text"
    BINARY = "binary"


@dataclass(frozen=True, slots=True)
class Codec:
    """One form; ``decode`` raises MessageRefused or DecodeError."""

    encode: Callable[[ElementStream], bytes]
    decode: Callable[[bytes, MessageLimits], ElementStream]


_CODECS = {
    WireFormat.TEXT: Codec(to_text, parse_text),
    WireFormat.BINARY: Codec(encode_binary, decode_binary),
}


def codec_for(wire_format: WireFormat) -> Codec:
    return _CODECS[wire_format]


def encode(stream: ElementStream, wire_format: WireFormat) -> bytes:
    return _CODECS[wire_format].encode(stream)


def decode(
    payload: bytes, wire_format: WireFormat, limits: MessageLimits = DEFAULT_LIMITS
) -> ElementStream:
    """The element stream of a payload; MessageRefused (text) or DecodeError (all other forms)."""
    return _CODECS[wire_format].decode(payload, limits)


def encoded_bytes_max(stream: ElementStream) -> int:
    """An upper bound of what ``encode`` makes of a message, in any format; quick to compute.

    Text escapes a byte as at most six, writes an element's name twice with at most five more
    characters and an attribute's once with four; binary takes at most 16 bytes for each entry.
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
