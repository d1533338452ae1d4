"""Graphs through a real network."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from onyx import DataSource
from onyx.blocking import DataSource as BlockingDataSource
from onyx.cli.main import main
from tests.onyx.networks import SAFETY_SECONDS


@pytest.fixture
async def safety_net() -> AsyncIterator[None]:
    with trio.fail_after(SAFETY_SECONDS):
        yield


@pytest.mark.usefixtures("safety_net")
async def test_a_graph_that_is_none_is_refused_with_the_place(registration: str) -> None:
    source = await DataSource.register(registration)
    async with source:
        bad = await source.publish(b'<urn:a> <urn:b> "c" .\n<urn:a> <urn:b> .\n', "text/turtle")
        unknown = await source.publish(b"a,b", "text/csv")
        reserved = await source.publish(b'<g xmlns="urn:onyx:graph"/>')
        good = await source.publish(b"<urn:a> <urn:b> <urn:c> .", "Text/Turtle; charset=utf-8")
    assert (bad.code, bad.line) == ("malformed", 2)
    assert bad.column
    assert (unknown.code, reserved.code) == ("unknown-format", "reserved-namespace")
    assert good.accepted
    assert good.number == 4


def test_a_file_is_published_as_what_its_name_says(
    registration: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    triple = "<urn:a> <urn:b> <urn:c> ."
    files = {
        "1.ttl": "@prefix x: <urn:> . x:a x:b x:c .",
        "2.nt": triple,
        "3.nq": triple,
        "4.TRIG": f"<urn:g> {{ {triple} }}",
        "5.jsonld": '{"@id": "urn:a", "urn:b": {"@id": "urn:c"}}',
        "6.rdf": '<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>',
        "7.rss": "<rss/>",
        "8.xml": "<x/>",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    where = ["--registration", registration]
    source = BlockingDataSource.register(registration).id
    assert main(["source", "publish", source, str(tmp_path), *where]) == 0
    assert "8 accepted" in capsys.readouterr().out
    (tmp_path / "3.nq").write_text(triple + "\n<urn:a> .")
    named = [str(tmp_path / name) for name in ("3.nq", "1.ttl")]
    assert main(["source", "publish", source, *named, *where]) == 65
    assert "3.nq:2:" in capsys.readouterr().err
    kind = ["--media-type", "text/turtle"]
    assert main(["source", "publish", source, str(tmp_path / "2.nt"), *kind, *where]) == 0
    asked = ["trace", named[1], "--source", source, *where]
    assert main(asked) == 0
    assert "33 bytes as text/turtle" in capsys.readouterr().out


def test_a_blocking_source_says_the_media_type_too(registration: str) -> None:
    source = BlockingDataSource.register(registration)
    triple = b"<urn:a> <urn:b> <urn:c> ."
    with source:
        assert source.publish(triple, "text/turtle").accepted
        messages = [b"<x/>", (triple, "application/n-triples"), triple]
        assert [one.accepted for one in source.publish_all(messages)] == [True, True, False]
