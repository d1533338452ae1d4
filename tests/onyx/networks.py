"""Small networks of real processes for the tests of the program.

``RunningProcess`` is ``onyx up`` as a user starts it; ``small_topology`` is what is run.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trio

from onyx import DataSource, User
from overlay.topology import Topology, parse_topology
from tests.forked import sockets_to_templates
from tests.hanging import SAFETY_SECONDS


def small_topology(data_directory: Path, brokers: int = 3, *, port: int = 0) -> Topology:
    """A chain B1 - B2 - ... on free ports; the text is what a user would write."""
    return parse_topology(small_topology_text(data_directory, brokers, port=port), "small.toml")


def small_topology_text(data_directory: Path, brokers: int = 3, *, port: int = 0) -> str:
    lines = [
        'name = "small"',
        f"data_directory = {json.dumps(str(data_directory))}",
        '[registration]\nid = "registration"\nlisten = "127.0.0.1:0"',
    ]
    for number in range(1, brokers + 1):
        listen = f"127.0.0.1:{port if number == brokers else 0}"
        lines.append(f'[[broker]]\nid = "B{number}"\nlisten = "{listen}"')
        lines.append(f"place = [{10 * number}, 0]")
    for number in range(1, brokers):
        lines.append(f'[[link]]\nends = ["B{number}", "B{number + 1}"]')
        lines.append('transformation = "projection"')
        if number == 1:
            lines.append('format = "text"')
        if number == 2:
            lines.append('format = "dictionary+zstd"')  # the others: binary
    return "\n".join(lines) + "\n"


@dataclass
class RunningProcess:
    """``onyx up FILE --json``, once it has said that it is up."""

    process: subprocess.Popen[str]
    up: dict[str, Any]

    @classmethod
    def start(cls, file: Path, *options: str) -> RunningProcess:
        with tempfile.TemporaryFile("w+") as said:  # a pipe that nobody reads would stop it
            process = subprocess.Popen(
                [sys.executable, "-m", "onyx", "up", str(file), "--json", *options],
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
            )
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                process.wait()
                said.seek(0)
                raise AssertionError(f"onyx up did not come up: {said.read()}")
        return cls(process, json.loads(line))

    @property
    def registration(self) -> str:
        address: str = self.up["registration"]
        return address

    @property
    def pids(self) -> list[int]:
        return list(self.up["pids"].values())

    def next_event(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        event: dict[str, Any] = json.loads(self.process.stdout.readline())
        return event

    def kill(self, node: str) -> None:
        """Kill the process of a node, and wait until the network is ready again."""
        os.kill(self.up["pids"][node], signal.SIGKILL)
        while (event := self.next_event())["event"] != "started":
            assert event["node"] == node
        self.up["pids"][node] = event["pid"]
        while self.next_event()["event"] != "ready":
            pass

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Its exit code after the signal."""
        self.process.send_signal(number)
        self.process.communicate(timeout=SAFETY_SECONDS)
        return self.process.returncode


def is_running(pid: int) -> bool:
    """A process that is neither gone nor a zombie that nobody has waited for yet."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def open_files() -> int:
    """How many file descriptors this process has open."""
    opened = set(os.listdir("/proc/self/fd"))  # noqa: PTH208 - no entry is a file to look at
    return len(opened.difference(map(str, sockets_to_templates)))


async def check_it_serves(registration: str) -> None:
    """Somebody who says no credentials registers, publishes and gets what they have asked for."""
    source = await DataSource.register(registration)
    async with source, User(registration, "ann") as user:
        profile = await user.add_profile("//for-ann")
        results = user.results(profile.id)
        await results.connect()
        assert (await source.publish(b"<for-ann/>")).accepted
        with trio.fail_after(SAFETY_SECONDS):
            async for delivery in results:
                assert delivery.results == [b"<for-ann/>"]
                break
        await user.remove_profile(profile.id)
