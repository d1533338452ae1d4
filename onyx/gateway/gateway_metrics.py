"""What Prometheus reads of a gateway: what it was asked, and how long the answers took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from onyx.telemetry.metrics import NODE, ProcessMetrics
from overlay.link.histogram import Histogram

GATEWAY = "gateway"
"""Its name among the processes of a network."""


@dataclass(slots=True)
class Traffic:
    """Of a gateway since it began: ``answers`` by status; ``seconds`` from each request until its
    answer began; ``under_way``: requests, those that are followed among them;
    ``hindrance``: why it cannot do its work, "" when it can."""

    answers: Counter[int] = field(default_factory=Counter)
    seconds: Histogram = field(default_factory=Histogram)
    under_way: int = 0
    streams: int = 0
    sessions: int = 0
    hindrance: str = "it has not met the registration service"


class GatewayMetrics(ProcessMetrics):
    """Of the gateway of this process."""

    def __init__(self, traffic: Traffic) -> None:
        super().__init__(GATEWAY)
        self._traffic = traffic

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
            ("sessions", "Identities with connections to the network.", traffic.sessions),
        ):
            gauge = GaugeMetricFamily(f"onyx_gateway_{name}", help_text, labels=(NODE,))
            gauge.add_metric((GATEWAY,), value)
            yield gauge
        took = "From when a request came until its answer began."
        yield self.histogram("gateway_answer", took, traffic.seconds)
        yield from self.about(not traffic.hindrance)
