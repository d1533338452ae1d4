"""Pings: what else a broker answers while it has much to do, and how long its turns are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from copy import deepcopy

from benchmarks.network.helper import helper
from benchmarks.network.onyx_network import OnyxNetwork
from benchmarks.report import Report
from benchmarks.samples import percentile


class NetworkReport(Report):
    """Keeps what all scenarios have in common, until ``summary``."""

    def __init__(self) -> None:
        super().__init__("network")
        self._times: list[float] = []
        self._turns: dict[str, float] = {}

    def pings(self, scenario: str, key: str, times: Sequence[float]) -> None:
        """Milliseconds of those asked in a scenario."""
        self._times += times
        self.figure(f"pings_{key}", f"{scenario}: pings meanwhile", len(times))
        label = f"{scenario}: answered, 99th percentile"
        self.figure(f"ping_p99_ms_{key}", label, percentile(times, 99), "ms")
        self.figure(f"ping_max_ms_{key}", f"{scenario}: the longest", max(times), "ms")

    def turn(self, scenario: str, key: str, longest: tuple[float, str] | None) -> None:
        """The longest of a broker in a scenario, milliseconds and what took most of it, where it
        tells."""
        if longest is not None:
            self._turns[key], kind = longest
            self.condition(f"longest_turn_of_{key}", f"{scenario}: the longest turn was of", kind)
            label = f"{scenario}: longest turn, processor time"
            self.figure(f"longest_turn_ms_{key}", label, longest[0], "ms")

    def so_far(self) -> NetworkReport:
        """What there is up to now, with its summary."""
        report = deepcopy(self)
        report.summary()
        return report

    def summary(self) -> None:
        """Over all scenarios."""
        if self._times:
            self.figure("pings", "pings, all scenarios", len(self._times))
            for percent in (50, 99):
                label = f"pings: answered, {percent}th percentile"
                value = percentile(self._times, percent)
                self.figure(f"ping_p{percent}_ms", label, value, "ms")
            self.figure("ping_max_ms", "pings: the longest", max(self._times), "ms")
        longest = max(self._turns.values(), default=None)
        self.figure("longest_turn_ms", "longest turn, all scenarios", longest, "ms")


@asynccontextmanager
async def pinged(
    network: OnyxNetwork, report: NetworkReport, scenario: str, key: str = ""
) -> AsyncIterator[None]:
    """The first broker is asked while the block runs; ``key`` where it is not the scenario."""
    key = key or scenario
    async with helper("benchmarks.network.ping", {"address": network.broker}) as ping:
        await ping.answer()
        await ping.tell({"begin": True})
        yield
        times = (await ping.ask({"end": True}))["times_ms"]
    report.pings(scenario, key, times)
    report.turn(scenario, key, await network.longest_turn())
