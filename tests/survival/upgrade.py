"""Upgrade: each process of a network of the last release is replaced by one of this, in use."""

from __future__ import annotations

import io
import random
import subprocess
import zipfile
from collections.abc import Callable
from compileall import compile_dir
from dataclasses import dataclass, field
from pathlib import Path

import trio

from onyx import DataSource, User
from onyx.client_values import Outcome
from onyx.data_source import Pipeline
from onyx.results import Results
from tests.survival.separate_nodes import HERE, SeparateNodes

FORMER = "6628d55f94296bec2e9ce203365bfdbbf0559b6a"
"""The last release where the history has no tag; it is the first that negotiates versions."""
PACKAGES = ("formats", "yfilter", "overlay", "registration", "onyx")
INTERVAL_SECONDS = 0.02  # from message to message
BETWEEN = 10  # deliveries to each user between two upgrades, so that versions are mixed in use


class HistoryMissing(Exception):
    """The last release cannot be had; says why."""


def former_code(folder: Path) -> str:
    """Put the code of the last release there, hot modules as Python; which it is.  HistoryMissing.

    It is the last tag before this commit, or FORMER.  A clone without history is given it, if the
    repository that it is of can be reached."""
    try:
        former = _git("describe", "--tags", "--abbrev=0", "HEAD^").decode().strip()
    except HistoryMissing:
        former = FORMER
    try:
        packed = _git("archive", "--format=zip", former, *PACKAGES)
    except HistoryMissing:
        _git("fetch", "--quiet", "--depth=1", "origin", former)
        packed = _git("archive", "--format=zip", former, *PACKAGES)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        archive.extractall(folder)
    compile_dir(folder, quiet=2)  # as an installation has it
    return former


def _git(*words: str) -> bytes:
    try:
        done = subprocess.run(["git", "-C", str(HERE), *words], capture_output=True, check=False)
    except FileNotFoundError:
        raise HistoryMissing("there is no git here") from None
    if done.returncode:
        raise HistoryMissing(f"the history is not here: {done.stderr.decode().strip()}")
    return done.stdout


@dataclass
class Traffic:
    """A source at B1 publishes a message each INTERVAL_SECONDS; users take them at B1 and B3."""

    registration: str
    accepted: list[bytes] = field(default_factory=list)  # in order
    taken: dict[str, list[bytes]] = field(default_factory=dict)  # by host broker
    seconds: list[float] = field(default_factory=list)
    """From when a message was due to be published to when a user had it."""
    away: list[float] = field(default_factory=list)
    """From when a process was told to stop to when the one in its place was ready."""

    def __post_init__(self) -> None:
        self._stopping = self._has_stopped = False
        self._news = trio.Event()

    async def publish(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        source = await DataSource.register(self.registration, location=(0.0, 0.0))
        assert source.root == "B1"
        async with source:
            pipeline = Pipeline(source)
            self._began = trio.current_time()
            task_status.started()
            published: list[bytes] = []
            while not self._stopping:
                await trio.sleep_until(self._began + len(published) * INTERVAL_SECONDS)
                published.append(b"<m><n>%d</n></m>" % len(published))
                self._note(published, await pipeline.send(published[-1]))
            self._note(published, await pipeline.finish())
        self._has_stopped = True
        self._tell()

    async def take(self, name: str, results: Results) -> None:
        taken = self.taken[name] = []
        async for delivery in results:
            now = trio.current_time()
            for result in delivery.results:
                number = int(result[6 : result.index(b"<", 6)])
                self.seconds.append(now - self._began - number * INTERVAL_SECONDS)
                taken.append(result)
            self._tell()

    async def go_on(self, count: int) -> None:
        """Until each user has got so many messages more."""
        wanted = {name: len(taken) + count for name, taken in self.taken.items()}
        await self._until(lambda: all(len(self.taken[n]) >= most for n, most in wanted.items()))

    async def stop(self) -> None:
        """Publish no more, and wait for what was."""
        self._stopping = True
        await self._until(
            lambda: (
                self._has_stopped
                and all(len(taken) >= len(self.accepted) for taken in self.taken.values())
            )
        )

    def _note(self, published: list[bytes], outcomes: list[Outcome]) -> None:
        """All are accepted, so they come in order."""
        for outcome in outcomes:
            assert outcome.accepted, outcome
            self.accepted.append(published[len(self.accepted)])
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = trio.Event()

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await self._news.wait()


async def upgrade(directory: Path, former: Path, seed: int) -> Traffic:
    """Replace all in an order by the seed; the traffic, once all of it has been taken."""
    with SeparateNodes(directory, brokers=3) as nodes:
        nodes.start(nodes.node_ids, former)
        await nodes.wait_ready()
        traffic = Traffic(nodes.registration)
        async with User(nodes.registration, "ann") as user, trio.open_nursery() as nursery:
            for place in (0.0, 20.0):
                profile = await user.add_profile("/m/n", location=(place, 0.0))
                results = user.results(profile.id)
                await results.connect()
                nursery.start_soon(traffic.take, profile.host, results)
            await nursery.start(traffic.publish)
            await traffic.go_on(BETWEEN)
            for node in random.Random(seed).sample(nodes.node_ids, len(nodes.node_ids)):
                stopped_at = trio.current_time()
                assert nodes.stop(node) == 0, nodes.log(node)
                nodes.start([node], HERE)
                await nodes.wait_ready_again(node)
                traffic.away.append(trio.current_time() - stopped_at)
                await traffic.go_on(BETWEEN)
            late = await user.add_profile("/m[n > 0]", location=(10.0, 0.0))
            assert late.host == "B2"
            await traffic.go_on(BETWEEN)
            await traffic.stop()
            nursery.cancel_scope.cancel()
    return traffic
