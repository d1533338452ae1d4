"""A scenario in which profiles move: plans are made at random and applied, and users follow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from onyx.broker.broker_core import BrokerCore
from registration.planning.need_reader import NeedReader
from registration.planning.plan import Plan
from registration.planning.plan_file import to_json
from registration.planning.planner import PlanOptions, make_plan
from registration.planning.value_loads import LocalPopulation, ProfileNeeds
from registration.registration_core import RegistrationCore
from tests.simulation.following import FollowingScenario

PARTITIONS = 12


@dataclass
class MovingScenario(FollowingScenario):
    """``texts``: what profiles may say; plans are made for them."""

    texts: Sequence[str] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.applied = 0
        reader = NeedReader()
        population = LocalPopulation(ProfileNeeds(reader.read(text)) for text in self.texts)
        self._plan = make_plan(population, PlanOptions(PARTITIONS, self.topology))

    def apply_plan(self) -> None:
        """A plan that differs from the one before in where its partitions are."""
        self.applied += 1
        self._plan = self.random_plan()
        self.ask(self.registrar, "plan.use", plan=to_json(self._plan).encode())
        at_once = self.random.choice([1, 2, 8])
        self.ask(self.registrar, "plan.apply", rate=self.random.choice([1, 1000]), at_once=at_once)

    def random_plan(self) -> Plan:
        brokers = self.topology.broker_ids
        where = tuple(self.random.choice(brokers) for _ in range(self._plan.partitions))
        return replace(self._plan, brokers=where)

    def change_course(self) -> None:
        self.ask(self.registrar, self.random.choice(["plan.pause", "plan.resume", "plan.abort"]))

    def settle(self) -> None:
        """Also with all moves."""
        self.net.faulty = False
        if self.applied:
            self.ask(self.registrar, "plan.apply", rate=1000, at_once=8)
            self.wait(self._is_applied, "the plan is never applied")
        super().settle()

    def moved(self) -> int:
        """How often users had to follow."""
        return sum(interest.subscriber.moves for interest in self.interests.values())

    def misplaced(self) -> list[str]:
        """Profiles that are not just where the catalog has them, and what is left of moves."""
        core = self.net.nodes[f"registration/{self.topology.registration[0].id}"].core
        assert isinstance(core, RegistrationCore)
        faults = [f"{move} is not over" for move in core.moves]
        counts = Counter(entry.host for entry in core.catalog.profiles.values())
        if +core.catalog.profiles_by_broker != counts:
            faults.append(f"{core.catalog.profiles_by_broker} counted, there are {counts}")
        for broker in self.topology.broker_ids:
            node = self.net.nodes[f"broker/{broker}"]
            assert isinstance(node.core, BrokerCore)
            hosted = {p for p, e in core.catalog.profiles.items() if e.host == broker}
            if node.core.query.profiles.keys() != hosted:
                faults.append(f"{broker} has {set(node.core.query.profiles)}, not {hosted}")
            left = [
                key
                for key in node.disk
                if key[0] in ("standby", "kept", "release", "watershed", "settling")
            ]
            faults += [f"{broker} keeps {key}" for key in left]
        return faults

    def _is_applied(self) -> bool:
        progress = self.ask(self.registrar, "plan.progress")
        return progress["state"] == "done" and not progress["under_way"]
