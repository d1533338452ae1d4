"""``python -m benchmarks.network.ping``: asks a broker every 50 ms how long an answer takes.

The job is ``{"address": "host:port"}``; after ``{"begin": true}`` it asks, until ``{"end": true}``,
which is answered with all times, in milliseconds.  The questions are in turn a handshake on a new
connection, a ``sync`` and the broker's status.  Each is asked when it is due, whether those before
are answered or not, and its time counts from when it was due until there is an answer: a broker
that does nothing else for a while delays all that fall into it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from itertools import cycle

import trio

from benchmarks.network.helper import questions, say
from onyx import NetworkUnreachable
from onyx.registration_client import NetworkClient

EVERY_SECONDS = 0.05


async def main() -> None:
    """One round of questions."""
    lines = questions()
    address = (await lines.next())["address"]

    async def shake_hands() -> object:
        while True:
            try:
                async with NetworkClient(address) as another:
                    return another
            except NetworkUnreachable:
                pass  # however long it takes

    async with NetworkClient(address) as client:
        await client.call("sync")
        say({"ready": True})
        await lines.next()
        asked = (shake_hands, lambda: client.call("sync"), lambda: client.call("statistics"))
        say({"times_ms": await _ask(asked, lines.next)})


async def _ask(
    asked: Sequence[Callable[[], Awaitable[object]]], wait_end: Callable[[], Awaitable[object]]
) -> list[float]:
    times: list[float] = []

    async def ask(question: Callable[[], Awaitable[object]], due: float) -> None:
        await question()
        times.append((trio.current_time() - due) * 1000)

    async with trio.open_nursery() as answers, trio.open_nursery() as asking:

        async def keep_asking() -> None:
            due = trio.current_time()
            for question in cycle(asked):
                answers.start_soon(ask, question, due)
                due += EVERY_SECONDS
                await trio.sleep_until(due)

        asking.start_soon(keep_asking)
        await wait_end()
        asking.cancel_scope.cancel()
    return times


if __name__ == "__main__":
    trio.run(main)
