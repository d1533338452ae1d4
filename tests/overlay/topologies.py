"""Topologies for tests: written by hand as TOML, or generated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from formats import LEVELS, WireFormat
from formats.limits import MessageLimits
from overlay.link.limits import LinkLimits
from overlay.nodes import AUTO, LinkFormat, Transformation
from overlay.stores import SQLITE, StoreOptions
from overlay.topology import (
    Address,
    BrokerNode,
    Limits,
    Link,
    Place,
    RegistrationNode,
    Topology,
    parse_topology,
)

EXAMPLES = Path(__file__).resolve().parents[2] / "topologies"

PAIR = """\
name = "pair"
[registration]
id = "R1"
listen = "127.0.0.1:7000"
[[broker]]
id = "B1"
listen = "127.0.0.1:7001"
[[broker]]
id = "B2"
listen = "127.0.0.1:7002"
[[link]]
ends = ["B1", "B2"]
"""


def network(*links: tuple[str, str, float]) -> Topology:
    """A topology of the brokers that the links (a, b, latency in ms) name, in that order."""
    ids = list(dict.fromkeys(end for a, b, _ in links for end in (a, b)))
    return topology_of(
        tuple(BrokerNode(broker_id, Address("127.0.0.1", 0)) for broker_id in ids),
        tuple(Link((a, b), latency_ms) for a, b, latency_ms in links),
    )


def topology_of(brokers: tuple[BrokerNode, ...], links: tuple[Link, ...] = ()) -> Topology:
    registration = (RegistrationNode("R1", Address("127.0.0.1", 0)),)
    return Topology("test", Path(".onyx/test"), registration, brokers, links)


@st.composite
def formats_and_levels(draw: st.DrawFn) -> tuple[LinkFormat, int | None]:
    """A format with a level that it has."""
    wire_format = draw(st.sampled_from(WireFormat))
    levels = LEVELS[wire_format.compression]
    if draw(st.booleans()):
        return AUTO, None
    return wire_format, draw(st.sampled_from([None, levels[0], levels[-1]])) or None


def pair_with(old: str, new: str) -> Topology:
    """The pair with one piece of its text replaced."""
    assert old in PAIR
    return parse_topology(PAIR.replace(old, new, 1), "pair.toml")


_words = st.text(alphabet="ABCxyz019._-", min_size=1, max_size=12).filter(lambda w: w.strip("."))
_labels = st.text(max_size=20).filter(str.isprintable)
_places = st.builds(
    Place, st.floats(min_value=-90, max_value=90), st.floats(min_value=-180, max_value=180)
)
_counts = st.integers(min_value=1, max_value=2**31 - 1)
_message_limits = st.builds(
    MessageLimits,
    bytes_max=st.integers(min_value=1, max_value=2**20),
    depth_max=_counts,
    elements_max=_counts,
    attributes_max=_counts,
    names_max=_counts,
    expansion_max=_counts,
)
_limits = st.builds(
    Limits,
    message=_message_limits,
    link=st.builds(
        LinkLimits,
        frame_bytes_max=st.integers(min_value=2**20, max_value=2**31 - 1),
        window_frames=st.integers(min_value=1, max_value=1024),
        keepalive_seconds=st.floats(min_value=0.1, max_value=3600),
    ),
    link_backlog_bytes_max=st.integers(min_value=1024, max_value=2**40),
    link_away_bytes_max=st.integers(min_value=1024, max_value=2**50),
    profiles_max=_counts,
)


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    """Connected networks of 1 to 9 brokers in which anything that may vary does."""
    ids = draw(st.lists(_words, min_size=2, max_size=10, unique=True))
    stores = StoreOptions(draw(st.sampled_from(["sqlite", "trial", "postgresql://db/x"])))
    hosts = st.sampled_from(["127.0.0.1", "::1", "broker-1.example.org", "localhost"])
    addresses = [
        Address(draw(hosts), draw(st.sampled_from([0, 10_000 + index])))
        for index in range(len(ids))
    ]
    brokers = tuple(
        BrokerNode(
            broker_id,
            address,
            place=draw(st.none() | _places),
            capacity=draw(st.integers(min_value=0, max_value=10**9)),
            label=draw(_labels),
            **draw(st.sampled_from([{"store": SQLITE}, *_stores(20_000 + index, stores.url)])),
        )
        for index, (broker_id, address) in enumerate(zip(ids[1:], addresses[1:], strict=True))
    )
    pairs = [(draw(st.integers(min_value=0, max_value=b - 1)), b) for b in range(1, len(brokers))]
    for a in range(len(brokers)):
        for b in range(a + 1, len(brokers)):
            if (a, b) not in pairs and draw(st.integers(min_value=0, max_value=3)) == 0:
                pairs.append((a, b))
    links = tuple(
        Link(
            (brokers[a].id, brokers[b].id)
            if draw(st.booleans())
            else (brokers[b].id, brokers[a].id),
            draw(st.floats(min_value=0, max_value=60_000)),
            draw(st.floats(min_value=1, max_value=1e9)),
            *draw(formats_and_levels()),
            transformation=draw(st.sampled_from(Transformation)),
        )
        for a, b in pairs
    )
    return Topology(
        draw(_words),
        Path(draw(st.sampled_from([".onyx/x", "/var/lib/onyx", "a b/ü", '"\\']))),
        (RegistrationNode(ids[0], addresses[0]),),
        brokers,
        links,
        draw(_limits),
        stores=stores,
    )


def _stores(port: int, url: str) -> Iterator[dict[str, Any]]:
    """With and without a standby, of a node whose store is of the network, or its own."""
    for store in (url, "postgresql:///?service=own"):
        if store != SQLITE:
            standby = Address("standby.example.org", port)
            yield {"store": store, "standby": standby}
            yield {
                "store": store,
                "standby": standby,
                "standby_links": Address("::1", port + 5_000),
            }
        yield {"store": store}
