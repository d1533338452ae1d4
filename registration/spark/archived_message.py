"""A message of an archive, as an element stream, in a worker."""

from __future__ import annotations

from formats.element_stream import ElementStream
from formats.media_types import media_type_of
from formats.publication import read_publication

ARCHIVED = ("name", "message", "media_type", "accepted")
"""The columns of a message."""


def read_archived(
    name: str | None, data: bytes, media_type: str | None, accepted: int | None
) -> ElementStream:
    """``media_type`` None: by the name, as a file has one, else XML; ``accepted`` as of
    ElementStream.

    MessageRefused, DecodeError.
    """
    stream = read_publication(data, media_type or media_type_of(name or ""))
    stream.accepted = accepted
    return stream
