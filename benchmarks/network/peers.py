"""Peers: other brokers, where their program is installed, on scenarios ``one`` and ``fan``.

They match a subject where Onyx reads a message, and with these settings keep nothing on disk: what
is compared is the price of a message on its way through a broker.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

import trio

from benchmarks.benchmark import BenchmarkError
from benchmarks.network.feed import small_feed
from benchmarks.network.plain_publisher import PlainPublisher
from benchmarks.network.processor import settled_processor_seconds
from benchmarks.network.protocols import PROTOCOLS
from benchmarks.network.sizes import Sizes
from benchmarks.network.takers import plain_takers
from benchmarks.report import Report

_ROUNDS = 20  # times as many messages as Onyx is given: processor time is known to 10 ms only
_WARM = 100
_START_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Peer:
    """``program`` with ``options``, in which {port} and {directory} are put in; its ``protocol`` is
    one of PROTOCOLS ("": not supported yet)."""

    program: str
    protocol: str = ""
    options: Sequence[str] = ()

    def command(self, program: str, port: int, directory: Path) -> list[str]:
        """To start it."""
        put_in = {"port": port, "directory": directory}
        return [program, *(option.format_map(put_in) for option in self.options)]


_REDIS = "--bind 127.0.0.1 --port {port} --dir {directory} --appendonly no"
PEERS: Mapping[str, Peer] = {
    "nats": Peer("nats-server", "nats", ["-a", "127.0.0.1", "-p", "{port}"]),
    "rabbitmq": Peer("rabbitmq-server"),
    "mosquitto": Peer("mosquitto"),
    "redis": Peer("redis-server", "redis", [*_REDIS.split(), "--save", ""]),
}


async def measure_peer(
    name: str, scenarios: Sequence[str], sizes: Sizes, directory: Path, report: Report
) -> None:
    """Those of ``one`` and ``fan`` that are among the scenarios; a remark where it cannot be."""
    peer = PEERS[name]
    program = shutil.which(peer.program)
    if not peer.protocol:
        report.remark(f"{name}: not supported yet")
    elif program is None:
        report.remark(f"{name}: {peer.program} is not installed")
    else:
        for scenario in ("one", "fan"):
            if scenario in scenarios:
                here = directory / scenario
                here.mkdir(parents=True)
                async with _running(name, peer, program, here) as (pid, port):
                    measure = _one if scenario == "one" else _fan
                    await measure(name, pid, port, sizes, here, report)


async def _one(
    name: str, pid: int, port: int, sizes: Sizes, directory: Path, report: Report
) -> None:
    messages = _ROUNDS * sizes.one_messages
    used, accepted = await _measure(name, pid, port, 1, messages, sizes, directory)
    us = used / messages * 1e6
    label = f"one: {name}, processor time a message"
    report.figure(f"cpu_us_one_{name}", label, us, "us")
    label = f"one: {name}, accepted, in memory"
    report.figure(f"accepted_per_s_{name}", label, messages / accepted, "/s")
    _tell_ratio(report, "cpu_us_one", us, f"cpu_ratio_{name}_one", f"one: Onyx over {name}")


async def _fan(
    name: str, pid: int, port: int, sizes: Sizes, directory: Path, report: Report
) -> None:
    messages, number = _ROUNDS * sizes.fan_messages, sizes.fan_profiles
    used, _ = await _measure(name, pid, port, number, messages, sizes, directory)
    us = used / messages / number * 1e6
    label = f"fan: {name}, processor time a delivery"
    report.figure(f"cpu_us_fan_{name}", label, us, "us")
    _tell_ratio(report, "cpu_us_fan", us, f"cpu_ratio_{name}_fan", f"fan: Onyx over {name}")


def _tell_ratio(report: Report, ours: str, theirs: float, key: str, label: str) -> None:
    """Where Onyx was measured in this run."""
    us = report.value(ours)
    if us is not None and theirs:
        report.figure(key, f"{label}, processor time", us / theirs)


async def _measure(
    name: str, pid: int, port: int, number: int, messages: int, sizes: Sizes, directory: Path
) -> tuple[float, float]:
    """Processor seconds of the peer; seconds until all messages were confirmed."""
    feed = small_feed(number)
    file = feed.write(directory / "feed.json")
    protocol = PROTOCOLS[PEERS[name].protocol]
    async with plain_takers(file, PEERS[name].protocol, port, number, sizes.seconds) as takers:
        await takers.connect()
        with closing(PlainPublisher(protocol, port)) as line:
            await trio.to_thread.run_sync(line.publish, feed.published(_WARM))
            await takers.wait(_WARM * number)
            before = await settled_processor_seconds(pid)
            start = time.perf_counter()
            await trio.to_thread.run_sync(line.publish, feed.published(messages, _WARM))
            accepted = time.perf_counter() - start
            await takers.wait((_WARM + messages) * number)
            used = await settled_processor_seconds(pid) - before
        await takers.check([list(range(1, _WARM + messages + 1))] * number)
    return used, accepted


@asynccontextmanager
async def _running(
    name: str, peer: Peer, program: str, directory: Path
) -> AsyncIterator[tuple[int, int]]:
    """The process and the port of a peer that answers; ended with the block."""
    port = _free_port()
    command = peer.command(program, port, directory)
    with (directory / "log").open("wb") as log:
        process = await trio.lowlevel.open_process(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=0
        )
    try:
        with trio.move_on_after(_START_SECONDS) as patience:
            while not await _answers(port):
                if process.returncode is not None or process.poll() is not None:
                    raise BenchmarkError(f"{name} has ended: exit code {process.returncode}")
                await trio.sleep(0.05)
        if patience.cancelled_caught:
            raise BenchmarkError(f"{name} did not answer within {_START_SECONDS:g} s")
        yield process.pid, port
    finally:
        with trio.CancelScope(shield=True):
            process.kill()
            await process.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


async def _answers(port: int) -> bool:
    try:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
    except OSError:
        return False
    await stream.aclose()
    return True
