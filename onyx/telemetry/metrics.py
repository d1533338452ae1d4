"""What Prometheus reads of a process: its statistics by the table of metrics, and its vitals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
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
from overlay.link.histogram import Histogram
from overlay.link.vitals import Vitals

# -------------------------------------------------------------------------------------------------
# The metrics of a process: a table, each row with where its value stands in the statistics.
#
# Labels name brokers, links and sources that are there, refusals by code: never profiles or users,
# of which there may be a million.


LABELS_MAX = 1_000  # of one metric, the first

Statistics = Mapping[str, Any]
Sample = tuple[tuple[str, ...], float]  # values of the labels, and what is measured
Read = Callable[[Statistics], Iterator[Sample]]


class Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True)
class MetricRow:
    """``name`` without ``onyx_``, a counter's without ``_total``; ``labels`` of each sample that
    ``read`` finds in the statistics of a process, none where it has no such thing."""

    name: str
    kind: Kind
    help: str
    read: Read
    labels: tuple[str, ...] = ()


def _found(statistics: Statistics, path: tuple[str, ...]) -> Any:
    value: Any = statistics
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    return value


def at(*path: str) -> Read:
    """The number there; a list or mapping counts its entries."""

    def read(statistics: Statistics) -> Iterator[Sample]:
        value = _found(statistics, path)
        if isinstance(value, (list, tuple, Mapping)):
            value = len(value)
        if isinstance(value, (int, float)):
            yield (), float(value)

    return read


def since(section: str, key: str) -> Read:
    """A counter that is not there before it counts: 0 where its section is."""

    def read(statistics: Statistics) -> Iterator[Sample]:
        found = statistics.get(section)
        if found is not None:
            yield (), float(found.get(key, 0))

    return read


def each(*path: str, value: tuple[str, ...] = ()) -> Read:
    """The numbers in a mapping, by its keys; ``value``: where in each of them."""

    def read(statistics: Statistics) -> Iterator[Sample]:
        found = _found(statistics, path) or {}
        for key, entry in islice(found.items(), LABELS_MAX):
            number = _found({"": entry}, ("", *value))
            if isinstance(number, (int, float)):
                yield (str(key),), float(number)

    return read


def either(*reads: Read) -> Read:
    """What any of them finds: of a broker, or of the registration service."""
    return lambda statistics: (sample for read in reads for sample in read(statistics))


def waiting(statistics: Statistics) -> Iterator[Sample]:
    """Bytes that wait for each neighbour, of all its channels."""
    journals = _found(statistics, ("links", "journals")) or {}
    for peer, journal in islice(journals.items(), LABELS_MAX):
        if peer.startswith("broker/"):
            channels = journal.get("sending", {}).values()
            size = sum(channel["backlog_bytes"] for channel in channels)
            yield (peer.removeprefix("broker/"),), float(size)


def online(statistics: Statistics) -> Iterator[Sample]:
    """Whether each neighbour, or the registration service, is there."""
    journals = _found(statistics, ("links", "journals")) or {}
    for peer, journal in islice(journals.items(), LABELS_MAX):
        if peer.startswith(("broker/", "registration/")):
            yield (peer.partition("/")[2],), float(journal["online"])


_COUNTER, _GAUGE = Kind.COUNTER, Kind.GAUGE

METRICS = (
    MetricRow(
        "published", _COUNTER, "Messages that sources published here.", since("data", "published")
    ),
    MetricRow(
        "refused",
        _COUNTER,
        "Messages that were published here and refused.",
        since("data", "refused"),
    ),
    MetricRow(
        "refused_by_code",
        _COUNTER,
        "The same, by the code of the refusal.",
        each("data", "refused_by_code"),
        ("code",),
    ),
    MetricRow(
        "source_messages",
        _COUNTER,
        "Messages that a source published here.",
        each("data", "sources"),
        ("source",),
    ),
    MetricRow(
        "source_bytes",
        _COUNTER,
        "Bytes of what a source published here.",
        each("data", "source_bytes"),
        ("source",),
    ),
    MetricRow(
        "received", _COUNTER, "Messages that came from other brokers.", since("data", "received")
    ),
    MetricRow(
        "crossings",
        _COUNTER,
        "Messages that were sent to a neighbour.",
        each("data", "crossings"),
        ("to",),
    ),
    MetricRow(
        "crossing_bytes",
        _COUNTER,
        "Bytes of messages that were sent to a neighbour.",
        each("data", "crossing_bytes"),
        ("to",),
    ),
    MetricRow(
        "matched_here",
        _COUNTER,
        "Messages that matched profiles of this broker.",
        since("data", "matched_here"),
    ),
    MetricRow(
        "delivered", _COUNTER, "Deliveries to mailboxes of users.", since("data", "delivered")
    ),
    MetricRow(
        "matched_nothing",
        _COUNTER,
        "Messages from other brokers that nobody here or further on wanted.",
        since("data", "matched_nothing"),
    ),
    MetricRow(
        "invalid",
        _COUNTER,
        "Messages of a source that its schema does not allow.",
        each("data", "invalid_by_source"),
        ("source",),
    ),
    MetricRow(
        "useless_crossings",
        _COUNTER,
        "Messages that came for the sake of a routing table that says too much.",
        at("query", "routing_table", "useless"),
    ),
    MetricRow(
        "cut_messages",
        _COUNTER,
        "Messages that were cut down for a neighbour.",
        each("query", "transformation", "links", value=("cut",)),
        ("to",),
    ),
    MetricRow(
        "link_bytes",
        _COUNTER,
        "Bytes of messages that went to a neighbour that cuts.",
        each("query", "transformation", "links", value=("bytes",)),
        ("to",),
    ),
    MetricRow(
        "spared_bytes",
        _COUNTER,
        "About as many bytes as cutting has spared on a link.",
        each("query", "transformation", "links", value=("bytes_saved",)),
        ("to",),
    ),
    MetricRow(
        "frames_refused",
        _COUNTER,
        "Frames that were refused, by the code of the error.",
        each("unexpected"),
        ("code",),
    ),
    MetricRow(
        "dropped_for_limits",
        _COUNTER,
        "Deliveries that went untaken for any limit of the network.",
        since("mailboxes", "dropped_for_limits"),
    ),
    MetricRow(
        "dropped_for_room",
        _COUNTER,
        "Deliveries of these that went for want of room in the store.",
        since("mailboxes", "dropped_for_room"),
    ),
    MetricRow(
        "dropped_for_age",
        _COUNTER,
        "Deliveries of these that went as they were too old.",
        since("mailboxes", "dropped_for_age"),
    ),
    MetricRow(
        "results_made",
        _COUNTER,
        "Results that were made of messages.",
        since("mailboxes", "results_made"),
    ),
    MetricRow(
        "results_over_limit",
        _COUNTER,
        "Results that a limit has prevented; users are told.",
        since("mailboxes", "results_over_limit"),
    ),
    MetricRow("store_commits", _COUNTER, "Commits of the store.", at("node", "store", "commits")),
    MetricRow("store_puts", _COUNTER, "Rows that were written.", at("node", "store", "puts")),
    MetricRow("archive_written", _COUNTER, "Messages in the archive.", at("archive", "written")),
    MetricRow(
        "archive_left_out",
        _COUNTER,
        "Messages that the archive had to leave out.",
        at("archive", "left_out"),
    ),
    MetricRow("profiles", _GAUGE, "Profiles that are hosted here.", at("query", "profiles")),
    MetricRow("catalog_profiles", _GAUGE, "Profiles of the network.", at("catalog", "profiles")),
    MetricRow("sources", _GAUGE, "Sources that are known here.", at("control", "sources")),
    MetricRow("catalog_sources", _GAUGE, "Sources of the network.", at("catalog", "sources")),
    MetricRow(
        "routing_entries",
        _GAUGE,
        "Entries of the routing table.",
        at("query", "routing_table", "entries"),
    ),
    MetricRow(
        "routing_bytes",
        _GAUGE,
        "What the routing table takes, of its budget.",
        at("query", "routing_table", "table_bytes"),
    ),
    MetricRow(
        "index_bytes",
        _GAUGE,
        "What the index of profiles takes.",
        at("query", "matcher", "index_bytes"),
    ),
    MetricRow(
        "lazy_dfa_bytes",
        _GAUGE,
        "What lazy tables take that are made while matching.",
        at("query", "matcher", "index_lazy_bytes"),
    ),
    MetricRow(
        "mailbox_deliveries", _GAUGE, "Deliveries that wait for users.", at("mailboxes", "waiting")
    ),
    MetricRow(
        "mailbox_bytes", _GAUGE, "Bytes of what waits for users.", at("mailboxes", "stored_bytes")
    ),
    MetricRow(
        "mailbox_oldest_seconds",
        _GAUGE,
        "How long the oldest that waits for a user has.",
        at("mailboxes", "oldest_s"),
    ),
    MetricRow("subscribers", _GAUGE, "Connections that take results.", at("mailboxes", "attached")),
    MetricRow("backlog_bytes", _GAUGE, "Bytes that wait for a neighbour.", waiting, ("to",)),
    MetricRow(
        "backlog_seconds",
        _GAUGE,
        "How long the oldest that waits for a neighbour has, at least.",
        each("data", "waiting_s"),
        ("to",),
    ),
    MetricRow(
        "peer_online",
        _GAUGE,
        "1 while a neighbour, or the registration service, is there.",
        online,
        ("peer",),
    ),
    MetricRow("connections", _GAUGE, "Open connections.", at("links", "open")),
    MetricRow(
        "frame_memory_bytes",
        _GAUGE,
        "What frames take that wait to leave.",
        at("links", "memory", "bytes"),
    ),
    MetricRow(
        "suspended_profiles",
        _GAUGE,
        "Profiles that stand still, as their user's processor time is spent.",
        at("budgets", "suspended"),
    ),
    MetricRow(
        "dead_letters",
        _GAUGE,
        "Inputs at which the process has failed; see onyx dead list.",
        at("dead", "kept"),
    ),
    MetricRow(
        "set_aside",
        _GAUGE,
        "What is kept because it could not be dealt with, by kind; see onyx dead list.",
        each("dead", "set_aside"),
        ("kind",),
    ),
    MetricRow(
        "planning",
        _GAUGE,
        "1 for the state that automatic planning is in; see onyx plan status.",
        each("planning", "states"),
        ("state",),
    ),
    MetricRow(
        "plans_made", _COUNTER, "Plans that were made automatically.", since("planning", "made")
    ),
    MetricRow(
        "plans_failed",
        _COUNTER,
        "How often making a plan automatically has failed.",
        since("planning", "failed"),
    ),
    MetricRow(
        "moves_under_way",
        _GAUGE,
        "Profiles that are moving to where the plan has them.",
        at("moves", "under_way"),
    ),
    MetricRow(
        "moves_to_look_at",
        _GAUGE,
        "Profiles that are yet to be looked at, whether they have to move.",
        at("application", "to_look_at"),
    ),
    MetricRow(
        "disk_is_short",
        _GAUGE,
        "1 while the disk has less free than its reserve.",
        either(at("data", "disk_is_short"), at("requests", "disk_is_short")),
    ),
    MetricRow(
        "insecure",
        _GAUGE,
        "1 where there is no TLS.",
        lambda said: iter(
            [((), float("tls" in (node := said.get("node", {})) and node["tls"] is None))]
        ),
    ),
    MetricRow(
        "epoch", _GAUGE, "Of the process, where a node has a standby.", at("node", "store", "epoch")
    ),
    MetricRow(
        "longest_turn_seconds",
        _GAUGE,
        "The longest time of the last minute that everybody waited for one thing.",
        lambda said: (
            (labels, value / 1e3) for labels, value in at("node", "longest_turn_minute_ms")(said)
        ),
    ),
)


# -------------------------------------------------------------------------------------------------


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
