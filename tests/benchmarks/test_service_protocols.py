"""What the benchmark ``network`` says to other services, and what it understands of them."""

from __future__ import annotations

import pytest

from benchmarks.network.protocols import PROTOCOLS

# What a service says that gives a subscriber "first" and "second", and how much it confirms.
SAID = {
    "framed": (b"\0\0\0\0\0\0\0\5first\0\0\0\6second", 1),
    "nats": (
        b'INFO {"a":1}\r\nPONG\r\nMSG benchmark 1 5\r\nfirst\r\nMSG benchmark 1 6\r\nsecond\r\n',
        1,
    ),
    "jetstream": (
        (
            b'INFO {"a":1}\r\nMSG answers 2 12\r\n{"stream":1}\r\nPONG\r\n'
            b"MSG benchmark 1 $JS.ACK.1 5\r\nfirst\r\nMSG benchmark 1 $JS.ACK.2 6\r\nsecond\r\n"
        ),
        2,
    ),
    "redis": (
        (
            b"*3\r\n$9\r\nsubscribe\r\n$9\r\nbenchmark\r\n:1\r\n"
            b"*3\r\n$7\r\nmessage\r\n$9\r\nbenchmark\r\n$5\r\nfirst\r\n"
            b"*3\r\n$7\r\nmessage\r\n$9\r\nbenchmark\r\n$6\r\nsecond\r\n:2\r\n"
        ),
        2,
    ),
}
# What a subscriber answers to that, where it comes all at once.
ACKNOWLEDGED = {
    "framed": b"",
    "nats": b"",
    "jetstream": b"PUB $JS.ACK.1 0\r\n\r\nPUB $JS.ACK.2 0\r\n\r\n",
    "redis": b"",
}
REFUSED = {
    "nats": b"-ERR 'no'\r\n",
    "jetstream": b'MSG answers 2 14\r\n{"error":"no"}\r\n',
    "redis": b"-ERR no\r\n",
}
# How "first" is published, and how often that is confirmed.
PUBLISHED = {
    "framed": (b"\0\0\0\5first", 1),
    "nats": (b"PUB benchmark 5\r\nfirst\r\nPING\r\n", 1),
    "jetstream": (b"PUB benchmark answers 5\r\nfirst\r\n", 1),
    "redis": (b"*3\r\n$7\r\nPUBLISH\r\n$9\r\nbenchmark\r\n$5\r\nfirst\r\n", 1),
}


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("piece", [1, 3, 7, 1_000])
def test_a_protocol_is_read_in_any_pieces(name: str, piece: int) -> None:
    said, confirmed = SAID[name]
    protocol = PROTOCOLS[name]()
    received, messages, confirmations = bytearray(), [], 0
    for at in range(0, len(said), piece):
        received += said[at : at + piece]
        arrived = protocol.take(received)
        messages += arrived.messages
        confirmations += arrived.confirmed
    assert messages == [b"first", b"second"]
    assert confirmations == confirmed
    assert not received


@pytest.mark.parametrize("name", PROTOCOLS)
def test_what_is_taken_is_acknowledged(name: str) -> None:
    assert PROTOCOLS[name]().take(bytearray(SAID[name][0])).reply == ACKNOWLEDGED[name]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_what_is_published(name: str) -> None:
    assert PROTOCOLS[name]().publications([b"first"]) == PUBLISHED[name]


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_service_refuses(name: str) -> None:
    with pytest.raises(ConnectionError, match="no"):
        PROTOCOLS[name]().take(bytearray(REFUSED[name]))


def test_nats_is_answered() -> None:
    assert PROTOCOLS["nats"]().take(bytearray(b"PING\r\n")).reply == b"PONG\r\n"


def test_jetstream_keeps_the_messages_of_subscribers_who_are_away() -> None:
    stream, consumer = PROTOCOLS["jetstream"]().declarations(1)
    assert b"PUB $JS.API.STREAM.CREATE.benchmark answers " in stream
    assert b'"storage": "file"' in stream
    assert consumer.startswith(b"PUB $JS.API.CONSUMER.DURABLE.CREATE.benchmark.c0 answers ")
    assert b'"ack_policy": "explicit"' in consumer
