"""SchemaReading: schemas in requests are read by a process of its own (formats/schema_worker.py).

A request with a schema waits until that is read, and is handled again then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import sha256

from formats.errors import SchemaRefused
from formats.schema import Schema
from formats.schema_questions import ReadSchema, SchemaAnswer, SchemaFound
from overlay.link.arrival import Arrival
from overlay.link.events import AskSchemaWorker, SchemaAnswered
from overlay.link.frames import Request
from overlay.link.part import Hearer, Part, hears
from overlay.link.request_server import RequestRefused

WAITING_MAX = 16  # schemas that are being read; each may take 4 s and has up to 4 MB
ANSWERS_MAX = 256


class SchemaReading(Part):
    """``handle`` (connection, request) does a request again."""

    def __init__(self, handle: Callable[[int, Request], None]) -> None:
        self._handle = handle
        self._waiting: dict[str, list[tuple[int, Request]]] = {}
        self._answers: dict[str, SchemaAnswer] = {}

    def read(
        self, name: str, data: bytes, connection: int, request: Request
    ) -> tuple[Schema, tuple[str, ...]] | None:
        """The schema, and what it refers to and has not; None: the request is handled again when
        that is known.  RequestRefused."""
        key = sha256(name.encode() + b"\0" + data).hexdigest()
        found = self._answers.get(key)
        if isinstance(found, SchemaFound):
            return Schema(name, found.kind, data), found.unread
        if isinstance(found, SchemaRefused):
            raise SchemaRefused(found.code, found.reason, found.line, found.column, name)
        if key not in self._waiting:
            if len(self._waiting) >= WAITING_MAX:
                raise RequestRefused(
                    "busy", f"{WAITING_MAX} schemas are being read already; try again later"
                )
            self._waiting[key] = []
            self.ask_shell(AskSchemaWorker(key, ReadSchema(name, data)))
        self._waiting[key].append((connection, request))
        return None

    def events(self) -> Iterable[Hearer]:
        yield hears(SchemaAnswered, self._answered)

    def _answered(self, event: SchemaAnswered) -> bool:
        if len(self._answers) >= ANSWERS_MAX:
            self._answers.clear()
        self._answers[event.key] = event.answer
        for connection, request in self._waiting.pop(event.key, ()):
            self._handle(connection, request)
        return True

    def gone(self, arrival: Arrival) -> None:
        """What is asked is asked; nobody waits on a connection that is gone."""
        for key, waiting in self._waiting.items():
            self._waiting[key] = [each for each in waiting if each[0] != arrival.connection]
