"""RowLog: the changes that a core wants made to its durable store.

The parts of a core (catalog, profiles, routing table) write records here while they handle an
event; the core hands them out with its other actions.  They declare what they store as tables
(tables.py).
"""

from __future__ import annotations

from typing import Any

from overlay.link.events import Delete, Put


def number_key(number: int) -> str:
    """The key of a row that has a number; keys are in the order of these."""
    return f"{number:016d}"


def numbered_key(name: str, number: int) -> str:
    """That of one of several rows of a name, which are in the order of their numbers."""
    return f"{name}|{number_key(number)}"


class RowLog:
    """Put and Delete actions in the order in which they were asked for."""

    def __init__(self) -> None:
        self._actions: list[Put | Delete] = []
        self.stored: list[Any] = []
        """The state that is filled at a restart (durable.py), in the order in which it was made."""

    def __len__(self) -> int:
        """Changes since the last ``drain``."""
        return len(self._actions)

    def put(self, space: str, key: str, value: bytes) -> None:
        self._actions.append(Put(space, key, value))

    def delete(self, space: str, key: str) -> None:
        self._actions.append(Delete(space, key))

    def drain(self) -> list[Put | Delete]:
        actions, self._actions = self._actions, []
        return actions
