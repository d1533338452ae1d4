"""onyx bench, tap and top against one network that runs; and what is slower than a baseline."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest
import trio

from onyx import DataSource, RegistrationClient, User
from onyx.cli.bench import (
    Measure,
    Sizes,
    percentile,
    read_baseline,
    regressions,
    run_bench,
    save,
)
from onyx.cli.tap import Wants, line
from onyx.errors import UnreadableInput
from onyx.launcher import RunningNetwork
from onyx.network_looks import watch_network
from onyx.network_view import NetworkView
from onyx.registration_client import NetworkClient
from overlay.verbs import Observe


def test_a_percentile_is_one_of_the_samples() -> None:
    samples = [float(number) for number in range(1000, 0, -1)]
    assert [percentile(samples, p) for p in (50, 99, 99.9, 100)] == [500, 990, 999, 1000]
    assert Measure.of("x", [0.002, 0.001], 0.5) == Measure("x", 2, 1.0, 2.0, 2.0, 4.0)


def test_what_is_slower_than_it_was_is_named(tmp_path: Path) -> None:
    before = [Measure("publish", 9, 1.0, 5.0, 9.0, 100.0), Measure("gone", 9, 1.0, 1.0, 1.0, 1.0)]
    save(tmp_path / "b.json", before, Sizes())
    baseline = read_baseline((tmp_path / "b.json").read_text(), "b.json")
    now = [Measure("publish", 9, 1.4, 7.6, 99.0, 1.0), Measure("new", 9, 9.0, 9.0, 9.0, 1.0)]
    assert regressions(now, baseline, 0.5) == ["publish: p99 7.6 ms, was 5 ms"]
    assert regressions(now, baseline, 0.6) == []
    assert len(regressions(now, baseline, 0.0)) == 2


@pytest.mark.parametrize(
    "found", [[], {}, {"measures": {"publish": 3}}, {"measures": {"a": {"b": ""}}}]
)
def test_what_is_no_baseline_is_refused(found: object) -> None:
    with pytest.raises(UnreadableInput, match=r"b\.json is no baseline"):
        read_baseline(json.dumps(found), "b.json")


def test_a_broker_is_asked_for_what_is_wanted_of_it() -> None:
    wants = Wants(kinds=["crossing"], links=[("B1", "B2"), ("B1", "B3")], path="//a", rate=7)
    assert wants.of("B1") == Observe(
        kinds=["crossing"], links=["B2", "B3"], path="//a", events_max=7
    )
    assert wants.of("B2") is None
    assert Wants(brokers=["B2"]).of("B1") is None
    assert Wants(brokers=["B2"]).of("B2") == Observe(events_max=1_000)


def test_events_are_lines() -> None:
    about = {"broker": "B1", "source": "s1", "number": 7, "time": 1_760_000_000.25}
    assert line({"kind": "crossing", **about, "link": "B2", "bytes": 1204}) == (
        "08:53:20.250 B1 crossing s1 #7 to B2, 1,204 bytes"
    )
    assert line({"kind": "refused", **about, "code": "malformed"}).endswith("#7: malformed")
    dropped = {"kind": "dropped", "broker": "B1", "count": 12_000}
    assert line(dropped).endswith("B1: 12,000 events left out")


async def test_a_network_is_measured_tapped_and_looked_at(two_brokers: RunningNetwork) -> None:
    where = two_brokers.registration
    seen: Counter[str] = Counter()
    views: list[NetworkView] = []

    async def tap(broker: str, task_status: trio.TaskStatus[None]) -> None:
        async with NetworkClient(two_brokers.topology.where(broker)) as client:
            await client.call("observe", {})
            task_status.started()
            await client.observe(Observe(), lambda event: seen.update([event["kind"]]))

    async with trio.open_nursery() as nursery:
        await nursery.start(tap, "B1")
        await nursery.start(tap, "B2")
        sizes = Sizes(messages=20, bytes=200, profiles=3, changes=2)
        for _ in range(2):
            found = await run_bench(where, sizes)
            assert [measure.name for measure in found] == [
                *("publish", "deliver", "stream", "fan_out", "churn")
            ]
            assert [measure.count for measure in found] == [20, 20, 20, 2, 2]
            assert all(value > 0 for each in found for value in list(asdict(each).values())[1:])
        nursery.cancel_scope.cancel()
    assert seen["accepted"] == 2 * 62
    assert seen["delivery"] == 2 * (20 + 20 + 2 * 3)
    async with RegistrationClient(where) as registration:
        assert await registration.profiles() == []  # it cleans up
        assert await registration.sources() == []

    def take(view: NetworkView) -> None:
        views.append(view)
        scope.cancel()

    source = await DataSource.register(where, name="news")
    async with source, User(where, "ann") as user:
        await user.add_profile("//a", location=(20.0, 0.0))
        assert (await source.publish(b"<a/>")).accepted
        with trio.CancelScope() as scope:
            await watch_network(where, 0.05, take)
    (view,) = views
    assert {row.broker: row.state for row in view.brokers} == {"B1": "up", "B2": "up"}
    assert {(row.sender, row.receiver) for row in view.links} == {("B1", "B2"), ("B2", "B1")}
    assert source.id in {row.source for row in view.sources}
