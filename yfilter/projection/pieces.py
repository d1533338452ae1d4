"""Pieces: values of parts that were computed on the way, beside the message (parts.py).

They travel packed, zstd where that is shorter::

    0 | 1         as it is, or compressed
    msgpack       [digests], [element, digest's place, size, ...], markup end to end
"""

from __future__ import annotations

from collections.abc import Mapping

import msgpack

from formats.compression import Compression, compress, decompress
from formats.errors import DecodeError

Pieces = Mapping[tuple[int, str], bytes]

PIECES_BYTES_MAX = 1 << 26  # of one message, as they are

_AS_IT_IS, _COMPRESSED = b"\x00", b"\x01"
_COMPRESSED_FROM = 128  # bytes; less is hardly ever made shorter


def pack_pieces(pieces: Pieces) -> bytes:
    """b"" for none."""
    if not pieces:
        return b""
    places: dict[str, int] = {}
    rows: list[int] = []
    for (element, digest), markup in pieces.items():
        rows += (element, places.setdefault(digest, len(places)), len(markup))
    packed: bytes = msgpack.packb([list(places), rows, b"".join(pieces.values())])
    if len(packed) >= _COMPRESSED_FROM:
        shorter = compress(packed, Compression.ZSTD)
        if len(shorter) < len(packed):
            return _COMPRESSED + shorter
    return _AS_IT_IS + packed


def unpack_pieces(data: bytes, elements: int, bytes_max: int) -> Pieces:
    """The pieces of a message with so many elements; DecodeError."""
    if not data:
        return {}
    packed = data[1:]
    if data[:1] == _COMPRESSED:
        packed = decompress(packed, Compression.ZSTD, bytes_max)
    elif data[:1] != _AS_IT_IS:
        raise DecodeError("bad-pieces", "pieces are neither compressed nor as they are")
    try:
        digests, rows, markup = msgpack.unpackb(packed, strict_map_key=True)
        pieces: dict[tuple[int, str], bytes] = {}
        start = 0
        for at in range(0, len(rows), 3):
            element, place, size = rows[at : at + 3]
            if not (0 <= element < elements and 0 <= place < len(digests) and size >= 0):
                raise ValueError("a number out of range")
            pieces[element, str(digests[place])] = bytes(markup[start : start + size])
            start += size
        if start != len(markup):
            raise ValueError("markup is left over")
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise DecodeError("bad-pieces", f"pieces cannot be read: {error}") from None
    return pieces
