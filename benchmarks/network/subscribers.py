"""``python -m benchmarks.network.subscribers``: the users of an Onyx network, in one process.

Each profile's results are taken by ``User.results``, as any program would.  The job is
``{"feed": FILE, "registration": ADDRESS, "ids": [...]}``; ``{"ready": true}`` answers it.  Then::

    {"connect": true}   connects all; answered when they are
    {"await": 500}      answered when so many deliveries have come, since the start of the process:
                        the time of the last of them, and the processor time of this process
    {"report": true}    the numbers of the messages that each profile was delivered, in order, and
                        what was wrong with the bytes ("": nothing)

Invariant: what is compared is every byte of every result.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import lxml.etree
import trio

from benchmarks.network.feed import Feed
from benchmarks.network.helper import questions, say
from benchmarks.network.processor import allow_many_files
from onyx import Delivery, NetworkUnreachable, Results, User

_AGAIN_SECONDS = 0.1


class Subscribers:
    """What the users have been given so far; ``wrong`` is the first wrong result."""

    def __init__(self, feed: Feed, ids: Sequence[str]) -> None:
        self.numbers: list[list[int]] = [[] for _ in ids]
        self.count = 0
        self.last = 0.0
        self.wrong = ""
        self._messages = feed.messages
        self._forms: dict[int, bytes] = {}  # results that lxml has found to be the same document
        self._source = ""
        self._awaited = 0
        self._came = trio.Event()

    def take(self, place: int, delivery: Delivery) -> None:
        """One delivery of the profile at a place."""
        self.numbers[place].append(delivery.number)
        self._source = self._source or delivery.source
        if len(delivery.results) != 1 or not self._is_right(delivery):
            self.wrong = self.wrong or f"message {delivery.number}: {delivery.results!r:.500}"
        self.count += 1
        self.last = time.perf_counter()
        if self.count == self._awaited:
            self._came.set()

    async def wait(self, count: int) -> None:
        """Until so many have come."""
        self._awaited = count
        self._came = trio.Event()
        if self.count < count:
            await self._came.wait()

    def _is_right(self, delivery: Delivery) -> bool:
        place = (delivery.number - 1) % len(self._messages)
        message, result = self._messages[place], delivery.results[0]
        if delivery.source != self._source:
            return False
        if result in (message, self._forms.get(place)):
            return True
        if _canonical(result) != _canonical(message):
            return False
        self._forms[place] = result
        return True


def _canonical(text: bytes) -> bytes:
    written: bytes = lxml.etree.tostring(lxml.etree.fromstring(text), method="c14n")
    return written


async def main() -> None:
    """Serves until there are no questions any more."""
    allow_many_files()
    lines = questions()
    job = await lines.next()
    ids = job["ids"]
    subscribers = Subscribers(Feed.read(job["feed"]), ids)
    say({"ready": True})
    async with User(job["registration"]) as user, trio.open_nursery() as nursery:
        while True:
            try:
                question = await lines.next()
            except EOFError:
                break
            await _answer(question, subscribers, user, ids, nursery)
        nursery.cancel_scope.cancel()


async def _answer(
    question: Mapping[str, Any],
    subscribers: Subscribers,
    user: User,
    ids: Sequence[str],
    nursery: trio.Nursery,
) -> None:
    if "connect" in question:
        await _connect(subscribers, user, ids, nursery)
        say({"connected": len(ids)})
    elif "await" in question:
        await subscribers.wait(question["await"])
        say({"at": subscribers.last, "processor_seconds": time.process_time()})
    else:
        say({"numbers": subscribers.numbers, "wrong": subscribers.wrong})


async def _connect(
    subscribers: Subscribers, user: User, ids: Sequence[str], nursery: trio.Nursery
) -> None:
    places = {profile: place for place, profile in enumerate(ids)}
    results = user.results(*ids)
    await _connected(results)

    async def follow() -> None:
        async for delivery in results:
            subscribers.take(places[delivery.profile], delivery)
            results.acknowledge_nowait()

    nursery.start_soon(follow)


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
