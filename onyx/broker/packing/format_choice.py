"""FormatChoice: which format is the quickest on one link, in this direction (``format = "auto"``).

::

    seconds a message = bytes / bandwidth + encoding + decoding

for each format that both ends speak, measured on messages of the link as they come; the mean of
each figure follows the last dozen of them.  The least is taken, but not for a small gain: the
format in force stays until another saves GAIN_LEAST, and for MEASURED_LEAST measurements.

Nothing is measured here.  Bytes, times and bandwidth are given, so that the same figures lead to
the same choice; link_formats.py gets them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from formats import WireFormat
from overlay.statistics import ChosenFormat, Estimate

CANDIDATES = (
    WireFormat.TEXT,
    WireFormat.TEXT_ZSTD,
    WireFormat.BINARY,
    WireFormat.BINARY_ZSTD,
    WireFormat.DICTIONARY,
    WireFormat.DICTIONARY_ZSTD,
)
GAIN_LEAST = 0.15
MEASURED_LEAST = 4
GAP_MAX = 256  # messages from one measurement to the next, which cost each format once
_WEIGHT = 1 / 8  # of a new measurement, once there are that many


@dataclass(frozen=True, slots=True)
class Cost:
    """What a message, or the mean message, costs in one format."""

    bytes: float
    encode_us: float
    decode_us: float

    def seconds(self, bytes_per_second: float) -> float:
        return self.bytes / bytes_per_second + (self.encode_us + self.decode_us) / 1e6

    def moved(self, other: Cost, weight: float) -> Cost:
        """So much of the way to ``other``."""
        return Cost(
            self.bytes + weight * (other.bytes - self.bytes),
            self.encode_us + weight * (other.encode_us - self.encode_us),
            self.decode_us + weight * (other.decode_us - self.decode_us),
        )


class FormatChoice:
    """The choice for one link."""

    def __init__(self) -> None:
        self.chosen = WireFormat.BINARY  # until enough is measured
        self._means: dict[WireFormat, Cost] = {}
        self._bytes_per_second = 0.0
        self._measured = 0
        self._stays = MEASURED_LEAST  # measurements until another may be chosen
        self._gap = 1
        self._wait = 0  # messages until the next measurement
        self._changes = 0

    def is_due(self) -> bool:
        """A message is about to be sent; whether it is to be measured.

        Often at first and after a change, then ever more rarely, so that it costs little.
        """
        if self._wait:
            self._wait -= 1
            return False
        if self._measured >= MEASURED_LEAST:
            self._gap = min(2 * self._gap, GAP_MAX)
        self._wait = self._gap - 1
        return True

    def measured(self, costs: Mapping[WireFormat, Cost], bytes_per_second: float) -> None:
        """One message in every format that both ends speak now; others are forgotten."""
        self._measured += 1
        self._bytes_per_second = bytes_per_second
        weight = max(_WEIGHT, 1 / self._measured)
        self._means = {
            wire_format: self._means.get(wire_format, cost).moved(cost, weight)
            for wire_format, cost in costs.items()
        }
        if not self._means:
            return
        if self.chosen not in self._means:
            self._choose(self._best())
            return
        self._stays = max(0, self._stays - 1)
        best = self._best()
        if not self._stays and self._seconds(best) <= (1 - GAIN_LEAST) * self._seconds(self.chosen):
            self._choose(best)

    def why(self) -> str:
        """A sentence for people."""
        if self._measured < MEASURED_LEAST or self.chosen not in self._means:
            return f"{self._measured} of {MEASURED_LEAST} measurements made"
        ranked = sorted(self._means, key=self._seconds)
        rival = next((one for one in ranked if one is not self.chosen), None)
        said = f"{self._seconds(self.chosen) * 1e6:,.0f} us a message"
        if rival is not None:
            said += f", {rival} {self._seconds(rival) * 1e6:,.0f}"
        if rival is ranked[0]:
            said += f", not {GAIN_LEAST:.0%} less"
        return said

    def statistics(self, bandwidth: str) -> ChosenFormat:
        """``bandwidth``: where it is known from."""
        estimates = []
        for form in sorted(self._means, key=self._seconds):
            mean = self._means[form]
            figures = (mean.bytes, mean.encode_us, mean.decode_us, self._seconds(form) * 1e6)
            estimates.append(Estimate(form.value, *(round(figure, 1) for figure in figures)))
        rate = round(self._bytes_per_second)
        counts = rate, self._measured, self._changes
        return ChosenFormat(self.chosen.value, self.why(), *counts, estimates, bandwidth)

    def _best(self) -> WireFormat:
        """Of equal ones the first of CANDIDATES."""
        return min(self._means, key=lambda one: (self._seconds(one), CANDIDATES.index(one)))

    def _seconds(self, wire_format: WireFormat) -> float:
        return self._means[wire_format].seconds(self._bytes_per_second)

    def _choose(self, wire_format: WireFormat) -> None:
        self.chosen = wire_format
        self._changes += 1
        self._stays = MEASURED_LEAST
        self._gap = 1
