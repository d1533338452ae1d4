"""The registration service loses its store under traffic, as profiles move and the network's shape
changes, and has its catalog from the brokers: ids, profiles, sources and moves go on, every message
reaches each live profile once."""

from __future__ import annotations

from collections import Counter
from math import ceil

import pytest

from overlay.link.events import Put
from overlay.network_shape import SHAPE
from registration.catalog_rebuild import marked
from registration.ids import number_of
from registration.registration_core import RegistrationCore
from tests.simulation.moving import MovingScenario
from tests.simulation.seeds import batch, seeds
from tests.simulation.sim_disk import MemoryDisk
from tests.simulation.sim_network import SimNode
from tests.simulation.test_changing_shapes import ChangingScenario
from tests.simulation.test_exactly_once import change_something, random_message, random_path
from tests.simulation.test_moves import TEXTS, MovingAndChanging

SEEDS = seeds(8)
RUNS_PER_TEST = 4


class Rebuilds:
    """Of one scenario."""

    def __init__(self, scenario: MovingScenario) -> None:
        self.scenario = scenario
        self.seen: Counter[str] = Counter()
        self.given: set[str] = set()  # ids of profiles, that were ever known
        self._node = scenario.net.nodes[f"registration/{scenario.topology.registration[0].id}"]

    @property
    def core(self) -> RegistrationCore | None:
        core = self._node.core
        assert core is None or isinstance(core, RegistrationCore)
        return core

    def lose_store(self) -> None:
        """Now, if the last shape that an operator was told to come is known to a broker."""
        scenario, core = self.scenario, self.core
        if core is None or core._rebuild.is_under_way:
            return
        newest = (SHAPE.space, str(core.shapes.newest.version))
        if isinstance(scenario, ChangingScenario):
            scenario.wait(lambda: any(newest in node.disk for node in self._brokers()), "no broker")
        if self.core is not core:
            return
        self.seen["stores"] += 1
        self.seen["moves"] += len(core.moves)
        self.seen["shapes"] += not core.shapes.is_settled
        self._last = max(map(number_of, core.catalog.profiles))
        scenario.net.crash(self._node, scenario.random.uniform(0.1, 2.0))
        self._node.disk = MemoryDisk()
        self._node.disk.commit([Put(*marked([]))])

    def wait(self) -> None:
        """Until the catalog is there again."""
        self.scenario.wait(self._is_whole, "the catalog is not rebuilt")
        assert self.core is not None
        ours = {p for p, each in self.scenario.interests.items() if not each.removed}
        assert ours <= self.core.catalog.profiles.keys(), self.scenario.seed
        assert self.scenario.sources.keys() <= self.core.catalog.sources.keys(), self.scenario.seed

    def _is_whole(self) -> bool:
        return self.core is not None and not self.core._rebuild.is_under_way

    def _brokers(self) -> list[SimNode]:
        nodes = self.scenario.net.nodes.values()
        return [node for node in nodes if node.peer.startswith("broker/")]


def run(seed: int, kind: type[MovingScenario] = MovingScenario) -> Rebuilds:
    scenario = kind(seed, brokers=2 + seed % 5, texts=TEXTS)
    random, rebuilds = scenario.random, Rebuilds(scenario)
    scenario.net.disturb(
        cut_every=random.choice([0.5, 2.0, 10.0]),
        crash_every=random.choice([1.0, 3.0, 1000.0]),
        may_crash=scenario.server_peers,
    )
    for _ in range(random.randint(3, 7)):
        scenario.add_profile(random.choice(TEXTS))
    sources = [scenario.register_source()]
    losses = set(random.sample(range(10, 50), random.choice([1, 1, 2])))
    for step in range(50):
        action = random.random()
        if step in losses:
            rebuilds.lose_store()
        elif action < 0.7:
            scenario.publish(random.choice(sources), random_message(scenario))
        elif action < 0.73 and len(sources) < 3:
            sources.append(scenario.register_source())
        elif action < 0.85:
            scenario.apply_plan()
        elif action < 0.9:
            if isinstance(scenario, ChangingScenario):
                scenario.change_shape() if random.random() < 0.7 else scenario.change_link()
        else:
            change_something(scenario, random_path)
        scenario.net.run_until(lambda: False, random.uniform(0, 0.3))
    rebuilds.wait()
    scenario.apply_plan()
    change_something(scenario, random_path)
    scenario.publish(random.choice(sources), random_message(scenario))
    scenario.settle()
    return rebuilds


def check(seed: int, kind: type[MovingScenario] = MovingScenario) -> Rebuilds:
    rebuilds = run(seed, kind)
    scenario = rebuilds.scenario
    assert not scenario.missing(), f"seed {seed}"
    assert not scenario.wrong(), f"seed {seed}"
    assert not scenario.unexplained(), f"seed {seed}"
    assert not scenario.misplaced(), f"seed {seed}"
    return rebuilds


@pytest.mark.parametrize("first", SEEDS[::RUNS_PER_TEST])
def test_profiles_move_on(first: int) -> None:
    seen: Counter[str] = Counter()
    for seed in (these := batch(SEEDS, first, RUNS_PER_TEST)):
        seen += check(seed).seen
    assert seen["stores"] >= len(these) // 2  # one that is rebuilt is not lost again


def test_changes_of_the_shape_go_on() -> None:
    seen: Counter[str] = Counter()
    for seed in (these := SEEDS[: ceil(len(SEEDS) / 2)]):
        rebuilds = check(seed, MovingAndChanging)
        seen += rebuilds.seen
        scenario = rebuilds.scenario
        assert isinstance(scenario, MovingAndChanging)
        assert not scenario.left_over(), f"seed {seed}"
    assert seen["stores"] >= len(these)
