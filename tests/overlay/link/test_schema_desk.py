"""A node goes on while a schema is read."""

from __future__ import annotations

import trio

from formats import SchemaRefused
from formats.schema import Schema
from formats.schema_questions import CheckMessages, MessagesChecked, ReadSchema, SchemaFound
from overlay.link.events import AskSchemaWorker, Event, SchemaAnswered
from overlay.link.node import SchemaDesk
from tests.formats.test_schema_worker import GOOD, PATTERN, TRIED
from tests.hanging import SAFETY_SECONDS


async def test_questions_are_answered_in_their_order_and_nobody_waits() -> None:
    send, receive = trio.open_memory_channel[Event](10)
    desk = SchemaDesk(lambda events: [send.send_nowait(event) for event in events] and None)
    costly = CheckMessages(Schema("p.xsd", "xsd", PATTERN), (TRIED,))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(desk.run)
        desk.ask_nowait(AskSchemaWorker("costly", costly))
        desk.ask_nowait(AskSchemaWorker("good", ReadSchema("a.xsd", GOOD)))
        first = await receive.receive()
        assert isinstance(first, SchemaAnswered) and first.key == "costly"
        assert isinstance(first.answer, MessagesChecked)
        assert isinstance(first.answer.findings[0], SchemaRefused)
        assert await receive.receive() == SchemaAnswered("good", SchemaFound("xsd"))
        desk.ask_nowait(AskSchemaWorker("last", costly))
        await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()  # also while one is being answered


async def test_a_schema_that_is_slow_waits_for_the_others_that_are() -> None:
    send, receive = trio.open_memory_channel[Event](10)
    desk = SchemaDesk(lambda events: [send.send_nowait(event) for event in events] and None)
    slow, quick = Schema("p.xsd", "xsd", PATTERN), Schema("a.xsd", "xsd", GOOD)
    hostile = AskSchemaWorker("slow", CheckMessages(slow, (TRIED, TRIED)))
    kind = AskSchemaWorker("quick", CheckMessages(quick, (b"<a>1</a>",)))

    async def answers(count: int) -> list[str]:
        found = []
        for _ in range(count):
            event = await receive.receive()
            assert isinstance(event, SchemaAnswered)
            found.append(event.key)
        return found

    async with trio.open_nursery() as nursery:
        nursery.start_soon(desk.run)
        with trio.fail_after(SAFETY_SECONDS):
            for asked in (kind, hostile):
                desk.ask_nowait(asked)
            assert await answers(2) == ["quick", "slow"]
            for asked in (hostile, hostile, kind):
                desk.ask_nowait(asked)
            assert await answers(3) == ["quick", "slow", "slow"]
        nursery.cancel_scope.cancel()
