"""Link layers driven by hand: what one sends, decoded, and carried to the other."""

from __future__ import annotations

from collections.abc import Callable

from overlay.link.events import (
    Action,
    CloseConnection,
    ConnectionLost,
    ConnectionOpened,
    DataReceived,
    Event,
    Flow,
    SendData,
    singly,
)
from overlay.link.frame import PROTOCOL_VERSION, Frame
from overlay.link.frame_codec import LENGTH_BYTES, decode, encode
from overlay.link.frames import Hello
from overlay.link.limits import LinkLimits
from overlay.link.link_layer import Arrival, LinkLayer, always
from overlay.link.principal import Principal
from overlay.link.slices import never

LIMITS = LinkLimits(keepalive_seconds=10, hello_seconds=5)


def make_links(
    role: str = "broker",
    identity: str = "B1",
    *,
    limits: LinkLimits = LIMITS,
    may_acknowledge: Callable[[str, Flow, str], bool] = always,
    is_over: Callable[[], bool] = never,
    epoch: int = 0,
) -> LinkLayer:
    return LinkLayer(
        role=role,
        identity=identity,
        instance="test",
        formats=["xml"],
        limits=limits,
        may_acknowledge=may_acknowledge,
        is_over=is_over,
        epoch=epoch,
    )


def hello(
    role: str = "broker",
    peer: str = "B2",
    received: list[tuple[int, str, int]] | None = None,
    frame_bytes_max: int = 1 << 24,
) -> Hello:
    return Hello(
        PROTOCOL_VERSION, role, peer, "other", ["binary", "xml"], frame_bytes_max, received or []
    )


class Hand:
    """Plays the peer of one link layer over numbered connections."""

    def __init__(self, links: LinkLayer) -> None:
        self.links = links
        self.now = 0.0
        self.arrivals: list[Arrival] = []
        self.actions: list[Action] = []

    def event(self, event: Event) -> list[Action]:
        self.arrivals = list(self.links.handle(event, self.now))
        return self.drain()

    def drain(self) -> list[Action]:
        self.actions = self.links.drain()
        return self.actions

    def open(self, connection: int = 1, dialled: str = "") -> list[Frame]:
        return sent(self.event(ConnectionOpened(connection, dialled)))

    def open_as(self, principal: Principal) -> list[Frame]:
        """Connection 1, with somebody at its other end."""
        return sent(self.event(ConnectionOpened(1, "", principal)))

    def receive(
        self, frame: Frame, key: str = "", sequence: int = 0, connection: int = 1
    ) -> list[Frame]:
        """Give the link layer a frame; what it sends in answer."""
        return self.bytes(encode(frame, key, sequence), connection)

    def bytes(self, data: bytes, connection: int = 1) -> list[Frame]:
        return sent(self.event(DataReceived(connection, data)))

    def meet(
        self,
        role: str = "broker",
        peer: str = "B2",
        received: list[tuple[int, str, int]] | None = None,
        connection: int = 1,
    ) -> list[Frame]:
        """A connection from a peer, hellos exchanged; what follows the hello."""
        self.open(connection)
        frames = self.receive(hello(role, peer, received), connection=connection)
        assert isinstance(frames[0], Hello)
        return frames[1:]

    def lose(self, connection: int = 1) -> list[Action]:
        return self.event(ConnectionLost(connection))


def sent(actions: list[Action]) -> list[Frame]:
    """The frames among actions, in the order in which they were asked for."""
    return [
        decode(action.data[LENGTH_BYTES:]).frame
        for action in singly(actions)
        if isinstance(action, SendData)
    ]


def closed(actions: list[Action]) -> list[int]:
    return [action.connection for action in actions if isinstance(action, CloseConnection)]
