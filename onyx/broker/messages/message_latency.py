"""MessageLatency: when messages are accepted, and how long they take to the mailboxes of users.

The root broker stamps each message by its own calendar, once: that is the current time in profiles
(docs/profiles.md), the same at every broker.  How long one message in LATENCY_EVERY of a source
takes is noted; brokers' calendars are compared, so the difference between them is in it.
"""

from __future__ import annotations

from collections.abc import Callable

from overlay.link.frame_fields import ACCEPTED_MAX
from overlay.link.histogram import Histogram

LATENCY_EVERY = 64
SET_BACK = 1_000_000
"""Microseconds: a calendar that is set back by less is waited for."""


class MessageLatency:
    """``accepted`` for one at its root broker, ``note`` one where it is delivered."""

    def __init__(self, wall: Callable[[], float], delivered: Histogram) -> None:
        self._wall = wall
        self._last = 0
        self._delivered = delivered

    def accepted(self) -> int:
        """Now, in microseconds of the epoch."""
        now = min(round(self._wall() * 1_000_000), ACCEPTED_MAX)
        if not self._last - SET_BACK < now < self._last:
            self._last = now
        return self._last

    def note(self, accepted: int) -> None:
        """A message of then was put into mailboxes here."""
        self._delivered.note(max(0.0, self._wall() - accepted / 1_000_000))
