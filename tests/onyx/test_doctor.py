"""The doctor names what is wrong with a network, set-up by set-up, and a remedy for each.

What is of a machine is really so: files, ports, limits, stores.  What processes say of themselves
is made up only where no real network says it (test_doctor_network.py).
"""

from __future__ import annotations

import json
import socket
import zipfile
from collections.abc import AsyncIterator, Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from onyx import launch, machine_checks
from onyx.cli.doctor import EXIT_FOUND, said, write_bundle
from onyx.cli.json_lines import decode_line
from onyx.cli.main import main
from onyx.doctor import RENEW, DoctorFinding, Facts, Process, Severity, examine, silence
from onyx.doctor_facts import gather, why_unread
from onyx.machine_checks import Machine, examine_machine
from onyx.release import version
from overlay.link.validity import DAY
from overlay.topology import Topology
from tests.onyx.networks import small_topology

SETTLED = 1_760_000_000.0


def broker(name: str = "B1", other: str = "B2") -> dict[str, Any]:
    """What a broker that is well says, as far as the doctor looks at it."""
    return {
        "broker": name,
        "node": {"version": version(), "started": SETTLED - 36_000, "time": SETTLED, "tls": {}},
        "data": {
            "published": 500,
            "refused": 3,
            "received": 500,
            "matched_here": 1,
            "crossings": {other: 400},
            "waiting_s": {other: 2.0},
            "disk_is_short": False,
        },
        "mailboxes": {"oldest_s": 60, "waiting": 9},
        "links": {"journals": {f"broker/{other}": {"online": True, "meetings": 2}}},
        "dead": {"kept": 0},
        "budgets": {"suspended": {}},
    }


def healthy() -> Facts:
    processes = {
        name: Process(f"127.0.0.1:{port}", broker(name, other))
        for name, other, port in (("B1", "B2", 7201), ("B2", "B1", 7202))
    }
    return Facts(version(), processes=processes, machine=[])


def changed(*path: str, to: object) -> Callable[[Facts], None]:
    """B1 says something else."""

    def change(facts: Facts) -> None:
        place: Any = facts.processes["B1"].statistics
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = to

    return change


def of_b1(**fields: Any) -> Callable[[Facts], None]:
    def change(facts: Facts) -> None:
        facts.processes["B1"] = replace(facts.processes["B1"], **fields)

    return change


def known(whose: str, days: float) -> Callable[[Facts], None]:
    """The end of a certificate that is known on this machine."""
    return lambda facts: facts.certificates.update({whose: facts.now + days * DAY})


def tls(**told: float) -> Callable[[Facts], None]:
    """B1 says in how many days certificates end: its own, the authority's, that of who is there."""
    ends = {of: SETTLED + days * DAY for of, days in told.items()}
    there = {"user/ann": ends.pop("ann")} if "ann" in ends else {}
    return changed("node", "tls", to={"principal": "broker/B1", "ends": ends, "ending": there})


BROKEN: Mapping[str, tuple[Callable[[Facts], None], str, str]] = {
    "certificate": (tls(own=12.4), "certificate", "ends in 12 days"),
    "key": (changed("node", "tls", to={"is_open": True}), "key", "can read its key"),
    "certificate over": (tls(own=-1), "certificate", "is over since"),
    "authority": (tls(authority=29), "certificate", "ends in 29 days"),
    "certificate of a user": (tls(ann=3), "certificate", "ends in 3 days"),
    "certificate that is issued": (
        *(known("the certificate of broker/B1", 2), "certificate", "ends in 2 days"),
    ),
    "peer is over": (
        of_b1(
            statistics=None,
            why=silence("certificate", "", "it has shown a certificate that is over"),
        ),
        *("process", "it has shown a certificate that is over"),
    ),
    "unread": (
        of_b1(statistics={"broker": "B1", "data": 3}),
        *("process", "the statistics of broker/B1 cannot be read: 'data' must be a map, not 3"),
    ),
    "down": (of_b1(statistics=None, down="failed 3 times"), "process", "failed 3 times"),
    "dead letters": (changed("dead", "kept", to=2), "dead", "now: 2 in all"),
}


def test_a_certificate_is_told_once_by_its_process_or_by_who_has_issued_it() -> None:
    facts = healthy()
    tls(own=12)(facts)
    known("the certificate of broker/B1", 12)(facts)
    assert only(facts).about == "B1: its certificate"


