"""HeldCore: a core that does nothing once its rows may be another process's.

What leaves behind a commit is safe, as no commit succeeds any more.  What leaves without one (an
answer out of memory, a message that leaves early) is not made either, but for what is under way at
that very moment; link_layer.py says why that does no harm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from overlay.link.events import Action, Event


class Core(Protocol):
    def handle(self, event: Event, now: float) -> list[Action]: ...


class HeldCore:
    """``check`` raises Fenced then."""

    def __init__(self, core: Core, check: Callable[[], None]) -> None:
        self._core = core
        self._check = check

    def handle(self, event: Event, now: float) -> list[Action]:
        self._check()
        return self._core.handle(event, now)
