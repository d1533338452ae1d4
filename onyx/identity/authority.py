"""Authority: who in a network is who, as its certificates say.

::

    DATA/identity/              for its owner only
    ├── authority.key           signs; whoever has it can be anybody
    ├── authority.pem           its certificate: the network's name
    ├── next.key, next.pem      while it is replaced: the one that is to come
    ├── former.pem              and then the one of before, which is still trusted
    ├── issued                  serial number, end and principal of each certificate, one a line
    ├── revoked                 serial number and principal, one a line; read by nodes that run
    ├── operator.pem            credentials of the account that runs the network
    └── broker.B1.pem ...       credentials of its processes

An authority is replaced while all runs, in three steps, between which every file of credentials is
issued anew: ``prepare``, from which on both are trusted; ``replace``, from which on the next one
signs; ``forget``.  Files of one step and of the step before it or behind it go together.

What is in ``issued`` is for people and for ``revoke``; what counts is the signature.
"""

from __future__ import annotations

import os
import pwd
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from onyx.data_directory import write_atomically
from onyx.errors import NotAuthenticated, UsageError, file_errors
from onyx.identity.signing import NO_SIGNATURE
from overlay.link.credentials import serials_in
from overlay.link.principal import SERVER_ROLES, Principal
from overlay.link.validity import RENEW_DAYS, Certificate, days_left

SCHEME = "onyx://"
LEAF_DAYS = 90
AUTHORITY_DAYS = 3650
NAME_CHARACTERS_MAX = 64  # of X.509
CLOCK_SKEW = timedelta(minutes=5)


class Issued(NamedTuple):
    """One certificate."""

    serial: int
    until: datetime
    principal: Principal
    revoked: bool = False

    def days_left(self) -> float:
        return days_left(self.until.timestamp(), time.time())


