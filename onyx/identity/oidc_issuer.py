"""OidcIssuer: whose an OpenID Connect token is, by the keys of whoever issues them (``[oidc]``).

The keys are read in a thread: at the start, every hour, and when a token names one that is not
known, but at most every half minute, however many such tokens are shown.
"""

from __future__ import annotations

import json
import logging
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, build_opener

import jwt
import trio
from jwt.types import Options

from overlay.link.errors import ProtocolError
from overlay.link.principal import Principal
from overlay.oidc import OidcOptions

READ_SECONDS_MIN = 30.0
READ_SECONDS_MAX = 3600.0
ANSWER_SECONDS = 10.0
KEYS_BYTES_MAX = 256 * 1024
LEEWAY_SECONDS = 30  # by which clocks differ

ALGORITHMS = {
    ("RSA", ""): ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA",),
}
"""By the type of a key and its curve: what it may sign with.  Nothing symmetric, and not "none"."""

log = logging.getLogger("onyx.oidc")


class _Key(NamedTuple):
    key: jwt.PyJWK
    algorithms: tuple[str, ...]


class _NoRedirect(HTTPRedirectHandler):
    """Keys come from where the topology says, and from nowhere else."""

    def redirect_request(self, *_: object) -> None:
        return None


class OidcIssuer:
    """``run`` reads the ``keys``; ``principal`` asks them, without waiting for anything."""

    def __init__(self, options: OidcOptions) -> None:
        self._options = options
        self.keys: dict[str, _Key] = {}
        self._wanted = trio.Event()
        self._is_fresh = False  # they were read just now

    async def run(self) -> None:
        """For ever."""
        while True:
            self._wanted = trio.Event()
            await self.read()
            await trio.sleep(READ_SECONDS_MIN)
            self._is_fresh = False
            with trio.move_on_after(READ_SECONDS_MAX - READ_SECONDS_MIN):
                await self._wanted.wait()

    def principal(self, token: str) -> Principal:
        """Whose a token is, until it ends.

        ProtocolError "not-authenticated", or "keys-awaited" where it may be good by keys that are
        being read.
        """
        options = self._options
        asked: Options = {
            "require": ["exp", "iss", "aud", options.claim],
            "enforce_minimum_key_length": True,
        }
        try:
            key = self._key(jwt.get_unverified_header(token).get("kid", ""))
            claims = jwt.decode(
                token,
                key.key.key,
                key.algorithms,
                asked,
                audience=options.audience,
                issuer=options.issuer,
                leeway=LEEWAY_SECONDS,
            )
            return Principal(
                "user", _name(claims, options.claim), until=float(claims["exp"]) + LEEWAY_SECONDS
            )
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
            detail = f"the token is none of {options.issuer}: {error}"
            raise ProtocolError("not-authenticated", detail, fatal=True) from None

    def _key(self, name: str) -> _Key:
        """ValueError, or ProtocolError "keys-awaited"."""
        key = self.keys.get(name)
        if key is None and not name and len(self.keys) == 1:
            (key,) = self.keys.values()
        if key is None:
            self._wanted.set()
            if self._is_fresh:
                raise ValueError(f"it has no key {name!r}")
            detail = f"the keys of {self._options.issuer} are being read; try again"
            raise ProtocolError("keys-awaited", detail, fatal=True)
        return key

    async def read(self) -> None:
        """Read the keys; the ones of before stay where that fails."""
        try:
            text = await trio.to_thread.run_sync(_text_of_keys, self._options)
            self.keys = read_keys(text)
            self._is_fresh = True
        except (OSError, HTTPException, ValueError, RecursionError) as error:
            log.warning("%s: no keys of tokens: %s", self._options.jwks, error)


def read_keys(text: bytes) -> dict[str, _Key]:
    """The keys of a JSON Web Key Set that tokens may be signed with, by their names; ValueError."""
    keys = json.loads(text).get("keys") if text.lstrip()[:1] == b"{" else None
    if not isinstance(keys, list):
        raise ValueError("expected a JSON Web Key Set")
    found = {}
    for entry in keys:
        if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
            continue
        kind = str(entry.get("kty")), str(entry.get("crv", ""))
        said = entry.get("alg", "")
        algorithms = tuple(each for each in ALGORITHMS.get(kind, ()) if said in ("", each))
        if not algorithms:
            continue
        try:
            found[str(entry.get("kid", ""))] = _Key(jwt.PyJWK(entry, algorithms[0]), algorithms)
        except jwt.PyJWTError as error:
            log.warning("a key of tokens is passed over: %s", error)
    if not found:
        raise ValueError("no key in it that a token may be signed with")
    return found


def _text_of_keys(options: OidcOptions) -> bytes:
    """OSError, HTTPException."""
    if not options.is_url:
        with Path(options.jwks).open("rb") as file:
            text = file.read(KEYS_BYTES_MAX + 1)
    else:
        try:
            with build_opener(_NoRedirect).open(options.jwks, timeout=ANSWER_SECONDS) as answer:
                text = answer.read(KEYS_BYTES_MAX + 1)
        except HTTPError as error:
            error.close()
            raise
    if len(text) > KEYS_BYTES_MAX:
        raise OSError(f"more than {KEYS_BYTES_MAX} bytes")
    return bytes(text)


def _name(claims: dict[str, object], claim: str) -> str:
    name = claims[claim]
    if not isinstance(name, str):
        raise ValueError(f"{claim} is no text")
    return name
