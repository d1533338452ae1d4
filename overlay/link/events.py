"""What a core is told and what it asks for: the whole boundary between cores and I/O.

A core (broker, registration service) is a plain object with ``handle(event, now) -> actions``.
A shell (Trio in production, the simulator in tests) feeds it events and carries the actions out.

The one rule that makes a broker's word good: **all Put and Delete actions of one call are
committed to the store, together, before any SendData of the same call leaves**.  A crash
therefore loses either the whole call (nobody was told) or nothing.  One kind of frame is excepted,
a message that another process keeps until this one has committed it: early_leaving.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from formats.schema_questions import SchemaAnswer, SchemaQuestion
from overlay.link.principal import Principal
from overlay.nodes import Addresses

if TYPE_CHECKING:
    from overlay.topology import Topology
    from yfilter.late_questions import EvaluateProfile, ProfileEvaluated


class Flow(IntEnum):
    """The four flows on one connection (section 5 of the paper), most urgent first."""

    CONTROL = 0
    CATALOG = 1
    QUERY = 2
    MESSAGE = 3


@dataclass(frozen=True, slots=True)
class ConnectionOpened:
    """A transport connection exists; ``peer`` is who we dialled, "" for one we accepted, and
    ``principal`` who is at the other end, None where the node runs without TLS; ``roles`` are those
    whose hello may be said where it came in, none: any."""

    connection: int
    peer: str = ""
    principal: Principal | None = None
    roles: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DataReceived:
    """Bytes of a connection; none of them: the answer to ReadOn."""

    connection: int
    data: bytes


@dataclass(frozen=True, slots=True)
class DataOfMany:
    """(connection, bytes) of several, in turn; of each at most once."""

    pieces: list[tuple[int, bytes]]


@dataclass(frozen=True, slots=True)
class ConnectionLost:
    """The transport is gone, by whomever; no more events carry this number."""

    connection: int


@dataclass(frozen=True, slots=True)
class TimePassed:
    """Sent now and then (about once a second) so that keep-alives and time-outs happen."""


@dataclass(frozen=True, slots=True)
class DiskRoom:
    """The disk of the store has less free than its reserve, ``is_short``, or no longer.
    ``is_full``: a commit waits for room, and only clients' requests are handled meanwhile."""

    is_short: bool = False
    is_full: bool = False


@dataclass(frozen=True, slots=True)
class CalledAgain:
    """The answer to CallAgain, ahead of all other events."""


@dataclass(frozen=True, slots=True)
class CalledLater:
    """The answer to CallLater."""


@dataclass(frozen=True, slots=True)
class BatchHandled:
    """The answer to CallAtEnd, behind the events that waited with the one it answers; ``is_busy``:
    more are there already."""

    is_busy: bool = False


@dataclass(frozen=True, slots=True)
class RowsRead:
    """The answer to ReadRows, ahead of all other events: (key, value) of the rows that are there;
    ``space``, ``first`` and ``last`` are those of the question."""

    space: str
    first: str
    rows: tuple[tuple[str, bytes], ...]
    last: str


@dataclass(frozen=True, slots=True)
class SchemaAnswered:
    """The answer to AskSchemaWorker with this key, ahead of all other events."""

    key: str
    answer: SchemaAnswer


@dataclass(frozen=True, slots=True)
class ArchiveRead:
    """The answer to ReadArchive with this key, ahead of all other events: whole lines, and where
    the page ends, "" where nothing is behind it; ``damaged``: see answers.ArchivePage."""

    key: str
    lines: bytes
    next: str
    damaged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The answer to AskEvaluation with this key, ahead of all other events."""

    key: str
    answer: ProfileEvaluated


@dataclass(frozen=True, slots=True)
class DeskAnswered:
    """The answer to AskDesk with this key, ahead of all other events."""

    key: str
    answer: object


Event: TypeAlias = (
    ConnectionOpened
    | DataReceived
    | DataOfMany
    | ConnectionLost
    | TimePassed
    | DiskRoom
    | CalledAgain
    | CalledLater
    | BatchHandled
    | RowsRead
    | SchemaAnswered
    | ArchiveRead
    | Evaluated
    | DeskAnswered
)


@dataclass(frozen=True, slots=True)
class Put:
    """Make a row of the durable store: ``space`` is the kind of row, ``key`` unique within."""

    space: str
    key: str
    value: bytes


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a row; a row that is not there is no error."""

    space: str
    key: str


