"""Credentials: what a process shows of itself, and by which it knows others.

One file, which only its owner may read, in PEM, with a line of text in front::

    onyx://figure4/user/ann
    -----BEGIN PRIVATE KEY-----
    -----BEGIN CERTIFICATE-----      whose key that is
    -----BEGIN CERTIFICATE-----      of the network's authority, which has signed that

Or, for a client alone, the secret of a token in place of a key and its certificate::

    onyx://figure4/user/ann
    token 4tTq...                    or token-file FILE, beside this one, where it is
    -----BEGIN CERTIFICATE-----      of the network's authority

It is read again when it has changed, so that it can be renewed while connections last.  Beside a
node's there is a list of the serial numbers of revoked certificates, one a line, in hexadecimal;
others are told to the node by its network.

TLS checks by whom a certificate is signed; from when until when it is good is looked at here, by
the clock that the credentials are given, so that a peer is told in words, and may wait.
"""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from formats.errors import Refusal
from overlay import statistics
from overlay.link.errors import WRONG_TIME
from overlay.link.principal import NOBODY, Principal
from overlay.link.tls_channel import TlsChannel
from overlay.link.validity import AUTHORITY, DAY, Certificate, ending

OPEN = "can be read by every account of its machine, which may be its holder then: chmod 600"
ENDING_MAX = 1_000  # of them that are told
HOUR = 3600.0
TOKEN = re.compile(r"^token ([\w.-]{20,4096})$", re.MULTILINE)
TOKEN_FILE = re.compile(r"^token-file (.+)$", re.MULTILINE)
NO_CHECK_TIME = 0x200000  # X509_V_FLAG_NO_CHECK_TIME, which ssl has no name for
PEM = re.compile(r"-----BEGIN ([A-Z ]+)-----.*?-----END \1-----\n", re.DOTALL)


class CredentialsError(Refusal):
    """A file that holds no credentials, or that cannot be read."""

    kind = "not-authenticated"


class CredentialsFile(NamedTuple):
    """A file as it is written: ``network`` and ``uri`` by its first line, ``certificates`` in PEM,
    the authority's last; the file of an authority has neither a key nor a principal."""

    text: str
    uri: str
    network: str
    has_key: bool
    certificates: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> CredentialsFile:
        """OSError, ValueError."""
        text = path.read_text(encoding="ascii")
        uri = text.partition("\n")[0]
        parts = [(found[1], found[0]) for found in PEM.finditer(text)]
        certificates = tuple(part for name, part in parts if name == "CERTIFICATE")
        has_key = any("PRIVATE KEY" in name for name, _ in parts)
        return cls(text, uri, unquote(urlsplit(uri).netloc), has_key, certificates)


