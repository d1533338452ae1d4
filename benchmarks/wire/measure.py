"""Sizes and processing delays of one set of messages in every wire format.

Both sides of every ratio are measured here, in the same process, on the same messages.
"""

from __future__ import annotations

import gzip
import pyexpat
from collections.abc import Sequence
from dataclasses import dataclass

import msgpack
import zstandard

from benchmarks.samples import mean, median
from benchmarks.wire.clock import microseconds
from benchmarks.wire.exi import exi_compressed_size, exi_size
from formats import (
    Dictionary,
    ElementStream,
    WireFormat,
    decode,
    encode,
    only,
    parse_text,
)
from yfilter.matcher import Matcher

TRAINED_BYTES_MAX = 16 * 1024
_SEPARATOR = "\x1f"


@dataclass(frozen=True, slots=True)
class Sizes:
    """Mean bytes a message: by wire format, and of what stands beside them."""

    formats: dict[str, float]
    beside: dict[str, float]
    median: dict[str, float]  # of all of them


@dataclass(frozen=True, slots=True)
class Delays:
    """Microseconds of processor time a message."""

    encode: dict[str, float]
    decode: dict[str, float]
    expat: float  # namespace-aware, no handlers: less cannot be done with it
    expat_events: float  # the same, calling functions that do nothing
    parser: float  # this project's own, text to element stream
    first_hop: float  # text in, matched, dictionary form out
    forward_hop: float  # dictionary form in, matched, the same bytes out
    matching: float  # what both hops have in common


def measure_sizes(
    texts: Sequence[bytes], dictionary: Dictionary, training: Sequence[bytes] = ()
) -> Sizes:
    """``training``: other messages of the same source, for a zstd dictionary (none: no figure)."""
    streams = [parse_text(text) for text in texts]
    made = {
        wire_format: [encode(stream, wire_format, dictionary) for stream in streams]
        for wire_format in WireFormat
    }
    beside = {
        "gzip of the text": [gzip.compress(text, 9, mtime=0) for text in texts],
        "zstd of the text": [zstandard.compress(text, 19) for text in texts],
        "msgpack of a tree": [msgpack.packb(_tree(stream)) for stream in streams],
    }
    exi = {
        "EXI": [exi_size(stream) for stream in streams],
        "EXI compressed": [exi_compressed_size(stream) for stream in streams],
    }
    if training:
        forms: list[bytes | bytearray | memoryview[int]] = [
            encode(parse_text(text), WireFormat.DICTIONARY, dictionary) for text in training
        ]
        trained = zstandard.train_dictionary(TRAINED_BYTES_MAX, forms)
        compressor = zstandard.ZstdCompressor(level=3, dict_data=trained)
        beside["dictionary form, zstd trained"] = [
            compressor.compress(form) for form in made[WireFormat.DICTIONARY]
        ]
    sizes = {name: list(map(len, payloads)) for name, payloads in beside.items()} | exi
    of_formats = {one.value: list(map(len, payloads)) for one, payloads in made.items()}
    return Sizes(
        {name: mean(values) for name, values in of_formats.items()},
        {name: mean(values) for name, values in sizes.items()},
        {name: float(median(values)) for name, values in (of_formats | sizes).items()},
    )


def measure_delays(
    texts: Sequence[bytes], dictionary: Dictionary, profile: str, rounds: int
) -> Delays:
    streams = [parse_text(text) for text in texts]
    lookup = only(dictionary)
    encoding, decoding = {}, {}
    for wire_format in WireFormat:
        payloads = [encode(stream, wire_format, dictionary) for stream in streams]

        def write(stream: ElementStream, form: WireFormat = wire_format) -> bytes:
            return encode(stream, form, dictionary)

        def read(payload: bytes, form: WireFormat = wire_format) -> ElementStream:
            return decode(payload, form, dictionaries=lookup)

        encoding[wire_format.value] = microseconds(write, streams, rounds)
        decoding[wire_format.value] = microseconds(read, payloads, rounds)
    matcher = Matcher()
    matcher.add(profile)

    def first_hop(text: bytes) -> bytes:
        stream = parse_text(text)
        list(matcher.match(stream))
        return encode(stream, WireFormat.DICTIONARY, dictionary)

    def forward_hop(payload: bytes) -> bytes:
        list(matcher.match(decode(payload, WireFormat.DICTIONARY, dictionaries=lookup)))
        return payload

    payloads = [encode(stream, WireFormat.DICTIONARY, dictionary) for stream in streams]
    return Delays(
        encode=encoding,
        decode=decoding,
        expat=microseconds(_expat, texts, rounds),
        expat_events=microseconds(_expat_events, texts, rounds),
        parser=microseconds(parse_text, texts, rounds),
        first_hop=microseconds(first_hop, texts, rounds),
        forward_hop=microseconds(forward_hop, payloads, rounds),
        matching=microseconds(lambda stream: list(matcher.match(stream)), streams, rounds),
    )


def _expat(text: bytes) -> None:
    pyexpat.ParserCreate(None, _SEPARATOR).Parse(text, True)


def _expat_events(text: bytes) -> None:
    parser = pyexpat.ParserCreate(None, _SEPARATOR)
    parser.buffer_text = True
    parser.StartElementHandler = lambda name, attributes: None
    parser.EndElementHandler = lambda name: None
    parser.CharacterDataHandler = lambda data: None
    parser.Parse(text, True)


def _tree(stream: ElementStream) -> object:
    """The naive tree: [name, {attribute: value}, [child or text]]."""
    nodes: list[tuple[str, dict[str, str], list[object]]] = []
    for element in range(len(stream)):
        attributes = {
            str(stream.names[stream.attribute_name[number]]): stream.attribute_value(number)
            for number in stream.attributes_of(element)
        }
        nodes.append((str(stream.name_of(element)), attributes, []))
        parent = stream.element_parent[element]
        if parent >= 0:
            nodes[parent][2].append(nodes[element])
    for content, parent in enumerate(stream.content_parent):
        if parent >= 0:
            nodes[parent][2].append(stream.content_value(content))
    return nodes[0]
