"""ClientConnection: the other end of a broker or registration service, for asynchronous code.

::

    async with open_client(host, port, role="client", identity=uuid) as connection:
        result = await connection.call("profile.list", {})

    async with open_client(host, port, role="source", identity="s1") as connection:
        number = await connection.publish(payload, "xml")     # waits while too much is open
        outcome = await connection.outcome(number)             # its number, or why it was refused

    async with open_client(host, port, role="subscriber", identity=uuid) as connection:
        inbox = connection.attach("p7")                        # and any number of others
        arrived = await connection.next_delivery(inbox)
        connection.acknowledge(arrived)

A lost connection is dialled again for as long as the block lasts: publishes that were not settled
are sent again, deliveries that were not acknowledged come again only if this process never
received them.  The journal is in memory; what a broker keeps of a profile outlives the process,
so that a user who starts again gets what was not acknowledged, a source that starts again goes on
with the next number.

It ends for good, and everything that waits raises, when the peer does not want it: refused at the
hello, replaced by a newer connection of the same id and publisher, or forgotten.  A certificate
that only one of the two clocks takes for over, or not good yet, is no end: the connection is
dialled again.
"""

from __future__ import annotations

import logging
import uuid
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from math import inf
from typing import NamedTuple, Self

import anyio

from formats.errors import Fault
from overlay.link.client_limits import (
    DEFAULT_CLIENT_LIMITS,
    FINAL_CODES,
    ClientLimits,
    ConnectionFailed,
    RemoteError,
)
from overlay.link.client_stream import ClientStream, loop_here, open_stream
from overlay.link.client_table import TICK_SECONDS, in_table
from overlay.link.credentials import Credentials
from overlay.link.dialling import REDIAL, patience, pause_at, said
from overlay.link.errors import WRONG_TIME, ProtocolError
from overlay.link.events import (
    CloseConnection,
    ConnectionLost,
    ConnectionOpened,
    DataReceived,
    Event,
    Flow,
    SendData,
    TimePassed,
)
from overlay.link.frame import (
    HELD_RESULTS,
    POLICIES,
    PUBLISH_KEYS,
    PUBLISHERS,
    SOURCE_QUESTIONS,
    Frame,
)
from overlay.link.frames import (
    HELD,
    QUESTIONS_BYTES_MAX,
    QUESTIONS_MAX,
    AcceptedBefore,
    Deliveries,
    Detached,
    ErrorFrame,
    Hello,
    Missed,
    Numbered,
    Observed,
    Publish,
    PublishOnce,
    Refused,
    Request,
    Response,
    SourceAnswered,
    SourceAsked,
)
from overlay.link.handshake import HandshakeFailed, PeerUntimely, secure
from overlay.link.inbox import CHECKPOINT_EVERY, Arrived, Inbox, InboxQueue
from overlay.link.link_io import Connection
from overlay.link.link_layer import ANYONE, Arrival, LinkLayer
from overlay.link.lone_error import lone_errors
from overlay.link.loop import Latch, Loop
from overlay.link.message_headers import Headers
from overlay.link.subscription import Shared, Subscription
from overlay.nodes import Address, Addresses

# -------------------------------------------------------------------------------------------------
# Acknowledging: when a client says what it has taken, many deliveries at once.


ACKNOWLEDGE_SECONDS = 0.5
"""What is taken is said together with what is taken in so long after it: with the next that comes
then, or the next tick, or when it is ACKNOWLEDGE_AT_ONCE or so many bytes.  PERF: with a timer for
that a process with 1,000 connections took a quarter longer for each delivery."""
ACKNOWLEDGE_AT_ONCE = 64
ACKNOWLEDGE_BYTES_AT_ONCE = 256 * 1024


class Acknowledging:
    """``is_any``: something was taken that was not said; it is to be said ``at`` some time."""

    __slots__ = ("_bytes", "_clock", "_count", "at")

    def __init__(self, clock: Callable[[], float]) -> None:
        """``clock`` gives seconds, of which ``at`` is one."""
        self._clock = clock
        self.said()

    def said(self) -> None:
        self._count = self._bytes = 0
        self.at = inf

    @property
    def is_any(self) -> bool:
        return bool(self._count)

    def take(self, size: int) -> bool:
        """One delivery of so many bytes; whether it is to be said at once."""
        self._count += 1
        self._bytes += size
        if self._count == 1:
            self.at = self._clock() + ACKNOWLEDGE_SECONDS
        return self._count >= ACKNOWLEDGE_AT_ONCE or self._bytes >= ACKNOWLEDGE_BYTES_AT_ONCE


