"""FrameMemory: how much of what waits for peers is in memory, for all channels of a process.

What waits is in the store in any case (journal.py).  Its bytes stay in memory as well as long as
there is room, so that nothing is read in ordinary times::

    send ──> store, and memory ──> wire                         there is room
    send ──> store ─ ─ ─ (no room, no connection, no window) ─ ─ ─> read back ──> wire

What is read back comes by the window, so that a process holds ``bytes_max`` and at most one frame
and one window of each channel that is being sent.
"""

from __future__ import annotations

import sys


class FrameMemory:
    """``used`` bytes of frames; ``released`` and ``read`` count frames that were left to the store
    and those that came back."""

    __slots__ = ("bytes_max", "read", "released", "used")

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.used = self.released = self.read = 0

    @property
    def is_full(self) -> bool:
        return self.used > self.bytes_max

    def statistics(self) -> dict[str, int]:
        return {
            "bytes": self.used,
            "bytes_max": self.bytes_max,
            "frames_left_to_store": self.released,
            "frames_read_back": self.read,
        }


UNBOUNDED = FrameMemory(sys.maxsize)
"""Of processes whose journal is in memory only."""
