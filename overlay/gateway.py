"""GatewayTable: the gateway of a network (``[gateway]`` of a topology file)."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from overlay.errors import TopologyError
from overlay.nodes import Address

DEFAULT_LISTEN = Address("127.0.0.1", 7300)


class GatewayTable(Struct, frozen=True, forbid_unknown_fields=True):
    """What ``onyx up`` starts beside the nodes."""

    listen: Address = DEFAULT_LISTEN
    """where browsers and programs come; of this machine alone, unless there is a certificate"""
    tls_certificate: Path | None = None
    """a file in PEM, with its `tls_key`"""
    tls_key: Path | None = None
    """the same"""
    names: tuple[str, ...] = ()
    """by which browsers know it, beside that of its address"""

    def check(self) -> None:
        """TopologyError where one does not go with another."""
        if (self.tls_certificate is None) != (self.tls_key is None):
            key = "tls_key" if self.tls_certificate is None else "tls_certificate"
            raise TopologyError("", key, "tls_certificate and tls_key go together")
