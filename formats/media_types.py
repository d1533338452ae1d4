"""The media types of messages that are published, and of results; by the names of files, too.

XML travels as text, whatever kind of XML its media type says; a graph in one of the other syntaxes
travels to its root broker under its media type (docs/graphs.md).
"""

from __future__ import annotations

import re

from formats.errors import MessageRefused
from formats.graph.syntaxes import GraphSyntax, by_file_name, by_media_type
from formats.text import in_utf_8

XML = "application/xml"
TEXT = "text"
"""The format of XML as it is published."""

_XML_TYPES = (XML, "text/xml")
MESSAGE_TYPES = (*_XML_TYPES, *(syntax.value for syntax in GraphSyntax))
"""Of messages, beside others of XML, as application/atom+xml."""
_PARAMETER = re.compile(r""";\s*([^\s=;"]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^\s;]*)""")
_SUFFIXES = {
    "application/sparql-results+json": ".json",
    GraphSyntax.N_TRIPLES: ".nt",
    GraphSyntax.N_QUADS: ".nq",
    GraphSyntax.TURTLE: ".ttl",
    GraphSyntax.TRIG: ".trig",
    GraphSyntax.JSON_LD: ".jsonld",
    GraphSyntax.RDF_XML: ".rdf",
}


def media_type_of(name: str) -> str:
    """That of a file by its name: XML where it says nothing else."""
    syntax = by_file_name(name)
    return XML if syntax is None else syntax.value


def as_published(data: bytes, media_type: str) -> tuple[bytes, str]:
    """A message as a Publish frame has it, with its ``format``: where its media type names a
    charset, XML is brought to UTF-8, and the other syntaxes are UTF-8 already.

    MessageRefused: ``unknown-charset``, ``malformed``.
    """
    kind = publish_format(media_type)
    named = (found[2] for found in _PARAMETER.finditer(media_type) if found[1].lower() == "charset")
    charset = next(named, "").strip('"')
    if not charset or kind not in (TEXT, *GraphSyntax):
        return data, kind
    if kind == TEXT:
        return in_utf_8(data, charset), kind
    if charset.lower() not in ("utf-8", "utf8", "us-ascii"):
        why = f"charset {charset[:40]!r}: {kind} is always UTF-8"
        raise MessageRefused("unknown-charset", why)
    return data, kind


def publish_format(media_type: str) -> str:
    """The ``format`` of a Publish frame."""
    syntax = by_media_type(media_type)
    if syntax is not None and syntax is not GraphSyntax.RDF_XML:
        return syntax.value
    kind = media_type.partition(";")[0].strip().lower()
    return TEXT if kind in _XML_TYPES or kind.endswith("+xml") else kind


def suffix_of(media_type: str) -> str:
    """What the name of a file ends in: .xml where the media type is not of graphs or solutions."""
    return _SUFFIXES.get(media_type, ".xml")
