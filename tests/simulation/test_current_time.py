"""The current time in profiles is when the root broker accepted the message: the same at each
broker, in routing queries, results and parts, after restarts, and whenever a result is made.

Calendars differ by hours from broker to broker, so a time of any other broker shows.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache

import msgspec
import pytest
from msgspec.structs import replace

from onyx.broker.broker_core import BrokerCore
from onyx.broker.messages.data_plane import DataPlane
from onyx.broker.messages.local_deliveries import DeferredRow
from onyx.broker.packing.parcel import KeptMessage, Parcel
from overlay.link.arrival import Arrival
from overlay.link.core_context import Surroundings
from overlay.link.frames import Message
from tests.simulation.scenario import Interest, Published, Scenario
from tests.simulation.seeds import seeds
from tests.simulation.sim_network import Core, Rows
from tests.simulation.test_exactly_once import live_through
from yfilter import Matcher

SEEDS = seeds(24)
CALENDAR = datetime(2026, 11, 30, 23, tzinfo=UTC)
NOW = "for $m in /m return <t>{current-dateTime()}</t>"
PROFILES = (
    NOW,
    "/m[@until > current-dateTime()]",
    "/m[not(@until > current-dateTime())][part]",
    "for $m in /m where $m/@until < current-dateTime() return <t>{current-time()}</t>",
    "for $m in /m return <t>{for $p in $m/part return <p>{$p/@n}{current-date()}</p>}</t>",
)


@cache
def results_at(time: bytes, text: str, data: bytes) -> list[bytes]:
    """By an engine that is told the time, as NOW says it."""
    at = datetime.fromisoformat(time.removeprefix(b"<t>").removesuffix(b"</t>").decode())
    matcher = Matcher(clock=at.timestamp)
    matcher.add(text)
    return [result for each in matcher.deliver(data) for result in each.results]


class Timed(Scenario):
    """Its profiles are of the current time, which is known of a message by what NOW gives."""

    def new_broker(self, broker: str, instance: str, rows: Rows) -> Core:
        epoch = self.net.nodes[f"broker/{broker}"].epoch
        around = Surroundings(self._clock(), wall=self.calendar(broker), epoch=epoch)
        return BrokerCore(self.topology, broker, instance, rows, around)

    def calendar(self, broker: str) -> Callable[[], float]:
        ahead = CALENDAR + timedelta(hours=int(broker[1:]))
        return lambda: ahead.timestamp() + self.net.now

    def add_one(self) -> None:
        self.add_profile(self.random.choice(PROFILES))

    def message(self) -> bytes:
        """Good for a time that ends about when one of the root brokers accepts it."""
        source = self.random.choice(list(self.sources.values()))
        at = self.calendar(source.root)() + self.random.uniform(-1.0, 2.0)
        until = datetime.fromtimestamp(at, UTC).isoformat()
        parts = "".join(f'<part n="{n}"/>' for n in range(self.random.randrange(3)))
        return f'<m until="{until}">{parts}</m>'.encode()

    def times(self, message: Published) -> set[bytes]:
        """All that those who ask for it were told."""
        key = message.source, message.number
        told = (one.subscriber.results.get(key, []) for one in self.asking())
        return {result for results in told for result in results}

    def asking(self) -> list[Interest]:
        return [one for one in self.interests.values() if one.versions[0].text == NOW]

    def missing(self) -> list[tuple[str, str, int]]:
        return [
            (interest.profile, message.source, message.number)
            for message in self.published
            for interest in self.interests.values()
            if interest.versions[0].live <= message.at
            and not interest.subscriber.got[message.source, message.number]
            and (interest.versions[0].text == NOW or self.expected(interest, message))
        ]

    def expected(self, interest: Interest, message: Published) -> list[bytes]:
        """Nothing while nobody knows the time."""
        for time in self.times(message):
            return results_at(time, interest.versions[0].text, message.data)
        return []

    def wrong(self) -> list[str]:
        faults = []
        for message in self.published:
            times, key = self.times(message), (message.source, message.number)
            if len(times) > 1:
                faults.append(f"{key} was accepted at {times}")
            for interest in self.interests.values():
                found = interest.subscriber.results.get(key, [])
                if found and found != self.expected(interest, message):
                    faults.append(f"{interest.profile} got {found} of {key}, accepted at {times}")
        return faults


def run(seed: int) -> Timed:
    modes = ("off", "projection", "full") if seed % 3 else ("full", "full")
    scenario = Timed(seed, brokers=2 + seed % 4, transformations=modes)
    scenario.add_profile(NOW)
    scenario.add_profile(NOW)
    live_through(
        scenario,
        *(2, lambda _: scenario.random.choice(PROFILES)),
        *(lambda _: scenario.message(), lambda _: scenario.add_one()),
    )
    return scenario


def test_it_is_the_same_wherever_and_whenever_it_is_asked_for() -> None:
    got = 0
    for seed in SEEDS:
        scenario = run(seed)
        assert not scenario.missing(), f"seed {seed}"
        assert not scenario.wrong(), f"seed {seed}"
        others = (one for one in scenario.interests.values() if one.versions[0].text != NOW)
        got += sum(one.subscriber.got.total() for one in others)
    assert got > 5 * len(SEEDS), "conditions hold"


def shows(seed: int) -> bool:
    """Whether a run finds that something is wrong."""
    try:
        scenario = run(seed)
    except AssertionError:
        return True
    return bool(scenario.missing() or scenario.wrong())


def test_a_broker_that_forgets_the_time_or_takes_its_own_shows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.simulation.scenario.PATIENCE", 30.0)
    monkeypatch.setattr("tests.simulation.scenario.CALM", 40.0)
    monkeypatch.setattr("onyx.broker.messages.data_plane.LARGE_BYTES", 1)  # more are deferred
    kept, reopen, handle = Parcel.kept, DataPlane._reopen, DataPlane._handle_message

    def forgotten(parcel: Parcel) -> KeptMessage:
        return kept(parcel)._replace(accepted=0)

    def reopened(plane: DataPlane, row: DeferredRow) -> Parcel:
        return reopen(plane, msgspec.structs.replace(row, accepted=0))

    def own(plane: DataPlane, frame: Message, arrival: Arrival) -> None:
        handle(plane, replace(frame, accepted=plane._latency.accepted()), arrival)

    for of, name, changed, known in (
        (Parcel, "kept", forgotten, 51),
        (DataPlane, "_reopen", reopened, 82),
        (DataPlane, "_handle_message", own, 51),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(of, name, changed)
            assert any(map(shows, (known, *range(1, 41)))), name
