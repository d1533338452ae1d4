"""The objects that commands print which look at a network as it runs: tap, top, bench, doctor."""

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


class TopBroker(Line):
    kind: str
    broker: str
    state: str
    profiles: int
    published_s: float
    received_s: float
    sent_s: float
    delivered_s: float
    refused_s: float
    waiting_bytes: int
    oldest_s: int
    busy: float


class TopLink(Line):
    kind: str
    sender: str
    receiver: str
    messages_s: float
    bytes_s: float
    backlog_bytes: int
    waiting_s: float
    online: bool


class TopSource(Line):
    kind: str
    source: str
    root: str
    messages_s: float
    bytes_s: float
    messages: int


class TopProfile(Line):
    kind: str
    profile: str
    user: str
    broker: str
    cost_ms: float


class BenchMeasure(Line):
    name: str
    count: int
    p50_ms: float
    p99_ms: float
    p99_9_ms: float
    per_s: float


class DoctorFinding(Line):
    """``severity``: problem or warning."""

    check: str
    severity: str
    about: str
    what: str
    remedy: str
