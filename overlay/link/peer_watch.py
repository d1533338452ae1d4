"""PeerWatch: a core that says who of its peers is there, and once that all of them are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from overlay.link.events import Action, ConnectionLost, Event, TimePassed


class ConnectedCore(Protocol):
    """What a watched core has besides ``handle``."""

    def handle(self, event: Event, now: float) -> list[Action]: ...

    def connected(self, peer: str) -> bool:
        """Whether hellos were exchanged with "role/id" on a connection that is still there."""

    def refusal(self, peer: str) -> str:
        """Why the last connection with a peer that is away was closed; "" if it broke."""


class PeerWatch:
    """Passes events on to the core and looks at its peers ("role/id") afterwards.

    ``changed(peer, here)`` is called when one has come or gone - within a second of it, for a
    peer that comes back - and ``ready()`` once, when every one has been seen.  Seen is seen: one
    that has gone again since does not delay it, so that a network in which somebody is always
    being restarted becomes ready nevertheless.  ``refused(peer, why)`` is called when a connection
    was not wanted, by whichever end, once for each reason.
    """

    def __init__(
        self,
        core: ConnectedCore,
        peers: Iterable[str],
        ready: Callable[[], None],
        changed: Callable[[str, bool], None] = lambda peer, here: None,
        refused: Callable[[str, str], None] = lambda peer, why: None,
    ) -> None:
        self._core = core
        self._here = dict.fromkeys(peers, False)
        self._missing = set(self._here)
        self._ready = ready
        self._changed = changed
        self._refused = refused
        self._refusals: dict[str, str] = {}
        self._is_ready = False

    @property
    def missing(self) -> frozenset[str]:
        """The peers that have not been seen yet."""
        return frozenset(self._missing)

    def handle(self, event: Event, now: float) -> list[Action]:
        actions = self._core.handle(event, now)
        # Once ready, not after every piece of data: this is on the way of every message.
        if not self._is_ready or isinstance(event, ConnectionLost | TimePassed):
            self.check()
        return actions

    def check(self) -> None:
        """Look now: to be called when the shell is listening, as there may be no peers at all."""
        for peer, was_here in self._here.items():
            here = self._core.connected(peer)
            if here != was_here:
                self._here[peer] = here
                self._missing.discard(peer)
                self._changed(peer, here)
            why = self._core.refusal(peer)
            if why != self._refusals.get(peer, ""):
                self._refusals[peer] = why
                if why:
                    self._refused(peer, why)
        if not self._missing and not self._is_ready:
            self._is_ready = True
            self._ready()
