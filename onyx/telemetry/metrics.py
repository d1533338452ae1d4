"""What Prometheus reads of a process: its statistics by the table of metrics, and its vitals."""

from __future__ import annotations

from collections.abc import Iterator

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

from formats.build import build_info
from onyx.release import version
from onyx.telemetry.metric_table import METRICS, Kind
from overlay.link.histogram import Histogram
from overlay.link.vitals import Vitals

_FAMILIES = {Kind.COUNTER: CounterMetricFamily, Kind.GAUGE: GaugeMetricFamily}


class Metrics(Collector):
    """``text`` for who asks; nothing is gathered before."""

    def __init__(self, process: str, vitals: Vitals) -> None:
        self._process = process
        self._vitals = vitals
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    def text(self, accept: str) -> tuple[bytes, str]:
        """The metrics, and their media type, which one of those that are accepted."""
        encode, media_type = choose_encoder(accept)
        return encode(self._registry), media_type

    def collect(self) -> Iterator[Metric]:
        said = self._vitals.statistics()
        for row in METRICS:
            family = _FAMILIES[row.kind](f"onyx_{row.name}", row.help, labels=row.labels)
            for labels, value in row.read(said):
                family.add_metric(labels, value)
            if family.samples:
                yield family
        yield _histogram(
            "turn",
            "How long everybody waited for one thing, in processor time.",
            self._vitals.turns.histogram,
        )
        yield _histogram("commit", "How long a commit of the store took.", self._vitals.commits)
        yield _histogram(
            "answer",
            "From when events were taken up until what they told others left, behind its commit.",
            self._vitals.answers,
        )
        ready = GaugeMetricFamily("onyx_ready", "1 when the process takes part.")
        ready.add_metric((), float(not self._vitals.hindrance))
        yield ready
        info = InfoMetricFamily("onyx_process", "Which process this is.")
        info.add_metric((), {"process": self._process, "version": version(), "build": build_info()})
        yield info


def _histogram(name: str, help_text: str, histogram: Histogram) -> HistogramMetricFamily:
    buckets = [
        ("+Inf" if bound == float("inf") else str(bound), count)
        for bound, count in histogram.buckets()
    ]
    family = HistogramMetricFamily(f"onyx_{name}_seconds", help_text)
    family.add_metric((), buckets, histogram.seconds)
    return family
