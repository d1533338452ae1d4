"""An issuer of OpenID Connect tokens: real keys, and a server that has the public ones."""

from __future__ import annotations

import base64
import hmac
import json
import ssl
import time
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Self

import jwt
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from cryptography.x509.oid import NameOID
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from overlay.oidc import OidcOptions
from overlay.toml_table import toml_lines

URL, AUDIENCE = "https://issuer.example", "onyx-small"
KEYS: dict[str, tuple[Any, Any, str]] = {
    "rsa": (rsa.generate_private_key(65537, 2048), RSAAlgorithm, "RS256"),
    "elliptic": (ec.generate_private_key(ec.SECP256R1()), ECAlgorithm, "ES256"),
    "edwards": (ed25519.Ed25519PrivateKey.generate(), OKPAlgorithm, "EdDSA"),
    "other": (rsa.generate_private_key(65537, 2048), RSAAlgorithm, "RS256"),
}
"""By name: the key, how it is written, what it signs with."""


class Issuer:
    """``with Issuer() as issuer``: ``answer`` is what is at ``options.jwks``, with ``status``; over
    TLS with a ``certificate`` (``own_certificate``)."""

    def __init__(self, *names: str, certificate: Path | None = None) -> None:
        self.status, self.reads, self.answer = 200, 0, b""
        self.publish(*(names or ("rsa", "elliptic", "edwards")))
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.reads += 1
                self.send_response(issuer.status)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", str(len(issuer.answer)))
                self.end_headers()
                self.wfile.write(issuer.answer)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        scheme = "http"
        if certificate is not None:
            scheme = "https"
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        jwks = f"{scheme}://127.0.0.1:{self._server.server_port}/keys"
        self.options = OidcOptions(URL, AUDIENCE, jwks)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def section(self) -> str:
        """Of a topology file."""
        return "\n".join(("[oidc]", *toml_lines(self.options))) + "\n"

    def publish(self, *names: str) -> None:
        """The keys with these names, and no others."""
        self.answer = json.dumps({"keys": list(map(public, names))}).encode()


def own_certificate(file: Path) -> Path:
    """A key, and a certificate of 127.0.0.1 that it has signed itself."""
    key = KEYS["elliptic"][0]
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "issuer")])
    address = x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(address, critical=False)
        .sign(key, SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(private + certificate.public_bytes(Encoding.PEM))
    return file


def public(name: str) -> dict[str, object]:
    """A key as others may know it."""
    key, kind, _ = KEYS[name]
    return {**kind.to_jwk(key.public_key(), as_dict=True), "kid": name, "use": "sig"}


def token(key: str = "rsa", **claims: object) -> str:
    """For ann, an hour long, unless said otherwise; a claim that is None is not there."""
    return signed(KEYS[key][0], KEYS[key][2], key, **claims)


def signed(key: object, algorithm: str, name: str | None, **claims: object) -> str:
    now = int(time.time())
    all_claims = {"iss": URL, "aud": AUDIENCE, "sub": "ann", "exp": now + 3600, "nbf": now - 5}
    said = {claim: value for claim, value in (all_claims | claims).items() if value is not None}
    header = {} if name is None else {"kid": name}
    return jwt.encode(said, key, algorithm, headers=header)  # type: ignore[arg-type]


def public_key_as_secret(algorithm: str = "HS256") -> str:
    """What a library that trusts the header takes: the key that everybody knows as a secret."""
    said = json.dumps({"alg": algorithm, "kid": "rsa"}).encode()
    pem = KEYS["rsa"][0].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    text = f"{encoded(said)}.{token().split('.')[1]}"
    return f"{text}.{encoded(hmac.digest(pem, text.encode(), sha256))}"


def encoded(data: bytes) -> str:
    """As the parts of a token are."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
