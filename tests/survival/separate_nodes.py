"""SeparateNodes: a network of processes that are started and stopped one by one, as on machines of
their own, each by any version of the code, and heard by the others through proxies if wanted."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import cycle, islice, pairwise
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import trio

from onyx.data_directory import write_atomically
from onyx.identity import known_networks
from onyx.identity.authority import LEAF_DAYS, Authority
from overlay.link.principal import Principal
from tests.hanging import SAFETY_SECONDS

HERE = Path(__file__).parents[2]
"""The code of this release."""
REGISTRATION = "registration"
OPERATOR = Principal("operator", "root")


class Doors(NamedTuple):
    """The ports of a node: for clients, and for other nodes."""

    listen: int
    links: int


@dataclass
class SeparateNodes:
    """Brokers B1, B2, ... and the registration service; ``links`` (default: a chain) join brokers,
    ``limits`` are lines of the topology file.  ``directory`` gets a topology file and a log for
    each process, and the data.

    With ``is_secure`` connections are TLS; whoever connects inside of the block, in this process or
    in one that it starts, is the operator then.  ``environments``: what is in that of single nodes
    besides.  ``through``: at which ports clients and other nodes find a node, if not at its own.
    ``stores``: lines on the server that has all rows; then each node has a standby, which is
    another process, "B1/standby".  ``near``: of the links, so many are the quickest.
    """

    directory: Path
    brokers: int
    links: Sequence[tuple[str, str]] = ()
    limits: str = ""
    near: int = 0
    is_proxied: bool = False
    is_secure: bool = True
    name: str = "separate"
    stores: str = ""
    environments: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        nodes = [REGISTRATION, *(f"B{number + 1}" for number in range(self.brokers))]
        ids = nodes + [standby_of(node) for node in nodes if self.stores]
        ports = free_ports(4 * len(ids))
        self.at = {node: Doors(ports.pop(), ports.pop()) for node in ids}
        self.through = dict(self.at)
        if self.is_proxied:
            self.through = {node: Doors(ports.pop(), ports.pop()) for node in ids}
        self.links = self.links or list(pairwise(nodes[1:]))
        for node in ids:
            self.file(node).write_text(self._topology_for(node), encoding="utf-8")
        self.shown = known_networks.INSECURE
        if self.is_secure:
            self._authority = Authority.make(self.directory / "identity", self.name)
            self.shown = str(self._authority.keep(OPERATOR))
            for node in nodes:
                self.certify(node)

    @property
    def node_ids(self) -> list[str]:
        return list(self.at)

    @property
    def registration(self) -> str:
        """Where clients find it."""
        own = [node for node in self.at if node.split("/")[0] == REGISTRATION]
        return ",".join(f"127.0.0.1:{self.through[node].listen}" for node in own)

    @property
    def data(self) -> Path:
        return self.directory / "data"

    def file(self, node: str) -> Path:
        return self.directory / f"{node.replace('/', '-')}.toml"

    def log(self, node: str) -> str:
        return self._log(node).read_text(encoding="utf-8")

    def _log(self, node: str) -> Path:
        return self.file(node).with_suffix(".log")

    def certify(self, node: str, days: float = LEAF_DAYS) -> None:
        """It shows another certificate from now on, which lasts so long."""
        write_atomically(
            self.credentials(node), self._authority.issue(principal_of(node), days), mode=0o600
        )

    def revoke(self, node: str) -> None:
        """All certificates that it has had."""
        issued, own = self._authority.issued(), principal_of(node)
        self._authority.revoke({one.serial for one in issued if one.principal == own})

    def credentials(self, node: str) -> Path:
        return self._authority.file_of(principal_of(node))

    def start(self, nodes: Iterable[str], code: Path) -> None:
        """Start processes of these nodes, which run the code in a folder."""
        for node in nodes:
            identity, _, standby = node.partition("/")
            which = ["--registration"] if identity == REGISTRATION else ["--broker", identity]
            which += ["--standby"] if standby else []
            shown = (
                ["--credentials", str(self.credentials(node))] if self.is_secure else ["--insecure"]
            )
            command = [sys.executable, "-m", "onyx", "up", str(self.file(node)), *which, "--json"]
            with self._log(node).open("ab") as log:
                self.processes[node] = subprocess.Popen(
                    [*command, *shown, "--data", str(self.data)],
                    cwd=code,
                    env={**os.environ, **self.environments.get(node, {}), "PYTHONPATH": str(code)},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=log,
                )

    async def wait_ready(self) -> None:
        """Until every process that was started has said that it is."""
        for node in self.processes:
            await self.wait_ready_again(node)

    async def wait_ready_again(self, node: str) -> None:
        """Until one that was started by itself has."""
        stdout = self.processes[node].stdout
        assert stdout is not None
        line = await trio.to_thread.run_sync(stdout.readline)
        assert line, f"{node} did not get ready: {self.log(node)}"

    def stop(self, node: str, number: int = signal.SIGTERM) -> int:
        """End a process and wait for it; its exit code."""
        process = self.processes.pop(node)
        with process:
            process.send_signal(number)
            return process.wait(SAFETY_SECONDS)

    def signal(self, node: str, number: int) -> None:
        """To its process, if it has one."""
        if node in self.processes:
            self.processes[node].send_signal(number)

    def fallen(self) -> dict[str, int]:
        """Processes that have ended by themselves, with their exit codes; they are forgotten."""
        found = {node: process.poll() for node, process in self.processes.items()}
        ended = {node: code for node, code in found.items() if code is not None}
        for node in ended:
            with self.processes.pop(node):
                pass
        return ended

    def __enter__(self) -> Self:
        self._before = os.environ.get(known_networks.VARIABLE)
        os.environ[known_networks.VARIABLE] = self.shown
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for node in list(self.processes):
            self.signal(node, signal.SIGCONT)
            self.stop(node, signal.SIGTERM if error is None else signal.SIGKILL)
        del os.environ[known_networks.VARIABLE]
        if self._before is not None:
            os.environ[known_networks.VARIABLE] = self._before

    def _topology_for(self, own: str) -> str:
        def doors(node: str) -> str:
            at = (self.at if node == own else self.through)[node]
            found = f'id = "{node}"\n{listening("listen", "links", at)}'
            if self.stores:
                standby = standby_of(node)
                at = (self.at if standby == own else self.through)[standby]
                found += listening("standby", "standby_links", at)
            return found

        def listening(clients: str, links: str, at: Doors) -> str:
            return f'{clients} = "127.0.0.1:{at.listen}"\n{links} = "127.0.0.1:{at.links}"\n'

        stores = f"[stores]\n{self.stores}\n" if self.stores else ""
        head = f'name = "{self.name}"\n{stores}{self.limits}'
        parts = [f"{head}\n[registration]\n{doors(REGISTRATION)}"]
        nodes = [node for node in self.node_ids if "/" not in node]
        for number, node in enumerate(nodes[1:]):
            parts.append(f"[[broker]]\n{doors(node)}place = [{10 * number}, 0]\n")
        for number, (one, other) in enumerate(self.links):
            latency = 1 if number < self.near or not self.near else 5
            parts.append(f'[[link]]\nends = ["{one}", "{other}"]\nlatency_ms = {latency}\n')
        return "\n".join(parts)


def principal_of(node: str) -> Principal:
    identity = node.partition("/")[0]
    return Principal("registration" if identity == REGISTRATION else "broker", identity)


def standby_of(node: str) -> str:
    return f"{node}/standby"


WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 16
"""Which of the processes of the tests this is; each has ports of its own."""
PORTS = cycle(range(12_000 + 1_250 * WORKER, 13_250 + 1_250 * WORKER))


def free_ports(count: int) -> list[int]:
    """Ports at which nobody listens; all different.

    They are below those that a system gives away by itself, so that nobody else gets one before the
    node for which it is chosen starts, or while that is down.
    """
    with ExitStack() as holders:
        found: list[int] = []
        for port in islice(PORTS, 1_250):
            holder = holders.enter_context(socket.socket())
            with suppress(OSError):
                holder.bind(("127.0.0.1", port))
                found.append(port)
                if len(found) == count:
                    return found
    raise AssertionError(f"fewer than {count} ports are free")
