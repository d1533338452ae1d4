"""KeyTable: numbers by short keys, compiled, or two dicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.kernel import AVAILABLE

__all__ = ["KeyTable"]


class PlainKeyTable:
    """The same as the compiled KeyTable, and larger."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._keys: dict[int, bytes] = {}

    def find(self, key: bytes) -> int:
        """The number of a key, 0 if it has none."""
        return self._numbers.get(key, 0)

    def insert(self, key: bytes, number: int) -> None:
        """A key that is not there, under a number that is free."""
        self._numbers[key] = number
        self._keys[number] = key

    def remove(self, number: int) -> None:
        """Undo ``insert``."""
        del self._numbers[self._keys.pop(number)]

    def key(self, number: int) -> bytes:
        """The key of a number."""
        return self._keys[number]

    def __len__(self) -> int:
        return len(self._keys)

    def size_bytes(self) -> int:
        """About."""
        return sum(map(len, self._numbers)) + 200 * len(self._keys)


if TYPE_CHECKING or AVAILABLE:
    from yfilter.index.automaton import KeyTable
else:
    KeyTable = PlainKeyTable
