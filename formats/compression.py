"""Compression of a wire form, with a bound on what comes out.

zstd is the form to use; zlib is what the paper measured (section 4.3.2) and stays for comparison.
What claims or turns out to be longer than ``bytes_max`` is refused before it takes memory.
"""

from __future__ import annotations

import zlib
from enum import StrEnum

import zstandard

from formats.errors import DecodeError

ZSTD_LEVEL = 3
ZLIB_LEVEL = 6


class Compression(StrEnum):
    """How a form is packed; the value is the word after ``+`` in the name of a wire format."""

    NONE = ""
    ZSTD = "zstd"
    ZLIB = "zlib"


def compress(data: bytes, compression: Compression) -> bytes:
    if compression is Compression.ZSTD:
        return zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(data)
    if compression is Compression.ZLIB:
        return zlib.compress(data, ZLIB_LEVEL)
    return data


def decompress(data: bytes, compression: Compression, bytes_max: int) -> bytes:
    """The data that were compressed; DecodeError when they are damaged or too long."""
    if compression is Compression.ZSTD:
        return _unzstd(data, bytes_max)
    if compression is Compression.ZLIB:
        return _unzlib(data, bytes_max)
    return data


def _unzstd(data: bytes, bytes_max: int) -> bytes:
    try:
        # The frame must say how long its content is, so that the bound is checked beforehand.
        size = zstandard.frame_content_size(data)
        if size < 0:
            raise DecodeError("bad-compression", "a zstd frame does not say how long it is")
        if size > bytes_max:
            raise _too_large(f"{size}", bytes_max)
        content = zstandard.ZstdDecompressor().decompress(
            data, max_output_size=bytes_max, allow_extra_data=False
        )
    except zstandard.ZstdError as error:
        raise DecodeError("bad-compression", f"not a zstd frame: {error}") from None
    if len(content) != size:
        raise DecodeError("bad-compression", "a zstd frame is not as long as it says")
    return content


def _unzlib(data: bytes, bytes_max: int) -> bytes:
    inflater = zlib.decompressobj()
    try:
        content = inflater.decompress(data, bytes_max + 1)
    except zlib.error as error:
        raise DecodeError("bad-compression", f"not a zlib stream: {error}") from None
    if len(content) > bytes_max:
        raise _too_large("more than the bound", bytes_max)
    if not inflater.eof or inflater.unused_data:
        raise DecodeError("bad-compression", "a zlib stream is cut off or followed by something")
    return content


def _too_large(size: str, bytes_max: int) -> DecodeError:
    return DecodeError("too-large", f"decompressed to {size} bytes; at most {bytes_max} allowed")
