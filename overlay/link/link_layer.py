"""LinkLayer: all connections and journals of one process, without I/O.

::

    core     for arrival in links.handle(event, now):   # lazily: react, then take the next
                 ... links.send(peer, key, frame) ...
             return links.drain()                       # rows, then what leaves

A peer is "role/id" ("broker/B1", "source/s1", "client/<uuid>"), of a publisher that has a name
"source/s1/name"; a connection is a number that the shell gives.  Channels exist between two
processes of durable roles.

What the core sees of a connection, in this order:

1. ``Arrival(frame=Hello)`` as soon as the peer has said who it is, and the principal of its
   connection may say that (principal.py).  The core may ``refuse`` it there; nothing has been sent
   yet on a connection that was accepted.  After that the hellos are exchanged, ``connected(peer)``
   is true, and the journal is sent again from where the peer is.
2. Its frames, each exactly once; pings, acknowledgements and errors are dealt with here.
3. ``Arrival(frame=None)``: the connection is gone, or closed by this layer or by ``refuse``.
   Exactly one for each Hello arrival.  A newer connection of the same peer replaces the old one:
   the old one's None comes before the new one's Hello.

With ``notices=True`` (for clients) ErrorFrame arrives too; a refused dialler sees it without a
Hello before it, ``peer`` being whom it dialled.

Acknowledgements are made in ``drain()``, one per channel.  They travel ahead of everything on the
control flow, except those to a source: an Ack tells a source that its messages were accepted
unless they were refused, so it queues behind the refusals, and waits for refusals that wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from itertools import chain, islice
from typing import Any, TypeAlias

from overlay.link.arrival import ANYONE, Arrival, always
from overlay.link.channels import SendingChannel
from overlay.link.errors import Fenced, ProtocolError
from overlay.link.events import (
    Action,
    CloseConnection,
    ConnectionLost,
    ConnectionOpened,
    DataOfMany,
    DataReceived,
    Event,
    Flow,
    PeerKnown,
    ReadOn,
    RowsRead,
    SendData,
    SendResults,
    TimePassed,
)
from overlay.link.frame import DURABLE_ROLES, FEATURES, PROTOCOL_VERSION, ROLES, Frame
from overlay.link.frame_codec import (
    LENGTH_BYTES,
    Envelope,
    FrameDecoder,
    decode,
    encode,
    read_one,
)
from overlay.link.frame_memory import UNBOUNDED, FrameMemory
from overlay.link.frames import (
    Ack,
    Deliveries,
    ErrorFrame,
    Hello,
    PassedOn,
    Ping,
    Pong,
    Response,
    Skipped,
)
from overlay.link.journal import Journal
from overlay.link.journal_rows import INBOX, OUTBOX, SPACES, Row, parse_frame_key, sort_rows
from overlay.link.limits import LinkLimits
from overlay.link.lost_stores import check_store
from overlay.link.principal import NOBODY, PROCESS_ROLES, Principal, nobody
from overlay.link.slices import never
from overlay.link.unfinished_frames import UnfinishedFrames
from overlay.statistics import Connection, Links

# -------------------------------------------------------------------------------------------------
# Session: one connection, from its first byte to its last, without I/O.
#
# ::
#
#     dialled    --- Hello --->                       OPEN: only Hello and error frames may come
#                <-- Hello ----  accepted             ESTABLISHED: everything
#                <-> frames, Ping, Pong <->           CLOSED: nothing is read or sent any more
#
# The session cuts bytes into frames, answers pings, sends pings when it is quiet, turns what is
# wrong into error frames, and closes.  What frames mean is the link layer's business.


DETAIL_CHARACTERS_MAX = 500


class SessionState(Enum):
    OPEN = auto()
    ESTABLISHED = auto()
    CLOSED = auto()


class Session:
    """One connection; appends SendData, CloseConnection and ReadOn to the list it was given.

    ``is_over`` says whether the slice is, in which frames are taken: one always is.  ``dialled``
    is the peer that was dialled, ``ANYONE`` if its id is not known, "" if the connection was
    accepted; ``roles`` are those whose hello it may say, none: any.  ``peer`` and ``hello`` are set
    by the link layer; ``principal`` is who is at the other end, None without TLS.
    """

    __slots__ = (
        "_actions",
        "_heard_at",
        "_held",
        "_is_over",
        "_limits",
        "_opened_at",
        "_pinged_at",
        "_pings",
        "connection",
        "decoder",
        "dialled",
        "errors",
        "hello",
        "peer",
        "principal",
        "reason",
        "roles",
        "state",
    )

    def __init__(
        self,
        connection: int,
        dialled: str,
        limits: LinkLimits,
        now: float,
        actions: list[Action],
        is_over: Callable[[], bool] = never,
        principal: Principal | None = None,
        roles: frozenset[str] = frozenset(),
    ) -> None:
        self.connection = connection
        self.principal = principal
        self.roles = roles
        self.dialled = dialled
        self.peer = ""
        self.hello: Hello | None = None
        self.state = SessionState.OPEN
        self.reason = ""
        self.errors = 0
        self._limits = limits
        self._actions = actions
        self._is_over = is_over
        is_process = bool(dialled) or (
            roles <= PROCESS_ROLES if principal is None else principal.is_process
        )
        self.decoder = FrameDecoder(
            limits.hello_bytes_max if is_process else limits.unknown_bytes_max
        )
        self._held: list[tuple[Flow, bytes]] = []
        self._opened_at = self._heard_at = self._pinged_at = now
        self._pings = 0

    @property
    def closed(self) -> bool:
        return self.state is SessionState.CLOSED

    @property
    def features(self) -> frozenset[str]:
        """What both ends can do beyond the oldest version."""
        return frozenset() if self.hello is None else FEATURES.intersection(self.hello.features)

    @property
    def is_of_process(self) -> bool:
        """Whether another process of the network is at the other end."""
        return bool(self.dialled) or self.peer.partition("/")[0] in PROCESS_ROLES

    @property
    def frame_bytes_max(self) -> int:
        """Of a frame that leaves, without its length prefix: what both sides accept."""
        most = self._limits.frame_bytes_max
        return most if self.hello is None else min(most, self.hello.frame_bytes_max)

    def receive(self, data: bytes, now: float) -> Iterator[Envelope]:
        """The frames in ``data`` (and what was left before it), one by one.

        Lazily: each is decoded after the one before was dealt with.  Pings and pongs do not come
        out, nor does what is wrong; nothing comes out of a closed session.  What is left when the
        slice is over stays until more is received, of which ReadOn is said.
        """
        if self.closed:
            return
        self._heard_at = now
        self.decoder.feed(data)
        taken = 0
        while not self.closed:
            try:
                raw = self.decoder.next_frame()
                if raw is None:
                    return
                if taken and self._is_over():
                    self.decoder.put_back(len(raw))
                    self._actions.append(ReadOn(self.connection))
                    return
                taken += 1
                envelope = decode(raw)
                self._check_expected(envelope.frame)
            except ProtocolError as error:
                self.report(error)
                continue
            frame = envelope.frame
            if isinstance(frame, Ping):
                self.send(Pong(frame.nonce))
            elif not isinstance(frame, Pong):
                yield envelope

    def hear(self, now: float) -> None:
        """Something has come."""
        self._heard_at = now

    def wait(self, data: bytes) -> None:
        """It is received when others have had their turn."""
        if not self.closed:
            self.decoder.feed(data)
            self._actions.append(ReadOn(self.connection))

    def due_at(self) -> float:
        """When ``tick`` may have something to do."""
        if self.state is SessionState.OPEN:
            return self._opened_at + self._limits.hello_seconds
        return self._heard_at + self._limits.keepalive_seconds

    def tick(self, now: float) -> None:
        """Time has passed: ping a quiet peer, close a dead one."""
        keepalive = self._limits.keepalive_seconds
        if self.state is SessionState.OPEN:
            if now - self._opened_at >= self._limits.hello_seconds:
                self.report(ProtocolError("hello-timeout", "no hello came", fatal=True))
        elif self.state is SessionState.ESTABLISHED and now - self._heard_at >= keepalive:
            if now - self._heard_at >= 3 * keepalive:
                detail = f"nothing was heard for {3 * keepalive:g} seconds"
                self.report(ProtocolError("silent", detail, fatal=True))
            elif now - self._pinged_at >= keepalive:
                self._pinged_at = now
                self._pings += 1
                self.send(Ping(self._pings))

    def send_hello(self, hello: Hello) -> None:
        """The first frame on the connection, before the session is established."""
        self._emit(hello.flow, encode(hello))

    def take_hello(self, hello: Hello) -> None:
        """The peer's hello was accepted as far as this layer is concerned."""
        self.hello = hello
        self.decoder.frame_bytes_max = self._limits.frame_bytes_max

    def establish(self) -> None:
        """Both hellos are exchanged; what was sent in between follows them."""
        self.state = SessionState.ESTABLISHED
        held, self._held = self._held, []
        for flow, data in held:
            self._emit(flow, data)

    def send(self, frame: Frame, flow: Flow | None = None) -> None:
        """Send an unsequenced frame, in another flow's queue if ``flow`` says so.

        ProtocolError if the frame breaks a rule or is longer than the peer accepts.
        """
        data, most = encode(frame), self.frame_bytes_max
        if len(data) - LENGTH_BYTES > most:
            kind = frame.type
            raise ProtocolError("too-long", f"{kind} frame of {len(data)} bytes; at most {most}")
        self.send_encoded(frame.flow if flow is None else flow, data)

    def send_encoded(self, flow: Flow, data: bytes, *, is_early: bool = False) -> None:
        """Send frames; held back until the hellos are exchanged, dropped once closed."""
        if self.state is SessionState.OPEN:
            self._held.append((flow, data))
        elif self.state is SessionState.ESTABLISHED:
            self._emit(flow, data, is_early)

    def report(self, error: ProtocolError) -> None:
        """Tell the peer what was wrong; close if it is fatal or one time too many."""
        if self.closed:
            return
        self.errors += 1
        self._send_error(error)
        if error.fatal:
            self.close(f"{error.code}: {error.reason}")
        elif self.errors > self._limits.errors_max:
            detail = f"{self.errors} wrong frames; at most {self._limits.errors_max}"
            self._send_error(ProtocolError("too-many-errors", detail, fatal=True))
            self.close(f"too-many-errors: {detail}")

    def close(self, reason: str) -> None:
        """Send what is queued, then nothing any more; idempotent."""
        if not self.closed:
            self.state = SessionState.CLOSED
            self.reason = reason
            self._held.clear()
            self._actions.append(CloseConnection(self.connection, reason))

    def lost(self) -> None:
        """The transport is gone."""
        self.state = SessionState.CLOSED

    def statistics(self) -> Connection:
        principal = "" if self.principal is None else str(self.principal)
        return Connection(self.peer, principal, self.state.name.lower(), self.errors)

    def _check_expected(self, frame: Frame) -> None:
        """Hello first and only once."""
        if isinstance(frame, ErrorFrame):
            return
        if self.hello is None and not isinstance(frame, Hello):
            raise ProtocolError("not-expected", f"{frame.type} before hello", fatal=True)
        if self.hello is not None and isinstance(frame, Hello):
            raise ProtocolError("not-expected", "a second hello", fatal=True)

    def _send_error(self, error: ProtocolError) -> None:
        detail = error.reason[:DETAIL_CHARACTERS_MAX].encode(errors="replace").decode()
        self._emit(Flow.CONTROL, encode(ErrorFrame(error.code, detail, error.fatal)))

    def _emit(self, flow: Flow, data: bytes, is_early: bool = False) -> None:
        self._actions.append(SendData(self.connection, flow, data, is_early))


