"""Frames and their wire form: vectors, round trips, strictness."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import NODEFAULT
from msgspec.structs import fields, replace

from overlay.link.carried_message import CarriedMessage
from overlay.link.errors import ERROR_CODES, ProtocolError
from overlay.link.events import Flow
from overlay.link.frame import FRAME_TYPES, PROTOCOL_VERSION, Frame, on_the_wire
from overlay.link.frame_codec import LENGTH_BYTES, FrameDecoder, decode, encode
from overlay.link.frame_fields import CLAIMED_SEQUENCE_MAX, MAP_DEPTH_MAX, SEQUENCE_MAX
from overlay.link.frames import (
    SLOTS_MAX,
    AccessAnnounced,
    Ack,
    Attach,
    Deliveries,
    Detached,
    HandedOver,
    Hello,
    KeysReleased,
    Missed,
    Ping,
    PlaceProfile,
    PlaceProfiles,
    ProfilesChanged,
    PublishOnce,
    Request,
    RoutingDelta,
    SourceAnnounced,
    SourceChanged,
    Taken,
    columns,
    packed_numbers,
    packed_slots,
)
from tests.examples import examples
from tests.overlay.link.samples import ANY_FRAME, SAMPLES, place

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())
PROTOCOL = Path(__file__).resolve().parents[3] / "docs" / "protocol.md"

LOCATED: Any = SourceAnnounced("s", "n", "r", (0.0, 0.0), 1.0, 1, "x", "dtd", "off", [])
WRONG_VALUES: tuple[object, ...] = (
    None,
    [[[]]],
    {"a": 1},
    b"bytes",
    -1,
    2**64 - 1,
    msgpack.Timestamp(1),
)


def header_of(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The header of an encoded frame and what follows it."""
    length = int.from_bytes(data[4:6], "big")
    return msgpack.unpackb(data[6 : 6 + length]), data[6 + length :]


def frame_from(header: object, rest: bytes = b"") -> bytes:
    """A frame without its length prefix, out of any header."""
    packed: bytes = msgpack.packb(header)
    return len(packed).to_bytes(2, "big") + packed + rest


def refusal(data: bytes) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        decode(data)
    assert caught.value.code in ERROR_CODES
    return caught.value


def test_samples_cover_every_frame_type() -> None:
    assert {type(frame) for frame in SAMPLES} == set(FRAME_TYPES.values())


def test_only_sequenced_frames_and_deliveries_leave_the_control_flow() -> None:
    for cls in FRAME_TYPES.values():
        if cls in (Deliveries, Missed):
            assert (cls.sequenced, cls.flow) == (False, Flow.MESSAGE)
        else:
            assert cls.sequenced == (cls.flow is not Flow.CONTROL)


@pytest.mark.parametrize("vector", VECTORS["valid"], ids=lambda vector: vector["type"])
def test_vectors_encode_and_decode(vector: dict[str, Any]) -> None:
    cls = FRAME_TYPES[vector["type"]]
    values = dict(vector["fields"])
    for name in ("payload", "pieces", "slots", "numbers"):
        if isinstance(values.get(name), str):
            values[name] = bytes.fromhex(values[name])
    if cls is PublishOnce:
        values["key"] = bytes.fromhex(values["key"])
    if cls is Hello:
        values["received"] = [tuple(entry) for entry in values["received"]]
    if cls is SourceAnnounced:
        values["compression"] = [(form, bytes.fromhex(d)) for form, d in values["compression"]]
    if cls in (SourceAnnounced, SourceChanged):
        values["location"] = tuple(values["location"])
    if cls is AccessAnnounced:
        values["tokens"] = [
            (who, bytes.fromhex(digest), end, list(map(tuple, only)))
            for who, digest, end, only in values["tokens"]
        ]
        values["revoked"] = list(map(bytes.fromhex, values["revoked"]))
    for name in (
        "matched",
        "trees",
        "down",
        "watershed",
        "numbers",
        "profiles",
        "rules",
        "policies",
        "marks",
        "coming",
        "leaving",
        "publishers",
    ):
        if isinstance(values.get(name), list):
            entries = values[name]
            values[name] = [tuple(e) if isinstance(e, list) else e for e in entries]
    frame = cls(**values)
    key, sequence = vector.get("key", ""), vector.get("sequence", 0)
    data = bytes.fromhex(vector["hex"])
    assert encode(frame, key, sequence) == data
    envelope = decode(data[LENGTH_BYTES:])
    assert envelope.frame == frame
    assert (envelope.key, envelope.sequence) == (key, sequence)


