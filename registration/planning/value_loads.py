"""What a planner asks of a population of profiles, and the answers for one that fits in memory.

The planner (planner.py) never sees profiles, only sums over them; so the same planning runs over
a list here and over a cluster in ``registration.spark``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from registration.planning.choice import Choice, slot_of
from registration.planning.exclusiveness import Need, Pattern
from registration.planning.pattern_cover import Signature

ValueAt: TypeAlias = tuple[Pattern, str]


@dataclass(slots=True)
class ValueLoads:
    """How the profiles are distributed over the values of the patterns that a choice gives them.

    ``heavy``: the load of each value above the limit asked for; ``slots``: the others, by pattern
    and hash slot; ``dont_care``: profiles without a chosen pattern; ``present``: for those of
    the values asked for that some profile needs where it was placed, the values by which such
    profiles were placed: itself, or the first alternative where a profile has several.
    """

    heavy: dict[ValueAt, float] = field(default_factory=dict)
    slots: dict[Pattern, dict[int, float]] = field(default_factory=dict)
    dont_care: float = 0.0
    present: dict[ValueAt, set[str]] = field(default_factory=dict)

    @property
    def total(self) -> float:
        slots = sum(sum(loads.values()) for loads in self.slots.values())
        return sum(self.heavy.values()) + slots + self.dont_care


class Population(Protocol):
    """Profiles to be partitioned.  A profile's *load* is 1 unless it is weighted."""

    def signatures(self) -> Sequence[Signature]:
        """How many profiles have which patterns."""

    def value_loads(
        self,
        choice: Choice,
        slots: Mapping[Pattern, int],
        heavy_above: float,
        asked: Collection[ValueAt],
    ) -> ValueLoads:
        """The loads under a choice; ``slots`` is the number of hash slots of each pattern."""


@dataclass(frozen=True, slots=True)
class ProfileNeeds:
    """One profile of a population in memory."""

    needs: tuple[Need, ...]
    load: float = 1.0


class LocalPopulation:
    """A population in memory."""

    def __init__(self, profiles: Iterable[ProfileNeeds]) -> None:
        self._profiles = list(profiles)

    def signatures(self) -> list[Signature]:
        loads: dict[tuple[Pattern, ...], float] = {}
        for profile in self._profiles:
            patterns = tuple(need.pattern for need in profile.needs)
            loads[patterns] = loads.get(patterns, 0.0) + profile.load
        return [Signature(patterns, load) for patterns, load in sorted(loads.items())]

    def value_loads(
        self,
        choice: Choice,
        slots: Mapping[Pattern, int],
        heavy_above: float,
        asked: Collection[ValueAt],
    ) -> ValueLoads:
        found = ValueLoads()
        loads: dict[ValueAt, float] = {}
        for profile in self._profiles:
            need = choice.need(profile.needs)
            if need is None:
                found.dont_care += profile.load
            else:
                at = (need.pattern, need.values[0])
                loads[at] = loads.get(at, 0.0) + profile.load
                for value in need.values:
                    if (need.pattern, value) in asked:
                        firsts = found.present.setdefault((need.pattern, value), set())
                        firsts.add(need.values[0])
        for at, load in loads.items():
            pattern, value = at
            if load > heavy_above:
                found.heavy[at] = load
            else:
                slot_loads = found.slots.setdefault(pattern, {})
                slot = slot_of(value, slots[pattern])
                slot_loads[slot] = slot_loads.get(slot, 0.0) + load
        return found
