"""The network whose map is measured: a mesh of brokers at random places, and beside it some whose
only link nothing but a probe crosses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TypeAlias

from msgspec.structs import replace

from benchmarks.placement.network import make_topology
from overlay.nodes import Address, BrokerNode, Link, Place
from overlay.planning import PlanningOptions
from overlay.topology import Topology

Probe: TypeAlias = tuple[str, str]
"""The broker where a source publishes, and the one behind it that alone wants it."""

SHORTENED = 10_000


@dataclass(frozen=True, slots=True)
class Shape:
    """``probes``: their links come first in the file.  ``roots`` of sources and ``hosts`` of
    profiles, of which messages cross the mesh; the same broker may be several times a host."""

    topology: Topology
    probes: tuple[Probe, ...]
    roots: tuple[str, ...]
    hosts: tuple[str, ...]


def make_shape(
    brokers: int, probes: int, sources: int, profiles: int, data: Path, seed: int
) -> Shape:
    """Of so many brokers together, on ports that are not known yet."""
    random = Random(seed)
    mesh = make_topology(brokers - probes, random)
    roots = tuple(random.sample(mesh.broker_ids, min(sources, len(mesh.brokers))))
    hosts = tuple(random.choices(mesh.broker_ids, k=profiles))
    busy = [broker for pair in zip(roots, hosts, strict=False) for broker in pair]
    found = tuple((busy[at % len(busy)], f"P{at + 1}") for at in range(probes))
    at = Address("127.0.0.1", 0)
    behind = [BrokerNode(leaf, at, place=_somewhere(random)) for _, leaf in found]
    # So short that sources and profiles are where their place is, whatever else is near to all.
    links = [*(Link(ends) for ends in found), *mesh.links]
    short = tuple(replace(link, latency_ms=link.latency_ms / SHORTENED) for link in links)
    topology = replace(
        mesh,
        data_directory=data,
        brokers=(*mesh.brokers, *behind),
        links=short,
        planning=PlanningOptions(auto=False),
    )
    return Shape(topology, found, roots, hosts)


def _somewhere(random: Random) -> Place:
    """Where no broker of the mesh is near: those are north of the Antarctic."""
    return Place(random.uniform(-89, -75), random.uniform(-180, 180))
