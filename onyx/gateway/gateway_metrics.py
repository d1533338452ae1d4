"""What Prometheus reads of a gateway: what it was asked, and how long the answers took."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from onyx.gateway.traffic import Traffic
from onyx.telemetry.metrics import NODE, ProcessMetrics

GATEWAY = "gateway"
"""Its name among the processes of a network."""


class GatewayMetrics(ProcessMetrics):
    """Of the gateway of this process."""

    def __init__(self, traffic: Traffic, sessions: Callable[[], int]) -> None:
        """``sessions``: how many are open."""
        super().__init__(GATEWAY)
        self._traffic, self._sessions = traffic, sessions

    def collect(self) -> Iterator[Metric]:
        traffic = self._traffic
        answers = CounterMetricFamily(
            "onyx_gateway_answers", "Answers to requests, by status.", labels=(NODE, "status")
        )
        for status, count in sorted(traffic.answers.items()):
            answers.add_metric((GATEWAY, str(status)), count)
        yield answers
        for name, help_text, value in (
            ("requests", "Requests under way, streams among them.", traffic.under_way),
            ("streams", "Results and maps that are followed.", traffic.streams),
            ("sessions", "Identities with connections to the network.", self._sessions()),
        ):
            gauge = GaugeMetricFamily(f"onyx_gateway_{name}", help_text, labels=(NODE,))
            gauge.add_metric((GATEWAY,), value)
            yield gauge
        took = "From when a request came until its answer began."
        yield self.histogram("gateway_answer", took, traffic.seconds)
        yield from self.about(not traffic.hindrance)
