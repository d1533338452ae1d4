"""Traffic: what a gateway was asked, and what it does."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from msgspec import Struct, field

from overlay.link.histogram import Histogram
from overlay.statistics import Amounts, counter, gauge, told


class Traffic(Struct):
    """Of a gateway since it began."""

    answers: Annotated[
        Counter[int], counter("Answers to requests, by status.", "gateway_answers", "status")
    ] = field(default_factory=Counter)
    under_way: Annotated[
        int, gauge("Requests under way, streams among them.", "gateway_requests")
    ] = 0
    streams: Annotated[int, gauge("Results and maps that are followed.", "gateway_streams")] = 0
    body_bytes: Annotated[
        int, gauge("Bytes of the bodies of requests that are not answered.", "gateway_bodies")
    ] = 0
    sessions: Annotated[
        int, gauge("Identities with connections to the network.", "gateway_sessions")
    ] = 0
    seconds: Annotated[
        Histogram, gauge("From when a request came until its answer began.", "gateway_answer")
    ] = field(default_factory=Histogram)
    certificates: Annotated[
        Amounts,
        gauge(
            "When a certificate ends, in seconds since 1970: by which the gateway speaks with the "
            "network, that of the network's authority, that which browsers see.",
            "certificate_end_seconds",
            label="of",
        ),
    ] = {}
    hindrance: Annotated[str, told("Why it cannot do its work; empty: it can.")] = (
        "it has not met the registration service"
    )
