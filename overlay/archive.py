"""ArchiveOptions: whether brokers keep the messages that their sources publish, and how much of it.

Each root broker writes those that it accepted into one directory (``[archive]`` of a topology
file), as segments that ``onyx backtest --archive`` reads.  Two policies for a broker whose archive
has reached ``bytes_max``:

- *drop*  its oldest segments go;
- *stop*  nothing more is written until there is room again; what is left out is counted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from overlay.limits import ALL_BROKERS, KIB, MIB

DROP: Final = "drop"

_BYTES_CEILING = 2**50


class ArchiveOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """The archives of a network's brokers."""

    directory: Annotated[
        Path | None, Meta(extra={"start": ALL_BROKERS, "shown": "none: no archive"})
    ] = None
    """where its files go, of all brokers of this machine; relative to the current directory"""
    share: Annotated[float, Meta(ge=0, le=1)] = 1.0
    """of the messages, the same ones every time"""
    at_bytes_max: Literal["drop", "stop"] = DROP
    """what happens at `bytes_max`: `"drop"`, its oldest files go; `"stop"`, nothing more is
    written"""
    bytes_max: Annotated[int, Meta(ge=1, le=_BYTES_CEILING)] = 10 * 1024 * MIB
    """of one broker's finished files and the one being written, compressed"""
    days_max: Annotated[float, Meta(ge=0.001, le=36_525)] = 30.0
    """an older file goes"""
    free_bytes_min: Annotated[int, Meta(ge=0, le=_BYTES_CEILING)] = 256 * MIB
    """nothing is written when the disk has less to spare, so that an archive never takes what the
    brokers' stores need"""
    segment_bytes_max: Annotated[int, Meta(ge=KIB, le=1024 * MIB)] = 16 * MIB
    """a file is finished, and can be read, at so many bytes"""
    segment_seconds_max: Annotated[float, Meta(ge=0.1, le=86_400)] = 3600.0
    """or at that age"""
    waiting_bytes_max: Annotated[int, Meta(ge=KIB, le=1024 * MIB)] = 32 * MIB
    """of messages in memory that are not written yet; one more is left out"""
