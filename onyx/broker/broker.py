"""The broker process: BrokerCore with Trio around it.

All that a broker decides is in the core; all that touches the world is in ``run_node``.  Here
they are put together: what the store held, whom to dial, when it is ready.

Of two neighbours the one with the smaller id dials; every broker dials the registration service.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import trio

from onyx.broker.archive.message_archive import MessageArchive
from onyx.broker.broker_core import BrokerCore
from onyx.broker.deliveries.late_spaces import BODY_SPACE
from onyx.telemetry.span_exporter import span_exporter
from overlay.link.core_context import Surroundings
from overlay.link.credentials import Credentials
from overlay.link.disk_reserve import DiskReserve
from overlay.link.door import Door
from overlay.link.held_core import HeldCore
from overlay.link.journal_rows import OUTBOX
from overlay.link.lost_stores import STORE_LOST
from overlay.link.made_aside import made_aside
from overlay.link.node import run_node
from overlay.link.node_limits import NodeLimits
from overlay.link.peer_watch import PeerWatch
from overlay.link.row_store import NodeStore
from overlay.link.stored_rows import Progress
from overlay.link.vitals import Vitals
from overlay.nodes import Addresses
from overlay.statistics import Archive
from overlay.topology import Topology

log = logging.getLogger("onyx.broker")


async def run_broker(
    topology: Topology,
    broker_id: str,
    doors: Sequence[Door],
    store: NodeStore,
    ready: Callable[[], None],
    progress: Progress,
    limits: NodeLimits,
    credentials: Credentials | None,
    around: Surroundings,
    vitals: Vitals,
) -> None:
    """Run a broker until cancelled; KeyError if the topology has no such broker.

    ``ready`` is called once, when it listens and is connected to all its neighbours and to the
    registration service, ``progress`` before that, as it takes back what is stored.  Connections
    have TLS where it has ``credentials``.
    """
    archive: MessageArchive | None = None
    if topology.archive.directory is not None:
        archive = MessageArchive(broker_id, topology.archive)
    spans = span_exporter(broker_id)

    def make_core(came_further: Progress) -> BrokerCore:
        return BrokerCore(
            topology,
            broker_id,
            uuid.uuid4().hex,
            store.rows(without=(BODY_SPACE,), unread=(OUTBOX,)),
            replace(around, progress=came_further, say=log.info),
            archive.statistics if archive else Archive,
            (lambda serials: None) if credentials is None else credentials.revoke,
            None if spans is None else spans.tell,
        )

    core = vitals.core = await made_aside(make_core, progress)
    peers = [f"registration/{node.id}" for node in topology.registration]
    peers += [f"broker/{neighbour}" for neighbour in topology.neighbours(broker_id)]

    def log_refusal(peer: str, why: str) -> None:
        if STORE_LOST in why:
            log.error("%s: %s%s", peer, why, _advice(broker_id, store.where, why))
        else:
            log.warning("%s: %s", peer, why)

    watch = PeerWatch(core, peers, ready, _log_peer, log_refusal)
    try:
        async with trio.open_nursery() as nursery:
            if archive is not None:
                nursery.start_soon(archive.run)
            node = partial(
                run_node,
                HeldCore(watch, store.check),
                doors=doors,
                dials=dials(topology, broker_id),
                store=store,
                archive=archive,
                limits=limits,
                vitals=vitals,
                credentials=credentials,
                reserve=DiskReserve(store.disk, topology.limits.disk_reserve_bytes),
            )
            await nursery.start(node)
            watch.check()
    finally:
        if archive is not None:
            archive.close()
        if spans is not None:
            spans.close()


def dials(topology: Topology, broker_id: str) -> Mapping[str, Addresses]:
    """Whom a broker dials, and where: by peer."""
    where: dict[str, Addresses] = {
        f"registration/{node.id}": node.links_at for node in topology.registration
    }
    for neighbour in topology.neighbours(broker_id):
        if broker_id < neighbour:
            where[f"broker/{neighbour}"] = topology.broker(neighbour).links_at
    return where


def _log_peer(peer: str, here: bool) -> None:
    log.log(logging.INFO if here else logging.WARNING, "%s %s", peer, "is here" if here else "lost")


def _advice(broker_id: str, store: str, why: str) -> str:
    if "store of registration/" in why:
        return ". Nothing goes between the two until it is stopped and has its store again"
    its = f"the one that it had as {store}" if f"broker/{broker_id} " in why else "the one it had"
    return (
        f". Nothing goes between the two until it has its store again. Stop it and put back {its}; "
        "or, if that is gone for good, take it out of the topology file and say onyx topology "
        "apply FILE --lost with its id. Then it can join again, with an empty store"
    )
