"""What the benchmark ``network`` says to other services, and what it understands of them."""

from __future__ import annotations

import struct

import pytest

from benchmarks.network.protocols import PROTOCOLS


def amqp_frame(kind: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, 1, len(payload)) + payload + b"\xce"


def amqp_method(kind: int, number: int, arguments: bytes) -> bytes:
    return amqp_frame(1, struct.pack(">HH", kind, number) + arguments)


def amqp_delivery(number: int, *bodies: bytes) -> bytes:
    deliver = b"\3tag" + struct.pack(">QB", number, 0) + b"\x09benchmark\0"
    header = struct.pack(">HHQH", 60, 0, sum(map(len, bodies)), 0x1000) + b"\2"
    frames = [amqp_method(60, 60, deliver), amqp_frame(2, header)]
    return b"".join([*frames, *(amqp_frame(3, body) for body in bodies)])


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
    "amqp": (
        (
            amqp_method(10, 10, b"\0\x09\0\0\0\0")
            + amqp_method(60, 21, b"\3tag")
            + amqp_delivery(1, b"first")
            + amqp_delivery(2, b"sec", b"ond")
        ),
        1,
    ),
    "mqtt": (
        (
            b"\x20\2\0\0\x90\3\0\1\1"
            b"\x32\x12\0\x09benchmark\0\7first\x3a\x13\0\x09benchmark\0\x08second\x40\2\0\1"
        ),
        2,
    ),
    "stomp": (
        (
            b"CONNECTED\nversion:1.2\n\n\0\nRECEIPT\nreceipt-id:1\n\n\0\n"
            b"MESSAGE\nack:a\\c1\ncontent-length:5\n\nfirst\0\nMESSAGE\nack:2\n\nsecond\0"
        ),
        1,
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
    "amqp": amqp_method(60, 80, struct.pack(">QB", 2, True)),
    "mqtt": b"\x40\2\0\7\x40\2\0\x08",
    "stomp": b"ACK\nid:2\n\n\0",
    "redis": b"",
}
REFUSED = {
    "nats": b"-ERR 'no'\r\n",
    "jetstream": b'MSG answers 2 14\r\n{"error":"no"}\r\n',
    "amqp": amqp_method(20, 40, b"\1\x90\2no\0\0\0\0"),
    "mqtt": b"\x20\2\0\5",
    "stomp": b"ERROR\nmessage:no\n\n\0",
    "redis": b"-ERR no\r\n",
}
# How "first" is published, and how often that is confirmed.
PUBLISHED = {
    "framed": (b"\0\0\0\5first", 1),
    "nats": (b"PUB benchmark 5\r\nfirst\r\nPING\r\n", 1),
    "jetstream": (b"PUB benchmark answers 5\r\nfirst\r\n", 1),
    "amqp": (
        (
            amqp_method(60, 40, b"\0\0\x09benchmark\0\0")
            + amqp_frame(2, struct.pack(">HHQH", 60, 0, 5, 0x1000) + b"\2")
            + amqp_frame(3, b"first")
        ),
        1,
    ),
    "mqtt": (b"\x32\x12\0\x09benchmark\0\1first", 1),
    "stomp": (
        (
            b"SEND\ndestination:/topic/benchmark\npersistent:true\nreceipt:1\n"
            b"content-length:5\n\nfirst\0"
        ),
        1,
    ),
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
    with pytest.raises(ConnectionError, match=r"no|refuses"):
        PROTOCOLS[name]().take(bytearray(REFUSED[name]))


def test_nats_is_answered() -> None:
    assert PROTOCOLS["nats"]().take(bytearray(b"PING\r\n")).reply == b"PONG\r\n"


def test_jetstream_keeps_the_messages_of_subscribers_who_are_away() -> None:
    stream, consumer = PROTOCOLS["jetstream"]().declarations(1)
    assert b"PUB $JS.API.STREAM.CREATE.benchmark answers " in stream
    assert b'"storage": "file"' in stream
    assert consumer.startswith(b"PUB $JS.API.CONSUMER.DURABLE.CREATE.benchmark.c0 answers ")
    assert b'"ack_policy": "explicit"' in consumer


def test_rabbitmq_keeps_the_messages_of_subscribers_who_are_away() -> None:
    exchange, queue = PROTOCOLS["amqp"]().declarations(1)
    assert exchange.startswith(b"AMQP\0\0\x09\1")
    assert exchange.endswith(amqp_method(40, 10, b"\0\0\x09benchmark\6fanout\2\0\0\0\0"))
    durable = amqp_method(50, 10, b"\0\0\2q0\2\0\0\0\0")
    assert queue == durable + amqp_method(50, 20, b"\0\0\2q0\x09benchmark\0\0\0\0\0\0")


@pytest.mark.parametrize(
    ("confirmed", "numbers"),
    [
        ([(3, True)], 3),
        ([(2, False), (3, True)], 3),
        ([(3, False), (1, False)], 2),
        ([(1, True), (1, True)], 1),
    ],
)
def test_several_messages_that_rabbitmq_confirms(
    confirmed: list[tuple[int, bool]], numbers: int
) -> None:
    protocol = PROTOCOLS["amqp"]()
    assert protocol.publications([b"a", b"b", b"c"])[1] == 3
    said = b"".join(amqp_method(60, 80, struct.pack(">QB", *each)) for each in confirmed)
    assert protocol.take(bytearray(said)).confirmed == numbers


def test_a_message_is_shared_out_to_frames_of_amqp() -> None:
    said, _ = PROTOCOLS["amqp"]().publications([bytes(200_000)])
    assert said.endswith(amqp_frame(3, bytes(200_000 - 131_064)))


@pytest.mark.parametrize("size", [127, 128, 16_383, 16_384, 200_000])
def test_sizes_of_mqtt(size: int) -> None:
    publisher, subscriber = PROTOCOLS["mqtt"](), PROTOCOLS["mqtt"]()
    said, _ = publisher.publications([bytes(size - 13), b"next"])
    assert subscriber.take(bytearray(said)).messages == [bytes(size - 13), b"next"]


def test_numbers_of_mqtt_begin_again_before_they_are_too_large() -> None:
    protocol = PROTOCOLS["mqtt"]()
    said, _ = protocol.publications([b""] * 65_536)
    assert said[-2:] == b"\0\1"


def test_a_message_of_stomp_may_hold_any_byte() -> None:
    said, _ = PROTOCOLS["stomp"]().publications([b"a\0\n\nb"])
    message = said.replace(b"SEND\n", b"MESSAGE\nack:1\n")
    assert PROTOCOLS["stomp"]().take(bytearray(message)).messages == [b"a\0\n\nb"]