@dataclass(frozen=True, slots=True)
class ReadRows:
    """Read the rows of a space from key ``first`` to key ``last`` when all changes up to now are
    in the store, and say RowsRead."""

    space: str
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class SendData:
    """Whole encoded frames for a connection; ignored if the connection is gone.

    ``is_early``: may leave ahead of the commit of its call (early_leaving.py)."""

    connection: int
    flow: Flow
    data: bytes
    is_early: bool = False


@dataclass(frozen=True, slots=True)
class CloseConnection:
    """Send what is queued, then close."""

    connection: int
    reason: str


@dataclass(slots=True)
class SendResults:
    """Send whole frames of the flow of messages in this order, each on a connection: its head, and
    a body that many have in common; ``size``: bytes of them all."""

    frames: list[tuple[int, bytes, bytes]] = field(default_factory=list)
    size: int = 0

    def each(self) -> Iterator[SendData]:
        """The same, one by one."""
        for connection, head, body in self.frames:
            yield SendData(connection, Flow.MESSAGE, head + body)


@dataclass(frozen=True, slots=True)
class PeerKnown:
    """Who is at the other end of a connection that came in by a door has been said, and may be; in
    which ``role``."""

    connection: int
    role: str


@dataclass(frozen=True, slots=True)
class CallAgain:
    """There is more to do that nobody waits for as they wait for this: carry the actions out, let
    what leaves leave, then call with CalledAgain; other events may come before."""


@dataclass(frozen=True, slots=True)
class CallLater:
    """Call with CalledLater when so many seconds have passed, if the core is still there."""

    seconds: float


@dataclass(frozen=True, slots=True)
class CallAtEnd:
    """What to say depends on what comes next: call with BatchHandled, once, when the events that
    wait together have been handled, before anything of theirs is committed."""


@dataclass(frozen=True, slots=True)
class ReadOn:
    """There is more to do of what a connection has brought than is done in one slice: say
    DataReceived of no bytes when others have had their turn; it is not read before."""

    connection: int


@dataclass(frozen=True, slots=True)
class ArchiveMessage:
    """Keep an accepted message, the ``number``-th of ``source``, for later backtests: as well as
    the shell can, without anybody waiting for it.  ``text``: in UTF-8; ``accepted``: in
    microseconds of the epoch, 0: now."""

    source: str
    number: int
    text: bytes
    accepted: int


@dataclass(frozen=True, slots=True)
class ReadArchive:
    """Read a page of what is archived of a source, from one second of the epoch to another, behind
    the page that ended at ``after``, and say ArchiveRead."""

    key: str
    source: str
    since: float
    until: float
    after: str


@dataclass(frozen=True, slots=True)
class DialPeers:
    """From now on dial these peers ("role/id" -> where they may be) and no others; those to whom
    there is no connection at once."""

    dials: Mapping[str, Addresses]


@dataclass(frozen=True, slots=True)
class TakeSettings:
    """From now on the limits, archive and log of ``topology`` are in force, of those that may
    change while a network runs (live_settings.py); ``taken`` are the keys of those that are new."""

    topology: Topology
    taken: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AskSchemaWorker:
    """Have a process of its own answer what may cost anything, and say SchemaAnswered.  It is
    asked at once, ahead of the commit: if this process dies it has asked nothing."""

    key: str
    question: SchemaQuestion


@dataclass(frozen=True, slots=True)
class AskEvaluation:
    """Have a process of its own evaluate a profile that takes long, and say Evaluated; in the order
    of asking."""

    key: str
    question: EvaluateProfile


@dataclass(frozen=True, slots=True)
class AskDesk:
    """Have the desk of the service ask a process of its own, and say DeskAnswered; what is asked is
    between the core and the desk (registration/plan_questions.py, renewal_questions.py)."""

    key: str
    question: object


@dataclass(frozen=True, slots=True)
class Failed:
    """Log what went wrong with an input, under its id; it has been contained."""

    id: str
    what: str
    trace: str


Action: TypeAlias = (
    Put
    | Delete
    | ReadRows
    | SendResults
    | SendData
    | CloseConnection
    | PeerKnown
    | CallAgain
    | CallLater
    | CallAtEnd
    | ReadOn
    | ArchiveMessage
    | ReadArchive
    | DialPeers
    | TakeSettings
    | AskSchemaWorker
    | AskEvaluation
    | AskDesk
    | Failed
)


def singly(actions: Iterable[Action]) -> list[Action]:
    """The same, with a SendData for each frame of a SendResults."""
    each = (action.each() if isinstance(action, SendResults) else (action,) for action in actions)
    return list(chain.from_iterable(each))
