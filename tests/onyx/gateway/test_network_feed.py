"""A network that is asked what it is, as its own first user; it has an archive."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from onyx import DataSource, RequestFailed
from onyx.metadata import MetadataClient, MetadataProvider, MetadataRepository, network_feed
from onyx.metadata.network_feed import NetworkFeed
from onyx.queries import Catalog
from onyx.registration_client import RegistrationClient
from tests.hanging import SAFETY_SECONDS
from tests.onyx.networks import RunningProcess

DTD = b"<!ELEMENT flash (#PCDATA)>"
FAST = "search Source s register s where s.rate > 7 and s.schema.rootElement? = 'flash'"
KEPT = (
    "search Archive a register a where a.source.name = 'flashes' and a.first > 2020-01-01T00:00:00Z"
)


async def test_a_source_comes_and_goes_by_its_rate(
    gateway_network: RunningProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_feed, "LOOK_SECONDS", 0.1)
    where = gateway_network.registration
    (tmp_path / "flash.dtd").write_bytes(DTD)
    own = await DataSource.register(where, name="the-network")
    with trio.fail_after(SAFETY_SECONDS), MetadataProvider(tmp_path / "provider") as provider:
        async with own, trio.open_nursery() as nursery:
            nursery.start_soon(NetworkFeed(where, own, provider).run)
            place = MetadataRepository(tmp_path / "cache", where, "L1", provider=own.id)
            async with place as repository, RegistrationClient(where) as client:
                while not provider.documents():
                    await trio.sleep(0.05)
                for rule in (FAST, KEPT):
                    await repository.add_rule(rule)
                flashes = await client.register_source(
                    name="flashes", schema=tmp_path / "flash.dtd", rate=8.0
                )
                async with DataSource(where, flashes.id) as source:
                    await source.publish(b"<flash/>")
                uri = f"urn:onyx:network:small:source:{flashes.id}"
                watched = repository.watch()
                awaited = {("came", uri), ("came", f"{uri}#archive")}
                while awaited:
                    each = await anext(watched)
                    awaited.discard((each.event, each.resource))
                await repository.add_rule("search DataProvider d register d")
                kept = Catalog.of(repository.cache).market_for("SELECT * FROM archive.flashes")
                relation = kept.relation("archive.flashes")
                assert relation is not None
                assert (relation.format, relation.rows) == ("archive", 1)
                assert dict(relation.options) == {"source": flashes.id, "registration": where}
                await client.update_source(flashes.id, rate=7.0)
                while (each.event, each.resource) != ("left", uri):
                    each = await anext(watched)
                await watched.aclose()
            async with MetadataClient(where, own.id) as others:
                with pytest.raises(RequestFailed, match="read-only"):
                    await others.remove(["urn:x"])
            nursery.cancel_scope.cancel()
