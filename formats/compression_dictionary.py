"""CompressionDictionary: what messages of one source have in common, so that zstd need not send it.

A dictionary is trained from sampled messages of a source, each in one *form* (text, binary,
dictionary), and serves messages in that form; a small message gains most.  It is a zstd dictionary
(RFC 8878, section 5), as ``zstd --train`` writes them too.

Invariant: the id in its header, which every zstd frame made with it names, follows from the rest
of its bytes.  So the id is its *version*: equal content has an equal version, at every broker and
in every payload, and a payload says by itself what it takes to read it.

::

    37 a4 30 ec | id, 4 bytes, little-endian | entropy tables | content
                  2^15 + SHA-256(all, id 0)[:4] mod (2^31 - 2^15), zstd's private ids

``train`` is pure: the same samples give the same dictionary.  What it costs is bounded by the
samples, which the caller bounds, times ``len(SEGMENT_BYTES) + 1`` trainings.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import zstandard

from formats.errors import FormatError

COMPRESSION_DICTIONARY_BYTES_MAX = 128 * 1024
SAMPLES_LEAST = 16  # fewer say too little of what is to come
SEGMENT_BYTES = (200, 1_000)  # lengths of the pieces that a dictionary is made of; the better one
HELD_OUT_EVERY = 4  # every so many samples are not trained on, but tried
# What is new must save this share of what is in force, or it is not worth being sent.
SAVING_LEAST = 0.05

_MAGIC = bytes.fromhex("37a430ec")
_ID = slice(4, 8)
_HEADER_BYTES = 8
_PRIVATE_IDS = range(2**15, 2**31)
_PROBE = b"<probe>of a dictionary</probe>"
_LEVEL = 3


@dataclass(frozen=True, slots=True)
class CompressionDictionary:
    """A dictionary ready for use; made by ``train`` or ``read_compression_dictionary``.

    Not to be used by two threads at a time.
    """

    data: bytes
    version: int = field(init=False)
    _compressors: dict[int, zstandard.ZstdCompressor] = field(init=False, repr=False, compare=False)
    _decompressor: zstandard.ZstdDecompressor = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """FormatError ``bad-compression-dictionary`` when the data are none, or not of their id."""
        if len(self.data) > COMPRESSION_DICTIONARY_BYTES_MAX:
            raise _bad(f"has {len(self.data)} bytes; at most {COMPRESSION_DICTIONARY_BYTES_MAX}")
        if len(self.data) <= _HEADER_BYTES or not self.data.startswith(_MAGIC):
            raise _bad("does not begin as a zstd dictionary does")
        version = int.from_bytes(self.data[_ID], "little")
        if self.data != _with_version(self.data):
            raise _bad(f"has the id {version}, which is not of its content")
        put = object.__setattr__
        put(self, "version", version)
        put(self, "_compressors", {})
        try:
            put(self, "_decompressor", zstandard.ZstdDecompressor(dict_data=self._loaded()))
            read = self.decompress(self.compress(_PROBE, _LEVEL), len(_PROBE))
        except zstandard.ZstdError as error:
            raise _bad(f"cannot be used: {error}") from None
        if read != _PROBE:
            raise _bad("does not give back what it was given")

    def compress(self, data: bytes, level: int) -> bytes:
        """One zstd frame that names this version and states its content size."""
        compressor = self._compressors.get(level)
        if compressor is None:
            # PERF: a dictionary is digested once for a level, not once for a message.
            loaded = self._loaded()
            loaded.precompute_compress(level=level)
            compressor = zstandard.ZstdCompressor(level=level, dict_data=loaded)
            self._compressors[level] = compressor
        return compressor.compress(data)

    def decompress(self, frame: bytes, size_max: int) -> bytes:
        """The content of one frame of this version; ZstdError when it is not one."""
        return self._decompressor.decompress(
            frame, max_output_size=size_max, allow_extra_data=False
        )

    def _loaded(self) -> zstandard.ZstdCompressionDict:
        return zstandard.ZstdCompressionDict(self.data, dict_type=zstandard.DICT_TYPE_FULLDICT)


CompressionDictionaryLookup: TypeAlias = Callable[[int], CompressionDictionary | None]
"""The dictionary of a version, None when it is not known."""


def no_compression_dictionary(version: int) -> None:
    """The lookup that knows none."""


@dataclass(frozen=True, slots=True)
class Training:
    """What came of a training; the sizes are those of the samples that were not trained on.

    ``dictionary``    None when it would not save enough
    ``bytes_before``  with what was in force
    ``bytes_after``   with what was trained
    """

    dictionary: CompressionDictionary | None
    bytes_before: int = 0
    bytes_after: int = 0


def read_compression_dictionary(data: bytes) -> CompressionDictionary:
    """A dictionary that somebody made with other tools, under the version of its content.

    FormatError ``bad-compression-dictionary`` when it is none.
    """
    if len(data) <= _HEADER_BYTES:
        raise _bad(f"has only {len(data)} bytes")
    return CompressionDictionary(_with_version(data))


def train(
    samples: Sequence[bytes], bytes_max: int, current: CompressionDictionary | None = None
) -> Training:
    """A dictionary of at most ``bytes_max`` from messages in one form, if it is worth it.

    ``current`` is what is in force (None: plain zstd).  Pieces of each of SEGMENT_BYTES are tried
    on the samples held out; the better length is then trained with on all samples.
    """
    if len(samples) < SAMPLES_LEAST:
        return Training(None)
    held_out = samples[::HELD_OUT_EVERY]
    rest = [sample for number, sample in enumerate(samples) if number % HELD_OUT_EVERY]
    tried = []
    for segment in SEGMENT_BYTES:
        candidate = _trained(rest, bytes_max, segment)
        if candidate is not None:
            tried.append((_packed_bytes(held_out, candidate), segment))
    before = _packed_bytes(held_out, current)
    if not tried:
        return Training(None, before, before)
    after, segment = min(tried)
    if after > (1 - SAVING_LEAST) * before:
        return Training(None, before, after)
    return Training(_trained(samples, bytes_max, segment), before, after)


def _trained(
    samples: Sequence[bytes], bytes_max: int, segment: int
) -> CompressionDictionary | None:
    """None when zstd finds too little to train on."""
    parts: list[bytes | bytearray | memoryview[int]] = list(samples)
    try:
        made = zstandard.train_dictionary(bytes_max, parts, k=segment, d=8, level=_LEVEL)
        return read_compression_dictionary(made.as_bytes())
    except (zstandard.ZstdError, FormatError):
        return None


def _packed_bytes(samples: Sequence[bytes], dictionary: CompressionDictionary | None) -> int:
    if dictionary is None:
        plain = zstandard.ZstdCompressor(level=_LEVEL)
        return sum(len(plain.compress(sample)) for sample in samples)
    return sum(len(dictionary.compress(sample, _LEVEL)) for sample in samples)


def _with_version(data: bytes) -> bytes:
    """The same dictionary with the id that follows from the rest of it."""
    digest = hashlib.sha256(data[: _ID.start] + bytes(4) + data[_ID.stop :]).digest()
    number = int.from_bytes(digest[:4], "little")
    version = _PRIVATE_IDS.start + number % len(_PRIVATE_IDS)
    return data[: _ID.start] + version.to_bytes(4, "little") + data[_ID.stop :]


def _bad(reason: str) -> FormatError:
    return FormatError("bad-compression-dictionary", f"a compression dictionary {reason}")
