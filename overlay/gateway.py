"""GatewayTable: the gateway of a network (``[gateway]`` of a topology file)."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

from overlay.errors import TopologyError
from overlay.nodes import Address

ANY_ORIGIN = "*"
DEFAULT_LISTEN = Address("127.0.0.1", 7300)
_ORIGIN = re.compile(r"https?://[a-z0-9.:\[\]_-]+|\*")  # as browsers write it


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
    origins: tuple[str, ...] = ()
    """sites whose pages may use the API (CORS), as `https://app.example`; `*`: any, by tokens"""

    def check(self) -> None:
        """TopologyError where one does not go with another."""
        if (self.tls_certificate is None) != (self.tls_key is None):
            key = "tls_key" if self.tls_certificate is None else "tls_certificate"
            raise TopologyError("", key, "tls_certificate and tls_key go together")
        if wrong := self.wrong_origin:
            raise TopologyError("", "origins", wrong)

    @property
    def wrong_origin(self) -> str:
        """Why an origin is none, "" where all are."""
        for origin in self.origins:
            if not _ORIGIN.fullmatch(origin):
                return f'{origin!r}: expected "https://HOST", "https://HOST:PORT" or "*"'
        return ""
