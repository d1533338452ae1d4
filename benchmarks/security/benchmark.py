"""``python -m benchmarks security``: what TLS costs, and what those who mean harm can take.

Networks of one broker are started as ``onyx up`` starts them, and killed with the run.

* `tls_ratio`: processor time of the broker for a message of 2 KB, published, accepted and taken by
  one user, with TLS over without; runs in turn, the median of each
* `handshakes_per_s`: that a core of the broker does: one over the processor time of one
* `preauth_bytes`: that the broker holds for a connection until it is known whose it is, of the
  worst of the strangers (strangers.py), so many at once
* `preauth_seconds`: until such a connection is ended, of the worst
* `idle_bytes`: that it holds for a connection of a client that has said hello and no more
* `neighbour_p99_ms`: of another user's deliveries, one at a time, while a hostile profile meets the
  same messages; the worst of all of them, each alone
* `worst_turn_ms`: processor time in which a broker's core reads and matches a message of at most
  64 KiB, and answers; the worst of a table and of a search in each syntax
  (tests/security/dear_messages.py), each the quickest of several times
* `worst_large_turn_ms`: the same for 1,000,000 bytes (tests/security/large_messages.py);
  the time in which another process reads them is not in it
* `gateway_newcomers_refused`: of clients that ask the gateway for the list of profiles, each on a
  connection of its own, beside connections that say nothing and requests whose bodies never come
"""

from __future__ import annotations

import argparse
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

import trio

from benchmarks import machine
from benchmarks.benchmark import Benchmark, WrongAnswers, positive
from benchmarks.network.onyx_network import OnyxNetwork, onyx_network, publish, publisher, register
from benchmarks.network.processor import allow_many_files
from benchmarks.report import Report
from benchmarks.samples import percentile
from benchmarks.security.dear import measure_turns
from benchmarks.security.strangers import STRANGERS, resident_bytes, seconds_until_closed, silent
from formats.kernel import build_info
from onyx import User
from onyx.identity.known_networks import credentials_for
from onyx.registration_client import host_and_port
from overlay.link.client_connection import open_client
from overlay.link.handshake import secure
from tests.yfilter.hostile_profiles import HOSTILE, MESSAGE

