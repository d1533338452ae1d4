"""DataSource: the process of a source, at its root broker; it publishes messages, and answers."""

from __future__ import annotations

import logging
import uuid
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
)
from contextlib import AsyncExitStack, aclosing, closing, suppress
from pathlib import Path
from typing import Any, Self, TypeAlias

import anyio

from formats.errors import Fault, MessageRefused, Refusal
from formats.media_types import XML, as_published
from onyx.background import background_tasks
from onyx.client_values import Outcome, Publication
from onyx.errors import RequestFailed, UsageError, UserError
from onyx.publisher_journal import JOURNAL_BYTES_MAX, PublisherJournal
from onyx.registration_client import (
    RegistrationClient,
    Where,
    addresses_of,
    call,
    open_connection,
    refusals,
)
from onyx.renewal import keep_shown_renewed
from onyx.results import LOST_SECONDS
from overlay.answers import SourceInfo
from overlay.link.client_connection import ClientConnection, RemoteError
from overlay.link.errors import ProtocolError
from overlay.link.frames import RUN, AcceptedBefore, SourceAnswered, SourceAsked, is_peer_id
from overlay.link.message_headers import checked_headers, digest

FAREWELL_SECONDS = 2.0  # for what is good to say, but need not be said, at the end
LOOK_SECONDS = 1.0  # between two looks for the root broker
PIPELINE_MESSAGES = 256  # published by publish_all before the first outcome is known
ANSWERS_AT_ONCE = 16

Handler: TypeAlias = Callable[[str, bool, bytes], Awaitable[bytes]]
"""Takes the principal that asks, "" without TLS, whether it ``writes``, and the question."""

log = logging.getLogger("onyx.source")


