"""From when until when a certificate is good: said once, for the process that has it, for its peers
and for people."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple, cast

DAY = 86_400.0
AUTHORITY = "the network's authority"
TOLD_DAYS = 30
"""The end of a certificate is told from so many days before it on."""
RENEW_DAYS = TOLD_DAYS + 1  # before its end a certificate is renewed, and nobody told of it
RENEW_PART = 0.4  # of its life, where that is less


class Certificate(NamedTuple):
    """``uri`` "" if it has none; ``since`` and ``until`` in seconds of the epoch."""

    uri: str
    serial: int
    since: float
    until: float

    @classmethod
    def of(cls, decoded: Mapping[str, object]) -> Certificate:
        """As ``ssl`` decodes it."""
        names = cast(tuple[tuple[str, str], ...], decoded.get("subjectAltName", ()))
        uris = [name for kind, name in names if kind == "URI"]
        since, until = (
            float(ssl.cert_time_to_seconds(str(decoded[key]))) for key in ("notBefore", "notAfter")
        )
        return cls(
            uris[0] if len(uris) == 1 else "", int(str(decoded["serialNumber"]), 16), since, until
        )

    @property
    def life(self) -> float:
        """In seconds."""
        return self.until - self.since

    @property
    def may_renew_at(self) -> float:
        """The second from which on it is renewed for whoever asks."""
        return self.since + self.life / 2

    @property
    def renew_at(self) -> float:
        """The second from which on whoever has it asks."""
        return self.until - min(RENEW_DAYS * DAY, RENEW_PART * self.life)

    def untimely(self, now: float) -> str:
        """Why it is not good at that second; "" where it is."""
        if now >= self.until:
            return f"is over since {minute(self.until)}"
        return f"is not good before {minute(self.since)}" if now < self.since else ""


def days_left(until: float, now: float) -> float:
    """Until the end of a certificate; negative behind it."""
    return (until - now) / DAY


def ending(until: float, now: float) -> str:
    """The end in words, from TOLD_DAYS before it on; "" until then."""
    left = days_left(until, now)
    if left >= TOLD_DAYS:
        return ""
    if left < 0:
        return f"is over since {minute(until)}"
    return (
        f"ends in {f'{left:.0f} days' if left >= 2 else f'{left * 24:.0f} hours'}, {minute(until)}"
    )


def minute(second: float) -> str:
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%d %H:%M} Z"
