"""Helper: many nodes of one network in one process, each what its own process would run.

::

    {"nodes": ["B1", "B2"]}          ──>  {"ports": [[of clients, of links], ...]}
    {"topology": "topology.toml"}    ──>  {"ready": true}, when all of them are
    {}                               ──>  {"bytes": 2000000, "files": 12}, of each node

Of a thousand processes each would hold the same 70 MB of program.  A node has its own core, store,
sockets and connections here as there, and shares the interpreter, so that one that is busy holds
up the others.  What each would compute for itself of the trees of all brokers, 1.8 s of 1,000, is
computed once for those of a process.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path

import trio

from benchmarks.machine import resident_bytes
from benchmarks.network.helper import questions, say
from onyx.broker.broker import run_broker
from onyx.broker.network import control_plane as known_shapes
from onyx.data_directory import DataDirectory
from onyx.garbage import leave_survivors_alone
from onyx.listening import NodeSockets, bind, bound_address
from onyx.node_process import doors_of, node_limits
from onyx.node_store import open_store, taken_store
from overlay.link.core_context import Surroundings
from overlay.link.open_files import allow_connections
from overlay.link.processor_clock import ProcessorClock
from overlay.link.store import SWITCH_SECONDS
from overlay.link.stored_rows import unsaid
from overlay.link.vitals import Vitals
from overlay.link.work_mark import unshared_mark
from overlay.network_shape import NetworkShape
from overlay.nodes import Address
from overlay.routing.branches import Branches
from overlay.routing.broadcast_tree import BroadcastTree
from overlay.topology import Topology, load_topology
from registration.service import run_registration

ANY_PORT = Address("127.0.0.1", 0)


M_ARENA_MAX = -8  # of the C library


async def main() -> None:
    _share_memory()
    _share_trees()
    lines = questions()
    nodes: list[str] = (await lines.next())["nodes"]
    sockets = [NodeSockets(bind(ANY_PORT), bind(ANY_PORT)) for _ in nodes]
    say(
        {
            "ports": [
                [bound_address(each, ANY_PORT)[1] for each in (own.clients, own.links)]
                for own in sockets
            ]
        }
    )
    topology = load_topology(Path((await lines.next())["topology"]))
    allow_connections(topology.limits, len(topology.brokers))
    bytes_before, files_before = resident_bytes(), _open_files()
    left = set(nodes)
    all_ready = trio.Event()

    def ready(node: str) -> None:
        left.discard(node)
        if not left:
            all_ready.set()

    async with trio.open_nursery() as nursery:
        for node, own in zip(nodes, sockets, strict=True):
            nursery.start_soon(_run, topology, node, own, ready)
        nursery.start_soon(_say_ready, all_ready)
        try:
            while True:
                await lines.next()
                held = (resident_bytes() - bytes_before) // len(nodes)
                say({"bytes": held, "files": (_open_files() - files_before) / len(nodes) + 2})
        except EOFError:  # whoever started it is gone
            nursery.cancel_scope.cancel()


async def _say_ready(all_ready: trio.Event) -> None:
    await all_ready.wait()
    leave_survivors_alone()
    say({"ready": True})


async def _run(
    topology: Topology,
    node: str,
    sockets: NodeSockets,
    ready: Callable[[str], None],
) -> None:
    """As ``onyx.node_process`` does, without what is there once for a process."""
    run = run_broker if node in topology.broker_ids else run_registration
    limits = topology.limits
    directory = DataDirectory(topology.data_directory)
    with sockets, directory.node_locked(node):
        async with taken_store(partial(open_store, topology, node), lambda: None) as store:
            vitals = Vitals()
            around = Surroundings(
                *(ProcessorClock(), time.time, vitals.of_node(store, None, time.time)),
                mark=unshared_mark(),
                epoch=store.epoch,
            )
            await run(
                topology,
                node,
                doors_of(sockets, topology),
                store,
                lambda: ready(node),
                unsaid,
                node_limits(limits),
                None,
                around,
                vitals,
            )


def _share_memory() -> None:
    """Threads commit for all nodes in turn: what one of them has freed is for all (glibc only)."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


def _share_trees() -> None:
    """Of the network as it begins: its shape does not change here."""
    make_tree = NetworkShape.broadcast_tree
    trees: dict[str, BroadcastTree] = {}
    found: list[Branches] = []

    def shared_tree(shape: NetworkShape, root: str) -> BroadcastTree:
        assert shape.version == 0
        if root not in trees:
            trees[root] = make_tree(shape, root)
        return trees[root]

    def shared_branches(
        tree: Callable[[str], BroadcastTree], roots: Iterable[str], brokers: Iterable[str]
    ) -> Branches:
        if not found:
            found.append(Branches(tree, roots))
        return found[0]

    NetworkShape.broadcast_tree = shared_tree  # type: ignore[method-assign, assignment]
    known_shapes.Branches = shared_branches  # type: ignore[attr-defined, assignment]


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - no entry is a file to look at


if __name__ == "__main__":
    import sys

    sys.setswitchinterval(SWITCH_SECONDS)
    trio.run(main)
