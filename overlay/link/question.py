"""Questions: the requests of a client that are not answered yet."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from overlay.link.frames import Response


class Question:
    """PERF: each has an event of its own, for there may be hundreds (``benchmarks network``,
    registering)."""

    def __init__(self) -> None:
        self.answer: Response | None = None
        self.changed = trio.Event()


class Questions:
    """By the id of the request."""

    def __init__(self) -> None:
        self._open: dict[str, Question] = {}

    @asynccontextmanager
    async def asked(self, request: str) -> AsyncIterator[Question]:
        """A question for as long as it is asked.  Who asks the same meanwhile has to wait until
        then, as an answer says no more than the id."""
        while (other := self._open.get(request)) is not None:
            await other.changed.wait()
            await trio.lowlevel.checkpoint()  # whoever asked takes the answer first
        question = self._open[request] = Question()
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
