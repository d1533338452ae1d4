"""CoverForest: the interests of a broker on one tree, and which of them its parent must know.

Interests stand in a forest: each below one that covers it.  What is told to the parent are the
tops, of which none covers another::

    //part                    told
    ├── /m/part               not told: //part covers it
    │   └── /m/part[@a = "1"]
    └── //part[@b]
    /m[@c = "1"]              told

Adding is looking for a top that covers the new interest; if there is none it becomes a top, and
the tops that it covers go below it.  Removing is exact: what stood below a top that goes is looked
for a place again, and what nothing else covers is told once more.

With a budget the tops are kept within it: generalisations, wider disjuncts that nobody asked for,
stand as tops over what they take the place of (generalisation.py).  One with fewer than two below
it goes again; when much of the budget is free, so do others; and so does one that lets more pass
for nothing than was thought (measured_costs.py).  So a generalisation costs crossings and never a
message, and what it hid comes back when there is room.

Generalising a large forest takes a while, so it is done in bounded steps: one with each change,
and more whenever ``work`` is called while the forest ``is_working``; it is beyond its budget until
that is done.

Invariants: every interest is told or below one that covers it; no top covers another as far as
``covers`` can tell; what ``change`` returns, summed, is what is told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from formats import ElementStream
from overlay.routing.cover_index import CoverIndex
from overlay.routing.delta import Delta, DeltaSum
from overlay.routing.generalisation import UNBOUNDED, Budget, disjunct_bytes, generalise
from overlay.routing.measured_costs import MeasuredCosts
from overlay.routing.message_sample import MessageSample
from overlay.routing.pattern_pool import PatternPool
from yfilter.engine.containment import Pattern
from yfilter.engine.linear_paths import ANY_MESSAGE, Conjunction
from yfilter.engine.readings import Reading, Readings

# Shares of the budget: generalised down to, specialised when below, and no further than.
_GENERALISED_TO, _SPECIALISED_AT, _SPECIALISED_TO = 0.9, 0.4, 0.6
_COSTS = (0.001, 0.004, 0.016, 0.064, 0.25, 1.0)  # of a generalisation at most, round by round
_USEFUL_FROM = 0.2  # of what is too much: such a round is followed by one of the same cost
_BELOW_MIN = 2
STEPS = 512  # of generalising, at a time: a disjunct looked at or put, or a few candidates
SPECIALISED_MAX = 64  # at a time
REVISED_EVERY = 64  # messages that came for nothing


class _Interest(Pattern):
    """``pattern`` is shared with other trees; ``takers``: how many stand behind this interest,
    local profiles together counting as one."""

    __slots__ = ("above", "below", "pattern", "takers")

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.disjunct = pattern.disjunct
        self.reading = pattern.reading
        self.chains = pattern.chains
        self.keys = pattern.keys
        self.takers = 0
        self.above: _Interest | None = None
        self.below: dict[_Interest, None] = {}


class CoverForest:
    """Interests with their takers; ``told`` is what the parent knows."""

    def __init__(
        self,
        budget: Budget = UNBOUNDED,
        pool: PatternPool | None = None,
        sample: MessageSample | None = None,
    ) -> None:
        """``pool`` and ``sample``, of the messages of all trees, are shared with other forests."""
        self._budget = budget
        self._sample = sample
        self._pool = PatternPool() if pool is None else pool
        self._interests: dict[Conjunction, _Interest] = {}
        self._tops: CoverIndex[_Interest] = CoverIndex()
        self._general: dict[_Interest, None] = {}  # nobody asked for them
        self._bytes = 0  # of the tops
        self._generalised = 0
        self._is_settled = True
        self._cost = 0  # of the next round: which of _COSTS
        self._shrinking: Iterator[None] | None = None
        self._measured = MeasuredCosts()
        self._blamed = 0
        self._revised = 0
        self._news = DeltaSum()

    def change(self, added: Iterable[Conjunction], removed: Iterable[Conjunction]) -> Delta:
        """One taker more for each of ``added``, one less for each of ``removed``; gives what the
        parent must be told.  KeyError for one without a taker."""
        for disjunct in added:
            self._add(disjunct)
        for disjunct in removed:
            self._remove(disjunct)
        self._fit()
        return self._news.take()

    def restore(self, told: Conjunction) -> None:
        """Something that the parent knew before a restart; before anything else is added, and
        ``settle`` when all is."""
        interest = self._new(told)
        self._general[interest] = None  # as long as nobody asks for it
        self._raise(interest)
        self._news.take()
        self._is_settled = False

    def settle(self) -> Delta:
        """Drop what was told and stands for nothing any more; gives what the parent must be
        told."""
        for interest in list(self._general):
            self._drop_if_idle(interest)
        for interest in self._general:
            self._measured.stand(interest.disjunct, 0.0)
        self._is_settled = True
        self._fit()
        return self._news.take()

    def set_budget(self, budget: Budget) -> Delta:
        """Gives what the parent must be told; all of it at once, so that what is told first of a
        new branch is within its budget."""
        self._budget = budget
        self._shrinking = None
        self._fit()
        while self.is_working:
            self._shrink()
        return self._news.take()

    @property
    def is_working(self) -> bool:
        """Whether generalising is not done yet."""
        return self._shrinking is not None

    def work(self) -> Delta:
        """Go on with it; gives what the parent must be told."""
        self._fit()
        return self._news.take()

    def arrived(self, source: str, number: int) -> None:
        """A message came from the parent, the ``number``-th of its source."""
        self._measured.arrived(source, number)

    def blame(self, message: ElementStream | Readings) -> Delta:
        """It came for nothing; gives what the parent must be told if choices are revised."""
        if self._measured.blame(message):
            self._blamed += 1
            if self._blamed % REVISED_EVERY == 0:
                self._revise()
        return self._news.take()

    @property
    def told(self) -> Iterator[Conjunction]:
        return (interest.disjunct for interest in self._tops)

    def statistics(self) -> dict[str, int]:
        return {
            "interests": len(self._interests) - len(self._general),
            "told": len(self._tops),
            "told_bytes": self._bytes,
            "generalisations": len(self._general),
            "generalised": self._generalised,
            "revised": self._revised,
            **self._measured.statistics(),
            "compared": self._tops.statistics()["compared"],
        }

    # --- changes --------------------------------------------------------------------------

    def _add(self, disjunct: Conjunction) -> None:
        interest = self._interests.get(disjunct)
        if interest is None:
            interest = self._new(disjunct)
            self._place(interest)
        interest.takers += 1
        self._unset_general(interest)

    def _new(self, disjunct: Conjunction) -> _Interest:
        interest = _Interest(self._pool.pattern(disjunct))
        self._interests[interest.disjunct] = interest
        return interest

    def _remove(self, disjunct: Conjunction) -> None:
        interest = self._interests[disjunct]
        interest.takers -= 1
        if not interest.takers:
            self._drop(interest)

    def _place(self, interest: _Interest) -> None:
        """Below a top that covers it, else on top of those that it covers."""
        cover = next(self._tops.covering(interest), None)
        if cover is not None:
            _put_below(cover, interest)
            return
        for lower in self._tops.covered(interest):
            self._lower(lower)
            if lower in self._general:
                self._forget(lower)
                for hidden in lower.below:
                    _put_below(interest, hidden)
            else:
                _put_below(interest, lower)
        self._raise(interest)

    def _drop(self, interest: _Interest) -> None:
        """Take an interest out; what stood below it finds another place."""
        self._forget(interest)
        above = interest.above
        if above is not None:
            del above.below[interest]
            for lower in interest.below:
                _put_below(above, lower)
            self._drop_if_idle(above)
            return
        self._lower(interest)
        for lower in interest.below:
            lower.above = None
            self._place(lower)

    def _drop_if_idle(self, interest: _Interest) -> None:
        """A generalisation for one interest is no use."""
        if interest in self._general and len(interest.below) < _BELOW_MIN:
            self._drop(interest)

    def _forget(self, interest: _Interest) -> None:
        del self._interests[interest.disjunct]
        self._unset_general(interest)

    def _set_general(self, interest: _Interest, thought: float) -> None:
        self._general[interest] = None
        self._measured.stand(interest.disjunct, thought)

    def _unset_general(self, interest: _Interest) -> None:
        if interest in self._general:
            del self._general[interest]
            if self._is_settled:
                self._measured.fall(interest.disjunct)

    def _raise(self, interest: _Interest) -> None:
        self._tops.add(interest)
        self._bytes += disjunct_bytes(interest.disjunct)
        self._news.add(interest.disjunct)

    def _lower(self, interest: _Interest) -> None:
        self._tops.remove(interest)
        self._bytes -= disjunct_bytes(interest.disjunct)
        self._news.remove(interest.disjunct)

    # --- the budget -----------------------------------------------------------------------

    def _fit(self) -> None:
        """Generalise when the tops are beyond the budget, specialise when much of it is free."""
        if not self._is_settled:
            return
        if self._shrinking is None and not self._allows(1.0):
            self._shrinking = self._rounds()
        if self._shrinking is not None:
            self._shrink()
        for _ in range(SPECIALISED_MAX):
            if not self._general or not self._allows(_SPECIALISED_AT):
                break
            fewest = min(self._general, key=lambda interest: len(interest.below))
            if not self._allows(_SPECIALISED_TO, more=[top.disjunct for top in fewest.below]):
                break
            self._drop(fewest)

    def _allows(self, share: float, more: Collection[Conjunction] = ()) -> bool:
        size = self._bytes + sum(map(disjunct_bytes, more))
        return self._budget.allows(len(self._tops) + len(more), size, share)

    def _shrink(self) -> None:
        if self._shrinking is not None and sum(1 for _ in islice(self._shrinking, STEPS)) < STEPS:
            self._shrinking = None

    def _rounds(self) -> Iterator[None]:
        """First what costs nearly nothing, as long as that is of use; then what costs more.  It
        begins with what was of use the last time."""
        while len(self._tops) > len(self._readings()) and not self._allows(_GENERALISED_TO):
            excess = self._excess()
            yield from self._round(excess, _COSTS[self._cost])
            if excess - self._excess() >= _USEFUL_FROM * excess:
                continue
            if self._cost + 1 < len(_COSTS):
                self._cost += 1
            elif self._excess() >= excess:
                for reading in self._readings():
                    self._put_general(ANY_MESSAGE[reading], 1.0)
        self._cost = max(0, self._cost - 1)

    def _readings(self) -> set[Reading]:
        """Of the tops; nothing covers what is of both, so one of each is the least."""
        return {top.reading for top in self._tops}

    def _excess(self) -> float:
        tops = (interest.disjunct for interest in self._tops)
        return sum(map(self._budget.weight, tops)) - _GENERALISED_TO

    def _round(self, excess: float, cost_max: float) -> Iterator[None]:
        """Wider disjuncts, enough or as many as there are.  What has changed since the round began
        is found out when one is put."""
        tops = [interest.disjunct for interest in self._tops]
        cost_of, sample = self._measured.cost_of, self._sample
        for wider in generalise(tops, self._budget, excess, cost_of, sample, cost_max):
            if wider is not None:
                self._generalised += 1
                self._put_general(wider.disjunct, wider.cost)
            yield

    def _put_general(self, wider: Conjunction, thought: float) -> None:
        if wider in self._interests:
            return
        interest = self._new(wider)
        if next(self._tops.covering(interest), None) is not None:
            del self._interests[interest.disjunct]
            return
        self._set_general(interest, thought)
        self._place(interest)
        self._drop_if_idle(interest)

    def _revise(self) -> None:
        """Those that cost more than was thought give way to others."""
        for disjunct in self._measured.disappointing():
            interest = self._interests.get(disjunct)
            if interest is not None and interest in self._general:
                self._revised += 1
                self._drop(interest)
        self._fit()


def _put_below(cover: _Interest, interest: _Interest) -> None:
    interest.above = cover
    cover.below[interest] = None