class Credentials:
    """``network`` and ``principal`` are whose they are; ``version`` counts how often they were
    read, or others revoked; ``revoked`` are the serial numbers of the file, ``certificates`` the
    lines of that and of ``issued`` beside it, by command; ``token`` is the one that is shown, ""
    where there is a certificate, the ``own`` one; ``authorities`` are the certificates by which
    others are known, in PEM, the last of which ends at ``authority_until``.  ``ending``:
    certificates of who is connected that end soon, and when, as the process that has the
    connections notes."""

    def __init__(
        self,
        path: Path,
        revoked: Path | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """``revoked`` need not be there; ``wall`` gives seconds of the epoch.  CredentialsError."""
        self.path = path
        self.wall = wall
        self.own: Certificate | None = None
        self.authority_until = 0.0
        self.ending: dict[str, float] = {}
        self._told: dict[str, float] = {}  # endings, and on which day
        self._told_again = 0.0
        self._revoked_path = revoked
        self._issued_path = None if revoked is None else revoked.with_name("issued")
        self._token_path: Path | None = None
        self.certificates: dict[str, tuple[str, ...]] = {}
        self.revoked: frozenset[int] = frozenset()
        self._revoked_elsewhere: frozenset[int] = frozenset()
        self._authorities_until: list[float] = []
        self._seen: object = None
        self.version = 0
        self.network, self.principal, self.token, self.authorities = "", NOBODY, "", ""
        self._server = self._client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._read()
        self._seen = self._state()

    def refresh(self) -> None:
        """Read again what has changed.  A file that is not right any more leaves everything as it
        was (CredentialsError)."""
        state = self._state()
        if state != self._seen:
            self._seen = state
            self._read()

    def revoke(self, serials: frozenset[int]) -> None:
        """Those are revoked that stand in the file, and these."""
        self._revoked_elsewhere = serials
        self.version += 1

    def channel(self, *, server_side: bool) -> TlsChannel:
        """For a new connection."""
        return TlsChannel(self._server if server_side else self._client, server_side=server_side)

    def ends(self) -> dict[str, float]:
        """When the process' own certificate is over, and that of the authority, in seconds of the
        epoch."""
        own = {} if self.own is None else {"own": self.own.until}
        return {**own, "authority": self.authority_until}

    @property
    def is_open(self) -> bool:
        """Whether any account of the machine can read the file, and so be whom it shows."""
        try:
            return bool(self.path.stat().st_mode & 0o004)
        except OSError:
            return False

    def warnings(self) -> list[str]:
        """A sentence for each certificate that ends soon or is over, of this process and of the
        connected ones, and for a file that others can read; each once a day.
        """
        now = self.wall()
        if 0 <= self._told_again - now <= HOUR:  # further off it was noted by a clock that was set
            return []
        self._told_again = now + HOUR
        self._told = {of: day for of, day in self._told.items() if day == now // DAY}
        whose = {"own": f"the certificate of {self.principal}", "authority": AUTHORITY}
        found = {whose[of]: until for of, until in self.ends().items()}
        found |= {f"the certificate of {who}": until for who, until in self.ending.items()}
        told = {of: said for of, until in found.items() if (said := ending(until, now))}
        if self.is_open:
            told[str(self.path)] = OPEN
        new = told.keys() - self._told
        self._told |= dict.fromkeys(new, now // DAY)
        return [f"{of} {said}" for of, said in told.items() if of in new]

    def note_connected(self, certificates: Iterable[tuple[Principal, Certificate]]) -> None:
        """Whose connections are here: those are ``ending`` that end soon."""
        now = self.wall()
        found = ((str(who), shown.until) for who, shown in certificates if ending(shown.until, now))
        self.ending = dict(islice(found, ENDING_MAX))

    @property
    def is_beside_authority(self) -> bool:
        """Whether it is in the folder of the authority's key, in which all is renewed."""
        return self.path.with_name("authority.key").exists()

    @property
    def is_over(self) -> bool:
        """Whether the own certificate has ended, by the own clock."""
        return self.own is not None and self.wall() >= self.own.until

    def principal_of(self, certificate: Certificate | None) -> Principal:
        """Whose certificate it is; NOBODY without one, with one that is revoked, over or not good
        yet, or that names nobody of this network, for which it says why."""
        if certificate is None:
            return NOBODY
        now = self.wall()
        if now >= self.authority_until:
            why = "a certificate of an authority that is over"
            return replace(NOBODY, why=why, code=WRONG_TIME)
        if why := certificate.untimely(now):
            return replace(NOBODY, why=f"a certificate that {why}", code=WRONG_TIME)
        if certificate.serial in self.revoked or certificate.serial in self._revoked_elsewhere:
            return replace(NOBODY, why="a certificate that is revoked")
        try:
            found = Principal.of_uri(certificate.uri, self.network)
            return replace(found, certificate=certificate)
        except ValueError as error:
            return replace(NOBODY, why=f"a certificate for {error}")

    def statistics(self) -> statistics.Credentials:
        revoked = len(self.revoked | self._revoked_elsewhere)
        said = self.network, str(self.principal), revoked, self.ends(), self.ending, self.is_open
        return statistics.Credentials(*said)

    def _state(self) -> object:
        """Another one whenever a file was replaced or written, or an authority has ended."""
        found: list[object] = [sum(until <= self.wall() for until in self._authorities_until)]
        paths = self.path, self._revoked_path, self._issued_path, self._token_path
        for path in filter(None, paths):
            try:
                stat = path.stat()
                found.append((stat.st_ino, stat.st_mtime_ns, stat.st_size))
            except OSError:
                found.append((0, 0, 0))
        return found

    def _read(self) -> None:
        try:
            said = CredentialsFile.read(self.path)
            certificates = {
                "cert.issue": _lines(self._issued_path),
                "cert.revoke": _lines(self._revoked_path),
            }
            revoked = serials_in(certificates["cert.revoke"])
            principal = Principal.of_uri(said.uri, said.network)
            token = TOKEN.search(said.text) or self._read_token(said.text)
            authorities = said.certificates[0 if token else 1 :]
            if not authorities:
                raise ValueError("expected a private key, its certificate and the network's")
            own = self.path if token is None else None
            until = [_until(each) for each in authorities]
            good = [a for a, end in zip(authorities, until, strict=True) if end > self.wall()]
            server = _context(ssl.PROTOCOL_TLS_SERVER, own, good or authorities)
            client = _context(ssl.PROTOCOL_TLS_CLIENT, own, good or authorities)
        except (OSError, ValueError) as error:  # a wrong certificate is an OSError, too
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise CredentialsError(f"{self.path}: no credentials in it: {reason}") from None
        # Whoever shows no certificate is told in words, as its hello is refused.
        server.verify_mode = ssl.CERT_OPTIONAL
        server.num_tickets = 0
        self.own = None if own is None else _shown(server, own)
        self._authorities_until, self.authority_until = until, max(until)
        self.network, self.principal = said.network, principal
        self.token, self.authorities = token[1] if token else "", "".join(authorities)
        self._server, self._client, self.revoked = server, client, revoked
        self.certificates = certificates
        self.version += 1

    def _read_token(self, text: str) -> re.Match[str] | None:
        """That of another file, if the text names one; whoever renews it writes nothing else."""
        named = TOKEN_FILE.search(text)
        self._token_path = None if named is None else self.path.parent / named[1]
        if self._token_path is None:
            return None
        token = TOKEN.search(f"token {self._token_path.read_text(encoding='ascii').strip()}")
        if token is None:
            raise ValueError(f"expected a token in {self._token_path}")
        return token


class TokenCredentials(Credentials):
    """Of whoever has shown a ``token`` to a process that passes it on: ``base``, its own, says by
    what the network is known.  There is no file, and ``principal`` is for whoever asks the network
    to set."""

    def __init__(self, base: Credentials, token: str) -> None:
        self.wall, self.own, self.ending = base.wall, None, {}
        self.authority_until = base.authority_until
        self.path, self.token, self.principal = base.path, token, NOBODY
        self.network, self.authorities = base.network, base.authorities
        self.revoked = self._revoked_elsewhere = frozenset()
        self._server = self._client = _context(ssl.PROTOCOL_TLS_CLIENT, None, [base.authorities])
        self.version = 1

    def refresh(self) -> None:
        """Nothing changes."""

    def warnings(self) -> list[str]:
        """None: the process that passes it on tells its own."""
        return []


def serials_in(lines: Iterable[str]) -> frozenset[int]:
    """The numbers of a list of revoked certificates: of each line the first word, in hexadecimal.
    ValueError."""
    return frozenset(int(line.split()[0], 16) for line in lines if line.strip())


def _lines(path: Path | None) -> tuple[str, ...]:
    """Of a file that need not be there."""
    if path is None or not path.exists():
        return ()
    text = path.read_text(encoding="utf-8")
    return tuple(line for line in text[: text.rfind("\n") + 1].split("\n") if line.strip())


def _context(protocol: int, path: Path | None, authorities: Iterable[str]) -> ssl.SSLContext:
    """TLS 1.3 alone, and nobody but whom these authorities have signed; which of them it is stands
    in the certificate, and is no name of a host."""
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= NO_CHECK_TIME
    context.load_verify_locations(cadata="".join(authorities))
    if path is not None:
        context.load_cert_chain(path)
    return context


def _shown(server: ssl.SSLContext, path: Path) -> Certificate | None:
    """The certificate of a file as the other end reads it, which has this ``server``'s context;
    ssl.SSLError where that would not take it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(path)
    shows, sees = TlsChannel(context, server_side=False), TlsChannel(server, server_side=True)
    shows.shake()
    sees.shake(shows.to_send())
    shows.shake(sees.to_send())
    sees.shake(shows.to_send())
    return sees.certificate()


def _until(authority: str) -> float:
    """When a certificate in PEM ends, in seconds of the epoch; ssl.SSLError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=authority)
    return max(Certificate.of(each).until for each in context.get_ca_certs())