class Authority:
    """Of the network whose data directory has the folder ``directory``."""

    def __init__(self, directory: Path) -> None:
        """NotAuthenticated when there is none; ``make`` one."""
        self.directory = directory
        self._read()

    def _read(self) -> None:
        try:
            key = load_pem_private_key(self._file("authority.key").read_bytes(), None)
            text = self._file("authority.pem").read_bytes()
            self._certificate = x509.load_pem_x509_certificate(text)
            if key.public_key() != self._certificate.public_key():  # in the middle of replacing
                with _locked(self.directory), suppress(FileNotFoundError):
                    self._file("next.pem").replace(self._file("authority.pem"))
                text = self._file("authority.pem").read_bytes()
                self._certificate = x509.load_pem_x509_certificate(text)
            self.network = unquote(text.partition(b"\n")[0].decode("ascii")).removeprefix(SCHEME)
        except (OSError, ValueError) as error:
            raise NotAuthenticated(
                f"{self.directory} holds no authority of a network: {error}; it is where onyx up "
                "has made it"
            ) from None
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        self._key = key

    @staticmethod
    def is_in(directory: Path) -> bool:
        return (directory / "authority.key").exists()

    @staticmethod
    def make(directory: Path, network: str) -> Authority:
        """That of a network, as it is in the folder; where there is none, a new one."""
        with file_errors(directory, "made"):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(directory):
            if not Authority.is_in(directory):
                _make(directory, network)
        return Authority(directory)

    @property
    def until(self) -> datetime:
        """When the authority ends, and all that it has issued."""
        return self._certificate.not_valid_after_utc

    @property
    def revoked_file(self) -> Path:
        return self.directory / "revoked"

    def file_of(self, principal: Principal) -> Path:
        """Where the credentials of a process, or of the operator, are kept."""
        if principal.role == "operator":
            return self.directory / "operator.pem"
        return self.directory / f"{principal.role}.{quote(principal.name, safe='')}.pem"

    def keep(self, principal: Principal, *, anew: bool = False) -> Path:
        """The file with credentials of a process; issued where there are none, where they end soon
        or are revoked, or where they are wanted ``anew``."""
        path = self.file_of(principal)
        if anew or not self._is_good(path, principal):
            write_atomically(path, self.issue(principal), mode=0o600)
        return path

    def kept(self) -> list[Principal]:
        """Whose credentials are in the folder."""
        found = []
        for path in sorted(self.directory.glob("*.pem")):
            with suppress(OSError, ValueError):
                uri = path.read_text(encoding="ascii").partition("\n")[0]
                found.append(Principal.of_uri(uri, self.network))
        return found

    def issue(self, principal: Principal, days: float = LEAF_DAYS) -> bytes:
        """New credentials, as one file: key, certificate, and that of the authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        signed = self._signed(principal, key.public_key(), timedelta(days=days))
        return credentials_of(principal.uri(self.network), key, signed)

    def renew(self, shown: Certificate, request: bytes) -> bytes:
        """A certificate for the key of a signing request (DER), as long as the one that was shown,
        and those of the authority, in PEM.  NotAuthenticated where the request is not by the holder
        of its key, or of another principal, or the certificate is revoked or over."""
        try:
            asked = x509.load_der_x509_csr(request)
            names = asked.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            key = asked.public_key()
        except NO_SIGNATURE as error:
            raise NotAuthenticated(f"no request for a certificate: {error}") from None
        if not (isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1)):
            raise NotAuthenticated("the key of the request is not of P-256")
        if not asked.is_signature_valid:
            raise NotAuthenticated("the request is not signed by its key")
        if [*names] != [x509.UniformResourceIdentifier(shown.uri)]:
            raise NotAuthenticated(f"the request is not for {shown.uri} alone")
        if shown.serial in self.revoked() or shown.untimely(time.time()):
            raise NotAuthenticated("the certificate that was shown is revoked or over")
        life = timedelta(seconds=shown.life) - CLOCK_SKEW
        return self._signed(Principal.of_uri(shown.uri, self.network), key, life)

    def _signed(
        self, principal: Principal, key: ec.EllipticCurvePublicKey, life: timedelta
    ) -> bytes:
        """A certificate, and those of the authorities that are trusted, in PEM."""
        until = min(datetime.now(UTC) + life, self.until)
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if principal.role in SERVER_ROLES:
            uses.append(ExtendedKeyUsageOID.SERVER_AUTH)
        uri = x509.UniformResourceIdentifier(principal.uri(self.network))
        names: list[x509.GeneralName] = [uri]
        if principal.role == "provider":  # gRPC goes by the name of a host
            names.append(x509.DNSName(principal.host_name(self.network)))
        certificate = (
            _certificate(_name(str(principal)), key, until)
            .issuer_name(self._certificate.subject)
            .add_extension(x509.SubjectAlternativeName(names), critical=True)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        with _locked(self.directory):
            line = f"{certificate.serial_number:x} {until:%Y-%m-%dT%H:%M:%SZ} {principal}\n"
            _append(self.directory / "issued", line)
        trusted = [*self._others(), self._certificate]
        return b"".join(c.public_bytes(Encoding.PEM) for c in (certificate, *trusted))

    def prepare(self) -> None:
        """Make the authority that is to come; whoever gets credentials from now on trusts both.
        UsageError where one is being replaced already."""
        with _locked(self.directory):
            if self._others():
                raise UsageError("an authority is being replaced already: go on with the next step")
            _make(self.directory, self.network, "next")

    def replace(self) -> None:
        """Let the next one sign from now on.  UsageError without one."""
        with _locked(self.directory):
            if not self._file("next.key").exists():
                raise UsageError("no next authority: say onyx cert authority prepare first")
            text = self._file("authority.pem").read_bytes()
            write_atomically(self._file("former.pem"), text, mode=0o600)
            for kind in ("key", "pem"):
                self._file(f"next.{kind}").replace(self._file(f"authority.{kind}"))
        self._read()

    def forget(self) -> None:
        """Trust the former one no more.  UsageError where there is none."""
        with _locked(self.directory):
            if not self._file("former.pem").exists():
                raise UsageError("no former authority: say onyx cert authority replace first")
            self._file("former.pem").unlink()

    def _others(self) -> list[x509.Certificate]:
        """Authorities that are trusted besides."""
        files = [self._file(f"{name}.pem") for name in ("next", "former")]
        return [x509.load_pem_x509_certificate(f.read_bytes()) for f in files if f.exists()]

    def issued(self) -> list[Issued]:
        """All certificates ever, the oldest first."""
        revoked = self.revoked()
        found = []
        for line in _lines(self.directory / "issued"):
            serial, until, principal = line.split(" ", 2)
            number = int(serial, 16)
            end = datetime.strptime(until, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
            found.append(Issued(number, end, Principal.parse(principal), number in revoked))
        return found

    def revoked(self) -> frozenset[int]:
        return serials_in(_lines(self.revoked_file))

    def revoke(self, serials: set[int]) -> None:
        """From now on nobody takes these; connections that have one are closed."""
        with _locked(self.directory):
            new = serials - self.revoked()
            whose = {each.serial: each.principal for each in self.issued() if each.serial in new}
            lines = [f"{serial:x} {whose.get(serial, '')}".rstrip() for serial in sorted(new)]
            text = "".join(f"{line}\n" for line in [*_lines(self.revoked_file), *lines])
            write_atomically(self.revoked_file, text.encode(), mode=0o600)

    def _file(self, name: str) -> Path:
        return self.directory / name

    def _is_good(self, path: Path, principal: Principal) -> bool:
        try:
            text = path.read_bytes()
            certificate = x509.load_pem_x509_certificate(text)
            certificate.verify_directly_issued_by(self._certificate)
        except (OSError, ValueError, TypeError, InvalidSignature):
            return False
        return (
            text.startswith(f"{principal.uri(self.network)}\n".encode())
            and days_left(certificate.not_valid_after_utc.timestamp(), time.time()) > RENEW_DAYS
            and certificate.serial_number not in self.revoked()
        )


def account() -> Principal:
    """The operator that the account of this process is."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = str(os.getuid())
    return Principal("operator", name)


