"""OidcOptions: whose OpenID Connect tokens are taken in place of the network's own (``[oidc]``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from urllib.parse import urlsplit

from overlay.toml_table import TomlTable, quote, table_lines

LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class OidcOptions:
    """issuer    who signs the tokens: their ``iss``
    audience  what they are for, this network: their ``aud``, or one of these
    jwks      where the issuer's keys are: an https URL, or a file
    claim     what the user's name is in a token
    """

    issuer: str
    audience: str
    jwks: str
    claim: str = "sub"

    @property
    def is_url(self) -> bool:
        """Whether the keys come over the network."""
        return "://" in self.jwks


def read_oidc(top: TomlTable) -> OidcOptions | None:
    """``[oidc]`` of a topology file; TopologyError for what is wrong in it."""
    if "oidc" not in top:
        return None
    table = top.table("oidc", [field.name for field in fields(OidcOptions)])
    jwks = table.text("jwks")
    if "\0" in jwks or ("://" in jwks and not _is_safe(jwks)):
        raise table.refusal("jwks", f"{quote(jwks)} is no https:// URL, and no file")
    return OidcOptions(
        table.text("issuer"), table.text("audience"), jwks, table.text("claim", "sub")
    )


def _is_safe(url: str) -> bool:
    """Whether what it answers is what was asked."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)


def oidc_to_toml(options: OidcOptions | None) -> Iterator[str]:
    """The lines of ``[oidc]``, if there is one."""
    if options is not None:
        yield from table_lines("oidc", options)
