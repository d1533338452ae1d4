"""The same as ``churn``, in a network of processes on this machine: brokers, registration service,
a source and users, all with their disks and sockets.

Users change their profiles as fast as the network answers (each waits until a change is live),
while a source publishes.  Some profiles stay, and must be given each message that they match, once.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median, quantiles

import trio
from msgspec.structs import replace

from benchmarks.placement.network import make_message, make_profile, make_topology, message_xml
from onyx import DataSource, Results, User, launch
from onyx.registration_client import NetworkClient
from overlay.planning import PlanningOptions

_STAYING = 8  # by urgency, at most 1 to 8
_AT_ONCE = 32  # profiles that are registered at a time
_PATIENCE_SECONDS = 120.0  # until the last result is there


@dataclass(frozen=True, slots=True)
class RealChurnResult:
    """``rate`` changes a second that became live; ``live_ms`` median, 99th percentile; ``missed``
    and ``false`` deliveries to the profiles that stay."""

    rate: float
    live_ms: tuple[float, float]
    messages: int
    delivered: int
    missed: int
    false: int


def real_churn(
    brokers: int, workers: int, messages_a_second: float, seconds: float, seed: int
) -> RealChurnResult:
    """``workers``: changes that are under way at a time."""
    return trio.run(_run, brokers, workers, messages_a_second, seconds, Random(seed))


async def _run(
    brokers: int, workers: int, messages_a_second: float, seconds: float, random: Random
) -> RealChurnResult:
    topology = make_topology(brokers, random)
    anywhere = dict.fromkeys((*topology.broker_ids, "R1"), ("127.0.0.1", 0))
    with tempfile.TemporaryDirectory() as folder:
        topology = replace(
            topology.with_addresses(anywhere),
            data_directory=Path(folder) / "data",
            planning=PlanningOptions(auto=False),  # nothing else runs while something is measured
        )
        async with launch(topology, write_line=lambda line: None) as network:
            registered = await DataSource.register(network.registration, name="news")
            async with registered as source, User(network.registration, "ann") as user:
                run = _Run(source, user, random)
                await run.register(workers)
                return await run.change(messages_a_second, seconds)


class _Run:
    def __init__(self, source: DataSource, user: User, random: Random) -> None:
        self._source = source
        self._user = user
        self._random = random
        self._staying: dict[int, str] = {}  # urgency -> profile
        self._changing: dict[str, str] = {}  # profile -> address of its host broker
        self._took: list[float] = []
        self._urgencies: list[int] = []  # of what was published
        self._got: dict[int, int] = {}

    async def register(self, workers: int) -> None:
        for urgency in range(1, _STAYING + 1):
            text = f"/nitf[body/@urgency <= {urgency}]"
            self._staying[urgency] = (await self._user.add_profile(text)).id
        room = trio.CapacityLimiter(_AT_ONCE)

        async def add() -> None:
            async with room:
                info = await self._user.add_profile(make_profile(self._random))
                self._changing[info.id] = info.address

        async with trio.open_nursery() as nursery:
            for _ in range(workers):
                nursery.start_soon(add)

    async def change(self, messages_a_second: float, seconds: float) -> RealChurnResult:
        async with trio.open_nursery() as receiving:
            for urgency, profile in self._staying.items():
                results = self._user.results(profile)
                await results.connect()
                receiving.start_soon(self._receive, urgency, results)
            async with AsyncExitStack() as stack:
                hosts = {
                    address: await stack.enter_async_context(NetworkClient(address))
                    for address in set(self._changing.values())
                }
                begun = time.monotonic()
                async with trio.open_nursery() as nursery:
                    for profile, address in self._changing.items():
                        nursery.start_soon(self._work, profile, hosts[address], begun + seconds)
                    await self._publish(messages_a_second, begun + seconds)
            lasted = time.monotonic() - begun
            with trio.move_on_after(_PATIENCE_SECONDS):
                while self._missing() > 0:
                    await trio.sleep(0.05)
            await trio.sleep(0.5)
            receiving.cancel_scope.cancel()
        wanted = [self._wanted(urgency) for urgency in self._staying]
        got = [self._got.get(urgency, 0) for urgency in self._staying]
        return RealChurnResult(
            rate=len(self._took) / lasted,
            live_ms=_milliseconds(self._took),
            messages=len(self._urgencies),
            delivered=sum(got),
            missed=self._missing(),
            false=sum(max(0, have - want) for have, want in zip(got, wanted, strict=True)),
        )

    async def _work(self, profile: str, host: NetworkClient, until: float) -> None:
        while time.monotonic() < until:
            text = make_profile(self._random)
            begun = time.monotonic()
            await host.call("profile.update", {"profile": profile, "text": text, "wait": True})
            self._took.append(time.monotonic() - begun)

    async def _publish(self, messages_a_second: float, until: float) -> None:
        while time.monotonic() < until:
            values = make_message(self._random)
            self._urgencies.append(values[-1])
            await self._source.publish(message_xml(values))
            await trio.sleep(1 / messages_a_second)

    async def _receive(self, urgency: int, results: Results) -> None:
        async for _ in results:
            self._got[urgency] = self._got.get(urgency, 0) + 1

    def _wanted(self, urgency: int) -> int:
        return sum(published <= urgency for published in self._urgencies)

    def _missing(self) -> int:
        return sum(
            max(0, self._wanted(urgency) - self._got.get(urgency, 0)) for urgency in self._staying
        )


def _milliseconds(seconds: Sequence[float]) -> tuple[float, float]:
    return 1000 * median(seconds), 1000 * quantiles(seconds, n=100)[98]
