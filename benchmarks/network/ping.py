"""``python -m benchmarks.network.ping``: asks a broker every 20 ms how long an answer takes.

The job is ``{"address": "host:port"}``; after ``{"begin": true}`` it asks, until ``{"end": true}``,
which is answered with all times, in milliseconds.  Each question is asked when it is due, whether
the one before is answered or not, and its time counts from when it was due: a broker that does
nothing else for a while delays all that fall into it.
"""

from __future__ import annotations

import trio

from benchmarks.network.helper import questions, say
from onyx.registration_client import NetworkClient

EVERY_SECONDS = 0.02


async def main() -> None:
    """One round of questions."""
    lines = questions()
    async with NetworkClient((await lines.next())["address"]) as client:
        await client.call("sync")
        say({"ready": True})
        await lines.next()
        times: list[float] = []

        async def ask(due: float) -> None:
            await client.call("sync")
            times.append((trio.current_time() - due) * 1000)

        async with trio.open_nursery() as answers, trio.open_nursery() as asking:

            async def keep_asking() -> None:
                due = trio.current_time()
                while True:
                    answers.start_soon(ask, due)
                    due += EVERY_SECONDS
                    await trio.sleep_until(due)

            asking.start_soon(keep_asking)
            await lines.next()
            asking.cancel_scope.cancel()
        say({"times_ms": times})


if __name__ == "__main__":
    trio.run(main)
