"""An issuer of OpenID Connect tokens: real keys, and a server that has the public ones."""

from __future__ import annotations

import base64
import hmac
import json
import time
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Any, Self

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from overlay.oidc import OidcOptions, oidc_to_toml

URL, AUDIENCE = "https://issuer.example", "onyx-small"
KEYS: dict[str, tuple[Any, Any, str]] = {
    "rsa": (rsa.generate_private_key(65537, 2048), RSAAlgorithm, "RS256"),
    "elliptic": (ec.generate_private_key(ec.SECP256R1()), ECAlgorithm, "ES256"),
    "edwards": (ed25519.Ed25519PrivateKey.generate(), OKPAlgorithm, "EdDSA"),
    "other": (rsa.generate_private_key(65537, 2048), RSAAlgorithm, "RS256"),
}
"""By name: the key, how it is written, what it signs with."""


class Issuer:
    """``with Issuer() as issuer``: ``answer`` is what is at ``options.jwks``, with ``status``."""

    def __init__(self, *names: str) -> None:
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
        jwks = f"http://127.0.0.1:{self._server.server_port}/keys"
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
        return "\n".join(oidc_to_toml(self.options)) + "\n"

    def publish(self, *names: str) -> None:
        """The keys with these names, and no others."""
        self.answer = json.dumps({"keys": list(map(public, names))}).encode()


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