MESSAGE_BYTES = 2_000
_SECONDS = 120.0
CROWD_STEP = 16
NO_BODY = (
    b"POST /v1/profiles HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: 9\r\n\r\n{"
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the benchmark."""
    for name, default, text in (
        ("--messages", 4_000, "of a run with or without TLS"),
        ("--rounds", 5, "of both"),
        ("--handshakes", 500, "one after the other"),
        ("--strangers", 200, "of each kind at once"),
        ("--idle", 1_024, "connections of clients"),
        ("--hostile", len(HOSTILE), "profiles, the first of them"),
        ("--deliveries", 40, "of the neighbour, beside each"),
        ("--dear", 120, "messages that the search for dear ones tries in each syntax"),
        ("--silent", 1_024, "connections to the gateway that say nothing"),
        ("--bodies", 512, "requests to the gateway whose bodies never come"),
    ):
        help_text = f"{text} (default: {default:,})"
        parser.add_argument(name, metavar="N", type=positive, default=default, help=help_text)


def run(options: argparse.Namespace) -> Report:
    """Measures as the options say."""
    report = Report("security")
    report.condition("machine", "machine", machine.description())
    report.condition("build", "build", build_info())
    allow_many_files(options.idle + 256)
    measure_turns(options.dear, report)
    with tempfile.TemporaryDirectory(prefix="onyx-security-") as directory:
        trio.run(_run, options, Path(directory), report)
    return report


async def _run(options: argparse.Namespace, directory: Path, report: Report) -> None:
    await _measure_tls(options, directory, report)
    async with onyx_network(directory / "handshakes") as network:
        seconds = await _handshake_seconds(network, options.handshakes)
    report.figure("handshakes_per_s", "handshakes, of a core", 1 / seconds, "/s")
    taken, lasted = {}, {}
    for name in STRANGERS:
        async with onyx_network(directory / name) as network:
            taken[name], lasted[name] = await trio.to_thread.run_sync(
                _measure_strangers, network, name, options.strangers
            )
    report.figure("preauth_bytes", "a stranger's connection", max(taken.values()), "bytes")
    report.figure("preauth_seconds", "until it is ended", max(lasted.values()), "s")
    report.detail("preauth", {"bytes": taken, "seconds": lasted})
    async with onyx_network(directory / "idle") as network:
        await _measure_idle(network, options.idle, report)
    async with onyx_network(directory / "neighbour") as network:
        await _measure_neighbour(network, options, report)
    async with onyx_network(directory / "gateway", 1, "--gateway", "127.0.0.1:0") as network:
        await trio.to_thread.run_sync(_measure_gateway, network, options, report)


async def _measure_tls(options: argparse.Namespace, directory: Path, report: Report) -> None:
    """Two networks that are both up all the time; runs in turn."""
    used: dict[str, list[float]] = {"plain": [], "tls": []}
    async with (
        onyx_network(directory / "plain", 1, "--insecure") as plain,
        onyx_network(directory / "tls") as tls,
    ):
        for number in range(options.rounds + 1):
            for name, network in (("plain", plain), ("tls", tls)):
                seconds = await _run_messages(network, options.messages)
                if number:  # the first is to warm up
                    used[name].append(seconds / options.messages * 1e6)
    label = "processor time of the broker, a message of 2 KB"
    report.figure("plain_us", f"{label}, without TLS", median(used["plain"]), "us")
    report.figure("tls_us", f"{label}, with TLS", median(used["tls"]), "us", "plain_us")
    ratio = median(used["tls"]) / median(used["plain"])
    report.figure("tls_ratio", "with TLS over without", ratio)
    report.detail("tls_rounds", used)


async def _run_messages(network: OnyxNetwork, messages: int) -> float:
    """Processor seconds of the broker, from the first that is published to the last that is
    taken."""
    async with publisher(network) as source, User(network.registration, "ann") as user:
        profile = await user.add_profile(f"/m[@source = '{source.id}']")
        results = user.results(profile.id)
        await results.connect()
        before = await network.processor_seconds()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(publish, source, _messages(source.id, messages))
            left = messages
            with trio.fail_after(_SECONDS):
                async for _ in results:
                    left -= 1
                    if not left:
                        break
        after = await network.processor_seconds()
        await user.remove_profile(profile.id)
        return after - before


def _messages(source: str, count: int) -> Iterator[bytes]:
    text = "x" * (MESSAGE_BYTES - 60)
    for number in range(count):
        yield f'<m source="{source}" n="{number:09}">{text}</m>'.encode()


async def _handshake_seconds(network: OnyxNetwork, count: int) -> float:
    """Processor time of the broker for one."""
    host, port = host_and_port(network.broker)
    before = await network.processor_seconds()
    for _ in range(count):
        stream = await trio.open_tcp_stream(host, port)
        secured = await secure(
            stream, credentials_for(host, port), server_side=False, seconds=_SECONDS
        )
        if secured is None:
            raise WrongAnswers("the network has no TLS")
        await stream.aclose()
    return (await network.processor_seconds() - before) / count


def _measure_strangers(network: OnyxNetwork, name: str, count: int) -> tuple[float, float]:
    """Bytes that a connection takes, and seconds until the first of them is ended."""
    address = host_and_port(network.broker)
    with ExitStack() as stack:
        for _ in range(8):  # what the first of them costs is not theirs
            stack.enter_context(STRANGERS[name](address))
        time.sleep(0.5)
        before = resident_bytes(network.pid)
        began = time.perf_counter()
        first: socket.socket | None = None
        for _ in range(count):
            connection = stack.enter_context(STRANGERS[name](address))
            first = first or connection
        time.sleep(0.5)
        held = (resident_bytes(network.pid) - before) / count
        opened = time.perf_counter() - began
        assert first is not None
        return held, opened + seconds_until_closed(first)


async def _measure_idle(network: OnyxNetwork, count: int, report: Report) -> None:
    host, port = host_and_port(network.broker)
    credentials = credentials_for(host, port)
    before = resident_bytes(network.pid)
    async with trio.open_nursery() as nursery:

        async def stay(number: int, task_status: trio.TaskStatus[None]) -> None:
            async with open_client(
                host, port, role="client", identity=f"idle-{number}", credentials=credentials
            ):
                task_status.started()
                await trio.sleep_forever()

        for number in range(count):
            await nursery.start(stay, number)
        await trio.sleep(1.0)
        held = resident_bytes(network.pid) - before
        nursery.cancel_scope.cancel()
    report.figure("idle_connections", "idle connections", count)
    report.figure("idle_total_bytes", "what they take", held, "bytes")
    report.figure("idle_bytes", "each", held / count, "bytes")


async def _measure_neighbour(
    network: OnyxNetwork, options: argparse.Namespace, report: Report
) -> None:
    """One delivery after the other, beside each hostile profile, and beside none."""
    worst: dict[str, float] = {}
    (ann,) = await register(network, ["/a/t"], 1)
    async with publisher(network) as source, User(network.registration, "ann") as user:
        results = user.results(ann)
        await results.connect()

        async def latencies() -> Sequence[float]:
            found = []
            for _ in range(options.deliveries):
                began = time.perf_counter()
                await publish(source, iter([MESSAGE]))
                with trio.fail_after(_SECONDS):
                    async for _ in results:
                        break
                found.append((time.perf_counter() - began) * 1000)
            return found

        await latencies()
        alone = percentile(await latencies(), 99)
        async with User(network.registration, "mallory") as mallory:
            for name in list(HOSTILE)[: options.hostile]:
                profile = await mallory.add_profile(HOSTILE[name])
                worst[name] = percentile(await latencies(), 99)
                await mallory.remove_profile(profile.id)
    report.figure("alone_p99_ms", "another user's p99 beside nobody", alone, "ms")
    label = f"the same beside the worst of {len(worst)} hostile profiles"
    report.figure("neighbour_p99_ms", label, max(worst.values()), "ms", "alone_p99_ms")
    report.detail("neighbours", worst)
    report.remark(f"the worst is: {max(worst, key=lambda name: worst[name])}")


def _measure_gateway(network: OnyxNetwork, options: argparse.Namespace, report: Report) -> None:
    """A newcomer after each 16 of the crowd."""
    url = urlsplit(network.gateway)
    assert url.hostname is not None and url.port is not None
    crowd = [b""] * options.silent + [NO_BODY] * options.bodies
    asked, refused, seconds = 0, Counter[str](), []
    with ExitStack() as stack:
        for number, said in enumerate(crowd):
            connection = stack.enter_context(silent((url.hostname, url.port)))
            connection.sendall(said)
            if number % CROWD_STEP:
                continue
            asked += 1
            began = time.perf_counter()
            newcomer = HTTPConnection(url.hostname, url.port, timeout=_SECONDS)
            try:
                newcomer.request("GET", "/v1/profiles")
                status = str(newcomer.getresponse().status)
            except OSError as error:
                status = type(error).__name__
            newcomer.close()
            seconds.append(time.perf_counter() - began)
            if status != "200":
                refused[status] += 1
    label = f"newcomers refused of {asked}, beside {len(crowd):,} who say little"
    report.figure("gateway_newcomers_refused", label, refused.total())
    report.figure("gateway_newcomers_ms", "the slowest of them", 1000 * max(seconds), "ms")
    report.detail("gateway_refused_because", dict(refused))


SECURITY = Benchmark(
    name="security",
    summary="what TLS costs, what strangers take, and what hostile profiles do to others",
    add_options=add_options,
    quick=(
        *("--messages", "200", "--rounds", "1", "--handshakes", "20", "--strangers", "20"),
        *("--idle", "20", "--hostile", "1", "--deliveries", "5"),
        *("--dear", "6", "--silent", "300", "--bodies", "300"),
    ),
    run=run,
)
