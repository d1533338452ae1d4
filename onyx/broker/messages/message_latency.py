"""MessageLatency: how long messages take from their root broker to the mailboxes of users.

One message in LATENCY_EVERY of a source says when it was accepted, in a header; all others have
nothing more.  Brokers' calendars are compared, so what they differ by is in it.
"""

from __future__ import annotations

from collections.abc import Callable

from onyx.broker.packing.parcel import Parcel
from overlay.link.histogram import Histogram
from overlay.link.message_headers import Headers

LATENCY_EVERY = 64
ACCEPTED_AT = "onyx-accepted"
"""The header; milliseconds of the calendar."""


class MessageLatency:
    """``stamp`` one at its root broker, ``note`` it where it is delivered."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall
        self.delivered = Histogram()

    def stamp(self, parcel: Parcel) -> None:
        """It is taken up now."""
        said = str(round(self._wall() * 1000))
        parcel.headers = {**(parcel.headers or {}), ACCEPTED_AT: said}

    def note(self, headers: Headers) -> None:
        """A message with these was put into mailboxes here."""
        said = headers.get(ACCEPTED_AT, "")
        if said.isascii() and said.isdigit() and len(said) < 16:
            self.delivered.note(max(0.0, self._wall() - int(said) / 1000))
