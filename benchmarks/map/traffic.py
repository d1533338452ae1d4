"""Helper: sources and profiles of a network whose map is looked at.

::

    {"registration": ..., "topology": ..., "probes": [[root, host], ...], "roots": [...],
     "hosts": [...], "rate": 5, "seed": 1}      ──>  {"ready": true}
    {"publish": true}                           ──>  {"published": true}, when the first are
    {}                                          ──>  {"probes": [[seconds, ...], ...],
                                                      "messages": 60, "seconds": 10.1}

Each source publishes at its own pace messages of which each is wanted by some of the hosts.  A
probe is a source of its own, whose messages cross one link that nothing else does; when one was
handed over is said in seconds of the calendar.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import trio

from benchmarks.benchmark import BenchmarkError
from benchmarks.network.helper import questions, say
from onyx import DataSource, User
from onyx.identity.known_networks import INSECURE, use_credentials
from overlay.answers import Location
from overlay.topology import Topology, load_topology

PROBE_SECONDS = 4.0
"""Between two of a probe, so that what the first has lit is dark again."""
AT_ONCE = 8  # sources and profiles that are registered: each goes to all brokers
KINDS = 50  # of messages; a profile wants one of them


async def main() -> None:
    lines = questions()
    job = await lines.next()
    topology = load_topology(Path(job["topology"]))
    with use_credentials(Path(INSECURE)):
        async with _sources(topology, job) as (probes, sources):
            say({"ready": True})
            await lines.next()
            traffic = _Traffic(job, probes, sources)
            async with trio.open_nursery() as nursery:
                began = time.time()
                traffic.start(nursery)
                await traffic.has_begun.wait()
                say({"published": True})
                await lines.next()
                traffic.is_over.set()
            said = {"messages": traffic.messages, "seconds": traffic.over_at - began}
            say({"probes": traffic.told, **said})


class _Traffic:
    """``told``: by probe when its messages were handed over; ``messages`` of all others."""

    def __init__(self, job: Any, probes: list[DataSource], sources: list[DataSource]) -> None:
        self.told: list[list[float]] = [[] for _ in probes]
        self.messages = 0
        self.over_at = 0.0
        self.has_begun, self.is_over = trio.Event(), trio.Event()
        self._random = Random(job["seed"])
        self._between = len(sources) / job["rate"]
        self._probes, self._sources = probes, sources

    def start(self, nursery: trio.Nursery) -> None:
        for number, source in enumerate(self._probes):
            nursery.start_soon(self._probe, number, source)
        for source in self._sources:
            nursery.start_soon(self._publish, source)

    async def _probe(self, number: int, source: DataSource) -> None:
        due = trio.current_time() + PROBE_SECONDS * self._random.random()
        while not await self._until(due):
            self.told[number].append(time.time())
            await _publish(source, f"<probe-{number}/>")
            due += PROBE_SECONDS * self._random.uniform(1, 1.2)

    async def _publish(self, source: DataSource) -> None:
        due = trio.current_time()
        while not await self._until(due):
            await _publish(source, f'<m k="{self._random.randrange(KINDS)}"/>')
            self.messages += 1
            self.has_begun.set()
            due += self._between * self._random.uniform(0.5, 1.5)

    async def _until(self, due: float) -> bool:
        """Whether it is over before that."""
        with trio.move_on_at(due):
            await self.is_over.wait()
        self.over_at = time.time()
        return self.is_over.is_set()


@asynccontextmanager
async def _sources(
    topology: Topology, job: Any
) -> AsyncIterator[tuple[list[DataSource], list[DataSource]]]:
    """Those of the probes, and the others, once every profile is live."""
    where = job["registration"]
    async with AsyncExitStack() as stack:
        user = await stack.enter_async_context(User(where, "benchmark"))

        turns = trio.CapacityLimiter(AT_ONCE)

        async def want(text: str, host: str) -> None:
            async with turns:
                await want_now(text, host)

        async def want_now(text: str, host: str) -> None:
            profile = await user.add_profile(text, location=_place(topology, host), near=True)
            _check("profile", profile.host, host)

        async def register(opened: dict[str, DataSource], name: str, root: str) -> None:
            async with turns:
                place = _place(topology, root)
                source = await DataSource.register(where, name=name, location=place)
            _check("source", source.root, root)
            opened[name] = source

        names = [f"source {number}" for number in range(len(job["probes"]) + len(job["roots"]))]
        roots = [*(root for root, _ in job["probes"]), *job["roots"]]
        wanted = [(f"/probe-{number}", host) for number, (_, host) in enumerate(job["probes"])]
        wanted += [(f'/m[@k = "{at % KINDS}"]', host) for at, host in enumerate(job["hosts"])]
        opened: dict[str, DataSource] = {}
        async with trio.open_nursery() as nursery:
            for name, root in zip(names, roots, strict=True):
                nursery.start_soon(register, opened, name, root)
        async with trio.open_nursery() as nursery:
            for text, host in wanted:
                nursery.start_soon(want, text, host)
        sources = [await stack.enter_async_context(opened[name]) for name in names]
        yield sources[: len(job["probes"])], sources[len(job["probes"]) :]


async def _publish(source: DataSource, text: str) -> None:
    outcome = await source.publish(text.encode())
    if not outcome.accepted:
        raise BenchmarkError(f"a message was refused: {outcome.reason}")


def _place(topology: Topology, broker: str) -> Location:
    place = topology.broker(broker).place
    assert place is not None
    return place.latitude, place.longitude


def _check(what: str, is_at: str, expected: str) -> None:
    if is_at != expected:
        raise BenchmarkError(f"a {what} is at {is_at}, expected it at {expected}")


if __name__ == "__main__":
    trio.run(main)
