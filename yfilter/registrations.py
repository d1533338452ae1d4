"""Registrations: profile ids under numbers, and the query that each has asked for.

A number is from 1, and given again when its registration is closed.  A registration costs the
octets of its id and about 35 bytes.
"""

from __future__ import annotations

from array import array

from yfilter.index.automaton import KeyTable


class Registrations:
    """By number: ``since``, the count of changes to the matcher when it was opened, and ``query``,
    the number that its query has in the index, or -1 when closed."""

    def __init__(self) -> None:
        self.since = array("q", [0])
        self.query = array("i", [-1])
        self._ids = KeyTable()
        self._free = array("i")

    def open(self, name: str, stamp: int, query: int) -> int:
        """A number for a profile id that has none."""
        if self._free:
            number = self._free.pop()
            self.since[number] = stamp
            self.query[number] = query
        else:
            number = len(self.since)
            self.since.append(stamp)
            self.query.append(query)
        self._ids.insert(_octets(name), number)
        return number

    def close(self, number: int) -> None:
        self._ids.remove(number)
        self.query[number] = -1
        self._free.append(number)

    def find(self, name: str) -> int:
        """The number of a profile id, 0 if it has none."""
        number: int = self._ids.find(_octets(name))
        return number

    def name(self, number: int) -> str:
        """The profile id of an open registration."""
        return self._ids.key(number).decode("utf-8", "surrogatepass")

    def __len__(self) -> int:
        return len(self._ids)

    def size_bytes(self) -> int:
        return self._ids.size_bytes() + 12 * len(self.since) + 4 * len(self._free)


def _octets(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")
