"""``python -m benchmarks network`` on tiny sizes, and what its scenarios are made of."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import lxml.etree
import pytest

from benchmarks.__main__ import main
from benchmarks.benchmark import BenchmarkError, WrongAnswers
from benchmarks.network import one, registering
from benchmarks.network.feed import SMALL_BYTES, Feed, path_feed, small_feed, yfilter_feed
from benchmarks.network.large import quotes_feed
from benchmarks.network.peers import PEERS, measure_peers
from benchmarks.network.pings import NetworkReport
from benchmarks.network.processor import allow_many_files, processes
from benchmarks.network.sizes import QUICK
from benchmarks.network.subscribers import Subscribers
from benchmarks.network.takers import compare
from onyx import Delivery
from overlay.link.client_connection import ClientLimits
from tests.hanging import SAFETY_SECONDS
from tests.onyx.networks import is_running


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process on a machine that has much to do may answer later than people like to wait."""
    limits = ClientLimits(open_seconds=SAFETY_SECONDS)
    monkeypatch.setattr("onyx.registration_client.CLIENT_LIMITS", limits)


@pytest.fixture(autouse=True)
def short_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each broker of a line is a process that starts."""
    for scenario in (one, registering):
        monkeypatch.setattr(scenario, "_LINE", 2)


def measured(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main(["network", "--quick", *arguments, "--json"]) == 0
    values = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert isinstance(values, dict)
    return values


@pytest.mark.parametrize(
    ("scenario", "promised"),
    [
        ("one", {"cpu_us_one", "accepted_per_s", "line_p50_commits", "one_checked"}),
        ("fan", {"cpu_us_fan", "deliveries_per_core_s", "fan_checked"}),
        ("clients", {"client_us", "client_blocking_ratio", "client_aio_ratio"}),
        ("paths", {"lxml_service_ratio_12", "ping_p99_ms", "crash_s_12", "paths_checked_12"}),
        ("away", {"away_disk_ratio", "away_publish_ratio", "drain_s"}),
        ("away-paths", {"away_paths_accepted_s", "away_paths_checked", "ping_p99_ms"}),
        ("registering", {"register_per_s", "register_line_bulk_per_s", "restart_s"}),
    ],
)
def test_a_scenario_has_the_promised_keys(
    capsys: pytest.CaptureFixture[str], scenario: str, promised: set[str]
) -> None:
    assert measured(capsys, "--scenario", scenario).keys() >= promised


def test_an_interrupted_run_tells_what_it_has_and_leaves_no_process() -> None:
    command = ["-m", "benchmarks", "network", "--quick", "--scenario", "large", "fan", "--json"]
    running = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        first = json.loads(running.stdout.readline())
        assert first.keys() >= {"large_delivered_s", "large_checked", "longest_turn_ms"}
        while len(started := processes(running.pid)) < 3:
            time.sleep(0.02)  # until the network of the next scenario is there
        running.terminate()
        rest, _ = running.communicate(timeout=SAFETY_SECONDS)
    finally:
        running.kill()
        running.wait()
    assert running.returncode == 2
    last = json.loads(rest.splitlines()[-1])
    assert last["large_checked"] == first["large_checked"]
    given_up = time.monotonic() + SAFETY_SECONDS
    while left := [pid for pid in started if is_running(pid)]:  # the last one may be at its end
        assert time.monotonic() < given_up, left
        time.sleep(0.02)


def test_too_few_open_files_are_told_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda kind: (256, 2_000))
    assert main(["network", "--scenario", "paths", "--path-profiles", "10,000"]) == 2
    assert "10,256 open files are needed" in capsys.readouterr().err
    set_to: list[object] = []
    monkeypatch.setattr("resource.setrlimit", lambda kind, limits: set_to.append(limits))
    allow_many_files(1_500)
    assert set_to == [(2_000, 2_000)]


def test_a_wrong_delivery_ends_with_exit_code_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = Feed.expected
    monkeypatch.setattr(Feed, "expected", lambda feed, number: right(feed, number - 1))
    assert main(["network", "--quick", "--scenario", "fan"]) == 1
    captured = capsys.readouterr()
    assert "1 should not have come" in captured.err
    assert not captured.out


async def test_a_peer_that_cannot_be_measured_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shutil, "which", lambda program, path=None: None)
    report = NetworkReport()
    for name in PEERS:
        await measure_peers(name, ["one", "fan"], QUICK, tmp_path, report)
    assert report.to_json()["remarks"] == [
        "jetstream: nats-server is not installed",
        "nats: nats-server is not installed",
        "rabbitmq: rabbitmq-server is not installed",
        "mosquitto: mosquitto is not installed",
        "activemq: java is not installed",
        "redis: redis-server is not installed",
    ]


@pytest.mark.parametrize("name", PEERS)
def test_a_peer(capsys: pytest.CaptureFixture[str], name: str) -> None:
    for peer in PEERS[name]:
        if peer.program.found() is None:
            pytest.skip(f"needs {peer.program.name}")
    values = measured(capsys, "--scenario", "one", "fan", "away", "--peers", name)
    for peer in PEERS[name]:
        promised = {"one": "fsyncs_one", "fan": "cpu_us_fan", "away": "away_disk_ratio"}
        assert values.keys() >= {f"{promised[each]}_{peer.name}" for each in peer.scenarios}


@pytest.mark.parametrize(
    ("came", "what"),
    [
        ([1, 3], "1 are lost, 0 came more than once, 0 should"),
        ([1, 2, 2, 3], "0 are lost, 1 came more than once, 0 should"),
        ([1, 2, 3, 4], "0 are lost, 0 came more than once, 1 should"),
        ([2, 1, 3], "else the order is wrong"),
    ],
)
def test_lost_doubled_and_disordered_deliveries(came: list[int], what: str) -> None:
    compare([[1, 2, 3]], [[1, 2, 3]])
    with pytest.raises(WrongAnswers, match=what):
        compare([[5], [1, 2, 3]], [[5], came])


async def test_every_byte_of_a_result_is_compared() -> None:
    feed = Feed([b"<a x='1'><b/></a>", b"<a/>"], ["/a"])
    subscribers = Subscribers(feed, ["p1"])
    for number, result in ((1, b"<a x='1'><b/></a>"), (2, b"<a/>"), (3, b'<a x="1"><b></b></a>')):
        subscribers.take(0, Delivery("p1", "s1", number, [result]))
    assert not subscribers.wrong
    assert subscribers.numbers == [[1, 2, 3]]
    subscribers.take(0, Delivery("p1", "s1", 4, [b"<a> </a>"]))
    assert subscribers.wrong.startswith("message 4: ")


async def test_results_of_another_source_are_wrong() -> None:
    subscribers = Subscribers(Feed([b"<a/>"], ["/a"]), ["p1"])
    subscribers.take(0, Delivery("p1", "s1", 1, [b"<a/>"]))
    subscribers.take(0, Delivery("p1", "s2", 1, [b"<a/>"]))
    assert subscribers.wrong


def test_feeds(tmp_path: Path) -> None:
    small = small_feed(2)
    assert {len(message) for message in small.messages} == {SMALL_BYTES}
    assert len(set(small.messages)) == len(small.messages)
    feed = Feed([b"<a/>", b"<b/>", b"<a><b/></a>"], ["/a", "//b"])
    assert feed.expected(7) == [[1, 3, 4, 6, 7], [2, 3, 5, 6]]
    assert list(feed.published(3, 2)) == [b"<a><b/></a>", b"<a/>", b"<b/>"]
    assert Feed.read(feed.write(tmp_path / "feed.json")) == feed


def test_paths_of_yfilters_release(tmp_path: Path) -> None:
    (tmp_path / "messages").mkdir()
    (tmp_path / "messages" / "outFile1.xml").write_bytes(b"<nitf/>")
    with gzip.open(tmp_path / "profiles-path.txt.gz", "wt", encoding="utf-8") as lines:
        lines.write("/nitf\n//head\n/nitf/body\n")
    feed = yfilter_feed(tmp_path, 2)
    assert feed == Feed([b"<nitf/>"], ["/nitf", "//head"])
    assert feed.expected(2) == [[1, 2], []]
    with pytest.raises(BenchmarkError, match="has 1 messages and 3 profiles"):
        yfilter_feed(tmp_path, 4)


def test_quotes_have_the_results_that_profiles_construct(tmp_path: Path) -> None:
    feed = quotes_feed(replace(QUICK, large_quotes=2_000, large_messages=1))
    trees = [lxml.etree.fromstring(message) for message in feed.messages]
    for place, chosen in enumerate(
        [
            "@symbol = 'S0'",
            "last >= 2500 and last < 2600",
            "@symbol = 'S1'",
            "last >= 7500 and last < 7600",
        ]
    ):
        quotes = trees[0].xpath(f"/quotes/quote[{chosen}]")
        assert quotes
        assert [
            (result.tag, result.get("symbol"), result.findtext("last"))
            for result in map(lxml.etree.fromstring, feed.results(place, 1))
        ] == [(f"hit{place}", quote.get("symbol"), quote.findtext("last")) for quote in quotes]
    assert Feed.read(feed.write(tmp_path / "feed.json")) == feed


async def test_several_results_of_a_profile_are_compared() -> None:
    feed = Feed([b"<a/>"], ["p", "q"], [[[b"<x/>", b"<y/>"]], [[b"<z a='1'/>"]]])
    subscribers = Subscribers(feed, ["p1", "p2"])
    subscribers.take(0, Delivery("p1", "s1", 1, [b"<x/>", b"<y/>"]))
    subscribers.take(1, Delivery("p2", "s1", 1, [b'<z a="1"/>']))
    assert not subscribers.wrong
    subscribers.take(0, Delivery("p1", "s1", 2, [b"<x/>"]))
    assert subscribers.wrong.startswith("message 2: ")


def test_the_summary_is_over_all_scenarios() -> None:
    report = NetworkReport()
    report.pings("one", "one", [1.0] * 10)
    report.turn("one", "one", (7.0, "DataReceived"))
    report.pings("fan", "fan", [50.0] * 10)
    report.turn("fan", "fan", None)
    report.summary()
    assert report.value("ping_p99_ms_one") == 1.0
    assert report.value("ping_p99_ms") == 50.0
    assert report.value("pings") == 20
    assert report.value("longest_turn_ms") == 7.0


def test_path_profiles_match_as_often_as_wished() -> None:
    profiles, messages = 200, 40
    feed = path_feed(profiles, messages, QUICK)
    assert len(set(feed.profiles)) == profiles
    matches = sum(map(len, feed.expected(messages)))
    assert matches / profiles / messages == pytest.approx(QUICK.matching, rel=0.2)
