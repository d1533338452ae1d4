"""``map``: the gateway's page with the map of a large network, whose brokers run.

Every broker is the real core in the real node with sockets of its own, many of them in a process;
the registration service, the gateway and the browser have processes of their own.  What is promised
is that the map of 1,000 brokers is fluent, at most a second behind, and at most 200 KB.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import trio

from benchmarks import machine
from benchmarks.benchmark import Benchmark, BenchmarkError, WrongAnswers, count, positive
from benchmarks.map.relay import Relay, relay
from benchmarks.map.shape import Probe, make_shape
from benchmarks.network.helper import Helper, helper, running
from benchmarks.network.processor import processor_seconds
from benchmarks.report import Report
from benchmarks.samples import median, percentile
from formats.kernel import build_info
from onyx.data_directory import DataDirectory
from onyx.identity.known_networks import INSECURE, VARIABLE
from overlay.topology import Topology

HOST = "127.0.0.1"
SETTLE_SECONDS = 5.0
BEHIND_MAX_S = 2.0  # for so long after the last message lights are waited for


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the benchmark."""
    parser.add_argument("--brokers", metavar="N", type=positive, default=1_000)
    parser.add_argument(
        "--processes", metavar="N", type=positive, default=4, help="that the brokers share"
    )
    parser.add_argument(
        "--seconds", metavar="N", type=positive, default=60, help="of each measurement"
    )
    parser.add_argument(
        "--rate", metavar="N", type=positive, default=5, help="messages a second of all sources"
    )
    parser.add_argument("--sources", metavar="N", type=positive, default=10)
    parser.add_argument("--profiles", metavar="N", type=positive, default=400)
    parser.add_argument(
        "--probes", metavar="N", type=positive, default=10, help="links that are timed, at most 20"
    )
    parser.add_argument("--seed", metavar="N", type=count, default=1)


def run(options: argparse.Namespace) -> Report:
    """Measures; raises WrongAnswers where a message did not light its link."""
    if missing := _missing():
        raise BenchmarkError(f"this needs {missing}")
    if options.probes > 20 or options.brokers < options.probes + 2:
        raise BenchmarkError("at most 20 probes, and at least 2 brokers besides")
    report = Report("map: the page with the map of a network that runs")
    report.condition("machine", "machine", machine.description())
    report.condition("build", "build", build_info())
    for name in (
        "brokers",
        "processes",
        "seconds",
        "rate",
        "sources",
        "profiles",
        "probes",
        "seed",
    ):
        report.condition(name, name, getattr(options, name))
    report.condition("load", "load of the machine before", round(os.getloadavg()[0], 1))
    with tempfile.TemporaryDirectory(prefix="onyx-map-") as place:
        trio.run(_measure, report, options, Path(place))
    return report


def _missing() -> str:
    """Of what is not taken for granted; "": nothing."""
    packages = [name for name in ("playwright", "starlette", "hypercorn") if not find_spec(name)]
    return ", ".join([*packages, *([] if shutil.which("chromium") else ["chromium"])])


async def _measure(report: Report, options: argparse.Namespace, data: Path) -> None:
    shape = make_shape(
        *(options.brokers, options.probes, options.sources, options.profiles),
        *(data, options.seed),
    )
    async with AsyncExitStack() as stack:
        topology = await stack.enter_async_context(_network(shape.topology, options, report))
        registration = topology.where(topology.registration[0].id)
        gateway = await stack.enter_async_context(_gateway(registration))
        way = await stack.enter_async_context(relay((await gateway.answer())["url"]))
        browser = await stack.enter_async_context(
            helper("benchmarks.map.browser", {"url": way.url})
        )
        first = {**await browser.answer(), "bytes": way.sent}
        again = {**await browser.ask({"url": way.url}), "bytes": way.sent - first["bytes"]}
        _report_opening(report, first, again)
        _tell("the map", {**first, "again": again})
        await trio.sleep(SETTLE_SECONDS)
        idle = await _phase(browser, gateway, way, options.seconds)
        job = {
            "registration": registration,
            "topology": str(DataDirectory(data).topology_file),
            **{name: getattr(shape, name) for name in ("probes", "roots", "hosts")},
            **{name: getattr(options, name) for name in ("rate", "seed")},
        }
        traffic = await stack.enter_async_context(helper("benchmarks.map.traffic", job))
        _tell("idle", {"bytes": idle.bytes, "gateway_s": idle.gateway_s, "seconds": idle.seconds})
        await traffic.answer()
        await traffic.ask({"publish": True})
        busy = await _phase(browser, gateway, way, options.seconds)
        dragged = await _phase(browser, gateway, way, options.seconds / 2, drags=True)
        published = await traffic.ask({})
        last = await _phase(browser, gateway, way, BEHIND_MAX_S)
        report.condition(
            "published_per_s", "messages a second that were published",
            round(published["messages"] / published["seconds"], 2),
        )  # fmt: skip
        delays = behind(shape.probes, published["probes"], (busy, dragged, last))
        _report_phases(report, idle, busy, dragged, delays)
        report.condition("load_after", "and after", round(os.getloadavg()[0], 1))


