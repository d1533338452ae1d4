"""What Prometheus reads of a process: its statistics by the table of metrics, and its vitals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Annotated, Any, get_args, get_origin

from msgspec import UNSET, Struct
from msgspec.structs import fields
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.core import (
    Metric as Family,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from formats.kernel import build_info
from onyx.release import version
from overlay.link.histogram import Histogram
from overlay.link.vitals import Vitals
from overlay.statistics import (
    BrokerStatistics,
    Metric,
    NodeStatistics,
    RegistrationStatistics,
)

# -------------------------------------------------------------------------------------------------
# The metrics of a process: the fields of its statistics that are such.
#
# Labels name brokers, links and sources that are there, refusals by code: never profiles or users,
# of which there may be a million.


LABELS_MAX = 1_000  # of one metric, the first

Sample = tuple[tuple[str, ...], Any]  # values of the labels, and what is measured


@dataclass(frozen=True, slots=True)
class MetricRow:
    """``read`` finds samples in the statistics of a process, none where it has no such thing."""

    metric: Metric
    help: str
    read: Callable[[Any], Iterable[Sample]]


def metrics_of(record: type[Struct], path: tuple[str, ...] = ()) -> Iterator[MetricRow]:
    """Of the fields of a record, which stands there."""
    for field in fields(record):
        kind, *about = get_args(field.type) if get_origin(field.type) is Annotated else [field.type]
        place = (*path, field.name)
        inner = get_args(kind)[-1:] if get_origin(kind) is dict else get_args(kind) or [kind]
        for each in inner:
            if isinstance(each, type) and issubclass(each, Struct) and each is not Histogram:
                yield from metrics_of(each, place)
        for meta in about:
            if meta.extra is not None:
                metric = meta.extra["metric"]
                metric = metric._replace(name=metric.name or field.name)
                yield MetricRow(metric, meta.description, partial(_read, metric, place))


def _read(metric: Metric, path: tuple[str, ...], said: Any) -> Iterator[Sample]:
    for number, name in enumerate(path):
        if isinstance(said, dict):
            for key, entry in islice(said.items(), LABELS_MAX):
                yield from (((key,), value) for _, value in _read(metric, path[number:], entry))
            return
        if said is None or said is UNSET:
            return
        said = getattr(said, name)
    if metric.value is not None:
        said = metric.value(said)
    if metric.label and isinstance(said, dict):
        yield from (((str(key),), value) for key, value in islice(said.items(), LABELS_MAX))
    elif said is not None:
        yield (), len(said) if isinstance(said, dict | list) else said


METRICS: Mapping[type[NodeStatistics], Sequence[MetricRow]] = {
    NodeStatistics: [row for row in metrics_of(NodeStatistics) if row.metric.name == "insecure"],
    BrokerStatistics: [*metrics_of(BrokerStatistics)],
    RegistrationStatistics: [*metrics_of(RegistrationStatistics)],
}


# -------------------------------------------------------------------------------------------------


NODE = "node"
"""The label of every metric: a broker or registration service, or its standby."""


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

    def measured(self, rows: Iterable[MetricRow], said: Any) -> Iterator[Family]:
        """``said``: the record whose ``metrics`` these are."""
        for row in rows:
            name, is_counter, label, _ = row.metric
            kind = CounterMetricFamily if is_counter else GaugeMetricFamily
            family = kind(f"onyx_{name}", row.help, labels=(NODE, label) if label else (NODE,))
            for labels, value in row.read(said):
                if isinstance(value, Histogram):
                    yield self.histogram(name, row.help, value)
                else:
                    family.add_metric((self._process, *labels), float(value))
            if family.samples:
                yield family

    def about(self, is_ready: bool) -> Iterator[Family]:
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

    def collect(self) -> Iterator[Family]:
        said = self._vitals.statistics()
        yield from self.measured(METRICS[type(said)], said)
        for name, help_text, histogram in self._histograms():
            yield self.histogram(name, help_text, histogram)
        yield from self.about(not self._vitals.hindrance)

    def _histograms(self) -> Iterator[tuple[str, str, Histogram]]:
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
