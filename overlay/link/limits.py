"""Every bound of the link layer in one place, with what happens at it."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from formats.limits import INTEGER_MAX, Count

WINDOW_FRAMES_CEILING = 1024
"""No sender may have more unacknowledged frames of one channel on the wire; a receiver ends the
connection of one that does (``window-exceeded``)."""

FRAME_BYTES_MAX_LEAST = 64 * 1024
"""Every process accepts frames of this length, so that control frames always fit."""

FRAME_HEADROOM_BYTES = 1024
"""Of a frame, so much is kept for what is not its payload."""


_FrameBytes: TypeAlias = Annotated[int, Meta(ge=FRAME_BYTES_MAX_LEAST, le=INTEGER_MAX)]
_Seconds: TypeAlias = Annotated[float, Meta(ge=0.1, le=3_600)]


class LinkLimits(Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds for one process's connections; seconds, bytes and frames as the names say.

    How much may wait in a journal is not bounded here: the core sees ``backlog_bytes`` and
    withholds acknowledgements (``may_acknowledge``).  Nor is there a window over all channels of a
    connection: one held-up channel would then hold up the others, and back-pressure that crosses
    from tree to tree can go round in a circle.
    """

    frame_bytes_max: _FrameBytes = 16 * 1024 * 1024
    """one frame, without its length prefix: a longer one is fatal (`too-long`)"""
    hello_bytes_max: _FrameBytes = 2 * 1024 * 1024
    """the same until the hello of another process of the network, which names up to `channels_max`
    channels, has come"""
    unknown_bytes_max: Count = 8 * 1024
    """the same until the hello of anybody else has come"""
    unfinished_bytes_max: Count = 128 * 1024 * 1024
    """of frames that are not all there, of all clients of a process together: beyond it the
    connection with the longest is closed (`no-room`)"""
    window_frames: Annotated[int, Meta(ge=1, le=WINDOW_FRAMES_CEILING)] = 256
    """unacknowledged frames of one channel on the wire; the rest waits in the journal"""
    window_bytes: Count = 1024 * 1024
    """the same in bytes (one frame always may go)"""
    connection_window_bytes: Count = 4 * 1024 * 1024
    """of deliveries on one connection, sent and not taken, for all profiles together; what many get
    at once counts once, until all have taken it, and one delivery of each profile always may go"""
    journal_memory_bytes: Count = 64 * 1024 * 1024
    """of what waits for peers, in all journals of a process, so much is in memory, too; the rest is
    read back from the disk when it can be sent (`memory` under `links` in `onyx status --json`)"""
    channels_max: Count = 4_096
    """channels kept per peer and direction: one more is fatal (`too-many-channels`)"""
    errors_max: Count = 32
    """wrong frames on one connection: one more is fatal (`too-many-errors`)"""
    keepalive_seconds: _Seconds = 15.0
    """a ping after so much silence; the connection is dead after three times it"""
    hello_seconds: _Seconds = 10.0
    """a connection without a hello after so long is closed (`hello-timeout`)"""

    def __post_init__(self) -> None:
        least = min(self.frame_bytes_max, self.hello_bytes_max)
        if least < FRAME_BYTES_MAX_LEAST:
            raise ValueError(
                f"frame_bytes_max or hello_bytes_max is {least}; at least {FRAME_BYTES_MAX_LEAST}"
            )
        if not 1 <= self.window_frames <= WINDOW_FRAMES_CEILING:
            raise ValueError(
                f"window_frames is {self.window_frames}; expected 1 to {WINDOW_FRAMES_CEILING}"
            )


DEFAULT_LINK_LIMITS = LinkLimits()
