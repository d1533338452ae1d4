"""Seconds, money, bytes and memory of an operator at a cycle provider, estimated.

Seconds are of the machine that works: a row takes ``row_s`` at 1,000 MHz on one core.  The search
compares plans by one scalar, ``Weights.of``; how long a query takes from its start to its first and
to its last row is told by ``Figures``, where fragments of several machines overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from registration.queries.providers import CycleProvider, Function, Link, Relation
from registration.queries.query_plan import Figures

MEGABYTE = 1e6

_WIDTHS = {"boolean": 1.0, "tinyint": 1.0, "smallint": 2.0, "int": 4.0, "integer": 4.0,
           "float": 4.0, "date": 4.0, "bigint": 8.0, "long": 8.0, "double": 8.0,
           "timestamp": 8.0, "decimal": 8.0, "string": 24.0, "binary": 4096.0}  # fmt: skip
_WIDTH = 64.0


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of a unit of money and of a second of work in the choice of a plan."""

    money: float = 1.0
    seconds: float = 0.01

    def of(self, charge: Charge) -> float:
        """The scalar that the search compares."""
        return self.money * charge.money + self.seconds * charge.seconds


USUAL, FASTEST, CHEAPEST = Weights(), Weights(1e-6, 1.0), Weights(1.0, 1e-6)


@dataclass(frozen=True, slots=True)
class Charge:
    """An operator's own seconds of work, and its money: for those seconds, bytes, rows."""

    seconds: float = 0.0
    money: float = 0.0

    def plus(self, other: Charge) -> Charge:
        return Charge(self.seconds + other.seconds, self.money + other.money)

    def times(self, count: float) -> Charge:
        return Charge(self.seconds * count, self.money * count)


@dataclass(frozen=True, slots=True)
class CostModel:
    """Figures of Spark on a machine of 1,000 MHz.  ``parsed_byte_s``: of XML, JSON and CSV."""

    row_s: float = 1e-6
    byte_s: float = 2e-9
    parsed_byte_s: float = 4e-8
    start_s: float = 0.1
    send_s: float = 0.05
    function_start_s: float = 0.5

    def speed(self, site: CycleProvider) -> float:
        """As a multiple of one core of 1,000 MHz."""
        return max(site.cpu_megahertz, 1.0) / 1000.0 * max(site.cores, 1) / site.slowness

    def work(self, site: CycleProvider, seconds: float) -> Charge:
        """Of work that takes so many seconds at 1,000 MHz on one core."""
        taken = seconds / self.speed(site)
        return Charge(taken, taken * site.price_per_second)

    def rows(self, site: CycleProvider, rows: float) -> Charge:
        """Of so many rows at an operator of Spark."""
        return self.work(site, rows * self.row_s)

    def scan(self, site: CycleProvider, relation: Relation, size: float, rows: float) -> Charge:
        """Of reading so many bytes as so many rows."""
        parsed = relation.format not in ("parquet", "jdbc", "files")
        seconds = size * (self.parsed_byte_s if parsed else self.byte_s) + rows * self.row_s
        bought = Charge(self.start_s * site.slowness, size / MEGABYTE * relation.price_per_megabyte)
        return self.work(site, seconds).plus(bought)

    def function(self, site: CycleProvider, function: Function) -> tuple[Charge, Charge]:
        """Of the start of a function, and of a row that it takes."""
        seconds = self.function_start_s * site.slowness
        start = Charge(seconds, seconds * site.price_per_second)
        row = self.work(site, function.seconds_per_row + self.row_s)
        return start, row.plus(Charge(0.0, function.price_per_row))

    def send_start(self, link: Link) -> Charge:
        return Charge(link.seconds + self.send_s)

    def send_byte(self, link: Link) -> Charge:
        return Charge(1.0 / link.bytes_per_second, link.price_per_megabyte / MEGABYTE)


SPARK = CostModel()


def width_of(type_name: str) -> float:
    """Bytes of a value of a type of Spark's DDL, where no statistics say it."""
    return _WIDTHS.get(type_name.strip().lower().split("(")[0].split("<")[0], _WIDTH)


def figures(
    below: Sequence[Figures],
    own: Charge,
    rows: float,
    *,
    waits: int = 0,
    bytes_read: float = 0.0,
) -> Figures:
    """Of an operator that takes all rows of its last ``waits`` inputs before it gives one.  Its
    first row is there after all of these and the first ones of the others, its last one when the
    slowest input and its own work are done."""
    at_once = len(below) - waits
    before = [each.first_row_s for each in below[:at_once]]
    before += (each.seconds for each in below[at_once:])
    share = own.seconds if below and not at_once else own.seconds / max(rows, 1.0)
    seconds = max((each.seconds for each in below), default=0.0) + own.seconds
    return Figures(
        rows=rows,
        bytes_read=bytes_read + sum(each.bytes_read for each in below),
        bytes_moved=sum(each.bytes_moved for each in below),
        cost=sum(each.cost for each in below) + own.money,
        first_row_s=min(max(before, default=0.0) + share, seconds),
        seconds=seconds,
    )


def sent(below: Figures, start: Charge, per_byte: Charge, size: float) -> Figures:
    """Rows move while they are made: the slower of the two decides."""
    moving = per_byte.seconds * size
    return Figures(
        rows=below.rows,
        bytes_read=below.bytes_read,
        bytes_moved=below.bytes_moved + size,
        cost=below.cost + start.money + per_byte.money * size,
        first_row_s=below.first_row_s + start.seconds,
        seconds=max(below.seconds, below.first_row_s + moving) + start.seconds,
    )
