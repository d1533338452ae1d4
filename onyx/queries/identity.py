"""The identity of a process that asks or executes queries, by its file of credentials."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from onyx.errors import NotAuthenticated
from onyx.identity.signing import RevokedFile, SignatureCheck, Signer
from overlay.link.credentials import CredentialsFile


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
            said = CredentialsFile.read(credentials)
        except (OSError, ValueError) as error:
            raise NotAuthenticated(f"{credentials}: no credentials: {error}") from None
        if not said.certificates:
            raise NotAuthenticated(f"{credentials}: no credentials: it has no certificate")
        signer = Signer(credentials) if said.has_key else None
        authorities = said.certificates[1 if said.has_key else 0 :]
        return cls(signer, said.network, "".join(authorities))

    def check(self, revoked: Path | None = None) -> SignatureCheck | None:
        """Of signatures by the authority, with a list of revoked numbers; None without TLS."""
        if not self.authority:
            return None
        return SignatureCheck(self.authority.encode(), RevokedFile(revoked) if revoked else ())

    @property
    def user(self) -> str:
        """The name by which permissions know the user, "" for an anonymous one."""
        return self.signer.principal.name if self.signer is not None else ""
