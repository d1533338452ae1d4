"""The demo's plan: computed on the spot by the planner of ``onyx plan make``.

A demo's profiles and messages fit in memory, so that the planner sums over a list, in a thread,
while the network starts; ``onyx plan make`` sums on Spark, and finds the same plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import trio

from demo.scenario import Scenario
from formats.errors import DecodeError, MessageRefused
from formats.publication import read_publication
from overlay.topology import Topology
from registration.planning.exclusiveness import Pattern
from registration.planning.need_reader import NeedReader
from registration.planning.pattern_reader import PatternReader
from registration.planning.plan import Placer, Plan
from registration.planning.plan_file import to_json
from registration.planning.planner import Evidence, PlanOptions, Values, make_plan
from registration.planning.value_loads import LocalPopulation, ProfileNeeds
from yfilter.errors import ProfileRefused

PARTITIONS_A_BROKER = 2
PLANNING_SECONDS = 600.0
_SAMPLES_MAX = 1_000  # messages that the plan is made from


class PlanningFailure(Exception):
    """There is no plan; the text says why."""


@dataclass(frozen=True, slots=True)
class DemoPlan:
    """``text`` is what the registration service is given; ``partition_of`` each profile, in the
    scenario's order."""

    plan: Plan
    text: bytes
    partition_of: tuple[int, ...]


async def make_demo_plan(scenario: Scenario, topology: Topology) -> DemoPlan:
    """The plan for a scenario's profiles, from its own messages; PlanningFailure."""
    with trio.move_on_after(PLANNING_SECONDS):
        return await trio.to_thread.run_sync(demo_plan, scenario, topology, abandon_on_cancel=True)
    raise PlanningFailure(f"not done after {PLANNING_SECONDS:g} s")


def demo_plan(scenario: Scenario, topology: Topology) -> DemoPlan:
    """``make_demo_plan``, where nobody else waits."""
    texts = [profile.text for profile in scenario.profiles]
    needs = list(_needs(texts))
    population = LocalPopulation(needs)
    patterns = sorted({p for known in population.signatures() for p in known.patterns})
    samples = [(values, 1.0) for values in _values(scenario, patterns)]
    options = PlanOptions(
        PARTITIONS_A_BROKER * len(topology.brokers), topology, refused=len(texts) - len(needs)
    )
    try:
        plan = make_plan(population, options, Evidence(messages=samples))
    except ValueError as error:
        raise PlanningFailure(str(error)) from None
    placer = Placer(plan)
    partition_of = tuple(placer.place(text).partition for text in texts)
    return DemoPlan(plan, to_json(plan).encode(), partition_of)


def _needs(texts: Sequence[str]) -> Iterator[ProfileNeeds]:
    """The needs of each text that is a profile."""
    reader = NeedReader()
    for text in texts:
        try:
            yield ProfileNeeds(reader.read(text))
        except ProfileRefused:
            continue


def _values(scenario: Scenario, patterns: Sequence[Pattern]) -> Iterator[Values]:
    """The values at the patterns in each sampled message that a broker takes."""
    reader = PatternReader(patterns)
    step = max(1, -(-len(scenario.messages) // _SAMPLES_MAX))
    for message in scenario.messages[::step]:
        try:
            yield reader.values(read_publication(message.data, message.media_type))
        except (MessageRefused, DecodeError):
            continue
