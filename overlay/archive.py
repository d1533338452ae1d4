"""ArchiveOptions: whether brokers keep the messages that their sources publish, and how much of it.

Each root broker writes those that it accepted into one directory (``[archive]`` of a topology
file), as segments that ``onyx backtest --archive`` reads.  Two policies for a broker whose archive
has reached ``bytes_max``:

- *drop*  its oldest segments go;
- *stop*  nothing more is written until there is room again; what is left out is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

from overlay.limits import KIB, MIB
from overlay.toml_table import TomlTable, table_lines

DROP: Final = "drop"
STOP: Final = "stop"

_BYTES_CEILING = 2**50


@dataclass(frozen=True, slots=True)
class ArchiveOptions:
    """The archives of a network's brokers; relative directories are to the current one.

    directory            where segments go; None: nothing is archived
    share                of the messages that are kept, 0 to 1; the same ones whoever asks
    at_bytes_max         DROP or STOP
    bytes_max            of one broker's segments, compressed
    days_max             an older segment goes
    free_bytes_min       on the disk: nothing is written when less is free, so that an archive
                         never takes what the brokers' stores need
    segment_bytes_max    a segment is finished, and can be read, when it has so many bytes
    segment_seconds_max  or is so old
    waiting_bytes_max    of messages in memory that are not written yet; one more is left out
    """

    directory: Path | None = None
    share: float = 1.0
    at_bytes_max: str = DROP
    bytes_max: int = 10 * 1024 * MIB
    days_max: float = 30.0
    free_bytes_min: int = 256 * MIB
    segment_bytes_max: int = 16 * MIB
    segment_seconds_max: float = 3600.0
    waiting_bytes_max: int = 32 * MIB


def read_archive(top: TomlTable) -> ArchiveOptions:
    """``[archive]`` of a topology file; TopologyError for what is wrong in it."""
    table = top.table("archive", [field.name for field in fields(ArchiveOptions)])
    default = ArchiveOptions()
    directory = table.text("directory") if "directory" in table else None
    if directory is not None and "\0" in directory:
        raise table.refusal("directory", "must not contain a NUL character")
    return ArchiveOptions(
        directory=None if directory is None else Path(directory),
        share=table.number("share", 0, 1, default.share),
        at_bytes_max=table.choice("at_bytes_max", (DROP, STOP), default.at_bytes_max),
        bytes_max=table.integer("bytes_max", 1, _BYTES_CEILING, default.bytes_max),
        days_max=table.number("days_max", 0.001, 36_525, default.days_max),
        free_bytes_min=table.integer("free_bytes_min", 0, _BYTES_CEILING, default.free_bytes_min),
        segment_bytes_max=table.integer(
            "segment_bytes_max", KIB, 1024 * MIB, default.segment_bytes_max
        ),
        segment_seconds_max=table.number(
            "segment_seconds_max", 0.1, 86_400, default.segment_seconds_max
        ),
        waiting_bytes_max=table.integer(
            "waiting_bytes_max", KIB, 1024 * MIB, default.waiting_bytes_max
        ),
    )


def archive_to_toml(options: ArchiveOptions) -> Iterator[str]:
    """The lines of ``[archive]``, every value written out."""
    return table_lines("archive", options)
