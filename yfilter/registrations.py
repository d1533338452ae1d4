"""Registrations: profile ids under numbers, so that many of them are a column.

A number is from 1, and given again when its registration is closed.
"""

from __future__ import annotations

from array import array


class Registrations:
    """``since`` of a number is the count of changes to the matcher when it was opened."""

    def __init__(self) -> None:
        self.since = array("q", [0])
        self._names: list[str] = [""]
        self._free: list[int] = []

    def open(self, name: str, stamp: int) -> int:
        """A number for a profile id."""
        if self._free:
            number = self._free.pop()
            self._names[number] = name
            self.since[number] = stamp
        else:
            number = len(self._names)
            self._names.append(name)
            self.since.append(stamp)
        return number

    def close(self, number: int) -> None:
        self._names[number] = ""
        self._free.append(number)

    def name(self, number: int) -> str:
        """The profile id of an open registration."""
        return self._names[number]
