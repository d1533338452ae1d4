"""MeasuredCosts: what generalisations let pass for nothing, counted where it arrives.

A message that came from the parent and that nobody here or below wants was let pass by some
generalisation, or by what routing queries cannot say.  Those that hold on it are found by an engine
of their own, which such messages alone are shown, and share the blame::

    standing       what is told now: thought to cost so much, blamed for so many
    remembered     what was measured of those that were told once, by disjunct
    by shape       measured over thought, by disjunct without its values: what is true of
                   ``/m[@a = "1"]`` says something of ``/m[@a = "2"]``

All are shares of the messages published on the trees, which the numbers of the messages that arrive
tell.  A generalisation *disappoints* when it costs twice what it was thought to, and more than
next to nothing; it is remembered with its cost, so that it comes back only where all else is worse,
and is not found disappointing again: choices settle.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass

from formats import ElementStream
from yfilter.engine.linear_paths import Conjunction
from yfilter.engine.match_limits import MatchLimits
from yfilter.engine.readings import Readings
from yfilter.errors import MatchLimitExceeded
from yfilter.matcher import LinkTarget, Matcher

MESSAGES_MIN = 32  # that count as much as what was thought
DISAPPOINTS_AT = 2.0  # times what was thought
DISAPPOINTS_FROM = 0.01  # of all messages
REMEMBERED_MAX = 4096
LAZY_BYTES_MAX = 1024 * 1024  # of the engine, which few messages are shown
_VALUE = re.compile(r'"[^"]*"|(?<![\w.])-?\d[\d.eE+]*')


@dataclass(slots=True)
class _Standing:
    """``since``: how many messages had been published before."""

    disjunct: Conjunction
    thought: float
    since: int
    blamed: float = 0.0


class MeasuredCosts:
    """Of the generalisations of one branch."""

    def __init__(self) -> None:
        self._matcher: Matcher | None = None  # of what stands; large, so there when it is needed
        self._standing: dict[str, _Standing] = {}
        self._remembered: dict[str, float] = {}
        self._by_shape: dict[str, tuple[float, float]] = {}  # measured, thought
        self._last: dict[str, int] = {}  # number of the last message, by source
        self._published = 0
        self._useless = 0
        self._unexplained = 0

    def stand(self, disjunct: Conjunction, thought: float) -> None:
        """A generalisation is told from now on."""
        self._standing[disjunct.text] = _Standing(disjunct, thought, self._published)
        if self._matcher is None:
            self._matcher = Matcher(MatchLimits(lazy_bytes_max=LAZY_BYTES_MAX))
        self._matcher.add_route(disjunct, LinkTarget("", disjunct.text))

    def fall(self, disjunct: Conjunction) -> None:
        """It is not any more."""
        del self._standing[disjunct.text]
        if self._matcher is not None:
            self._matcher.remove_route(disjunct, LinkTarget("", disjunct.text))
        if not self._standing:
            self._matcher = None

    def arrived(self, source: str, number: int) -> None:
        """A message came from the parent; those in between went elsewhere, or nowhere."""
        last = self._last.get(source)
        self._last[source] = number
        self._published += 1 if last is None else max(0, number - last)

    def blame(self, message: ElementStream | Readings) -> bool:
        """A message came for nothing; whether a generalisation let it pass."""
        self._useless += 1
        holding: list[str] = []
        with suppress(MatchLimitExceeded):
            if self._matcher is not None:
                holding.extend(self._matcher.matched_links(message))
        for text in holding:
            self._standing[text].blamed += 1 / len(holding)
        self._unexplained += not holding
        return bool(holding)

    def disappointing(self) -> list[Conjunction]:
        """Those that give way to others; all that was measured is remembered."""
        found = []
        for text, standing in self._standing.items():
            seen = self._published - standing.since
            if seen < MESSAGES_MIN:
                continue
            cost = (standing.blamed + standing.thought * MESSAGES_MIN) / (seen + MESSAGES_MIN)
            if cost >= DISAPPOINTS_FROM and cost >= DISAPPOINTS_AT * standing.thought:
                found.append(standing.disjunct)
                self._remember(text, cost, standing.thought)
        return found

    def cost_of(self, disjunct: Conjunction, thought: float) -> float:
        """What a disjunct costs as far as that is known, at least ``thought`` if it is not."""
        known = self._remembered.get(disjunct.text)
        if known is not None:
            return known
        if not self._by_shape:
            return thought
        measured, expected = self._by_shape.get(_shape(disjunct.text), (1.0, 1.0))
        return min(1.0, thought * max(1.0, measured / expected))

    def statistics(self) -> dict[str, int]:
        """``useless``: messages that came for nothing; ``unexplained``: by no generalisation, so
        because routing queries say less than profiles do, or an interest had just gone."""
        return {
            "useless": self._useless,
            "unexplained": self._unexplained,
            "remembered_costs": len(self._remembered),
        }

    def _remember(self, text: str, cost: float, thought: float) -> None:
        self._remembered.pop(text, None)
        self._remembered[text] = cost
        shape = _shape(text)
        measured, expected = self._by_shape.pop(shape, (0.0, 0.0))
        self._by_shape[shape] = measured + cost, expected + thought
        for known in (self._remembered, self._by_shape):
            if len(known) > REMEMBERED_MAX:
                del known[next(iter(known))]  # the oldest


def _shape(text: str) -> str:
    return _VALUE.sub("?", text)
