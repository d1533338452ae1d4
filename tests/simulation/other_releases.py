"""Releases beside this one: the last, whose code runs in a process of its own, and one to come."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import msgpack

from formats.schema_questions import SchemaFound
from overlay.link.events import Action, Event, SchemaAnswered, SendData, singly
from overlay.link.frame import PROTOCOL_VERSION
from overlay.topology import Topology, to_toml
from tests.simulation import former_cores
from tests.simulation.sim_network import Core, Rows
from tests.survival.upgrade import former_code

LATER = "later"  # a field that no release has


class FormerRelease:
    """Makes cores of it; a context manager.  HistoryMissing where its code is not to be had."""

    def __init__(self, folder: Path) -> None:
        former_code(folder)
        self._process = subprocess.Popen(
            [sys.executable, "-P", former_cores.__file__],
            env={**os.environ, "PYTHONPATH": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._process:
            self._process.kill()

    def core(
        self, kind: str, topology: Topology, identity: str, instance: str, rows: Rows, seed: int
    ) -> FormerCore:
        question = (kind, to_toml(topology), identity, instance, list(rows), seed)
        return FormerCore(self, cast(int, self.ask(question)))

    def ask(self, question: tuple[object, ...]) -> Any:
        asked, said = self._process.stdin, self._process.stdout
        assert asked is not None
        assert said is not None
        pickle.dump(question, asked)
        asked.flush()
        answer = pickle.load(said)
        if isinstance(answer, str):
            raise RuntimeError(answer)
        return answer


class FormerCore:
    """One core of the last release."""

    def __init__(self, release: FormerRelease, number: int) -> None:
        self._release = release
        self._number = number

    def handle(self, event: Event, now: float) -> list[Action]:
        if isinstance(event, SchemaAnswered) and isinstance(event.answer, SchemaFound):
            event = replace(event, answer=_as_its_worker_says(event.answer))
        return cast(list[Action], self._release.ask((self._number, event, now)))


def _as_its_worker_says(found: SchemaFound) -> SchemaFound:
    """A process of it has a worker of it, which says whether a schema is whole."""
    return replace(found, unread=cast("tuple[str, ...]", not found.unread))


class LaterCore:
    """A core of a release to come: it speaks a version more and has a feature more, and its hellos
    and messages have a field that no other release has."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def handle(self, event: Event, now: float) -> list[Action]:
        return [
            replace(action, data=later(action.data)) if isinstance(action, SendData) else action
            for action in singly(self._core.handle(event, now))
        ]


class Listening:
    """A core whose messages with that field are counted as they leave."""

    def __init__(self, core: Core, release: str, seen: Counter[str]) -> None:
        self.core = core
        self._release = release
        self._seen = seen

    def handle(self, event: Event, now: float) -> list[Action]:
        actions = singly(self.core.handle(event, now))
        for action in actions:
            if isinstance(action, SendData):
                for header, _ in frames(action.data):
                    self._seen[f"{self._release} sends {header['t']}"] += 1
                    if header["t"] == "message" and LATER in header:
                        self._seen[f"{self._release} keeps a field"] += 1
        return actions


def frames(data: bytes) -> list[tuple[dict[str, Any], bytes]]:
    """The headers of whole frames, and what is behind each."""
    found = []
    while data:
        size, header = int.from_bytes(data[:4], "big"), int.from_bytes(data[4:6], "big")
        frame, data = data[6 : 4 + size], data[4 + size :]
        found.append((msgpack.unpackb(frame[:header]), frame[header:]))
    return found


def later(data: bytes) -> bytes:
    """The same frames as a release to come would send them."""
    said = []
    for header, rest in frames(data):
        if header["t"] == "hello":
            header["version"] = PROTOCOL_VERSION + 1
            header["features"] = [*header["features"], LATER]
        if header["t"] in ("hello", "message"):
            header[LATER] = [1, {"more": "2"}]
        packed = msgpack.packb(header)
        size = 2 + len(packed) + len(rest)
        said.append(size.to_bytes(4, "big") + len(packed).to_bytes(2, "big") + packed + rest)
    return b"".join(said)
