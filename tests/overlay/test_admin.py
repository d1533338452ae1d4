"""Where processes say how they are, in a topology file."""

from __future__ import annotations

import pytest

from overlay.nodes import OUTGOING_FROM, Address, links_address
from overlay.topology import AdminOptions, TopologyError, parse_topology, to_toml

NETWORK = """
name = "n"
[registration]
id = "R1"
listen = "h:7000"
[[broker]]
id = "B1"
listen = "h:7001"
"""


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("", None),
        ("[admin]", AdminOptions("127.0.0.1", 20_000)),
        ('[admin]\nhost = "::1"\nport_offset = 0', AdminOptions("::1", 0)),
    ],
)
def test_it_is_read_and_written(text: str, options: AdminOptions | None) -> None:
    topology = parse_topology(NETWORK + text, "n.toml")
    assert topology.admin == options
    assert parse_topology(to_toml(topology), "n.toml") == topology


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[admin]\noffset = 1", 'admin.offset: unknown key; did you mean "port_offset"?'),
        ("[admin]\nport_offset = -1", "must be an integer from 0 to 40000, not -1"),
        ("[admin]\nhost = 7", "must be a string, not 7"),
    ],
)
def test_what_is_wrong_is_said(text: str, says: str) -> None:
    with pytest.raises(TopologyError) as refused:
        parse_topology(NETWORK + text, "n")
    assert says in str(refused.value)


def test_each_process_has_an_address_of_its_own() -> None:
    options = AdminOptions()
    assert options.address(Address("10.0.0.1", 7201)) == Address("127.0.0.1", 27201)
    assert options.address(Address("10.0.0.1", 60_000)) == Address("127.0.0.1", 20_000)
    assert AdminOptions(port_offset=0).address(Address("h", 7201)).port == 0


def test_no_port_that_follows_is_one_of_outgoing_connections() -> None:
    for port in range(1, 65_536):
        listen = Address("h", port)
        follow = links_address(listen).port, AdminOptions(host="h").address(listen).port
        assert len({port, *follow}) == 3
        assert all(0 < each < OUTGOING_FROM for each in follow)
