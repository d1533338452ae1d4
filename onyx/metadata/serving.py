"""serve: a metadata provider in a network, as the source of its name.

::

    questions ─┬> one thread: provider ──> rows, filter       (a question at a time)
               └> another: what they say, to read ──> messages, published in order

A message is published until its root broker has taken it, and forgotten then.  One that a crash let
through twice has the same key, its digest, and is taken once.  A store that fails, or is another
process's by now, ends it; one that is full does not.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from hashlib import sha256
from typing import TypeVar

import anyio
from anyio.abc import TaskGroup

from formats.errors import Fault, Refusal
from formats.media_types import XML
from onyx.data_source import DataSource
from onyx.metadata.one_thread import OneThread
from onyx.metadata.provider import MetadataProvider
from onyx.metadata.requests import answered, only_reads, read_question
from overlay.link.errors import DiskFull, StoreError
from overlay.link.store import SWITCH_SECONDS
from registration.metadata.change_messages import NAMESPACE
from registration.metadata.documents import MetadataRefused
from registration.metadata.provider_reader import ProviderReader

T = TypeVar("T")
PROVIDER_BASE = NAMESPACE  # the base of its source, by which others know that it is a provider
AT_ONCE = 256  # messages published before the first outcome is known
LOOK_SECONDS = 1.0  # at messages to be published, and so at whose the rows are

log = logging.getLogger("onyx.process")


class Serving:
    """``source`` is open, and of nobody else."""

    def __init__(self, source: DataSource, provider: MetadataProvider) -> None:
        self._source = source
        self._provider = provider
        self._in_turn = OneThread()
        self._reading = OneThread()
        self._more = anyio.Event()
        self._failure: StoreError | None = None

    async def run(self) -> None:
        """Answer and publish until it is cancelled, or the source is closed."""
        sys.setswitchinterval(SWITCH_SECONDS)
        with self._provider.beside() as self._beside:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._publish, tasks)
                await self._source.answer(self.answer)
                tasks.cancel_scope.cancel()

    async def answer(self, asker: str, writes: bool, body: bytes) -> bytes:
        question = read_question(body)
        if question.writes and not writes:
            raise MetadataRefused("the question writes, and was not asked so")
        try:
            if only_reads(type(question)):
                answer = await self._read(question.carry_out, asker)
            else:
                answer = await self._in_turn(question.carry_out, self._provider, asker)
                self._more.set()
            self._provider.check()
        except DiskFull as error:
            raise MetadataRefused(Fault("disk-full", str(error))) from None
        except StoreError as error:
            self._failure = error
            self._more.set()
            raise
        return answered(answer)

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
                async for outcome in self._source.publish_all(publications):
                    if not outcome.accepted:
                        raise Refusal(outcome.fault)
                number = messages[-1][0]
                tasks.start_soon(self._forget, number)
            with anyio.move_on_after(LOOK_SECONDS):
                await self._more.wait()
            self._provider.check()
        raise self._failure

    async def _forget(self, number: int) -> None:
        try:
            await self._in_turn(self._provider.published, number)
        except DiskFull as error:
            log.warning("%s; it is tried again with the next messages", error)
