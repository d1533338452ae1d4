"""``[gateway]`` of a topology file."""

from __future__ import annotations

from pathlib import Path

import pytest

from overlay.errors import TopologyError
from overlay.gateway import GatewayTable
from overlay.nodes import Address
from overlay.topology import parse_topology, to_toml

NETWORK = """
name = "n"
[registration]
id = "R"
listen = "127.0.0.1:0"
[[broker]]
id = "B"
listen = "127.0.0.1:0"
"""
LISTEN = Address("0.0.0.0", 443)
SECURE_TEXT = """
[gateway]
listen = "0.0.0.0:443"
tls_certificate = "a.pem"
tls_key = "a.key"
names = ["onyx.example"]
"""
SECURE = GatewayTable(LISTEN, Path("a.pem"), Path("a.key"), ("onyx.example",))


@pytest.mark.parametrize(
    ("text", "gateway"),
    [
        ("", None),
        ("[gateway]", GatewayTable(Address("127.0.0.1", 7300))),
        (SECURE_TEXT, SECURE),
    ],
)
def test_what_a_file_says_is_written_again(text: str, gateway: GatewayTable | None) -> None:
    topology = parse_topology(NETWORK + text, "n.toml")
    assert topology.gateway == gateway
    assert parse_topology(to_toml(topology), "n.toml") == topology


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[gateway]\nlisten = "7300"', 'gateway.listen: "7300" is no address'),
        ('[gateway]\ntls_key = "a.key"', "tls_certificate and tls_key go together"),
        ("[gateway]\nport = 1", "gateway.port: unknown key"),
    ],
)
def test_what_is_wrong_is_refused_with_its_key(text: str, said: str) -> None:
    with pytest.raises(TopologyError, match=said):
        parse_topology(NETWORK + text, "n.toml")
