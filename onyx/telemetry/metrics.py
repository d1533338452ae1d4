"""What Prometheus reads of a process: its statistics by the table of metrics, and its vitals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from formats.kernel import build_info
from onyx.release import version
from onyx.telemetry.metric_table import METRICS, Kind
from overlay.link.histogram import Histogram
from overlay.link.vitals import Vitals

NODE = "node"
"""The label of every metric: a broker or registration service, or its standby."""

_FAMILIES = {Kind.COUNTER: CounterMetricFamily, Kind.GAUGE: GaugeMetricFamily}


class ProcessMetrics(Collector):
    """Of any process: ``text`` for who asks; nothing is gathered before."""

    def __init__(self, process: str) -> None:
        """Its name."""
        self._process = process
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    def text(self, accept: str) -> tuple[bytes, str]:
        """The metrics, and their media type, which one of those that are accepted."""
        encode, media_type = choose_encoder(accept)
        return encode(self._registry), media_type

    def about(self, is_ready: bool) -> Iterator[Metric]:
        """Which process it is, and whether it does its work."""
        ready = GaugeMetricFamily("onyx_ready", "1 when the process takes part.", labels=(NODE,))
        ready.add_metric((self._process,), float(is_ready))
        yield ready
        info = InfoMetricFamily("onyx_process", "Which process this is.", labels=(NODE,))
        info.add_metric((self._process,), {"version": version(), "build": build_info()})
        yield info

    def histogram(self, name: str, help_text: str, histogram: Histogram) -> HistogramMetricFamily:
        """Seconds."""
        buckets = [
            ("+Inf" if bound == float("inf") else str(bound), count)
            for bound, count in histogram.buckets()
        ]
        family = HistogramMetricFamily(f"onyx_{name}_seconds", help_text, labels=(NODE,))
        family.add_metric((self._process,), buckets, histogram.seconds)
        return family


class Metrics(ProcessMetrics):
    """Of a broker or registration service."""

    def __init__(self, process: str, vitals: Vitals) -> None:
        super().__init__(process)
        self._vitals = vitals

    def collect(self) -> Iterator[Metric]:
        said = self._vitals.statistics()
        for row in METRICS:
            names = (NODE, *row.labels)
            family = _FAMILIES[row.kind](f"onyx_{row.name}", row.help, labels=names)
            for labels, value in row.read(said):
                family.add_metric((self._process, *labels), value)
            if family.samples:
                yield family
        for name, help_text, histogram in self._histograms(said):
            yield self.histogram(name, help_text, histogram)
        yield from self.about(not self._vitals.hindrance)

    def _histograms(self, said: Mapping[str, Any]) -> Iterator[tuple[str, str, Histogram]]:
        vitals = self._vitals
        turn = "How long everybody waited for one thing, in processor time."
        yield "turn", turn, vitals.turns.histogram
        yield "commit", "How long a commit of the store took.", vitals.commits
        yield (
            "answer",
            "From when events were taken up until what they told others left, behind its commit.",
            vitals.answers,
        )
        yield "hop", "From when messages were taken up until they left for the next.", vitals.hops
        if "end_to_end" in said.get("data", {}):
            yield (
                "end_to_end",
                "From when its root broker took a message up until it was in mailboxes here.",
                Histogram.of(said["data"]["end_to_end"]),
            )
