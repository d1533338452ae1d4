"""serve: a metadata provider in a network, as the source of its name.

::

    questions ─┬> one thread: provider ──> rows, filter       (a question at a time)
               └> another: what they say, to read ──> messages, published in order

A message is published until its root broker has taken it, and forgotten then.  One that a crash let
through twice has the same key, its digest, and is taken once.  One that the broker refuses is left
out: a repository that misses it asks for the difference.  A store that fails, or is another
process's by now, ends it; one that is full does not.

A member of a backbone first asks the others what has changed while it was away: until then nobody
writes.  It passes on what another member is the home of.
"""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Annotated, TypeVar

import anyio
import msgspec
from anyio.abc import TaskGroup
from msgspec import Struct, field

from formats.errors import Fault, Refusal
from formats.media_types import XML
from onyx.data_source import DataSource
from onyx.errors import UserError
from onyx.metadata.following import Following, asking
from onyx.metadata.one_thread import OneThread
from onyx.metadata.provider import MetadataProvider
from onyx.metadata.requests import MovePrefix, Question, answered, only_reads, read_question
from overlay.link.errors import DiskFull, StoreError
from overlay.link.histogram import Histogram
from overlay.link.store import SWITCH_SECONDS
from overlay.statistics import counter, gauge
from registration.metadata.backbone import NotHome
from registration.metadata.change_messages import NAMESPACE
from registration.metadata.documents import MetadataRefused
from registration.metadata.provider_reader import ProviderReader, ProviderStatus

T = TypeVar("T")
PROVIDER_BASE = NAMESPACE  # the base of its source, by which others know that it is a provider
GAUGE_SECONDS = 5.0  # between two looks at what the provider has, for its metrics
AT_ONCE = 256  # messages published before the first outcome is known
JOIN_SECONDS = 5.0  # until joining or following others is tried again
LOOK_SECONDS = 1.0  # at messages to be published, and so at whose the rows are

log = logging.getLogger("onyx.process")


class ProviderCounts(Struct):
    """Of a provider since its process began; ``has``: at the last look."""

    has: ProviderStatus = field(default_factory=ProviderStatus)
    questions: Annotated[
        Counter[str], counter("Questions, by their kind.", "metadata_questions", "ask")
    ] = field(default_factory=Counter)
    refused: Annotated[
        Counter[str], counter("Questions that were refused.", "metadata_refused", "code")
    ] = field(default_factory=Counter)
    seconds: Annotated[
        Histogram, gauge("From when a question came until its answer.", "metadata_answer")
    ] = field(default_factory=Histogram)


