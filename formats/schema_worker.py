"""SchemaWorker: asks a process of its own about schemas and large messages, so that none costs more
than its limits.

The process (schema_process.py) has 512 MB of memory, 4 s of processor time to read a schema, or a
message, and 0.25 s to hold a message against a schema.  It is started with the first question, and
again after it died; it ends with the process that started it.
"""

from __future__ import annotations

from dataclasses import replace

from formats.errors import MessageRefused, SchemaRefused
from formats.graph.closure import TaxonomyClosure
from formats.helper_process import HelperProcess
from formats.schema import Schema
from formats.schema_questions import (
    TOO_COSTLY_TO_READ,
    CheckMessages,
    MessagesChecked,
    ReadMessage,
    ReadSchema,
    SchemaAnswer,
    SchemaQuestion,
    unpack_answer,
)
from formats.validation import TOO_COSTLY

SCHEMAS_MAX = 64  # that a process has compiled, taxonomies among them; then it is started anew


class SchemaWorker:
    """One question at a time; ``close`` may be called by another thread."""

    def __init__(self) -> None:
        self._process = HelperProcess("formats.schema_process")
        self._numbers: dict[Schema | TaxonomyClosure | None, int] = {}  # that the process has

    def ask(self, question: SchemaQuestion) -> SchemaAnswer:
        """The answer; blocks until then.  ``schema-too-costly`` where it takes too much."""
        try:
            return self._ask(question)
        except (EOFError, OSError, ValueError):
            self._end()
        if isinstance(question, ReadMessage):
            return MessageRefused(TOO_COSTLY_TO_READ, "the process that reads it has died of it")
        died = SchemaRefused(TOO_COSTLY, "the process that reads schemas has died of it")
        if isinstance(question, ReadSchema):
            return died
        try:  # of which message, and was it of this schema?
            return self._ask(CheckMessages(question.schema, question.texts[:1]))
        except (EOFError, OSError, ValueError):
            self._end()
            return MessagesChecked((died,))

    def close(self) -> None:
        """End the process; whoever waits for an answer gets one."""
        self._process.close()

    def _ask(self, question: SchemaQuestion) -> SchemaAnswer:
        if len(self._numbers) >= SCHEMAS_MAX:
            self._end()
        pipe = self._process.start()
        if isinstance(question, ReadSchema):
            pipe.send(("read", question.name, question.data))
        elif isinstance(question, ReadMessage):
            pipe.send(("message", self._number(question.closure), replace(question, closure=None)))
        else:
            pipe.send(("check", self._number(question.schema), question.texts))
        return unpack_answer(pipe.recv_bytes())

    def _number(self, given: Schema | TaxonomyClosure | None) -> int:
        number = self._numbers.get(given)
        if number is None:
            number = self._numbers[given] = len(self._numbers)
            self._process.start().send(("given", number, given))
        return number

    def _end(self) -> None:
        self._process.end()
        self._numbers.clear()
