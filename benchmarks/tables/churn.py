"""Profiles change all the time while messages flow: what is missed, what is false, and how long a
change takes until it is live, in a network of broker cores in simulated time.

A delivery is judged by predicates of this file alone.  A version of a profile must be given each
message that it matches and that left its source after the version was live, unless the next was
asked for while the message may have been on its way; it may be given those that left before the
change to the next one was answered.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from statistics import median, quantiles
from typing import TypeAlias

from benchmarks.benchmark import WrongAnswers
from benchmarks.placement.network import make_message, make_profile, make_topology, message_xml
from benchmarks.tables.timed_network import TimedNetwork
from onyx.broker.broker_core import BrokerCore
from onyx.broker.deliveries.delivery_log import DELIVERIES, unpack_ascending
from onyx.broker.deliveries.mailboxes import CHANGES
from overlay.link.events import Action, Event, Put
from overlay.link.frames import (
    PlaceProfile,
    Publish,
    Request,
    Response,
    SourceAnnounced,
)
from overlay.link.link_layer import LinkLayer
from overlay.topology import Topology
from registration.catalog import REGISTRATION_KEY

_ON_ITS_WAY_SECONDS = 2.0  # that a message may take
_NEAR_SECONDS = 0.0002  # between a client and its broker
_URGENCY = re.compile(r"@urgency <= (\d+)")
Values: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class ChurnResult:
    """``rate`` changes a second that were answered; ``live_ms`` median, 99th percentile;
    ``busiest``: the share of the time that the busiest broker was at work."""

    changes: int
    rate: float
    live_ms: tuple[float, float]
    messages: int
    delivered: int
    missed: int
    false: int
    busiest: float
    cpu_ms_a_change: float


@dataclass(slots=True)
class _Version:
    text: str
    asked: float
    live: float = float("inf")
    next_asked: float = float("inf")
    next_live: float = float("inf")


@dataclass(slots=True)
class _Hosted:
    host: str
    versions: list[_Version] = field(default_factory=list)


class Churn:
    """A network of ``brokers`` with ``profiles``; ``run`` changes them at a rate."""

    def __init__(self, brokers: int, sources: int, profiles: int, seed: int) -> None:
        self._random = Random(seed)
        self._topology = make_topology(brokers, self._random)
        self._net = TimedNetwork(self._note_row)
        self._delivered: Counter[tuple[str, int, str, int]] = Counter()  # by broker and mailbox
        self._mailboxes: dict[tuple[str, int], str] = {}  # (broker, mailbox) -> profile
        self._published: dict[tuple[str, int], tuple[float, Values]] = {}
        self._profiles: dict[str, _Hosted] = {}
        self._asked: dict[str, str] = {}  # request -> profile
        self._took: list[float] = []  # seconds from asking for a change to its being live
        for broker in self._topology.broker_ids:
            self._net.add(f"broker/{broker}", BrokerCore(self._topology, broker, "benchmark"))
        for link in self._topology.links:
            one, other = (f"broker/{end}" for end in link.ends)
            self._net.connect(one, other, link.latency_ms / 1000)
        self._registration = self._client("registration", self._topology.registration[0].id)
        for broker in self._topology.broker_ids:
            self._net.connect(f"broker/{broker}", self._registration.peer, _NEAR_SECONDS)
        self._askers = {
            broker: self._client("client", f"at-{broker}", f"broker/{broker}")
            for broker in self._topology.broker_ids
        }
        self._net.run(5.0)
        roots = self._random.sample(self._topology.broker_ids, sources)
        self._sources = [self._open(f"s{place}", root) for place, root in enumerate(roots)]
        self._place(profiles)

    def run(self, changes_a_second: int, messages_a_second: int, seconds: float) -> ChurnResult:
        """Change profiles and publish messages, evenly; then wait for what is under way."""
        begun, busy_before = self._net.now, dict(self._net.busy_seconds)
        changes = int(changes_a_second * seconds)
        order = list(self._profiles)
        self._random.shuffle(order)
        for number in range(changes):
            profile = order[number % len(order)]
            self._net.at(begun + number / changes_a_second, partial(self._change, profile))
        for number in range(int(messages_a_second * seconds)):
            self._net.at(begun + number / messages_a_second, self._publish)
        self._net.run(begun + seconds)
        answered = len(self._took)
        self._net.run(begun + seconds + 60)
        live = [1000 * took for took in self._took]
        busy = {
            peer: after - busy_before.get(peer, 0.0)
            for peer, after in self._net.busy_seconds.items()
            if peer.startswith("broker/")
        }
        missed, false = self._judge()
        return ChurnResult(
            changes=len(live),
            rate=answered / seconds,
            live_ms=(median(live), quantiles(live, n=100)[98]),
            messages=len(self._published),
            delivered=self._delivered.total(),
            missed=missed,
            false=false,
            busiest=max(busy.values()) / seconds,
            cpu_ms_a_change=1000 * sum(busy.values()) / changes,
        )

    def _client(self, role: str, name: str, broker: str = "") -> _Client:
        client = _Client(role, name, self._topology, self._note_answer)
        self._net.add(client.peer, client)
        if broker:
            client.connection = self._net.connect(client.peer, broker, _NEAR_SECONDS)
        return client

    def _open(self, source: str, root: str) -> _Client:
        frame = SourceAnnounced(
            source=source, name=source, root=root, location=None, rate=1.0, size=1,
            schema_name="", schema_kind="", validation="off", compression=[], payload=b"",
        )  # fmt: skip
        self._registration.links.send(f"broker/{root}", REGISTRATION_KEY, frame)
        self._net.give(self._registration.peer, self._registration.links.drain())
        self._net.run(self._net.now + 5)
        client = self._client("source", source, f"broker/{root}")
        client.root = root
        self._net.run(self._net.now + 5)
        return client

    def _place(self, number: int) -> None:
        for each in range(number):
            host = self._random.choice(self._topology.broker_ids)
            profile, text = f"p{each}", make_profile(self._random)
            self._profiles[profile] = _Hosted(host, [_Version(text, self._net.now)])
            frame = PlaceProfile(profile=profile, user="", text=text, version=1, request=profile)
            self._registration.links.send(f"broker/{host}", REGISTRATION_KEY, frame)
        self._net.give(self._registration.peer, self._registration.links.drain())
        self._net.run(self._net.now + 60)
        for hosted in self._profiles.values():
            hosted.versions[0].live = self._net.now

    def _change(self, profile: str) -> None:
        """Ask for another text; not while the last change is still under way."""
        hosted = self._profiles[profile]
        if hosted.versions[-1].live == float("inf"):
            return
        hosted.versions[-1].next_asked = self._net.now
        hosted.versions.append(_Version(make_profile(self._random), self._net.now))
        client = self._askers[hosted.host]
        request = f"r{len(self._asked)}"
        self._asked[request] = profile
        arguments = {"profile": profile, "text": hosted.versions[-1].text, "wait": True}
        client.links.reply(client.connection, Request(request, "profile.update", arguments))
        self._net.give(client.peer, client.links.drain())

    def _publish(self) -> None:
        source = self._random.choice(self._sources)
        values = make_message(self._random)
        frame = Publish(source=source.name, format="text", payload=message_xml(values))
        number = source.links.send(f"broker/{source.root}", source.name, frame)
        self._published[source.name, number] = self._net.now, values
        self._net.give(source.peer, source.links.drain())

    def _note_answer(self, response: Response, moment: float) -> None:
        if not response.ok or not response.result.get("live"):
            raise WrongAnswers(f"a change was answered with {response.result}")
        *_, before, new = self._profiles[self._asked[response.request]].versions
        new.live = before.next_live = moment
        self._took.append(moment - new.asked)

    def _note_row(self, peer: str, row: Put, moment: float) -> None:
        """What is stored for a user is what is delivered."""
        if row.space == DELIVERIES.space:
            stored = DELIVERIES.read(row.key, row.value)
            for box in unpack_ascending(stored.boxes):
                self._delivered[peer, box, stored.source, stored.number] += 1
        elif row.space == CHANGES.space:
            for profile, state in CHANGES.read(row.key, row.value).states:
                if state is not None:
                    self._mailboxes[peer, state.log_index] = profile

    def _judge(self) -> tuple[int, int]:
        """(missed, false): deliveries that had to be made and were not, and the other way round;
        one that was made twice is false."""
        missed = false = 0
        given: Counter[tuple[str, str, int]] = Counter()
        for (peer, box, source, number), times in self._delivered.items():
            given[self._mailboxes[peer, box], source, number] += times
        for profile, hosted in self._profiles.items():
            for (source, number), (left, values) in self._published.items():
                times = given[profile, source, number]
                holding = [one for one in hosted.versions if _matches(one.text, values)]
                must = any(
                    one.live <= left < one.next_asked - _ON_ITS_WAY_SECONDS for one in holding
                )
                may = any(left <= one.next_live for one in holding)
                missed += must and not times
                false += times > 1 or (times > 0 and not may)
        return missed, false


def _matches(text: str, values: Values) -> bool:
    subject, area, urgency = values
    if f'"s{subject}"' not in text:
        return False
    bound = _URGENCY.search(text)
    return urgency <= int(bound[1]) if bound else f'"a{area}"' in text


class _Client:
    """One end of the link layer, for whoever is no broker."""

    def __init__(
        self,
        role: str,
        name: str,
        topology: Topology,
        answered: Callable[[Response, float], None],
    ) -> None:
        self.name = name
        self.peer = f"{role}/{name}"
        self.root = ""  # of a source
        self.connection = 0
        self._answered = answered
        self.links = LinkLayer(
            role=role,
            identity=name,
            instance="benchmark",
            formats=["text"] if role == "source" else [],
            limits=topology.limits.link,
        )

    def handle(self, event: Event, now: float) -> list[Action]:
        for arrival in self.links.handle(event, now):
            if isinstance(arrival.frame, Response):
                self._answered(arrival.frame, now)
        return self.links.drain()
