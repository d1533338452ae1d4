"""Compression dictionaries: pure training, versions that follow from content, hostile bytes."""

from __future__ import annotations

import gzip
from contextlib import suppress
from random import Random

import pytest
import zstandard

from benchmarks.wire.news import make_news
from formats import (
    COMPRESSION_DICTIONARY_BYTES_MAX,
    FORMS,
    LEVELS,
    Compression,
    CompressionDictionary,
    DecodeError,
    FormatError,
    WireFormat,
    compress,
    decode,
    decompress,
    encode,
    parse_text,
    read_compression_dictionary,
    train,
    trained_version,
    unpack,
)
from formats.compression_dictionary import SAMPLES_LEAST
from tests.formats.support import columns

BYTES = 16 * 1024


def news(seed: int, count: int, form: WireFormat = WireFormat.TEXT) -> list[bytes]:
    random = Random(seed)
    return [encode(parse_text(make_news(random, 4, 1)), form) for _ in range(count)]


def trained(form: WireFormat = WireFormat.TEXT) -> CompressionDictionary:
    dictionary = train(news(1, 100, form), BYTES).dictionary
    assert dictionary is not None
    return dictionary


@pytest.mark.parametrize("form", FORMS)
def test_small_messages_of_the_same_source_become_much_smaller(form: WireFormat) -> None:
    dictionary = trained(form)
    assert len(dictionary.data) <= BYTES
    others = news(2, 50, form)
    packed = [compress(other, Compression.ZSTD, trained=dictionary) for other in others]
    texts = [compress(other, Compression.ZSTD) for other in others]
    assert sum(map(len, packed)) < 0.6 * sum(map(len, texts))
    assert sum(map(len, packed)) < 0.6 * sum(len(gzip.compress(text)) for text in news(2, 50))
    lookup = {dictionary.version: dictionary}.get
    for data, other in zip(packed, others, strict=True):
        assert trained_version(data, Compression.ZSTD) == dictionary.version
        assert decompress(data, Compression.ZSTD, len(other), lookup) == other


def test_training_is_deterministic_and_the_version_follows_from_the_content() -> None:
    one, two = trained(), trained()
    assert (one, one.version) == (two, two.version)
    assert trained(WireFormat.BINARY).version != one.version
    assert read_compression_dictionary(one.data) == one
    renamed = one.data[:4] + bytes(4) + one.data[8:]
    with pytest.raises(FormatError, match="id 0"):
        CompressionDictionary(renamed)
    assert read_compression_dictionary(renamed) == one


@pytest.mark.parametrize("level", [LEVELS[Compression.ZSTD][0], 9, LEVELS[Compression.ZSTD][-1]])
def test_no_reader_needs_to_know_the_level(level: int) -> None:
    dictionary = trained()
    stream = parse_text(news(3, 1)[0])
    payload = encode(stream, WireFormat.TEXT_ZSTD, level=level, trained=dictionary)
    read = decode(payload, WireFormat.TEXT_ZSTD, trained={dictionary.version: dictionary}.get)
    assert columns(read) == columns(stream)
    for wire_format in (WireFormat.TEXT_ZSTD, WireFormat.TEXT_ZLIB):
        level = min(level, LEVELS[wire_format.compression][-1])
        assert columns(decode(encode(stream, wire_format, level=level), wire_format)) == columns(
            stream
        )


def test_higher_levels_are_smaller() -> None:
    text = b"".join(news(4, 100))
    for compression in (Compression.ZSTD, Compression.ZLIB):
        levels = LEVELS[compression]
        assert len(compress(text, compression, levels[-1])) < len(
            compress(text, compression, levels[0])
        )


def test_few_or_incompressible_samples_make_none() -> None:
    assert train(news(1, SAMPLES_LEAST - 1), BYTES).dictionary is None
    random = Random(5)
    assert train([random.randbytes(500) for _ in range(50)], BYTES).dictionary is None
    assert train([b""] * 50, BYTES).dictionary is None
    assert train([b"x"] * 50, BYTES).dictionary is None


def test_what_is_no_better_than_what_is_in_force_is_not_worth_it() -> None:
    current = trained()
    outcome = train(news(6, 100), BYTES, current)
    assert outcome.dictionary is None
    assert outcome.bytes_after > 0.9 * outcome.bytes_before > 0
    assert train(news(6, 100, WireFormat.BINARY), BYTES, current).dictionary is not None


def test_an_unknown_version_is_said_to_be_one() -> None:
    payload = compress(b"<a/>", Compression.ZSTD, trained=trained())
    with pytest.raises(DecodeError) as caught:
        unpack(payload, WireFormat.TEXT_ZSTD)
    assert caught.value.code == "unknown-dictionary"


def test_the_wrong_dictionary_under_the_right_version_does_no_harm() -> None:
    """Nobody can make one, but nothing depends on it."""
    payload = compress(news(7, 1)[0], Compression.ZSTD, trained=trained())
    wrong = trained(WireFormat.BINARY)
    with pytest.raises(DecodeError):
        decompress(payload, Compression.ZSTD, 10_000, lambda version: wrong)


def test_what_claims_or_is_too_long_is_refused() -> None:
    dictionary = trained()
    lookup = {dictionary.version: dictionary}.get
    bomb = compress(b"<a/>" * 100_000, Compression.ZSTD, trained=dictionary)
    with pytest.raises(DecodeError) as caught:
        decompress(bomb, Compression.ZSTD, 1000, lookup)
    assert caught.value.code == "too-large"


def test_damaged_payloads_are_refused_or_give_something_bounded() -> None:
    dictionary = trained()
    lookup = {dictionary.version: dictionary}.get
    payload = compress(news(8, 1)[0], Compression.ZSTD, trained=dictionary)
    random = Random(9)
    for _ in range(2000):
        damaged = bytearray(payload[: random.randrange(len(payload) + 1)])
        for _ in range(random.randrange(4)):
            if damaged:
                damaged[random.randrange(len(damaged))] ^= 1 << random.randrange(8)
        with suppress(DecodeError):
            assert len(decompress(bytes(damaged), Compression.ZSTD, 10_000, lookup)) <= 10_000


def test_what_is_no_dictionary_is_refused() -> None:
    good = trained().data
    random = Random(10)
    for data in (b"", b"x" * 100, good[:8], good[:60], good[:4] + random.randbytes(2000)):
        with pytest.raises(FormatError) as caught:
            read_compression_dictionary(data)
        assert caught.value.code == "bad-compression-dictionary"
    with pytest.raises(FormatError, match="at most"):
        read_compression_dictionary(good + bytes(COMPRESSION_DICTIONARY_BYTES_MAX))
    for _ in range(200):
        damaged = bytearray(good)
        damaged[random.randrange(8, 400)] ^= 1 << random.randrange(8)
        try:
            read = read_compression_dictionary(bytes(damaged))
        except FormatError:
            continue
        packed = compress(b"<a/>", Compression.ZSTD, trained=read)
        assert decompress(packed, Compression.ZSTD, 9, {read.version: read}.get) == b"<a/>"


def test_a_dictionary_of_the_zstd_tool_is_taken() -> None:
    made = zstandard.train_dictionary(BYTES, list(news(1, 100)), dict_id=7)  # type: ignore[arg-type]
    assert read_compression_dictionary(made.as_bytes()).version >= 2**15
