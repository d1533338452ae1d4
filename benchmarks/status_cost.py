"""What the summary of a broker costs that has many subscribers: the bytes of the answer, and the
processor time of the one thread that everybody waits for.

A broker's core is asked as ``onyx status`` asks it, in frames; sockets and the disk are missing.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from benchmarks.benchmark import WrongAnswers
from benchmarks.placement.core_network import CoreNetwork
from benchmarks.samples import median
from onyx.broker.broker_core import BrokerCore
from overlay.link.events import (
    BatchHandled,
    CallAgain,
    CallAtEnd,
    CalledAgain,
    ConnectionOpened,
    DataReceived,
    SendData,
    singly,
)
from overlay.link.frame import PROTOCOL_VERSION
from overlay.link.frame_codec import FrameDecoder, decode, encode
from overlay.link.frames import Attach, Hello, Request, Response
from overlay.topology import parse_topology

_TOPOLOGY = """
name = "status"
[[registration]]
id = "r1"
listen = "127.0.0.1:1"
[[broker]]
id = "B1"
listen = "127.0.0.1:2"
"""
_FIRST = 1_000_000  # number of a connection; those of the network are below
_FRAME_BYTES_MAX = 64 * 1024 * 1024
_ASKED = 15


class StatusCost(NamedTuple):
    """``answer_bytes`` of a frame, ``cpu_ms``: the median of some."""

    answer_bytes: int
    cpu_ms: float


def status_cost(subscribers: int) -> StatusCost:
    """Of a broker with so many subscribers, each with a profile of its own, and deliveries that
    wait for each second one."""
    network = CoreNetwork(parse_topology(_TOPOLOGY, "status.toml"), ["B1"])
    texts = [f"/a[@n = {number % 2}]" for number in range(subscribers)]
    network.host(texts, ["B1"] * subscribers)
    for _ in range(2):
        network.publish(0, b'<a n="1"/>')
    core = network.brokers["B1"]
    for number in range(subscribers):
        _open(core, _FIRST + number, "subscriber", f"s{number}")
        attach = Attach(profiles=[(0, f"p{number}", 0, 0)])
        _handle(core, DataReceived(_FIRST + number, encode(attach)))
    _open(core, _FIRST - 1, "client", "operator")
    costs = [_ask(core, f"q{number}") for number in range(_ASKED)]
    return StatusCost(max(size for size, _ in costs), median([cpu for _, cpu in costs[1:]]))


def _open(core: BrokerCore, connection: int, role: str, peer: str) -> None:
    _handle(core, ConnectionOpened(connection))
    hello = Hello(
        version=PROTOCOL_VERSION,
        role=role,
        peer=peer,
        instance="benchmark",
        formats=[],
        frame_bytes_max=_FRAME_BYTES_MAX,
        received=[],
    )
    _handle(core, DataReceived(connection, encode(hello)))


def _ask(core: BrokerCore, request: str) -> tuple[int, float]:
    """The bytes of the answer, and ms."""
    asked = encode(Request(request, "statistics", {}))
    begun = time.process_time()
    sent = _handle(core, DataReceived(_FIRST - 1, asked))
    spent = 1000 * (time.process_time() - begun)
    decoder = FrameDecoder(_FRAME_BYTES_MAX)
    decoder.feed(sent.get(_FIRST - 1, b""))
    answer = decoder.next_frame()
    frame = None if answer is None else decode(answer).frame
    if answer is None or not isinstance(frame, Response) or not frame.ok:
        raise WrongAnswers(f"the broker did not say how it is: {frame}")
    return len(answer), spent


def _handle(core: BrokerCore, event: ConnectionOpened | DataReceived) -> dict[int, bytes]:
    """What leaves, by connection."""
    sent: dict[int, bytes] = {}
    events: list[object] = [event]
    while events:
        actions = singly(core.handle(events.pop(0), 0.0))  # type: ignore[arg-type]
        for action in actions:
            if isinstance(action, SendData):
                sent[action.connection] = sent.get(action.connection, b"") + action.data
            elif isinstance(action, CallAgain):
                events.append(CalledAgain())
            elif isinstance(action, CallAtEnd):
                events.append(BatchHandled())
    return sent
