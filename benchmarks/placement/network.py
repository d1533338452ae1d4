"""Link crossings and processor time in a network of brokers, by how profiles are placed.

The brokers are their own cores (core_network.py): a message is parsed at its root broker, routed
by the routing tables that the profiles have brought about, matched and delivered at their hosts.
Three placements of the same profiles: at random, at the broker nearest to the user, and by a plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from benchmarks.benchmark import WrongAnswers
from benchmarks.placement.core_network import CoreNetwork
from overlay.nodes import Address, BrokerNode, Link, Place, RegistrationNode
from overlay.topology import Topology
from registration.placement import great_circle_km
from registration.planning.need_reader import NeedReader
from registration.planning.plan import Placer
from registration.planning.planner import Evidence, PlanOptions, Values, make_plan
from registration.planning.value_loads import LocalPopulation, ProfileNeeds
from yfilter import Matcher

PARTITIONS_A_BROKER = 4
SOURCES = 3
SUBJECTS = 400


@dataclass(frozen=True, slots=True)
class NetworkResult:
    """By placement, a message: links crossed, and the time of all brokers (microseconds).
    ``matches`` a message."""

    crossings: dict[str, float]
    cpu_us: dict[str, float]
    flooding: float
    matches: float


def measure_network(
    brokers: int,
    profiles: int,
    subjects: int,
    messages: int,
    seed: int,
    progress: Callable[[str], None],
) -> NetworkResult:
    """WrongAnswers when not every match was delivered."""
    random = Random(seed)
    topology = make_topology(brokers, random)
    texts = [make_profile(random, subjects) for _ in range(profiles)]
    news = [make_message(random, subjects) for _ in range(2 * messages)]
    placed = {
        "random": [random.choice(topology.broker_ids) for _ in texts],
        "location": [_nearest(topology, _somewhere(random)) for _ in texts],
        "pep": _planned(topology, texts, news[messages:]),
    }
    everywhere = Matcher()
    for number, text in enumerate(texts):
        everywhere.add(text, str(number))
    data = [message_xml(entry) for entry in news]
    matches = sum(len(everywhere.matched_ids(entry)) for entry in data[:messages])
    roots = random.choices(topology.broker_ids, k=SOURCES)
    crossings: dict[str, float] = {}
    cpu_us: dict[str, float] = {}
    for name, hosts in placed.items():
        progress(f"{profiles:,} profiles at {brokers} brokers, placed by {name}")
        network = CoreNetwork(topology, roots)
        network.host(texts, hosts)
        progress(f"{messages:,} messages")
        for number, entry in enumerate(data[messages:]):  # until the lazy states are there
            network.publish(number % SOURCES, entry)
        before = {key: network.counted(key) for key in ("crossings", "delivered")}
        network.cpu_s = 0.0
        for number, entry in enumerate(data[:messages]):
            network.publish(number % SOURCES, entry)
        cpu_us[name] = 1e6 * network.cpu_s / messages
        crossings[name] = (network.counted("crossings") - before["crossings"]) / messages
        delivered = network.counted("delivered") - before["delivered"]
        if delivered != matches:
            raise WrongAnswers(f"placed by {name}: {matches} matches, {delivered} were delivered")
    return NetworkResult(crossings, cpu_us, brokers - 1, matches / messages)


def _planned(
    topology: Topology, texts: Sequence[str], samples: Sequence[tuple[int, int, int]]
) -> list[str]:
    """The host broker of each profile by a plan of all of them."""
    reader = NeedReader()
    population = LocalPopulation(ProfileNeeds(reader.read(text)) for text in texts)
    evidence = Evidence(messages=[(values_of(entry), 1.0) for entry in samples])
    options = PlanOptions(PARTITIONS_A_BROKER * len(topology.brokers), topology)
    placer = Placer(make_plan(population, options, evidence))
    return [placer.plan.broker_of(placer.place(text).partition) for text in texts]


def make_topology(brokers: int, random: Random, links_each: int = 2) -> Topology:
    """Brokers at random places; each new one linked to the nearest that are there: with one link
    each a tree, else a mesh."""
    nodes: list[BrokerNode] = []
    links: list[Link] = []
    for number in range(brokers):
        at = Address("localhost", 7001 + number)
        node = BrokerNode(f"B{number + 1}", at, place=_somewhere(random))
        near = sorted(nodes, key=lambda other: _km(node, other))[:links_each]
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


def make_profile(random: Random, subjects: int = SUBJECTS, *, uniform: bool = False) -> str:
    """What a reader of news wants: a subject, mostly of an area as well; the popular ones more
    often, or any as often."""
    pick = _any if uniform else _zipf
    subject = f'/nitf[head/tobject/@subject = "s{pick(random, subjects)}"]'
    if random.random() < 0.7:
        return f'{subject}[head/pubdata/@area = "a{pick(random, _areas(subjects))}"]'
    return f"{subject}[body/@urgency <= {random.randint(1, 8)}]"


def make_message(random: Random, subjects: int = SUBJECTS) -> tuple[int, int, int]:
    return _zipf(random, subjects), _zipf(random, _areas(subjects)), random.randint(1, 8)


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


def _areas(subjects: int) -> int:
    return max(1, subjects * 3 // 4)


def _zipf(random: Random, values: int) -> int:
    """1 to ``values``, with the exponent 0.5: popular things, but not one above all."""
    return 1 + int(values * random.random() ** 2)


def _any(random: Random, values: int) -> int:
    return random.randint(1, values)
