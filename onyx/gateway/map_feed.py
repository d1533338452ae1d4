"""MapFeed: watches the brokers of a network as long as somebody looks at the map."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import trio

from onyx.errors import UserError
from onyx.gateway.event_stream import HEARTBEAT_SECONDS, Write, event_text
from onyx.gateway.map_layout import Layout
from onyx.gateway.overlay_map import OverlayMap
from onyx.registration_client import addresses_of, call, open_connection
from onyx.shape_follower import follow_shape
from overlay.link.client_connection import ConnectionFailed
from overlay.topology import Topology

TICK_SECONDS = 0.2  # from one event of a viewer to the next
LINGER_SECONDS = 30.0  # after the last viewer
AGAIN_SECONDS = 1.0  # before a broker that does not answer is asked again


class MapFeed:
    """By the gateway's own identity, which may operate the network."""

    def __init__(self, registration: str) -> None:
        self._registration = registration
        self._layout = Layout()
        self._nursery: trio.Nursery | None = None
        self._map: OverlayMap | None = None
        self._watching: trio.CancelScope | None = None
        self._looking = 0
        self._ready = trio.Event()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as self._nursery:
            task_status.started()
            await trio.sleep_forever()

    async def show(self, write: Write) -> None:
        """To one viewer, until they are gone: ``map``, whenever the network has another shape, and
        ``tick``, what has changed."""
        async with self._looks():
            while True:
                await self._ready.wait()
                overlay = self._map
                assert overlay is not None
                changes = overlay.look()
                try:
                    await write(event_text("map", overlay.snapshot()))
                    quiet = 0.0
                    while self._map is overlay:
                        if (found := changes.take()) is not None:
                            await write(event_text("tick", found))
                            quiet = 0.0
                        elif (quiet := quiet + TICK_SECONDS) > HEARTBEAT_SECONDS:
                            await write(": \n\n")
                            quiet = 0.0
                        await trio.sleep(TICK_SECONDS)
                finally:
                    overlay.viewers.discard(changes)

    @asynccontextmanager
    async def _looks(self) -> AsyncIterator[None]:
        assert self._nursery is not None
        self._looking += 1
        if self._watching is None:
            self._watching = trio.CancelScope()
            self._nursery.start_soon(self._watch, self._watching)
        try:
            yield
        finally:
            self._looking -= 1
            if not self._looking:
                self._nursery.start_soon(self._stop_later)

    async def _stop_later(self) -> None:
        await trio.sleep(LINGER_SECONDS)
        if not self._looking and self._watching is not None:
            self._watching.cancel()
            self._watching, self._map, self._ready = None, None, trio.Event()

    async def _watch(self, scope: trio.CancelScope) -> None:
        """The shape of the network; of each one all its brokers."""
        brokers = trio.CancelScope()

        async def changed(topology: Topology) -> None:
            nonlocal brokers
            brokers.cancel()
            brokers = trio.CancelScope()
            nursery.start_soon(self._follow, topology, brokers)

        with scope:
            async with trio.open_nursery() as nursery:
                await follow_shape(self._registration, changed, known=(-1, False))

    async def _follow(self, topology: Topology, scope: trio.CancelScope) -> None:
        with scope:
            overlay = self._map = OverlayMap(topology, await self._layout.points(topology))
            self._ready.set()
            async with trio.open_nursery() as nursery:
                for broker in topology.broker_ids:
                    nursery.start_soon(self._observe, overlay, broker)

    async def _observe(self, overlay: OverlayMap, broker: str) -> None:
        where = addresses_of(overlay.topology.where(broker))
        while True:
            with suppress(UserError, ConnectionFailed):
                async with open_connection(where, "client", uuid.uuid4().hex) as connection:
                    await call(connection, "observe", {"figures": True})
                    async for event in connection.observed():
                        overlay.apply(broker, event)
            overlay.gone(broker)
            await trio.sleep(AGAIN_SECONDS)
