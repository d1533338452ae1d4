"""Compressed wire forms: what goes in comes out, and nothing larger than the bound ever does."""

from __future__ import annotations

import random
import zlib
from pathlib import Path

import pytest
import zstandard

from formats import (
    FORMS,
    Compression,
    DecodeError,
    MessageLimits,
    MessageRefused,
    WireFormat,
    compress,
    decode,
    decompress,
    encode,
    parse_text,
    unpack,
)
from formats.codec import packed_bytes_max
from tests.formats.support import columns, real_files

PACKED = [wire_format for wire_format in WireFormat if wire_format.compression]
ALGORITHMS = [Compression.ZSTD, Compression.ZLIB]
MESSAGE = b"<quotes>" + b'<quote symbol="ACME"><bid>9</bid></quote>' * 50 + b"</quotes>"


def code_of(data: bytes, compression: Compression, bytes_max: int = 1000) -> str:
    with pytest.raises(DecodeError) as caught:
        decompress(data, compression, bytes_max)
    return caught.value.code


def test_a_wire_format_is_a_form_and_a_compression() -> None:
    assert WireFormat.BINARY_ZSTD.form is WireFormat.BINARY
    assert WireFormat.BINARY_ZSTD.compression is Compression.ZSTD
    assert WireFormat.TEXT.form is WireFormat.TEXT
    assert WireFormat.TEXT.compression is Compression.NONE
    assert {(wire_format.form, wire_format.compression) for wire_format in WireFormat} == {
        (form, compression) for form in FORMS for compression in Compression
    }


@pytest.mark.parametrize("wire_format", PACKED)
def test_messages_survive_and_shrink(wire_format: WireFormat) -> None:
    stream = parse_text(MESSAGE)
    payload = encode(stream, wire_format)
    assert columns(decode(payload, wire_format)) == columns(stream)
    assert len(payload) < len(encode(stream, wire_format.form)) / 2
    assert len(payload) < len(MESSAGE) / 4
    assert unpack(payload, wire_format) == encode(stream, wire_format.form)


@pytest.mark.parametrize("path", real_files()[::10], ids=lambda path: path.name)
def test_real_messages_survive(path: Path) -> None:
    try:
        stream = parse_text(path.read_bytes())
    except MessageRefused:
        pytest.skip("not a message")
    for wire_format in PACKED:
        assert columns(decode(encode(stream, wire_format), wire_format)) == columns(stream)


@pytest.mark.parametrize("compression", ALGORITHMS)
def test_the_bound_is_exact(compression: Compression) -> None:
    assert decompress(compress(b"x" * 1000, compression), compression, 1000) == b"x" * 1000
    assert code_of(compress(b"x" * 1001, compression), compression) == "too-large"


def test_bombs_take_no_memory() -> None:
    """A gigabyte of zeros in a megabyte, in a kilobyte, and a claim that is not true."""
    assert code_of(zlib.compress(bytes(2**26)), Compression.ZLIB) == "too-large"
    assert code_of(zstandard.compress(bytes(2**26)), Compression.ZSTD) == "too-large"
    unsized = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(2**20))
    assert code_of(unsized, Compression.ZSTD) == "bad-compression"
    # The header's content size (here four bytes, after magic and descriptor) made to lie.
    frame = bytearray(zstandard.compress(bytes(2**17)))
    assert zstandard.frame_content_size(bytes(frame)) == 2**17
    frame[5:9] = (10).to_bytes(4, "little")
    assert code_of(bytes(frame), Compression.ZSTD) == "bad-compression"


@pytest.mark.parametrize("compression", ALGORITHMS)
def test_what_is_cut_off_or_followed_by_more_is_refused(compression: Compression) -> None:
    packed = compress(b"some content of some length", compression)
    for length in range(len(packed)):
        assert code_of(packed[:length], compression) == "bad-compression"
    assert code_of(packed + b"x", compression) == "bad-compression"
    assert code_of(packed + packed, compression) == "bad-compression"


@pytest.mark.parametrize("wire_format", PACKED)
def test_more_compressed_bytes_than_the_bound_could_need_are_not_looked_at(
    wire_format: WireFormat,
) -> None:
    limits = MessageLimits(bytes_max=1000)
    with pytest.raises(DecodeError, match="could become"):
        decode(bytes(packed_bytes_max(1000) + 1), wire_format, limits)


@pytest.mark.parametrize("compression", ALGORITHMS)
def test_incompressible_data_stay_within_what_packing_allows(compression: Compression) -> None:
    source = random.Random(1)
    for size in (0, 1, 100, 1000, 100_000, 1_000_000):
        assert len(compress(source.randbytes(size), compression)) <= packed_bytes_max(size)


@pytest.mark.parametrize("wire_format", PACKED)
@pytest.mark.parametrize("seed", range(10))
def test_only_refusals_come_out_of_damaged_payloads(wire_format: WireFormat, seed: int) -> None:
    source = random.Random(seed)
    print(f"seed {seed}")
    intact = encode(parse_text(MESSAGE), wire_format)
    for _ in range(100):
        damaged = bytearray(intact)
        for _ in range(source.randint(1, 4)):
            damaged[source.randrange(len(damaged))] = source.randrange(256)
        try:
            decode(bytes(damaged[: source.randint(1, len(damaged))]), wire_format)
        except (DecodeError, MessageRefused):
            continue