# -------------------------------------------------------------------------------------------------


# -------------------------------------------------------------------------------------------------
# Admission: whether whoever is at the other end of a connection may say their hello.


def check_principal(session: Session, former: Session | None, hello: Hello) -> None:
    """ProtocolError unless the peer may say this hello; of a peer that is here already
    (``former``) only the same principal may be a newer connection."""
    principal = session.principal
    if principal is None:
        return
    peer = hello.said
    if session.dialled:
        if not (principal.is_process and principal.may_say(hello.role, hello.peer)):
            shown = principal.why if principal == NOBODY else f"the certificate of {principal}"
            detail = f"{peer} answered with {shown}"
            raise ProtocolError("wrong-peer", detail, fatal=True)
    elif principal == NOBODY:
        detail = f"{peer} has shown {principal.why}"
        raise ProtocolError(principal.code, detail, fatal=True)
    elif not principal.may_say(hello.role, hello.peer):
        raise ProtocolError("not-authorised", f"{principal} may not be {peer}", fatal=True)
    elif former is not None and former.principal != principal:
        detail = f"{principal} may not take the place of {peer}, who is here as another"
        raise ProtocolError("not-authorised", detail, fatal=True)


# -------------------------------------------------------------------------------------------------
# Epochs: which process is a node by now, where a standby can take its place.
#
# Each hello of a process with a lease says the epoch of that (postgres_store.py).  One that was
# taken over and does not know it yet is told so by the first that has seen its successor, and
# ends::
#
#     B1, epoch 4 ── hello ──> B2                B1 stands still, its standby becomes B1
#     B1, epoch 5 ── hello ──> B2
#     B1, epoch 4 ── hello ──> B2 ── stale-epoch, fatal ──> B1, epoch 4, which ends
#
# What it could do until then it could have done before it stood still: it commits nothing any more.


