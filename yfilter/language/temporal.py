"""xs:date, xs:dateTime, xs:time and durations: read, compared, reckoned with, written.

A value without a time zone counts as UTC, so that a result never depends on where it is made;
only ``Temporal.order`` tells where the missing zone matters.  Seconds are exact, with every digit
of their fraction.  XPath has the years from 1 to 9999, SPARQL all of at most 18 digits.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import ROUND_FLOOR, Decimal

from yfilter.language.numbers import DECIMALS, DIGITS_MAX, decimal_text

ZONE = r"(Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9]|[+-]14:00)?"
_DAY = r"(-?(?:[1-9][0-9]{4,17}|[0-9]{4}))-([0-9]{2})-([0-9]{2})"
_CLOCK = r"([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]+)?"
_FORMS = {
    "xs:date": re.compile(_DAY + ZONE),
    "xs:dateTime": re.compile(f"{_DAY}T{_CLOCK}{ZONE}"),
    "xs:time": re.compile(f"()()(){_CLOCK}{ZONE}"),
}
MOMENTS = frozenset(_FORMS)
_YEAR_MAX = 9999
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097  # the calendar repeats itself
_ZONE_SECONDS = 14 * 3600  # how far a missing zone may be from UTC
_SOME_DAY = (1972, 12, 31)  # by F&O, of a time that is compared or reckoned with
_MONTHS = r"(?:([0-9]+)Y)?(?:([0-9]+)M)?"
_SECONDS = r"(?:([0-9]+)D)?(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+(?:\.[0-9]+)?)S)?)?"
DURATIONS = {
    "xs:duration": re.compile(rf"(-?)P(?=[0-9T]){_MONTHS}{_SECONDS}"),
    "xs:yearMonthDuration": re.compile(rf"(-?)P(?=[0-9]){_MONTHS}()()()()"),
    "xs:dayTimeDuration": re.compile(rf"(-?)P(?=[0-9T])()(){_SECONDS}"),
}
_ZONES = {
    **dict.fromkeys(("UT", "UTC", "GMT"), 0),
    **{f"{zone}{kind}T": 60 * (kind == "D") - 60 * hours
       for zone, hours in (("E", 5), ("C", 6), ("M", 7), ("P", 8)) for kind in "SD"},
}  # fmt: skip
_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_S = r"[\t\n\r ]+"
_MAYBE = r"[\t\n\r ]*"
_DASH = f"(?:{_S}|{_MAYBE}-{_MAYBE})"
_NAMED = "|".join(_ZONES)
_TIME = (
    r"(?P<clock>[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?)"
    rf"(?:{_MAYBE}(?:(?P<named>{_NAMED})|(?P<zone>[+-](?:[0-9]{{1,2}}:?(?:[0-9]{{2}})?))"
    rf"(?:{_MAYBE}\({_MAYBE}(?:{_NAMED}){_MAYBE}\))?))?"
)
_MONTH = f"(?P<month>{'|'.join(_MONTH_NAMES)})"
_IETF_DAY = "(?P<day>[0-9]{1,2})"
_YEAR = "(?P<year>[0-9]{2}|[0-9]{4})"
_DAY_NAME = "(?:mon|tues|wednes|thurs|fri|satur|sun)day|mon|tue|wed|thu|fri|sat|sun"
_WEEKDAY = f"{_MAYBE}(?:(?:{_DAY_NAME}),?{_S})?"
_IETF = tuple(
    re.compile(f"{_WEEKDAY}{form}{_MAYBE}", re.IGNORECASE | re.ASCII)
    for form in (
        f"{_IETF_DAY}{_DASH}{_MONTH}{_DASH}{_YEAR}{_S}{_TIME}",
        f"{_MONTH}{_DASH}{_IETF_DAY}{_S}{_TIME}{_S}{_YEAR}",
    )
)


def elapsed_text(seconds: float) -> str:
    """For people: the instant so many seconds behind the year 1, within the years 1 to 9999."""
    latest = (datetime.max - datetime.min).total_seconds()
    since = timedelta(seconds=min(max(seconds, 0), latest // 1))
    return f"{(datetime.min + since).isoformat()}Z"


@dataclass(frozen=True, slots=True)
class Temporal:
    """``local``: as written, in whole seconds; ``offset``: minutes ahead of UTC, None without a
    time zone; ``fraction`` of a second; ``cycles`` of 400 years that are to be added to ``local``,
    0 for the years of XPath."""

    type: str
    local: datetime
    offset: int | None
    fraction: Decimal = Decimal(0)
    cycles: int = 0

    @property
    def year(self) -> int:
        return self.local.year + _CYCLE_YEARS * self.cycles

    @property
    def instant(self) -> tuple[int, int, Decimal]:
        """Days, seconds and their fraction, to be compared with those of the same type."""
        since = self.local - datetime.min
        if self.offset:
            since -= timedelta(minutes=self.offset)
        return since.days + _CYCLE_DAYS * self.cycles, since.seconds, self.fraction

    @property
    def elapsed(self) -> Decimal:
        """The instant in seconds since the year 1, for what has a date."""
        days, seconds, fraction = self.instant
        return DECIMALS.add(86_400 * days + seconds, fraction)

    @property
    def seconds(self) -> Decimal:
        """Seconds of the minute, with their fraction."""
        return DECIMALS.add(self.local.second, self.fraction)

    def __str__(self) -> str:
        day = f"{'-' * (self.year < 0)}{abs(self.year):04}-{self.local:%m-%d}"
        clock = f"{self.local:%H:%M:%S}"
        if self.fraction:
            clock += decimal_text(self.fraction)[1:]
        text = {"xs:date": day, "xs:time": clock}.get(self.type) or f"{day}T{clock}"
        return text + self.zone

    @property
    def zone(self) -> str:
        """The time zone as it is written: "" for none, or ``Z``."""
        if not self.offset:
            return "" if self.offset is None else "Z"
        hours, minutes = divmod(abs(self.offset), 60)
        return f"{'-' if self.offset < 0 else '+'}{hours:02}:{minutes:02}"

    def order(self, other: Temporal) -> int | None:
        """Below 0, 0 or above 0 as this value is before, at or after another of its type; None
        where that depends on a missing time zone (XML Schema 1.1 2, D.2.1)."""
        is_told = (self.offset is None) is (other.offset is None)
        if not is_told and abs(self.since(other)) <= _ZONE_SECONDS:
            return None
        one, another = self.instant, other.instant
        return (one > another) - (one < another)

    def as_type(self, type_name: str) -> Temporal | None:
        """The value cast to another type; None where no cast exists."""
        if type_name == self.type:
            return self
        to_time_from_date = (self.type, type_name) == ("xs:date", "xs:time")
        if type_name not in MOMENTS or self.type == "xs:time" or to_time_from_date:
            return None
        if type_name == "xs:date":
            midnight = self.local.replace(hour=0, minute=0, second=0)
            return Temporal(type_name, midnight, self.offset, cycles=self.cycles)
        return _of(type_name, self.local, self.offset, self.fraction, self.cycles)

    def moved(self, months: int, seconds: Decimal) -> Temporal:
        """As much later, on the last day of its month at most; OverflowError."""
        years, month = divmod(self.local.month - 1 + months, 12)
        year = self.local.year + years
        if not 1 <= year <= _YEAR_MAX:
            raise OverflowError("a year that is not from 1 to 9999")
        day = min(self.local.day, monthrange(year, month + 1)[1])
        local = self.local.replace(year=year, month=month + 1, day=day)
        exact = DECIMALS.add(self.fraction, seconds)
        whole = exact.to_integral_value(ROUND_FLOOR)
        fraction = DECIMALS.subtract(exact, whole)
        if self.type == "xs:time":
            whole %= 86_400
        local += timedelta(seconds=int(whole))
        if self.type == "xs:date":
            return Temporal(self.type, local.replace(hour=0, minute=0, second=0), self.offset)
        return _of(self.type, local, self.offset, fraction)

    def since(self, other: Temporal) -> Decimal:
        """The seconds from another value of the same type to this one."""
        (days, seconds, part), (other_days, other_seconds, other_part) = self.instant, other.instant
        whole = (days - other_days) * 86_400 + seconds - other_seconds
        return DECIMALS.add(whole, DECIMALS.subtract(part, other_part))

    def in_zone(self, offset: int | None) -> Temporal:
        """Adjusted to a time zone, or to none; OverflowError."""
        if offset is None or self.offset is None:
            return replace(self, offset=offset)
        local = self.local + timedelta(minutes=offset - self.offset)
        if self.type == "xs:date":
            local = local.replace(hour=0, minute=0, second=0)
        return _of(self.type, local, offset, self.fraction)


def _of(
    type_name: str, local: datetime, offset: int | None, fraction: Decimal, cycles: int = 0
) -> Temporal:
    if type_name == "xs:time":
        year, month, day = _SOME_DAY
        local, cycles = local.replace(year=year, month=month, day=day), 0
    return Temporal(type_name, local, offset, fraction, cycles)


def moment_at(microseconds: int) -> Temporal:
    """So long after the epoch, in UTC."""
    seconds, part = divmod(microseconds, 1_000_000)
    local = datetime(1970, 1, 1) + timedelta(seconds=seconds)
    return Temporal("xs:dateTime", local, 0, Decimal(part).scaleb(-6))


def parse_temporal(text: str, type_name: str) -> Temporal | None:
    """The value, of any year, that ``text`` is the lexical form of, or None."""
    match = _FORMS[type_name].fullmatch(text.strip(" \t\n\r"))
    if match is None:
        return None
    parts = match.groups()
    numbers = list(_SOME_DAY) if type_name == "xs:time" else []
    numbers += [int(part) for part in parts[: 3 if type_name == "xs:date" else 6] if part]
    fraction = None if type_name == "xs:date" else parts[6]
    return _moment(type_name, numbers, fraction, zone_offset(parts[-1]))


def _moment(
    type_name: str, numbers: list[int], fraction: str | None, offset: int | None
) -> Temporal | None:
    """Of year, month, day, and hour, minute, second where there are any; None if there is none."""
    exact = Decimal(fraction or 0)
    next_day = numbers[3:] == [24, 0, 0] and not exact
    if next_day:
        numbers[3] = 0
    cycles = 0
    if not 1 <= numbers[0] <= _YEAR_MAX - next_day:
        cycles, year = divmod(numbers[0] - 1, _CYCLE_YEARS)
        numbers[0] = year + 1
    try:
        local = datetime(*numbers) + timedelta(days=next_day)  # type: ignore[arg-type]
    except (ValueError, OverflowError):
        return None
    if len(fraction or "") > DIGITS_MAX:
        return None
    return _of(type_name, local, offset, exact, cycles)


def parse_ietf_date(text: str) -> Temporal | None:
    """The xs:dateTime of a date as RFC 5322 and its like write it, by the grammar of F&O."""
    match = next(filter(None, (form.fullmatch(text) for form in _IETF)), None)
    if match is None:
        return None
    year, day = int(match["year"]), int(match["day"])
    year += 1900 if len(match["year"]) == 2 else 0
    month = _MONTH_NAMES.index(match["month"].lower()) + 1
    clock, _, fraction = match["clock"].partition(".")
    hour, minute, second = map(int, (*clock.split(":"), "0")[:3])
    offset = _ZONES.get((match["named"] or "").upper(), 0)
    if zone := match["zone"]:
        hours, colon, minutes = zone[1:].partition(":")
        if not colon and len(hours) > 2:
            hours, minutes = hours[:-2], hours[-2:]
        offset = int(hours) * 60 + int(minutes or 0)
        if offset > 14 * 60 or int(minutes or 0) > 59:
            return None
        offset = -offset if zone[0] == "-" else offset
    numbers = [year, month, day, hour, minute, second]
    return _moment("xs:dateTime", numbers, f".{fraction}" if fraction else None, offset)


def parse_duration(text: str, type_name: str) -> tuple[int, Decimal] | None:
    """Months and seconds of a duration that ``text`` is a lexical form of, or None."""
    match = DURATIONS[type_name].fullmatch(text.strip(" \t\n\r"))
    if match is None or not any(match.groups()[1:]):
        return None
    *wholes, seconds = match.groups()[1:]
    if len(text) > DIGITS_MAX:
        return None
    years, months, days, hours, minutes = (int(part or 0) for part in wholes)
    exact = DECIMALS.add((days * 24 + hours) * 3600 + minutes * 60, Decimal(seconds or 0))
    sign = -1 if match[1] else 1
    return sign * (years * 12 + months), DECIMALS.multiply(exact, sign)


def duration_text(type_name: str, months: int, seconds: Decimal) -> str:
    """Its canonical lexical form."""
    sign = "-" if months < 0 or seconds < 0 else ""
    years, months = divmod(abs(months), 12)
    whole = int(seconds.copy_abs())
    rest = DECIMALS.add(DECIMALS.subtract(seconds.copy_abs(), whole), whole % 60)
    day = _units((years, "Y"), (months, "M"), (whole // 86_400, "D"))
    time = _units((whole // 3600 % 24, "H"), (whole // 60 % 60, "M"), (rest, "S"))
    if not day and not time:
        return "P0M" if type_name == "xs:yearMonthDuration" else "PT0S"
    return f"{sign}P{day}{f'T{time}' if time else ''}"


def _units(*amounts: tuple[int | Decimal, str]) -> str:
    return "".join(f"{decimal_text(Decimal(one))}{unit}" for one, unit in amounts if one)


def zone_offset(zone: str | None) -> int | None:
    """Minutes ahead of UTC, None for no zone."""
    if not zone:
        return None
    if zone == "Z":
        return 0
    minutes = int(zone[1:3]) * 60 + int(zone[4:6])
    return -minutes if zone[0] == "-" else minutes
