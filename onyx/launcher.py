"""Launcher: all processes of a topology on this machine, started and stopped together.

::

    async with launch(topology) as network:
        print(network.topology.address("B1"))

Order of a start: lock the data directory, bind every listening socket, write the resolved
topology, start one process a node, wait until all are ready.  Whatever fails on the way leaves
nothing running.  Afterwards a process that dies is started again at the same address - its
listening socket lives here, so that connections wait in the backlog meanwhile - with what it had
on disk.

The network may change meanwhile (``onyx topology apply``): brokers that join are started, those
that have left are stopped when nobody needs them any more, and the resolved topology is written
anew.

Invariants: when the block is left, by whatever way, no process, port or file descriptor remains;
when this very process is killed its children see their lifeline end and stop by themselves.
"""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal, TypeAlias

import trio
from msgspec.structs import replace

from onyx.background import background_tasks
from onyx.child_process import ChildProcess, RestartPolicy, describe_exit, lifeline
from onyx.data_directory import DataDirectory
from onyx.errors import LaunchError
from onyx.identity.known_networks import use_credentials
from onyx.identity.network_identity import NetworkIdentity
from onyx.listening import (
    NodeProcess,
    NodeSockets,
    bind_all,
    bind_gateway,
    bind_process,
    bound_address,
    processes_of,
)
from onyx.logs import use_logs
from onyx.node_store import set_aside
from onyx.shape_follower import follow_shape
from onyx.trial_postgres import TrialServer
from overlay.gateway import GatewayTable
from overlay.link.open_files import allow_connections
from overlay.live_settings import with_live_settings
from overlay.topology import Topology, TopologyError

__all__ = ["LaunchEvent", "RestartPolicy", "RunningNetwork", "describe_exit", "launch"]

log = logging.getLogger("onyx.launcher")

LOOK_SECONDS = 1.0  # between two looks at how much processes that start have worked
IDLE_SHARE = 0.02  # of the processor; who has less waits for something else
LaunchEvent: TypeAlias = Literal["started", "restoring", "ready", "died"]
Report: TypeAlias = Callable[[str, ChildProcess], None]


class RunningNetwork:
    """A network whose processes are children of this one."""

    def __init__(
        self,
        topology: Topology,
        topology_file: Path,
        identity: NetworkIdentity,
        write_line: Callable[[str], None],
    ):
        """``topology`` has the addresses as they are, ``topology_file`` is where it stands;
        ``write_line`` is given every log line of its processes."""
        self.identity = identity
        self.write_line = write_line
        self.topology = topology
        self.topology_file = topology_file
        self.failure: LaunchError | None = None
        self.beside: list[ChildProcess] = []  # no nodes: a gateway, providers of metadata
        self.gateway_sockets: tuple[socket.socket, ...] = ()  # of the one that is to be started
        self._children: dict[str, ChildProcess] = {}

    @property
    def children(self) -> list[ChildProcess]:
        return list(self._children.values())

    @property
    def node_ids(self) -> list[str]:
        """The processes that are run; others after the network has changed."""
        return list(self._children)

    def add(self, child: ChildProcess) -> None:
        """A broker has joined."""
        self._children[child.node_id] = child

    def remove(self, node_id: str) -> None:
        """A broker has left."""
        del self._children[node_id]

    @property
    def registration(self) -> str:
        """Where sources and users register, "host:port", or "host:port,host:port" with that of a
        standby."""
        return self.topology.where(self.topology.registration[0].id)

    @property
    def pids(self) -> Mapping[str, int]:
        """Process ids by node; a node that is just being restarted is missing."""
        return {
            node_id: child.pid for node_id, child in self._children.items() if child.pid is not None
        }

    def kill(self, node_id: str) -> None:
        """SIGKILL to one process, which is then started again; KeyError for an unknown node."""
        self._children[node_id].kill_nowait()

    def take_settings(self, wanted: Topology) -> tuple[list[str], list[str]]:
        """What has changed in the file of the network: the keys of what its processes are told to
        take, and of what takes a new start."""
        self.topology, taken, left = with_live_settings(self.topology, wanted)
        if taken:
            DataDirectory(self.topology_file.parent).write_topology(self.topology)
            for child in self.children:
                child.hang_up_nowait()
            self.use_logs()
        return taken, left

    def use_logs(self) -> None:
        """Of the topology as it is on disk by now, in processes that no core tells."""
        use_logs(self.topology.log)
        for child in self.beside:
            child.hang_up_nowait()

    async def wait_ready(self, node_id: str | None = None) -> None:
        """Until a node, or every one, is ready (again)."""
        for child in self._children.values() if node_id is None else [self._children[node_id]]:
            await child.wait_ready()

    def troubles(self) -> dict[str, str]:
        """Why a node is not running just now, of those that are not: neither it nor its standby."""
        troubles: dict[str, list[str]] = {}
        for name, child in self._children.items():
            troubles.setdefault(name.partition("/")[0], []).append(child.trouble)
        return {node_id: found[0] for node_id, found in troubles.items() if all(found)}


