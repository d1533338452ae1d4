"""The metrics of a network: each row of the table is measured somewhere, and counts."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.request import urlopen

import pytest
import trio
from msgspec.structs import replace
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from onyx import DataSource, User, launch
from onyx.broker.messages.message_latency import LATENCY_EVERY
from onyx.gateway.gateway_metrics import METRICS as GATEWAY_METRICS
from onyx.identity.authority import AUTHORITY_DAYS, LEAF_DAYS
from onyx.registration_client import NetworkClient
from onyx.telemetry.metrics import METRICS, Metrics
from overlay.archive import ArchiveOptions
from overlay.link.histogram import BOUNDS, Histogram
from overlay.link.validity import days_left
from overlay.link.vitals import Vitals
from overlay.statistics import NodeStatistics
from overlay.topology import AdminOptions
from tests.onyx.networks import small_topology

DOCS = Path(__file__).resolve().parents[3] / "docs"
RULES, BOARD = DOCS / "alerts.yml", DOCS / "grafana.json"
SELDOM = {"onyx_epoch", "onyx_frames_refused"}
"""Only where there is a standby, a peer that errs."""

Sample = tuple[str, tuple[tuple[str, str], ...]]


def measured(text: str, node: str = "B1") -> dict[Sample, float]:
    """Of Prometheus's text, in which Prometheus's own parser finds no fault, and every metric of
    ours names the node."""
    return {
        (sample.name, tuple(sorted(set(sample.labels.items()) - {("node", node)}))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_times_are_counted_up_to_each_bound() -> None:
    histogram = Histogram()
    for seconds in (0.0, 0.0001, 0.0002, 11.0):
        histogram.note(seconds)
    buckets = list(histogram.buckets())
    assert [bound for bound, _ in buckets] == [*BOUNDS, float("inf")]
    assert buckets[0] == (0.0001, 2)
    assert buckets[-2:] == [(10.0, 3), (float("inf"), 4)]
    assert (histogram.count, histogram.seconds) == (4, pytest.approx(11.0003))


def test_a_process_that_has_no_core_yet_has_vitals() -> None:
    text, media_type = Metrics("B1", Vitals()).text("")
    assert media_type.startswith("text/plain")
    assert measured(text.decode())["onyx_ready", ()] == 0.0


def test_open_metrics_are_given_to_who_accepts_them() -> None:
    text, media_type = Metrics("B1", Vitals()).text("application/openmetrics-text; version=1.0.0")
    assert media_type.startswith("application/openmetrics-text")
    assert {family.name for family in openmetrics(text.decode())} >= {
        "onyx_ready",
        "onyx_turn_seconds",
    }


def ends(found: Mapping[Sample, float]) -> tuple[int, int, float]:
    """The days left of the process' certificate and of the authority's; how many of who is
    connected end soon."""
    end = "onyx_certificate_end_seconds"
    own, authority = (found[end, (("of", of),)] for of in ("own", "authority"))
    days = (round(days_left(until, time.time())) for until in (own, authority))
    return *days, found["onyx_certificates_ending", ()]  # type: ignore[return-value]


async def scraped(address: str) -> str:
    host, _, port = address.rpartition(":")
    stream = await trio.open_tcp_stream(host, int(port))
    async with stream:
        await stream.send_all(b"GET /metrics HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n")
        answer = b"".join([part async for part in stream])
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK"), head
    return body.decode()


async def test_every_metric_is_measured_in_a_network_that_runs(tmp_path: Path) -> None:
    topology = replace(
        small_topology(tmp_path / "data", 2),
        admin=AdminOptions(port_offset=0),
        archive=ArchiveOptions(directory=tmp_path / "archive"),
    )
    (tmp_path / "x.dtd").write_text("<!ELEMENT x EMPTY>")
    async with launch(topology) as network:
        where = network.registration
        source = await DataSource.register(where, location=(10.0, 0.0))
        checked = await DataSource.register(
            where, location=(20.0, 0.0), schema=tmp_path / "x.dtd", validate="report"
        )
        async with checked:
            assert (await checked.publish(b"<y/>")).accepted
        async with source, User(network.registration, "ada") as user:
            profile = await user.add_profile("//a", location=(20.0, 0.0), wait=True)
            for text in ("<m><a/><b>no</b></m>", "<m/>", "<m><a>2</a></m>"):
                assert (await source.publish(text.encode())).accepted
            assert not (await source.publish(b"<m>")).accepted
            many = [b"<m><a/></m>"] * LATENCY_EVERY  # one of which says when it was accepted
            assert all([outcome.accepted async for outcome in source.publish_all(many)])
            results = user.results(profile.id)
            for _ in range(2 + LATENCY_EVERY):
                await anext(results)
            found: dict[str, Mapping[Sample, float]] = {}
            addresses = {"registration": network.registration}
            addresses |= {broker: network.topology.where(broker) for broker in ("B1", "B2")}
            for node, address in addresses.items():
                async with NetworkClient(address) as client:
                    admin = str((await client.statistics(NodeStatistics)).node.admin)
                found[node] = measured(await scraped(admin), node)
    every = [row.metric for rows in METRICS.values() for row in rows]
    names = {name.removesuffix("_total") for each in found.values() for name, _ in each}
    names |= {name.removesuffix("_seconds_count") for name in names}
    assert {f"onyx_{metric.name}" for metric in every} - names <= SELDOM
    first, second = found["B1"], found["B2"]
    assert first["onyx_published_total", ()] == 4 + LATENCY_EVERY
    assert first["onyx_source_messages_total", (("source", source.id),)] == 4 + LATENCY_EVERY
    size = first["onyx_source_bytes_total", (("source", source.id),)]
    assert size == 3 + len("<m><a/><b>no</b></m><m/><m><a>2</a></m>") + 11 * LATENCY_EVERY
    assert first["onyx_refused_total", ()] == 1
    assert second["onyx_invalid_total", (("source", checked.id),)] == 1
    assert ("onyx_archive_written_total", ()) in second, "soon it is one"
    assert first["onyx_refused_by_code_total", (("code", "malformed"),)] == 1
    assert first["onyx_crossings_total", (("to", "B2"),)] == 2 + LATENCY_EVERY
    assert first["onyx_crossing_bytes_total", (("to", "B2"),)] > 0
    assert second["onyx_end_to_end_seconds_count", ()] == 1
    assert first["onyx_end_to_end_seconds_count", ()] == 0
    assert first["onyx_peer_online", (("peer", "B2"),)] == 1
    assert second["onyx_received_total", ()] == 2 + LATENCY_EVERY
    assert second["onyx_delivered_total", ()] == 2 + LATENCY_EVERY
    assert second["onyx_matched_here_total", ()] == 2 + LATENCY_EVERY
    assert second["onyx_profiles", ()] == found["registration"]["onyx_catalog_profiles", ()] == 1
    assert all(each["onyx_ready", ()] == 1 for each in found.values())
    assert {ends(each) for each in found.values()} == {(LEAF_DAYS, AUTHORITY_DAYS, 0)}
    assert all(each["onyx_commit_seconds_count", ()] > 0 for each in found.values())
    assert all(each["onyx_answer_seconds_count", ()] > 0 for each in found.values())
    assert not any(profile.id in str(label) for each in found.values() for label in each)


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="Prometheus is not installed")
async def test_prometheus_scrapes_a_network_and_alerts(tmp_path: Path) -> None:
    """The network runs without TLS, of which there is an alert."""
    topology = replace(small_topology(tmp_path / "data", 1), admin=AdminOptions(port_offset=0))
    async with launch(topology, is_secure=False) as network:
        targets = []
        for node in ("registration", "B1"):
            async with NetworkClient(network.topology.where(node)) as client:
                targets.append(str((await client.statistics(NodeStatistics)).node.admin))
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(RULES)],
            "scrape_configs": [{"job_name": "onyx", "static_configs": [{"targets": targets}]}],
        }
        file = tmp_path / "prometheus.yml"
        file.write_text(json.dumps(config))
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [
            "prometheus",
            f"--config.file={file}",
            f"--storage.tsdb.path={tmp_path / 'tsdb'}",
        ]
        command.append(f"--web.listen-address=127.0.0.1:{port}")
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as prometheus:
            try:
                firing: set[tuple[str, str]] = set()
                while not firing >= {("OnyxInsecure", target) for target in targets}:
                    await trio.sleep(0.2)
                    firing = await alerts(port)
            finally:
                prometheus.kill()


async def alerts(port: int) -> set[tuple[str, str]]:
    """(name, process) of what Prometheus says fires; none while it starts."""
    url = f"http://127.0.0.1:{port}/api/v1/alerts"
    try:
        answer = await trio.to_thread.run_sync(lambda: urlopen(url, timeout=5).read())
    except OSError:
        return set()
    found = json.loads(answer)["data"]["alerts"]
    labels = [alert["labels"] for alert in found if alert["state"] == "firing"]
    return {(each["alertname"], each["instance"]) for each in labels}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="Prometheus is not installed")
def test_the_alerts_are_what_prometheus_reads() -> None:
    done = subprocess.run(
        ["promtool", "check", "rules", RULES], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def queries_of_alerts() -> str:
    return "\n".join(line for line in RULES.read_text().splitlines() if "expr:" in line)


def queries_of_the_board() -> str:
    panels = json.loads(BOARD.read_text())["panels"]
    return "\n".join(each["expr"] for panel in panels for each in panel["targets"])


@pytest.mark.parametrize("queries", [queries_of_alerts, queries_of_the_board])
def test_alerts_and_board_are_about_metrics_that_there_are(queries: Callable[[], str]) -> None:
    every = [row.metric for rows in METRICS.values() for row in rows]
    every += [row.metric for row in GATEWAY_METRICS]
    known = {f"onyx_{metric.name}" + "_total" * metric.is_counter for metric in every}
    known |= {
        "onyx_ready",
        *(
            f"onyx_{n}_seconds_{e}"
            for n in ("turn", "commit", "answer", "hop", "end_to_end")
            for e in ("bucket", "count", "sum")
        ),
    }
    words = set(re.findall(r"\bonyx_\w+", queries()))
    assert words
    assert words <= known
