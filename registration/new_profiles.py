"""NewProfiles: profiles on their way into the network, one or thousands at a time.

What comes in one batch of events is given to each host broker together (PlaceProfiles), in the
commit of that batch, so that many users who add one profile each cost little more than one user
who adds many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from overlay.delivery_policy import USUAL, DeliveryPolicy
from overlay.link.frames import PlaceProfiles
from overlay.link.link_layer import LinkLayer
from overlay.link.part import Part
from overlay.link.portions import portions
from overlay.link.request_server import RequestRefused
from overlay.settings import ProfileSettings, settings_of
from overlay.topology import Topology
from registration.catalog import REGISTRATION_KEY, Catalog, ProfileEntry
from registration.placement_by_plan import PlanPlacement

PLACED_TOGETHER = 128  # profiles of a frame, which a broker handles in one turn


class Asked(NamedTuple):
    """A profile that is asked for: its text, whose it is, by which request, and how it is kept."""

    text: str
    user: str
    request: str = ""
    policy: DeliveryPolicy = USUAL


class NewProfiles(Part):
    """Checks them, chooses their hosts, enters them in the catalog, and gives them to the hosts."""

    def __init__(
        self,
        catalog: Catalog,
        placement: PlanPlacement,
        links: LinkLayer,
        said_in: Callable[[str], str],
    ) -> None:
        """``use_topology`` must be called before anything is added; ``said_in`` a text: with what
        the taxonomies say (Taxonomies)."""
        self._said_in = said_in
        self._catalog = catalog
        self._placement = placement
        self._links = links
        self._unsent: list[str] = []

    def use_topology(self, topology: Topology) -> None:
        self._topology = topology

    def add(
        self,
        asked: Sequence[Asked],
        location: tuple[float, float] | None,
        settings: ProfileSettings,
        is_bounded: bool,
    ) -> list[ProfileEntry]:
        """Add profiles that were checked, all or none; RequestRefused where there is no room, or
        where the asker ``is_bounded`` and the users have too many; no quota counts the profiles
        of an asker who is not."""
        near, said = settings.near, settings_of(settings, ProfileSettings)
        said["is_granted"] = not is_bounded
        if near and location is None:
            raise RequestRefused("bad-argument", "'near' needs a 'location' to be near to")
        self._check_room(len(asked))
        if is_bounded:
            self._check_quota(asked)
        texts = [self._said_in(one.text) for one in asked]
        first = self._catalog.ids.new_numbers("p", len(asked))
        entries = []
        together = zip(texts, asked, strict=True)
        for number, (text, (_, user, request, policy)) in enumerate(together, first):
            profile = self._catalog.ids.name("p", number)
            host = self._placement.choose(text, location, near, self._catalog.profiles_by_broker)
            entry = ProfileEntry(profile, user, host, text, request=request, **said)
            self._catalog.put_profile(entry)
            self._catalog.policies.put(profile, policy)
            self._unsent.append(profile)
            entries.append(entry)
        self.flush_at_end()
        return entries

    def flush(self) -> None:
        """Give them to their host brokers; those that a lost broker took with it are gone."""
        by_host: dict[str, list[ProfileEntry]] = {}
        for entry in map(self._catalog.profiles.get, self._unsent):
            if entry is not None:
                by_host.setdefault(entry.host, []).append(entry)
        self._unsent.clear()
        for host, entries in by_host.items():
            for place in portions([entry.text for entry in entries], PLACED_TOGETHER):
                ids = [entry.profile for entry in entries[place]]
                for told in self._catalog.policies.told(*ids):
                    self._links.send(f"broker/{host}", REGISTRATION_KEY, told)
                given = [(entry.profile, entry.user, entry.text) for entry in entries[place]]
                self._links.send(f"broker/{host}", REGISTRATION_KEY, PlaceProfiles(given))

    def _check_quota(self, asked: Sequence[Asked]) -> None:
        limit = self._topology.limits.principal_profiles_max
        for user, more in Counter(each.user for each in asked).items():
            there = self._catalog.quota_used[user]
            if there + more > limit:
                raise RequestRefused(
                    "over-quota",
                    f"user/{user} has {there} profiles that count already, and may have {limit} "
                    f"(principal_profiles_max); {more} more are asked",
                )

    def _check_room(self, count: int) -> None:
        limit = self._topology.limits.profiles_max
        if len(self._catalog.profiles) + count > limit:
            there = len(self._catalog.profiles)
            raise RequestRefused(
                "too-many-profiles",
                f"there are {there} profiles already, and may be {limit}; {count} more are asked",
            )
        placed = self._catalog.profiles_by_broker
        brokers = self._topology.brokers
        room = sum(max(0, broker.capacity - placed.get(broker.id, 0)) for broker in brokers)
        if 1 < count > room:  # of a single one the placement says it
            raise RequestRefused(
                "network-full",
                f"the {len(brokers)} brokers of {self._topology.name} have room for {room} more "
                f"profiles; {count} are asked",
            )
