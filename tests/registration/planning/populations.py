"""Populations of profiles and messages for the planning tests, from a seed."""

from __future__ import annotations

from random import Random

from registration.planning.exclusiveness import Need
from registration.planning.planner import Values
from registration.planning.value_loads import ProfileNeeds

PATTERNS = tuple(f"/m/f{number}/@v" for number in range(10))


class FigureNine:
    """The population of Figure 9: two of ten patterns each, uniform or Zipf values."""

    def __init__(self, seed: int, values: int = 500, zipf: bool = False) -> None:
        self.random = Random(seed)
        self._values = [str(value) for value in range(values)]
        self._weights = [1 / (rank + 1) if zipf else 1.0 for rank in range(values)]

    def value(self) -> str:
        return self.random.choices(self._values, self._weights)[0]

    def needs(self) -> tuple[Need, ...]:
        patterns = sorted(self.random.sample(PATTERNS, 2))
        return tuple(Need(pattern, (self.value(),)) for pattern in patterns)

    def profiles(self, number: int) -> list[ProfileNeeds]:
        return [ProfileNeeds(self.needs()) for _ in range(number)]

    def message(self, repeated: int = 0) -> Values:
        """One value at each pattern, and so many more at random ones."""
        values = {pattern: [self.value()] for pattern in PATTERNS}
        for _ in range(repeated):
            values[self.random.choice(PATTERNS)].append(self.value())
        return values


def profile_text(needs: tuple[Need, ...]) -> str:
    """A profile with these needs."""
    conditions = " and ".join(
        f'{need.pattern.removeprefix("/m/")} = "{need.values[0]}"' for need in needs
    )
    return f"/m[{conditions}]" if needs else "/m"
