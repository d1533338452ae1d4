"""Large messages in each syntax, those that are long to read and those that are not."""

from __future__ import annotations

from collections.abc import Callable, Mapping

Make = Callable[[int], bytes]

_RECORD = b'<item id="%d"><name>abc</name><price>%d.5</price></item>'
_RDF = b'<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:u="u:">'


def _repeated(head: bytes, piece: bytes, tail: bytes = b"") -> Make:
    """A message of about so many bytes; ``piece`` takes its number, twice."""

    def make(size: int) -> bytes:
        pieces = [head]
        length = len(head) + len(tail)
        while length < size:
            pieces.append(piece % (len(pieces), len(pieces)))
            length += len(pieces[-1])
        return b"".join(pieces) + tail

    return make


ORDINARY: Mapping[str, tuple[str, Make]] = {
    "records": ("text", _repeated(b"<list>", _RECORD, b"</list>")),
    "elements without anything": ("text", _repeated(b"<list>", b"<b/><!--%d%d-->", b"</list>")),
}
"""By name: the format of a Publish frame, and what makes one of about so many bytes."""

DEAR: Mapping[str, tuple[str, Make]] = {
    "a DOCTYPE with attribute types": (
        "text",
        _repeated(b'<!DOCTYPE l [<!ATTLIST l a CDATA "x">]><l>', b"<e>%064d%064d</e>", b"</l>"),
    ),
    "an entity": ("text", _repeated(b'<!DOCTYPE l [<!ENTITY e "x">]><l>&e;', _RECORD, b"</l>")),
    "Shift_JIS": (
        "text",
        _repeated(b'<?xml version="1.0" encoding="Shift_JIS"?><l>', _RECORD, b"</l>"),
    ),
    "RDF/XML": (
        "text",
        _repeated(_RDF, b'<u:a r:about="u:%d"><u:b>text %d</u:b></u:a>', b"</r:RDF>"),
    ),
    "Turtle": ("text/turtle", _repeated(b"@prefix u: <u:> .\n", b'u:a%d a u:b; u:c "%d" .\n')),
    "lists in Turtle": (
        "text/turtle",
        _repeated(b"@prefix u: <u:> .\n", b"u:a%d u:b (1) ; u:c [ u:d %d ] .\n"),
    ),
    "N-Quads": ("application/n-quads", _repeated(b"", b'<u:a%d> <u:b> "text %d" <u:g> .\n')),
    "JSON-LD": (
        "application/ld+json",
        _repeated(
            b'{"@context":{"v":"u:"},"@id":"u:x","v:b":[1',
            b',{"@id":"u:%d","v:c":"text %d"}',
            b"]}",
        ),
    ),
}


def large_messages(size: int) -> dict[str, tuple[str, bytes]]:
    """All of them, as MEMBERS of dear_messages.py."""
    return {name: (form, make(size)) for name, (form, make) in {**ORDINARY, **DEAR}.items()}
