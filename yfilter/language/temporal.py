"""xs:date and xs:dateTime: read, compared, written.

A value without a time zone counts as UTC, so that a result never depends on where it is made.
Years from 1 to 9999, fractions of a second down to a microsecond.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

_BEYOND = re.compile(
    r"-?([1-9][0-9]{4,}|[0-9]{4})-[0-9]{2}-[0-9]{2}(T.*|Z|[+-][0-9]{2}:[0-9]{2})?", re.DOTALL
)
ZONE = r"(Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9]|[+-]14:00)?"
_DATE = re.compile(rf"([0-9]{{4}})-([0-9]{{2}})-([0-9]{{2}}){ZONE}")
_DATE_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]+)?" + ZONE
)


@dataclass(frozen=True, slots=True)
class Temporal:
    """``local``: as written; ``offset``: minutes ahead of UTC, None without a time zone."""

    type: str
    local: datetime
    offset: int | None

    @property
    def instant(self) -> tuple[int, int, int]:
        """Days, seconds and microseconds, to be compared with those of the same type."""
        since = self.local - datetime.min - timedelta(minutes=self.offset or 0)
        return since.days, since.seconds, since.microseconds

    @property
    def seconds(self) -> Decimal:
        """Seconds of the minute, with their fraction."""
        return Decimal(self.local.second) + Decimal(self.local.microsecond) / 1_000_000

    def __str__(self) -> str:
        text = f"{self.local:%m-%d}"
        text = f"{self.local.year:04}-{text}"
        if self.type == "xs:dateTime":
            text += f"T{self.local:%H:%M:%S}"
            if self.local.microsecond:
                text += f".{self.local.microsecond:06}".rstrip("0")
        if self.offset is None:
            return text
        if self.offset == 0:
            return f"{text}Z"
        hours, minutes = divmod(abs(self.offset), 60)
        return f"{text}{'-' if self.offset < 0 else '+'}{hours:02}:{minutes:02}"


def is_beyond(text: str) -> bool:
    """Whether it has the form of a date or dateTime whose year is not from 1 to 9999."""
    is_date = _BEYOND.fullmatch(text.strip(" \t\n\r")) is not None
    return is_date and (text.strip().startswith("-") or text.strip().index("-") > 4)


def parse_temporal(text: str, type_name: str) -> Temporal | None:
    """The value that ``text`` is the lexical form of, or None."""
    pattern = _DATE if type_name == "xs:date" else _DATE_TIME
    match = pattern.fullmatch(text.strip(" \t\n\r"))
    if match is None:
        return None
    numbers = [int(part) for part in match.groups()[:6] if part and part.isdigit()]
    zone = match.groups()[-1]
    microsecond = 0
    next_day = False
    if type_name == "xs:dateTime":
        microsecond = int(f"{match[7] or '.0'}000000"[1:7])
        if numbers[3:] == [24, 0, 0] and microsecond == 0:
            numbers[3] = 0
            next_day = True
    try:
        year, month, day, *clock = numbers
        hour, minute, second = clock or (0, 0, 0)
        local = datetime(year, month, day, hour, minute, second, microsecond)
        local += timedelta(days=next_day)
    except (ValueError, OverflowError):
        return None
    return Temporal(type_name, local, zone_offset(zone))


def zone_offset(zone: str | None) -> int | None:
    """Minutes ahead of UTC, None for no zone."""
    if not zone:
        return None
    if zone == "Z":
        return 0
    minutes = int(zone[1:3]) * 60 + int(zone[4:6])
    return -minutes if zone[0] == "-" else minutes
