"""Compression of a wire form, with a bound on what comes out.

zstd is the form to use, best with a dictionary trained on messages of the source
(compression_dictionary.py); zlib is what the paper measured (section 4.3.2) and stays for
comparison.  What claims or turns out to be longer than ``bytes_max`` is refused before it takes
memory.
"""

from __future__ import annotations

import zlib
from enum import StrEnum

import zstandard

from formats.compression_dictionary import (
    CompressionDictionary,
    CompressionDictionaryLookup,
    no_compression_dictionary,
)
from formats.errors import DecodeError


class Compression(StrEnum):
    """How a form is packed; the value is the word after ``+`` in the name of a wire format."""

    NONE = ""
    ZSTD = "zstd"
    ZLIB = "zlib"


LEVELS = {
    Compression.NONE: range(1),
    Compression.ZSTD: range(1, 20),
    Compression.ZLIB: range(1, 10),
}
"""The levels that there are: the higher, the smaller and the slower."""
DEFAULT_LEVELS = {Compression.NONE: 0, Compression.ZSTD: 3, Compression.ZLIB: 6}

# PERF: contexts not in use; to make one takes several times as long as a small message with it.
# Those of higher levels are not kept, since they hold on to much memory.
_KEPT_LEVEL_MAX = 9
_COMPRESSORS: dict[int, list[zstandard.ZstdCompressor]] = {
    level: [] for level in range(1, _KEPT_LEVEL_MAX + 1)
}
_DECOMPRESSORS: list[zstandard.ZstdDecompressor] = []


def compress(
    data: bytes,
    compression: Compression,
    level: int | None = None,
    trained: CompressionDictionary | None = None,
) -> bytes:
    """``level`` None is the default; ``trained`` matters to zstd only.  No reader needs to know
    the level, and a zstd frame names the dictionary that it takes."""
    if level is None:
        level = DEFAULT_LEVELS[compression]
    if compression is Compression.ZSTD:
        if trained is not None:
            return trained.compress(data, level)
        return _zstd(data, level)
    if compression is Compression.ZLIB:
        return zlib.compress(data, level)
    return data


def decompress(
    data: bytes,
    compression: Compression,
    bytes_max: int,
    trained: CompressionDictionaryLookup = no_compression_dictionary,
) -> bytes:
    """The data that were compressed; DecodeError when they are damaged or too long, and
    ``unknown-dictionary`` when ``trained`` does not know the version that they take."""
    if compression is Compression.ZSTD:
        return _unzstd(data, bytes_max, trained)
    if compression is Compression.ZLIB:
        return _unzlib(data, bytes_max)
    return data


def trained_version(data: bytes, compression: Compression) -> int:
    """The version of the compression dictionary that a payload takes; 0: none."""
    if compression is not Compression.ZSTD:
        return 0
    try:
        return zstandard.get_frame_parameters(data).dict_id
    except zstandard.ZstdError:
        return 0  # not a frame, as decompress will say


def _zstd(data: bytes, level: int) -> bytes:
    idle = _COMPRESSORS.get(level, [])
    compressor = idle.pop() if idle else zstandard.ZstdCompressor(level=level)
    packed = compressor.compress(data)
    idle.append(compressor)
    return packed


def _unzstd(data: bytes, bytes_max: int, trained: CompressionDictionaryLookup) -> bytes:
    try:
        # The frame must say how long its content is, so that the bound is checked beforehand.
        size = zstandard.frame_content_size(data)
        if size < 0:
            raise DecodeError("bad-compression", "a zstd frame does not say how long it is")
        if size > bytes_max:
            raise _too_large(f"{size}", bytes_max)
        version = trained_version(data, Compression.ZSTD)
        if version:
            dictionary = trained(version)
            if dictionary is None:
                reason = f"no compression dictionary of version {version:08x}"
                raise DecodeError("unknown-dictionary", reason)
            content = dictionary.decompress(data, bytes_max)
        else:
            decompressor = _DECOMPRESSORS.pop() if _DECOMPRESSORS else zstandard.ZstdDecompressor()
            content = decompressor.decompress(
                data, max_output_size=bytes_max, allow_extra_data=False
            )
            _DECOMPRESSORS.append(decompressor)
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
