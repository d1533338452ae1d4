"""A real network in which nearly everything is wrong: the doctor names each, and where it is."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace

from onyx import DataSource, User, doctor, launch
from onyx.cli.doctor import write_bundle
from onyx.doctor import DoctorFinding, Facts, examine
from onyx.doctor_facts import gather
from onyx.release import DISTRIBUTION
from overlay.topology import load_topology
from tests.hanging import SAFETY_SECONDS
from tests.onyx.networks import small_topology
from tests.onyx.test_contained import FAULT
from tests.survival.machine import Machine, machines
from tests.survival.proxy import Proxy
from tests.survival.separate_nodes import HERE, REGISTRATION, SeparateNodes
from tests.yfilter.hostile_profiles import HOSTILE, MESSAGE

LIMITS = """
[limits]
delivery_backlog_bytes_max = 2048
max_disjuncts = 1
evaluation_ms_max = 1
principal_processor_ms_s_max = 1
"""
SOME = 120  # messages, enough to say that nobody wanted them
DAYS = 3
SECRET = "what-only-the-message-says"
SCHEMA = (
    '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">'
    '<xs:include schemaLocation="more.xsd"/></xs:schema>'
)


class Sick:
    """B1 - B2 - B3, and what is done to them."""

    def __init__(self, nodes: SeparateNodes, machine: Machine, proxies: list[Proxy]) -> None:
        self.nodes = nodes
        self._machine = machine
        self._proxies = proxies

    async def facts(self) -> Facts:
        topology = load_topology(self.nodes.file(REGISTRATION))
        own = replace(topology, data_directory=self.nodes.data)
        return await gather(self.nodes.registration, own)

    async def found(self) -> dict[str, DoctorFinding]:
        """By check and what it is about."""
        findings = examine(await self.facts())
        return {f"{each.check} {each.about}": each for each in findings}

    async def until(self, *what: str) -> dict[str, DoctorFinding]:
        """What is found with all that; a busy process may not answer in time."""
        while not (found := await self.found()).keys() >= set(what):
            await trio.sleep(0.1)
        return found

    async def publish(self, latitude: float, *messages: bytes, name: str = "") -> None:
        where = (latitude, 0.0)
        source = await DataSource.register(self.nodes.registration, location=where, name=name)
        async with source:
            async for _ in source.publish_all(_each(messages)):
                pass

    async def cut(self, times: int) -> None:
        """The links of B2, each time when all its neighbours are there again."""
        for _ in range(times):
            for proxy in self._proxies:
                await proxy.cut()
            while any(
                not journal.online
                for _, statistics in (await self.facts()).answering()
                for _, journal in statistics.links.brokers()
            ):
                await trio.sleep(0.1)

    def days_pass(self) -> None:
        """At the machine of B2."""
        self._machine.set_clock(DAYS * 86_400)


async def _each(messages: tuple[bytes, ...]) -> AsyncIterator[bytes]:
    for message in messages:
        yield message


@asynccontextmanager
async def sick(directory: Path) -> AsyncIterator[Sick]:
    """Skipped where no clock can be set."""
    made = machines(directory, ["B2"])
    if not made:
        pytest.skip("a machine's clock is set by a library, for which there is no C compiler")
    nodes = SeparateNodes(
        *(directory, 3),
        limits=LIMITS,
        is_proxied=True,
        is_secure=False,
        environments={"B2": made["B2"].environment},
    )
    with nodes, trio.fail_after(SAFETY_SECONDS):
        async with trio.open_nursery() as nursery:
            proxies = {}
            for node, at in nodes.at.items():
                pairs = zip(nodes.through[node], at, strict=True)
                proxies[node] = [Proxy(*ports) for ports in pairs]
                for proxy in proxies[node]:
                    await nursery.start(proxy.run)
            nodes.start(["registration", "B1", "B2"], HERE)
            nodes.start(["B3"], another_release(directory / "release"))
            await nodes.wait_ready()
            yield Sick(nodes, made["B2"], proxies["B2"] + proxies["B3"])
            nursery.cancel_scope.cancel()


def another_release(folder: Path) -> Path:
    """The same code, with a fault, which says that it is release 0.0.9."""
    (folder / f"{DISTRIBUTION}-0.0.9.dist-info").mkdir(parents=True)
    for package in ("onyx", "yfilter", "registration", "overlay", "formats"):
        (folder / package).symlink_to(HERE / package)
    (folder / "sitecustomize.py").write_text(FAULT)
    return folder


async def test_each_thing_that_is_wrong_with_a_network_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "WAITING_SECONDS_MAX", 0.5)
    async with sick(tmp_path) as net:
        where = net.nodes.registration
        async with User(where, "ann") as user:
            for text in ('/m[@a = "1"]', '/m[@b = "1"]', HOSTILE["pairs that never sum"], "/away"):
                await user.add_profile(text, location=(10.0, 0.0))
            await user.add_profile("/gone", location=(20.0, 0.0))
        (tmp_path / "half.xsd").write_text(SCHEMA)
        half = await DataSource.register(where, name="half", schema=tmp_path / "half.xsd")
        await net.publish(0.0, *[b'<m c="1"/>'] * SOME, *[b"<m"] * (2 * SOME))
        await net.publish(10.0, *[MESSAGE] * 60)
        await net.publish(20.0, *[b"<nobody/>"] * SOME)
        await net.publish(10.0, *[b"<away>%s%s</away>" % (SECRET.encode(), b"x" * 500)] * 20)
        await net.cut(4)
        net.days_pass()
        net.nodes.stop("B3", signal.SIGKILL)
        await net.publish(0.0, b"<gone/>")
        wrong = {
            "process B3",
            "clock B2",
            "tls registration, B1, B2",
            "backlog B2 -> B3",
            "absent B2",
            "dropped B2",
            "useless B2",
            "suspended B2",
            "refused B1",
            "flapping B1 - B2",
            f"schema {half.id}",
        }
        found = await net.until(*wrong)
        bundle = tmp_path / "report.zip"
        write_bundle(bundle, await net.facts(), list(found.values()), None)
    assert "B3 is away" in found["backlog B2 -> B3"].what
    assert "3.0 days" in found["absent B2"].what
    assert SECRET.encode() not in bundle.read_bytes()


async def test_a_broker_of_another_release_that_fails_at_a_message(tmp_path: Path) -> None:
    """And whose messages nobody wants."""
    async with sick(tmp_path) as net:
        await net.publish(20.0, *[b"<nobody/>"] * SOME)
        found = await net.until("version B3", "matched B3")
        await net.publish(20.0, b"<poison/>")
        dead = (await net.until("dead B3"))["dead B3"]
    assert found["version B3"].what.startswith("runs release 0.0.9")
    assert f"any of {SOME} messages" in found["matched B3"].what
    assert "now: 1 in all" in dead.what


async def test_a_disk_that_has_less_than_its_reserve(tmp_path: Path) -> None:
    topology = small_topology(tmp_path / "data", 1)
    limits = replace(topology.limits, disk_reserve_bytes=1 << 50)
    async with launch(replace(topology, limits=limits), write_line=print) as network:
        facts = await gather(network.registration, network.topology)
    found = {(each.check, each.about) for each in examine(facts)}
    assert {("disk", "B1"), ("disk", "registration")} <= found
    assert len([about for check, about in found if check == "disk"]) == 3, "and the directory"
