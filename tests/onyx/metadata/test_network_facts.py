"""What a network is, as documents that conform to the schema of it, without one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from formats.schema import read_schema
from formats.schema_reader import read_schema_model
from onyx.broker.archive.message_archive import ArchiveSegments
from onyx.metadata import MetadataCache, MetadataProvider
from onyx.metadata.network_feed import N_TRIPLES
from onyx.queries import Catalog
from overlay.answers import SourceInfo
from overlay.archive import ArchiveOptions
from overlay.archive_file import ArchivedMessage, files_of, packed
from overlay.topology import parse_topology
from registration.metadata.network_facts import SCHEMA, ArchiveFacts, NetworkFacts, SchemaFacts
from registration.metadata.provider import Outcome
from registration.spark.archive_files import ArchiveFiles
from tests.onyx.networks import small_topology_text

XSD = b"""<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:nitf">
<xs:element name="nitf"/></xs:schema>"""
WIRE = SourceInfo(
    id="s1-wire",
    name='the "wire"',
    root="B1",
    address="127.0.0.1:1",
    location=(48.5, 13.0),
    rate=2.5,
    size=1024,
    schema_name="nitf.xsd",
    schema_kind="xsd",
    validation="off",
    compression=[],
    ready=True,
)
FACTS = NetworkFacts(
    parse_topology(small_topology_text(Path("data")), "small.toml"),
    [WIRE],
    {"s1-wire": SchemaFacts.of(read_schema_model(read_schema("nitf.xsd", XSD)))},
    {"s1-wire": ArchiveFacts(1732.25, 1800.0, messages=40, bytes=41_000)},
    loads={"B1": 7},
    plan="p1",
    away=["B3"],
    down=[("B3", "B2")],
)
WHERE = "urn:onyx:network:small"
BUSY = """search Source s register s
where s.rate > 1 and s.schema.namespace? contains 'nitf' and s.root.load < 10"""


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[MetadataProvider]:
    with MetadataProvider(tmp_path / "provider") as provider:
        provider.put_schema(SCHEMA.encode(), "text/turtle")
        yield provider


def test_rules_look_across_sources_schemas_and_brokers(
    provider: MetadataProvider, tmp_path: Path
) -> None:
    assert FACTS.prefix == f"{WHERE}:"
    documents = FACTS.documents()
    assert [*documents] == [
        f"{WHERE}:{each}"
        for each in (
            *("source:s1-wire", "broker:B1", "broker:B2", "broker:B3"),
            *("link:B1:B2", "link:B2:B3", "archives", "plan"),
        )
    ]
    provider.register(documents, N_TRIPLES)
    for rule in (
        BUSY,
        "search Broker b register b where b.isAway = 'true'",
        "search Link l register l where l.isDown = 'true' and l.bandwidth > 0",
        "search Archive a register a where a.first < 1971-01-01T00:00:00Z",
        "search Plan p register p",
    ):
        provider.add_rule("L1", rule)
    with MetadataCache(tmp_path / "cache", "L1") as cache:
        for message in provider.changes("L1"):
            cache.apply(message)
        assert {*cache.resources()} == {
            f"{WHERE}:{each}"
            for each in (
                *("source:s1-wire", "source:s1-wire#schema", "source:s1-wire#archive"),
                *("broker:B3", "link:B2:B3", "plan"),
            )
        }
        query = "search Source s select s.name, s.schema.rootElement?, s.latitude"
        assert cache.query(query).rows == [('the "wire"', "nitf", "48.5")]


def test_an_archive_is_a_relation_of_queries(provider: MetadataProvider, tmp_path: Path) -> None:
    provider.register(FACTS.documents(), N_TRIPLES)
    for rule in ("search Archive a register a", "search DataProvider d register d"):
        provider.add_rule("L1", rule)
    with MetadataCache(tmp_path / "cache", "L1") as cache:
        for message in provider.changes("L1"):
            cache.apply(message)
        market = Catalog.of(cache).market
        named = Catalog.of(cache).market_for("SELECT * FROM archive.`s1-wire`")
    wire = market.relation('archive.the "wire"')
    assert wire is not None
    assert (wire.rows, wire.bytes, wire.location) == (40, 41_000, "")
    assert wire.refreshed == datetime.fromtimestamp(1800, UTC)
    assert [column.name for column in wire.columns][-1] == "message"
    assert wire.read_at == (market.client.uri,)
    assert dict(wire.options) == {"source": "s1-wire", "registration": "127.0.0.1:0"}
    assert not named.relations


def test_archives_of_sources_of_one_name_are_named_by_their_ids(
    provider: MetadataProvider, tmp_path: Path
) -> None:
    other = msgspec.structs.replace(WIRE, id="s2-wire")
    facts = FACTS._replace(
        sources=[WIRE, other], archives={each.id: ArchiveFacts(1.0) for each in (WIRE, other)}
    )
    provider.register(facts.documents(), N_TRIPLES)
    for rule in ("search Archive a register a", "search DataProvider d register d"):
        provider.add_rule("L1", rule)
    with MetadataCache(tmp_path / "cache", "L1") as cache:
        for message in provider.changes("L1"):
            cache.apply(message)
        catalog = Catalog.of(cache)
        assert catalog.faults() == []
        assert catalog.market.relation("archive.s2-wire") is not None
        assert catalog.market_for("select 1 from archive.`s1-wire`").relation("archive.s1-wire")


def test_summaries_count_the_messages_of_sources(tmp_path: Path) -> None:
    options = ArchiveOptions(directory=tmp_path, segment_seconds_max=0.1)
    for time, source in enumerate(("s1", "s2", "s1")):
        segments = ArchiveSegments("B1", options)
        segments.open()
        segments.write([packed(ArchivedMessage(source, time, time, "", b"<a/>"))], float(time))
        segments.close()
    (tmp_path / "onyx-B1-x.msgpack.zst").write_bytes(b"damaged")
    spans = ArchiveFiles.of(files_of(tmp_path)).spans
    assert {source: (span.messages, span.bytes) for source, span in spans.items()} == {
        "s1": (2, 8),
        "s2": (1, 4),
    }
    assert (spans["s1"].since, spans["s1"].until) == (0, 2)


def test_what_is_as_it_was_changes_nothing(provider: MetadataProvider) -> None:
    provider.register(FACTS.documents(), N_TRIPLES)
    provider.add_rule("L1", BUSY)
    revision = provider.revision
    assert provider.put_schema(SCHEMA.encode(), "text/turtle") == Outcome(revision, {})
    assert not provider.register(FACTS.documents(), N_TRIPLES).effects
    slower = FACTS._replace(loads={"B1": 11})
    (left,) = provider.register(slower.documents(), N_TRIPLES).effects["L1"].left
    assert left == f"{WHERE}:source:s1-wire"
