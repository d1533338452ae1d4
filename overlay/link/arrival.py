"""Arrival: what a core is given of a connection, see link_layer.py."""

from __future__ import annotations

from typing import NamedTuple

from overlay.link.events import Flow
from overlay.link.frame import Frame

ANYONE = "*"
"""Dialled without knowing who will answer."""


def always(peer: str, flow: Flow, key: str) -> bool:
    """Acknowledge everything at once."""
    return True


class Arrival(NamedTuple):
    """A frame for the core; ``frame`` None says that the connection is gone.

    ``key`` and ``sequence`` are the place on the channel of a sequenced frame ("" and 0 else).
    """

    connection: int
    peer: str
    frame: Frame | None
    key: str = ""
    sequence: int = 0

    @property
    def sender(self) -> str:
        """The peer without its role."""
        return self.peer.partition("/")[2]