class DataSource:
    """A registered data source, at its root broker; a context manager.

    Any number may publish as a source at once (``source_publishers_max``), in this process and in
    others, each in its own order; publish keys hold for all.  A ``publisher`` with a name is one of
    them in all its runs: a second process of that name replaces the first, whose calls then raise
    RequestFailed "replaced".

    When its root broker leaves the network or is lost, it goes on at the one that it gets then:
    what was not settled is published there.
    """

    def __init__(
        self,
        registration: Where,
        source_id: str,
        *,
        patience_seconds: float | None = None,
        journal: Path | str | None = None,
        journal_bytes_max: int = JOURNAL_BYTES_MAX,
        publisher: str | None = None,
    ) -> None:
        """``source_id``: its id, or its name if no other source has that.

        Without a connection for ``patience_seconds`` (None: however long) the block is
        cancelled and ends with NetworkUnreachable.

        With a ``journal``, a file of this source and one process, a message is on the disk before
        it is sent, and until its outcome is known.  What a crash has left is published when the
        next block begins, each once (``resumed``).  At most ``journal_bytes_max`` wait there; then
        ``publish`` raises JournalFull.

        ``publisher``: printable text without "|" and "/", which does not begin with "~"; "" is the
        one without a name, which all of former releases are.  None: a new one.  UsageError.
        """
        if publisher is None:
            publisher = f"{RUN}{uuid.uuid4().hex[:16]}"
        elif publisher.startswith(RUN) or not is_peer_id(publisher):
            raise UsageError(
                f"publisher {publisher!r}: expected printable text without '|' and '/', which does "
                f"not begin with {RUN!r}"
            )
        self._publisher = publisher
        self.id = source_id
        self.resumed: list[tuple[str, Outcome]] = []
        """What was left in the journal when the block began: publish keys with their outcomes."""
        self._journal_file = journal
        self._journal_bytes_max = journal_bytes_max
        self._journal: PublisherJournal | None = None
        self._entries: dict[int, int] = {}  # of the journal, by the numbers of messages
        self._registration = registration
        self._patience_seconds = patience_seconds
        self._info: SourceInfo | None = None
        self._stack = AsyncExitStack()
        self._connection: ClientConnection | None = None
        self._told = 0  # what the broker has said of messages
        self._answering: anyio.CancelScope | None = None

    @classmethod
    async def register(
        cls,
        registration: Where,
        *,
        name: str = "",
        schema: Path | None = None,
        validate: str = "off",
        compression: Mapping[str, Path] | None = None,
        base: str = "",
        key: str = "",
        ensure: bool = False,
        publisher: str | None = None,
        **settings: Any,
    ) -> DataSource:
        """Register a new source, or find the one that this ``key`` has made before, or with
        ``ensure`` the one of this ``name``, updated; returns when every broker knows it.  Not
        connected yet.

        The arguments are those of ``RegistrationClient.register_source``, and ``publisher``.
        """
        async with RegistrationClient(registration) as client:
            info = await client.register_source(
                name=name,
                schema=schema,
                validate=validate,
                compression=compression,
                base=base,
                key=key,
                ensure=ensure,
                **settings,
            )
        source = cls(registration, info.id, publisher=publisher)
        source._info = info
        return source

    @property
    def info(self) -> SourceInfo:
        """What the registration service knows of it; after ``register`` or inside the block."""
        if self._info is None:
            raise RuntimeError(
                "nothing is known yet of a DataSource that was not registered here; write "
                "async with source: and ask inside"
            )
        return self._info

    @property
    def root(self) -> str:
        """The id of its root broker."""
        return self.info.root

    @property
    def address(self) -> str:
        """ "host:port" of its root broker."""
        return self.info.address

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            async with RegistrationClient(self._registration) as client:
                self._info = await client.source(self.id)
                self.id = self._info.id
                while not self._info.ready:  # it is about to get another root broker
                    if self._info.removed:
                        raise RequestFailed("source-removed", f"{self.id} is being removed")
                    await anyio.sleep(LOOK_SECONDS)
                    self._info = await client.source(self.id)
            if self._journal_file is not None:
                journal = PublisherJournal(self._journal_file, self.id, self._journal_bytes_max)
                self._journal = stack.enter_context(closing(journal))
            where = addresses_of(self._info.address)
            self._connection = await stack.enter_async_context(
                open_connection(
                    *(where, "source", self.id, self._patience_seconds), publisher=self._publisher
                )
            )
            tasks = await stack.enter_async_context(background_tasks(anyio.create_task_group()))
            tasks.start_soon(self._follow, self._connection)
            tasks.start_soon(keep_shown_renewed, self._registration)
            stack.push_async_exit(self._say_farewell)
            await self._resume()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *raised: Any) -> bool | None:
        try:
            return await self._stack.__aexit__(*raised)
        finally:
            self._connection = None
            if self._answering is not None:
                self._answering.cancel()

    async def _say_farewell(
        self, kind: object, error: BaseException | None, traceback: object
    ) -> None:
        """The broker keeps what it has said until it knows that we have it; let it know, if it can
        be done.  If not it comes again, and nobody asks for it any more."""
        if error is None and self._told:
            with anyio.move_on_after(FAREWELL_SECONDS), suppress(UserError):
                await call(self._open_connection(), "sync", {})

    async def update(
        self,
        /,
        *,
        schema: Path | None = None,
        without_schema: bool = False,
        validate: str | None = None,
        **settings: Any,
    ) -> SourceInfo:
        """As ``RegistrationClient.update_source``; also outside of the block."""
        async with RegistrationClient(self._registration) as client:
            self._info = await client.update_source(
                self.id,
                schema=schema,
                without_schema=without_schema,
                validate=validate,
                **settings,
            )
        return self._info

    async def remove(self) -> None:
        """Remove it: what was accepted is still delivered, nothing more is accepted; to be called
        outside of the block, or as the last in it."""
        async with RegistrationClient(self._registration) as client:
            await client.remove_source(self.id)

    async def publish(
        self,
        data: bytes,
        media_type: str = XML,
        *,
        key: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> Outcome:
        """Publish one message, the text of an XML document, or of a graph in the syntax of
        ``media_type`` (docs/graphs.md); returns what became of it.

        Accepted means that the root broker has it on disk.  When this is cancelled, or the process
        dies, the message may be published or not.

        ``key`` names the message among those of the source, in any process.  Once a message is
        accepted, to publish again with the same key publishes nothing, and gives the number that
        it has (``Outcome.is_known``).  So whoever does not know whether a message was accepted
        publishes it again.  The root broker remembers keys for a day (``publish_key_age_s``), and
        so many (``publish_keys_max``); it does not look whether the message is the same.

        ``headers``: text by name that goes with the message from broker to broker; by
        ``traceparent`` it is traced (docs/operating.md).
        """
        number = await self._send(data, media_type, key, headers)
        return number if isinstance(number, Outcome) else await self._outcome(number)

    async def answer(self, handler: Handler, *, at_once: int = ANSWERS_AT_ONCE) -> None:
        """Answer questions to this source (``NetworkClient.ask_source``) until the block ends, at
        most ``at_once`` of them at a time.

        The handler returns the answer.  The asker gets the fault of a Refusal that the handler
        raises; of any other error it gets "source-failed", and the log of this process has the
        error.  The root broker has checked that the asker may see messages of the source, and, for
        a question that ``writes``, may publish as the source.  A question is asked once; its
        answer is lost with a connection, so a program may ask it again.
        """
        connection = self._open_connection()
        if self._answering is not None:
            raise UsageError(f"{self.id} is answering already")
        slots = anyio.Semaphore(at_once)
        connection.answers = True
        try:
            with refusals(), anyio.CancelScope() as self._answering:
                async with background_tasks(anyio.create_task_group()) as tasks:
                    while True:
                        await slots.acquire()
                        by, asked = await connection.next_question()
                        tasks.start_soon(self._answer, handler, slots, by, asked)
        finally:
            connection.answers, self._answering = False, None

    async def _answer(
        self, handler: Handler, slots: anyio.Semaphore, by: int, asked: SourceAsked
    ) -> None:
        answer, fault = b"", {}
        try:
            answer = await handler(asked.asker, asked.writes, asked.payload)
            if not isinstance(answer, bytes):
                raise TypeError(f"an answer is bytes, not {type(answer).__name__}")
        except Refusal as refusal:
            fault = refusal.fault.facts()
        except Exception:
            log.exception("%s has failed at a question of %s", self.id, asked.asker or "a client")
            answer = b""
            fault = Fault("source-failed", f"{self.id} has failed; its log says how").facts()
        finally:
            slots.release()
        if self._connection is not None:
            self._connection.answer(by, SourceAnswered(asked.number, fault, answer))

    @property
    def accepted_through(self) -> int:
        """How many messages of this ``publisher`` the root broker has taken, in this run or in one
        before; known from the begin of the block.  UsageError of a publisher that was given none,
        and so has no runs before.

        All these are settled: accepted or refused, none is to be published again.  So a publisher
        that counts its messages 1, 2, 3, ... and uses no keys goes on with the next one.
        """
        connection = self._open_connection()
        if self._publisher.startswith(RUN):
            raise UsageError("accepted_through is of a publisher: write DataSource(publisher=NAME)")
        return connection.accepted_through

    @property
    def journalled(self) -> int:
        """How many messages were ever given to the journal; so whoever publishes a sequence of them
        goes on behind so many."""
        return 0 if self._journal is None else self._journal.count

    async def publish_all(
        self, messages: Iterable[Publication] | AsyncIterable[Publication]
    ) -> AsyncGenerator[Outcome, None]:
        """Publish many without waiting for each; yields their outcomes in order.  One that is not
        XML comes with its media type, and one with a publish key with both."""
        pipeline = Pipeline(self)
        async with aclosing(iterate(messages)) as all_messages:
            async for message in all_messages:
                for outcome in await pipeline.send(message):
                    yield outcome
        for outcome in await pipeline.finish():
            yield outcome

    async def _send(
        self,
        data: bytes,
        media_type: str = XML,
        key: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> int | Outcome:
        """Its number, or the outcome at once for a message that no frame can carry."""
        _check_is_bytes(data)
        if self._journal is None:
            return await self._send_now(data, media_type, key, headers)
        self._open_connection()
        try:
            headers = checked_headers(headers or {})
        except ProtocolError as error:
            return Outcome.refused(error.fault)
        if not self._journal.has_room(data):
            self._settle_heard()
        entry, key = await self._journal.add(data, media_type, key, headers)
        return await self._send_entry(entry, data, media_type, key, headers)

    async def _send_entry(
        self,
        entry: int,
        data: bytes,
        media_type: str,
        key: str,
        headers: Mapping[str, str] | None = None,
    ) -> int | Outcome:
        assert self._journal is not None
        pending = await self._send_now(data, media_type, key, headers)
        if isinstance(pending, Outcome):
            self._journal.settle(entry)
        else:
            self._entries[pending] = entry
        return pending

    async def _send_now(
        self, data: bytes, media_type: str, key: str, headers: Mapping[str, str] | None
    ) -> int | Outcome:
        known_by = digest(key) if key else b""
        try:
            data, form = as_published(data, media_type)
            with refusals():
                return await self._open_connection().publish(data, form, known_by, headers)
        except (MessageRefused, ProtocolError) as error:
            return Outcome.refused(error.fault)

    async def _resume(self) -> None:
        """Publish what a crash has left in the journal."""
        self.resumed, self._entries = [], {}
        left = () if self._journal is None else self._journal.take_left()
        sent: deque[tuple[str, int | Outcome]] = deque()
        for number, entry in left:
            data = entry.data or b""
            how = entry.media_type, entry.key, entry.headers or None
            pending = await self._send_entry(number, data, *how)
            sent.append((entry.key, pending))
            if len(sent) == PIPELINE_MESSAGES:
                key, pending = sent.popleft()
                self.resumed.append((key, await self._outcome(pending)))
        self.resumed += [(key, await self._outcome(pending)) for key, pending in sent]

    def _settle_heard(self) -> None:
        """Of what nobody waits for any more, as they were cancelled."""
        for number in [number for number in self._entries if self._is_settled(number)]:
            self._settle(number)

    def _settle(self, number: int) -> None:
        entry = self._entries.pop(number, None)
        if entry is not None and self._journal is not None:
            self._journal.settle(entry)

    async def _outcome(self, pending: int | Outcome) -> Outcome:
        if isinstance(pending, Outcome):
            return pending
        with refusals():
            number, told = await self._open_connection().outcome(pending)
        self._settle(pending)
        if told is None:
            return Outcome(number, True)
        self._told += 1
        if isinstance(told, AcceptedBefore):
            return Outcome(told.first, True, is_known=True)
        return Outcome(number, False, told.code, told.reason, told.line, told.column)

    def _is_settled(self, pending: int | Outcome) -> bool:
        return isinstance(pending, Outcome) or self._open_connection().is_settled(pending)

    async def _follow(self, connection: ClientConnection) -> None:
        """As long as the root broker is away, look whether it is another by now."""
        with suppress(RemoteError):
            while True:
                await connection.wait_lost()
                while not connection.connected:
                    with anyio.move_on_after(LOOK_SECONDS):
                        await connection.wait_connected()
                    if not connection.connected:
                        await self._look(connection)

    async def _look(self, connection: ClientConnection) -> None:
        with anyio.move_on_after(LOST_SECONDS), suppress(UserError):
            async with RegistrationClient(self._registration) as client:
                info = await client.source(self.id)
            if info.ready and info.root != self.root:
                self._info = info
                connection.go_to(f"broker/{info.root}", addresses_of(info.address))

    def _open_connection(self) -> ClientConnection:
        if self._connection is None:
            raise RuntimeError(
                "this DataSource has no connection outside of its block; write "
                "async with source: and use it inside"
            )
        return self._connection


class Pipeline:
    """Messages of one source that are published before the outcome of the one before is known.

    Outcomes come out in the order in which the messages went in.
    """

    def __init__(self, source: DataSource, messages_max: int = PIPELINE_MESSAGES) -> None:
        """At most ``messages_max`` outcomes are open; ``send`` waits for the oldest then."""
        self._source = source
        self._messages_max = messages_max
        self._pending: deque[int | Outcome] = deque()

    async def send(self, message: Publication) -> list[Outcome]:
        """Publish one message; returns the outcomes that are known by now."""
        _check_is_bytes(message)
        parts = (message,) if isinstance(message, bytes) else message
        self._pending.append(await self._source._send(*parts))
        known = []
        while self._pending and (
            len(self._pending) >= self._messages_max or self._source._is_settled(self._pending[0])
        ):
            known.append(await self._source._outcome(self._pending.popleft()))
        return known

    async def finish(self) -> list[Outcome]:
        """Wait for all that are open."""
        rest = [await self._source._outcome(pending) for pending in self._pending]
        self._pending.clear()
        return rest


def _check_is_bytes(message: object) -> None:
    if isinstance(message, str):
        raise TypeError(
            "a message is bytes, as in a file that begins with its encoding; of a str write "
            "text.encode()"
        )


async def iterate(
    messages: Iterable[Publication] | AsyncIterable[Publication],
) -> AsyncGenerator[Publication, None]:
    if isinstance(messages, AsyncIterable):
        async for message in messages:
            yield message
    else:
        for message in messages:
            yield message
