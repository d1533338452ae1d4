"""Traffic: what a gateway was asked, and what it does."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from overlay.link.histogram import Histogram


@dataclass(slots=True)
class Traffic:
    """Of a gateway since it began: ``answers`` by status; ``seconds`` from each request until its
    answer began; ``under_way``: requests, of which ``streams`` are followed;
    ``hindrance``: why it cannot do its work, "" when it can."""

    answers: Counter[int] = field(default_factory=Counter)
    seconds: Histogram = field(default_factory=Histogram)
    under_way: int = 0
    streams: int = 0
    hindrance: str = "it has not met the registration service"
