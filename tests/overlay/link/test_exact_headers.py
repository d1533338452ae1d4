"""Headers that msgspec reads: the same as field by field, or left to that."""

from __future__ import annotations

from random import Random

import msgpack
import pytest
from hypothesis import given

from overlay.link import frame_codec
from overlay.link.errors import ProtocolError
from overlay.link.frame import Frame
from overlay.link.frame_codec import LENGTH_BYTES, NOT_EXACT, ExactHeaders, decode, encode
from overlay.link.frames import Hello, Request, SourceAnnounced
from tests.examples import examples
from tests.overlay.link.samples import ANY_FRAME, SAMPLES, place

EXACT = frame_codec._exact
NONE = ExactHeaders([])


def is_exact(header: bytes) -> bool:
    try:
        return EXACT.layouts[type(EXACT.decode(header))].first == header[0]
    except NOT_EXACT:
        return False


def header_in(frame: bytes) -> bytes:
    """Of a frame without its length prefix."""
    return frame[2 : 2 + int.from_bytes(frame[:2], "big")]


def outcome(data: bytes, *, field_by_field: bool = False) -> object:
    """The frame, or how it is refused."""
    with pytest.MonkeyPatch.context() as patch:
        if field_by_field:
            patch.setattr(frame_codec, "_exact", NONE)
        try:
            return decode(data)
        except ProtocolError as error:
            return error.code, error.reason, error.fatal


@pytest.mark.parametrize("frame", SAMPLES, ids=lambda frame: frame.type)
def test_a_header_is_read_at_once_unless_it_may_hold_other_numbers(frame: Frame) -> None:
    header = header_in(encode(frame, *place(frame))[LENGTH_BYTES:])
    # versions, which are read first; more keys than a short map has
    assert is_exact(header) != isinstance(frame, Hello | SourceAnnounced)


@given(frame=ANY_FRAME)
@examples(300)
def test_any_frame_is_the_same_field_by_field(frame: Frame) -> None:
    data = encode(frame, *place(frame))[LENGTH_BYTES:]
    assert outcome(data) == outcome(data, field_by_field=True)


@pytest.mark.parametrize("frame", SAMPLES, ids=lambda frame: frame.type)
def test_what_is_damaged_is_the_same_field_by_field(frame: Frame) -> None:
    random = Random(frame.type)
    whole = encode(frame, *place(frame))[LENGTH_BYTES:]
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(random.randint(1, 3)):
            data[random.randrange(len(data))] = random.randrange(256)
        assert outcome(bytes(data)) == outcome(bytes(data), field_by_field=True), data.hex()


@pytest.mark.parametrize("twice", ["t", "request", "verb"])
def test_a_key_that_is_there_twice_is_left(twice: str) -> None:
    pairs = [("t", "request"), ("request", "1"), ("verb", "v")]
    more = [*pairs, next(pair for pair in pairs if pair[0] == twice)]
    instead = [pair for pair in more if pair[0] in ("t", twice)]
    for some in (more, instead):
        entries = b"".join(msgpack.packb(word) for pair in some for word in pair)
        header = bytes([0x80 + len(some)]) + entries
        assert not is_exact(header)
        frame = len(header).to_bytes(2, "big") + header + b"\x81\xa9arguments\x80"
        code, detail, _ = outcome(frame)  # type: ignore[misc]
        assert (code, f"'{twice}' twice" in detail) == ("malformed", True)
    assert decode(encode(Request("1", "v", {}))[LENGTH_BYTES:]).frame == Request("1", "v", {})
