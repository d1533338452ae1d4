"""Placement: which broker becomes a source's root broker and which a profile's host broker.

Section 3.1 of the paper: the root broker is chosen by its topological distance to the source,
the bandwidth available and the volume expected; the host broker by the user's location "and/or"
the profile's content.  This file holds the choices by location, load and bandwidth; the choice by
content is in placement_by_plan.py.

Everything here is a pure function of the topology and of what the catalog counts.  Ties go to
the smallest id, so that the same situation always gives the same answer.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from overlay.link.request_server import RequestRefused
from overlay.routing.broadcast_tree import BroadcastTree
from overlay.topology import BrokerNode, Topology

EARTH_RADIUS_KM = 6_371.0088  # mean radius (IUGG)
FIBRE_KM_PER_MS = 200.0  # light in glass travels at about two thirds of its speed in vacuum
HALF_EARTH_KM = math.pi * EARTH_RADIUS_KM


@dataclass(frozen=True, slots=True)
class RootCandidate:
    """What speaks for and against a broker as the root broker of a source.

    ``source_ms``  from the source to the broker, as the light in a fibre goes; 0 for a source
                   that gave no location
    ``tree_ms``    from the broker to all other brokers on its broadcast tree, the mean
    ``headroom_bytes_per_second``  what would remain on the fullest of the links over which the
                   broker feeds its tree; negative when the volume does not fit, infinite when
                   there is no such link
    """

    broker: str
    source_ms: float
    tree_ms: float
    headroom_bytes_per_second: float

    @property
    def suffices(self) -> bool:
        return self.headroom_bytes_per_second >= 0

    @property
    def distance_ms(self) -> float:
        """From the source to a broker somewhere in the network, on average."""
        # Rounded to a nanosecond, so that a rounding error never decides a tie.
        return round(self.source_ms + self.tree_ms, 6)


def choose_root_broker(
    topology: Topology,
    trees: Mapping[str, BroadcastTree],
    location: tuple[float, float] | None,
    rate: float,
    size: int,
    volume_by_root: Mapping[str, float],
    without: Collection[str] = (),
    rather_not: Collection[str] = (),
) -> str:
    """The root broker for a source at ``location`` (latitude, longitude in degrees).

    ``trees``           the broadcast tree of every broker
    ``rate``, ``size``  messages a second and bytes a message, as the source expects them
    ``volume_by_root``  bytes a second already expected from the sources of each root broker

    ``without``         brokers that are no candidates, but not all
    ``rather_not``      brokers that are chosen only where there is no other

    Among the brokers with enough bandwidth the nearest; if none has enough, the one that is
    exceeded least.
    """
    ranked = rank_root_brokers(topology, trees, location, rate, size, volume_by_root)
    found = [each.broker for each in ranked if each.broker not in without]
    return next((broker for broker in found if broker not in rather_not), found[0])


def rank_root_brokers(
    topology: Topology,
    trees: Mapping[str, BroadcastTree],
    location: tuple[float, float] | None,
    rate: float,
    size: int,
    volume_by_root: Mapping[str, float],
) -> list[RootCandidate]:
    """All brokers, the best first, with the figures that decided (see choose_root_broker).

    ValueError for a negative or endless rate or size.
    """
    if not (0 <= rate < math.inf and 0 <= size < math.inf):
        raise ValueError(f"rate and size must not be negative or endless: {rate}, {size}")
    load = _load_by_link(trees, volume_by_root)
    candidates = [
        RootCandidate(
            broker=broker.id,
            source_ms=_distance_km(location, broker) / FIBRE_KM_PER_MS,
            tree_ms=trees[broker.id].mean_latency_ms,
            headroom_bytes_per_second=_headroom(topology, trees[broker.id], load) - rate * size,
        )
        for broker in topology.brokers
    ]
    return sorted(candidates, key=_root_preference)


def choose_host_broker(
    topology: Topology,
    location: tuple[float, float] | None,
    profiles_by_broker: Mapping[str, int],
    among: Collection[str] | None = None,
    rather_not: Collection[str] = (),
) -> str:
    """The host broker for a profile whose user is at ``location`` (latitude, longitude).

    The nearest broker with room; of equally near ones (or when no location is given) the one
    least loaded in proportion to its capacity.  RequestRefused when every broker is full.
    ``among``: brokers of which one has room, if only they will do; ``rather_not``: brokers that are
    chosen only where there is no other.
    """

    def preference(broker: BrokerNode) -> tuple[bool, float, float, str]:
        load = profiles_by_broker.get(broker.id, 0) / broker.capacity
        # Rounded to a metre: brokers in the same building are equally near.
        far = round(_distance_km(location, broker), 3)
        return broker.id in rather_not, far, load, broker.id

    brokers = brokers_with_room(topology, profiles_by_broker)
    return min(
        (broker for broker in brokers if among is None or broker.id in among), key=preference
    ).id


def brokers_with_room(
    topology: Topology, profiles_by_broker: Mapping[str, int]
) -> tuple[BrokerNode, ...]:
    """The brokers that can host one more profile; RequestRefused when there is none."""
    free = tuple(
        broker
        for broker in topology.brokers
        if profiles_by_broker.get(broker.id, 0) < broker.capacity
    )
    if not free:
        total = sum(broker.capacity for broker in topology.brokers)
        raise RequestRefused(
            "network-full",
            f"every broker is full: the {len(topology.brokers)} brokers of {topology.name} "
            f"have room for {total} profiles in all",
        )
    return free


def great_circle_km(a: tuple[float, float], b: tuple[float, float]) -> float:
    """The way over the earth (a sphere) between two points in degrees, by the haversine."""
    latitude_a, longitude_a = map(math.radians, a)
    latitude_b, longitude_b = map(math.radians, b)
    chord = (
        math.sin((latitude_b - latitude_a) / 2) ** 2
        + math.cos(latitude_a)
        * math.cos(latitude_b)
        * math.sin((longitude_b - longitude_a) / 2) ** 2
    )
    return 2 * EARTH_RADIUS_KM * math.asin(math.sqrt(min(1.0, chord)))


def _root_preference(candidate: RootCandidate) -> tuple[float, float, str]:
    # Once the volume fits it does not matter how much room remains: then distance decides.
    exceeded = 0.0 if candidate.suffices else -candidate.headroom_bytes_per_second
    return exceeded, candidate.distance_ms, candidate.broker


def _distance_km(location: tuple[float, float] | None, broker: BrokerNode) -> float:
    """0 without a location; a broker without a place counts as being at the other end of the
    earth, so that it is taken only when no placed one will do."""
    if location is None:
        return 0.0
    return HALF_EARTH_KM if broker.place is None else great_circle_km(location, broker.place)


def _load_by_link(
    trees: Mapping[str, BroadcastTree], volume_by_root: Mapping[str, float]
) -> dict[tuple[str, str], float]:
    """Bytes a second expected on each link and direction (from, to).

    The worst case, in which every message is wanted everywhere: the volume of a root broker goes
    over every link of its tree.  Roots that the network no longer has are not counted.
    """
    load: dict[tuple[str, str], float] = {}
    for root in sorted(volume_by_root.keys() & trees.keys()):
        for broker, parent in trees[root].parent.items():
            if parent is not None:
                load[parent, broker] = load.get((parent, broker), 0.0) + volume_by_root[root]
    return load


def _headroom(
    topology: Topology, tree: BroadcastTree, load: Mapping[tuple[str, str], float]
) -> float:
    """Free bytes a second on the fullest link from the root to a child of its tree.

    Only these links are sure to carry the volume; what goes further down is already filtered.
    """
    root = tree.root
    return min(
        (
            topology.link(root, child).bandwidth_kbps * 1000 / 8 - load.get((root, child), 0.0)
            for child in topology.neighbours(root)
            if tree.parent[child] == root
        ),
        default=math.inf,
    )
