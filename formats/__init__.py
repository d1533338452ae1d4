"""XML in and out: the element stream, its text and its wire forms.

``parse_text`` and ``decode`` make an ElementStream of bytes from a stranger or a peer, ``to_text``
and ``encode`` go back, ``XmlWriter`` writes results.  Nothing here does I/O, and no input, however
hostile, can do more than raise MessageRefused, DecodeError or SchemaRefused.
"""

# First, since it decides which build all other imports get.
from formats.build import build_info, is_compiled
from formats.codec import (
    FORMS,
    Codec,
    WireFormat,
    codec_for,
    decode,
    encode,
    encoded_bytes_max,
    unpack,
)
from formats.compression import Compression, compress, decompress
from formats.element_stream import ContentKind, ElementStream, ElementStreamBuilder
from formats.errors import DecodeError, FormatError, MessageRefused, SchemaRefused
from formats.limits import DEFAULT_LIMITS, MessageLimits
from formats.names import XML_NAMESPACE, QualifiedName
from formats.schema import Schema, read_schema
from formats.text import parse_text, to_text
from formats.xml_writer import XmlWriter

__all__ = [
    "DEFAULT_LIMITS",
    "FORMS",
    "XML_NAMESPACE",
    "Codec",
    "Compression",
    "ContentKind",
    "DecodeError",
    "ElementStream",
    "ElementStreamBuilder",
    "FormatError",
    "MessageLimits",
    "MessageRefused",
    "QualifiedName",
    "Schema",
    "SchemaRefused",
    "WireFormat",
    "XmlWriter",
    "build_info",
    "codec_for",
    "compress",
    "decode",
    "decompress",
    "encode",
    "encoded_bytes_max",
    "is_compiled",
    "parse_text",
    "read_schema",
    "to_text",
    "unpack",
]
