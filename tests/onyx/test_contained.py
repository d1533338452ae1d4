"""A real network with a fault: what meets it is passed over, and all else goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from onyx import DataSource, User, launch
from onyx.registration_client import NetworkClient
from tests.formats.test_schema_worker import GOOD, PATTERN, TRIED
from tests.onyx.networks import small_topology as topology_in

FAULT = """
import faulthandler, os, signal
from onyx.broker.messages.data_plane import DataPlane
from onyx.broker.profiles.query_plane import QueryPlane

match, update = DataPlane._match, QueryPlane.update

def faulty_match(self, parcel):
    if b"sigkill" in parcel.payload:
        os.kill(os.getpid(), signal.SIGKILL)
    if b"sigsegv" in parcel.payload:
        faulthandler._sigsegv()
    if parcel.stream is not None and (b"poison", b"venom")[parcel.hops] in parcel.payload:
        raise ZeroDivisionError("a fault")
    return match(self, parcel)

def faulty_update(self, profile, parsed):
    if "poison" in parsed.text:
        raise ZeroDivisionError("another fault")
    return update(self, profile, parsed)

DataPlane._match, QueryPlane.update = faulty_match, faulty_update
"""
"""Imported by every process of the network when it starts."""


async def test_a_broker_with_a_fault_goes_on_without_what_meets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(FAULT, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    said: list[str] = []
    async with launch(topology_in(tmp_path / "data", brokers=2), write_line=said.append) as network:
        pids = network.pids
        source = await DataSource.register(network.registration, location=(10.0, 0.0))
        async with source, User(network.registration, "ada") as user:
            profile = await user.add_profile("//n", location=(20.0, 0.0))
            assert (source.root, profile.host) == ("B1", "B2")
            texts = [b"<n>1</n>", b"<n>poison</n>", b"<n>3</n>"]
            outcomes = [outcome async for outcome in source.publish_all(_each(texts))]
            assert [outcome.accepted for outcome in outcomes] == [True, False, True]
            assert outcomes[1].code == "internal"
            results = user.results(profile.id)
            assert [(await anext(results)).results for _ in range(2)] == [[texts[0]], [texts[2]]]
            with pytest.raises(Exception, match="its log explains it under") as caught:
                await user.update_profile(profile.id, "//poison")
            await user.update_profile(profile.id, "//m")
        assert network.pids == pids
        letters = []
        for broker in ("B1", "B2"):
            async with NetworkClient(str(network.topology.address(broker))) as client:
                letters += (await client.call("dead.list"))["letters"]
    assert [letter["error"] for letter in letters] == [
        *("ZeroDivisionError: a fault", "ZeroDivisionError: another fault"),
    ]
    for letter in letters:
        assert any(letter["id"] in line and "failed at" in line for line in said)
    assert letters[1]["id"] in str(caught.value)


async def test_users_are_told_of_a_message_that_fells_a_broker_on_its_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(FAULT, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    async with launch(topology_in(tmp_path / "data", brokers=2)) as network:
        source = await DataSource.register(network.registration, location=(10.0, 0.0))
        async with source, User(network.registration, "ada") as user:
            profile = await user.add_profile("//n", location=(20.0, 0.0))
            texts = [b"<n>1</n>", b"<n>venom</n>", b"<n>3</n>"]
            outcomes = [outcome async for outcome in source.publish_all(_each(texts))]
            assert all(outcome.accepted for outcome in outcomes)
            results = user.results(profile.id)
            found = [await anext(results) for _ in range(3)]
    assert [one.results for one in found] == [[texts[0]], [], [texts[2]]]
    assert found[1].limit.startswith("at B2: an error in this process")


@pytest.mark.parametrize(("how", "deaths"), [("sigsegv", 1), ("sigkill", 2)])
async def test_what_a_broker_dies_of_without_an_exception_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, deaths: int
) -> None:
    (tmp_path / "sitecustomize.py").write_text(FAULT, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    said: list[str] = []
    async with launch(topology_in(tmp_path / "data", brokers=1), write_line=said.append) as network:
        async with await DataSource.register(network.registration) as source:
            texts = [b"<n>1</n>", f"<n>{how}</n>".encode(), b"<n>3</n>"]
            outcomes = [outcome async for outcome in source.publish_all(_each(texts))]
            assert [outcome.code for outcome in outcomes] == ["", "internal", ""]
        async with NetworkClient(str(network.topology.address("B1"))) as client:
            (letter,) = (await client.call("dead.list"))["letters"]
    assert letter["who"] == f"source/{source.info.id}" and letter["size"] > 0
    assert letter["id"] in outcomes[1].reason
    assert sum("died at publish from source/" in line for line in said) == deaths


async def test_a_message_that_its_schema_is_tried_on_for_ever_is_refused_and_the_next_is_not(
    tmp_path: Path,
) -> None:
    """A schema of 345 bytes, at which libxml2 gives up; another source is not touched."""
    (tmp_path / "p.xsd").write_bytes(PATTERN)
    (tmp_path / "a.xsd").write_bytes(GOOD)
    async with launch(topology_in(tmp_path / "data", brokers=1)) as network:
        pids = network.pids
        source, other = [
            await DataSource.register(network.registration, schema=schema, validate="reject")
            for schema in (tmp_path / "p.xsd", tmp_path / "a.xsd")
        ]
        async with source, other:
            texts = [b"<a>aab</a>", TRIED, b"<a>c</a>", b"<a>b</a>"]
            outcomes = [outcome async for outcome in source.publish_all(_each(texts))]
            assert [outcome.code for outcome in outcomes] == [
                *("", "schema-too-costly", "invalid", ""),
            ]
            assert (await other.publish(b"<a>1</a>")).accepted
        assert network.pids == pids


async def _each(texts: list[bytes]) -> AsyncIterator[bytes]:
    for text in texts:
        yield text
