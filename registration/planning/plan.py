"""Plan: which partition every profile belongs to, now and later, and which broker has it.

A plan is rules, not a list of profiles: a new profile is placed like its equals, in microseconds.
It is a versioned, checked artefact (plan_file.py); the assignment of the profiles that it was
computed from lies beside it as Parquet.

::

    profile's needs --Choice--> one pattern and value --Rule--> partition --brokers--> host broker
                    no chosen pattern: one of the "don't care" partitions
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from registration.planning.choice import Choice, slot_of, stable_hash
from registration.planning.exclusiveness import Need, Pattern
from registration.planning.need_reader import NeedReader


@dataclass(frozen=True, slots=True)
class Rule:
    """How one chosen pattern places profiles.

    ``at_most``: values in a message by the schema (``inf``: no bound); ``expected``: different
    values in a sampled message, on average.  ``load``: of the profiles placed by this pattern.
    ``values``: value -> its partitions (several: split by the profile's text); ``slots``: the
    partition of each hash slot, for all other values; ``crowded``: value -> load, see Choice.
    """

    pattern: Pattern
    at_most: float
    expected: float
    load: float
    values: Mapping[str, tuple[int, ...]]
    slots: tuple[int, ...]
    crowded: Mapping[str, float] = field(default_factory=dict)

    def partitions_of(self, value: str) -> tuple[int, ...]:
        """Where profiles with this value can be."""
        listed = self.values.get(value)
        return listed if listed is not None else (self.slots[slot_of(value, len(self.slots))],)

    @property
    def where(self) -> set[int]:
        """The partitions over which the pattern's profiles are spread."""
        return {*self.slots, *(p for where in self.values.values() for p in where)}

    @property
    def spread(self) -> int:
        """How many these are."""
        return len(self.where)


@dataclass(frozen=True, slots=True)
class Facts:
    """What the plan was computed from, and what it promises.

    ``load``: of all profiles, 1 each unless weighted; ``refused``: how many were no profiles.
    ``loads`` of all partitions; ``matched_share``: the expected share of the partitions that a
    message visits, from ``samples`` messages (0: from the schemas alone);
    ``brokers_share``: the same of the brokers.
    """

    load: float
    refused: int
    dont_care: float
    loads: tuple[float, ...]
    matched_share: float
    samples: int
    brokers_share: float = 1.0

    @property
    def coverage(self) -> float:
        """The share of the load that has a chosen pattern."""
        return 1 - self.dont_care / self.load if self.load else 1.0

    @property
    def imbalance(self) -> float:
        """The largest partition over the mean."""
        mean = sum(self.loads) / len(self.loads)
        return max(self.loads) / mean if mean else 1.0


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a profile belongs; ``pattern`` None: it has none that the plan knows."""

    partition: int
    pattern: Pattern | None


@dataclass(frozen=True)
class Plan:
    """``rules`` in the order in which a profile with several patterns prefers them; ``brokers``:
    the host broker of each partition, empty for a plan without a topology (named ``topology``)."""

    partitions: int
    rules: tuple[Rule, ...]
    dont_care: tuple[int, ...]
    facts: Facts
    brokers: tuple[str, ...] = ()
    topology: str = ""

    @cached_property
    def choice(self) -> Choice:
        crowded = {rule.pattern: rule.crowded for rule in self.rules if rule.crowded}
        return Choice({rule.pattern: rank for rank, rule in enumerate(self.rules)}, crowded)

    @cached_property
    def rule_of(self) -> Mapping[Pattern, Rule]:
        return {rule.pattern: rule for rule in self.rules}

    def place_needs(self, needs: Sequence[Need], text: str) -> Placement:
        """The partition of a profile with these needs; equal texts go to the same one."""
        need = self.choice.need(needs)
        if need is None:
            return Placement(self.partition(None, "", stable_hash(text)), None)
        hashed = stable_hash(text)
        return Placement(self.partition(need.pattern, need.values[0], hashed), need.pattern)

    def partition(self, pattern: Pattern | None, value: str, hashed: int) -> int:
        """The partition of a profile that is placed by ``value`` at ``pattern`` (None: by no
        pattern); ``hashed`` is the ``stable_hash`` of its text."""
        where = self.rule_of[pattern].partitions_of(value) if pattern else self.dont_care
        return where[hashed % len(where) if len(where) > 1 else 0]

    def visited(self, values: Mapping[Pattern, Sequence[str]]) -> set[int]:
        """The partitions that a message with these values can match, without "don't care"."""
        return {
            partition
            for pattern, value in self.placing(values)
            for partition in self.rule_of[pattern].partitions_of(value)
        }

    def placing(self, values: Mapping[Pattern, Sequence[str]]) -> Iterator[tuple[Pattern, str]]:
        """Those of a message's values at which the plan places profiles."""
        for pattern, texts in values.items():
            if pattern in self.rule_of:
                for value in set(texts):
                    yield pattern, value

    def broker_of(self, partition: int) -> str:
        """KeyError when the plan has no brokers."""
        if not self.brokers:
            raise KeyError("the plan was made without a topology")
        return self.brokers[partition]


class Placer:
    """Places profiles by a plan, from their text; remembers the shapes of profiles."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._reader = NeedReader()

    def place(self, text: str) -> Placement:
        """ProfileRefused when the text is no profile."""
        return self.plan.place_needs(self._reader.read(text), text)
