"""The identity of a process that asks or executes queries, by its file of credentials."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from onyx.errors import NotAuthenticated
from onyx.identity.signing import Signer


@dataclass(frozen=True, slots=True)
class Identity:
    """``signer`` None: an anonymous user.  ``authority``: the certificate, in PEM, by which the
    cycle providers of ``network`` are known, "" without TLS."""

    signer: Signer | None = None
    network: str = ""
    authority: str = ""

    @classmethod
    def of(cls, credentials: Path) -> Identity:
        """By a file of credentials, or, for somebody anonymous, by the authority's own file.
        NotAuthenticated."""
        try:
            text = credentials.read_text(encoding="ascii")
        except (OSError, ValueError) as error:
            raise NotAuthenticated(f"{credentials}: no credentials: {error}") from None
        mark = "-----BEGIN CERTIFICATE-----"
        authority = mark + text.rpartition(mark)[2]
        network = unquote(urlsplit(text.partition("\n")[0]).netloc)
        return cls(Signer(credentials) if "PRIVATE KEY" in text else None, network, authority)

    @property
    def user(self) -> str:
        """The name by which permissions know the user, "" for an anonymous one."""
        return self.signer.principal.name if self.signer is not None else ""
