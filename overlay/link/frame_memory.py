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

from msgspec import Struct


class FrameMemory(Struct):
    """``bytes`` of frames that are there."""

    bytes_max: int
    bytes: int = 0
    frames_read_back: int = 0

    @property
    def is_full(self) -> bool:
        return self.bytes > self.bytes_max


UNBOUNDED = FrameMemory(sys.maxsize)
"""Of processes whose journal is in memory only."""
