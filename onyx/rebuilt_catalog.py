"""A registration service whose store is lost is told to have its catalog from the brokers."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from onyx.data_directory import DataDirectory
from onyx.errors import StoreUnusable
from onyx.listening import process_of
from onyx.node_store import opened_store, set_aside
from overlay.link.events import Put
from overlay.stores import SQLITE
from overlay.topology import Topology
from registration.catalog_rebuild import KEPT_SPACES, marked


def mark_for_rebuild(topology: Topology, lost: Iterable[str]) -> str:
    """Give the registration service of a network, whose process does not run, a store in which it
    rebuilds its catalog without the brokers ``lost``; where the former one is, "" if there was
    none.

    What of that no broker knows is taken over, if it can be read.  DataDirectoryInUse, and
    StoreUnusable.
    """
    node = topology.registration[0].id
    directory = DataDirectory(topology.data_directory)
    with directory.node_locked(node):
        kept: list[tuple[str, str, bytes]] = []
        if topology.node(node).store != SQLITE or directory.store_file(node).exists():
            with suppress(StoreUnusable), opened_store(topology, node) as store:
                kept = [row for row in store.rows() if row[0] in KEPT_SPACES]
        aside = set_aside(topology, process_of(topology, node))
        with opened_store(topology, node) as store:
            store.commit([Put(*row) for row in (*kept, marked(lost))])
    return aside
