"""Outcome: everything that is known of one run of the demo, and whether it is as it should be.

This is what the summary and the JSON are made from; there is no network and no oracle in here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from demo.acceptance import POLICIES, Refusal, disagreement
from demo.expectations import Expectation, fingerprint
from demo.planning import DemoPlan
from demo.scenario import Scenario
from demo.traffic import Traffic
from demo.verdict import DeliveryKey, Verdict, judge
from overlay.routing.broadcast_tree import BroadcastTree
from overlay.topology import Topology


@dataclass(frozen=True, slots=True)
class Registered:
    """What the network answered at a registration: an id, and the root broker of a source or the
    host broker of a profile."""

    id: str
    broker: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of a message: its number at its source (0 for one that could not even be sent),
    and why it was refused, None if it was accepted."""

    number: int
    refusal: Refusal | None


@dataclass(slots=True)
class Run:
    """What happened in the network.

    ``sources`` by name and ``profiles`` in the scenario's order; ``decisions`` by the message's
    place in the scenario; ``deliveries`` with the source's name in the key, and their results;
    ``plan`` is what profiles were placed by, None: by location; ``crossings_counted``,
    those of them whose message was ``cut`` and about how many bytes that saved, and ``abnormal``,
    as the brokers' own counters have it.
    """

    topology: Topology
    trees: Mapping[str, BroadcastTree]
    plan: DemoPlan | None = None
    sources: dict[str, Registered] = field(default_factory=dict)
    profiles: list[Registered] = field(default_factory=list)
    decisions: dict[int, Decision] = field(default_factory=dict)
    deliveries: list[tuple[DeliveryKey, list[bytes]]] = field(default_factory=list)
    traffic: Traffic = field(default_factory=Traffic)
    crossings_counted: int = 0
    crossings_cut: int = 0
    bytes_saved: int = 0
    abnormal: list[str] = field(default_factory=list)
    publish_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """``disagreements``: message -> what is wrong with the broker's decision about it;
    ``problems``: what else is wrong; ``leftovers``: what is still there after the run."""

    scenario: Scenario
    run: Run
    verdict: Verdict
    disagreements: Mapping[str, str]
    problems: tuple[str, ...]
    leftovers: tuple[str, ...]

    @property
    def good(self) -> bool:
        return not (self.verdict.faults or self.disagreements or self.problems or self.leftovers)

    @property
    def accepted(self) -> int:
        return sum(decision.refusal is None for decision in self.run.decisions.values())

    @property
    def refused(self) -> list[tuple[str, Refusal]]:
        """(message, why), in the scenario's order."""
        messages = self.scenario.messages
        return [
            (f"{messages[place].source} {messages[place].name}", decision.refusal)
            for place, decision in sorted(self.run.decisions.items())
            if decision.refusal is not None
        ]

    @property
    def accepted_by_root(self) -> dict[str, int]:
        """How many messages entered at each root broker that has a source."""
        counts = {entry.broker: 0 for entry in self.run.sources.values()}
        for place, decision in self.run.decisions.items():
            source = self.scenario.messages[place].source
            counts[self.run.sources[source].broker] += decision.refusal is None
        return counts

    @property
    def flooding(self) -> int:
        """Crossings if every accepted message went over every link of its broadcast tree."""
        return sum(
            count * (len(self.run.trees[root].parent) - 1)
            for root, count in self.accepted_by_root.items()
        )


def judge_run(
    scenario: Scenario,
    run: Run,
    expectations: Sequence[Expectation],
    leftovers: Sequence[str] = (),
) -> Outcome:
    """Hold the run against the expectations, which are in the order of the scenario's messages."""
    disagreements = {}
    problems = list(run.abnormal)
    expected: dict[DeliveryKey, tuple[bytes, ...]] = {}
    for place, (message, expectation) in enumerate(
        zip(scenario.messages, expectations, strict=True)
    ):
        decision = run.decisions.get(place)
        if decision is None:
            problems.append(f"{message.source} {message.name}: neither accepted nor refused")
            continue
        wrong = disagreement(expectation.refusal, decision.refusal)
        if wrong is not None:
            disagreements[f"{message.source} {message.name}"] = wrong
        if decision.refusal is None:
            if expectation.unknown:
                problems.append(
                    f"{message.source} {message.name}: accepted, but the oracle cannot say what "
                    f"should come of it: {expectation.unknown}"
                )
            for profile, prints in expectation.results.items():
                key = DeliveryKey(run.profiles[profile].id, message.source, decision.number)
                expected[key] = prints
    if run.traffic.total != run.crossings_counted:
        problems.append(
            f"the brokers counted {run.crossings_counted} link crossings, "
            f"their observers were told of {run.traffic.total}"
        )
    arrived = ((key, [fingerprint(result) for result in made]) for key, made in run.deliveries)
    return Outcome(
        scenario, run, judge(expected, arrived), disagreements, tuple(problems), tuple(leftovers)
    )


def policy_of(refusal: Refusal) -> str:
    """The named policy behind a refusal, "" when the message is not well-formed XML."""
    return POLICIES.get(refusal.code, "")
