"""Frames about the connection itself: unsequenced, gone with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from overlay.link.errors import ProtocolError
from overlay.link.frame import (
    OLDEST_VERSION,
    ROLES,
    Frame,
    on_the_wire,
)
from overlay.link.frame_fields import BODY, Bound, Detail, FlowNumber, Name, SequenceNumber
from overlay.link.limits import FRAME_BYTES_MAX_LEAST

TOKEN_BYTES_MAX = 4096  # of one of OpenID Connect


@on_the_wire
@dataclass(frozen=True, slots=True)
class Hello(Frame):
    """The first frame in each direction.

    ``peer`` is the sender's own id and ``instance`` tells two runs of it apart (for people; the
    protocol does not depend on it).  ``received`` says, for each channel on which the sender
    receives from this peer, the last sequence number that it has: (flow, key, sequence).
    ``token``: one, from a client that dials without a certificate.  ``epoch`` counts the processes
    that have been this peer, where a standby can be it; 0 where none can.  ``is_anew``: a
    registration service has lost its store, and by an operator's word its channels go on where the
    peer says that they are (rebuild_frames.py).

    The two speak the lower one of both ``version`` (the newest that the sender speaks; ``oldest``
    is the other end), and use those ``features`` that both have.
    """

    type: ClassVar[str] = "hello"

    version: int
    role: Name
    peer: Name
    instance: Name
    formats: Annotated[list[Name], Bound(64)]
    frame_bytes_max: int
    received: Annotated[list[tuple[FlowNumber, Name, SequenceNumber]], Bound(65_536), BODY]
    token: Annotated[str, Bound(TOKEN_BYTES_MAX)] = ""
    oldest: int = OLDEST_VERSION
    features: Annotated[list[Name], Bound(256)] = field(default_factory=list)
    epoch: int = 0
    is_anew: bool = False

    def check(self) -> None:
        if self.frame_bytes_max < FRAME_BYTES_MAX_LEAST:
            raise ProtocolError(
                "bad-field",
                f"frame_bytes_max is {self.frame_bytes_max}; at least {FRAME_BYTES_MAX_LEAST}",
            )
        if self.role not in ROLES:
            raise ProtocolError("bad-field", f"role {self.role!r}; expected one of {sorted(ROLES)}")
        if not self.peer or any(c in "|/" or not c.isprintable() for c in self.peer):
            raise ProtocolError(
                "bad-field", "a peer's id is printable text without '|' and '/', and not empty"
            )


@on_the_wire
@dataclass(frozen=True, slots=True)
class Ack(Frame):
    """Everything on channel (``about``, ``key``) up to ``sequence`` is taken, durably."""

    type: ClassVar[str] = "ack"

    about: FlowNumber
    key: Name
    sequence: SequenceNumber


@on_the_wire
@dataclass(frozen=True, slots=True)
class PassedOn(Frame):
    """What was taken on channel (``about``, ``key``) up to ``sequence`` has been acknowledged to
    the sender by all to whom it had to be passed on; ``partly``: but those that are away for long.
    """

    type: ClassVar[str] = "passed-on"

    about: FlowNumber
    key: Name
    sequence: SequenceNumber
    partly: bool = False


@on_the_wire
@dataclass(frozen=True, slots=True)
class Skipped(Frame):
    """Frames up to ``through`` on channel (``about``, ``key``) will not come; expect the next.

    This receiver has acknowledged them; one that starts anew without a store knows no more of it.
    """

    type: ClassVar[str] = "skipped"

    about: FlowNumber
    key: Name
    through: SequenceNumber


@on_the_wire
@dataclass(frozen=True, slots=True)
class Ping(Frame):
    """Are you there?"""

    type: ClassVar[str] = "ping"

    nonce: int


@on_the_wire
@dataclass(frozen=True, slots=True)
class Pong(Frame):
    """Yes; ``nonce`` is the ping's."""

    type: ClassVar[str] = "pong"

    nonce: int


@on_the_wire
@dataclass(frozen=True, slots=True)
class ErrorFrame(Frame):
    """What was wrong (``errors.ERROR_CODES``); after a fatal one the sender closes."""

    type: ClassVar[str] = "error"

    code: Name
    detail: Detail
    fatal: bool


@on_the_wire
@dataclass(frozen=True, slots=True)
class Request(Frame):
    """A question; ``request`` is chosen by the asker and comes back in the Response."""

    type: ClassVar[str] = "request"

    request: Name
    verb: Name
    arguments: Annotated[Mapping[str, object], BODY]


@on_the_wire
@dataclass(frozen=True, slots=True)
class Response(Frame):
    """The answer: ``result`` is the result, or {"code", "message", ...} when not ``ok``."""

    type: ClassVar[str] = "response"

    request: Name
    ok: bool
    result: Annotated[Mapping[str, object], BODY]


@on_the_wire
@dataclass(frozen=True, slots=True)
class Observed(Frame):
    """What an observer asked to see as it happens; best effort, may be dropped."""

    type: ClassVar[str] = "observed"

    events: Annotated[Sequence[Mapping[str, object]], Bound(4_096), BODY]


@on_the_wire
@dataclass(frozen=True, slots=True)
class Relayed(Frame):
    """A piece of a connection between two brokers whose link is gone, by way of the registration
    service: ``broker`` is the other end, ``number`` counts the pieces of a ``tunnel`` from 1; a
    ``closing`` piece is the last."""

    type: ClassVar[str] = "relayed"

    broker: Name
    tunnel: int
    number: int
    closing: bool
    payload: bytes
