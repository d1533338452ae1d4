"""Figure 9's population: profiles of two of ten patterns each, and messages with repetition.

The paper gives no values; here each pattern has ``values`` of them, uniform or Zipf, for profiles
and messages alike.  A message has one value at each pattern, and as many more elements as are
repeated, each at a random pattern.  Arrays of N profiles::

    patterns  [N, 2]  two different patterns, the smaller first
    values    [N, 2]
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from registration.planning.exclusiveness import Need
from registration.planning.planner import Values
from registration.planning.value_loads import LocalPopulation, ProfileNeeds

PATTERNS = 10

Message = list[set[int]]  # the values at each pattern


class FigureNine:
    """The population and messages of a seed."""

    def __init__(self, seed: int, profiles: int, values: int, zipf: bool) -> None:
        self._random = np.random.default_rng(seed)
        self._values = values
        ranks = np.arange(1, values + 1)
        self._share = (1 / ranks if zipf else np.ones(values)) / (
            (1 / ranks).sum() if zipf else values
        )
        first = self._random.integers(0, PATTERNS, profiles)
        second = (first + self._random.integers(1, PATTERNS, profiles)) % PATTERNS
        self.patterns: NDArray[np.int64] = np.stack(
            [np.minimum(first, second), np.maximum(first, second)], axis=1
        )
        self.values: NDArray[np.int64] = self._draw((profiles, 2))

    def message(self, repeated: int) -> Message:
        message = [{int(value)} for value in self._draw((PATTERNS,))]
        for pattern in self._random.integers(0, PATTERNS, repeated):
            message[pattern].add(int(self._draw((1,))[0]))
        return message

    def whole_matches(self, message: Message) -> NDArray[np.int64]:
        """The profiles that a message matches."""
        hit = np.zeros((PATTERNS, self._values), bool)
        for pattern, values in enumerate(message):
            hit[pattern, list(values)] = True
        met = hit[self.patterns, self.values]
        return np.flatnonzero(met[:, 0] & met[:, 1])

    def texts(self) -> list[str]:
        """The profiles as a user would write them."""
        return [
            f'/m[f{a}/@v = "{x}"][f{b}/@v = "{y}"]'
            for (a, b), (x, y) in zip(self.patterns.tolist(), self.values.tolist(), strict=True)
        ]

    @cached_property
    def needs(self) -> list[tuple[Need, Need]]:
        """What ``texts`` need; equal needs are one object."""
        table = [
            [Need(pattern_name(p), (str(value),)) for value in range(self._values)]
            for p in range(PATTERNS)
        ]
        return [
            (table[a][x], table[b][y])
            for (a, b), (x, y) in zip(self.patterns.tolist(), self.values.tolist(), strict=True)
        ]

    def population(self) -> LocalPopulation:
        return LocalPopulation(ProfileNeeds(needs) for needs in self.needs)

    def _draw(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        return self._random.choice(self._values, size=shape, p=self._share)


def pattern_name(pattern: int) -> str:
    return f"/m/f{pattern}/@v"


def as_values(message: Message) -> Values:
    """The message as the planner sees it."""
    return {
        pattern_name(pattern): sorted(map(str, values)) for pattern, values in enumerate(message)
    }
