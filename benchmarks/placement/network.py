"""Link crossings and matching time in a network of brokers, by how profiles are placed.

A message goes down the broadcast tree of its root broker to every broker that hosts a profile which
it matches; every broker on the way receives it once.  That is what routing queries without
generalisation do, for profiles whose routing query is exact.  Three placements: at random, at the
broker nearest to the user, and by a plan.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from formats import parse_text
from overlay.nodes import Address, BrokerNode, Link, Place, RegistrationNode
from overlay.routing.broadcast_tree import BroadcastTree, broadcast_trees
from overlay.topology import Topology
from registration.placement import great_circle_km
from registration.planning.need_reader import NeedReader
from registration.planning.plan import Placer
from registration.planning.planner import Evidence, PlanOptions, Values, make_plan
from registration.planning.value_loads import LocalPopulation, ProfileNeeds
from yfilter import Matcher

PARTITIONS_A_BROKER = 4
TOPICS, AREAS = 400, 300


@dataclass(frozen=True, slots=True)
class NetworkResult:
    """By placement, a message: links crossed, brokers that receive it, and the time of all of
    them to parse and match it (microseconds)."""

    crossings: dict[str, float]
    brokers: dict[str, float]
    cpu_us: dict[str, float]
    flooding: float
    matches: float
    predicted_share: float


def measure_network(
    brokers: int, profiles: int, messages: int, seed: int, progress: Callable[[str], None]
) -> NetworkResult:
    random = Random(seed)
    topology = make_topology(brokers, random)
    trees = broadcast_trees(topology)
    texts = [make_profile(random) for _ in range(profiles)]
    news = [make_message(random) for _ in range(2 * messages)]
    progress(f"placing {profiles:,} profiles at {brokers} brokers")
    placed = {
        "random": [random.choice(topology.broker_ids) for _ in texts],
        "location": [_nearest(topology, _somewhere(random)) for _ in texts],
    }
    reader = NeedReader()
    population = LocalPopulation(ProfileNeeds(reader.read(text)) for text in texts)
    samples = [(values_of(entry), 1.0) for entry in news[messages:]]
    options = PlanOptions(PARTITIONS_A_BROKER * brokers, topology)
    plan = make_plan(population, options, Evidence(messages=samples))
    placer = Placer(plan)
    placed["pep"] = [plan.broker_of(placer.place(text).partition) for text in texts]
    everywhere = Matcher()
    for number, text in enumerate(texts):
        everywhere.add(text, str(number))
    data = [message_xml(entry) for entry in news[:messages]]
    matched = [list(map(int, everywhere.matched_ids(entry))) for entry in data]
    roots = [random.choice(topology.broker_ids) for _ in data]
    crossings: dict[str, float] = {}
    receiving: dict[str, float] = {}
    cpu_us: dict[str, float] = {}
    for name, hosts in placed.items():
        progress(f"{len(data):,} messages, profiles placed by {name}")
        reached = [
            _reached(trees[root], {hosts[number] for number in numbers})
            for root, numbers in zip(roots, matched, strict=True)
        ]
        receiving[name] = sum(map(len, reached)) / len(reached)
        crossings[name] = receiving[name] - 1
        cpu_us[name] = _matching_us(texts, hosts, reached, data)
    return NetworkResult(
        crossings=crossings,
        brokers=receiving,
        cpu_us=cpu_us,
        flooding=brokers - 1,
        matches=sum(map(len, matched)) / len(matched),
        predicted_share=plan.facts.matched_share,
    )


def make_topology(brokers: int, random: Random) -> Topology:
    """Brokers at random places; each new one linked to the two nearest that are there."""
    nodes: list[BrokerNode] = []
    links: list[Link] = []
    for number in range(brokers):
        node = BrokerNode(f"B{number + 1}", Address("localhost", 7001 + number), _somewhere(random))
        near = sorted(nodes, key=lambda other: _km(node, other))[:2]
        links += [
            Link((other.id, node.id), latency_ms=1 + _km(node, other) / 200) for other in near
        ]
        nodes.append(node)
    registration = (RegistrationNode("R1", Address("localhost", 7000)),)
    return Topology("benchmark", Path("data"), registration, tuple(nodes), tuple(links))


def _somewhere(random: Random) -> Place:
    return Place(math.degrees(math.asin(random.uniform(-0.9, 0.9))), random.uniform(-180, 180))


def _km(one: BrokerNode, other: BrokerNode) -> float:
    assert one.place is not None
    assert other.place is not None
    return great_circle_km(one.place, other.place)


def _nearest(topology: Topology, place: Place) -> str:
    def km(broker: BrokerNode) -> float:
        assert broker.place is not None
        return great_circle_km(place, broker.place)

    return min(topology.brokers, key=km).id


def make_profile(random: Random) -> str:
    """What a reader of news wants: a subject, mostly of an area as well."""
    subject = f'/nitf[head/tobject/@subject = "s{_zipf(random, TOPICS)}"]'
    if random.random() < 0.7:
        return f'{subject}[head/pubdata/@area = "a{_zipf(random, AREAS)}"]'
    return f"{subject}[body/@urgency <= {random.randint(1, 8)}]"


def make_message(random: Random) -> tuple[int, int, int]:
    return _zipf(random, TOPICS), _zipf(random, AREAS), random.randint(1, 8)


def values_of(message: tuple[int, int, int]) -> Values:
    subject, area, _ = message
    return {
        "/nitf/head/tobject/@subject": [f"s{subject}"],
        "/nitf/head/pubdata/@area": [f"a{area}"],
    }


def message_xml(message: tuple[int, int, int]) -> bytes:
    subject, area, urgency = message
    paragraphs = "".join(f"<p>{'words and more words ' * 8}</p>" for _ in range(20))
    return (
        f'<nitf><head><tobject subject="s{subject}"/><pubdata area="a{area}"/></head>'
        f'<body urgency="{urgency}">{paragraphs}</body></nitf>'
    ).encode()


def _zipf(random: Random, values: int) -> int:
    """1 to ``values``, with the exponent 0.5: popular things, but not one above all."""
    return 1 + int(values * random.random() ** 2)


def _reached(tree: BroadcastTree, hosts: set[str]) -> set[str]:
    """The brokers that receive a message for these hosts: they, and all on the way."""
    return {tree.root}.union(*(tree.path(host) for host in hosts))


def _matching_us(
    texts: Sequence[str],
    hosts: Sequence[str],
    reached: Sequence[set[str]],
    data: Sequence[bytes],
) -> float:
    """The time of all brokers for a message: each receives it, and has its own profiles."""
    local: Mapping[str, Matcher] = defaultdict(Matcher)
    for number, (text, host) in enumerate(zip(texts, hosts, strict=True)):
        local[host].add(text, str(number))
    used = 0.0
    for warm in (True, False):
        used = 0.0
        for message, brokers in zip(data, reached, strict=True):
            stream = parse_text(message)
            for broker in sorted(brokers):
                start = time.process_time()
                local[broker].matched_ids(stream)
                used += time.process_time() - start
            if not warm:
                start = time.process_time()
                parse_text(message)
                used += (time.process_time() - start) * len(brokers)
    return 1e6 * used / len(data)
