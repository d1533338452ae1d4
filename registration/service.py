"""The registration process: RegistrationCore with Trio around it.

It dials nobody: brokers, sources and users come to it.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from secrets import token_bytes

import trio

from overlay.link.core_context import Surroundings
from overlay.link.credentials import Credentials
from overlay.link.disk_reserve import DiskReserve
from overlay.link.door import Door
from overlay.link.held_core import HeldCore
from overlay.link.journal_rows import OUTBOX
from overlay.link.made_aside import made_aside
from overlay.link.node import run_node
from overlay.link.node_limits import NodeLimits
from overlay.link.peer_watch import PeerWatch
from overlay.link.row_store import NodeStore
from overlay.link.stored_rows import Progress
from overlay.link.vitals import Vitals
from overlay.topology import Topology
from registration.plan_questions import PlanFailed, PlanMade
from registration.planner_desk import PlannerDesk, what_it_lacks
from registration.registration_core import RegistrationCore
from registration.renewal_questions import RenewalWanted, Renewed, Sign

log = logging.getLogger("onyx.registration")


class Desk:
    """Has plans made, and certificates signed."""

    def __init__(self, planner: PlannerDesk, sign: Sign | None) -> None:
        self._planner = planner
        self._sign = sign
        self._turn = trio.Lock()  # of signing: many certificates end on one day

    async def answer(self, question: object) -> PlanMade | PlanFailed | Renewed:
        if isinstance(question, RenewalWanted):
            assert self._sign is not None
            async with self._turn:
                return await self._sign(question)
        return await self._planner.answer(question)


async def run_registration(
    topology: Topology,
    identity: str,
    doors: Sequence[Door],
    store: NodeStore,
    ready: Callable[[], None],
    progress: Progress,
    limits: NodeLimits,
    credentials: Credentials | None,
    around: Surroundings,
    vitals: Vitals,
    sign: Sign | None = None,
) -> None:
    """Run the registration service until cancelled; ``ready`` is called when it listens,
    ``progress`` before that, as it takes back what is stored.  Connections have TLS where it has
    ``credentials``; ``sign`` renews others' certificates, where the authority is here.
    TopologyError when it must plan by itself and cannot."""
    instance = uuid.uuid4().hex
    no_planner = what_it_lacks(topology)

    def make_core(came_further: Progress) -> RegistrationCore:
        return RegistrationCore(
            topology,
            identity,
            instance,
            store.rows(unread=(OUTBOX,)),
            replace(around, progress=came_further, say=log.info),
            partial(token_bytes, 32),
            frozenset if credentials is None else lambda: credentials.revoked,
            no_planner,
            dict if credentials is None else lambda: credentials.certificates,
            signs=sign is not None,
        )

    core = vitals.core = await made_aside(make_core, progress)
    watch = PeerWatch(core, (), ready)
    async with trio.open_nursery() as nursery:
        node = partial(
            run_node,
            HeldCore(watch, store.check),
            doors=doors,
            dials={},
            store=store,
            limits=limits,
            vitals=vitals,
            credentials=credentials,
            reserve=DiskReserve(store.disk, topology.limits.disk_reserve_bytes),
            desk=Desk(PlannerDesk(topology), sign),
        )
        await nursery.start(node)
        watch.check()
