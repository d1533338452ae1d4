"""``python -m benchmarks.network.client``: takes results one at a time, by one of the interfaces.

The job is ``{"way": "onyx", "aio" or "blocking", "registration": "host:port", "profile": id,
"count": deliveries}``; the answer has the seconds of processor time that all but the first took,
and the results.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import trio

from benchmarks.network.helper import questions, say
from onyx import User, aio, blocking

Taken = tuple[float, list[bytes]]


async def _take(user: User, profile: str, count: int) -> Taken:
    async with user:
        results = user.results(profile)
        found = [(await anext(results)).results]
        began = time.process_time()
        for _ in range(count - 1):
            found.append((await anext(results)).results)
        return time.process_time() - began, [one for each in found for one in each]


def _take_blocking(registration: str, profile: str, count: int) -> Taken:
    with blocking.User(registration, "benchmark") as user:
        results = user.results(profile)
        found = [next(results).results]
        began = time.process_time()
        for _ in range(count - 1):
            found.append(next(results).results)
        return time.process_time() - began, [one for each in found for one in each]


def _on_asyncio(take: Callable[..., Awaitable[Taken]], *arguments: object) -> Taken:
    async def run() -> Taken:
        return await take(*arguments)

    return asyncio.run(run())


def main() -> None:
    """One job."""
    job = trio.run(lambda: questions().next())
    registration, what = job["registration"], (job["profile"], job["count"])
    if job["way"] == "blocking":
        seconds, found = _take_blocking(registration, *what)
    elif job["way"] == "aio":
        seconds, found = _on_asyncio(_take, aio.User(registration, "benchmark"), *what)
    else:
        seconds, found = trio.run(_take, User(registration, "benchmark"), *what)
    say({"seconds": seconds, "results": [one.decode() for one in found]})


if __name__ == "__main__":
    main()
