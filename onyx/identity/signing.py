"""Signatures by certificates of a network: query plans, functions, validation reports (seed 001).

A signature is ECDSA over SHA-256 of the bytes, with the certificate of its signer beside it, so
that everybody with the network's authority certificate can check it.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Container
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import unquote, urlsplit

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from onyx.errors import NotAuthenticated
from onyx.identity.sealing import open_sealed
from overlay.link.credentials import serials_in
from overlay.link.principal import Principal

_ECDSA = ec.ECDSA(hashes.SHA256())
NO_SIGNATURE = (
    *(ValueError, TypeError, AssertionError, LookupError, binascii.Error, UnsupportedAlgorithm),
    *(x509.InvalidVersion, x509.ExtensionNotFound, x509.DuplicateExtension),
    x509.UnsupportedGeneralNameType,
)
"""Errors of texts that hold no certificate, or no signature."""


class Signature(NamedTuple):
    """``certificate``: PEM of the signer's; ``value``: base64 of the ECDSA signature (DER)."""

    certificate: str
    value: str


class Signer:
    """One who signs, by a file of credentials: key, certificate, the authority's certificate."""

    def __init__(self, credentials: Path) -> None:
        """NotAuthenticated for a file that holds none."""
        try:
            text = credentials.read_bytes()
            key = load_pem_private_key(text, None)
            self._certificate, *_ = x509.load_pem_x509_certificates(text)
            self.principal = _principal(self._certificate)
        except (OSError, ValueError) as error:
            raise NotAuthenticated(f"{credentials}: no credentials: {error}") from None
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise NotAuthenticated(f"{credentials}: the key is none of an elliptic curve")
        self._key = key

    @property
    def certificate(self) -> str:
        """In PEM."""
        return self._certificate.public_bytes(Encoding.PEM).decode("ascii")

    def sign(self, data: bytes) -> Signature:
        value = self._key.sign(data, _ECDSA)
        return Signature(self.certificate, base64.b64encode(value).decode("ascii"))

    def open(self, sealed: bytes, context: bytes) -> bytes:
        """A text that was sealed for this certificate.  NotAuthenticated."""
        return open_sealed(self._key, sealed, context)


class RevokedFile(Container[int]):
    """Serial numbers of revoked certificates (``serials_in``), of a file that is read again when it
    has changed.  A file that is not there has none; one that goes away keeps its numbers."""

    def __init__(self, path: Path) -> None:
        """NotAuthenticated for a file that is no list, here and when it is read again."""
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._serials: frozenset[int] = frozenset()
        self._refresh()

    def __contains__(self, serial: object) -> bool:
        self._refresh()
        return serial in self._serials

    def _refresh(self) -> None:
        try:
            said = self._path.stat()
            state = said.st_mtime_ns, said.st_size, said.st_ino
            if state != self._seen:
                self._serials = serials_in(self._path.read_text("utf-8").splitlines())
                self._seen = state
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            raise NotAuthenticated(f"{self._path}: no revoked certificates: {error}") from None


class SignatureCheck:
    """Checks signatures against the authorities of a network, of which there are two while one is
    replaced, and the numbers of their revoked certificates."""

    def __init__(self, authority: bytes, revoked: Container[int] = ()) -> None:
        """``authority``: a text with the authorities' certificates, as credentials are and as the
        authority's own file is.  NotAuthenticated where there is none."""
        try:
            found = x509.load_pem_x509_certificates(authority)
            now = datetime.now(UTC)
            self._authorities = [
                each for each in found if _is_authority(each) and now < each.not_valid_after_utc
            ] or found[-1:]
        except NO_SIGNATURE as error:
            raise NotAuthenticated(f"no certificate of an authority: {error}") from None
        self._revoked = revoked

    @classmethod
    def by(cls, credentials: Path, revoked: Path | None = None) -> Self:
        """By files as a node has them: its credentials, and the list of revoked numbers."""
        return cls(credentials.read_bytes(), RevokedFile(revoked) if revoked else ())

    def principal(self, data: bytes, signature: Signature) -> Principal:
        """The signer of ``data``.  NotAuthenticated where the signature is of other bytes, or its
        certificate is of another authority, over, not yet good or revoked."""
        certificate, principal = self.holder(signature.certificate)
        try:
            key = certificate.public_key()
            assert isinstance(key, ec.EllipticCurvePublicKey)
            key.verify(base64.b64decode(signature.value), data, _ECDSA)
        except InvalidSignature:
            raise NotAuthenticated("the signature is of another text") from None
        except NO_SIGNATURE as error:
            raise NotAuthenticated(f"no signature: {error}") from None
        return principal

    def holder(self, pem: str) -> tuple[x509.Certificate, Principal]:
        """A certificate and who has it.  NotAuthenticated where it is of another authority, over,
        not yet good or revoked."""
        try:
            certificate = x509.load_pem_x509_certificate(pem.encode())
            principal = _principal(certificate)
        except NO_SIGNATURE as error:
            raise NotAuthenticated(f"no certificate: {error}") from None
        if not any(_is_issued_by(certificate, each) for each in self._authorities):
            raise NotAuthenticated("the certificate is of another authority")
        if (
            not certificate.not_valid_before_utc
            <= datetime.now(UTC)
            < certificate.not_valid_after_utc
        ):
            raise NotAuthenticated(f"the certificate of {principal} is over, or not yet good")
        if certificate.serial_number in self._revoked:
            raise NotAuthenticated(f"the certificate of {principal} is revoked")
        return certificate, principal


class Signed(NamedTuple):
    """Claims with the signature of their one text: JSON with sorted keys and without blanks."""

    claims: dict[str, Any]
    signature: Signature

    @classmethod
    def of(cls, claims: dict[str, Any], signer: Signer) -> Self:
        return cls(claims, signer.sign(_canonical(claims)))

    @classmethod
    def read(cls, text: str | bytes) -> Self:
        """NotAuthenticated for a text that holds none."""
        try:
            said = json.loads(text)
            signature = Signature(str(said["certificate"]), str(said["value"]))
            return cls(dict(said["claims"]), signature)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise NotAuthenticated(f"no signed claims: {error}") from None

    def text(self) -> str:
        """As ``read`` takes it."""
        said = {"claims": self.claims, **self.signature._asdict()}
        return json.dumps(said, sort_keys=True) + "\n"

    def signer(self, check: SignatureCheck) -> Principal:
        """NotAuthenticated where the signature is not good, as ``check`` wants it."""
        try:
            return check.principal(_canonical(self.claims), self.signature)
        except (ValueError, RecursionError) as error:  # not a number in claims, depth
            raise NotAuthenticated(f"no signed claims: {error}") from None


def _canonical(claims: dict[str, Any]) -> bytes:
    return json.dumps(claims, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _principal(certificate: x509.Certificate) -> Principal:
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    uri = names.get_values_for_type(x509.UniformResourceIdentifier)[0]
    return Principal.of_uri(uri, unquote(urlsplit(uri).netloc))


def _is_authority(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except NO_SIGNATURE:
        return False


def _is_issued_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True
