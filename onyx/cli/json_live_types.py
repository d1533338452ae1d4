"""The objects that commands print which look at a network as it runs: tap, bench."""

from __future__ import annotations

from onyx.cli.json_types import Line


class TapEvent(Line):
    """``kind``: accepted, refused, invalid, crossing or delivery."""

    kind: str
    broker: str
    source: str
    number: int
    time: str
    bytes: int | None = None
    link: str = ""
    profile: str = ""
    code: str = ""
    reason: str = ""


class TapGap(Line):
    """``kind`` dropped: ``count`` events were left out; away: the broker does not answer."""

    kind: str
    broker: str
    count: int = 0


class BenchMeasure(Line):
    name: str
    count: int
    p50_ms: float
    p99_ms: float
    p99_9_ms: float
    per_s: float
