"""Signatures by certificates: the signer is known, and everything else is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from onyx.errors import NotAuthenticated
from onyx.identity.authority import Authority
from onyx.identity.signing import Signature, SignatureCheck, Signer
from overlay.link.principal import Principal

ANN = Principal("user", "ann")
TEXT = b"a query plan"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.make(tmp_path / "identity", "figure 1/ä")


@pytest.fixture
def credentials(authority: Authority, tmp_path: Path) -> Path:
    path = tmp_path / "ann.pem"
    path.write_bytes(authority.issue(ANN))
    return path


def test_who_signed_is_known(authority: Authority, credentials: Path) -> None:
    signature = Signer(credentials).sign(TEXT)
    check = SignatureCheck.by(credentials, authority.revoked_file)
    assert check.principal(TEXT, signature) == ANN
    assert (
        SignatureCheck((authority.directory / "authority.pem").read_bytes()).principal(
            TEXT, signature
        )
        == Signer(credentials).principal
    )


CHANGES: dict[str, Callable[[bytes, Signature], tuple[bytes, Signature]]] = {
    "another text": lambda text, s: (text + b" ", s),
    "no base64": lambda text, s: (text, s._replace(value="§")),
    "cut": lambda text, s: (text, s._replace(value=s.value[:-8])),
    "no certificate": lambda text, s: (text, s._replace(certificate="")),
    "a broken certificate": lambda text, s: (text, s._replace(certificate=s.certificate[:90])),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_are_refused(authority: Authority, credentials: Path, change: str) -> None:
    text, signature = CHANGES[change](TEXT, Signer(credentials).sign(TEXT))
    with pytest.raises(NotAuthenticated):
        SignatureCheck.by(credentials).principal(text, signature)


def test_revoked_ended_and_foreign_certificates_are_refused(
    authority: Authority, credentials: Path, tmp_path: Path
) -> None:
    signature = Signer(credentials).sign(TEXT)
    authority.revoke({issued.serial for issued in authority.issued()})
    with pytest.raises(NotAuthenticated, match="revoked"):
        SignatureCheck.by(credentials, authority.revoked_file).principal(TEXT, signature)
    over = tmp_path / "over.pem"
    over.write_bytes(authority.issue(ANN, days=0))
    with pytest.raises(NotAuthenticated, match="is over"):
        SignatureCheck.by(over).principal(TEXT, Signer(over).sign(TEXT))
    other = tmp_path / "other.pem"
    other.write_bytes(Authority.make(tmp_path / "other", "figure 1/ä").issue(ANN))
    with pytest.raises(NotAuthenticated, match="authority"):
        SignatureCheck.by(credentials).principal(TEXT, Signer(other).sign(TEXT))


def test_files_without_credentials_are_named(tmp_path: Path) -> None:
    with pytest.raises(NotAuthenticated, match=r"nowhere\.pem"):
        Signer(tmp_path / "nowhere.pem")
    with pytest.raises(NotAuthenticated, match="authority"):
        SignatureCheck(b"")
