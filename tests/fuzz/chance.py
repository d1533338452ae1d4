"""ByteChance: choices that are made by the bytes of an input.

So what makes inputs of a random generator is steered by whoever makes the bytes: by a seed, or by a
fuzzer that keeps those that reach something new.
"""

from __future__ import annotations

from random import Random


class ByteChance(Random):
    """The bytes in turn, then zeros: every input ends."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        super().__init__(0)

    def getrandbits(self, k: int, /) -> int:
        size = (k + 7) // 8
        taken = self._data[self._at : self._at + size].ljust(size, b"\0")
        self._at += size
        return int.from_bytes(taken, "big") >> (8 * size - k)

    def random(self) -> float:
        return self.getrandbits(16) / 65_536