# -------------------------------------------------------------------------------------------------
# ObservedEvents: what a client asked to observe, as it comes.


class ObservedEvents:
    """An iterator as a class: it may be left in the middle, which an async generator may not
    without being closed explicitly."""

    def __init__(self, take: Callable[[], Awaitable[Mapping[str, object]]]) -> None:
        self._take = take

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Mapping[str, object]:
        return await self._take()


# -------------------------------------------------------------------------------------------------
# Outcomes: what becomes of the messages that a source publishes, by their numbers.


class Settled(NamedTuple):
    """Of a message: its ``number`` among those of the source; accepted, if nothing was ``said``."""

    number: int
    said: Refused | AcceptedBefore | None


class Outcomes:
    """A message is ``open`` until the peer has acknowledged it; what is said of it, and the number
    that it has among those of the source (``Numbered``), comes before."""

    def __init__(self, kept_max: int) -> None:
        """Of those that nobody has taken the latest ``kept_max`` are kept."""
        self.open: deque[int] = deque()
        self._kept_max = kept_max
        self._said: dict[int, Refused | AcceptedBefore] = {}
        self._kept: dict[int, Settled] = {}
        self._numbered: deque[Numbered] = deque()
        self._shift = 0

    def tell(self, said: Refused | AcceptedBefore | Numbered) -> None:
        if isinstance(said, Numbered):
            self._numbered.append(said)
        else:
            self._said[said.number] = said

    def settle(self, through: int) -> int:
        """All through a number are acknowledged; the number that the last one has."""
        while self.open and self.open[0] <= through:
            sequence = self.open.popleft()
            while self._numbered and self._numbered[0].number <= sequence:
                begins = self._numbered.popleft()
                self._shift = begins.first - begins.number
            self._kept[sequence] = Settled(sequence + self._shift, self._said.pop(sequence, None))
        for sequence in [each for each in self._said if each <= through]:  # of runs before
            del self._said[sequence]
        while len(self._kept) > self._kept_max:
            del self._kept[next(iter(self._kept))]
        return through + self._shift

    def take(self, number: int) -> Settled:
        """What became of a settled message.  Once: then KeyError."""
        return self._kept.pop(number)


# -------------------------------------------------------------------------------------------------
# Questions: the requests of a client that are not answered yet.


class Question:
    """PERF: each has an event of its own, for there may be hundreds (``benchmarks network``,
    registering)."""

    def __init__(self, changed: Latch) -> None:
        self.answer: Response | None = None
        self.changed = changed


