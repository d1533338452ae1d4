"""Takers: whoever takes results, users of Onyx or of another service, asked from this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import trio

from benchmarks.benchmark import WrongAnswers
from benchmarks.network.helper import Helper, helper
from benchmarks.network.sizes import Sizes

_SURPLUS_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class Taken:
    """``at``: when the last delivery came (``time.perf_counter``); ``processor_seconds`` of the
    takers' process since its start."""

    at: float
    processor_seconds: float


class Takers:
    """A process that takes results."""

    def __init__(self, process: Helper, seconds: float) -> None:
        """``seconds`` for whatever is awaited."""
        self._process = process
        self._seconds = seconds

    async def connect(self) -> None:
        """All of them."""
        await self._ask({"connect": True}, "not all could connect")

    async def wait(self, count: int) -> Taken:
        """Until so many deliveries have come, in all."""
        answer = await self._ask({"await": count}, f"not all of {count:,} deliveries came")
        return Taken(answer["at"], answer["processor_seconds"])

    async def check(self, expected: Sequence[Sequence[int]]) -> int:
        """Every delivery: which messages, in which order, and each byte.  How many; WrongAnswers.

        Waits a moment, for what might come too much.
        """
        await trio.sleep(_SURPLUS_SECONDS)
        answer = await self._ask({"report": True}, "no report of what came")
        if answer["wrong"]:
            raise WrongAnswers(f"a wrong result: {answer['wrong']}")
        compare(expected, answer["numbers"])
        return sum(map(len, expected))

    async def _ask(self, question: dict[str, object], otherwise: str) -> Any:
        with trio.move_on_after(self._seconds):
            return await self._process.ask(question)
        raise WrongAnswers(f"{otherwise} within {self._seconds:g} s")


def compare(expected: Sequence[Sequence[int]], numbers: Sequence[Sequence[int]]) -> None:
    """WrongAnswers unless each was delivered what was expected, in this order."""
    for place, (wanted, came) in enumerate(zip(expected, numbers, strict=True)):
        if list(wanted) == list(came):
            continue
        lost, more = len(set(wanted) - set(came)), len(set(came) - set(wanted))
        doubled = len(came) - len(set(came))
        raise WrongAnswers(
            f"profile {place}: of {len(wanted)} deliveries {lost} are lost, {doubled} came more "
            f"than once, {more} should not have come; else the order is wrong"
        )


@asynccontextmanager
async def onyx_takers(
    feed: str, registration: str, ids: Sequence[str], sizes: Sizes
) -> AsyncIterator[Takers]:
    """Users who take the results of these profiles, shared out to them; not connected yet."""
    users = min(sizes.users, len(ids))
    job = {"feed": feed, "registration": registration, "ids": ids, "users": users}
    async with helper("benchmarks.network.subscribers", job) as process:
        await process.answer()
        yield Takers(process, sizes.seconds)


@asynccontextmanager
async def plain_takers(
    feed: str, protocol: str, port: int, number: int, seconds: float
) -> AsyncIterator[Takers]:
    """So many subscribers of a service that speaks a protocol of ``PROTOCOLS``."""
    job = {"feed": feed, "protocol": protocol, "port": port, "number": number}
    async with helper("benchmarks.network.plain_subscribers", job) as process:
        await process.answer()
        yield Takers(process, seconds)