def _make(directory: Path, network: str, called: str = "authority") -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    until = datetime.now(UTC) + timedelta(days=AUTHORITY_DAYS)
    # Two authorities of a network have two names, as a peer may trust both.
    name = _name(network, secrets.token_hex(8))
    certificate = (
        _certificate(name, key.public_key(), until)
        .issuer_name(name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    text = f"{SCHEME}{quote(network, safe='')}\n".encode() + certificate.public_bytes(Encoding.PEM)
    write_atomically(directory / f"{called}.pem", text, mode=0o600)
    write_atomically(directory / f"{called}.key", _key_bytes(key), mode=0o600)


def _certificate(
    name: x509.Name, key: ec.EllipticCurvePublicKey, until: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - CLOCK_SKEW)
        .not_valid_after(until)
    )


def _name(text: str, number: str = "") -> x509.Name:
    """For people who look at a certificate; what counts is its URI."""
    common = x509.NameAttribute(NameOID.COMMON_NAME, text[:NAME_CHARACTERS_MAX])
    return x509.Name(
        [common, *([x509.NameAttribute(NameOID.SERIAL_NUMBER, number)] * bool(number))]
    )


def credentials_of(uri: str, key: ec.EllipticCurvePrivateKey, certificates: bytes) -> bytes:
    """As one file."""
    return f"{uri}\n".encode() + _key_bytes(key) + certificates


def request_for(uri: str, key: ec.EllipticCurvePrivateKey) -> bytes:
    """What an authority is asked to sign, in DER."""
    names = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(uri)])
    asked = x509.CertificateSigningRequestBuilder(x509.Name([])).add_extension(names, critical=True)
    return asked.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)


def _key_bytes(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []


def _append(path: Path, line: str) -> None:
    with path.open("a", encoding="utf-8") as stream:
        path.chmod(0o600)
        stream.write(line)


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Against another process that makes or issues; for as long as that takes."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        flock(handle, LOCK_EX)
        yield
    finally:
        os.close(handle)
