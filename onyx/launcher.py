"""Launcher: all processes of a topology on this machine, started and stopped together.

::

    async with launch(topology) as network:
        print(network.topology.address("B1"))

Order of a start: lock the data directory, bind every listening socket, write the resolved
topology, start one process a node, wait until all are ready.  Whatever fails on the way leaves
nothing running.  Afterwards a process that dies is started again at the same address - its
listening socket lives here, so that connections wait in the backlog meanwhile - with what it had
on disk.

Invariants: when the block is left, by whatever way, no process, port or file descriptor remains;
when this very process is killed its children see their lifeline end and stop by themselves.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

import trio

from onyx.background import background_tasks
from onyx.child_process import ChildProcess, RestartPolicy, describe_exit
from onyx.data_directory import DataDirectory
from onyx.errors import LaunchError
from onyx.listening import bind_all, bound_address
from overlay.topology import Topology

__all__ = ["LaunchEvent", "RestartPolicy", "RunningNetwork", "describe_exit", "launch"]

LaunchEvent: TypeAlias = Literal["started", "ready", "died"]
Report: TypeAlias = Callable[[str, ChildProcess], None]


class RunningNetwork:
    """A network whose processes are children of this one."""

    def __init__(self, topology: Topology, topology_file: Path, children: list[ChildProcess]):
        """``topology`` has the addresses as they are, ``topology_file`` is where it stands."""
        self.topology = topology
        self.topology_file = topology_file
        self.failure: LaunchError | None = None
        self._children = {child.node_id: child for child in children}

    @property
    def registration(self) -> str:
        """Where sources and users register, "host:port"."""
        return str(self.topology.registration[0].listen)

    @property
    def pids(self) -> Mapping[str, int]:
        """Process ids by node; a node that is just being restarted is missing."""
        return {
            node_id: child.pid for node_id, child in self._children.items() if child.pid is not None
        }

    def kill(self, node_id: str) -> None:
        """SIGKILL to one process, which is then started again; KeyError for an unknown node."""
        self._children[node_id].kill_nowait()

    async def wait_ready(self, node_id: str | None = None) -> None:
        """Until a node, or every one, is ready (again)."""
        for child in self._children.values() if node_id is None else [self._children[node_id]]:
            await child.wait_ready()

    def statistics(self) -> dict[str, object]:
        """State, pid and restarts of every process."""
        return {node_id: child.statistics() for node_id, child in self._children.items()}


@asynccontextmanager
async def launch(
    topology: Topology,
    *,
    data_directory: Path | None = None,
    file: str = "",
    policy: RestartPolicy | None = None,
    report: Report = lambda event, child: None,
    write_line: Callable[[str], None] | None = None,
) -> AsyncIterator[RunningNetwork]:
    """Run all nodes of ``topology`` while the block runs.

    ``data_directory`` overrides the topology's; ``file`` names the topology in messages;
    ``report`` hears of events in the life of the processes; ``write_line`` is given every log
    line of theirs (default: standard error).

    TopologyError when an address cannot be had, DataDirectoryInUse when the network is running
    already, LaunchError when a process does not come up or does not stay up: then the block is
    cancelled.
    """
    policy = policy or RestartPolicy()
    if data_directory is not None:
        topology = replace(topology, data_directory=data_directory)
    directory = DataDirectory(topology.data_directory)
    topology = replace(topology, data_directory=directory.path)
    with ExitStack() as stack:
        stack.enter_context(directory.locked())
        directory.check_shape(topology)
        sockets = bind_all(topology, stack, file)
        resolved = topology.with_addresses(
            {
                node_id: bound_address(listener, topology.address(node_id))
                for node_id, listener in sockets.items()
            }
        )
        topology_file = directory.write_topology(resolved)
        lifeline = stack.enter_context(_lifeline())
        children = [
            ChildProcess(
                node_id,
                topology_file,
                listener.fileno(),
                lifeline,
                policy,
                report,
                write_line or _write_to_stderr,
            )
            for node_id, listener in sockets.items()
        ]
        network = RunningNetwork(resolved, topology_file, children)
        async with background_tasks() as nursery:
            for child in children:
                nursery.start_soon(_supervise, child, network, nursery.cancel_scope)
            await _wait_all_ready(children, policy)
            yield network
        if network.failure is not None:
            raise network.failure


async def _supervise(child: ChildProcess, network: RunningNetwork, scope: trio.CancelScope) -> None:
    """A child that is given up takes the whole network down, as one clean error."""
    try:
        await child.run()
    except LaunchError as error:
        network.failure = network.failure or error
        scope.cancel()


async def _wait_all_ready(children: list[ChildProcess], policy: RestartPolicy) -> None:
    with trio.move_on_after(policy.start_seconds):
        for child in children:
            await child.wait_ready()
        return
    missing = [child for child in children if child.state != "ready"]
    names = ", ".join(child.node_id for child in missing)
    raise LaunchError(
        f"after {policy.start_seconds:g} s not ready: {names}",
        missing[0].node_id,
        tuple(missing[0].last_lines),
    )


@contextmanager
def _lifeline() -> Iterator[int]:
    """The reading end of a pipe whose writing end only this process has."""
    read_end, write_end = os.pipe()
    try:
        yield read_end
    finally:
        os.close(read_end)
        os.close(write_end)


def _write_to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