class Serving:
    """``source`` is open, and of nobody else."""

    def __init__(
        self,
        source: DataSource,
        provider: MetadataProvider,
        registration: str = "",
        *,
        member: str = "",
        prefixes: Sequence[str] = (),
    ) -> None:
        """``registration``: where the registration service is, for a provider that others may join;
        ``member``: one that it joins, as the home of these ``prefixes``."""
        self.source = source
        self.provider = provider
        self._registration = registration
        self._joins = member, prefixes
        self._in_turn = OneThread()
        self._reading = OneThread()
        self._more = anyio.Event()
        self._failure: StoreError | None = None
        self._ask = asking(registration)
        self._following = Following(provider, self._in_turn, self._ask, self._tell)
        self._is_ready, self._has_members = anyio.Event(), anyio.Event()
        self.counts = ProviderCounts()
        if not member and not provider.backbone.members:
            self._is_ready.set()

    async def look(self) -> None:
        """Keep what ``counts`` say that it has, until it is cancelled."""
        while True:
            await self.recount()
            await anyio.sleep(GAUGE_SECONDS)

    async def recount(self) -> None:
        """Look once, where something may have changed."""
        counts = self.counts
        if self.provider.revision != counts.has.revision or counts.has.waiting:
            counts.has = await self._in_turn(self.provider.status)

    async def run(self) -> None:
        """Answer and publish until it is cancelled, or the source is closed."""
        sys.setswitchinterval(SWITCH_SECONDS)
        with self.provider.beside() as self._beside:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._publish, tasks)
                tasks.start_soon(self._follow)
                await self.source.answer(self.answer)
                tasks.cancel_scope.cancel()

    async def answer(self, asker: str, writes: bool, body: bytes) -> bytes:
        began = anyio.current_time()
        try:
            question = read_question(body)
            self.counts.questions[str(question.__struct_config__.tag)] += 1
            if question.writes and not writes:
                raise MetadataRefused("the question writes, and was not asked so")
            if question.writes:
                await self._is_ready.wait()
            if isinstance(question, MovePrefix) and question.is_lost:
                await self._following.recover(question.prefix)
            return answered(await self._answer(question, asker))
        except Refusal as refusal:
            self.counts.refused[refusal.fault.code] += 1
            raise
        finally:
            self.counts.seconds.note(anyio.current_time() - began)

    async def _answer(self, question: Question[T], asker: str) -> T:
        try:
            self.provider.check()
            if only_reads(type(question)):
                answer = await self._read(question.carry_out, asker)
            else:
                answer = await self._in_turn(question.carry_out, self.provider, asker)
                self._tell()
            self.provider.check()
        except NotHome as other:
            if question.is_passed_on or other.home == self.provider.name:
                raise
            return await self._pass_on(other.home, question)
        except DiskFull as error:
            raise MetadataRefused(Fault("disk-full", str(error))) from None
        except StoreError as error:
            self._failure = error
            self._more.set()
            raise MetadataRefused(Fault("source-away", str(error))) from error
        return answer

    def _tell(self) -> None:
        self._more.set()
        if self.provider.backbone.members:
            self._has_members.set()

    async def _pass_on(self, home: str, question: Question[T]) -> T:
        passed = msgspec.structs.replace(question, is_passed_on=True)
        try:
            answer: T = await self._ask(home, passed)
        except UserError as error:
            raise Refusal(error.fault) from None
        return answer

    async def _follow(self) -> None:
        """The other members, from when there are any."""
        member, prefixes = self._joins
        while member:
            try:
                await self._following.join(member)
                break
            except UserError as error:
                log.warning("%s has not taken %s in: %s", member, self.provider.name, error)
            await anyio.sleep(JOIN_SECONDS)
        await self._following.look()
        self._is_ready.set()
        if not self.provider.backbone.members:
            await self._has_members.wait()
        while True:
            try:
                await self._following.run(self._registration, prefixes)
            except* UserError as error:  # others may follow this one all the same
                log.warning("it cannot follow the others: %s", error.exceptions[0])
            await anyio.sleep(JOIN_SECONDS)

    async def _read(self, ask: Callable[..., T], *arguments: object) -> T:
        def read() -> T:
            with self._beside.now() as reader:
                return ask(reader, *arguments)

        return await self._reading(read)

    async def _publish(self, tasks: TaskGroup) -> None:
        number = 0
        while self._failure is None:
            self._more = anyio.Event()
            while messages := await self._read(ProviderReader.outbox, AT_ONCE, number):
                publications = [(body, XML, sha256(body).hexdigest()) for _, body in messages]
                refused = 0
                numbers = (each for each, _ in messages)
                async for outcome in self.source.publish_all(publications):
                    number = next(numbers)
                    if not outcome.accepted:
                        refused += 1
                        log.error("message %d is refused: %s", number, outcome.fault)
                tasks.start_soon(self._forget, number, refused)
            with anyio.move_on_after(LOOK_SECONDS):
                await self._more.wait()
            self.provider.check()
        raise self._failure

    async def _forget(self, number: int, refused: int) -> None:
        try:
            await self._in_turn(self.provider.published, number, refused)
        except DiskFull as error:
            log.warning("%s; it is tried again with the next messages", error)
