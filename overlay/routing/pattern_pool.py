"""PatternPool: each disjunct of a broker is there once, however many trees and links have it.

The same interests come up every tree whose root has a source.  What is large about a disjunct, its
syntax tree and what containment needs of it, is shared by all of them; what is not parsed again
costs no time either.  A disjunct that nobody holds any more is gone from the pool.
"""

from __future__ import annotations

from weakref import WeakValueDictionary

from yfilter.engine.containment import Pattern
from yfilter.engine.linear_paths import Conjunction
from yfilter.engine.routing_templates import read_conjunction


class PatternPool:
    """Disjuncts and their patterns, by text."""

    def __init__(self) -> None:
        self._disjuncts: WeakValueDictionary[str, Conjunction] = WeakValueDictionary()
        self._patterns: WeakValueDictionary[str, Pattern] = WeakValueDictionary()

    def parse(self, text: str) -> Conjunction:
        """As ``Conjunction.parse``."""
        known = self._disjuncts.get(text)
        if known is None:
            known = self._disjuncts[text] = read_conjunction(text)
        return known

    def share(self, disjunct: Conjunction) -> Conjunction:
        """The one that is in the pool; from now on this one if there was none."""
        return self._disjuncts.setdefault(disjunct.text, disjunct)

    def pattern(self, disjunct: Conjunction) -> Pattern:
        known = self._patterns.get(disjunct.text)
        if known is None:
            known = self._patterns[disjunct.text] = Pattern(self.share(disjunct))
        return known

    def __len__(self) -> int:
        return len(self._disjuncts)
