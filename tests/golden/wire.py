"""wire.json: messages in each wire format and syntax.

Frames, and small examples of each construct of the binary and dictionary forms, have their vectors
elsewhere (see this package).
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from formats import (
    Compression,
    CompressionDictionary,
    Dictionary,
    FormatError,
    GraphSyntax,
    WireFormat,
    decode,
    derive_dictionary,
    encode,
    only,
    read_graph,
    read_schema,
    to_text,
    train,
    write_graph,
)
from formats.element_stream import ElementStream
from formats.publication import read_publication
from tests.golden.engine_corpus import GRAPH, MESSAGES
from tests.golden.golden_file import as_json

SCHEMA = b"""<!ELEMENT order (customer, item*, total, placed)><!ELEMENT customer (name, city)>
<!ELEMENT item (tag | count | note)*><!ELEMENT name (#PCDATA)><!ELEMENT tag (#PCDATA)>
<!ATTLIST order id ID #REQUIRED currency (EUR | USD) "EUR"><!ATTLIST item no CDATA #REQUIRED>"""
TRAINED_BYTES_MAX = 512


def dictionary() -> Dictionary:
    found = derive_dictionary(read_schema("order.dtd", SCHEMA))
    assert found is not None
    return found


def trained() -> CompressionDictionary:
    """On messages like the corpus's, all alike but for their numbers."""
    samples = [
        b'<order id="o-%d" currency="EUR"><item no="%d" price="%d.50"><tag>tea</tag></item></order>'
        % (number, number % 7, number % 11)
        for number in range(64)
    ]
    found = train(samples, TRAINED_BYTES_MAX).dictionary
    assert found is not None
    return found


def wire() -> str:
    made = {
        "schema": SCHEMA.decode(),
        "dictionary": dictionary().version.hex(),
        "trained": {"version": trained().version, "hex": trained().data.hex()},
        "messages": {
            name: _formats(read_publication(text.encode(), media_type))
            for name, (media_type, text) in MESSAGES.items()
        },
        "graph": _syntaxes(read_graph(GRAPH.encode(), GraphSyntax.TURTLE)),
    }
    return as_json(made)


def _formats(stream: ElementStream) -> dict[str, object]:
    found: dict[str, object] = {}
    for wire_format in WireFormat:
        payload = encode(stream, wire_format, dictionary())
        if wire_format.compression is Compression.ZLIB:  # of which there are several makes
            found[wire_format] = {"head": payload[:2].hex(), "check_sum": payload[-4:].hex()}
        elif wire_format is WireFormat.TEXT:
            found[wire_format] = payload.decode()
        else:
            found[wire_format] = payload.hex()
    packed = encode(stream, WireFormat.TEXT_ZSTD, trained=trained())
    return found | {"text+zstd, trained": packed.hex()}


def _syntaxes(stream: ElementStream) -> dict[str, str]:
    found = {"striped": to_text(stream).decode()}
    for syntax in GraphSyntax:
        try:
            found[syntax] = write_graph(stream, syntax).decode()
        except FormatError as error:
            found[syntax] = str(error)
    return found


def read_again(committed: str) -> dict[tuple[str, str], str]:
    """The text of each committed message as each of its formats is read: (message, format)."""
    vectors = json.loads(committed)
    packed = CompressionDictionary(bytes.fromhex(vectors["trained"]["hex"]))
    known = {packed.version: packed}
    found = {}
    messages: Mapping[str, Mapping[str, object]] = vectors["messages"]
    for name, payloads in messages.items():
        for said, payload in payloads.items():
            wire_format = WireFormat(said.partition(",")[0])
            if not isinstance(payload, str) or wire_format is WireFormat.TEXT:
                continue
            stream = decode(
                *(bytes.fromhex(payload), wire_format),
                dictionaries=only(dictionary()),
                trained=known.get,
            )
            found[name, said] = to_text(stream).decode()
    return found
