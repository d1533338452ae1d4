"""The planner: sums over a population in, a plan out (PEP, section 4.4).

1. Choose patterns that cover the population (pattern_cover.py).
2. See how the profiles fall on values when each follows the order of the patterns.  Where a value
   has more profiles than a partition holds, let those that can go by another pattern.
3. Pack values into partitions of even load (packing.py).
4. Predict, on sampled messages, what share of the partitions a message visits.
5. Give the partitions to brokers (broker_assignment.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, inf, log2

from overlay.topology import Topology
from registration.planning.broker_assignment import assign_brokers
from registration.planning.choice import Choice
from registration.planning.exclusiveness import Pattern
from registration.planning.kept_packing import hosts_before, kept_slots, pack_kept
from registration.planning.packing import SLIVER, Packing, pack
from registration.planning.pattern_cover import PATTERNS_MAX, Signature, choose_patterns
from registration.planning.plan import Facts, Plan, Rule
from registration.planning.value_loads import Population, ValueAt, ValueLoads

# How fine the items of a partition are: an item holds at most this part of one.
ITEMS_A_PARTITION = 32
PARTITIONS_A_BROKER = 8
PARTITIONS = 64  # without brokers
PROFILES_A_PARTITION = 8
KEPT_WORSE_MAX = 1.1  # times the share that messages visit by a plan from scratch
REPEATED = 4.0  # how often a pattern is taken to occur that the schema does not bound

Values = Mapping[Pattern, Sequence[str]]  # of one message, see PatternReader


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of the messages.

    ``at_most``: pattern -> values in a message by the schemas of the sources that have it;
    ``messages``: the values of sampled messages, with the number of times each counts; where there
    are none, ``measured``: what brokers have counted, as ``measured_values`` has it.
    """

    at_most: Callable[[Pattern], float] = field(default=lambda _: inf)
    messages: Sequence[tuple[Values, float]] = ()
    measured: Mapping[Pattern, float] = field(default_factory=dict)

    def expected(self, patterns: Iterable[Pattern]) -> dict[Pattern, float]:
        """Different values at each pattern in a message, on average."""
        if not self.messages:
            return {pattern: self._without_messages(pattern) for pattern in patterns}
        weight = sum(times for _, times in self.messages)
        sums = dict.fromkeys(patterns, 0.0)
        for values, times in self.messages:
            for pattern in values.keys() & sums.keys():
                sums[pattern] += len(set(values[pattern])) * times
        return {pattern: total / weight for pattern, total in sums.items()}

    def _without_messages(self, pattern: Pattern) -> float:
        return min(self.at_most(pattern), self.measured.get(pattern, REPEATED))


def measured_values(
    plan: Plan, messages: float, matched: Iterable[tuple[int, float]]
) -> dict[Pattern, float]:
    """At how many partitions a message matches on account of each pattern of a plan that was in
    force, of ``messages`` that ``matched`` (partition, how many of them) under it.

    What matches in a partition is put down to the patterns in it by their loads there.
    """
    rates = {partition: count / messages for partition, count in matched}
    where = {rule.pattern: (rule.where, rule.load / max(rule.spread, 1)) for rule in plan.rules}
    loads = dict.fromkeys(range(plan.partitions), 0.0)
    for partition in plan.dont_care:
        loads[partition] += plan.facts.dont_care / len(plan.dont_care)
    for partitions, load in where.values():
        for partition in partitions:
            loads[partition] += load
    return {
        pattern: sum(rates.get(p, 0.0) * load / loads[p] for p in partitions if loads[p])
        for pattern, (partitions, load) in where.items()
    }


def _hosting(topology: Topology) -> frozenset[str]:
    return frozenset(broker.id for broker in topology.brokers if broker.capacity > 0)


