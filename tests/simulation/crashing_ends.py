"""Publishers and subscribers that die as well: what they have on disk is all that a next run knows.

A publisher has its messages on disk, and of some of them that they are settled; it publishes the
others again, with their keys, or goes on behind the number that its root broker has.  A subscriber
has on disk what it did with deliveries, and in the same transaction its position.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

from onyx.client_values import Outcome
from overlay.link.client_connection import Outcomes
from overlay.link.events import Action, Event, Flow
from overlay.link.frame import Frame
from overlay.link.frames import (
    AcceptedBefore,
    Deliveries,
    Detached,
    Hello,
    Missed,
    Numbered,
    Publish,
    PublishOnce,
    Refused,
    cut,
)
from overlay.link.limits import LinkLimits
from overlay.link.link_layer import LinkLayer
from overlay.link.message_headers import digest
from overlay.link.subscription import Subscription
from tests.simulation.scenario import Scenario

Key: TypeAlias = str


@dataclass
class PublisherDisk:
    """``name``: of the publisher; "~" for a new one in each run.  ``settled``: of those messages
    whose outcome was written before a crash; ``told``: all that was ever told of a message, which
    is for the test to look at."""

    random: Random
    with_keys: bool
    source: str
    root: str
    name: str = ""
    messages: list[tuple[Key, bytes]] = field(default_factory=list)
    settled: dict[Key, Outcome] = field(default_factory=dict)
    told: dict[Key, set[Outcome]] = field(default_factory=dict)
    again: int = 0  # times that a message was published again and known

    @property
    def peer(self) -> str:
        return f"source/{self.source}{self.name and '/'}{self.name}"


class CrashingPublisher:
    """One run of it."""

    def __init__(self, disk: PublisherDisk, instance: str, limits: LinkLimits) -> None:
        self._disk = disk
        self._source = disk.source
        self._root = f"broker/{disk.root}"
        self._open: dict[int, Key] = {}
        self._outcomes = Outcomes(1_000)
        self._next: int | None = None  # place of the first message that was not sent in this run
        self._links = LinkLayer(
            role="source",
            identity=disk.source,
            instance=instance,
            formats=["text"],
            limits=limits,
            publisher=f"~{instance}".replace("/", "-") if disk.name == "~" else disk.name,
        )

    def handle(self, event: Event, now: float) -> list[Action]:
        for arrival in self._links.handle(event, now):
            if isinstance(arrival.frame, Refused | AcceptedBefore | Numbered):
                self._outcomes.tell(arrival.frame)
        if self._next is None and self._links.connected(self._root):
            channel = self._links.journal(self._root).sending.get((Flow.MESSAGE, self._source))
            floor = 0 if channel is None else channel.floor
            self._next = 0 if self._disk.with_keys else floor
        if self._next is not None:
            for key, data in self._disk.messages[self._next :]:
                if not (self._disk.with_keys and key in self._disk.settled):
                    self._publish(key, data)
            self._next = len(self._disk.messages)
        self._settle()
        return self._links.drain()

    def _publish(self, key: Key, data: bytes) -> None:
        frame = Publish(self._source, "text", data)
        if self._disk.with_keys:
            frame = PublishOnce(self._source, "text", data, digest(key))
        number = self._links.send(self._root, self._source, frame)
        self._open[number] = key
        self._outcomes.open.append(number)

    def _settle(self) -> None:
        through = self._links.acknowledged(self._root, Flow.MESSAGE, self._source)
        if self._open:
            self._links.numbered = self._outcomes.settle(through)
        for sent in [number for number in self._open if number <= through]:
            key, (number, said) = self._open.pop(sent), self._outcomes.take(sent)
            outcome = Outcome(number, said is None)
            if isinstance(said, AcceptedBefore):
                outcome = Outcome(said.first, True)
                self._disk.again += 1
            self._disk.told.setdefault(key, set()).add(outcome)
            if self._disk.random.random() < 0.7:
                self._disk.settled[key] = outcome


@dataclass
class SubscriberDisk:
    """``work``: how often something was done with a result; ``numbers`` of the messages."""

    position: int = 0
    work: Counter[bytes] = field(default_factory=Counter)
    numbers: dict[bytes, int] = field(default_factory=dict)


class DyingSubscriber:
    """One run of who knows only what is on their disk."""

    def __init__(
        self, position: int, profile: str, host: str, instance: str, limits: LinkLimits
    ) -> None:
        self._host = f"broker/{host}"
        self._subscription = Subscription()
        self._subscription.attach(profile, position)
        self._links = LinkLayer(
            role="subscriber", identity=profile, instance=instance, formats=[], limits=limits
        )

    def handle(self, event: Event, now: float) -> list[Action]:
        replies: list[Frame] = []
        for arrival in self._links.handle(event, now):
            frame = arrival.frame
            if isinstance(frame, Hello):
                replies += self._subscription.attachments()
            elif isinstance(frame, Detached):
                replies += self.detached(frame)
            elif isinstance(frame, Missed):
                self.missed(frame, self._subscription.missed(frame))
            elif isinstance(frame, Deliveries):
                for attachment, number in self._subscription.arrived(frame):
                    self.work(frame, number)
                    self._subscription.take(attachment, number)
        replies += self._subscription.taken()
        connection = self._links.connection_of(self._host)
        for reply in replies if connection is not None else ():
            assert connection is not None
            self._links.reply(connection, reply)
        return self._links.drain()

    def work(self, frame: Deliveries, number: int) -> None:
        """What is done with a delivery, and its position, in one transaction."""
        raise NotImplementedError

    def missed(self, frame: Missed, lost: int) -> None:
        """So many are missed for good."""

    def detached(self, frame: Detached) -> Iterable[Frame]:
        """What they say when they are sent away."""
        return ()


class CrashingSubscriber(DyingSubscriber):
    def __init__(
        self, disk: SubscriberDisk, profile: str, host: str, instance: str, limits: LinkLimits
    ) -> None:
        super().__init__(disk.position, profile, host, instance, limits)
        self._disk = disk

    def work(self, frame: Deliveries, number: int) -> None:
        self._disk.position = number
        for result in cut(frame.lengths, frame.payload):
            self._disk.work[result] += 1
            self._disk.numbers[result] = frame.number


class CrashingEnds(Scenario):
    """A network, publishers and subscribers, all of which die."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.publishers: list[PublisherDisk] = []
        self.shared: set[Key] = set()  # of messages that two publishers have
        self.subscribers: list[SubscriberDisk] = []

    @property
    def ends(self) -> list[str]:
        return [peer for peer in self.net.nodes if peer.startswith(("source/", "subscriber/"))]

    def add_publisher(
        self, *, with_keys: bool, beside: PublisherDisk | None = None, name: str = ""
    ) -> PublisherDisk:
        """Of a new source, or of the source of another publisher."""
        if beside is None:
            result = self.ask(self.registrar, "source.register", location=[0, 0])
            of = str(result["source"]), str(result["root"])
        else:
            of = beside.source, beside.root
        disk = PublisherDisk(self.random, with_keys, *of, name)
        self.net.add(
            disk.peer,
            lambda rows, instance: CrashingPublisher(disk, instance, self.limits),
            [f"broker/{disk.root}"],
        )
        self.publishers.append(disk)
        return disk

    def add_subscriber(self) -> SubscriberDisk:
        """Of all messages."""
        location = [self.random.uniform(-90, 90), self.random.uniform(-180, 180)]
        result = self.ask(self.registrar, "profile.add", text="/m", location=location, wait=True)
        profile, host = str(result["profile"]), str(result["host"])
        disk = SubscriberDisk()
        self.subscribers.append(disk)
        self.net.add(
            f"subscriber/{profile}",
            lambda rows, instance: CrashingSubscriber(disk, profile, host, instance, self.limits),
            [f"broker/{host}"],
        )
        return disk

    def write(self, publisher: PublisherDisk) -> None:
        """One more message, with a key of its own; one in ten is cut off and refused.  One in three
        another publisher of the source has as well, with the same key."""
        key = f"{self.publishers.index(publisher)}/{len(publisher.messages)}"
        data = f'<m key="{key}"/>' if self.random.random() > 0.1 else f'<m key="{key}">'
        publisher.messages.append((key, data.encode()))
        for other in self.publishers:
            is_beside = other.source == publisher.source and other is not publisher
            if is_beside and other.with_keys and publisher.with_keys and self.random.random() < 0.3:
                other.messages.append((key, data.encode()))
                self.shared.add(key)

    def is_done(self) -> bool:
        """Whether all was settled, and has come."""
        accepted = [data for data in self._messages() if data.endswith(b"/>")]
        return all(
            key in publisher.told
            for publisher in self.publishers
            if publisher.with_keys  # else a run goes on behind what the one before was not told
            for key, _ in publisher.messages
        ) and all(data in disk.work for disk in self.subscribers for data in accepted)

    def faults(self) -> list[str]:
        """What was done twice, or never, and what publishers were told that is not so."""
        found = []
        for disk in self.subscribers:
            for data in self._messages():
                if disk.work[data] != data.endswith(b"/>"):
                    found.append(f"{data!r} was worked on {disk.work[data]} times")
        for publisher in self.publishers:
            for disk in self.subscribers:
                own = [data for key, data in publisher.messages if key not in self.shared]
                came = [disk.numbers[data] for data in own if data in disk.numbers]
                if came != sorted(came):
                    found.append(f"messages of {publisher.name!r} came as {came}")
            for key, data in publisher.messages:
                is_good = data.endswith(b"/>")
                numbers = {disk.numbers.get(data) for disk in self.subscribers}
                for told in publisher.told.get(key, ()):
                    if told.accepted != is_good or (is_good and numbers != {told.number}):
                        found.append(f"{key} is told {told}, it came as {numbers}")
        return found

    def _messages(self) -> list[bytes]:
        return [data for disk in self.publishers for _, data in disk.messages]
