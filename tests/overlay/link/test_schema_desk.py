"""A node goes on while a schema is read."""

from __future__ import annotations

import trio

from formats import SchemaRefused
from formats.schema_questions import ReadSchema, SchemaFound
from overlay.link.events import AskSchemaWorker, Event, SchemaAnswered
from overlay.link.schema_desk import SchemaDesk
from tests.formats.test_schema_worker import GOOD, doubling


async def test_questions_are_answered_in_their_order_and_nobody_waits() -> None:
    send, receive = trio.open_memory_channel[Event](10)
    desk = SchemaDesk(lambda events: [send.send_nowait(event) for event in events] and None)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(desk.run)
        desk.ask_nowait(AskSchemaWorker("costly", ReadSchema("d.xsd", doubling(31))))
        desk.ask_nowait(AskSchemaWorker("good", ReadSchema("a.xsd", GOOD)))
        first = await receive.receive()
        assert isinstance(first, SchemaAnswered) and first.key == "costly"
        assert isinstance(first.answer, SchemaRefused)
        assert await receive.receive() == SchemaAnswered("good", SchemaFound("xsd", True))
        desk.ask_nowait(AskSchemaWorker("last", ReadSchema("d.xsd", doubling(31))))
        await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()  # also while one is being answered
