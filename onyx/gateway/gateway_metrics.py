"""What Prometheus reads of a gateway: what it was asked, and how long the answers took."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.core import Metric

from onyx.gateway.traffic import Traffic
from onyx.telemetry.metrics import ProcessMetrics, metrics_of

GATEWAY = "gateway"
"""Its name among the processes of a network."""

METRICS = tuple(metrics_of(Traffic))


class GatewayMetrics(ProcessMetrics):
    """Of the gateway of this process."""

    def __init__(self, traffic: Traffic, sessions: Callable[[], int]) -> None:
        """``sessions``: how many are open."""
        super().__init__(GATEWAY)
        self._traffic, self._sessions = traffic, sessions

    def collect(self) -> Iterator[Metric]:
        traffic = self._traffic
        traffic.sessions = self._sessions()
        yield from self.measured(METRICS, traffic)
        yield from self.about(not traffic.hindrance)