def test_a_certificate_that_is_over_is_no_firewall() -> None:
    facts = healthy()
    BROKEN["peer is over"][0](facts)
    assert only(facts).remedy == RENEW


def test_what_is_good_for_long_is_not_told() -> None:
    facts = healthy()
    tls(own=31, authority=3650)(facts)
    known("the certificate of user/bob", 31)(facts)
    assert examine(facts) == []


def only(facts: Facts) -> DoctorFinding:
    (found,) = examine(facts)
    assert found.remedy
    return found


def test_nothing_is_found_where_all_is_well() -> None:
    assert examine(healthy()) == []


@pytest.mark.parametrize("name", BROKEN)
def test_what_processes_say_of_themselves(name: str) -> None:
    breaks, check, what = BROKEN[name]
    facts = healthy()
    breaks(facts)
    found = only(facts)
    assert found.check == check
    assert what in found.what
    assert "B1" in found.about


@pytest.fixture
def topology(tmp_path: Path) -> Topology:
    return small_topology(tmp_path / "data", 1)


def test_a_slow_disk(topology: Topology, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_checks, "fsync_seconds", lambda folder, writes: 0.4)
    (found,) = examine_machine(Machine(topology, topology))
    assert found.what.startswith("a small write is on the disk after 400 ms")


def test_a_write_is_timed(tmp_path: Path) -> None:
    assert machine_checks.fsync_seconds(tmp_path) > 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (b'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"/>', ""),
        (
            (
                b'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">'
                b'<xs:include schemaLocation="more.xsd"/></xs:schema>'
            ),
            "a.xsd, line 1: ",
        ),
        (b"<xs:schema", "a.xsd: "),
    ],
)
def test_schemas_that_are_not_read(schema: bytes, why: str) -> None:
    found = why_unread("a.xsd", schema)
    assert found.startswith(why) if why else found == ""
    if why:
        facts = healthy()
        facts.schemas["s1"] = found
        assert (only(facts).check, only(facts).about) == ("schema", "s1")


def test_a_network_that_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert main(["doctor", "--registration", f"127.0.0.1:{port}", "--json"]) == EXIT_FOUND
    (line,) = capsys.readouterr().out.splitlines()
    decode_line("doctor", line)
    found = json.loads(line)
    assert (found["check"], found["severity"]) == ("reach", "problem")
    assert str(port) in found["what"]


def test_a_bundle_has_no_passwords(tmp_path: Path, topology: Topology) -> None:
    facts = healthy()
    changed("dead", "kept", to=2)(facts)
    (b1,) = topology.brokers
    store = "postgresql://onyx:secret@db/onyx"
    topology = structs.replace(topology, brokers=(structs.replace(b1, store=store),))
    path = tmp_path / "report.zip"
    write_bundle(path, facts, examine(facts), topology)
    with zipfile.ZipFile(path) as bundle:
        contents = {name: bundle.read(name).decode() for name in bundle.namelist()}
    assert contents.keys() == {
        *("about.json", "findings.json", "topology.toml"),
        *("processes/B1.json", "processes/B2.json"),
    }
    assert "onyx:***@db" in contents["topology.toml"]
    assert not any("secret" in content for content in contents.values())
    assert json.loads(contents["findings.json"])[0]["check"] == "dead"
    assert "now: 2 in all" in said(facts, examine(facts))


@pytest.fixture
async def facts_of_a_network(topology: Topology) -> AsyncIterator[Facts]:
    async with launch(topology, write_line=lambda line: None) as network:
        yield await gather(network.registration, network.topology)


async def test_a_network_that_runs_is_well(facts_of_a_network: Facts) -> None:
    """What is looked at is where the processes say it."""
    facts = facts_of_a_network
    assert facts.processes.keys() == {"registration", "B1"}
    found = [finding for finding in examine(facts) if finding.check not in ("fsync", "clock")]
    assert found == []
    for _, statistics in facts.answering():
        node = statistics.node
        assert None not in (node.version, node.started, node.time, node.tls)
    b1, well = facts.processes["B1"].statistics, deepcopy(broker("B1", "B2"))
    assert b1 is not None
    assert well.keys() <= b1.keys()
    journal = b1["links"]["journals"]["registration/registration"]
    assert journal["meetings"] == 1
    assert Severity.PROBLEM not in {finding.severity for finding in found}
