"""A core with test peers beside it: real frames, no network.

``Beside`` joins one core under test and any number of ``Peer`` objects; every frame a peer sends
is handled at once, and what the core sends back is kept at the peer it was for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Protocol, TypeVar

from formats import WireFormat
from formats.schema_questions import answer
from overlay.link.events import (
    Action,
    ArchiveMessage,
    AskDesk,
    AskEvaluation,
    AskSchemaWorker,
    BatchHandled,
    CallAgain,
    CallAtEnd,
    CalledAgain,
    CallLater,
    CloseConnection,
    ConnectionLost,
    ConnectionOpened,
    DataReceived,
    Delete,
    Evaluated,
    Event,
    Put,
    ReadArchive,
    ReadRows,
    RowsRead,
    SchemaAnswered,
    SendData,
    TimePassed,
    singly,
)
from overlay.link.frame import Frame
from overlay.link.frames import (
    Deliveries,
    Delivery,
    Detached,
    ErrorFrame,
    Hello,
    Missed,
    Request,
    Response,
)
from overlay.link.limits import DEFAULT_LINK_LIMITS, LinkLimits
from overlay.link.link_layer import LinkLayer
from overlay.link.principal import Principal
from overlay.link.subscription import Subscription
from yfilter.late_evaluation import evaluate_profile

Got = TypeVar("Got")


EVERY_FORMAT = tuple(wire_format.value for wire_format in WireFormat)


class Core(Protocol):
    def handle(self, event: Event, now: float) -> list[Action]: ...


class Peer:
    """One peer of the core under test, with the real link layer on its side."""

    def __init__(
        self,
        beside: Beside,
        role: str,
        name: str,
        limits: LinkLimits,
        formats: Sequence[str],
        principal: Principal | None = None,
        token: str = "",
        publisher: str = "",
    ) -> None:
        """``principal``: who the core finds at the other end of its connection; ``token`` and
        ``publisher``: what it says in its hello."""
        self.principal = principal
        self.name = f"{role}/{name}"
        self.number = 0  # of its connection, at the core
        self.got: list[Frame | Delivery] = []
        self.closed = False
        self._beside = beside
        self.withhold = False
        self.links = LinkLayer(
            role=role,
            identity=name,
            instance="test",
            formats=formats,
            limits=limits,
            may_acknowledge=lambda peer, flow, key: not self.withhold,
            notices=True,
            token=lambda: token,
            publisher=publisher,
        )

    def connect(self) -> Peer:
        self.number = next(self._beside.numbers)
        self.closed = False
        self._beside.peers[self.number] = self
        self._beside.tell(ConnectionOpened(self.number, principal=self.principal))
        self._take(ConnectionOpened(1, self._beside.name))
        return self

    def disconnect(self) -> None:
        del self._beside.peers[self.number]
        self._take(ConnectionLost(1))
        self._beside.tell(ConnectionLost(self.number))

    def read_only(self, *formats: str) -> None:
        """Come back as a process that reads these formats."""
        self.disconnect()
        self.links._formats = list(formats)
        self.connect()

    def send(self, key: str, frame: Frame) -> None:
        """A sequenced frame to the core."""
        self.links.send(self._beside.name, key, frame)
        self._flush()

    def reply(self, frame: Frame) -> None:
        """An unsequenced frame to the core."""
        self.links.reply(1, frame)
        self._flush()

    def ask(self, verb: str, **arguments: object) -> Response | None:
        """A request; the answer if there is one already."""
        request = f"q{next(self._beside.numbers)}"
        self.links.reply(1, Request(request=request, verb=verb, arguments=arguments))
        self._flush()
        return self.answer(request)

    def answer(self, request: str) -> Response | None:
        return next((r for r in self.all(Response) if r.request == request), None)

    def all(self, kind: type[Got]) -> list[Got]:
        return [frame for frame in self.got if isinstance(frame, kind)]

    def take(self, kind: type[Got]) -> list[Got]:
        """All frames of a kind that came since the last take."""
        found = self.all(kind)
        self.got = [frame for frame in self.got if not isinstance(frame, kind)]
        return found

    @property
    def error(self) -> str:
        """The code of the last error frame."""
        errors = self.all(ErrorFrame)
        return errors[-1].code if errors else ""

    def release(self) -> None:
        """Acknowledge what was withheld."""
        self.withhold = False
        self._take(TimePassed())

    def receive(self, data: bytes) -> None:
        self._take(DataReceived(1, data))

    def _take(self, event: Event) -> None:
        for arrival in self.links.handle(event, 0.0):
            if arrival.frame is not None:
                self._get(arrival.frame)
        self._flush()

    def _get(self, frame: Frame) -> None:
        self.got.append(frame)

    def _flush(self) -> None:
        for action in self.links.drain():
            if isinstance(action, SendData) and not self.closed:
                self._beside.tell(DataReceived(self.number, action.data))


class SubscriberPeer(Peer):
    """Takes the results of one profile, ``received`` of them elsewhere, and of those that it
    takes ``also``; each as a Delivery."""

    def __init__(
        self,
        beside: Beside,
        profile: str,
        limits: LinkLimits,
        received: int = 0,
        name: str = "",
        mode: int = 0,
        also: Iterable[str] = (),
    ) -> None:
        super().__init__(beside, "subscriber", name or profile, limits, ())
        self._subscription = Subscription()
        self.attachment = self._subscription.attach(profile, received, mode)
        for other in also:
            self._subscription.attach(other, 0, mode)

    @property
    def error(self) -> str:
        """Why nothing comes any more."""
        detached = self.all(Detached)
        return detached[-1].code if detached else super().error

    def _get(self, frame: Frame) -> None:
        super()._get(frame)
        if isinstance(frame, Hello):
            self._say(self._subscription.attachments())
        elif isinstance(frame, Missed):
            self._subscription.missed(frame)
        elif isinstance(frame, Deliveries):
            for attachment, number in self._subscription.arrived(frame):
                self.got.append(
                    Delivery(
                        attachment.profile,
                        frame.source,
                        frame.number,
                        frame.lengths,
                        frame.payload,
                    )
                )
                if not self.withhold:
                    self._subscription.take(attachment, number)
            if not self.withhold:
                self._say(self._subscription.taken())

    def acknowledge(self, number: int) -> None:
        """What was withheld, in a profile that is shared."""
        self._subscription.take(self.attachment, number)
        self._say(self._subscription.taken())
        self._flush()

    def _say(self, frames: Iterable[Frame]) -> None:
        for frame in frames:
            self.links.reply(1, frame)


class Beside:
    """The core under test and its peers; ``rows`` is its disk."""

    def __init__(self, name: str, core: Core, limits: LinkLimits = DEFAULT_LINK_LIMITS) -> None:
        self.name = name
        self.core = core
        self.rows: dict[tuple[str, str], bytes] = {}
        self.numbers = count(1)
        self.peers: dict[int, Peer] = {}
        self.archived: list[ArchiveMessage] = []
        self.archive_asked: list[ReadArchive] = []
        self._limits = limits
        self.now = 0.0
        self.processor: Callable[[], float] = lambda: 0.0  # of the process that evaluates
        self.evaluations = 0  # that it was asked for
        self.evaluations_asked: list[AskEvaluation] | None = None  # a list: likewise
        self.desk_asked: list[AskDesk] = []
        self.calls_later: list[float] = []  # the seconds that it asked for
        self.schemas_asked: list[AskSchemaWorker] | None = None  # a list: they are not answered
        self._waiting: list[Event] = []
        self._busy = False

    def peer(
        self,
        role: str,
        name: str,
        formats: Sequence[str] = EVERY_FORMAT,
        principal: str = "",
        token: str = "",
        publisher: str = "",
    ) -> Peer:
        """``principal``: "user/ann"; none without TLS."""
        who = Principal.parse(principal) if principal else None
        return Peer(self, role, name, self._limits, formats, who, token, publisher).connect()

    def subscriber(
        self,
        profile: str,
        received: int = 0,
        name: str = "",
        mode: int = 0,
        principal: str = "",
        also: Iterable[str] = (),
    ) -> SubscriberPeer:
        """``also``: profiles that it takes over the same connection."""
        peer = SubscriberPeer(self, profile, self._limits, received, name, mode, also)
        peer.principal = Principal.parse(principal) if principal else None
        peer.connect()
        return peer

    def stored(self) -> list[tuple[str, str, bytes]]:
        return [(space, key, value) for (space, key), value in self.rows.items()]

    def tell(self, event: Event) -> None:
        """Handle an event, and all that follows from it, in order."""
        self._waiting.append(event)
        if self._busy:
            return
        self._busy = True
        while self._waiting:
            self._carry_out(self.core.handle(self._waiting.pop(0), self.now))
        self._busy = False

    def _carry_out(self, actions: list[Action]) -> None:
        actions = singly(actions)
        for action in actions:
            if isinstance(action, Put):
                self.rows[action.space, action.key] = action.value
            elif isinstance(action, Delete):
                self.rows.pop((action.space, action.key), None)
        for action in actions:
            if isinstance(action, SendData) and action.connection in self.peers:
                self.peers[action.connection].receive(action.data)
            elif isinstance(action, CloseConnection) and action.connection in self.peers:
                self.peers.pop(action.connection).closed = True
            elif isinstance(action, ArchiveMessage):
                self.archived.append(action)
            elif isinstance(action, AskDesk):
                self.desk_asked.append(action)
            elif isinstance(action, ReadArchive):
                self.archive_asked.append(action)
            elif isinstance(action, CallLater):
                self.calls_later.append(action.seconds)
        for action in actions:
            if isinstance(action, AskSchemaWorker) and self.schemas_asked is not None:
                self.schemas_asked.append(action)
            elif isinstance(action, AskSchemaWorker):
                self._waiting.append(SchemaAnswered(action.key, answer(action.question)))
            elif isinstance(action, AskEvaluation) and self.evaluations_asked is not None:
                self.evaluations_asked.append(action)
            elif isinstance(action, AskEvaluation):
                self.evaluations += 1
                found = evaluate_profile(action.question, self.processor)
                self._waiting.append(Evaluated(action.key, found))
        for action in actions:
            if isinstance(action, ReadRows):
                self._waiting.insert(0, rows_read(action, self.rows))
        if any(isinstance(action, CallAgain) for action in actions):
            self._waiting.insert(0, CalledAgain())
        if any(isinstance(action, CallAtEnd) for action in actions):
            self._waiting.insert(0, BatchHandled())


def rows_read(asked: ReadRows, disk: Mapping[tuple[str, str], bytes]) -> RowsRead:
    """What a disk has of what was asked for."""
    found = sorted(
        (key, value)
        for (space, key), value in disk.items()
        if space == asked.space and asked.first <= key <= asked.last
    )
    return RowsRead(asked.space, asked.first, tuple(found), asked.last)
