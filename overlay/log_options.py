"""LogOptions: what the processes of a network log, and how (``[log]`` of a topology file)."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, TypeAlias, get_args

from msgspec import Struct

Level: TypeAlias = Literal["debug", "info", "warning", "error"]
LEVELS: tuple[Level, ...] = get_args(Level)


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


class LogOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """The last release does not know the table."""

    level: Level = "info"
    """from which on all processes log"""
    format: LogFormat = LogFormat.TEXT
    """of a line"""
