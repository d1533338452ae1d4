"""The store of a node: a file of its data directory, or rows in a PostgreSQL server.

::

    opened ──take──> taken         at once: a file, or rows whose lease nobody has
       └─────────── standby ──take──> taken    when the lease of another process has ended
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, TypeAlias

import trio

from onyx.broker.deliveries.late_spaces import LATE_SPACES
from onyx.data_directory import DataDirectory
from onyx.errors import StoreUnusable
from onyx.listening import NodeProcess
from onyx.release import lacks
from onyx.store_errors import store_errors
from overlay.link.errors import StoreError, StoreUnreachable
from overlay.link.row_store import NodeStore
from overlay.link.store import Store
from overlay.stores import SQLITE
from overlay.topology import Topology

if TYPE_CHECKING:
    from overlay.link.postgres_store import PostgresStore

SCHEMA_BYTES_MAX = 63
LOOK_SECONDS = 0.3  # at rows ahead of a start, so that who waits is told soon what is wrong
TAKE_SECONDS = 0.2  # between two looks whether a lease has ended

log = logging.getLogger("onyx.process")

Opens: TypeAlias = Callable[[], NodeStore]
"""Opens a store, which is taken afterwards.  StoreError."""


def opened_store(topology: Topology, node_id: str) -> AbstractContextManager[NodeStore]:
    """The store of a node whose process does not run; StoreUnusable."""
    return opened(partial(open_store, topology, node_id))


@contextmanager
def opened(open_: Opens) -> Iterator[NodeStore]:
    """A store that no process has; StoreUnusable."""
    with store_errors():
        store = open_()
        try:
            if not store.take():
                raise StoreError(f"{store.where}: in use by another process")
            yield store
        finally:
            store.close()


def set_aside(topology: Topology, process: NodeProcess) -> str:
    """Give a broker that joins an empty store; where that of an earlier time is, "" if there is
    none.  StoreUnusable."""
    node = process.node
    if node.store == SQLITE:
        return str(DataDirectory(topology.data_directory).set_aside(node.id) or "")
    if process.name != node.id:
        return ""  # they share it
    with store_errors():
        return open_postgres(topology, node.id, node.store).set_aside()


@asynccontextmanager
async def taken_store(open_: Opens, waiting: Callable[[], None]) -> AsyncIterator[NodeStore]:
    """The same for its process, which waits for it as a standby; ``waiting`` is called as long as
    another has it.  StoreError."""
    store = await _take(open_, waiting)
    try:
        yield store
    finally:
        store.close()


async def _take(open_: Opens, waiting: Callable[[], None]) -> NodeStore:
    store: NodeStore | None = None
    said = ""
    try:
        while True:
            try:
                if store is None:
                    store = await trio.to_thread.run_sync(open_)
                    if isinstance(store, Store):
                        store.look(LOOK_SECONDS, LATE_SPACES)
                if await trio.to_thread.run_sync(store.take):
                    return store
                waiting()
                said = ""
            except StoreUnreachable as error:
                if said != (said := str(error)):
                    log.warning("%s; it is tried again", error)
            await trio.sleep(TAKE_SECONDS)
    except BaseException:
        if store is not None:
            store.close()
        raise


def open_store(topology: Topology, node_id: str) -> NodeStore:
    """Of a node."""
    url = topology.node(node_id).store
    if url == SQLITE:
        return Store(DataDirectory(topology.data_directory).store_file(node_id))
    return open_postgres(topology, node_id, url)


def open_postgres(topology: Topology, name: str, url: str) -> PostgresStore:
    """Of a node of a network, or of what else has rows in it under a name."""
    check_installed()
    # Who has no such store need not have psycopg.
    from overlay.link.postgres_store import PostgresStore  # noqa: PLC0415

    return PostgresStore(url, _schema(topology.name), name, topology.stores.lease_s)


def _schema(network: str) -> str:
    """Of a network, within the 63 bytes that PostgreSQL tells names apart by."""
    name = f"onyx_{network}"
    if len(name) <= SCHEMA_BYTES_MAX:
        return name
    digest = sha256(network.encode()).hexdigest()
    return f"{name[: SCHEMA_BYTES_MAX - 17]}-{digest[:16]}"


def check_installed() -> None:
    """StoreUnusable where a store takes a package that is not there."""
    if why := lacks("postgres", psycopg="psycopg"):
        raise StoreUnusable(f"a store in PostgreSQL {why}")
