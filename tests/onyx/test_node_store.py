"""The store of a node: in which schema of a server it is, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from onyx.errors import StoreUnusable
from onyx.node_store import SCHEMA_BYTES_MAX, opened_store
from onyx.rebuilt_catalog import mark_for_rebuild
from overlay.link.events import Put
from overlay.topology import Topology
from registration.catalog_rebuild import marked
from tests.onyx.networks import small_topology
from tests.postgres import Postgres


def at(postgres: Postgres, name: str, directory: Path) -> Topology:
    topology = small_topology(directory, 1)
    brokers = tuple(replace(broker, store=postgres.url) for broker in topology.brokers)
    return replace(topology, name=name, brokers=brokers)


def test_each_network_has_a_schema_of_its_own(postgres: Postgres, tmp_path: Path) -> None:
    names = ["a", "a" * 57, "A", "a.b-c_d", "a" * 58, "a" * 64, "a" * 63 + "b"]
    seen = set()
    for name in names:
        with opened_store(at(postgres, name, tmp_path), "B1") as store:
            assert list(store.rows()) == []
            schema = store.where.rpartition("schema ")[2]
        seen.add(schema)
        assert len(schema) <= SCHEMA_BYTES_MAX
        found = postgres.ask(f"SELECT count(*) FROM pg_namespace WHERE nspname = '{schema}'")
        assert found == [(1,)]
    assert len(seen) == len(names)


def test_one_that_a_process_has_is_in_use(postgres: Postgres, tmp_path: Path) -> None:
    topology = at(postgres, "in-use", tmp_path)
    in_use = pytest.raises(StoreUnusable, match="B1 in schema onyx_in-use: in use by another")
    with opened_store(topology, "B1"), in_use, opened_store(topology, "B1"):
        pass


def test_a_registration_service_in_a_server_is_told_to_rebuild(
    postgres: Postgres, tmp_path: Path
) -> None:
    topology = at(postgres, "rebuilt", tmp_path)
    (node,) = topology.registration
    topology = replace(topology, registration=(replace(node, store=postgres.url),))
    with opened_store(topology, node.id) as store:
        before = store.epoch
        store.commit([Put("profile", "p1", b"1"), Put("key", "p1", b"k")])
        with pytest.raises(StoreUnusable, match="in use by another"):
            mark_for_rebuild(topology, [])
    assert mark_for_rebuild(topology, ["B1"]).endswith("as registration earlier")
    with opened_store(topology, node.id) as store:
        assert list(store.rows()) == [("key", "p1", b"k"), marked(["B1"])]
        assert store.epoch > before, "brokers refuse a lower one"