@asynccontextmanager
async def launch(
    topology: Topology,
    *,
    data_directory: Path | None = None,
    file: str = "",
    gateway: GatewayTable | None = None,
    policy: RestartPolicy | None = None,
    report: Report = lambda event, child: None,
    write_line: Callable[[str], None] | None = None,
    is_secure: bool = True,
) -> AsyncIterator[RunningNetwork]:
    """Run all nodes of ``topology`` while the block runs.

    With ``is_secure`` every connection has TLS, and the clients of this account find their
    credentials by the addresses; without it all addresses have to be of this machine.

    ``data_directory`` overrides the topology's; ``file`` names the topology in messages; the
    addresses of a ``gateway`` are bound with all others, for ``running_gateway``;
    ``report`` hears of events in the life of the processes; ``write_line`` is given every log
    line of theirs (default: standard error).

    TopologyError when an address or so many connections cannot be had, DataDirectoryInUse when the
    network is running already, LaunchError when a process does not come up or does not stay up
    until all are ready; after that none is given up.
    """
    allow_connections(topology.limits, len(topology.brokers), file)
    policy = policy or RestartPolicy()
    if data_directory is not None:
        topology = replace(topology, data_directory=data_directory)
    directory = DataDirectory(topology.data_directory)
    topology = replace(topology, data_directory=directory.path)
    with ExitStack() as stack:
        stack.enter_context(directory.locked())
        directory.check_shape(topology)
        sockets = bind_all(topology, stack, file)
        of_gateway = gateway and bind_gateway(gateway, topology.admin, stack, file)
        server: TrialServer | None = None
        if topology.has_trial_store:
            server = stack.enter_context(TrialServer(directory.path / "postgres"))
            topology = topology.with_trial_store(server.url)
        processes = {process.name: process for process in processes_of(topology)}
        resolved = topology.with_addresses(
            {
                name: bound_address(own.clients, processes[name].node.listen)
                for name, own in sockets.items()
            },
            {
                name: bound_address(own.links, processes[name].node.links)
                for name, own in sockets.items()
            },
        )
        identity = NetworkIdentity(directory.identity, resolved, is_secure=is_secure, file=file)
        topology_file = directory.write_topology(resolved)
        end = stack.enter_context(lifeline())
        network = RunningNetwork(resolved, topology_file, identity, write_line or _write_to_stderr)
        network.gateway_sockets = of_gateway or ()

        def child_of(process: NodeProcess, own: NodeSockets) -> ChildProcess:
            fds = () if process.waits else own.fds
            credentials = identity.credentials_of(network.topology, process.node.id)
            return ChildProcess(
                *(process.name, topology_file, fds, end, credentials),
                *(policy, report, network.write_line),
            )

        children = [child_of(processes[name], own) for name, own in sockets.items()]
        for child in children:
            network.add(child)
        stack.callback(identity.forget)
        identity.note(resolved)
        async with background_tasks(trio.open_nursery()) as nursery:
            if server is not None:
                nursery.start_soon(server.keep)
            keeper = _Keeper(network, directory, identity, nursery, child_of, sockets)
            stack.callback(keeper.close)
            for child in children:
                keeper.start(child)
            await _wait_all_ready(children, policy)
            keeper.keep_all()
            nursery.start_soon(identity.keep_valid)
            with use_credentials(identity.client):
                nursery.start_soon(
                    follow_shape, network.registration, keeper.change, network.troubles
                )
            yield network
        if network.failure is not None:
            raise network.failure


