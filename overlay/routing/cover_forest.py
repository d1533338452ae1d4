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

Invariants: every interest is told or below one that covers it; no top covers another as far as
``covers`` can tell; what ``change`` returns, summed, is what is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from overlay.routing.cover_index import CoverIndex
from overlay.routing.delta import Delta, DeltaSum
from yfilter.engine.containment import Pattern
from yfilter.engine.linear_paths import Conjunction


class _Interest(Pattern):
    """``takers``: how many stand behind it, local profiles together counting as one."""

    __slots__ = ("above", "below", "takers")

    def __init__(self, disjunct: Conjunction) -> None:
        super().__init__(disjunct)
        self.takers = 0
        self.above: _Interest | None = None
        self.below: dict[_Interest, None] = {}


class CoverForest:
    """Interests with their takers; ``told`` is what the parent knows."""

    def __init__(self) -> None:
        self._interests: dict[Conjunction, _Interest] = {}
        self._tops: CoverIndex[_Interest] = CoverIndex()
        self._news = DeltaSum()

    def change(self, added: Iterable[Conjunction], removed: Iterable[Conjunction]) -> Delta:
        """One taker more for each of ``added``, one less for each of ``removed``; gives what the
        parent must be told.  KeyError for one without a taker."""
        for disjunct in added:
            self._add(disjunct)
        for disjunct in removed:
            self._remove(disjunct)
        return self._news.take()

    def restore(self, told: Conjunction) -> None:
        """Something that the parent knew before a restart; before anything else is added, and
        ``settle`` when all is."""
        interest = self._interests[told] = _Interest(told)
        self._tops.add(interest)

    def settle(self) -> Delta:
        """Drop what was told and has no taker any more; gives what the parent must be told."""
        for interest in [top for top in self._tops if not top.takers]:
            self._drop(interest)
        return self._news.take()

    @property
    def told(self) -> Iterator[Conjunction]:
        return (interest.disjunct for interest in self._tops)

    def __len__(self) -> int:
        return len(self._interests)

    def statistics(self) -> dict[str, int]:
        return {
            "interests": len(self._interests),
            "told": len(self._tops),
            "compared": self._tops.statistics()["compared"],
        }

    def _add(self, disjunct: Conjunction) -> None:
        interest = self._interests.get(disjunct)
        if interest is None:
            interest = self._interests[disjunct] = _Interest(disjunct)
            self._place(interest)
        interest.takers += 1

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
            self._tops.remove(lower)
            self._news.remove(lower.disjunct)
            _put_below(interest, lower)
        self._tops.add(interest)
        self._news.add(interest.disjunct)

    def _drop(self, interest: _Interest) -> None:
        """Take an interest out; what stood below it finds another place."""
        del self._interests[interest.disjunct]
        above = interest.above
        if above is not None:
            del above.below[interest]
            for lower in interest.below:
                _put_below(above, lower)
            return
        self._tops.remove(interest)
        self._news.remove(interest.disjunct)
        for lower in interest.below:
            lower.above = None
            self._place(lower)


def _put_below(cover: _Interest, interest: _Interest) -> None:
    interest.above = cover
    cover.below[interest] = None