def partitions_for(topology: Topology | None, profiles: float) -> int:
    """K for a network: several for each broker that may host profiles, if so many profiles fill
    them."""
    brokers = len(_hosting(topology)) if topology else 0
    most = PARTITIONS_A_BROKER * brokers if topology else PARTITIONS
    return max(min(int(profiles / PROFILES_A_PARTITION), most), brokers, 1)


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """``partitions``: K; None: as ``partitions_for`` has it.  ``topology`` None: partitions are not
    given to brokers.  ``before``: the plan in force, of which the new one keeps what it can."""

    partitions: int | None = None
    topology: Topology | None = None
    before: Plan | None = None
    patterns_max: int = PATTERNS_MAX
    refused: int = 0  # profiles that could not be read, for the record


def make_plan(
    population: Population,
    options: PlanOptions,
    evidence: Evidence | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> Plan:
    """The plan of a population; ValueError for one without profiles or without partitions."""
    evidence = evidence or Evidence()
    report("which patterns there are")
    signatures = list(population.signatures())
    total = sum(signature.load for signature in signatures)
    if total <= 0:
        raise ValueError("there are no profiles to plan for")
    partitions = options.partitions
    if partitions is None:
        partitions = partitions_for(options.topology, total)
    if partitions < 1:
        raise ValueError(f"a plan needs at least one partition, not {partitions}")
    expected = evidence.expected({p for signature in signatures for p in signature.patterns})
    report(f"choosing among {len(expected):,} patterns")
    before = options.before
    known = [rule.pattern for rule in before.rules] if before else []
    order = choose_patterns(signatures, expected.__getitem__, options.patterns_max, known)
    slots = _slots(order, signatures, partitions)
    if before is not None:
        slots = kept_slots(slots, before)
    asked = {
        (pattern, value)
        for values, _ in evidence.messages
        for pattern in values.keys() & slots.keys()
        for value in values[pattern]
    }
    report(f"how profiles fall on the values of {len(order):,} patterns")
    choice, loads = _value_loads(population, order, slots, total / partitions, asked)
    report(f"packing {partitions:,} partitions")
    draft = _Draft(options, evidence, order, expected, choice, loads)
    packing = pack(order, loads, slots, partitions)
    fresh = draft.plan(packing)
    if before is None:
        return fresh
    brokers = _hosting(options.topology) if options.topology else before.brokers
    most = max(packing.loads)
    kept = pack_kept(order, loads, slots, partitions, before, brokers, most)
    for plan in (draft.plan(kept, before), draft.plan(packing, before)):
        if _is_as_good(plan, fresh, before):
            return plan
    return fresh


@dataclass(frozen=True, slots=True)
class _Draft:
    """A plan but for its packing."""

    options: PlanOptions
    evidence: Evidence
    order: Sequence[Pattern]
    expected: Mapping[Pattern, float]
    choice: Choice
    loads: ValueLoads

    def plan(self, packing: Packing, before: Plan | None = None) -> Plan:
        """``before``: partitions stay with its brokers, where these have most of them."""
        options, loads = self.options, self.loads
        plan = Plan(
            partitions=len(packing.loads),
            rules=_rules(self.order, self.choice, loads, packing, self.expected, self.evidence),
            dont_care=packing.dont_care,
            facts=Facts(
                load=round(loads.total, 3),
                refused=options.refused,
                dont_care=round(loads.dont_care, 3),
                loads=tuple(round(load, 3) for load in packing.loads),
                matched_share=0.0,
                samples=len(self.evidence.messages),
            ),
        )
        visits = [
            (visited_partitions(plan, values, loads.present), times)
            for values, times in self.evidence.messages
        ]
        share = round(_matched_share(plan, visits), 6)
        plan = replace(plan, facts=replace(plan.facts, matched_share=share))
        if (topology := options.topology) is None:
            return plan
        held = hosts_before(before, packing, loads) if before and before.brokers else ()
        brokers = assign_brokers(topology, plan.facts.loads, visits, held)
        share = round(_brokers_share(brokers, len(topology.brokers), visits), 6)
        facts = replace(plan.facts, brokers_share=share)
        return replace(plan, brokers=brokers, topology=topology.name, facts=facts)


def _is_as_good(plan: Plan, fresh: Plan, before: Plan) -> bool:
    """Whether messages visit hardly more by a plan than by one from scratch, and it is as even as
    that or the one before."""
    facts, best = plan.facts, fresh.facts
    return (
        facts.imbalance <= max(best.imbalance + SLIVER, before.facts.imbalance)
        and facts.matched_share <= best.matched_share * KEPT_WORSE_MAX
        and facts.brokers_share <= best.brokers_share * KEPT_WORSE_MAX
    )


def visited_partitions(
    plan: Plan, values: Values, present: Mapping[ValueAt, Collection[str]]
) -> frozenset[int]:
    """The partitions that a message visits; ``present``: see ``ValueLoads``."""
    visited = {
        partition
        for pattern, value in plan.placing(values)
        for first in present.get((pattern, value), ())
        for partition in plan.rule_of[pattern].partitions_of(first)
    }
    if plan.facts.dont_care:
        visited.update(plan.dont_care)
    return frozenset(visited)


def _slots(
    order: Sequence[Pattern], signatures: Iterable[Signature], partitions: int
) -> dict[Pattern, int]:
    """The number of hash slots of each pattern: a power of two, by its share of the load."""
    rank = {pattern: place for place, pattern in enumerate(order)}
    loads = dict.fromkeys(order, 0.0)
    total = 0.0
    for signature in signatures:
        total += signature.load
        chosen = [pattern for pattern in signature.patterns if pattern in rank]
        if chosen:
            loads[min(chosen, key=rank.__getitem__)] += signature.load
    items = ITEMS_A_PARTITION * partitions
    return {
        pattern: 2 ** max(0, ceil(log2(items * load / total)) if load else 0)
        for pattern, load in loads.items()
    }


def _value_loads(
    population: Population,
    order: Sequence[Pattern],
    slots: Mapping[Pattern, int],
    partition_load: float,
    asked: Collection[ValueAt],
) -> tuple[Choice, ValueLoads]:
    """The choice that avoids crowded values, and the loads under it."""
    choice = Choice({pattern: rank for rank, pattern in enumerate(order)})
    limit = partition_load / ITEMS_A_PARTITION
    loads = population.value_loads(choice, slots, limit, asked)
    crowded: dict[Pattern, dict[str, float]] = {}
    for (pattern, value), load in sorted(loads.heavy.items()):
        if load > partition_load:
            crowded.setdefault(pattern, {})[value] = round(load, 3)
    if crowded:
        choice = replace(choice, crowded=crowded)
        loads = population.value_loads(choice, slots, limit, asked)
    return choice, loads


def _rules(
    order: Sequence[Pattern],
    choice: Choice,
    loads: ValueLoads,
    packing: Packing,
    expected: Mapping[Pattern, float],
    evidence: Evidence,
) -> tuple[Rule, ...]:
    own = dict.fromkeys(order, 0.0)
    for (pattern, _), load in loads.heavy.items():
        own[pattern] += load
    for pattern, slot_loads in loads.slots.items():
        own[pattern] += sum(slot_loads.values())
    return tuple(
        Rule(
            pattern=pattern,
            at_most=evidence.at_most(pattern),
            expected=round(expected[pattern], 4),
            load=round(own[pattern], 3),
            values=packing.values[pattern],
            slots=tuple(packing.slots[pattern]),
            crowded=choice.crowded.get(pattern, {}),
        )
        for pattern in order
    )


def _matched_share(plan: Plan, visits: Sequence[tuple[frozenset[int], float]]) -> float:
    """The mean over the samples; without any, the most that the schemas allow."""
    if visits:
        weight = sum(times for _, times in visits)
        return sum(len(visited) * times for visited, times in visits) / weight / plan.partitions
    most = sum(min(rule.expected, rule.spread) for rule in plan.rules)
    if plan.facts.dont_care:
        most += len(plan.dont_care)
    return min(1.0, most / plan.partitions)


def _brokers_share(
    brokers: Sequence[str], number: int, visits: Sequence[tuple[frozenset[int], float]]
) -> float:
    """The mean share of all brokers that a sampled message visits; 1 if there are no samples."""
    weight = sum(times for _, times in visits)
    if not weight:
        return 1.0
    visited = sum(len({brokers[p] for p in found}) * times for found, times in visits)
    return visited / weight / number