class Questions:
    """By the id of the request."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._open: dict[str, Question] = {}

    @asynccontextmanager
    async def asked(self, request: str) -> AsyncIterator[Question]:
        """A question for as long as it is asked.  Who asks the same meanwhile has to wait until
        then, as an answer says no more than the id."""
        while (other := self._open.get(request)) is not None:
            await other.changed.wait()
            await self._loop.checkpoint()  # whoever asked takes the answer first
        question = self._open[request] = Question(self._loop.event())
        try:
            yield question
        finally:
            del self._open[request]
            question.changed.set()

    def answer(self, answer: Response) -> None:
        """Nobody may have asked, or no more."""
        question = self._open.get(answer.request)
        if question is not None:
            question.answer = answer
            question.changed.set()

    def tell_all(self) -> None:
        """The connection came, went, or has ended."""
        for question in self._open.values():
            question.changed.set()


# -------------------------------------------------------------------------------------------------


log = logging.getLogger("onyx.client")
UNTIMELY_ALERTS = {"sslv3 alert certificate expired", "sslv3 alert bad certificate"}
"""By which a process of a former release refuses a certificate by its own clock."""
__all__ = ["ClientConnection", "ClientLimits", "ConnectionFailed", "RemoteError", "open_client"]


@asynccontextmanager
async def open_client(
    host: str,
    port: int,
    *,
    role: str,
    identity: str,
    formats: Sequence[str] = (),
    limits: ClientLimits = DEFAULT_CLIENT_LIMITS,
    credentials: Credentials | None = None,
    others: Addresses = (),
    publisher: str = "",
) -> AsyncIterator[ClientConnection]:
    """Connect, and stay connected for the length of the block; without ``credentials`` without TLS.
    ConnectionFailed if there is no hello within ``open_seconds``, RemoteError if it is refused.
    ``others``: where else the node may be.  ``publisher``: see Hello."""
    where = Address(host, port), *others
    connection = ClientConnection(where, role, identity, formats, limits, credentials, publisher)
    with lone_errors():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connection._run)
            try:
                await connection._wait_open()
                yield connection
            finally:
                tasks.cancel_scope.cancel()


class ClientConnection:
    """See the module's text; made by ``open_client``."""

    def __init__(
        self,
        where: Addresses,
        role: str,
        identity: str,
        formats: Sequence[str],
        limits: ClientLimits,
        credentials: Credentials | None = None,
        publisher: str = "",
    ) -> None:
        self._credentials = credentials
        self._loop = loop_here()
        self.peer = ANYONE  # who answered, from the first hello on
        self.hello: Hello | None = None  # the last one of the peer
        self._where = where
        self.at = where[0]  # of them, where it was dialled last
        self._identity = identity
        self._limits = limits
        self._links = LinkLayer(
            role=role,
            identity=identity,
            instance=uuid.uuid4().hex,
            formats=formats,
            limits=limits.link,
            notices=True,
            token=lambda: "" if credentials is None else credentials.token,
            publisher=publisher,
        )
        self._transport: Connection | None = None
        self._connections = 0
        self._failure: RemoteError | None = None
        self._questions = Questions(self._loop)
        self._outcomes = Outcomes(limits.outcomes_max)
        self._subscription = Subscription()
        self._inboxes: dict[int, Inbox] = {}  # by slot
        self._acknowledging = Acknowledging(self._loop.current_time)
        self._observed: deque[Mapping[str, object]] = deque()
        self.answers = False  # questions to the source that this connection is of
        self._asked: deque[tuple[float, int, SourceAsked]] = deque()  # when and by which connection
        self._changed: Latch | None = None  # as long as somebody waits for it
        self._moved_on = self._loop.event()  # the connection came, went, or has ended for good
        self._was: tuple[Connection | None, bool] = None, False
        self._hellos = 0
        self.hindrance = ""  # why there is no connection, as far as that was said

    # --- asking ---------------------------------------------------------------------------

    async def call(
        self, verb: str, arguments: Mapping[str, object], *, request: str = ""
    ) -> Mapping[str, object]:
        """Ask and wait for the answer.

        ``request`` is the id of the request, unique among all clients (default: a new one); the
        same id again says that this is the same request, asked again after a lost connection.
        RemoteError with the code of the answer; ConnectionFailed if the connection is not there
        or is lost meanwhile.
        """
        request = request or uuid.uuid4().hex
        async with self._questions.asked(request) as question:
            self._check_failure()
            transport = self._transport
            if transport is None or not self._links.connected(self.peer):
                raise ConnectionFailed(f"{verb}: not connected to {said(self._where)}")
            self.send_acknowledgements()
            self._links.reply(transport.number, Request(request, verb, arguments))
            self._carry_out()
            while (answer := question.answer) is None:
                if self._transport is not transport:
                    raise ConnectionFailed(f"{verb}: the connection was lost before the answer")
                self._check_failure()
                question.changed = self._loop.event()
                await question.changed.wait()
        if not answer.ok:
            code, message = answer.result.get("code", ""), answer.result.get("message", "")
            raise RemoteError(str(code), str(message), answer.result.get("refusal"))
        return answer.result

    def observed(self) -> AsyncIterator[Mapping[str, object]]:
        """Events that this connection asked to observe, as they come; ConnectionFailed when the
        connection is lost, as it must ask again then."""
        return ObservedEvents(partial(self.next_observed, self.connection_number))

    async def next_observed(self, connection: int) -> Mapping[str, object]:
        """One event; ConnectionFailed once the transport connection of this number is gone."""
        await self._loop.checkpoint()
        while not self._observed:
            if self._transport is None or self._transport.number != connection:
                raise ConnectionFailed("the connection was lost while observing")
            await self._wait_changed()
        return self._observed.popleft()

    # --- publishing -----------------------------------------------------------------------

    async def publish(
        self, payload: bytes, wire_format: str, key: bytes = b"", headers: Headers | None = None
    ) -> int:
        """Send a message; returns its number at once, unless ``publishes_max`` are open.

        It arrives exactly once even if the connection is lost; ``outcome`` tells what became of
        it.  ``key``: the digest of its publish key, by which it is known in other runs; RemoteError
        "no-publish-keys" where the peer is of a release that knows none.  ``headers`` go with it.
        """
        self._check_failure()
        if key:
            self._check_knows(PUBLISH_KEYS)
        while len(self._outcomes.open) >= self._limits.publishes_max:
            await self._wait_changed()
        what = self._identity, wire_format, payload
        if key:
            frame: Publish = PublishOnce(*what, key, headers=headers)
        else:
            frame = Publish(*what, headers=headers)
        number = self._links.send(self.peer, self._identity, frame)
        self._outcomes.open.append(number)
        self._carry_out()
        if number % CHECKPOINT_EVERY == 0:  # PERF: a turn of the loop costs as much as a message
            await self._loop.checkpoint()
        return number

    def _check_knows(self, feature: str) -> None:
        if self.hello is not None and feature not in self.hello.features:
            known = feature.replace("-", " ")
            raise RemoteError(f"no-{feature}", f"the release of {self.peer} knows no {known}")

    async def outcome(self, number: int) -> Settled:
        """Wait until the message is settled.

        Each outcome is told once; KeyError for a number that is not open (any more).
        """
        while number in self._outcomes.open:
            await self._wait_changed()
        return self._outcomes.take(number)

    @property
    def accepted_through(self) -> int:
        """How many messages of this publisher the other side has taken, or refused, in any run."""
        channel = self._links.journal(self.peer).sending.get((Flow.MESSAGE, self._identity))
        return 0 if channel is None else channel.floor

    def is_settled(self, number: int) -> bool:
        """Whether ``outcome`` of a published message would not have to wait."""
        return number not in self._outcomes.open

    # --- answering ------------------------------------------------------------------------

    async def next_question(self) -> tuple[int, SourceAsked]:
        """The number of the connection by which a question to the source has come, and the
        question; RemoteError "no-source-questions" where the peer's release passes none on."""
        await self._loop.checkpoint()
        while not self._asked:
            self._check_knows(SOURCE_QUESTIONS)
            await self._wait_changed()
        _, connection, asked = self._asked.popleft()
        return connection, asked

    def answer(self, connection: int, said: SourceAnswered) -> None:
        """Answer a question; nobody waits for that once the connection is gone by which it came."""
        if self._transport is None or self._transport.number != connection:
            return
        try:
            self._links.reply(connection, said)
        except ProtocolError as error:
            fault = Fault(error.code, f"the answer cannot be sent: {error.reason}")
            self._links.reply(connection, SourceAnswered(said.number, fault.facts(), b""))
        self._carry_out()

    def _take_question(self, connection: int, asked: SourceAsked) -> None:
        size = sum(len(waiting.payload) for *_, waiting in self._asked) + len(asked.payload)
        if len(self._asked) < QUESTIONS_MAX and size <= QUESTIONS_BYTES_MAX:
            self._asked.append((self._loop.current_time(), connection, asked))
        else:
            fault = Fault("busy", f"{len(self._asked)} questions wait in the process of the source")
            self.answer(connection, SourceAnswered(asked.number, fault.facts(), b""))

    def _refuse_questions(self) -> None:
        """The user of this connection may be about to answer, and has a second to begin."""
        last = self._loop.current_time() - TICK_SECONDS
        fault = Fault("no-answers", "the process of the source answers no questions")
        while self._asked and not self.answers and self._asked[0][0] <= last:
            _, connection, asked = self._asked.popleft()
            self.answer(connection, SourceAnswered(asked.number, fault.facts(), b""))

    # --- subscribing ----------------------------------------------------------------------

    def attach(
        self,
        profile: str,
        received: int = 0,
        queue: InboxQueue | None = None,
        mode: int = 0,
        shared: Shared | None = None,
    ) -> Inbox:
        """Take the deliveries of a profile from now on, behind the ``received``-th; they arrive in
        a queue of their own, or in one with others.  With the mode SHARED those that no other who
        shares it gets; ``shared``: what is known of it from another connection.  With HELD they
        stay at the broker; RemoteError "no-held-results" of an earlier release.  The inbox ends
        when the broker does not have the profile, or not any more; a ``call`` that is answered
        afterwards proves that it has."""
        self._check_failure()
        if mode & HELD:
            self._check_knows(HELD_RESULTS)
        made = self._subscription.attach(profile, received, mode, shared)
        inbox = Inbox(made, InboxQueue() if queue is None else queue)
        inbox.queue.loop = self._loop
        self._inboxes[made.slot] = inbox
        if self.connected:
            self._reply(self._subscription.told([made]))
        return inbox

    def detach(self, inbox: Inbox, error: RemoteError) -> None:
        """Nothing more is wanted in an inbox, for a reason that its user is told."""
        self._give_back(inbox)
        self._subscription.detach(inbox.attachment)
        self._inboxes.pop(inbox.attachment.slot, None)
        inbox.end(error)

    async def next_delivery(self, inbox: Inbox) -> Arrived:
        """The next one in an inbox's queue; RemoteError with what has ended it."""
        while not isinstance(found := await inbox.queue.next(), Arrived):
            if found.ended is not None:
                raise RemoteError(found.ended.code, found.ended.message)
        return found

    def acknowledge(self, arrived: Arrived) -> None:
        """Everything up to this delivery is done and need not come again; of a profile that is
        shared, this one.  Said soon; a ``call`` that is answered afterwards proves that it came."""
        self._subscription.take(arrived.inbox.attachment, arrived.number)
        if self._acknowledging.take(len(arrived.frame.payload)):
            self.send_acknowledgements()

    def reject(self, arrived: Arrived, reason: str) -> None:
        """A delivery of a profile that is shared is to come again, as the profile's policy says;
        RemoteError "no-policies" where the broker's release knows none."""
        self._check_knows(POLICIES)
        said = self._subscription.reject(arrived.inbox.attachment, arrived.number, reason)
        if said is not None and self.connected:
            self._reply([said])

    def send_acknowledgements(self) -> None:
        """Now, what was acknowledged."""
        self._acknowledging.said()
        if self.connected:
            self._reply(self._subscription.taken())

    # --- state ----------------------------------------------------------------------------

    @property
    def connected(self) -> bool:
        """Whether the other side is there right now; links may not know yet that it is not."""
        return self._transport is not None and self._links.connected(self.peer)

    def go_to(self, peer: str, where: Addresses) -> None:
        """Dial another process, which goes on with what was published to this one, and numbers."""
        self._links.succeed(self.peer, peer)
        self.peer, self._where = peer, where

    async def wait_connected(self) -> None:
        """Wait until the other side is there (again); RemoteError if it never will be."""
        while not self.connected:
            await self._wait_moved_on()

    @property
    def connection_number(self) -> int:
        """Counts the connections; the one there is now, or the last one."""
        return self._connections

    async def wait_lost(self) -> None:
        """Wait until the present connection is gone."""
        transport = self._transport
        while transport is not None and self._transport is transport:
            await self._wait_moved_on()

    # --- the connection -------------------------------------------------------------------

    async def _run(self) -> None:
        """Dial, and dial again, until there is no point any more."""
        attempt, most = 0, patience(self._where, self._limits.open_seconds)
        while self._failure is None:
            before = self._hellos
            self.at = self._where[attempt % len(self._where)]
            self._warn()
            stream = await open_stream(*self.at, most)
            if stream is not None:
                await self._run_connection(stream, most)
            if self._failure is None:
                attempt = 1 if self._hellos > before else attempt + 1
                await anyio.sleep(pause_at(self._where, REDIAL.spread(attempt, self._identity)))
        self._notify()

    async def _run_connection(self, stream: ClientStream, most: float) -> None:
        try:
            secured = await secure(
                stream, self._credentials, server_side=False, seconds=most, loop=self._loop
            )
        except PeerUntimely as failure:
            self._go_on_in_spite_of(str(failure))
            return
        except HandshakeFailed as failure:
            self._end_transport(str(failure) if failure.is_final else "")
            return
        self._connections += 1
        ended = self._loop.event()
        transport = self._transport = Connection(
            self._connections, stream.socket, secured=secured, on_end=ended.set
        )
        try:
            self._handle(ConnectionOpened(transport.number, self.peer, transport.principal))
            with in_table(transport, self, self._loop):
                try:
                    await ended.wait()
                finally:
                    self.send_acknowledgements()
        finally:
            self._handle(ConnectionLost(transport.number))
            # For a client the handshake is over before its certificate is looked at.
            self._end_transport(transport.tls_failure)

    def _end_transport(self, tls_failure: str) -> None:
        """For good, if the other end is not who it should be, or does not want us."""
        code, _, detail = self._links.refusal(self.peer).partition(": ")
        if tls_failure in UNTIMELY_ALERTS and not self._is_over:
            self._go_on_in_spite_of(tls_failure)
            tls_failure = ""
        if tls_failure:
            code, detail = "not-authenticated", tls_failure
        if self._failure is None and (tls_failure or code in FINAL_CODES):
            self._failure = RemoteError(code, detail)
        self._notify()

    @property
    def _is_over(self) -> bool:
        return self._credentials is not None and self._credentials.is_over

    def _go_on_in_spite_of(self, why: str) -> None:
        """It is dialled again; said once, until there is a hello."""
        if why != self.hindrance:
            self.hindrance = why
            log.warning("%s: %s; tried again", self.at, why)

    def _warn(self) -> None:
        for sentence in () if self._credentials is None else self._credentials.warnings():
            log.warning("%s", sentence)

    def tick(self) -> None:
        """About once a second, while it is connected."""
        self._warn()
        if self._links.is_due(self._loop.current_time()):
            self._handle(TimePassed())
        self._refuse_questions()
        if self._acknowledging.is_any:
            self.send_acknowledgements()

    def take_data(self, connection: int, data: bytes) -> None:
        """What has come."""
        now = self._loop.current_time()
        found, is_all = self._links.results(connection, data, now)
        try:
            for frame, slot, number in found:
                attachment = self._subscription.arrives(slot, number)
                if attachment is not None:
                    inbox = self._inboxes[slot]
                    inbox.queue.put(Arrived(inbox, number, frame))
        except ProtocolError as error:
            self._links.refuse(connection, error.code, error.reason)
            is_all = False
        if not is_all:
            self._handle(DataReceived(connection, b""))
        elif now >= self._acknowledging.at:
            self.send_acknowledgements()

    def _handle(self, event: Event) -> None:
        """The same loop as a core's, with nothing to store."""
        if isinstance(event, ConnectionLost):
            self._transport = None
        now = self._loop.current_time()
        for arrival in self._links.handle(event, now):
            self._take(arrival)
        if now >= self._acknowledging.at:
            self.send_acknowledgements()
        self._settle()
        self._carry_out()
        self._notify()

    def _take(self, arrival: Arrival) -> None:
        frame = arrival.frame
        if isinstance(frame, Hello):
            self.peer = arrival.peer
            self.hello = frame
            if PUBLISHERS not in frame.features:  # there it has no name, and so goes on without one
                self._links.publisher = ""
            self._hellos += 1
            self.hindrance = ""
            self._asked.clear()
            for inbox in self._inboxes.values():
                self._give_back(inbox)
            for said in self._subscription.attachments():
                self._links.reply(arrival.connection, said)
        elif isinstance(frame, Response):
            self._questions.answer(frame)
        elif isinstance(frame, Observed):
            self._observed.extend(frame.events)
            while len(self._observed) > self._limits.observed_max:
                self._observed.popleft()
        elif isinstance(frame, Deliveries | Detached | Missed):
            self._take_delivery(arrival.connection, frame)
        elif isinstance(frame, Refused | AcceptedBefore | Numbered):
            self._outcomes.tell(frame)
        elif isinstance(frame, SourceAsked):
            self._take_question(arrival.connection, frame)
        elif isinstance(frame, ErrorFrame):
            self._take_error(frame)

    def _take_delivery(self, connection: int, frame: Deliveries | Detached | Missed) -> None:
        if isinstance(frame, Missed):
            self._subscription.missed(frame)
            if (inbox := self._inboxes.get(frame.slot)) is not None:
                inbox.queue.put_news(inbox)
            self._reply(self._subscription.taken())
        elif isinstance(frame, Detached):
            attachment = self._subscription.detached(frame)
            if attachment is not None:
                inbox = self._inboxes.pop(attachment.slot)
                self._give_back(inbox)
                inbox.end(RemoteError(frame.code, frame.detail))
        else:
            try:
                for attachment, number in self._subscription.arrived(frame):
                    inbox = self._inboxes[attachment.slot]
                    inbox.queue.put(Arrived(inbox, number, frame))
            except ProtocolError as error:
                self._links.refuse(connection, error.code, error.reason)

    def _give_back(self, inbox: Inbox) -> None:
        """What has come of a shared profile, and was not handed out, others may get now."""
        if inbox.attachment.shared is not None:
            self._subscription.give_back(inbox.attachment, inbox.queue.take_back(inbox))

    def _reply(self, frames: Iterable[Frame]) -> None:
        """Unsequenced frames on the connection that is there."""
        transport = self._transport
        if transport is not None:
            for frame in frames:
                self._links.reply(transport.number, frame)
            self._carry_out()

    def _take_error(self, frame: ErrorFrame) -> None:
        code = frame.code
        if code == WRONG_TIME and self._is_over:
            code = "not-authenticated"  # by both clocks: only another certificate would help
        elif code == WRONG_TIME:
            self._go_on_in_spite_of(frame.detail)
        passes = code in ("hello-timeout", "keys-awaited", "moved", WRONG_TIME) or (
            code in ("too-many-connections", "too-many-publishers", "disk-full")
            and self.peer != ANYONE
        )
        early = not passes and not self._links.connected(self.peer)
        if frame.fatal and (early or code in FINAL_CODES) and self._failure is None:
            self._failure = RemoteError(code, frame.detail)

    def _settle(self) -> None:
        """Publishes that an Ack covers are settled; their refusals have come before it."""
        if self._outcomes.open:
            through = self._links.acknowledged(self.peer, Flow.MESSAGE, self._identity)
            self._links.numbered = self._outcomes.settle(through)

    def _carry_out(self) -> None:
        """Rows are not kept; the rest goes to the connection it is for, if that is still there."""
        for action in self._links.drain():
            transport = self._transport
            if transport is None or not isinstance(action, SendData | CloseConnection):
                continue
            if action.connection != transport.number:
                continue
            if isinstance(action, SendData):
                transport.send_nowait(action.flow, action.data)
            else:
                transport.close_nowait(action.reason)
        if self._transport is not None:
            self._transport.flush_nowait()

    async def _wait_open(self) -> None:
        seconds = self._limits.open_seconds * len(self._where)
        with anyio.move_on_after(seconds):
            return await self.wait_connected()
        raise ConnectionFailed(
            f"no answer from {said(self._where)} in {seconds:g} s", self.hindrance
        )

    async def _wait_changed(self) -> None:
        """Until something happened; raises what ended the connection for good."""
        self._check_failure()
        if self._changed is None:
            self._changed = self._loop.event()
        await self._changed.wait()
        self._check_failure()

    async def _wait_moved_on(self) -> None:
        """The same, but only until the connection has come or gone: many may wait for that."""
        self._check_failure()
        await self._moved_on.wait()
        self._check_failure()

    def _check_failure(self) -> None:
        if self._failure is not None:
            # anew in each task, with a traceback of its own
            raise RemoteError(self._failure.code, self._failure.message)

    def _notify(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None
        now = self._transport, self.connected
        if now != self._was or self._failure is not None:
            self._was = now
            self._moved_on.set()
            self._moved_on = self._loop.event()
            self._questions.tell_all()
        if self._failure is not None and self._inboxes:
            for inbox in list(self._inboxes.values()):
                self.detach(inbox, self._failure)
