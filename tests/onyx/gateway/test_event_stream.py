"""Streams of events, as they are or packed."""

from __future__ import annotations

import zlib

import pytest
import trio
from starlette.types import Message

from onyx.gateway.api_answers import Tick
from onyx.gateway.event_stream import EventStream, Write, event_text

EVENTS = [event_text("tick", Tick([], [(at, 0, 0, 0, 0, "binary", True) for at in range(200)]))] * 3


async def followed(packs: bool, accepted: str) -> tuple[dict[bytes, bytes], list[bytes]]:
    """The headers, and each piece as it was sent, to the end."""
    sent: list[Message] = []

    async def run(write: Write) -> None:
        for event in EVENTS:
            await write(event)

    async def receive() -> Message:
        await trio.sleep_forever()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"accept-encoding", accepted.encode())]
    scope = {"type": "http", "method": "GET", "path": "/", "headers": headers}
    await EventStream(run, packs=packs)(scope, receive, send)
    assert not sent[-1].get("more_body")
    return dict(sent[0]["headers"]), [message["body"] for message in sent[1:]]


@pytest.mark.parametrize(("packs", "accepted"), [(False, "gzip"), (True, "br"), (True, "")])
async def test_events_come_as_they_are(packs: bool, accepted: str) -> None:
    headers, pieces = await followed(packs, accepted)
    assert b"content-encoding" not in headers
    assert [piece.decode() for piece in pieces] == [": here\n\n", *EVENTS, ""]


async def test_packed_events_can_be_read_as_soon_as_they_come() -> None:
    headers, pieces = await followed(True, "gzip, deflate, br")
    assert headers[b"content-encoding"] == b"gzip"
    reader = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    read = [reader.decompress(piece).decode() for piece in pieces]
    assert read == [": here\n\n", *EVENTS, ""]
    assert reader.eof
    assert len(b"".join(pieces)) < len("".join(EVENTS)) / 5