CODE = "stale-epoch"


class Epochs:
    """``own``, and the highest that has been seen, by peer."""

    def __init__(self, own: int) -> None:
        self.own = own
        self._highest: dict[str, int] = {}

    def see(self, peer: str, hello: Hello) -> None:
        """A fatal ProtocolError when a higher one of this process of the network was seen."""
        if hello.role not in PROCESS_ROLES:
            return
        highest = self._highest.get(peer, 0)
        if hello.epoch < highest:
            detail = f"{peer} is another process now: epoch {highest}, not {hello.epoch}"
            raise ProtocolError(CODE, detail, fatal=True)
        if hello.epoch > highest:
            self._highest[peer] = hello.epoch

    def hear(self, frame: ErrorFrame, principal: Principal | None) -> None:
        """Fenced when another process of the network says that this one is over."""
        is_process = principal is None or principal.is_process
        if self.own and is_process and frame.code == CODE:
            raise Fenced(frame.detail)


# -------------------------------------------------------------------------------------------------
# What an operator is shown of connections and journals.


Kept: TypeAlias = dict[str, Mapping[Any, Session | Journal]]
"""All that the statistics show the first of."""

SHOWN_MAX = 100  # connections, and peers with journals


def shown(
    sessions: Mapping[int, Session], journals: Mapping[str, Journal], memory: FrameMemory
) -> Links:
    """``connections`` and ``journals`` of SHOWN_MAX each, ``backlog_bytes`` of all."""
    others = (peer for peer in journals if not peer.startswith("source/"))
    sources = (peer for peer in journals if peer.startswith("source/"))
    some = islice(sessions.items(), SHOWN_MAX)
    channels = (channel for journal in journals.values() for channel in journal.sending.values())
    return Links(
        open=len(sessions),
        connections={str(number): session.statistics() for number, session in some},
        memory=memory,
        peers=len(journals),
        journals={p: journals[p].statistics() for p in islice(chain(others, sources), SHOWN_MAX)},
        backlog_bytes=sum(channel.backlog_bytes for channel in channels),
    )


