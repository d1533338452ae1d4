"""``transformation``: messages cut and reshaped on the way, against whole ones.

A chain of brokers, the profiles at its last one: the cores themselves (placement/core_network.py),
every frame encoded, numbered, acknowledged and decoded.  The same messages go through networks
that differ in nothing but the ``transformation`` of their links, in turns; what is delivered must
be the same.  Bytes are all that a broker sends to the next one, its frames' headers included.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from statistics import fmean, median

from benchmarks import machine
from benchmarks.benchmark import Benchmark, WrongAnswers, count, positive
from benchmarks.placement.core_network import CoreNetwork
from benchmarks.report import Report
from benchmarks.transformed.links import measure_added, measure_links
from benchmarks.transformed.workloads import Workload, batches, feeds, finance, pictures
from formats.kernel import build_info
from overlay.topology import parse_topology

OFF, PROJECTION, FULL = "off", "projection", "full"
KINDS = ("batches", "feeds", "finance", "pictures")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the benchmark."""
    parser.add_argument(
        "--messages", metavar="N", type=positive, default=20, help="of each kind (default: 20)"
    )
    parser.add_argument(
        "--rounds",
        metavar="N",
        type=positive,
        default=5,
        help="how often all are sent; the median counts (default: 5)",
    )
    parser.add_argument(
        "--hops", metavar="N", type=positive, default=3, help="links of the chain (default: 3)"
    )
    parser.add_argument(
        "--format", default="binary", help="wire format of the links (default: binary)"
    )
    parser.add_argument(
        "--kinds", nargs="+", choices=KINDS, default=KINDS, help="of messages (default: all)"
    )
    parser.add_argument(
        "--needs",
        metavar="N",
        type=positive,
        default=20_000,
        help="added to a link, which is timed (default: 20000)",
    )
    parser.add_argument("--seed", metavar="N", type=count, default=1)


@dataclass(slots=True)
class _Chain:
    """``cpu_s``: of each round, by broker; ``sent``: bytes a round, by link."""

    network: CoreNetwork
    brokers: Sequence[str]
    cpu_s: list[list[float]] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    delivered: int = 0

    def round(self, messages: Sequence[bytes]) -> None:
        network = self.network
        cpu, sent = network.cpu_of.copy(), network.sent_bytes.copy()
        delivered = network.counted("delivered")
        gc.disable()
        try:
            for message in messages:
                network.publish(0, message)
        finally:
            gc.enable()
        self.cpu_s.append([network.cpu_of[broker] - cpu[broker] for broker in self.brokers])
        links = list(pairwise(self.brokers))
        self.sent = [network.sent_bytes[link] - sent[link] for link in links]
        self.delivered = network.counted("delivered") - delivered

    @property
    def cpu_of_brokers(self) -> list[float]:
        """Seconds a round, each broker's median."""
        return [median(times) for times in zip(*self.cpu_s, strict=True)]


