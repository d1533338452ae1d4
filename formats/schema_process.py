"""The process in which schemas are read, compiled and run, and large messages are read;
schema_worker.py starts it.

::

    worker ──question──> keeper ──question──> hand, a fork of the keeper
           <──answer────        <──answer────      with a limit of processor time a message

A question that ends its hand has an answer, too: the keeper says what was exceeded, and forks
another hand for the next question.  What a hand has compiled the keeper compiles after it, so that
all hands to come have it.  Of many messages those are left that come behind ``ENOUGH_SECONDS``, so
that whoever asks next waits no longer.

Run as ``python -m formats.schema_process DESCRIPTOR``, of a socket; ends when that does.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from dataclasses import replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection

import msgpack

from formats.errors import MessageRefused, SchemaRefused
from formats.graph.closure import TaxonomyClosure
from formats.schema import Schema
from formats.schema_questions import (
    TOO_COSTLY_TO_READ,
    Finding,
    MessageRead,
    ReadMessage,
    ReadSchema,
    SchemaFound,
    answer,
    check,
    pack_answer,
    plain_finding,
    unpack_answer,
)
from formats.validation import TOO_COSTLY, Validator

MEMORY_BYTES = 512 * 1024 * 1024
READ_SECONDS = 4.0  # of processor time, to read and to compile a schema, or to read a message
CHECK_SECONDS = 0.25  # to hold one message against a compiled one
ENOUGH_SECONDS = 0.05  # for the messages of one question, the last of which may take longer
_READING = "reading the schema", READ_SECONDS
_CHECKING = "holding the message against its schema", CHECK_SECONDS


class _Keeper:
    def __init__(self, owner: Connection) -> None:
        self._owner = owner
        self._schemas: dict[int, Schema] = {}
        self._closures: dict[int, TaxonomyClosure | None] = {}
        self._compiled: dict[int, Validator] = {}
        self._hand: tuple[int, Connection] | None = None

    def run(self) -> None:
        """Answer, until the owner is gone."""
        while True:
            try:
                kind, *fields = self._owner.recv()
            except EOFError:
                return
            if kind == "given":
                number, given = fields
                if isinstance(given, Schema):
                    self._schemas[number] = given
                else:
                    self._closures[number] = given
            elif kind == "read":
                self._owner.send_bytes(self._read(ReadSchema(*fields)))
            elif kind == "message":
                self._owner.send_bytes(self._read_message(*fields))
            else:
                self._owner.send_bytes(self._check(*fields))

    def _read(self, question: ReadSchema) -> bytes:
        try:
            pipe = self._pipe_to_hand()
            pipe.send(question)
            return pipe.recv_bytes()
        except (EOFError, OSError):
            return pack_answer(self._exceeded(*_READING))

    def _read_message(self, closure: int, question: ReadMessage) -> bytes:
        try:
            pipe = self._pipe_to_hand()
            pipe.send(replace(question, closure=self._closures[closure]))
            return pipe.recv_bytes()
        except (EOFError, OSError):
            why = self._exceeded("reading the message", READ_SECONDS).reason
            return pack_answer(MessageRefused(TOO_COSTLY_TO_READ, why))

    def _check(self, number: int, texts: tuple[bytes, ...]) -> bytes:
        schema = self._schemas[number]
        if number not in self._compiled:
            tried = self._read(ReadSchema(schema.name, schema.data))
            if not isinstance(unpack_answer(tried), SchemaFound):
                return tried
            self._compiled[number] = Validator(schema)
            self._end_hand()
        findings: list[object] = []
        seconds = 0.0
        try:
            pipe = self._pipe_to_hand()
            pipe.send((number, texts))
            while len(findings) < len(texts) and seconds < ENOUGH_SECONDS:
                seconds, found = msgpack.unpackb(pipe.recv_bytes())
                findings.append(found)
        except (EOFError, OSError):
            findings.append(plain_finding(self._exceeded(*_CHECKING)))
            seconds += CHECK_SECONDS
        packed: bytes = msgpack.packb(("checked", seconds, findings))
        return packed

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

    def _exceeded(self, what: str, seconds: float) -> SchemaRefused:
        """What has ended the hand."""
        status = self._end_hand()
        limit = f"{MEMORY_BYTES >> 20} MB of memory"
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF:
            limit = f"{seconds:g} s of processor time"
        elif len(self._compiled) > 1:
            sys.exit("out of memory, and not only this schema has taken it: asked again without")
        return SchemaRefused(TOO_COSTLY, f"{what} takes more than {limit}")

    def _end_hand(self) -> int:
        """Its wait status."""
        assert self._hand is not None
        pid, pipe = self._hand
        self._hand = None
        pipe.close()
        return os.waitpid(pid, 0)[1]


def _serve(pipe: Connection, compiled: dict[int, Validator]) -> None:
    """What a hand does, all its life; a question that is beyond the limits ends it."""
    try:
        while True:
            question = pipe.recv()
            if isinstance(question, ReadSchema | ReadMessage):
                signal.setitimer(signal.ITIMER_PROF, READ_SECONDS)
                began, found = time.process_time(), answer(question)
                if isinstance(found, MessageRead):
                    found = replace(found, seconds=time.process_time() - began)
                answered = pack_answer(found)
                signal.setitimer(signal.ITIMER_PROF, 0)
                pipe.send_bytes(answered)
            else:
                _serve_check(pipe, compiled[question[0]], question[1])
    finally:
        os._exit(0)  # nothing of the keeper's is cleaned up


def _serve_check(pipe: Connection, validator: Validator, texts: tuple[bytes, ...]) -> None:
    """What is found of each message leaves at once, with the seconds of all up to it; behind
    enough of them nothing more."""
    began = time.process_time()
    for text in texts:
        signal.setitimer(signal.ITIMER_PROF, CHECK_SECONDS)
        found: Finding = check(validator, text)
        signal.setitimer(signal.ITIMER_PROF, 0)
        seconds = time.process_time() - began
        pipe.send_bytes(msgpack.packb((seconds, plain_finding(found))))
        if seconds >= ENOUGH_SECONDS:
            return


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it ends it
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _Keeper(Connection(int(sys.argv[1]))).run()


if __name__ == "__main__":
    main()
