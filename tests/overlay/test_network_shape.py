"""Versions of a network's shape: which trees change with them, and what their names say."""

from __future__ import annotations

import pytest
from msgspec import structs
from msgspec.structs import replace

from formats import Compression, compress
from overlay.link.events import Put
from overlay.link.row_log import RowLog
from overlay.network_shape import (
    SHAPE,
    NetworkShape,
    first_shape,
    is_connected,
    next_shape,
    refreshed,
)
from overlay.nodes import Link
from overlay.routing.broadcast_tree import broadcast_tree
from overlay.topology import Topology, TopologyError, parse_topology
from overlay.tree_name import root_of, tree_name, version_of


def ring(*latencies: int) -> Topology:
    """B0 - B1 - ... - B0."""
    count = len(latencies)
    lines = ['name = "ring"', '[registration]\nid = "r"\nlisten = "127.0.0.1:1"']
    lines += [f'[[broker]]\nid = "B{n}"\nlisten = "127.0.0.1:{10 + n}"' for n in range(count)]
    for n, latency in enumerate(latencies):
        lines.append(f'[[link]]\nends = ["B{n}", "B{(n + 1) % count}"]\nlatency_ms = {latency}')
    return parse_topology("\n".join(lines), "ring.toml")


def test_names_of_trees() -> None:
    assert (tree_name("B1", 0), tree_name("B1", 7)) == ("B1", "B1@7")
    assert (root_of("B1@7"), version_of("B1@7")) == ("B1", 7)
    assert (root_of("B1"), version_of("B1"), version_of("B1@x")) == ("B1", 0, 0)


def test_only_trees_that_are_others_get_another_name() -> None:
    before = first_shape(ring(1, 1, 1, 9))
    shorter = Link(("B0", "B2"), 1.5)
    after = next_shape(before, replace(before.declared, links=(*before.declared.links, shorter)))
    for root in before.declared.broker_ids:
        old, new = (broadcast_tree(shape.topology, root).parent for shape in (before, after))
        assert after.tree(root) == (root if old == new else f"{root}@1")
    assert {after.tree(root) for root in ("B0", "B1")} == {"B0@1", "B1"}
    assert after.tree("B9") is None


def test_a_shape_with_a_tree_of_no_broker_is_none() -> None:
    said = first_shape(ring(1, 1, 1)).announced(is_packed=True)
    assert NetworkShape.from_announced(said) == first_shape(ring(1, 1, 1))
    with pytest.raises(TopologyError, match="trees are not those"):
        NetworkShape.from_announced(structs.replace(said, trees=said.trees[1:]))


def test_a_name_stays_until_the_tree_changes_again() -> None:
    shape = first_shape(ring(1, 1, 1, 9))
    link = frozenset(("B0", "B1"))
    for down, version in (([link], 1), ([link], 1), ([], 3)):
        shape = next_shape(shape, shape.declared, down)
        assert shape.tree("B0") == f"B0@{version}"
    assert shape.version == 3
    assert shape.new_trees == [f"B{n}@3" for n in range(4) if shape.tree_versions[f"B{n}"] == 3]


def test_links_that_are_down_are_declared_and_not_in_use() -> None:
    topology = ring(1, 1, 1)
    link = frozenset(("B0", "B1"))
    shape = next_shape(first_shape(topology), topology, [link, frozenset(("B0", "B9"))])
    assert shape.down == {link}
    assert len(shape.declared.links) == 3
    assert shape.topology.neighbours("B0") == ("B2",)
    assert is_connected(topology, [link])
    assert not is_connected(topology, [link, frozenset(("B1", "B2"))])


def stored(shape: NetworkShape) -> bytes:
    """The row that is made of it."""
    rows = RowLog()
    SHAPE.put(rows, str(shape.version), shape.row())
    (put,) = rows.drain()
    assert isinstance(put, Put)
    return put.value


def test_a_shape_comes_back_from_its_row() -> None:
    topology = ring(1, 2, 3)
    shape = next_shape(first_shape(topology), topology, [frozenset(("B0", "B1"))], ["B9"])
    again = NetworkShape.from_row(1, SHAPE.read("1", stored(shape)))
    assert (again.tree_versions, again.down, again.lost) == (
        shape.tree_versions,
        shape.down,
        shape.lost,
    )
    assert again.topology.links == shape.topology.links


def test_what_a_process_is_started_with_does_not_change_the_shape() -> None:
    old, new = ring(1, 1, 1), ring(5, 5, 5, 5).with_addresses({"B0": ("10.0.0.1", 99)})
    shape = refreshed(first_shape(old), new)
    assert shape.declared.broker_ids == old.broker_ids
    assert [link.latency_ms for link in shape.declared.links] == [1, 1, 1]
    assert str(shape.declared.address("B0")) == "10.0.0.1:99"


def test_a_shape_comes_back_from_what_brokers_are_told() -> None:
    before = first_shape(ring(1, 1, 1, 1))
    left = next_shape(before, before.declared, [frozenset(("B0", "B1"))])
    plain, packed = (left.announced(is_packed=is_packed) for is_packed in (False, True))
    assert len(packed.payload) < len(plain.payload) / 2
    assert NetworkShape.from_announced(plain) == NetworkShape.from_announced(packed) == left


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (b"\xff", "is not UTF-8"),
        (compress(b"\xff", Compression.ZLIB), "is not UTF-8"),
        (b"\x78\x9cdamaged", "zlib stream"),
        (b"", "missing"),
    ],
)
def test_what_is_no_shape_is_refused(payload: bytes, why: str) -> None:
    frame = first_shape(ring(1, 1, 1)).announced(is_packed=False)
    with pytest.raises(TopologyError, match="version 0 of the network") as caught:
        NetworkShape.from_announced(structs.replace(frame, payload=payload))
    assert why in str(caught.value)
