"""A scenario: a random network, sources, profiles that come, change and go, and messages.

What must hold is written down as it happens, for each (profile, message): it *must* be delivered
once when the version of the profile that is in force was live before the message left its source,
it *may* be when message and version overlapped, and it *must not* otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from random import Random
from typing import ClassVar

import networkx as nx
from lxml import etree
from msgspec.structs import replace

from demo.graph_oracle import canonical_graph_result, expected_graph_results, is_graph_profile
from formats import ElementStream, parse_text, write_graph
from formats.graph.striped import GRAPH_NAMESPACE
from formats.graph.syntaxes import GraphSyntax
from formats.media_types import XML, publish_format
from formats.publication import read_publication
from onyx.broker.broker_core import BrokerCore
from overlay import network_shape
from overlay.link.core_context import Surroundings
from overlay.link.frames import Response
from overlay.link.limits import LinkLimits
from overlay.link.slices import SLICE_SECONDS
from overlay.routing.broadcast_tree import broadcast_tree
from overlay.topology import Topology, parse_topology
from registration.registration_core import RegistrationCore
from tests.simulation import seeds
from tests.simulation.sim_clients import AskingClient, SourceClient, SubscriberClient
from tests.simulation.sim_disk import Disk, MemoryDisk
from tests.simulation.sim_network import Core, Rows, SimNetwork
from tests.simulation.witness import Witness
from yfilter.engine.containment import Pattern, covers
from yfilter.matcher import Matcher
from yfilter.matches import ProfileMatch

PATIENCE = 600.0  # simulated seconds
CALM = 100.0  # the same, without faults
TURTLE = GraphSyntax.TURTLE.value
MEMORIES = (1, 1000, 64 * 1024 * 1024)  # bytes of what waits for peers, by seed

# PERF: each process that starts reads its topology again, an eighth of a run in which many die.
network_shape.parse_topology = lru_cache(64)(parse_topology)

# Not all words of the messages, so that words and literals are mixed on links.
SCHEMA = b"""<!ELEMENT m (part*)> <!ELEMENT part (#PCDATA)>
<!ATTLIST m a (0 | 1) "0" b CDATA #IMPLIED>"""


@dataclass
class Version:
    """One text of a profile, and when (simulated seconds) it began and ended to be in force."""

    text: str
    asked: float
    live: float = float("inf")
    ended: float = float("inf")  # the request that ends it was answered


@dataclass
class Interest:
    """A profile as its user sees it."""

    profile: str
    subscriber: SubscriberClient
    versions: list[Version]
    removed: bool = False


@dataclass
class Published:
    """``data``: an XML document, or a graph in Turtle that begins with a prefix."""

    source: str
    number: int
    data: bytes
    at: float

    @property
    def malformed(self) -> bool:
        return not self.data.endswith((b">", b"."))


@dataclass
class Scenario:
    """One run; everything random comes from the network's seed."""

    seed: int
    brokers: int
    formats: tuple[str, ...] = ("text", "dictionary", "binary", "dictionary+zstd", "auto")
    transformations: tuple[str, ...] = ("off",)
    net: SimNetwork = field(init=False)
    keeps_order: ClassVar[bool] = True
    subscriber: ClassVar[type[SubscriberClient]] = SubscriberClient

    def __post_init__(self) -> None:
        seeds.note(self.seed)
        self.net = SimNetwork(self.seed, self.new_disk)
        self.random = self.net.random
        self.topology = random_topology(self.net, self.brokers, self.formats, self.transformations)
        link = replace(self.topology.limits.link, journal_memory_bytes=MEMORIES[self.seed % 3])
        limits = replace(self.topology.limits, link=link)
        self.topology = replace(self.topology, limits=limits)
        self.witness = Witness(self.stream_of)
        self.limits: LinkLimits = self.topology.limits.link
        self.interests: dict[str, Interest] = {}
        self.sources: dict[str, SourceClient] = {}
        self.published: list[Published] = []
        self.registrar = AskingClient("asker", "asker#1", self.limits)
        self.hosts: dict[str, AskingClient] = {}
        for broker in self.topology.broker_ids:
            self._start_broker(broker)
        registration = self.topology.registration[0].id
        self.net.add(
            f"registration/{registration}",
            lambda rows, instance: self.new_registration(registration, instance, rows),
        )
        self.net.add(
            "client/asker",
            lambda rows, instance: self.registrar,
            dials=[f"registration/{registration}"],
        )

    def new_broker(self, broker: str, instance: str, rows: Rows) -> Core:
        """Its core, at a start."""
        epoch = self.net.nodes[f"broker/{broker}"].epoch
        arguments = self.topology, broker, instance, rows
        return self.witness.watched(
            BrokerCore(*arguments, Surroundings(self._clock(), epoch=epoch))
        )

    def new_registration(self, registration: str, instance: str, rows: Rows) -> Core:
        return RegistrationCore(
            *(self.topology, registration, instance, rows),
            Surroundings(self._clock(), epoch=self.net.nodes[f"registration/{registration}"].epoch),
            new_secret=lambda: Random(self.seed).randbytes(32),
        )

    def new_disk(self, peer: str) -> Disk:
        """Of a peer that is added."""
        return MemoryDisk()

    @property
    def server_peers(self) -> list[str]:
        return [peer for peer in self.net.nodes if peer.startswith(("broker/", "registration/"))]

    def _clock(self) -> Callable[[], float]:
        """Of a processor: one that stands still, or one so slow that work ends in every slice."""
        if self.seed % 2:
            return lambda: 0.0
        steps = Random(self.seed)
        seconds = 0.0

        def clock() -> float:
            nonlocal seconds
            seconds += steps.choice((0.0, SLICE_SECONDS / 4, SLICE_SECONDS))
            return seconds

        return clock

    def _start_broker(self, broker: str) -> None:
        neighbours = self.topology.neighbours(broker)
        dials = [f"broker/{other}" for other in neighbours if broker < other]
        dials.append(f"registration/{self.topology.registration[0].id}")
        self.net.add(
            f"broker/{broker}",
            lambda rows, instance: self.new_broker(broker, instance, rows),
            dials=dials,
        )
        asker = self.hosts[broker] = AskingClient(f"at-{broker}", f"at-{broker}#1", self.limits)
        self.net.add(f"client/at-{broker}", lambda rows, instance: asker, [f"broker/{broker}"])

    # --- what users and sources do ------------------------------------------------------------

    def ask(self, client: AskingClient, verb: str, **arguments: object) -> dict[str, object]:
        """A request answered with yes, whatever breaks on the way."""
        response = self.answer(client, verb, **arguments)
        assert response.ok, (self.seed, verb, response)
        return dict(response.result)

    def ask_host(self, interest: Interest, verb: str, **arguments: object) -> None:
        """The same of the host broker of a profile, whichever it is by then, or until the profile
        is gone: asked again after a broken connection the broker may have removed it already."""
        host, begun = interest.subscriber.host, self.net.now
        while self.net.now < begun + PATIENCE:
            answer = self.answer(self.hosts[host], verb, profile=interest.profile, **arguments)
            if answer.ok:
                return
            assert answer.result["code"] in ("moved", "unknown-profile"), (self.seed, answer)
            shown = self.answer(self.registrar, "profile.show", profile=interest.profile)
            if not shown.ok:
                return
            host = str(shown.result["host"])
            self.net.run_until(lambda: False, 0.2)
        raise AssertionError(f"seed {self.seed}: {host} does not host {interest.profile}")

    def answer(self, client: AskingClient, verb: str, **arguments: object) -> Response:
        request = client.ask(verb, **arguments)
        self.wait(lambda: client.answer(request) is not None, f"{verb} is not answered")
        response = client.answer(request)
        assert response is not None
        return response

    def wait(self, condition: Callable[[], bool], complaint: str) -> None:
        """Under faults that leave no time for it, once they have ended."""
        if not self.net.run_until(condition, PATIENCE):
            assert self.net.faulty, f"seed {self.seed}: {complaint}"
            self.net.faulty = False
            assert self.net.run_until(condition, CALM), f"seed {self.seed}: {complaint}, in calm"

    def register_source(self) -> SourceClient:
        if len(self.sources) % 2:
            return self.registered()
        # where they are validated they have to wait until they are taken
        validate = "report" if self.seed % 2 else "off"
        return self.registered(schema_name="message.dtd", schema=SCHEMA, validate=validate)

    def registered(self, **schema: object) -> SourceClient:
        location = [self.random.uniform(-90, 90), self.random.uniform(-180, 180)]
        result = self.ask(self.registrar, "source.register", location=location, **schema)
        source, root = str(result["source"]), str(result["root"])
        client = SourceClient(source, root, f"{source}#1", self.limits)
        self.sources[source] = client
        self.net.add(f"source/{source}", lambda rows, instance: client, [f"broker/{root}"])
        return client

    def add_profile(self, text: str) -> Interest:
        asked = self.net.now
        location = [self.random.uniform(-90, 90), self.random.uniform(-180, 180)]
        result = self.ask(self.registrar, "profile.add", text=text, location=location, wait=True)
        profile, host = str(result["profile"]), str(result["host"])
        subscriber = self.subscriber(profile, f"{profile}#1", self.limits)
        version = Version(text, asked, live=self.net.now)
        subscriber.host = host
        interest = self.interests[profile] = Interest(profile, subscriber, [version])
        self.net.add(f"subscriber/{profile}", lambda rows, instance: subscriber, [f"broker/{host}"])
        return interest

    def update_profile(self, interest: Interest, text: str) -> None:
        old = interest.versions[-1]
        new = Version(text, self.net.now)
        interest.versions.append(new)
        self.ask_host(interest, "profile.update", text=text, wait=True)
        old.ended = new.live = self.net.now

    def remove_profile(self, interest: Interest) -> None:
        interest.removed = True
        self.ask_host(interest, "profile.remove", wait=self.random.random() < 0.5)
        interest.versions[-1].ended = self.net.now

    def publish(self, source: SourceClient, data: bytes) -> None:
        source.publish(data, publish_format(media_type_of(data)))
        number = sum(1 for published in self.published if published.source == source.source) + 1
        self.published.append(Published(source.source, number, data, self.net.now))

    def stream_of(self, source: str, number: int) -> ElementStream:
        """What was published."""
        data = next(
            message.data
            for message in self.published
            if (message.source, message.number) == (source, number)
        )
        return read_publication(data, media_type_of(data))

    def behind(self, source: SourceClient, broker: str) -> set[str]:
        """The broker, and those that get the source's messages through it."""
        found = {broker}
        tree = broadcast_tree(self.topology, source.root)
        for other in tree.parent:
            at: str | None = other
            while at is not None and at not in found:
                at = tree.parent.get(at)
            found |= set() if at is None else {other}
        return found

    # --- the verdict --------------------------------------------------------------------------

    def settle(self) -> None:
        """Faults end; wait until all that must be delivered is there, then a while longer."""
        self.net.faulty = False
        self.wait(self.all_there(), f"never delivered: {self.missing()[:5]}")
        self.net.run_until(lambda: False, 30.0)

    def all_there(self) -> Callable[[], bool]:
        """A condition to wait for: nothing is missing.  PERF: it is asked after each event, and
        looks at deliveries that were missing until all of them have come."""
        owed: list[tuple[str, str, int]] = []

        def is_there() -> bool:
            while owed and self.interests[owed[-1][0]].subscriber.got[owed[-1][1:]]:
                owed.pop()
            owed.extend(() if owed else self.missing())
            return not owed

        return is_there

    def missing(self) -> list[tuple[str, str, int]]:
        return [
            (interest.profile, message.source, message.number)
            for interest in self.interests.values()
            if not interest.removed
            for message in self.published
            if not interest.subscriber.got[message.source, message.number]
            and must_deliver(interest, message)
        ]

    def unexplained(self) -> list[str]:
        """Messages that crossed a link for no reason; routing queries by which one could, and those
        that are not what the child has told.

        A disjunct is explained when somebody at or below the child asked for it, or when it is a
        generalisation of at least two such.
        """
        tables = {broker: self._core(broker).query.table for broker in self.topology.broker_ids}
        faults = list(self.witness.unexplained)
        for broker, table in tables.items():
            for root in table.roots:
                told = table.told(root)
                parent = self._core(broker).control.parent(root)
                if parent is not None:
                    known = set(tables[parent].wanted(root, broker))
                    if told != known:
                        faults.append(f"{broker} has told {told}, {parent} knows {known}")
                interests = [Pattern(interest) for interest in table.aggregate(root)]
                for one in told - table.aggregate(root):
                    if sum(covers(Pattern(one), interest) for interest in interests) < 2:
                        faults.append(f"{broker} tells {one}, which nobody asked for")
        return faults

    def generalisations(self) -> int:
        """How many disjuncts that nobody asked for stand in routing tables."""
        tables = [self._core(broker).query.table for broker in self.topology.broker_ids]
        return sum(
            len(table.told(root) - table.aggregate(root))
            for table in tables
            for root in table.roots
        )

    def _core(self, broker: str) -> BrokerCore:
        core = self.net.nodes[f"broker/{broker}"].core
        assert isinstance(core, BrokerCore)
        return core

    def _wrong_in_archives(self) -> list[str]:
        """What a process wrote before it died may be less than it accepted, never anything else."""
        archived = Counter(
            (message.source, message.number, archived_as(octets(message.text)))
            for message in self.net.archived
        )
        accepted = {
            (m.source, m.number, archived_as(m.data)) for m in self.published if not m.malformed
        }
        faults = [f"{key} was archived {n} times" for key, n in archived.items() if n > 1]
        faults += [f"{key} was archived" for key in archived if key not in accepted]
        if not self.net.crashes:
            roots = {source.source: f"broker/{source.root}" for source in self.sources.values()}
            faults += [
                f"{key} was not archived"
                for key in accepted - archived.keys()
                if roots[key[0]] in self.net.nodes  # a lost broker took what it had not accepted
            ]
        return faults

    def wrong(self) -> list[str]:
        """Everything that was delivered or archived twice, or should not have been."""
        faults = self._wrong_in_archives()
        for interest in self.interests.values():
            for message in self.published:
                times = interest.subscriber.got[message.source, message.number]
                if times > 1:
                    faults.append(f"{interest.profile} got {message.number} {times} times")
                if times and not may_deliver(interest, message):
                    faults.append(f"{interest.profile} got {message.number}, never asked for it")
                results = interest.subscriber.results.get((message.source, message.number), [])
                if times and not may_be(interest, message, tuple(map(canonical, results))):
                    faults.append(f"{interest.profile} got {results} of {message.number}")
            for source in self.sources if self.keeps_order else ():
                order = [number for name, number in interest.subscriber.results if name == source]
                if order != sorted(order):
                    faults.append(f"{interest.profile} got {order} of {source}")
        for source in self.sources.values():
            told = sorted(refused.number for refused in source.refused)
            bad = [m.number for m in self.published if m.source == source.source and m.malformed]
            if told != bad:
                faults.append(f"{source.source} was told of {told}, malformed were {bad}")
        return faults


def must_deliver(interest: Interest, message: Published) -> bool:
    """The version in force was live before the message left."""
    version = interest.versions[-1]
    return (
        not interest.removed and version.live <= message.at and matches(version.text, message.data)
    )


def may_deliver(interest: Interest, message: Published) -> bool:
    """Some version was in force at some time between the message's leaving and now."""
    return any(
        message.at <= version.ended and matches(version.text, message.data)
        for version in interest.versions
    )


def may_be(interest: Interest, message: Published, results: tuple[bytes, ...]) -> bool:
    """Whether a version that may have been in force has these results on the whole message."""
    return any(
        results_of(version.text, message.data) == results
        for version in interest.versions
        if message.at <= version.ended
    )


def media_type_of(data: bytes) -> str:
    """Of what is published here."""
    return TURTLE if data.startswith(b"@prefix") else XML


def matches(text: str, data: bytes) -> bool:
    return bool(results_of(text, data))


@cache
def results_of(text: str, data: bytes) -> tuple[bytes, ...]:
    """Canonical.  Of a path, which is XPath 1.0 in scenarios, on lxml's word; of SPARQL on that of
    pyoxigraph; of a FLWOR as a single broker has them; a malformed message has none."""
    media_type = media_type_of(data)
    if not data.endswith((b">", b".")):
        return ()
    if is_graph_profile(text):
        return tuple(map(canonical, expected_graph_results(text, data, media_type)))
    if media_type != XML:
        return ()
    if text.startswith("/"):
        found = etree.fromstring(data).getroottree().xpath(text)
        return (canonical(data),) if found else ()
    matcher = Matcher()
    matcher.add(text)
    matched = [match for match in matcher.match(data) if isinstance(match, ProfileMatch)]
    return tuple(canonical(result) for match in matched for result in match.results())


def canonical(result: bytes) -> bytes:
    """Of XML, solutions and graphs."""
    graph = canonical_graph_result(result)
    if graph is not None:
        return graph
    return bytes(etree.tostring(etree.fromstring(result), method="c14n"))


def octets(text: bytes | str) -> bytes:
    """The text of an archived message; the release before said it as a str."""
    return text.encode() if isinstance(text, str) else text


def archived_as(data: bytes) -> bytes:
    """The text of a document; of a graph, which is archived striped, what it says."""
    if media_type_of(data) != XML:
        return canonical(data)
    if GRAPH_NAMESPACE.encode() in data[:100]:
        return canonical(write_graph(parse_text(data), GraphSyntax.N_QUADS))
    return data


def random_topology(
    net: SimNetwork, brokers: int, formats: tuple[str, ...], transformations: tuple[str, ...]
) -> Topology:
    """A random connected network: a tree plus a few links."""
    random = net.random
    graph = nx.random_labeled_tree(brokers, seed=random.randrange(2**31))
    for _ in range(random.randrange(3)):
        a, b = random.randrange(brokers), random.randrange(brokers)
        if a != b:
            graph.add_edge(a, b)
    lines = ['name = "simulated"', "[registration]", 'id = "r1"', 'listen = "127.0.0.1:1"']
    for broker in graph.nodes:
        place = [round(random.uniform(-80, 80), 3), round(random.uniform(-170, 170), 3)]
        lines += ["[[broker]]", f'id = "B{broker}"', 'listen = "127.0.0.1:0"', f"place = {place}"]
    for a, b in graph.edges:
        lines += ["[[link]]", f'ends = ["B{a}", "B{b}"]', f"latency_ms = {random.randint(1, 50)}"]
        lines.append(f'format = "{random.choice(formats)}"')
        if len(transformations) > 1:
            lines.append(f'transformation = "{random.choice(transformations)}"')
    lines += [
        "[archive]",
        'directory = "archive"',
        "[limits]",
        "link_down_after_s = 4",
        f"max_disjuncts = {random.choice([1, 1, 2, 1_000])}",
    ]
    if len(transformations) > 1:
        lines.append(f"needs_max_bytes = {random.choice([1, 400, 100_000, 100_000])}")
    lines += ["[limits.link]", f"window_frames = {random.choice([1, 3, 64])}"]
    lines += ["[limits.training]", "samples = 16", "retrain_messages = 16"]
    return parse_topology("\n".join(lines), "simulated")
