"""The process in which schemas are read, compiled and run; schema_worker.py starts it.

::

    worker ──question──> keeper ──question──> hand, a fork of the keeper
           <──answer────        <──answer────      with a limit of processor time a question

A question that ends its hand has an answer, too: the keeper says what was exceeded, and forks
another hand for the next question.  What a hand has compiled the keeper compiles after it, so that
all hands to come have it.

Run as ``python -m formats.schema_process DESCRIPTOR``, of a socket; ends when that does.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from multiprocessing import Pipe
from multiprocessing.connection import Connection

from formats.errors import SchemaRefused
from formats.schema import Schema
from formats.schema_questions import (
    CheckMessage,
    ReadSchema,
    SchemaFound,
    SchemaQuestion,
    answer,
    pack_answer,
    unpack_answer,
)
from formats.validation import TOO_COSTLY, Validator

MEMORY_BYTES = 512 * 1024 * 1024
READ_SECONDS = 2.0  # of processor time, to read and to compile a schema
CHECK_SECONDS = 0.25  # to hold one message against a compiled one


class _Keeper:
    def __init__(self, owner: Connection) -> None:
        self._owner = owner
        self._schemas: dict[int, Schema] = {}
        self._compiled: dict[Schema, Validator] = {}
        self._hand: tuple[int, Connection] | None = None

    def run(self) -> None:
        """Answer, until the owner is gone."""
        while True:
            try:
                kind, *fields = self._owner.recv()
            except EOFError:
                return
            if kind == "schema":
                self._schemas[fields[0]] = fields[1]
            elif kind == "read":
                self._owner.send_bytes(self._ask(ReadSchema(*fields)))
            else:
                self._owner.send_bytes(self._check(self._schemas[fields[0]], fields[1]))

    def _check(self, schema: Schema, text: bytes) -> bytes:
        if schema not in self._compiled:
            tried = self._ask(ReadSchema(schema.name, schema.data))
            if not isinstance(unpack_answer(tried), SchemaFound):
                return tried
            self._compiled[schema] = Validator(schema)
            self._end_hand()
        return self._ask(CheckMessage(schema, text))

    def _ask(self, question: SchemaQuestion) -> bytes:
        try:
            pipe = self._pipe_to_hand()
            pipe.send(question)
            return pipe.recv_bytes()
        except (EOFError, OSError):
            return pack_answer(_exceeded(question, self._end_hand()))

    def _pipe_to_hand(self) -> Connection:
        if self._hand is None:
            ours, its = Pipe()
            pid = os.fork()
            if not pid:
                self._owner.close()
                ours.close()
                _serve(its, self._compiled)
            its.close()
            self._hand = pid, ours
        return self._hand[1]

    def _end_hand(self) -> int:
        """Its wait status."""
        assert self._hand is not None
        pid, pipe = self._hand
        self._hand = None
        pipe.close()
        return os.waitpid(pid, 0)[1]


def _serve(pipe: Connection, compiled: dict[Schema, Validator]) -> None:
    """What a hand does, all its life; a question that is beyond the limits ends it."""
    try:
        while True:
            question: SchemaQuestion = pipe.recv()
            signal.setitimer(signal.ITIMER_PROF, _seconds(question))
            answered = pack_answer(answer(question, compiled))
            signal.setitimer(signal.ITIMER_PROF, 0)
            pipe.send_bytes(answered)
    finally:
        os._exit(0)  # nothing of the keeper's is cleaned up


def _seconds(question: SchemaQuestion) -> float:
    return READ_SECONDS if isinstance(question, ReadSchema) else CHECK_SECONDS


def _exceeded(question: SchemaQuestion, status: int) -> SchemaRefused:
    is_read = isinstance(question, ReadSchema)
    what = "reading the schema" if is_read else "holding the message against its schema"
    limit = f"{MEMORY_BYTES >> 20} MB of memory"
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF:
        limit = f"{_seconds(question):g} s of processor time"
    return SchemaRefused(TOO_COSTLY, f"{what} takes more than {limit}")


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it ends it
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _Keeper(Connection(int(sys.argv[1]))).run()


if __name__ == "__main__":
    main()
