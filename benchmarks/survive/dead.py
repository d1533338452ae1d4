"""How late messages are for everybody else while a broker is dead.

The bound of what may wait for a neighbour that is here (``link_backlog_bytes_max``) is so low that
the dead broker would reach it in a moment, as it would in some seconds of traffic by default.
"""

from __future__ import annotations

import argparse
import signal
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles

import trio

from benchmarks.benchmark import WrongAnswers
from benchmarks.report import Report
from onyx import DataSource, User
from tests.survival.separate_nodes import SeparateNodes

CODE = Path(__file__).parents[2]
STAR = [("B1", "B2"), ("B1", "B3"), ("B1", "B4")]
DEAD = "B2"
BACKLOG_BYTES = 64 * 1024
MESSAGE_BYTES = 1024
SECONDS = 10.0  # alive
RATE_MAX = 200  # messages a second
BACK_SECONDS = 120.0


@dataclass
class _Traffic:
    """Numbers are those of the source; times in seconds."""

    source: DataSource
    user: User
    published: dict[int, float] = field(default_factory=dict)
    taken: dict[str, dict[int, float]] = field(default_factory=dict)

    async def publish(self, seconds: float, rate: float) -> range:
        """So many, each when it is due; which they were."""
        first = len(self.published) + 1
        start = trio.current_time()
        async with trio.open_nursery() as nursery:
            for number in range(first, first + round(seconds * rate)):
                await trio.sleep_until(start + (number - first) / rate)
                self.published[number] = trio.current_time()
                text = b"<n>%s</n>" % b"x".ljust(MESSAGE_BYTES, b"x")
                nursery.start_soon(self.source.publish, text)
        return range(first, len(self.published) + 1)

    async def take(self, profile: str) -> None:
        taken = self.taken[profile] = {}
        async for delivery in self.user.results(profile):
            if delivery.number != len(taken) + 1:
                raise WrongAnswers(f"dead: {delivery.number} came after {len(taken)} messages")
            taken[delivery.number] = trio.current_time()

    async def until(self, profiles: list[str], number: int) -> None:
        while any(len(self.taken[profile]) < number for profile in profiles):
            await trio.sleep(0.05)

    def p99(self, profiles: list[str], numbers: range) -> float:
        late = [self.taken[p][n] - self.published[n] for p in profiles for n in numbers]
        return quantiles(late, n=100)[98]


def measure_dead(report: Report, options: argparse.Namespace) -> None:
    """``others_p99_ratio``: from published to taken, of users at other brokers, while one is dead,
    over that before; WrongAnswers if any message is missing, doubled or out of order at the end."""
    rate = min(options.rate, RATE_MAX)
    with tempfile.TemporaryDirectory() as directory:
        measured = trio.run(_measure, Path(directory), rate, options.dead_seconds)
    before, during, waited = measured
    report.condition("dead_seconds", "a broker is dead for so many", options.dead_seconds)
    report.condition("dead_rate", "messages a second, beside a dead broker", rate)
    report.figure("others_p99_s", "users elsewhere, published to taken, 99 %", before, "s")
    report.figure("others_dead_p99_s", "  while a broker is dead", during, "s")
    report.figure("others_p99_ratio", "  the ratio", during / before)
    report.figure("dead_back_s", "all that waited for it is taken after", waited, "s")


async def _measure(directory: Path, rate: float, seconds: float) -> tuple[float, float, float]:
    limits = f"[limits]\nlink_backlog_bytes_max = {BACKLOG_BYTES}"
    with SeparateNodes(directory, 4, STAR, limits) as nodes:
        nodes.start(nodes.node_ids, CODE)
        await nodes.wait_ready()
        source = await DataSource.register(nodes.registration)
        async with source, User(nodes.registration, "ada") as user:
            added = [await user.add_profile("//n") for _ in range(4)]
            there = [each.id for each in added if each.host == DEAD]
            others = [each.id for each in added if each.host != DEAD]
            traffic = _Traffic(source, user)
            async with trio.open_nursery() as nursery:
                for each in added:
                    nursery.start_soon(traffic.take, each.id)
                await traffic.publish(1.0, rate)
                alive = await traffic.publish(SECONDS, rate)
                await traffic.until([*there, *others], alive[-1])
                nodes.stop(DEAD, signal.SIGKILL)
                dead = await traffic.publish(seconds, rate)
                await traffic.until(others, dead[-1])
                nodes.start([DEAD], CODE)
                back = trio.current_time()
                with trio.fail_after(BACK_SECONDS):
                    await traffic.until(there, dead[-1])
                waited = trio.current_time() - back
                nursery.cancel_scope.cancel()
    return traffic.p99(others, alive), traffic.p99(others, dead), waited