@pytest.mark.parametrize("vector", VECTORS["invalid"], ids=lambda vector: vector["what"])
def test_vectors_that_are_refused(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    assert int.from_bytes(data[:4], "big") == len(data) - LENGTH_BYTES
    error = refusal(data[LENGTH_BYTES:])
    assert (error.code, error.fatal) == (vector["code"], vector["fatal"])


def test_the_document_shows_every_vector_frame_field_and_code() -> None:
    text = PROTOCOL.read_text()
    squeezed = "".join(text.split())
    for vector in VECTORS["valid"] + VECTORS["invalid"]:
        if len(vector["hex"]) < 400:
            assert vector["hex"] in squeezed, vector
    for name, cls in FRAME_TYPES.items():
        (section,) = (part for part in text.split("\n### ") if part.startswith(f"`{name}`"))
        for field in fields(cls):
            is_said = f"`{field.name}`" in section
            assert is_said != (field.name == "unknown"), (name, field.name)
    for code in ERROR_CODES:
        assert f"| `{code}` |" in text, code


@given(frame=ANY_FRAME, key=st.text(max_size=60), sequence=st.integers(1, SEQUENCE_MAX))
@examples(400)
def test_round_trip(frame: Frame, key: str, sequence: int) -> None:
    where = (key, sequence) if frame.sequenced else ("", 0)
    data = encode(frame, *where)
    assert int.from_bytes(data[:4], "big") == len(data) - LENGTH_BYTES
    envelope = decode(data[LENGTH_BYTES:])
    assert envelope.frame == frame
    assert (envelope.key, envelope.sequence) == where


@pytest.mark.parametrize("frame", SAMPLES, ids=lambda frame: frame.type)
def test_each_header_field_without_a_default_is_needed(frame: Frame) -> None:
    header, rest = header_of(encode(frame, *place(frame)))
    assert decode(frame_from(header, rest)).frame == frame
    defaults = {
        field.name: field.default if field.default is not NODEFAULT else field.default_factory()
        for field in fields(frame)
        if not field.required
    }
    for name in header.keys() - {"t"}:
        without = {key: value for key, value in header.items() if key != name}
        if name in defaults:
            assert getattr(decode(frame_from(without, rest)).frame, name) == defaults[name]
        else:
            error = refusal(frame_from(without, rest))
            assert (error.code, error.fatal) == ("missing-field", frame.sequenced)


@pytest.mark.parametrize("frame", SAMPLES, ids=lambda frame: frame.type)
def test_a_field_of_a_later_release_is_passed_over_and_goes_on_with_a_message(frame: Frame) -> None:
    header, rest = header_of(encode(frame, *place(frame)))
    later = {"zz": [1, {"a": b"b"}], "k2": None}
    data = frame_from({**header, **later}, rest)
    taken = decode(data).frame
    if isinstance(frame, CarriedMessage):
        assert taken == replace(frame, unknown=later)
        assert header_of(encode(taken, *place(frame))) == ({**header, **later}, rest)
    else:
        assert taken == frame


@pytest.mark.parametrize("frame", SAMPLES, ids=lambda frame: frame.type)
def test_each_header_field_has_a_type(frame: Frame) -> None:
    header, rest = header_of(encode(frame, *place(frame)))
    for name in header.keys() - {"t"}:
        for wrong in WRONG_VALUES:
            if (name, wrong) == ("location", None):
                continue
            if name in ("version", "oldest") and isinstance(wrong, int):
                continue  # that is another version, not a wrong type
            if name == "rate" and isinstance(wrong, int):
                continue  # a rate may be any finite number
            error = refusal(frame_from({**header, name: wrong}, rest))
            assert error.code in ("bad-field", "malformed"), (name, wrong)
            assert error.fatal == frame.sequenced or error.code == "malformed"


@pytest.mark.parametrize("frame", SAMPLES, ids=lambda frame: frame.type)
def test_bytes_left_over_are_refused_where_there_is_no_payload(frame: Frame) -> None:
    data = encode(frame, *place(frame))[LENGTH_BYTES:] + b"\x00"
    if isinstance(frame, Deliveries | HandedOver | KeysReleased):
        assert refusal(data).code == "bad-field"  # the lengths no longer add up
    elif hasattr(frame, "payload"):
        values = {field.name: getattr(frame, field.name) for field in fields(frame)}
        values["payload"] += b"\x00"
        assert decode(data).frame == type(frame)(**values)
    else:
        assert refusal(data).code == "malformed"


@pytest.mark.parametrize("frame", SAMPLES, ids=lambda frame: frame.type)
def test_no_beginning_of_a_frame_is_taken_for_another(frame: Frame) -> None:
    data = encode(frame, *place(frame))[LENGTH_BYTES:]
    payload = len(getattr(frame, "payload", b""))
    for end in range(len(data) - payload):
        refusal(data[:end])


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (Ping(-1), "bad-field"),
        (Ping(True), "bad-field"),
        (Ack(4, "", 0), "bad-field"),
        (Ack(3, "k" * 257, 0), "too-long"),
        (Ack(3, "é" * 129, 0), "too-long"),
        (Ack(3, "", CLAIMED_SEQUENCE_MAX + 1), "bad-field"),
        (Ack(3, "\ud800", 0), "bad-field"),
        (Request("1", "v", {"a": 2**63}), "bad-field"),
        (Request("1", "v", {"a": object()}), "bad-field"),
        (Request("1", "v", {"a": {1: 2}}), "bad-field"),
        (replace(LOCATED, location=[0.0]), "bad-field"),  # once the end of every broker
        (replace(LOCATED, location=[0.0] * 3), "bad-field"),
        (replace(LOCATED, location=(90.5, 0.0)), "bad-field"),
        (replace(LOCATED, location=(0.0, -180.5)), "bad-field"),
        (SourceAnnounced("s", "n", "r", None, float("nan"), 1, "x", "dtd", "off", []), "bad-field"),
        (SourceAnnounced("s", "n", "r", None, 1.0, 1, "x", "dtd", "maybe", []), "bad-field"),
        (SourceAnnounced("s", "n", "r", None, float("inf"), 1, "x", "dtd", "off", []), "bad-field"),
        (Deliveries("s", 1, [1], b"", b"", b""), "bad-field"),
        (Deliveries("s", 1, [], bytes(4), b"", b""), "bad-field"),
        (Deliveries("s", 1, [], b"", bytes(8), b""), "bad-field"),
        (Taken(bytes(4), bytes(7)), "bad-field"),
        (Taken(bytes(4), bytes(16)), "bad-field"),
        (Taken(bytes(5), bytes(10)), "bad-field"),
        (Taken(bytes(6), bytes(12)), "bad-field"),
        (Taken(bytes(4), packed_numbers([CLAIMED_SEQUENCE_MAX + 1])), "bad-field"),
        (Taken(bytes(8), packed_numbers([0, 2**64 - 1])), "bad-field"),
        (Taken(bytes(4 * SLOTS_MAX + 4), bytes(8 * SLOTS_MAX + 8)), "too-long"),
        (Missed(2**32, 1, 1), "bad-field"),
        (Missed(1, CLAIMED_SEQUENCE_MAX + 1, 1), "bad-field"),
        (Attach([(2**32, "p", 0, 0)]), "bad-field"),
        (Attach([(1, "p", CLAIMED_SEQUENCE_MAX + 1, 0)]), "bad-field"),
        (Attach([(1, "p", 0, 5)]), "bad-field"),
        (Attach([(1, "p", 0, 0)] * (SLOTS_MAX + 1)), "too-long"),
        (Detached(2**32, "moved", ""), "bad-field"),
        (Hello(PROTOCOL_VERSION, "king", "B1", "i", [], 65_536, []), "bad-field"),
        (Hello(PROTOCOL_VERSION, "broker", "", "i", [], 65_536, []), "bad-field"),
        (Hello(PROTOCOL_VERSION, "broker", "a|b", "i", [], 65_536, []), "bad-field"),
        (Hello(PROTOCOL_VERSION, "broker", "a/b", "i", [], 65_536, []), "bad-field"),
        (Hello(PROTOCOL_VERSION, "broker", "a", "i", [], 65_535, []), "bad-field"),
        (Hello(PROTOCOL_VERSION, "broker", "a", "i", ["f"] * 65, 65_536, []), "too-long"),
    ],
)
def test_a_wrong_frame_does_not_leave(frame: Frame, code: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        encode(frame, *place(frame))
    assert caught.value.code == code


def test_long_texts_travel_in_the_body() -> None:
    text = "x" * 200_000
    for frame in (
        PlaceProfile("p", "u", text, 1, ""),
        PlaceProfiles([("p", "u", text)]),
        ProfilesChanged([("p", 1, text)]),
        RoutingDelta("r", [text], [text]),
        Deliveries("s", 1, [0] * 100_000, bytes(4 * SLOTS_MAX), bytes(8 * SLOTS_MAX), b""),
        Attach([(slot, f"profile-{slot}", slot, 1) for slot in range(SLOTS_MAX)]),
        Hello(
            PROTOCOL_VERSION,
            "broker",
            "a",
            "i",
            [],
            65_536,
            [(3, f"key-{n}", n) for n in range(10_000)],
        ),
    ):
        assert decode(encode(frame, *place(frame))[LENGTH_BYTES:]).frame == frame


@pytest.mark.parametrize(
    ("slots", "numbers"),
    [
        (bytes(4), b""),
        (b"", bytes(8)),
        (bytes(3), bytes(6)),
        (bytes(4), bytes(9)),
        (bytes(4), packed_numbers([CLAIMED_SEQUENCE_MAX + 1])),
        (bytes(8), packed_numbers([1, 2**64 - 1])),
        ("text", bytes(8)),
        (bytes(4), [1]),
    ],
)
def test_columns_that_do_not_go_together_are_refused(slots: object, numbers: object) -> None:
    whole = {"slots": packed_slots([1]), "numbers": packed_numbers([CLAIMED_SEQUENCE_MAX])}
    assert decode(frame_from({"t": "taken"}, msgpack.packb(whole))).frame == Taken(**whole)
    for header, others in (
        ({"t": "taken"}, {}),
        ({"t": "deliveries", "source": "s1", "number": 1}, {"lengths": []}),
    ):
        body = msgpack.packb({**others, "slots": slots, "numbers": numbers})
        error = refusal(frame_from(header, body))
        assert (error.code, error.fatal) == ("bad-field", False)


def test_columns_are_little_endian() -> None:
    assert packed_slots([1, 2**32 - 1]).hex() == "01000000ffffffff"
    assert packed_numbers([42, 2**40]).hex() == "2a000000000000000000000000010000"
    frame = Taken(packed_slots([3, 9]), packed_numbers([42, 7]))
    assert list(columns(frame)) == [(3, 42), (9, 7)]


def test_a_header_that_is_too_long_does_not_leave() -> None:
    frame = Hello(PROTOCOL_VERSION, "broker", "a", "i", ["f" * 256] * 64, 65_536, [])
    assert decode(encode(frame)[LENGTH_BYTES:]).frame == frame  # the longest there can be


def test_nesting_is_bounded() -> None:
    value: object = 1
    for _ in range(MAP_DEPTH_MAX - 2):
        value = [value]
    assert encode(Request("1", "v", {"a": value}))
    with pytest.raises(ProtocolError, match="nested"):
        encode(Request("1", "v", {"a": [value]}))
    body = b"\x81\xa9arguments\x81\xa1a" + b"\x91" * 100_000 + b"\x01"
    assert refusal(frame_from({"t": "request", "request": "1", "verb": "v"}, body)).code in (
        "malformed",
        "too-long",
    )


def test_places_are_checked() -> None:
    with pytest.raises(ValueError, match="not sequenced"):
        encode(Ping(1), "key", 1)
    sequenced = next(frame for frame in SAMPLES if frame.sequenced)
    for key, sequence in (("k", 0), ("k", SEQUENCE_MAX + 1), ("k" * 257, 1)):
        with pytest.raises(ProtocolError):
            encode(sequenced, key, sequence)


def test_a_frame_type_is_registered_once() -> None:
    with pytest.raises(ValueError, match="taken"):
        on_the_wire(Ping)


class TestFrameDecoder:
    def test_any_cut_gives_the_same_frames(self) -> None:
        stream = b"".join(encode(frame, *place(frame)) for frame in SAMPLES)
        for size in (1, 2, 3, 5, 64, 1000, len(stream)):
            decoder = FrameDecoder(65_536)
            seen = []
            for start in range(0, len(stream), size):
                decoder.feed(stream[start : start + size])
                while (raw := decoder.next_frame()) is not None:
                    seen.append(decode(raw).frame)
            assert tuple(seen) == SAMPLES
            assert decoder.buffered_bytes == 0

    def test_a_length_beyond_the_bound_is_fatal_at_once(self) -> None:
        decoder = FrameDecoder(100)
        decoder.feed((101).to_bytes(4, "big"))
        with pytest.raises(ProtocolError) as caught:
            decoder.next_frame()
        assert (caught.value.code, caught.value.fatal) == ("too-long", True)

    def test_a_frame_of_the_bound_passes(self) -> None:
        decoder = FrameDecoder(100)
        decoder.feed((100).to_bytes(4, "big") + bytes(100))
        assert decoder.next_frame() == bytes(100)
