"""What of a topology file is taken at SIGHUP, while the network runs."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path

import trio

from onyx import DataSource
from onyx.broker.broker_core import BrokerCore
from onyx.errors import RequestFailed
from overlay.limits import Limits
from overlay.live_settings import LIVE, with_live_settings
from overlay.topology import load_topology, parse_topology
from tests.onyx.networks import SAFETY_SECONDS, RunningProcess, small_topology_text

TEXT = small_topology_text(Path("data"), 1)


def test_what_is_live_is_taken_and_the_rest_is_named() -> None:
    now = parse_topology(TEXT, "now")
    changed = "[limits]\nprofiles_max = 5\nconnections_max = 7\n"
    changed += "[archive]\ndays_max = 2\nshare = 0.5\n"
    wanted = parse_topology(TEXT + changed, "wanted")
    got, taken, left = with_live_settings(now, wanted)
    assert taken == ["limits.profiles_max", "archive.days_max"]
    assert left == ["limits.connections_max", "archive.share"]
    assert got.limits == replace(now.limits, profiles_max=5)
    assert got.archive == replace(now.archive, days_max=2.0)
    assert with_live_settings(got, got) == (got, [], [])
    for table, names in LIVE.items():
        assert names <= set(type(getattr(now, table)).__dataclass_fields__)


def test_a_broker_takes_limits_between_two_events() -> None:
    core = BrokerCore(parse_topology(TEXT, "now"), "B1", "run")
    limits = Limits(
        delivery_backlog_bytes_max=2_000,
        delivery_store_bytes_max=3_000,
        delivery_age_s_max=4,
        principal_waiting_bytes_max=5_000,
        principal_messages_s_max=6,
        profile_length_max=10,
        link_away_bytes_max=7_000,
    )
    core.take_limits(limits)
    for number in range(1, 100):
        core.mailboxes.deliver("s1", number, [b"x" * 400], ["p1"])
    assert 0 < core.mailboxes.statistics()["waiting_bytes"] <= 2_000  # type: ignore[operator]
    assert core.mailboxes.policies.bytes_max == 2_000
    assert core.data.quota.is_on
    core.take_limits(Limits())
    assert not core.data.quota.is_on
    for number in range(100, 200):
        core.mailboxes.deliver("s1", number, [b"x" * 400], ["p1"])
    assert core.mailboxes.statistics()["waiting_bytes"] > 40_000  # type: ignore[operator]


async def test_a_network_takes_its_file_at_sighup(tmp_path: Path) -> None:
    file = tmp_path / "network.toml"
    text = small_topology_text(tmp_path / "data", 1)
    file.write_text(text, encoding="utf-8")
    running = await trio.to_thread.run_sync(RunningProcess.start, file)
    try:
        with trio.fail_after(SAFETY_SECONDS):
            await DataSource.register(running.registration, name="first")
            limits = "[limits]\nsources_max = 1\nconnections_max = 9\n"
            file.write_text(text + limits, encoding="utf-8")
            running.process.send_signal(signal.SIGHUP)
            assert running.process.stdout is not None
            said = json.loads(await trio.to_thread.run_sync(running.process.stdout.readline))
            assert said == {
                "event": "settings",
                "taken": ["limits.sources_max"],
                "takes_a_start": ["limits.connections_max"],
            }
            kept = load_topology(tmp_path / "data" / "topology.toml").limits
            assert (kept.sources_max, kept.connections_max) == (1, 0)
            refused = 0
            while not refused:  # the process takes it a moment later
                try:
                    await DataSource.register(running.registration, name="another")
                except RequestFailed as failed:
                    assert failed.code == "too-many-sources"
                    refused += 1
    finally:
        await trio.to_thread.run_sync(running.stop)
