"""A message as it is published, by its media type: XML, or a graph in any of its syntaxes."""

from __future__ import annotations

from formats.element_stream import ElementStream
from formats.errors import DecodeError
from formats.graph.graph_limits import GraphLimits
from formats.graph.reader import read_graph
from formats.graph.striped import Closure
from formats.graph.syntaxes import by_media_type
from formats.limits import DEFAULT_LIMITS, MessageLimits
from formats.media_types import TEXT, as_published
from formats.text import parse_text


def read_publication(
    data: bytes,
    media_type: str,
    limits: MessageLimits = DEFAULT_LIMITS,
    closure: Closure | None = None,
    base: str = "",
) -> ElementStream:
    """The element stream of a message; a graph is striped, at a ``base`` if it is not "", and
    closed if taxonomies say how, but RDF/XML stays the document that it is.

    MessageRefused; DecodeError ``unknown-format`` for a media type that nobody reads.
    """
    data, kind = as_published(data, media_type)
    if kind == TEXT:
        return parse_text(data, limits)
    syntax = by_media_type(kind)
    if syntax is None:
        raise DecodeError("unknown-format", f"no message is of the media type {media_type!r}")
    return read_graph(data, syntax, GraphLimits(limits), closure=closure, base=base or None)
