"""Sources, subscribers and askers of the simulated network: the real link layer, no more.

They stand for well-behaved clients that do not die: what they were told they remember.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from overlay.link.events import Action, Event, TimePassed
from overlay.link.frame import Frame
from overlay.link.frames import (
    Contents,
    Deliveries,
    Detached,
    Hello,
    Missed,
    Publish,
    Refused,
    Request,
    Response,
    contents,
    cut,
)
from overlay.link.limits import LinkLimits
from overlay.link.link_layer import LinkLayer
from overlay.link.subscription import Subscription


class SourceClient:
    """Publishes to its root broker; the link layer sends again what was not acknowledged."""

    def __init__(self, source: str, root: str, instance: str, limits: LinkLimits) -> None:
        self.source = source
        self.root = root
        self.refused: list[Refused] = []
        self._to_publish: list[tuple[bytes, str]] = []
        self.links = LinkLayer(
            role="source", identity=source, instance=instance, formats=["text"], limits=limits
        )

    @property
    def is_connected(self) -> bool:
        return self.links.connected(f"broker/{self.root}")

    def follow(self, root: str) -> None:
        """It has another root broker now, which goes on with its numbers."""
        self.links.succeed(f"broker/{self.root}", f"broker/{root}")
        self.root = root

    def publish(self, data: bytes, wire_format: str = "text") -> None:
        """To be called between events; goes out with the next one."""
        self._to_publish.append((data, wire_format))

    def handle(self, event: Event, now: float) -> list[Action]:
        for arrival in self.links.handle(event, now):
            if isinstance(arrival.frame, Refused):
                self.refused.append(arrival.frame)
        for data, wire_format in self._to_publish:
            frame = Publish(source=self.source, format=wire_format, payload=data)
            self.links.send(f"broker/{self.root}", self.source, frame)
        self._to_publish.clear()
        return self.links.drain()


class SubscriberClient:
    """Counts what it gets; ``is_lost`` when its host broker has sent it away, or is away."""

    def __init__(self, profile: str, instance: str, limits: LinkLimits) -> None:
        self.profile = profile
        self.host = ""
        self.moves = 0
        self.got: Counter[tuple[str, int]] = Counter()  # (source, number) -> times
        self.results: dict[tuple[str, int], list[bytes]] = {}
        self.limits: dict[tuple[str, int], str] = {}  # what left it without more
        self.detached = ""
        self._must_attach = True
        self._subscription = Subscription()
        self._attachment = self._subscription.attach(profile)
        self._links = LinkLayer(
            role="subscriber", identity=profile, instance=instance, formats=[], limits=limits
        )

    @property
    def is_lost(self) -> bool:
        return bool(self.detached) or not self._links.connected(f"broker/{self.host}")

    def follow(self, host: str) -> None:
        """The results come from another host broker now, behind what has come from this one."""
        self._subscription.detach(self._attachment)
        self._attachment = self._subscription.attach(self.profile, self._attachment.last)
        self.moves += host != self.host
        self.host = host
        self.detached = ""
        self._must_attach = True

    def handle(self, event: Event, now: float) -> list[Action]:
        for arrival in self._links.handle(event, now):
            frame = arrival.frame
            if arrival.peer != f"broker/{self.host}":
                continue
            if isinstance(frame, Hello):
                self._must_attach = True
            elif isinstance(frame, Detached):
                if self._subscription.detached(frame) is not None:
                    self.detached = frame.code
            elif isinstance(frame, Missed):
                self._subscription.missed(frame)
                self._reply(arrival.connection, self._subscription.taken())
            elif isinstance(frame, Deliveries):
                found = contents(frame.lengths, frame.payload)
                for attachment, number in self._subscription.arrived(frame):
                    self.get(frame, number, found)
                    self._subscription.take(attachment, number)
                self._reply(arrival.connection, self._subscription.taken())
        connection = self._links.connection_of(f"broker/{self.host}")
        if isinstance(event, TimePassed) and self.detached:
            self.follow(self.host)  # as a user who asks again
        if connection is not None and self._must_attach:
            self._must_attach = False
            self._reply(connection, self._subscription.attachments())
        return self._links.drain()

    def get(self, frame: Deliveries, number: int, found: Contents) -> None:
        """The new deliveries, with their numbers."""
        self.got[frame.source, frame.number] += 1
        self.results[frame.source, frame.number] = found.results or cut(
            frame.lengths, frame.payload
        )
        if found.limit:
            self.limits[frame.source, frame.number] = found.limit

    def _reply(self, connection: int, frames: Iterable[Frame]) -> None:
        for frame in frames:
            self._links.reply(connection, frame)


@dataclass
class _Question:
    verb: str
    arguments: dict[str, object]
    answers: list[Response] = field(default_factory=list)


class AskingClient:
    """Asks until it is answered: repeats a request with its id on every new connection."""

    def __init__(self, identity: str, instance: str, limits: LinkLimits) -> None:
        self._questions: dict[str, _Question] = {}
        self._unsent: list[str] = []
        self.identity = identity
        self._connection: int | None = None
        self._links = LinkLayer(
            role="client", identity=identity, instance=instance, formats=[], limits=limits
        )

    def ask(self, verb: str, **arguments: object) -> str:
        """The id under which ``answer`` will have the response."""
        request = f"{self.identity}-{len(self._questions)}"
        self._questions[request] = _Question(verb, arguments)
        self._unsent.append(request)
        return request

    def answer(self, request: str) -> Response | None:
        answers = self._questions[request].answers
        return answers[0] if answers else None

    def handle(self, event: Event, now: float) -> list[Action]:
        for arrival in self._links.handle(event, now):
            frame = arrival.frame
            if frame is None and arrival.connection == self._connection:
                self._connection = None
            elif isinstance(frame, Hello):
                self._connection = arrival.connection
                self._unsent = [key for key, asked in self._questions.items() if not asked.answers]
            elif isinstance(frame, Response):
                self._questions[frame.request].answers.append(frame)
        if self._connection is not None:
            for request in self._unsent:
                asked = self._questions[request]
                frame_out = Request(request=request, verb=asked.verb, arguments=asked.arguments)
                self._links.reply(self._connection, frame_out)
            self._unsent.clear()
        return self._links.drain()
