"""RowLog: the changes that a core wants made to its durable store.

The parts of a core (catalog, profiles, routing table) write records here while they handle an
event; the core hands them out with its other actions.  Parts declare what they store as tables
(tables.py).  Elsewhere a record is a flat mapping that msgpack can carry; ``read_record`` gives it
back when the core is restored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgpack

from overlay.link.events import Delete, Put

Record = Mapping[str, Any]


def number_key(number: int) -> str:
    """The key of a row that has a number; keys are in the order of these."""
    return f"{number:016d}"


class RowLog:
    """Put and Delete actions in the order in which they were asked for."""

    def __init__(self) -> None:
        self._actions: list[Put | Delete] = []

    def put(self, space: str, key: str, record: Record) -> None:
        self._actions.append(Put(space, key, msgpack.packb(dict(record))))

    def put_bytes(self, space: str, key: str, value: bytes) -> None:
        self._actions.append(Put(space, key, value))

    def delete(self, space: str, key: str) -> None:
        self._actions.append(Delete(space, key))

    def drain(self) -> list[Put | Delete]:
        actions, self._actions = self._actions, []
        return actions


def read_record(value: bytes) -> dict[str, Any]:
    """The mapping that was put."""
    record = msgpack.unpackb(value)
    if not isinstance(record, dict):
        raise ValueError(f"a stored record is a map, this is {type(record).__name__}")
    return record
