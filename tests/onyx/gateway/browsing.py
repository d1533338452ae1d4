"""HTTP as a program speaks it to a gateway: requests, and events as they come."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from tests.hanging import SAFETY_SECONDS
from tests.onyx.gateway.schemas import misfit_of_answer, misfit_of_event


class Answer(NamedTuple):
    """``said``: of JSON what it is, or else the text."""

    status: int
    headers: Mapping[str, str]
    said: Any


class Event(NamedTuple):
    id: str
    kind: str
    data: Any


class Client:
    """Of the gateway at a URL; ``headers`` go with every request."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        is_api: bool = True,
    ) -> None:
        """``is_api``: answers are held against the OpenAPI document."""
        self.url, self._headers, self._tls = url, dict(headers or {}), tls
        self._is_api = is_api

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        """``body``: a text or bytes as they are, a text as XML unless a header says else, and
        anything else as JSON; headers are named with "_" for "-"."""
        data = body if isinstance(body, str | bytes | None) else json.dumps(body)
        kind = "application/xml" if isinstance(body, str) else "application/json"
        said = {} if body is None else {"content-type": kind}
        with self._asked(method, path, data, {**said, **_named(headers)}) as answer:
            text = answer.read().decode()
            is_json = (answer.headers["content-type"] or "").startswith(
                ("application/json", "application/problem+json")
            )
            found = json.loads(text) if is_json else text
            if self._is_api:
                media_type = (answer.headers["content-type"] or "").partition(";")[0]
                wrong = misfit_of_answer(method, path, answer.status, media_type, found)
                assert not wrong, f"{method} {path}: {wrong}"
            return Answer(answer.status, dict(answer.headers.items()), found)

    @contextmanager
    def events(self, path: str, **headers: str) -> Iterator[Iterator[Event]]:
        """As they come, until the stream ends."""
        with self._asked("GET", path, None, _named(headers)) as answer:
            assert answer.status == 200, answer.read()
            yield (_held(path, event) for event in _read_events(answer))

    @contextmanager
    def _asked(
        self, method: str, path: str, body: str | bytes | None, headers: Mapping[str, str]
    ) -> Iterator[HTTPResponse]:
        host = urlsplit(self.url).netloc
        if self._tls is None:
            connection = HTTPConnection(host, timeout=SAFETY_SECONDS)
        else:
            connection = HTTPSConnection(host, timeout=SAFETY_SECONDS, context=self._tls)
        try:
            data = body.encode() if isinstance(body, str) else body
            connection.request(method, path, data, {**self._headers, **headers})
            with connection.getresponse() as answer:
                yield answer
        finally:
            connection.close()

    # --- what tests do often --------------------------------------------------------------

    def publish(self, source: str, message: str) -> int:
        """Its number."""
        answer = self.ask("POST", f"/v1/sources/{quote(source)}/messages", message)
        assert answer.status == 201, answer
        return int(answer.said["number"])

    def add_profile(self, text: str, **more: object) -> str:
        answer = self.ask("POST", "/v1/profiles", {"text": text, **more})
        assert answer.status == 201, answer
        return str(answer.said["id"])


def _named(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def _held(path: str, event: Event) -> Event:
    wrong = misfit_of_event(path, event.kind, event.data)
    assert not wrong, f"{path}, {event.kind}: {wrong}"
    return event


def _read_events(answer: HTTPResponse) -> Iterator[Event]:
    fields: dict[str, str] = {}
    for line in iter(answer.readline, b""):
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name:
            fields[name] = value
        elif "data" in fields:
            yield Event(fields.get("id", ""), fields["event"], json.loads(fields["data"]))
            fields = {}
