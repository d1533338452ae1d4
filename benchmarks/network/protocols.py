"""PROTOCOLS: those of the services that are measured beside Onyx, by their names in a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.network.amqp import Amqp
from benchmarks.network.framed import Framed
from benchmarks.network.mqtt import Mqtt
from benchmarks.network.nats import JetStream, Nats
from benchmarks.network.redis import Redis
from benchmarks.network.service_protocol import ServiceProtocol
from benchmarks.network.stomp import Stomp

PROTOCOLS: Mapping[str, Callable[[], ServiceProtocol]] = {
    "framed": Framed,
    "nats": Nats,
    "jetstream": JetStream,
    "amqp": Amqp,
    "mqtt": Mqtt,
    "stomp": Stomp,
    "redis": Redis,
}
