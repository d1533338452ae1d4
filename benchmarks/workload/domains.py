"""Value domains: what attributes and texts are drawn from.

Enumerations have few values, open domains very many of which a few are frequent (Zipf), numbers
are uniform.  ``draw`` gives what a message would contain, ``draw_rare`` what a very particular
user would ask for.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate
from random import Random
from typing import Protocol

NUMBERS = 100_000
OPEN_VALUES = 50_000
RARE_SIZE = 50_000  # in a domain of so many values, one of them taken at random is rare

_SYLLABLES = (
    "al", "bri", "ca", "dor", "en", "fi", "gra", "ho", "is", "ju", "ke", "lo", "mi", "nu", "or",
    "pel", "qui", "ra", "so", "ti", "um", "va", "wex", "ya", "zo",
)  # fmt: skip


class Domain(Protocol):
    """Where the values of an attribute or a text come from: ``size`` different ones."""

    numeric: bool
    size: int

    def draw(self, random: Random) -> str:
        """A value as frequent as it is in messages."""

    def draw_rare(self, random: Random) -> str:
        """Any value of the domain, the frequent ones no more often than the others."""


class Numbers:
    """Whole numbers from 0, all equally frequent."""

    numeric = True
    size = NUMBERS

    def draw(self, random: Random) -> str:
        return str(random.randrange(NUMBERS))

    draw_rare = draw


class Words:
    """Words whose frequency falls with their rank, as the weights say.

    Domains may share one list of words; ``shift`` makes other words the frequent ones.
    """

    numeric = False

    def __init__(self, words: Sequence[str], cumulative: Sequence[float], shift: int = 0) -> None:
        self._words = words
        self._cumulative = cumulative
        self._shift = shift
        self.size = len(words)

    def draw(self, random: Random) -> str:
        rank = bisect(self._cumulative, random.random() * self._cumulative[-1])
        return self._words[(rank + self._shift) % self.size]

    def draw_rare(self, random: Random) -> str:
        return random.choice(self._words)


def make_word(random: Random, syllables: Sequence[int]) -> str:
    """A word of as many syllables as one of those numbers."""
    return "".join(random.choice(_SYLLABLES) for _ in range(random.choice(syllables)))


def zipf_weights(number: int, skew: float) -> list[float]:
    """Cumulative weights of the ranks 1 to ``number``, for ``bisect``."""
    return list(accumulate(1.0 / rank**skew for rank in range(1, number + 1)))
