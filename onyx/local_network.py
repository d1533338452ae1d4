"""The network of ``onyx up`` without a file: one broker, on this machine, for whoever begins."""

from __future__ import annotations

from overlay.topology import Topology, parse_topology

FILE = "the network of onyx up without a file"
"""Its name in messages."""
_TEXT = """
name = "local"

[registration]
id = "R1"
listen = "127.0.0.1:7200"

[[broker]]
id = "B1"
listen = "127.0.0.1:7201"
"""


def local_network() -> Topology:
    return parse_topology(_TEXT, FILE)
