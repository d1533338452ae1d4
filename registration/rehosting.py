"""Rehosting: the profiles of a lost broker go on at other brokers.

The catalog has all that is needed for it but what waited there: that is lost, and the first
delivery from the new host says so.  Users keep their profiles, and find them by asking.  The new
mailbox begins behind all numbers that the lost one can have given out, whatever it was: so a user
takes nothing for something that they have taken.
"""

from __future__ import annotations

from overlay.link.frames import PlaceProfile
from overlay.link.link_layer import LinkLayer
from overlay.link.part import Part
from overlay.link.request_server import RequestRefused
from overlay.topology import Topology
from registration.catalog import REGISTRATION_KEY, Catalog
from registration.placement_by_plan import PlanPlacement

NUMBERS_EACH = 2**32
"""Of deliveries of a profile, between two hosts that it has lost."""


class Rehosting(Part):
    """Chooses new hosts, and gives them the profiles."""

    def __init__(self, catalog: Catalog, placement: PlanPlacement, links: LinkLayer) -> None:
        """``use_topology`` must be called before anything is lost."""
        self._catalog = catalog
        self._placement = placement
        self._links = links

    def use_topology(self, topology: Topology) -> None:
        self._topology = topology

    def lose(self, broker: str, version: int) -> None:
        """A broker is lost with a version of the shape, and no broker of it any more."""
        for entry in self._catalog.hosted_by(broker):
            host = self._host(entry.text)
            self.place(entry.profile, host, broker, version)

    def place(self, profile: str, host: str, lost: str, version: int) -> None:
        """At a broker, as the one that hosted it is lost with a version of the shape."""
        now = self._catalog.change_profile(profile, host=host, placed=False, live=0)
        assert now is not None
        placed = PlaceProfile(
            *(now.profile, now.user, now.text, now.version, now.request),
            lost=lost,
            behind=version * NUMBERS_EACH,
        )
        for told in self._catalog.policies.told(now.profile):
            self._links.send(f"broker/{host}", REGISTRATION_KEY, told)
        self._links.send(f"broker/{host}", REGISTRATION_KEY, placed)

    def _host(self, text: str) -> str:
        """Where there is room; where there is none, at the broker that is exceeded least: it is no
        new profile."""
        placed = self._catalog.profiles_by_broker
        try:
            return self._placement.choose(text, None, False, placed)
        except RequestRefused:
            brokers = self._topology.brokers
            return min(brokers, key=lambda b: (placed.get(b.id, 0) - b.capacity, b.id)).id
