"""LogOptions: what the processes of a network log, and how (``[log]`` of a topology file)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from overlay.toml_table import TomlTable, table_lines

LEVELS = ("debug", "info", "warning", "error")


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class LogOptions:
    """``level``: one of LEVELS; what is below it is not written."""

    level: str = "info"
    format: LogFormat = LogFormat.TEXT


def read_log(top: TomlTable) -> LogOptions:
    """``[log]`` of a topology file; TopologyError for what is wrong in it."""
    table = top.table("log", ("level", "format"))
    default = LogOptions()
    found = table.choice("format", [*LogFormat], default.format)
    return LogOptions(table.choice("level", LEVELS, default.level), LogFormat(found))


def log_to_toml(options: LogOptions) -> Iterator[str]:
    """The lines of ``[log]``, if they say something: the last release does not know them."""
    if options != LogOptions():
        yield from table_lines("log", options)
