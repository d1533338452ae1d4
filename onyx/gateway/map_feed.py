"""MapFeed: watches the brokers of a network as long as somebody looks at the map."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

import trio
from msgspec import convert

from onyx.errors import UserError
from onyx.gateway.api_answers import NetworkMap, Tick
from onyx.gateway.event_stream import HEARTBEAT_SECONDS, Write, event_text
from onyx.network_layout import network_layout
from onyx.registration_client import addresses_of, call, open_connection
from onyx.shape_follower import follow_shape
from overlay import verbs
from overlay.link.client_connection import ConnectionFailed
from overlay.statistics import Figures, LinkFigures
from overlay.topology import Topology

# -------------------------------------------------------------------------------------------------
# Layout: where the brokers of a network stand on the map, found once for each shape of it.


CELL = 96, 56  # the room of a broker


class Layout:
    """Keeps that of the last shape: settings, formats and how far a change is make no other."""

    def __init__(self) -> None:
        self._of: object = None
        self._points: Mapping[str, tuple[float, float]] = {}

    async def points(self, topology: Topology) -> Mapping[str, tuple[float, float]]:
        """By broker; in a thread, as others are answered meanwhile."""
        places = [(broker.id, broker.place) for broker in topology.brokers]
        shape = places, [link.ends for link in topology.links]
        if shape != self._of:
            points = await trio.to_thread.run_sync(network_layout, topology, *CELL)
            left, top = (min(point[axis] for point in points.values()) for axis in (0, 1))
            found = {b: (round(x - left), round(y - top)) for b, (x, y) in points.items()}
            self._of, self._points = shape, found
        return self._points


# -------------------------------------------------------------------------------------------------
# OverlayMap: brokers and links as a page shows them, and what has changed for each who looks.
#
# ::
#
#     figures of a broker ──apply──> where all stand ──Changes.take──> what is new for one viewer
#
# Pure: no network, no clock.  What waits for a viewer who is slow is what has changed since, once
# for each link and broker, however long that is.


AWAY, UP = "away", "up"


class Changes:
    """Of one viewer, since they took the last; at first all that is known."""

    def __init__(self, overlay: OverlayMap) -> None:
        self._overlay = overlay
        self.brokers = set(range(len(overlay.topology.brokers)))
        self.links = set(range(len(overlay.topology.links)))
        self.crossings: Counter[tuple[int, int]] = Counter()  # by link and direction

    def take(self) -> Tick | None:
        """None: nothing."""
        if not self.brokers and not self.links:
            return None
        overlay = self._overlay
        links = [
            (at, self.crossings[at, 0], self.crossings[at, 1], *overlay.link_state(at))
            for at in sorted(self.links)
        ]
        brokers = [(at, *overlay.broker_state(at)) for at in sorted(self.brokers)]
        self.brokers.clear()
        self.links.clear()
        self.crossings.clear()
        return Tick(brokers, links)


class OverlayMap:
    """``points``: where brokers stand, by id."""

    def __init__(self, topology: Topology, points: Mapping[str, tuple[float, float]]) -> None:
        self.topology = topology
        self._points = points
        self._places = {broker.id: at for at, broker in enumerate(topology.brokers)}
        self._links: dict[tuple[str, str], tuple[int, int]] = {}
        for at, link in enumerate(topology.links):
            a, b = link.ends
            self._links[a, b], self._links[b, a] = (at, 0), (at, 1)
        self._told: dict[str, Figures] = {}
        self._states = dict.fromkeys(self._places, AWAY)
        self.viewers: set[Changes] = set()

    def snapshot(self) -> NetworkMap:
        """What does not change."""
        brokers = [(b.id, b.label, *self._points[b.id]) for b in self.topology.brokers]
        links = [
            (self._places[a], self._places[b]) for a, b in (x.ends for x in self.topology.links)
        ]
        return NetworkMap(self.topology.name, brokers, links)

    def look(self) -> Changes:
        """Another viewer; they are taken from ``viewers`` when they have gone."""
        changes = Changes(self)
        self.viewers.add(changes)
        return changes

    def apply(self, broker: str, figures: Figures) -> None:
        """Where the counters of a broker stand; what is counted once is counted from the last."""
        place, last = self._places[broker], self._told.get(broker)
        self._told[broker], self._states[broker] = figures, UP
        for other, now in figures.links.items():
            known = self._links.get((broker, other))
            before = None if last is None else last.links.get(other)
            if known is None or now == before:
                continue
            crossed = 0 if before is None else max(0, now.crossings - before.crossings)
            for viewer in self.viewers:
                viewer.links.add(known[0])
                viewer.crossings[known] += crossed
        for viewer in self.viewers:
            viewer.brokers.add(place)

    def gone(self, broker: str) -> None:
        """Nobody answers there."""
        if self._states[broker] != AWAY:
            self._states[broker] = AWAY
            for viewer in self.viewers:
                viewer.brokers.add(self._places[broker])

    def broker_state(self, place: int) -> tuple[str, int, int, int, int, int]:
        """From its state on, as in a Tick."""
        broker = self.topology.brokers[place].id
        told = self._told.get(broker, Figures())
        counted = (told.profiles, told.published, told.delivered, told.refused)
        return (self._states[broker], *counted, told.waiting_bytes)

    def link_state(self, place: int) -> tuple[int, int, str, bool]:
        """From the backlogs on."""
        ends = self.topology.links[place].ends
        there, back = self._of(*ends), self._of(*reversed(ends))
        is_up = bool(there and back and there.is_here and back.is_here)
        formats = dict.fromkeys(said.format for said in (there, back) if said)
        waits, waits_back = (said.waiting_bytes if said else 0 for said in (there, back))
        return waits, waits_back, " / ".join(formats), is_up

    def _of(self, broker: str, other: str) -> LinkFigures | None:
        return self._told.get(broker, Figures()).links.get(other)


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
                    asked = verbs.Observe(figures=True)
                    await call(connection, asked.verb, asked.arguments())
                    async for event in connection.observed():
                        overlay.apply(broker, convert(event, Figures))
            overlay.gone(broker)
            await trio.sleep(AGAIN_SECONDS)
