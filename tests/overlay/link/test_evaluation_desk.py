"""A node goes on while a profile is evaluated."""

from __future__ import annotations

import trio

from formats.limits import DEFAULT_LIMITS
from formats.text import parse_text
from overlay.link.events import AskEvaluation, Evaluated, Event
from overlay.link.node import EvaluationDesk
from tests.yfilter.hostile_profiles import HOSTILE, MESSAGE
from yfilter.late_evaluation import question_about


def asked(key: str, profile: str) -> AskEvaluation:
    return AskEvaluation(key, question_about(profile, parse_text(MESSAGE), DEFAULT_LIMITS, 0.05))


async def test_questions_are_answered_in_their_order_and_nobody_waits() -> None:
    send, receive = trio.open_memory_channel[Event](10)
    desk = EvaluationDesk(lambda events: [send.send_nowait(event) for event in events] and None)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(desk.run)
        for key, profile in (("costly", HOSTILE["pairs that never sum"]), ("good", "/a[v = 7]")):
            desk.ask_nowait(asked(key, profile))
        found = []
        for _ in range(2):
            event = await receive.receive()
            assert isinstance(event, Evaluated)
            found.append((event.key, event.answer.results, event.answer.exceeded is not None))
        assert found == [("costly", (), True), ("good", (MESSAGE,), False)]
        desk.ask_nowait(asked("last", HOSTILE["pairs that never sum"]))
        await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()  # also while one is being answered
