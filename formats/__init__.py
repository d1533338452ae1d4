"""XML and graphs in and out: the element stream, its text and its wire forms.

``read_graph`` and ``write_graph`` do for RDF what ``parse_text`` and ``to_text`` do for XML.
``parse_text`` and ``decode`` make an ElementStream of bytes from a stranger or a peer, ``to_text``
and ``encode`` go back, ``XmlWriter`` writes results.  Nothing here does I/O, and no input, however
hostile, can do more than raise MessageRefused, DecodeError or SchemaRefused.
"""

from typing import TYPE_CHECKING

from formats.kernel import build_info, is_compiled
from formats.lazy_names import lazy_names

if TYPE_CHECKING:
    from formats.codec import (
        FORMS,
        WireFormat,
        decode,
        encode,
        encoded_bytes_max,
        unpack,
    )
    from formats.compression import (
        LEVELS,
        Compression,
        compress,
        decompress,
        trained_version,
    )
    from formats.compression_dictionary import (
        COMPRESSION_DICTIONARY_BYTES_MAX,
        CompressionDictionary,
        CompressionDictionaryLookup,
        read_compression_dictionary,
        train,
    )
    from formats.dictionary import (
        EMPTY_DICTIONARY,
        ONLY_EMPTY,
        Dictionary,
        DictionaryLookup,
        derive_dictionary,
        make_dictionary,
        only,
    )
    from formats.element_stream import ContentKind, ElementStream
    from formats.element_stream_builder import ElementStreamBuilder
    from formats.errors import DecodeError, FormatError, MessageRefused, SchemaRefused
    from formats.graph.graph_limits import GraphLimits
    from formats.graph.reader import read_graph
    from formats.graph.syntaxes import GraphSyntax
    from formats.graph.writer import write_graph
    from formats.limits import DEFAULT_LIMITS, MessageLimits
    from formats.names import QualifiedName
    from formats.schema import Schema, SchemaKind, read_schema
    from formats.text import parse_text, to_text
    from formats.validation import Validation, Validator, Violation
    from formats.xml_writer import XmlWriter
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "formats.codec": "FORMS WireFormat decode encode encoded_bytes_max unpack",
            "formats.compression": "LEVELS Compression compress decompress trained_version",
            "formats.compression_dictionary": (
                "COMPRESSION_DICTIONARY_BYTES_MAX CompressionDictionary "
                "CompressionDictionaryLookup read_compression_dictionary train"
            ),
            "formats.dictionary": (
                "EMPTY_DICTIONARY ONLY_EMPTY Dictionary DictionaryLookup "
                "derive_dictionary make_dictionary only"
            ),
            "formats.element_stream": "ContentKind ElementStream",
            "formats.element_stream_builder": "ElementStreamBuilder",
            "formats.errors": "DecodeError FormatError MessageRefused SchemaRefused",
            "formats.graph.graph_limits": "GraphLimits",
            "formats.graph.reader": "read_graph",
            "formats.graph.syntaxes": "GraphSyntax",
            "formats.graph.writer": "write_graph",
            "formats.limits": "DEFAULT_LIMITS MessageLimits",
            "formats.names": "QualifiedName",
            "formats.schema": "Schema SchemaKind read_schema",
            "formats.text": "parse_text to_text",
            "formats.validation": "Validation Validator Violation",
            "formats.xml_writer": "XmlWriter",
        },
    )

__all__ = [
    "COMPRESSION_DICTIONARY_BYTES_MAX",
    "DEFAULT_LIMITS",
    "EMPTY_DICTIONARY",
    "FORMS",
    "LEVELS",
    "ONLY_EMPTY",
    "Compression",
    "CompressionDictionary",
    "CompressionDictionaryLookup",
    "ContentKind",
    "DecodeError",
    "Dictionary",
    "DictionaryLookup",
    "ElementStream",
    "ElementStreamBuilder",
    "FormatError",
    "GraphLimits",
    "GraphSyntax",
    "MessageLimits",
    "MessageRefused",
    "QualifiedName",
    "Schema",
    "SchemaKind",
    "SchemaRefused",
    "Validation",
    "Validator",
    "Violation",
    "WireFormat",
    "XmlWriter",
    "build_info",
    "compress",
    "decode",
    "decompress",
    "derive_dictionary",
    "encode",
    "encoded_bytes_max",
    "is_compiled",
    "make_dictionary",
    "only",
    "parse_text",
    "read_compression_dictionary",
    "read_graph",
    "read_schema",
    "to_text",
    "train",
    "trained_version",
    "unpack",
    "write_graph",
]