# -------------------------------------------------------------------------------------------------


__all__ = ["ANYONE", "Arrival", "LinkLayer", "always"]

TICKED_AT_ONCE = 256  # sessions that are told that time has passed, at least


class LinkLayer:
    """See the module's text.  ``spaces`` are the rows of the store that are its own."""

    spaces = SPACES

    def __init__(
        self,
        *,
        role: str,
        identity: str,
        instance: str,
        formats: Sequence[str],
        limits: LinkLimits,
        may_acknowledge: Callable[[str, Flow, str], bool] = always,
        keeps: Callable[[str, Flow, str], bool] = lambda peer, flow, key: False,
        keeps_all: Callable[[str], bool] = lambda peer: False,
        notices: bool = False,
        stored: bool = False,
        is_over: Callable[[], bool] = never,
        token: Callable[[], str] = str,
        holder: Callable[[str], Principal] = nobody,
        epoch: int = 0,
        publisher: str = "",
    ) -> None:
        """``may_acknowledge(peer, flow, key)`` False withholds acknowledgements, so that the
        peer's window fills: back-pressure.  It is asked again in every ``drain``.
        ``keeps``, ``keeps_all``: see KeptMessages of brokers.

        ``stored``: rows are kept and can be read again, so that not all that waits is in memory.
        ``is_over``: whether the slice of this event is, so that the next frames have to wait.
        ``token`` is said in hellos; ``holder`` of a token that is heard in one is who says it, or
        raises ProtocolError.  ``epoch``, ``publisher``: see Hello.
        """
        if role not in ROLES:
            raise ValueError(f"role {role!r}; expected one of {sorted(ROLES)}")
        self._role = role
        self._identity = identity
        self._instance = instance
        self._formats = list(formats)
        self._token = token
        self._holder = holder
        self._epochs = Epochs(epoch)
        self.publisher = publisher
        self.numbered = 0
        """The highest number that this publisher was told."""
        self.is_anew = False
        """The store was lost: hellos say so to brokers that have not told how far they were."""
        self.keeps, self._keeps_all = keeps, keeps_all
        self._limits = limits
        self._may_acknowledge = may_acknowledge
        self._notices = notices
        self._is_over = is_over
        self._memory = FrameMemory(limits.journal_memory_bytes) if stored else UNBOUNDED
        self._sessions: dict[int, Session] = {}
        self._connected: dict[str, Session] = {}
        self._journals: dict[str, Journal] = {}
        self.kept: Kept = {"connections": self._sessions, "journals": self._journals}
        self._changed: dict[str, Journal] = {}  # with rows to store or acknowledgements owed
        self._unfinished = UnfinishedFrames(limits.unfinished_bytes_max)
        self._announced: set[int] = set()  # connections whose Hello the core has seen
        self._refusals: dict[str, str] = {}  # of peers that are dialled, or have a journal
        self._gone: list[Arrival] = []
        self._to_tick: list[Session] = []
        self._ticked_at_once = TICKED_AT_ONCE
        self._forgotten_rows: list[Action] = []
        self._sends: list[Action] = []
        self._now = 0.0
        self.disk_is_full = False
        """Nobody but clients that ask may come in."""

    def restore(self, rows: Iterable[Row]) -> list[Row]:
        """Take back (space, key, value) rows, in any order; returns those of other spaces.
        StoreError for rows that no link layer has written."""
        found = sort_rows(rows, self._memory.bytes_max)
        for space, peer, flow, key, value in found.channels:
            if space == INBOX:
                self._journal(peer).restore_inbox(flow, key, value)
            else:
                self._journal(peer).restore_floor(flow, key, value)
        for (peer, flow, key), frames in found.frames.items():
            self._journal(peer).restore_frames(flow, key, frames)
        return found.others

    def handle(self, event: Event, now: float) -> Iterator[Arrival]:
        """What an event brings; take all of it before ``drain``."""
        self._now = now
        if isinstance(event, DataReceived):
            session = self._sessions.get(event.connection)
            if session is not None:
                yield from self._handle_data(session, event.data, now)
        elif isinstance(event, DataOfMany):
            yield from self._handle_pieces(event, now)
        elif isinstance(event, ConnectionOpened):
            self._handle_opened(event, now)
        elif isinstance(event, RowsRead):
            self._handle_read(event)
        elif isinstance(event, ConnectionLost):
            session = self._sessions.pop(event.connection, None)
            if session is not None:
                session.lost()
                self._retire(session)
        elif isinstance(event, TimePassed):
            self._tick(now)
        yield from self._departures()

    def send(self, peer: str, key: str, frame: Frame, *, is_early: bool = False) -> int:
        """Put a sequenced frame on the channel (peer, the frame's flow, key); returns its number.
        ``is_early``: it may leave ahead of the commit, once the peer has acknowledged others.
        Journaled: it arrives whether the peer is there or not.  Raises ProtocolError if the frame
        is not one that the protocol allows (a field out of bounds, too long).
        """
        if not frame.sequenced:
            raise ValueError(f"a {frame.type} frame is not sequenced; use reply")
        if not self._durable(peer):
            raise ValueError(f"no channels between a {self._role} and {peer!r}")
        journal = self._journal(peer)
        sequence = journal.send(key, frame)
        if sequence == 1 and self.keeps(peer, frame.flow, key):
            journal.keep(frame.flow, key, keeps=True)
        self._changed[peer] = journal
        is_early = is_early and journal.sending[frame.flow, key].confirmed > 0
        self._transmit(journal, is_early=is_early)
        journal.release(frame.flow, key, sequence)
        return sequence

    def reply(self, connection: int, frame: Frame) -> None:
        """Send an unsequenced frame; dropped if the connection is gone.  A response that does not
        fit (or has values that no frame can carry) becomes one of ``too-long`` or ``bad-field``."""
        if frame.sequenced:
            raise ValueError(f"a {frame.type} frame is sequenced; use send")
        session = self._sessions.get(connection)
        if session is None:
            return
        try:
            session.send(frame)
        except ProtocolError as error:
            if not isinstance(frame, Response):
                raise
            result = {"code": error.code, "message": f"the result cannot be sent: {error.reason}"}
            session.send(Response(frame.request, ok=False, result=result))

    def principal(self, connection: int) -> Principal | None:
        """Who is at the other end of a connection; None without TLS, NOBODY once it is gone."""
        session = self._sessions.get(connection)
        return NOBODY if session is None else session.principal

    def features(self, peer: str) -> frozenset[str]:
        """What both ends can do beyond the oldest version; none of a peer who is away."""
        return frozenset() if peer not in self._connected else self._connected[peer].features

    def may_have(self, peer: str, feature: str) -> bool:
        """Whether both ends can do it, as far as is known of a peer who is away."""
        return peer not in self._connected or feature in self.features(peer)

    def principals(self) -> list[tuple[int, str, Principal]]:
        """(connection, peer, principal) of all that are here with one, but processes."""
        return [
            (session.connection, peer, session.principal)
            for peer, session in self._connected.items()
            if session.principal is not None and not session.principal.is_process
        ]

    def frame_bytes_max(self, connection: int) -> int:
        """Of a frame to the peer at the other end, without its length prefix."""
        return self._sessions.get(connection, self._limits).frame_bytes_max

    def reply_results(self, connection: int, head: bytes, body: bytes) -> None:
        """Send an unsequenced frame of the flow of messages to a peer who is connected; it is bytes
        already, of which the ``body`` is not copied, and fits."""
        # PERF: to hand on an action for each costs as much as to write it.
        last = self._sends[-1] if self._sends else None
        if type(last) is not SendResults:
            last = SendResults()
            self._sends.append(last)
        last.frames.append((connection, head, body))
        last.size += len(head) + len(body)

    def refuse(self, connection: int, code: str, detail: str) -> None:
        """Send a fatal error frame and close."""
        session = self._sessions.get(connection)
        if session is not None:
            session.report(ProtocolError(code, detail, fatal=True))
            self._retire_if_closed(session)

    def forget(self, peer: str) -> None:
        """Delete all that is kept for a peer, in memory and in the store; closes its connection,
        since numbers begin anew."""
        connection = self.connection_of(peer)
        if connection is not None:
            self.refuse(connection, "forgotten", "the state of this peer was deleted")
        journal = self._journals.pop(peer, None)
        self._changed.pop(peer, None)
        self._refusals.pop(peer, None)
        if journal is not None:
            # Rows of this very call may already be on their way: keep the order.
            self._forgotten_rows += [*journal.rows(), *journal.forgotten()]

    def succeed(self, former: str, peer: str) -> None:
        """What was sent to one peer goes to another in its place, and numbers go on; of a process
        whose journals are in memory only."""
        journal = self._journals.pop(former, None)
        if journal is not None:
            self._changed.pop(former, None)
            journal.succeed(peer)
            self._journals[peer] = journal

    def journal(self, peer: str) -> Journal:
        """The channels from and to a peer, for whoever looks at them or ends some; what is changed
        there is stored with the next ``drain``."""
        journal = self._changed[peer] = self._journal(peer)
        return journal

    def connected(self, peer: str) -> bool:
        """Whether hellos were exchanged on a connection that is still there."""
        return peer in self._connected

    def refusal(self, peer: str) -> str:
        """Why the last connection with a peer that is away was closed; "" if it broke."""
        return self._refusals.get(peer, "")

    def peer_of(self, connection: int) -> str:
        """Who is at the other end, "" if nobody is any more."""
        return "" if (session := self._sessions.get(connection)) is None else session.peer

    def connection_of(self, peer: str) -> int | None:
        session = self._connected.get(peer)
        return None if session is None else session.connection

    def sending(self, peer: str, flow: Flow, key: str) -> SendingChannel | None:
        """A channel to a peer, if there is one."""
        return self._journals[peer].sending.get((flow, key)) if peer in self._journals else None

    def backlog_bytes(self, peer: str, flow: Flow, key: str) -> int:
        """Bytes of the channel's frames that the peer has not acknowledged."""
        return 0 if (channel := self.sending(peer, flow, key)) is None else channel.backlog_bytes

    def channels_to(self, peer: str) -> Iterable[SendingChannel]:
        """The channels to a peer, to be looked at."""
        journal = self._journals.get(peer)
        return () if journal is None else journal.sending.values()

    def peers(self, role: str) -> list[str]:
        """The ids of the peers of a role of which something is kept."""
        return [peer.partition("/")[2] for peer in self._journals if peer.startswith(f"{role}/")]

    def delivery_rate(self, peer: str) -> float | None:
        """Bytes a second that the link to a peer has been seen to carry; None: not known yet."""
        return self._journal(peer).delivery_rate.bytes_per_second

    def acknowledged(self, peer: str, flow: Flow, key: str) -> int:
        """The highest number in an Ack that came in this run, 0 if none: what it covers is
        settled, also as to refusals (a hello only says that it was received)."""
        channel = self.sending(peer, flow, key)
        return 0 if channel is None else channel.confirmed

    def peer_formats(self, peer: str) -> Sequence[str]:
        """The formats of the peer's hello, best first; none while it is away."""
        session = self._connected.get(peer)
        return () if session is None or session.hello is None else session.hello.formats

    def drain(self) -> list[Action]:
        """Everything asked for since the last drain: all rows, then what leaves."""
        rows, self._forgotten_rows = self._forgotten_rows, []
        for peer, journal in list(self._changed.items()):
            self._acknowledge(journal)
            rows.extend(journal.rows())
            self._sends.extend(journal.reads())
            if not (journal.online and journal.owes_acknowledgements):
                del self._changed[peer]
        rows.extend(self._sends)
        self._sends.clear()
        return rows

    def statistics(self) -> Links:
        return shown(self._sessions, self._journals, self._memory)

    def results(
        self, connection: int, data: bytes, now: float
    ) -> tuple[list[tuple[Deliveries, int, int]], bool]:
        """What has come on a connection, as far as it is results of one profile each, with slot and
        number; whether that is all: if not, the rest is handled as DataReceived of no bytes."""
        # PERF: most frames of a client are; one by one, as all frames are, takes twice as long.
        session = self._sessions.get(connection)
        if session is None or session.state is not SessionState.ESTABLISHED:
            if session is not None and not session.closed:
                session.decoder.feed(data)
            return [], False
        found: list[tuple[Deliveries, int, int]] = []
        decoder = session.decoder
        session.hear(now)
        decoder.feed(data)
        try:
            while (place := decoder.next_place()) is not None:
                one = read_one(*place)
                if one is None:
                    decoder.put_back(place[2] - place[1])
                    return found, False
                found.append(one)
        except ProtocolError as error:
            session.report(error)
            return found, False
        return found, True

    def is_due(self, now: float) -> bool:
        """Whether time that has passed means anything to one of the connections."""
        return any(session.due_at() <= now for session in self._sessions.values())

    # --- events ---------------------------------------------------------------------------

    def _tick(self, now: float) -> None:
        """A sixteenth of the sessions after the other, where there are many: all take long."""
        if not self._to_tick:
            self._to_tick = list(self._sessions.values())
            self._ticked_at_once = max(TICKED_AT_ONCE, len(self._to_tick) // 16 + 1)
        for session in self._to_tick[-self._ticked_at_once :]:
            if not session.closed:
                session.tick(now)
                self._retire_if_closed(session)
        del self._to_tick[-self._ticked_at_once :]

    def _handle_opened(self, event: ConnectionOpened, now: float) -> None:
        # a tunnel's connection is no shell's, and its pieces are short
        is_over = self._is_over if event.connection > 0 else never
        session = Session(
            *(event.connection, event.peer, self._limits, now, self._sends),
            *(is_over, event.principal, event.roles),
        )
        if event.peer:
            self._end_former(event.peer)
            session.send_hello(self._hello(event.peer))
        self._sessions[event.connection] = session

    def _end_former(self, peer: str) -> None:
        """A peer was dialled, and is told what it has sent: nothing more comes over connections of
        before, which may have been with a former run of it."""
        if not peer.startswith("broker/"):
            return
        for session in list(self._sessions.values()):
            if not session.closed and peer in (session.dialled, session.peer):
                session.close(f"{peer} was dialled anew")
                self._retire(session)

    def _handle_read(self, event: RowsRead) -> None:
        peer, flow, key, _ = parse_frame_key(event.first)
        journal = self._journals.get(peer)
        if event.space == OUTBOX and journal is not None:
            self._changed[peer] = journal
            journal.put_back(flow, key, event)
            self._transmit(journal)

    def _handle_pieces(self, event: DataOfMany, now: float) -> Iterator[Arrival]:
        """Of all whose turn comes before the slice is over; the others are read on later."""
        is_first = True
        for connection, data in event.pieces:
            session = self._sessions.get(connection)
            if session is None:
                continue
            if is_first or not self._is_over():
                is_first = False
                yield from self._handle_data(session, data, now)
            else:
                session.wait(data)

    def _handle_data(self, session: Session, data: bytes, now: float) -> Iterator[Arrival]:
        for envelope in session.receive(data, now):
            try:
                yield from self._handle_frame(session, envelope)
            except ProtocolError as error:
                session.report(error)
            if session.closed:
                break
        if session.decoder.unfinished or session.connection in self._unfinished.of:
            size = 0 if session.closed or session.is_of_process else session.decoder.unfinished
            for connection, here in self._unfinished.note(session.connection, size):
                detail = f"{here} bytes of a frame are here, and there is no room for more"
                self.refuse(connection, "no-room", detail)
        self._retire_if_closed(session)

    def _handle_frame(self, session: Session, envelope: Envelope) -> Iterator[Arrival]:
        frame = envelope.frame
        if isinstance(frame, Hello):
            yield from self._handle_hello(session, frame)
        elif isinstance(frame, ErrorFrame):
            yield from self._handle_error(session, frame)
        elif not frame.sequenced and not isinstance(frame, Ack | Skipped | PassedOn):
            yield Arrival(session.connection, session.peer, frame)
        else:
            yield from self._handle_channel(session, envelope)

    def _handle_hello(self, session: Session, hello: Hello) -> Iterator[Arrival]:
        peer = hello.said
        if session.dialled not in ("", ANYONE, peer):
            detail = f"{peer} answered where {session.dialled} was dialled"
            raise ProtocolError("wrong-peer", detail, fatal=True)
        if peer == f"{self._role}/{self._identity}":
            raise ProtocolError("not-expected", f"{peer} is this process itself", fatal=True)
        former = self._connected.get(peer)
        if hello.token and session.principal == NOBODY and not session.dialled:
            session.principal = self._holder(hello.token)
        check_principal(session, former, hello)
        self._epochs.see(peer, hello)
        if session.roles and hello.role not in session.roles:
            raise ProtocolError("wrong-door", f"{peer} may not come in here", fatal=True)
        if self.disk_is_full and hello.role != "client":
            detail = f"the disk of {self._identity} is full; come again later"
            raise ProtocolError("disk-full", detail, fatal=True)
        if former is not None:
            detail = f"{peer} has opened a newer connection"
            former.report(ProtocolError("replaced", detail, fatal=True))
            self._retire_if_closed(former)
            yield from self._departures()
        session.peer = peer
        session.take_hello(hello)
        self._announced.add(session.connection)
        yield Arrival(session.connection, peer, hello)
        if not session.closed:
            self._establish(session, hello)

    def _establish(self, session: Session, hello: Hello) -> None:
        """Hellos are exchanged: the journal goes on where the peer is."""
        if self._durable(session.peer):
            check_store(self._role, self._identity, self._journal(session.peer), hello)
        if not session.dialled:
            session.send_hello(self._hello(session.peer))
        session.establish()
        if session.roles:
            self._sends.append(PeerKnown(session.connection, hello.role))
        self._connected[session.peer] = session
        self._refusals.pop(session.peer, None)
        if self._durable(session.peer):
            journal = self._journal(session.peer)
            self._changed[session.peer] = journal
            for skipped in journal.resume(hello.received, hello.frame_bytes_max):
                session.send(skipped, Flow(skipped.about))
            self._transmit(journal)

    def _handle_error(self, session: Session, frame: ErrorFrame) -> Iterator[Arrival]:
        if self._notices:
            yield Arrival(session.connection, session.peer or session.dialled, frame)
        self._epochs.hear(frame, session.principal)
        if frame.fatal:
            session.close(f"the peer says {frame.code}: {frame.detail}")

    def _handle_channel(self, session: Session, envelope: Envelope) -> Iterator[Arrival]:
        frame = envelope.frame
        if not self._durable(session.peer):
            detail = f"{frame.type} between a {self._role} and {session.peer}: no channels there"
            raise ProtocolError("not-expected", detail, fatal=True)
        journal = self._journal(session.peer)
        self._changed[session.peer] = journal
        if isinstance(frame, Ack):
            journal.acknowledge(frame, self._now)
            self._transmit(journal)
        elif isinstance(frame, PassedOn):
            journal.pass_on(frame, keeps_all=self._keeps_all(session.peer))
        elif isinstance(frame, Skipped):
            journal.skip(frame)
        elif journal.accept(frame.flow, envelope.key, envelope.sequence):
            yield Arrival(session.connection, session.peer, frame, envelope.key, envelope.sequence)

    # --- helpers --------------------------------------------------------------------------

    def _hello(self, peer: str) -> Hello:
        """What is said to a peer; ANYONE is told of no channels, and so sends all it keeps."""
        journal = self._journals.get(peer)
        is_anew = self.is_anew and peer.startswith("broker/")
        return Hello(
            PROTOCOL_VERSION,
            role=self._role,
            peer=self._identity,
            instance=self._instance,
            formats=self._formats,
            frame_bytes_max=self._limits.frame_bytes_max,
            received=[] if journal is None else journal.received(),
            token=self._token(),
            features=sorted(FEATURES),
            epoch=self._epochs.own,
            is_anew=is_anew and not (journal and journal.receiving),
            publisher=self.publisher,
            numbered=self.numbered,
        )

    def _transmit(self, journal: Journal, *, is_early: bool = False) -> None:
        """Send what the windows allow."""
        session = self._connected.get(journal.peer)
        if session is None:
            return
        try:
            for flow, data in journal.transmissions(self._now):
                session.send_encoded(flow, data, is_early=is_early)
        except ProtocolError as error:
            session.report(error)
            self._retire_if_closed(session)

    def _acknowledge(self, journal: Journal) -> None:
        session = self._connected.get(journal.peer)
        if session is None:
            return
        to_source = journal.peer.startswith("source/")
        for channel in journal.acknowledgements():
            if to_source and journal.has_waiting(channel.flow):
                continue
            if self._may_acknowledge(journal.peer, channel.flow, channel.key):
                session.send(journal.told(channel), channel.flow if to_source else Flow.CONTROL)

    def _retire_if_closed(self, session: Session) -> None:
        if session.state is SessionState.CLOSED:
            self._retire(session)

    def _retire(self, session: Session) -> None:
        """The session has ended: the peer is away, and the core is told once."""
        self._unfinished.forget(session.connection)
        peer = session.peer or session.dialled
        if session.reason and (session.dialled or peer in self._journals):
            self._refusals[peer] = session.reason
        if self._connected.get(session.peer) is session:
            del self._connected[session.peer]
            journal = self._journals.get(session.peer)
            if journal is not None:
                journal.suspend()
        if session.connection in self._announced:
            self._announced.remove(session.connection)
            self._gone.append(Arrival(session.connection, session.peer, None))

    def _departures(self) -> Iterator[Arrival]:
        while self._gone:
            yield self._gone.pop(0)

    def _durable(self, peer: str) -> bool:
        return self._role in DURABLE_ROLES and peer.partition("/")[0] in DURABLE_ROLES

    def _journal(self, peer: str) -> Journal:
        journal = self._journals.get(peer)
        if journal is None:
            journal = self._journals[peer] = Journal(peer, self._limits, memory=self._memory)
        return journal