class _Keeper:
    """Keeps those processes alive that the network needs, also when that changes."""

    def __init__(
        self,
        network: RunningNetwork,
        directory: DataDirectory,
        identity: NetworkIdentity,
        nursery: trio.Nursery,
        child_of: Callable[[NodeProcess, NodeSockets], ChildProcess],
        sockets: Mapping[str, NodeSockets],
    ) -> None:
        self._network = network
        self._directory = directory
        self._identity = identity
        self._nursery = nursery
        self._child_of = child_of
        self._is_up = False
        self._scopes: dict[str, trio.CancelScope] = {}
        self._sockets = dict(sockets)  # of the processes that run here
        self._ended: dict[str, trio.Event] = {}

    def keep_all(self) -> None:
        """The network is up: from now on nobody is given up."""
        self._is_up = True
        for child in self._network.children:
            child.is_kept = True

    def start(self, child: ChildProcess) -> None:
        child.is_kept = self._is_up
        scope = self._scopes[child.node_id] = trio.CancelScope()
        self._ended[child.node_id] = trio.Event()
        self._nursery.start_soon(self._supervise, child, scope)

    async def change(self, topology: Topology) -> None:
        """Other brokers have to run; one whose address is not of this machine is somebody else's
        to start."""
        providers = self._network.topology.metadata  # which no node knows
        topology = replace(topology, data_directory=self._directory.path, metadata=providers)
        self._directory.write_topology(topology)
        is_log_other = topology.log != self._network.topology.log
        self._network.topology = topology
        if is_log_other:
            self._network.use_logs()
        self._identity.note(topology)
        wanted = {process.name: process for process in processes_of(topology)}
        for node_id, process in wanted.items():
            if node_id not in self._scopes:
                if node_id in self._ended:  # it has left, and stops
                    await self._ended[node_id].wait()
                try:
                    self._identity.check(process.node, "the network")
                    own = self._sockets[node_id] = bind_process(process, "the network")
                except TopologyError as error:
                    log.error("%s is not started here: %s", node_id, error)
                    continue
                aside = set_aside(topology, process)
                if aside:
                    log.warning("%s joins anew; its store of before is %s", node_id, aside)
                child = self._child_of(process, own)
                self._network.add(child)
                self.start(child)
        for node_id in self._network.node_ids:
            if node_id not in wanted:
                self._scopes.pop(node_id).cancel()
                self._network.remove(node_id)
                log.info("%s has left the network and is stopped", node_id)

    def close(self) -> None:
        for own in self._sockets.values():
            own.close()

    async def _supervise(self, child: ChildProcess, scope: trio.CancelScope) -> None:
        """A child that is given up while the network comes up takes it down, as one clean error."""
        try:
            with scope:
                await child.run()
        except LaunchError as error:
            self._network.failure = self._network.failure or error
            self._nursery.cancel_scope.cancel()
        finally:
            self._sockets.pop(child.node_id).close()
            self._ended[child.node_id].set()


async def _wait_all_ready(children: list[ChildProcess], policy: RestartPolicy) -> None:
    """LaunchError when no process has come any further in ``start_seconds``.

    A second in which none did anything counts whole; one in which they worked counts as the work
    of the busiest, so that a slow or busy machine has all the time that it needs."""
    last, spent = trio.current_time(), 0.0
    while missing := [child for child in children if child.state != "ready"]:
        before = {child: child.worked_seconds() for child in missing}
        began = trio.current_time()
        with trio.move_on_after(min(LOOK_SECONDS, policy.start_seconds - spent)):
            await missing[0].wait_ready()
        now = trio.current_time()
        worked = max(child.worked_seconds() - was for child, was in before.items())
        spent += worked if IDLE_SHARE <= worked / max(now - began, 1e-9) <= 1 else now - began
        came = max(child.came_further_at for child in children)
        if came > last:
            last, spent = came, now - came
        if spent >= policy.start_seconds:
            names = ", ".join(child.node_id for child in missing)
            raise LaunchError(
                f"after {policy.start_seconds:g} s without progress not ready: {names}",
                missing[0].node_id,
                tuple(missing[0].last_lines),
            )


def _write_to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
