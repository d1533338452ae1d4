"""SchemaWorker: asks a process of its own about schemas, so that none costs more than its limits.

The process (schema_process.py) has 512 MB of memory, 2 s of processor time to read a schema and
0.25 s to hold a message against it.  It is started with the first question, and again after it
died; it ends with whoever started it.
"""

from __future__ import annotations

import subprocess
import sys
from multiprocessing import Pipe
from multiprocessing.connection import Connection

from formats.errors import SchemaRefused
from formats.schema import Schema
from formats.schema_questions import (
    CheckMessages,
    MessagesChecked,
    ReadSchema,
    SchemaAnswer,
    SchemaQuestion,
    unpack_answer,
)
from formats.validation import TOO_COSTLY

SCHEMAS_MAX = 64  # that a process has compiled; then it is started anew


class SchemaWorker:
    """One question at a time; ``close`` may be called by another thread."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection
        self._numbers: dict[Schema, int] = {}  # of those that the process was given
        self._closed = False

    def ask(self, question: SchemaQuestion) -> SchemaAnswer:
        """The answer; blocks until then.  ``schema-too-costly`` where it takes too much."""
        try:
            return self._ask(question)
        except (EOFError, OSError, ValueError):
            self._end()
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
        self._closed = True
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _ask(self, question: SchemaQuestion) -> SchemaAnswer:
        self._start()
        if isinstance(question, ReadSchema):
            self._pipe.send(("read", question.name, question.data))
        else:
            self._pipe.send(("check", self._number(question.schema), question.texts))
        return unpack_answer(self._pipe.recv_bytes())

    def _start(self) -> None:
        if len(self._numbers) >= SCHEMAS_MAX:
            self._end()
        if self._process is None:
            if self._closed:
                raise OSError("closed")
            self._pipe, its = Pipe()
            command = [sys.executable, "-m", "formats.schema_process", str(its.fileno())]
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=[its.fileno()]
            )
            its.close()

    def _number(self, schema: Schema) -> int:
        number = self._numbers.get(schema)
        if number is None:
            number = self._numbers[schema] = len(self._numbers)
            self._pipe.send(("schema", number, schema))
        return number

    def _end(self) -> None:
        if self._process is not None:
            self._pipe.close()
            self._process.kill()
            self._process.wait()
        self._process = None
        self._numbers.clear()
