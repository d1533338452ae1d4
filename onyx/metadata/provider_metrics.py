"""What Prometheus reads of a provider of metadata: what it has, and what it was asked."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric

from onyx.metadata.serving import ProviderCounts
from onyx.telemetry.metrics import ProcessMetrics, metrics_of

METRICS = tuple(metrics_of(ProviderCounts))


class ProviderMetrics(ProcessMetrics):
    """Of the provider of this process."""

    def __init__(self, name: str, counts: ProviderCounts) -> None:
        super().__init__(name)
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        yield from self.measured(METRICS, self._counts)
        yield from self.about(is_ready=True)
