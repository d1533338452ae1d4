"""RemoteCache: a cache that another machine shares (``onyx metadata cache --listen``)."""

from __future__ import annotations

import json
import ssl
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from time import time
from typing import TypeVar
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

import msgspec

from formats.errors import Fault, read_fault
from onyx.errors import NetworkUnreachable, RequestFailed, UsageError, file_errors
from overlay.link.credentials import Credentials
from registration.metadata.repository_cache import Answer

T = TypeVar("T")
ANSWER_SECONDS = 60.0
PREFIXES = ("http://", "https://")


class _Answer(msgspec.Struct):
    rows: list[tuple[str, ...]]
    revision: int
    complete: bool
    rules: tuple[str, ...]
    age: float | None


class _Explained(msgspec.Struct):
    sql: str


class _NoRedirect(HTTPRedirectHandler):
    """A token is shown to one address, and to no other."""

    def redirect_request(self, *_: object) -> None:
        return None


class RemoteCache:
    """Asked as a ``MetadataCache`` is; RequestFailed where it refuses, NetworkUnreachable where
    none answers."""

    def __init__(
        self, url: str, credentials: Path | None = None, certificate: Path | None = None
    ) -> None:
        """``credentials``: a file with a token (``onyx token issue``); ``certificate``: by which
        the cache is known, where none of this system's authorities has signed its own."""
        self._url = url.rstrip("/")
        self._token = ""
        if credentials is not None:
            self._token = Credentials(credentials).token
            if not url.startswith("https://"):
                raise UsageError(f"a token is shown over https alone, and this is {url}")
        with file_errors(certificate, "read"):
            tls = ssl.create_default_context(cafile=certificate)
        self._opener = build_opener(_NoRedirect, HTTPSHandler(context=tls))

    def query(self, text: str) -> Answer:
        said = self._ask("query", text, _Answer)
        then = 0.0 if said.age is None else time() - said.age
        return Answer(said.rows, said.revision, then, said.complete, said.rules)

    def explain(self, text: str) -> str:
        return self._ask("explain", text, _Explained).sql

    def _ask(self, what: str, text: str, kind: type[T]) -> T:
        body = json.dumps({"text": text}).encode()
        headers = {"Content-Type": "application/json"}
        request = Request(f"{self._url}/{what}", body, headers)
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        try:
            with self._opener.open(request, timeout=ANSWER_SECONDS) as answer:
                return msgspec.json.decode(answer.read(), type=kind)
        except HTTPError as error:
            raise _refused(error) from None
        except (OSError, HTTPException, ValueError) as error:
            why = getattr(error, "reason", error)
            raise NetworkUnreachable(f"no cache answers at {self._url}: {why}") from None


def _refused(error: HTTPError) -> RequestFailed:
    usual = Fault("bad-answer", f"the answer is {error.code} {error.reason}")
    with suppress(ValueError):
        usual = read_fault(json.load(error), usual)
    return RequestFailed(usual.code, str(msgspec.structs.replace(usual, code="")), usual)
