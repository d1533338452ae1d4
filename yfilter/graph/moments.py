"""xsd:dateTime and xsd:date in filters: exact, ordered as XML Schema says (partially)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from yfilter.language.temporal import ZONE, zone_offset

_CLOCK = r"([0-9]{2}):([0-9]{2}):([0-9]{2}(?:\.[0-9]{1,64})?)"
_DAY = r"(-?(?:[1-9][0-9]{4,8}|[0-9]{4}))-([0-9]{2})-([0-9]{2})"
_DATE_TIME = re.compile(f"{_DAY}T{_CLOCK}{ZONE}")
_DATE = re.compile(f"{_DAY}{ZONE}")
_ZONE_SECONDS = 14 * 3600  # how far a missing zone may be from UTC
_DAY_SECONDS = 86_400
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097  # the calendar repeats itself


@dataclass(frozen=True, slots=True)
class Moment:
    """``seconds`` since the year 1 as written, ``offset`` minutes ahead of UTC, None: no zone."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: Decimal
    offset: int | None
    zone: str
    seconds: Decimal

    @property
    def day_text(self) -> str:
        """The day without its zone, as xsd:date writes it."""
        return f"{'-' * (self.year < 0)}{abs(self.year):04}-{self.month:02}-{self.day:02}"

    def order(self, other: Moment) -> int | None:
        """Below 0, 0 or above 0 as this one is before, at or after the other; None where that
        depends on a missing zone."""
        difference = self._in_utc() - other._in_utc()
        if (self.offset is None) != (other.offset is None) and abs(difference) <= _ZONE_SECONDS:
            return None
        return (difference > 0) - (difference < 0)

    def _in_utc(self) -> Decimal:
        return self.seconds - 60 * (self.offset or 0)


def parse_moment(text: str, *, is_date: bool) -> Moment | None:
    """The moment that a lexical form means, or None."""
    match = (_DATE if is_date else _DATE_TIME).fullmatch(text)
    if match is None:
        return None
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    hour, minute, second = (
        (0, 0, Decimal(0)) if is_date else (int(match[4]), int(match[5]), Decimal(match[6]))
    )
    if minute > 59 or second >= 60 or hour > 24 or (hour == 24 and (minute or second)):
        return None
    cycles, year_within = divmod(year - 1, _CYCLE_YEARS)
    try:
        ordinal = date(year_within + 1, month, day).toordinal()
    except ValueError:
        return None
    if hour == 24:  # the beginning of the next day
        hour, ordinal = 0, ordinal + 1
        next_day = date.fromordinal(ordinal)
        year += next_day.year - year_within - 1
        month, day = next_day.month, next_day.day
    days = ordinal + cycles * _CYCLE_DAYS
    zone = match[match.re.groups] or ""
    seconds = days * _DAY_SECONDS + hour * 3600 + minute * 60 + second
    return Moment(year, month, day, hour, minute, second, zone_offset(zone), zone, seconds)
