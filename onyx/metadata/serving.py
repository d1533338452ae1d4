"""serve: a metadata provider in a network, as the source of its name.

::

    questions ──> one thread: provider ──> rows, filter       (a question at a time)
                                  └──> messages ──> published in order, the number as key

A message is published until its root broker has taken it, and forgotten then.  One that a crash let
through twice has the same key and is taken once.
"""

from __future__ import annotations

import anyio

from formats.errors import Refusal
from formats.media_types import XML
from onyx.data_source import DataSource
from onyx.metadata.one_thread import OneThread
from onyx.metadata.requests import answered, read_question
from registration.metadata.documents import MetadataRefused
from registration.metadata.provider import Provider

AT_ONCE = 256  # messages published before the first outcome is known


class Serving:
    """``source`` is open, and of nobody else."""

    def __init__(self, source: DataSource, provider: Provider) -> None:
        self._source = source
        self._provider = provider
        self._in_turn = OneThread()
        self._more = anyio.Event()

    async def run(self) -> None:
        """Answer and publish until it is cancelled, or the source is closed."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._publish)
            await self._source.answer(self.answer)
            tasks.cancel_scope.cancel()

    async def answer(self, asker: str, writes: bool, body: bytes) -> bytes:
        question = read_question(body)
        if question.writes and not writes:
            raise MetadataRefused("the question writes, and was not asked so")
        answer = await self._in_turn(question.carry_out, self._provider, asker)
        self._more.set()
        return answered(answer)

    async def _publish(self) -> None:
        while True:
            self._more = anyio.Event()
            while messages := await self._in_turn(self._provider.outbox, AT_ONCE):
                publications = [(body, XML, f"{number}") for number, body in messages]
                async for outcome in self._source.publish_all(publications):
                    if not outcome.accepted:
                        raise Refusal(outcome.fault)
                await self._in_turn(self._provider.published, messages[-1][0])
            await self._more.wait()
