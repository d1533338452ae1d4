"""Question: a request that is not answered yet."""

from __future__ import annotations

import trio

from overlay.link.frames import Response


class Question:
    """PERF: each has an event of its own, for there may be hundreds (``benchmarks network``,
    registering)."""

    def __init__(self) -> None:
        self.answer: Response | None = None
        self.changed = trio.Event()
