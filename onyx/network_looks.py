"""Looking at a network again and again, over connections that are kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, TypeVar

import trio

from onyx.errors import NetworkUnreachable, RequestFailed, UserError
from onyx.network_view import DEAREST_MAX, Answer, NetworkView, decoded, view_of
from onyx.registration_client import NetworkClient, RegistrationClient
from overlay import verbs
from overlay.statistics import BrokerStatistics

T = TypeVar("T")

COLLECTIONS = ("links.journals", "data.sources", "data.source_bytes")
"""Of which a summary has the first; the rest is asked for page by page."""
ANSWER_SECONDS = 3.0  # after which a broker does not answer


async def watch_network(
    registration: str, seconds: float, take: Callable[[NetworkView], None]
) -> None:
    """``take`` a view every so many seconds, until cancelled; the first when every broker was asked
    twice.  NetworkUnreachable when the registration service does not answer; RequestFailed where
    each broker refuses to."""
    watches: dict[str, _Watch] = {}
    async with RegistrationClient(registration) as client, trio.open_nursery() as nursery:
        while True:
            said = await client.ask(verbs.Network())
            for broker, address in said.brokers.items():
                if broker not in watches:
                    watch = watches[broker] = _Watch(address, seconds)
                    nursery.start_soon(watch.run)
            with trio.move_on_after(ANSWER_SECONDS + seconds):
                for broker in said.brokers:
                    if broker not in said.down:
                        await watches[broker].asked_twice.wait()
            refused = {b: why for b in said.brokers if (why := watches[b].refused) is not None}
            if refused and len(refused) == len(said.brokers):
                raise next(iter(refused.values()))
            now = trio.current_time()
            pairs = {broker: watches[broker].pair(now) for broker in said.brokers}
            take(view_of(pairs, said.down, refused))
            await trio.sleep(seconds)


async def ask_brokers(
    brokers: Mapping[str, str],
    ask: Callable[[NetworkClient], Awaitable[T]],
    but: Collection[str] = (),
    seconds: float = float("inf"),
    silent: type[UserError] = NetworkUnreachable,
    why: dict[str, UserError] | None = None,
) -> dict[str, T | None]:
    """What each answers, all asked at the same time, ``but`` those that do not run; None of one
    that does not answer, within ``seconds`` or but for a ``silent`` error, and ``why``."""
    found: dict[str, T | None] = dict.fromkeys(brokers)
    reasons = {} if why is None else why

    async def hear(broker: str, address: str) -> None:
        try:
            with trio.move_on_after(seconds):
                async with NetworkClient(address) as client:
                    found[broker] = await ask(client)
        except silent as error:
            reasons[broker] = error

    async with trio.open_nursery() as nursery:
        for broker, address in brokers.items():
            if broker not in but:
                nursery.start_soon(hear, broker, address)
    return found


async def whole(client: NetworkClient, said: Mapping[str, Any]) -> Mapping[str, Any]:
    """The summary that a process has said of itself, with the whole of COLLECTIONS."""
    for path in COLLECTIONS:
        if path not in said.get("cut", {}):
            continue
        entries: dict[str, object] = {}
        first: int | None = 0
        while first is not None:
            page, first = await client.statistics_of(path, first=first)
            entries |= dict(page)
        section, _, name = path.partition(".")
        said = {**said, section: {**said[section], name: entries}}
    return said


class _Watch:
    """One broker, asked every so many seconds."""

    def __init__(self, address: str, seconds: float) -> None:
        self.asked_twice = trio.Event()
        self.refused: RequestFailed | None = None
        self._address = address
        self._seconds = seconds
        self._before: Answer | None = None
        self._now: Answer | None = None

    def pair(self, now: float) -> tuple[Answer, Answer] | None:
        """The last two answers, None when there has been none for some time."""
        if self._now is None or now - self._now.time > ANSWER_SECONDS + self._seconds:
            return None
        return self._before or self._now, self._now

    async def run(self) -> None:
        while True:
            try:
                async with NetworkClient(self._address, patience_seconds=0.0) as client:
                    while True:
                        await self._ask(client)
                        await trio.sleep(self._seconds)
            except UserError as error:
                if isinstance(error, RequestFailed) and error.code == "not-authorised":
                    self.refused = error
                    self.asked_twice.set()
                await trio.sleep(self._seconds)

    async def _ask(self, client: NetworkClient) -> None:
        said = await whole(client, await client.ask(verbs.Statistics()))
        asked = await client.ask(verbs.ProfileDearest(count=DEAREST_MAX))
        answer = decoded(said, BrokerStatistics)
        self.refused = None
        self._before = self._now
        self._now = Answer(trio.current_time(), answer, asked.profiles)
        if self._before is not None:
            self.asked_twice.set()
