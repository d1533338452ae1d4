"""PROTOCOLS: those of the services that are measured beside Onyx, by their names in a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.network.framed import Framed
from benchmarks.network.nats import JetStream, Nats
from benchmarks.network.redis import Redis
from benchmarks.network.service_protocol import ServiceProtocol

PROTOCOLS: Mapping[str, Callable[[], ServiceProtocol]] = {
    "framed": Framed,
    "nats": Nats,
    "jetstream": JetStream,
    "redis": Redis,
}
