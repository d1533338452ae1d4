"""``[[metadata]]`` of a topology file."""

from __future__ import annotations

import pytest

from overlay.errors import TopologyError
from overlay.nodes import MetadataNode
from overlay.topology import parse_topology, to_toml
from tests.overlay.test_gateway import NETWORK

URL = "postgresql://db.example/onyx"
MEMBER = MetadataNode("M2", member="M1", prefixes=("http://m2/",), network=True)
TWO = '[[metadata]]\nname = "mdv"\n[[metadata]]\nname = "own"\nstore = "sqlite"\n'


@pytest.mark.parametrize(
    ("text", "providers"),
    [
        ("", ()),
        (TWO, (MetadataNode("mdv"), MetadataNode("own"))),
        (
            '[[metadata]]\nname = "M2"\nwith = "M1"\nprefixes = ["http://m2/"]\nnetwork = true\n',
            (MEMBER,),
        ),
        (f'{TWO}[stores]\nurl = "{URL}"', (MetadataNode("mdv", URL), MetadataNode("own"))),
    ],
)
def test_what_a_file_says_is_written_again(text: str, providers: tuple[MetadataNode, ...]) -> None:
    topology = parse_topology(NETWORK + text, "n.toml")
    assert topology.metadata == providers
    assert parse_topology(to_toml(topology), "n.toml") == topology


def test_a_trial_server_is_for_providers_as_well() -> None:
    topology = parse_topology(f'{NETWORK}{TWO}[stores]\nurl = "trial"', "n.toml")
    assert topology.has_trial_store
    providers = topology.with_trial_store(URL).metadata
    assert providers == (MetadataNode("mdv", URL), MetadataNode("own"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[metadata]]", r"metadata\[0\].name"),
        ('[[metadata]]\nname = "a/b"', r"metadata\[0\].name: \"a/b\" is no name"),
        ('[[metadata]]\nname = "a"\nstore = "x"', r"metadata\[0\].store: \"x\" is no store"),
        (TWO.replace("own", "mdv"), r'metadata\[1\].name: "mdv" is already the name of metadata'),
        ('[[metadata]]\nname = "a"\nwith = "a"', r'metadata\[0\].with: "a" is this provider'),
        ('[[metadata]]\nname = "a"\nprefixes = ["b"]', r"metadata\[0\].prefixes: need with"),
        ("[metadata]", "metadata: must be an array of tables"),
    ],
)
def test_what_is_wrong_is_refused_with_its_key(text: str, said: str) -> None:
    with pytest.raises(TopologyError, match=said):
        parse_topology(NETWORK + text, "n.toml")
