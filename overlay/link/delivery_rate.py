"""DeliveryRate: how many bytes a second a link has been seen to carry, from its own sends.

A *busy time* begins when something is on the wire and ends when all of it is acknowledged, or
after a second; what was acknowledged in it, by its length, is a measurement.  Short ones say more
of latency than of bandwidth and do not count; of the last few the best does, since a link that was
idle now and then is no slower for it.  So the rate is never more than the link can carry, and less
where windows or a slow receiver hold it back.
"""

from __future__ import annotations

from collections import deque

BYTES_LEAST = 64 * 1024
SECONDS_MAX = 1.0
KEPT = 8


class DeliveryRate:
    """For one peer; ``now`` in seconds of a clock that never goes back."""

    __slots__ = ("_began", "_delivered", "_in_flight", "_rates")

    def __init__(self) -> None:
        self._in_flight = 0
        self._began = 0.0
        self._delivered = 0
        self._rates: deque[float] = deque(maxlen=KEPT)

    @property
    def bytes_per_second(self) -> float | None:
        """None as long as nothing was measured."""
        return max(self._rates, default=None)

    def sent(self, size: int, now: float) -> None:
        """Bytes are on the wire from now on."""
        if not self._in_flight:
            self._begin(now)
        self._in_flight += size

    def acknowledged(self, size: int, now: float) -> None:
        """So many of them have arrived."""
        self._in_flight = max(0, self._in_flight - size)
        self._delivered += size
        seconds = now - self._began
        if self._in_flight and seconds < SECONDS_MAX:
            return
        if self._delivered >= BYTES_LEAST and seconds > 0:
            self._rates.append(self._delivered / seconds)
        self._begin(now)

    def lost(self) -> None:
        """The connection is gone, and what was on the wire with it; what was measured stays."""
        self._in_flight = self._delivered = 0

    def _begin(self, now: float) -> None:
        self._began = now
        self._delivered = 0