@asynccontextmanager
async def _network(
    topology: Topology, options: argparse.Namespace, report: Report
) -> AsyncIterator[Topology]:
    """All of it ready, with the addresses that it has."""
    (registration,) = (node.id for node in topology.registration)
    ids = topology.broker_ids
    shares = [
        [registration],
        *(list(ids[at :: options.processes]) for at in range(options.processes)),
    ]
    async with AsyncExitStack() as stack:
        began = time.monotonic()
        processes = [
            await stack.enter_async_context(helper("benchmarks.map.nodes", {"nodes": share}))
            for share in shares
            if share
        ]
        clients: dict[str, tuple[str, int]] = {}
        links: dict[str, tuple[str, int]] = {}
        for share, process in zip(shares, processes, strict=False):
            for node, (own, link) in zip(share, (await process.answer())["ports"], strict=True):
                clients[node], links[node] = (HOST, own), (HOST, link)
        topology = topology.with_addresses(clients, links)
        directory = DataDirectory(topology.data_directory)
        with directory.locked():
            file = str(directory.write_topology(topology))
            for process in processes:
                await process.tell({"topology": file})
            for process in processes:
                await process.answer()
            report.figure(
                "start_s", "the network, until all brokers are ready", time.monotonic() - began, "s"
            )
            held = await processes[1].ask({})
            report.figure(
                "broker_bytes", "memory of a broker beside the program", held["bytes"], "bytes"
            )
            report.figure("broker_files", "open files of a broker", held["files"])
            _tell("the network", {"start_s": time.monotonic() - began, **held})
            yield topology


def _tell(what: str, said: Mapping[str, object]) -> None:
    """How far a long run is."""
    print(f"map: {what}: {json.dumps(said)}", file=sys.stderr, flush=True)


@asynccontextmanager
async def _gateway(registration: str) -> AsyncIterator[Helper]:
    """As an operator starts it."""
    command = ["env", f"{VARIABLE}={INSECURE}", sys.executable, "-m", "onyx", "gateway"]
    command += ["--listen", f"{HOST}:0", "--registration", registration, "--json"]
    async with running("onyx gateway", command) as gateway:
        yield gateway


@dataclass(frozen=True, slots=True)
class Phase:
    """What came, was drawn and was spent in so many ``seconds``; ``lights``: link and time."""

    bytes: int
    seconds: float
    frames: Sequence[float]
    script_s: float
    lights: Sequence[tuple[str, float]]
    gateway_s: float


async def _phase(
    browser: Helper, gateway: Helper, way: Relay, seconds: float, drags: bool = False
) -> Phase:
    before, sent = processor_seconds(gateway.pid), way.sent
    said: Any = await browser.ask({"seconds": seconds, "drag": drags})
    spent = processor_seconds(gateway.pid) - before
    return Phase(**said, bytes=way.sent - sent, gateway_s=spent)


def behind(
    probes: Sequence[Probe], told: Sequence[Sequence[float]], phases: Sequence[Phase]
) -> list[float]:
    """Seconds from each message of a probe until its link was lit; WrongAnswers unless each lit it
    once."""
    lights: dict[str, list[float]] = {f"{root}-{host}": [] for root, host in probes}
    for phase in phases:
        for link, at in phase.lights:
            if link in lights:
                lights[link].append(at)
    found: list[float] = []
    for (link, lit), published in zip(lights.items(), told, strict=True):
        if len(lit) != len(published):
            raise WrongAnswers(f"{link} was lit {len(lit)} times by {len(published)} messages")
        found += [at - when for at, when in zip(lit, published, strict=True)]
    if min(found) < 0:
        raise WrongAnswers("a link was lit before its message was published")
    return found


def _report_opening(report: Report, first: Any, again: Any) -> None:
    for key, label, opened in (
        ("map_bytes", "all that is loaded until then, at most 200,000", first),
        ("map_again_bytes", "the same for the next one", again),
    ):
        of = key.removesuffix("bytes")
        who = "nobody had looked before" if opened is first else "the next one"
        drawn, known = ("first_s", "known_s") if opened is first else ("drawn_s", "known_s")
        report.figure(f"{of}{drawn}", f"until the map is drawn, {who}", opened["drawn_s"], "s")
        report.figure(f"{of}{known}", "until all brokers are known on it", opened["known_s"], "s")
        report.figure(key, label, opened["bytes"], "bytes")


def _report_phases(
    report: Report, idle: Phase, busy: Phase, dragged: Phase, delays: Sequence[float]
) -> None:
    report.figure(
        "map_behind_p50_s", "from publishing until a link is lit, median", median(delays), "s"
    )
    report.figure("map_behind_p99_s", "p99, at most 1", percentile(delays, 99), "s")
    report.figure("map_behind_max_s", "the longest", max(delays), "s")
    report.condition("probed", "links lit by probes", len(delays))
    for name, said, phase in (
        ("idle", "while nothing is published", idle),
        ("traffic", "under traffic", busy),
        ("drag", "under traffic, dragged and zoomed", dragged),
    ):
        suffix = "" if phase is busy else f"_{name}"
        report.figure(
            f"map_frame_p95_ms{suffix}", f"from frame to frame, p95, {said}",
            percentile(phase.frames, 95), "ms",
        )  # fmt: skip
        report.figure(
            f"map_script_share{suffix}", "the page's programs, of a processor",
            phase.script_s / phase.seconds,
        )  # fmt: skip
        report.figure(f"map_bytes_per_s{suffix}", "events", phase.bytes / phase.seconds, "bytes/s")
        report.figure(
            f"gateway_cpu_share{suffix}", "the gateway, of a processor",
            phase.gateway_s / phase.seconds,
        )  # fmt: skip


QUICK = (
    *("--brokers", "8", "--processes", "1", "--seconds", "10"),
    *("--sources", "2", "--profiles", "5", "--probes", "2"),
)

MAP = Benchmark(
    name="map",
    summary="the page with the map of a large network that runs",
    add_options=add_options,
    quick=None if _missing() else QUICK,
    run=run,
)
