"""Nats and JetStream: the two ways of a NATS server, in lines of text.

::

    PUB subject [reply] bytes\\r\\n message \\r\\n
    MSG subject sid [reply] bytes\\r\\n message \\r\\n

NATS core passes on what is published to who is there; a PONG confirms all that was said before the
PING.  JetStream keeps the messages of a subject in files; each is confirmed by an answer in JSON,
and each that a durable consumer is given is acknowledged by an empty message to its reply subject.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from benchmarks.network.service_protocol import SUBJECT, Arrived

_BEGIN = b'CONNECT {"verbose":false,"pedantic":false}\r\n'
_ANSWERS = b"answers"
_ANSWER_SID = b"2"
_OPEN_MAX = 10_000  # messages of a consumer that are not acknowledged


class Nats:
    """NATS core; it has no state."""

    def declarations(self, number: int) -> Sequence[bytes]:
        return ()

    def subscription(self, number: int) -> bytes:
        return _BEGIN + b"SUB " + SUBJECT + b" 1\r\nPING\r\n"

    def publisher(self) -> bytes:
        return _BEGIN

    def publications(self, messages: Sequence[bytes]) -> tuple[bytes, int]:
        lines = [b"PUB %b %d\r\n%b\r\n" % (SUBJECT, len(one), one) for one in messages]
        return b"".join([*lines, b"PING\r\n"]), 1

    def take(self, received: bytearray) -> Arrived:
        arrived = Arrived()
        at = 0
        while (end := received.find(b"\r\n", at)) >= 0:
            words = bytes(received[at:end]).split()
            after = end + 2
            if words[:1] == [b"MSG"]:
                size = int(words[-1])
                if len(received) < after + size + 2:
                    break
                self._take_message(words, bytes(received[after : after + size]), arrived)
                after += size + 2
            elif words == [b"PING"]:
                arrived.reply += b"PONG\r\n"
            elif words == [b"PONG"]:
                arrived.confirmed += 1
            elif words[:1] == [b"-ERR"]:
                raise ConnectionError(bytes(received[at:end]).decode(errors="replace"))
            at = after
        del received[:at]
        return arrived

    def _take_message(self, words: Sequence[bytes], message: bytes, arrived: Arrived) -> None:
        arrived.messages.append(message)


class JetStream(Nats):
    """A stream in files, a durable push consumer for each subscriber, acknowledged explicitly."""

    def declarations(self, number: int) -> Sequence[bytes]:
        name = SUBJECT.decode()
        stream = {"name": name, "subjects": [name], "storage": "file", "retention": "limits"}
        said = [self.publisher() + _asked(f"STREAM.CREATE.{name}", stream)]
        for consumer in range(number):
            durable = f"c{consumer}"
            config = {
                "durable_name": durable,
                "deliver_subject": _delivered_to(consumer),
                "deliver_policy": "all",
                "ack_policy": "explicit",
                "ack_wait": 600 * 10**9,
                "max_ack_pending": _OPEN_MAX,
            }
            about = {"stream_name": name, "config": config}
            said.append(_asked(f"CONSUMER.DURABLE.CREATE.{name}.{durable}", about))
        return said

    def subscription(self, number: int) -> bytes:
        return _BEGIN + b"SUB %b 1\r\nPING\r\n" % _delivered_to(number).encode()

    def publisher(self) -> bytes:
        return _BEGIN + b"SUB %b %b\r\n" % (_ANSWERS, _ANSWER_SID)

    def publications(self, messages: Sequence[bytes]) -> tuple[bytes, int]:
        begin = b"PUB %b %b " % (SUBJECT, _ANSWERS)
        lines = [b"%b%d\r\n%b\r\n" % (begin, len(one), one) for one in messages]
        return b"".join(lines), len(messages)

    def _take_message(self, words: Sequence[bytes], message: bytes, arrived: Arrived) -> None:
        if words[2] != _ANSWER_SID:
            arrived.messages.append(message)
            arrived.reply += b"PUB %b 0\r\n\r\n" % words[3]
        elif "error" in json.loads(message):
            raise ConnectionError(message.decode())
        else:
            arrived.confirmed += 1


def _delivered_to(consumer: int) -> str:
    return f"to.{consumer}"


def _asked(what: str, about: Mapping[str, object]) -> bytes:
    """A request to the server's own interface."""
    text = json.dumps(about).encode()
    return b"PUB $JS.API.%b %b %d\r\n%b\r\n" % (what.encode(), _ANSWERS, len(text), text)
