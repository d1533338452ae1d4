"""ReadyWatch: a core that says, once, that all its peers are there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from overlay.link.events import Action, Event


class ConnectedCore(Protocol):
    """What a watched core has besides ``handle``."""

    def handle(self, event: Event, now: float) -> list[Action]: ...

    def connected(self, peer: str) -> bool:
        """Whether hellos were exchanged with "role/id" on a connection that is still there."""


class ReadyWatch:
    """Passes events on to the core; ``ready`` is called when all ``peers`` have been seen.

    Seen is seen: a peer that has gone again since does not count as missing, so that a network
    in which somebody is always being restarted becomes ready nevertheless.
    """

    def __init__(
        self, core: ConnectedCore, peers: Iterable[str], ready: Callable[[], None]
    ) -> None:
        self._core = core
        self._missing = set(peers)
        self._ready = ready
        self._called = False

    @property
    def missing(self) -> frozenset[str]:
        """The peers that have not been seen yet."""
        return frozenset(self._missing)

    def handle(self, event: Event, now: float) -> list[Action]:
        actions = self._core.handle(event, now)
        if not self._called:
            self.check()
        return actions

    def check(self) -> None:
        """Look now: to be called when the shell is listening, as there may be no peers at all."""
        self._missing = {peer for peer in self._missing if not self._core.connected(peer)}
        if not self._missing and not self._called:
            self._called = True
            self._ready()
