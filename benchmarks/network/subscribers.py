"""``python -m benchmarks.network.subscribers``: the users of an Onyx network, in one process.

Results are taken by ``User.results``, as any program would; the profiles are shared out to so many
users, each of whom has a connection.  The job is ``{"feed": FILE, "registration": ADDRESS,
"ids": [...], "users": N}``; ``{"ready": true}`` answers it.  Then::

    {"connect": true}   connects all; answered when they are
    {"await": 500}      answered when so many deliveries have come, since the start of the process:
                        the time of the last of them, and the processor time of this process
    {"report": true}    the numbers of the messages that each profile was delivered, in order, and
                        what was wrong with the bytes ("": nothing)

Invariant: what is compared is every byte of every result.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AsyncExitStack

import lxml.etree
import trio

from benchmarks.network.feed import Feed
from benchmarks.network.helper import questions, say
from benchmarks.network.processor import allow_many_files
from onyx import Delivery, NetworkUnreachable, Results, User

_AGAIN_SECONDS = 0.1
_AT_ONCE = 20  # that connect


class Subscribers:
    """What the users have been given so far."""

    def __init__(self, feed: Feed, ids: Sequence[str]) -> None:
        self.numbers: list[list[int]] = [[] for _ in ids]
        self.count = 0
        self.last = 0.0
        self._wrong = ""
        self._feed = feed
        # Results that lxml has found to be the same documents, by profile (0: of all) and message.
        self._forms: dict[tuple[int, int], Sequence[bytes]] = {}
        self._source = ""
        self._unchecked: list[tuple[int, str, int, tuple[bytes, ...]]] = []
        self._awaited = 0
        self._came = trio.Event()

    def take(self, place: int, delivery: Delivery) -> None:
        """One delivery of the profile at a place."""
        self.numbers[place].append(delivery.number)
        # Of bytes and numbers, which the collector does not look at.
        self._unchecked.append((place, delivery.source, delivery.number, tuple(delivery.results)))
        self.count += 1
        self.last = time.perf_counter()
        if self.count == self._awaited:
            self._came.set()

    @property
    def wrong(self) -> str:
        """The first wrong result of all that have come."""
        self.check()
        return self._wrong

    def check(self) -> None:
        """What has come since the last time, while nobody looks at the clock."""
        unchecked, self._unchecked = self._unchecked, []
        for place, source, number, results in unchecked:
            self._source = self._source or source
            if source != self._source or not self._is_right(place, number, list(results)):
                self._wrong = self._wrong or f"message {number}: {results!r:.500}"

    async def wait(self, count: int) -> None:
        """Until so many have come."""
        self._awaited = count
        self._came = trio.Event()
        if self.count < count:
            await self._came.wait()

    def _is_right(self, place: int, number: int, results: list[bytes]) -> bool:
        wanted = self._feed.results(place, number)
        key = place if self._feed.answers else 0, number % len(self._feed.messages)
        if results in (wanted, self._forms.get(key)):
            return True
        if list(map(_canonical, results)) != list(map(_canonical, wanted)):
            return False
        self._forms[key] = results
        return True


def _canonical(text: bytes) -> bytes:
    written: bytes = lxml.etree.tostring(lxml.etree.fromstring(text), method="c14n")
    return written


async def main() -> None:
    """Serves until there are no questions any more."""
    allow_many_files()
    lines = questions()
    job = await lines.next()
    subscribers = Subscribers(Feed.read(job["feed"]), job["ids"])
    say({"ready": True})
    async with AsyncExitStack() as stack, trio.open_nursery() as nursery:
        users = [
            await stack.enter_async_context(User(job["registration"])) for _ in range(job["users"])
        ]
        while True:
            try:
                question = await lines.next()
            except EOFError:
                break
            if "connect" in question:
                await _connect(subscribers, users, job["ids"], nursery)
                say({"connected": len(job["ids"])})
            elif "await" in question:
                await subscribers.wait(question["await"])
                say({"at": subscribers.last, "processor_seconds": time.process_time()})
                subscribers.check()
            else:
                say({"numbers": subscribers.numbers, "wrong": subscribers.wrong})
        nursery.cancel_scope.cancel()


async def _connect(
    subscribers: Subscribers, users: Sequence[User], ids: Sequence[str], nursery: trio.Nursery
) -> None:
    places = {profile: place for place, profile in enumerate(ids)}
    left = iter([user.results(*ids[at :: len(users)]) for at, user in enumerate(users)])

    async def follow(results: Results) -> None:
        async for delivery in results:
            subscribers.take(places[delivery.profile], delivery)
            results.acknowledge_nowait()

    async def work() -> None:
        for results in left:
            await _connected(results)
            nursery.start_soon(follow, results)

    async with trio.open_nursery() as connecting:
        for _ in range(_AT_ONCE):
            connecting.start_soon(work)


async def _connected(results: Results) -> None:
    """However long a busy broker takes to answer."""
    while True:
        try:
            await results.connect()
            return
        except NetworkUnreachable:
            await trio.sleep(_AGAIN_SECONDS)


if __name__ == "__main__":
    trio.run(main)
