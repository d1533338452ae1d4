"""Bytes that nobody should send: answered with error frames, never with an exception."""

from __future__ import annotations

import random

from overlay.link.events import ConnectionOpened, DataReceived, SendData
from overlay.link.frame import PROTOCOL_VERSION, Frame
from overlay.link.frame_codec import encode
from overlay.link.frames import ErrorFrame, Hello, Pong
from overlay.link.link_layer import LinkLayer, Session
from tests.overlay.link.pair import LIMITS, Hand, closed, make_links, sent
from tests.overlay.link.samples import SAMPLES, place


def flip(generator: random.Random, data: bytes) -> bytes:
    """A few bits turned, bytes removed, doubled or put in, or the end cut off."""
    changed = bytearray(data)
    for _ in range(generator.randrange(1, 4)):
        where = generator.randrange(len(changed)) if changed else 0
        kind = generator.randrange(5)
        if not changed or kind == 0:
            changed[where:where] = generator.randbytes(generator.randrange(1, 9))
        elif kind == 1:
            changed[where] ^= 1 << generator.randrange(8)
        elif kind == 2:
            del changed[where : where + generator.randrange(1, 9)]
        elif kind == 3:
            changed[where:where] = changed[where : where + generator.randrange(1, 40)]
        else:
            del changed[where:]
    return bytes(changed)


def reframed(data: bytes) -> bytes:
    """The same with a length that is right, so that the damage is inside."""
    return (max(0, len(data) - 4)).to_bytes(4, "big") + data[4:]


def damaged(generator: random.Random) -> bytes:
    frame: Frame = generator.choice(SAMPLES)
    data = encode(frame, *place(frame))
    kind = generator.randrange(4)
    if kind == 0:
        return generator.randbytes(generator.randrange(1, 200))
    if kind == 1:
        return reframed(generator.randbytes(generator.randrange(4, 200)))
    return flip(generator, data) if kind == 2 else reframed(flip(generator, data))


def test_a_session_that_reports_an_error_closes_exactly_when_it_is_fatal() -> None:
    outcomes = set()
    for seed in range(1500):
        generator = random.Random(seed)
        hand = Hand(make_links())
        hand.meet()
        data = reframed(damaged(generator))
        frames = hand.bytes(data)
        reported = [frame for frame in frames if isinstance(frame, ErrorFrame)]
        if not reported:
            continue
        fatal = any(frame.fatal for frame in reported)
        assert bool(closed(hand.actions)) == fatal, f"seed {seed}"
        outcomes.add(fatal)
        if not fatal:
            (pong,) = hand.bytes(encode_ping())
            assert isinstance(pong, Pong), f"seed {seed}"
    assert outcomes == {True, False}


def test_a_dialler_survives_anything_for_a_hello() -> None:
    for seed in range(1000):
        generator = random.Random(seed)
        links: LinkLayer = make_links()
        list(links.handle(ConnectionOpened(1, "broker/B2"), 0.0))
        answer = Hello(PROTOCOL_VERSION, "broker", "B2", "i", ["xml"], 70_000, [(3, "k", 5)])
        data = flip(generator, encode(answer))
        arrivals = list(links.handle(DataReceived(1, data), 0.0))
        assert len(arrivals) <= 2, f"seed {seed}"
        assert sent(links.drain()), f"seed {seed}"  # our own hello at least


def test_a_session_keeps_no_more_than_a_frame() -> None:
    actions: list[object] = []
    session = Session(1, "", LIMITS, 0.0, actions)  # type: ignore[arg-type]
    data = (LIMITS.hello_bytes_max).to_bytes(4, "big")
    assert list(session.receive(data, 0.0)) == []
    for _ in range(40):
        assert list(session.receive(bytes(65_536), 0.0)) == []
    assert session.decoder.buffered_bytes <= 65_536  # type: ignore[operator]
    assert any(isinstance(action, SendData) for action in actions)


def encode_ping() -> bytes:
    return encode(next(frame for frame in SAMPLES if frame.type == "ping"))
