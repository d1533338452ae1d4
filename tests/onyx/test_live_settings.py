"""What of a topology file is taken at SIGHUP, while the network runs."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from msgspec.structs import replace

from formats import WireFormat
from onyx import DataSource
from onyx.broker.broker_core import BrokerCore
from onyx.broker.packing.compression_dictionaries import MessageSamples
from onyx.errors import RequestFailed
from overlay.archive import ArchiveOptions
from overlay.limits import KIB, MIB, Limits
from overlay.link.core import SETTINGS, RunningSettings
from overlay.link.durable import fill
from overlay.link.events import Put, TimePassed
from overlay.link.frames import Delivery, Refused, RoutingDelta, ShapeAnnounced
from overlay.link.limits import LinkLimits
from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from overlay.live_settings import LIVE, setting_values, starts_needed, with_live_settings
from overlay.log_options import LogFormat, LogOptions
from overlay.topology import Topology, load_topology, parse_topology, to_toml
from registration.registration_core import RegistrationCore
from tests.beside import Beside
from tests.hanging import SAFETY_SECONDS
from tests.onyx.broker.hosting import hosting, publish
from tests.onyx.broker.test_broker_core import Setting as Hosting
from tests.onyx.broker.test_broker_core import message
from tests.onyx.networks import RunningProcess, small_topology_text
from tests.registration.test_registration_core import FIGURE4, Setting
from tests.yfilter.hostile_profiles import HOSTILE, MESSAGE
from tests.yfilter.test_hostile_profiles import Ticking

TEXT = small_topology_text(Path("data"), 1)
TOPOLOGY = parse_topology(TEXT, "now")


def test_what_is_live_is_taken_and_the_rest_is_named() -> None:
    now = parse_topology(TEXT, "now")
    changed = "[limits]\nprofiles_max = 5\nneeds_max_bytes = 7\n"
    changed += '[limits.message]\ndepth_max = 9\n[log]\nlevel = "debug"\n'
    changed += '[limits.link]\nwindow_frames = 9\n[archive]\ndays_max = 2\ndirectory = "a"\n'
    wanted = parse_topology(TEXT + changed, "wanted")
    got, taken, left = with_live_settings(now, wanted)
    assert taken == [
        "limits.message.depth_max",
        "limits.profiles_max",
        "archive.days_max",
        "log.level",
    ]
    assert left == ["limits.link.window_frames", "limits.needs_max_bytes", "archive.directory"]
    assert list(map(starts_needed, left)) == ["every process"] + ["every broker"] * 2
    assert got.log.level == "debug"
    message = replace(now.limits.message, depth_max=9)
    assert got.limits == replace(now.limits, profiles_max=5, message=message)
    assert got.archive == replace(now.archive, days_max=2.0)
    assert with_live_settings(got, got) == (got, [], [])
    starts = {key for key in setting_values(now) if not key.startswith("limits.link.")}
    assert starts - set(LIVE) == {
        *("access", "oidc", "stores", "admin"),
        *("limits.needs_max_bytes", "archive.directory"),
    }


@pytest.mark.parametrize(
    ("key", "values", "taken"),
    [
        ("evaluation_ms_max", (50, 5), True),
        ("evaluation_ms_max", (50, 4), False),
        ("evaluation_ms_max", (4, 50), False),
        ("message.depth_max", (256, 1024), True),
        ("message.depth_max", (256, 1025), False),
        ("message.depth_max", (5000, 4000), True),
        ("message.bytes_max", (MIB, 16 * MIB), True),
        ("message.bytes_max", (MIB, 16 * MIB + 1), False),
        ("training.dictionary_bytes_max", (0, 63 * KIB), True),
        ("training.dictionary_bytes_max", (0, 64 * KIB), False),
    ],
)
def test_some_values_take_a_start(key: str, values: tuple[int, int], taken: bool) -> None:
    table, _, name = f"limits.{key}".rpartition(".")
    frame_bytes = 64 * KIB if "training" in key else 16 * MIB
    link = replace(TOPOLOGY.limits.link, frame_bytes_max=frame_bytes)
    start = replace(TOPOLOGY, limits=replace(TOPOLOGY.limits, link=link))
    before, after = (with_value(start, table, name, value) for value in values)
    expected = (after, [f"limits.{key}"], []) if taken else (before, [], [f"limits.{key}"])
    assert with_live_settings(before, after) == expected


def with_value(topology: Topology, table: str, name: str, value: int) -> Topology:
    limits = topology.limits
    if table == "limits":
        return replace(topology, limits=replace(limits, **{name: value}))
    part = table.partition(".")[2]
    changed = replace(getattr(limits, part), **{name: value})
    return replace(topology, limits=replace(limits, **{part: changed}))


def test_a_broker_takes_limits_between_two_events() -> None:
    core = BrokerCore(TOPOLOGY, "B1", "run")
    limits = Limits(
        delivery_backlog_bytes_max=2_000,
        delivery_store_bytes_max=3_000,
        delivery_age_s_max=4,
        principal_waiting_bytes_max=5_000,
        principal_messages_s_max=6,
        profile_length_max=10,
        link_away_bytes_max=7_000,
    )
    core.settings.take_file(replace(TOPOLOGY, limits=limits))
    for number in range(1, 100):
        core.mailboxes.deliver("s1", number, [b"x" * 400], ["p1"])
    assert 0 < core.statistics().mailboxes.waiting_bytes <= 2_000
    assert core.mailboxes.policies.bytes_max == 2_000
    assert core.data.quota.is_on
    core.settings.take_file(TOPOLOGY)
    assert not core.data.quota.is_on
    for number in range(100, 200):
        core.mailboxes.deliver("s1", number, [b"x" * 400], ["p1"])
    assert core.statistics().mailboxes.waiting_bytes > 40_000


def test_a_message_is_held_to_the_limits_where_it_is_published_and_nowhere_else() -> None:
    """Others may have been in force there."""
    setting, source = hosting(lambda: 0.0, "/a")
    setting.announce("s2", "B1")
    taker = setting.beside.subscriber("p0")
    deep = b"<a><a><a/></a></a>"
    flat = with_value(FIGURE4, "limits.message", "depth_max", 2)
    setting.core.settings.take_file(flat)
    publish(source, deep)
    assert [refused.code for refused in source.all(Refused)] == ["too-deep"]
    setting.brokers["B1"].send("B1", msgspec.structs.replace(message(deep), source="s2"))
    assert [(one.source, one.results()) for one in taker.all(Delivery)] == [("s2", [deep])]
    setting.core.settings.take_file(FIGURE4)
    publish(source, deep)
    assert [one.source for one in taker.all(Delivery)] == ["s2", "s1"]


def test_what_a_profile_may_take_of_a_message_changes() -> None:
    setting, source = hosting(Ticking(10), HOSTILE["pairs that never sum"])
    taker = setting.beside.subscriber("p0")
    setting.core.settings.take_file(with_value(FIGURE4, "limits", "evaluation_ms_max", 20))
    publish(source, MESSAGE)
    (told,) = taker.all(Delivery)
    assert told.results()[1] == b"a profile takes more than 20 ms for this message [too-much-time]"


def test_what_a_table_may_hold_changes_both_ways() -> None:
    """B4 tells its parent on the tree of B1 of fewer interests than there are, and of all again."""
    setting = Hosting()
    setting.announce("s1", "B1")
    for number in range(4):
        setting.place(f"/a/b{number}", profile=f"p{number}")
    few = with_value(FIGURE4, "limits", "max_disjuncts", 1)
    told: set[str] = set()
    for topology, count in ((FIGURE4, 4), (few, 1), (FIGURE4, 4)):
        setting.core.settings.take_file(topology)
        setting.beside.tell(TimePassed())
        told.clear()
        for delta in setting.brokers["B1"].all(RoutingDelta):
            told = told - set(delta.removed) | set(delta.added)
        assert len(told) == count


def test_training_and_the_share_of_an_archive_change() -> None:
    before = replace(FIGURE4, archive=ArchiveOptions(directory=Path("news")))
    setting = Hosting(before)
    training = with_value(before, "limits.training", "samples_bytes_max", 2048)
    setting.core.settings.take_file(replace(training, archive=replace(before.archive, share=0.0)))
    assert setting.core.data.archive.below == 0
    samples = MessageSamples(before.limits.training)
    setting.core.trained._samples["s1", WireFormat.TEXT] = samples
    setting.core.settings.take_file(before)
    assert setting.core.data.archive.below == 2**32
    assert samples.limits.samples_bytes_max == before.limits.training.samples_bytes_max


@pytest.mark.parametrize("file_is_the_same", [True, False])
def test_what_a_broker_is_told_holds_until_its_file_says_otherwise(file_is_the_same: bool) -> None:
    file = replace(TOPOLOGY, limits=Limits(publish_keys_max=100))
    told = replace(file, limits=Limits(publish_keys_max=200, needs_max_bytes=7))
    rows: dict[str, bytes] = {}
    log = RowLog()
    settings = running(file, log, rows)
    settings.take_change(file, told)
    assert settings.now.limits == replace(file.limits, publish_keys_max=200)
    settings.take_change(told, replace(told, archive=replace(told.archive, days_max=3.0)))
    commit(log, rows)
    newer = file if file_is_the_same else replace(file, limits=Limits(publish_keys_max=300))
    again = running(newer, log, rows)
    days, keys = again.now.archive.days_max, again.now.limits.publish_keys_max
    assert (days, keys) == ((3.0, 200) if file_is_the_same else (30.0, 300))
    commit(log, rows)
    assert bool(rows) == file_is_the_same, "what the older file held with is over"


def running(file: Topology, log: RowLog, rows: dict[str, bytes]) -> RunningSettings:
    """As a core is made that has these rows."""
    log.stored.clear()  # of the process before
    settings = RunningSettings(file, log)
    stored = StoredRows([(SETTINGS.space, key, value) for key, value in rows.items()])
    fill(log, stored)
    settings.restore(stored)
    stored.check_taken()
    return settings


def commit(log: RowLog, rows: dict[str, bytes]) -> None:
    for action in log.drain():
        if isinstance(action, Put):
            rows[action.key] = action.value
        else:
            del rows[action.key]


def test_a_change_of_settings_reaches_every_broker_by_a_version_of_the_shape() -> None:
    setting = Setting()
    limits = replace(FIGURE4.limits, publish_keys_max=70, link=LinkLimits(window_frames=9))
    log = LogOptions("debug", LogFormat.JSON)
    text = to_toml(replace(FIGURE4, limits=limits, log=log))
    answer = setting.client.ask("topology.apply", text=text)
    assert answer is not None
    assert answer.ok
    said = answer.result
    assert said["settings"] == said["changes"]
    assert said["changes"] == [
        "~ limits.publish_keys_max: 262144 -> 70",
        "~ log.level: info -> debug",
        "~ log.format: text -> json",
    ]
    assert said["takes_a_start"] == {"limits.link.window_frames": "every process"}
    assert (said["version"], said["trees"]) == (1, [])
    (announced,) = setting.brokers["B1"].all(ShapeAnnounced)
    broker = Beside("broker/B1", BrokerCore(FIGURE4, "B1", "run"))
    registration = broker.peer("registration", setting.identity)
    registration.send("registration", announced)
    for core in (setting.core, broker.core):
        assert isinstance(core, RegistrationCore | BrokerCore)
        now = core.settings.now
        assert (now.limits.publish_keys_max, now.log) == (70, log)
        assert now.limits.link == FIGURE4.limits.link


async def run_onyx(*words: str) -> list[dict[str, Any]]:
    """What it prints as JSON."""
    command = [sys.executable, "-m", "onyx", *words]
    ended = await trio.run_process(command, capture_stdout=True)
    return [json.loads(line) for line in ended.stdout.splitlines()]


async def test_a_network_takes_its_file_at_sighup(tmp_path: Path) -> None:
    file = tmp_path / "network.toml"
    text = small_topology_text(tmp_path / "data", 1)
    file.write_text(text, encoding="utf-8")
    running = await trio.to_thread.run_sync(RunningProcess.start, file)
    try:
        with trio.fail_after(SAFETY_SECONDS):
            await DataSource.register(running.registration, name="first")
            limits = "[limits]\nsources_max = 1\nneeds_max_bytes = 9\n"
            file.write_text(text + limits, encoding="utf-8")
            running.process.send_signal(signal.SIGHUP)
            assert running.process.stdout is not None
            said = json.loads(await trio.to_thread.run_sync(running.process.stdout.readline))
            assert said == {
                "event": "settings",
                "taken": ["limits.sources_max"],
                "takes_a_start": ["limits.needs_max_bytes"],
            }
            kept = load_topology(tmp_path / "data" / "topology.toml").limits
            assert (kept.sources_max, kept.needs_max_bytes) == (1, Limits().needs_max_bytes)
            refused = 0
            while not refused:  # the process takes it a moment later
                try:
                    await DataSource.register(running.registration, name="another")
                except RequestFailed as failed:
                    assert failed.code == "too-many-sources"
                    refused += 1
            more = '[limits]\nsources_max = 2\nneeds_max_bytes = 9\n[log]\nlevel = "debug"\n'
            file.write_text(text + more, encoding="utf-8")
            where = ("--registration", running.registration)
            plan, settled = await run_onyx("topology", "apply", str(file), *where, "--json")
            assert plan["settings"] == [
                "~ limits.sources_max: 1 -> 2",
                "~ log.level: info -> debug",
            ]
            assert plan["takes_a_start"] == {"limits.needs_max_bytes": "every broker"}
            assert settled["event"] == "settled"
            await DataSource.register(running.registration, name="second")
            with pytest.raises(RequestFailed, match="too-many-sources"):
                await DataSource.register(running.registration, name="third")
            (plan,) = await run_onyx("topology", "apply", str(file), *where, "--json")
            assert (plan["changes"], list(plan["takes_a_start"])) == (
                [],
                ["limits.needs_max_bytes"],
            )
    finally:
        await trio.to_thread.run_sync(running.stop)
