"""Relays: pieces of a connection between two brokers whose link is gone, carried on."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from overlay.link.arrival import Arrival
from overlay.link.frames import Relayed
from overlay.link.link_layer import LinkLayer
from overlay.link.part import Part, Taker, takes


class Relays(Part):
    """Nothing is kept: a broker that is away closes the connection."""

    def __init__(self, links: LinkLayer) -> None:
        self._links = links

    def frames(self) -> Iterable[Taker]:
        yield takes(Relayed, "broker", self._handle)

    def _handle(self, frame: Relayed, arrival: Arrival) -> None:
        there = self._links.connection_of(f"broker/{frame.broker}")
        if there is not None:
            self._links.reply(there, replace(frame, broker=arrival.sender))
        elif not frame.closing:
            closed = replace(frame, number=1, closing=True, payload=b"")
            self._links.reply(arrival.connection, closed)
