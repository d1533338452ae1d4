"""SchemaDesk: what cores ask about schemas, answered one after the other by a process of its own.

Nobody waits for it: a core is told with an event.  A schema by which a message took more than
SLOW_SECONDS is asked about in another process, for so long, with the others that are as slow: whose
messages are quick waits for those once.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import trio

from formats.schema import Schema
from formats.schema_questions import MessagesChecked, ReadSchema
from formats.schema_worker import SchemaWorker
from overlay.link.events import AskSchemaWorker, Event, SchemaAnswered

SLOW_SECONDS = 0.1  # of processor time, of one question
SLOW_FOR = 60.0


class SchemaDesk:
    """``ask_nowait``; ``run`` answers through ``tell``."""

    def __init__(self, tell: Callable[[list[Event]], None]) -> None:
        self._tell = tell
        self._slow: dict[Schema, float] = {}  # until when
        # Of those that are not, and that are; each has a process.
        self._quick, self._quick_asked = trio.open_memory_channel[AskSchemaWorker](inf)
        self._held_up, self._held_up_asked = trio.open_memory_channel[AskSchemaWorker](inf)

    def ask_nowait(self, action: AskSchemaWorker) -> None:
        question = action.question
        is_slow = (
            not isinstance(question, ReadSchema)
            and self._slow.get(question.schema, 0.0) > trio.current_time()
        )
        (self._held_up if is_slow else self._quick).send_nowait(action)

    async def run(self) -> None:
        """Until cancelled; a process is started when there is something to ask."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._answer, self._quick_asked)
            nursery.start_soon(self._answer, self._held_up_asked)

    async def _answer(self, lane: trio.MemoryReceiveChannel[AskSchemaWorker]) -> None:
        worker = SchemaWorker()
        try:
            async for asked in lane:
                found = await trio.to_thread.run_sync(
                    worker.ask, asked.question, abandon_on_cancel=True
                )
                if isinstance(found, MessagesChecked) and found.seconds > SLOW_SECONDS:
                    assert not isinstance(asked.question, ReadSchema)
                    self._note_slow(asked.question.schema)
                self._tell([SchemaAnswered(asked.key, found)])
        finally:
            worker.close()

    def _note_slow(self, schema: Schema) -> None:
        now = trio.current_time()
        self._slow = {other: until for other, until in self._slow.items() if until > now}
        self._slow[schema] = now + SLOW_FOR