@dataclass(frozen=True, slots=True)
class _Row:
    """One workload and share, by what the links do."""

    workload: str
    share: int
    messages: int
    text_bytes: int
    chains: Mapping[str, _Chain]

    def bytes_ratio(self, mode: str) -> float:
        return sum(self.chains[mode].sent) / sum(self.chains[OFF].sent)

    def cpu_ratio(self, mode: str) -> float:
        """The median over the rounds: what two networks need in the same round is compared."""
        pairs = zip(self.chains[mode].cpu_s, self.chains[OFF].cpu_s, strict=True)
        return median(sum(mine) / sum(theirs) for mine, theirs in pairs)

    def to_json(self) -> dict[str, object]:
        return {
            mode: {
                "bytes_ratio": round(self.bytes_ratio(mode), 4),
                "cpu_ratio": round(self.cpu_ratio(mode), 4),
                "bytes_a_message_by_link": [sent // self.messages for sent in chain.sent],
                "cpu_us_a_message_by_broker": [
                    round(1e6 * cpu / self.messages, 1) for cpu in chain.cpu_of_brokers
                ],
            }
            for mode, chain in self.chains.items()
        }


def run(options: argparse.Namespace) -> Report:
    """WrongAnswers when less or more is delivered than without transformation."""
    makers: Mapping[str, Callable[[int, Random], Workload | None]] = {
        "batches": batches,
        "feeds": feeds,
        "finance": finance,
        "pictures": pictures,
    }
    rows = []
    missing = []
    for kind in options.kinds:
        workload = makers[kind](options.messages, Random(options.seed))
        if workload is None:
            missing.append(kind)
            continue
        modes = (OFF, PROJECTION, FULL) if kind == "pictures" else (OFF, PROJECTION)
        rows += [_measure(workload, share, modes, options) for share in workload.profiles]
    report = Report(f"transformation: a chain of {options.hops} links, {options.format}")
    report.condition("machine", "machine", machine.description())
    report.condition("build", "build", build_info())
    _tell(report, rows)
    _tell_links(report, options)
    for kind in missing:
        report.remark(f"no messages of {kind}: ../shared/data is not there")
    return report


def _measure(
    workload: Workload, share: int, modes: Sequence[str], options: argparse.Namespace
) -> _Row:
    brokers = [f"B{number}" for number in range(1, options.hops + 2)]
    chains = {mode: _Chain(_network(brokers, mode, options.format), brokers) for mode in modes}
    texts = workload.profiles[share]
    for chain in chains.values():
        chain.network.host(texts, [brokers[-1]] * len(texts))
        chain.round(workload.messages)  # until lazy states and dictionaries are there
        chain.cpu_s.clear()
    gc.collect()
    for _ in range(options.rounds):
        for chain in chains.values():
            chain.round(workload.messages)
    expected = chains[OFF].delivered
    for mode, chain in chains.items():
        if chain.delivered != expected:
            raise WrongAnswers(
                f"{workload.name}, {share} %, {mode}: {chain.delivered} results were delivered, "
                f"{expected} without transformation"
            )
    text_bytes = sum(map(len, workload.messages))
    return _Row(workload.name, share, len(workload.messages), text_bytes, chains)


def _network(brokers: Sequence[str], mode: str, wire_format: str) -> CoreNetwork:
    lines = ['name = "chain"', "[registration]", 'id = "r"', 'listen = "127.0.0.1:1"']
    for place, broker in enumerate(brokers):
        lines += [
            "[[broker]]",
            f'id = "{broker}"',
            'listen = "127.0.0.1:0"',
            f"place = [{place}, 0]",
        ]
    for one, other in pairwise(brokers):
        lines += ["[[link]]", f'ends = ["{one}", "{other}"]', f'transformation = "{mode}"']
        lines.append(f'format = "{wire_format}"')
    return CoreNetwork(parse_topology("\n".join(lines), "chain"), [brokers[0]])


def _tell(report: Report, rows: Sequence[_Row]) -> None:
    for row in rows:
        _tell_row(report, row)
    cut = [row for row in rows if FULL not in row.chains]
    tenth = [row for row in cut if row.share == 10]
    whole = [row for row in cut if row.share == 100]
    reshaped = [row.bytes_ratio(FULL) for row in rows if FULL in row.chains]
    for key, label, ratios, less in (
        ("bytes_ratio_10_percent", "bytes, cut by whole, at 10 %", _bytes_ratios(tenth), 0),
        ("cpu_ratio_three_hops", "processor time of the path, at 10 %", _cpu_ratios(tenth), 0),
        ("overhead_100_percent", "processor time more, at 100 %", _cpu_ratios(whole), 1),
        ("bytes_ratio_restructured", "bytes, pictures, full by whole", reshaped, 0),
    ):
        report.figure(key, label, fmean(ratios) - less if ratios else None)
    report.remark("ratios over all links and brokers of the chain; means of the kinds of messages")
    report.detail("rows", {f"{row.workload}_{row.share}": row.to_json() for row in rows})


def _tell_links(report: Report, options: argparse.Namespace) -> None:
    """What finding it costs one broker, for one link and for many."""
    found = measure_links(rounds=4 * options.rounds, seed=options.seed)
    for links in (1, 8, 32):
        label = f"{links} links, equal needs: what is left of a feed"
        report.figure(f"links_{links}_us", label, found[f"links_{links}_us"], "us")
    each = found["links_different_each_us"]
    report.figure("links_different_each_us", "each link more, with other needs", each, "us")
    for key, seconds in measure_added(options.needs).items():
        report.figure(key, f"{options.needs:,} needs added", seconds, "s")


def _bytes_ratios(rows: Sequence[_Row]) -> list[float]:
    return [row.bytes_ratio(PROJECTION) for row in rows]


def _cpu_ratios(rows: Sequence[_Row]) -> list[float]:
    return [row.cpu_ratio(PROJECTION) for row in rows]


def _tell_row(report: Report, row: _Row) -> None:
    for mode, chain in row.chains.items():
        key, label = f"{row.workload}_{row.share}_{mode}", f"{row.workload} {row.share:>3} % {mode}"
        base = f"{row.workload}_{row.share}_{OFF}"
        sent = sum(chain.sent) / len(chain.sent) / row.messages
        spent = 1e6 * sum(chain.cpu_of_brokers) / row.messages
        against = None if mode == OFF else base
        report.figure(
            f"{key}_bytes", f"{label}: a link", sent, "bytes", against and f"{against}_bytes"
        )
        report.figure(
            f"{key}_us", f"{label}: all brokers", spent, "us", against and f"{against}_us"
        )


TRANSFORMATION = Benchmark(
    name="transformation",
    summary="bytes and processor time on a chain of brokers, with messages cut on the way or whole",
    add_options=add_options,
    quick=("--messages", "5", "--rounds", "2"),
    run=run,
)
