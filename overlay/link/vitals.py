"""Vitals: how a process is, as its shell measures it and its core says; they outlive the core."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from overlay.link.core import Core
from overlay.link.credentials import Credentials
from overlay.link.histogram import Histogram
from overlay.link.row_store import NodeStore
from overlay.nodes import Address
from overlay.statistics import Node, NodeStatistics
from overlay.topology import Topology

# -------------------------------------------------------------------------------------------------
# Turns: how long a process was busy with one thing, in processor time.
#
# A *turn* is what goes on before anybody else in the process has theirs: handling some events, or
# handing out what leaves.  Whoever speaks to a process waits for that, so the longest is kept:
# since the start, and of the last minute, with what took most of it.


MINUTE = 60.0


class _Turn(NamedTuple):
    """``kind``: what took the most of it."""

    ended: float
    seconds: float
    kind: str


_NONE = _Turn(0.0, 0.0, "")


class Turns:
    """``note`` each one; ``now`` in seconds of a clock that never goes back."""

    def __init__(self) -> None:
        self.histogram = Histogram()
        self._longest = _NONE
        self._recent: deque[_Turn] = deque()  # each longer than all behind it, one of a second
        self._now = 0.0

    def note(self, kind: str, seconds: float, now: float) -> None:
        """A turn has ended, of which ``kind`` took the most."""
        self.histogram.note(seconds)
        self._now = now
        turn = _Turn(now, seconds, kind)
        if seconds > self._longest.seconds:
            self._longest = turn
        recent = self._recent
        while recent and recent[-1].seconds <= seconds:
            recent.pop()
        if not recent or now - recent[-1].ended >= 1.0:
            recent.append(turn)
        while now - recent[0].ended >= MINUTE:
            recent.popleft()

    def report(self, said: Node) -> None:
        lately = next((turn for turn in self._recent if self._now - turn.ended < MINUTE), _NONE)
        said.longest_turn_ms = round(self._longest.seconds * 1e3, 3)
        said.longest_turn_of = self._longest.kind
        said.longest_turn_minute_ms = round(lately.seconds * 1e3, 3)
        said.turns_s = round(self.histogram.seconds, 3)


# -------------------------------------------------------------------------------------------------


class Vitals:
    """``turns`` in processor time; ``commits``, and ``answers``, which are from the moment that
    events were taken up until what they told others left, and ``hops``, until messages left ahead
    of that, in time that passed.  ``core``: the one of now.  ``hindrance``: why the process is not
    ready yet; "" when it is; ``admin``: where whoever asks is told all that, None: nowhere."""

    def __init__(
        self,
        about: Node | None = None,
        tell_settings: Callable[[Topology], None] = lambda topology: None,
    ) -> None:
        """``about``: what the process says of itself at its start; ``tell_settings`` hears of
        settings that are in force."""
        self.turns = Turns()
        self.commits = Histogram()
        self.answers = Histogram()
        self.hops = Histogram()
        self.core: Core | None = None
        self.tell_settings = tell_settings
        self.hindrance = "it starts"
        self._about = about or Node()
        self.admin: Address | None = None

    def statistics(self) -> NodeStatistics:
        return NodeStatistics() if self.core is None else self.core.statistics()

    def of_node(
        self, store: NodeStore, credentials: Credentials | None, wall: Callable[[], float]
    ) -> Callable[[], Node]:
        """What a core that has this store says of its shell."""
        said = self._about
        said.store = store.counted
        said.store.epoch = store.epoch or None

        def now() -> Node:
            said.time = wall()
            said.admin = None if self.admin is None else str(self.admin)
            said.tls = None if credentials is None else credentials.statistics()
            self.turns.report(said)
            return said

        return now
