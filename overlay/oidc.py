"""OidcOptions: whose OpenID Connect tokens are taken in place of the network's own (``[oidc]``)."""

from __future__ import annotations

from urllib.parse import urlsplit

from msgspec import Struct

from overlay.errors import TopologyError
from overlay.toml_table import Text
from overlay.unfit import quote

LOOPBACK = ("127.0.0.1", "::1", "localhost")


class OidcOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """Every process reads the keys for itself."""

    issuer: Text
    """the `iss` of its tokens"""
    audience: Text
    """this network, as the issuer calls it: their `aud`, or one of these"""
    jwks: Text
    """where its keys are (a JSON Web Key Set): an `https://` URL (`http://` on this machine alone),
    or a file; read again every hour, and for a key that is not known"""
    claim: Text = "sub"
    """the claim that is a user's name: 1 to 200 printable characters without `/` and `\\|`. Not one
    that users choose themselves: `user/ann` by a token is who `user/ann` is by a certificate"""

    @property
    def is_url(self) -> bool:
        """Whether the keys come over the network."""
        return "://" in self.jwks

    def check(self) -> None:
        """TopologyError where the keys are nowhere safe."""
        if "\0" in self.jwks or (self.is_url and not _is_safe(self.jwks)):
            raise TopologyError("", "jwks", f"{quote(self.jwks)} is no https:// URL, and no file")


def _is_safe(url: str) -> bool:
    """Whether what it answers is what was asked."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
