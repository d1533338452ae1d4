"""Disks that lose power in a commit, are full, fail, flip bits and go back in time: nobody is given
what was never stored, and nothing is lost, doubled or out of order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from onyx.broker.broker_core import BrokerCore
from onyx.broker.deliveries.delivery_log import BODY_SPACE
from overlay.link.journal_rows import OUTBOX
from overlay.link.lost_stores import STORE_LOST
from tests.simulation import test_exactly_once
from tests.simulation.lying_disk import LIES, POWER_CUTS, LyingDisk
from tests.simulation.scenario import Scenario
from tests.simulation.seeds import batch, known_seeds, seeds, until_seen
from tests.simulation.sim_disk import Disk, MemoryDisk

SEEDS = seeds(5)
RUNS_PER_TEST = 5


class LyingScenario(Scenario):
    """Brokers and the registration service keep what they know in real stores."""

    def __init__(self, seed: int, brokers: int, directory: Path, lies: Collection[str]) -> None:
        self.lying: list[LyingDisk] = []
        self._directory = directory
        self._lies = lies
        super().__init__(seed, brokers)

    def new_disk(self, peer: str) -> Disk:
        role, _, name = peer.partition("/")
        if role not in ("broker", "registration"):
            return MemoryDisk()
        disk = LyingDisk(
            *(self._directory / name, f"{self.seed} {peer}", lambda: self.net.faulty),
            lies=self._lies,
            without=(BODY_SPACE,) if role == "broker" else (),
            unread=(OUTBOX,),
        )
        self.lying.append(disk)
        return disk

    def is_store_lost(self) -> bool:
        """Whether anybody says so of anybody."""
        cores = [self.net.nodes[peer].core for peer in self.server_peers]
        refusals = [
            core.refusal(peer)
            for core in cores
            for peer in self.server_peers
            if isinstance(core, BrokerCore)
        ]
        refusals += [s.links.refusal(f"broker/{s.root}") for s in self.sources.values()]
        refusals += [interest.subscriber.detached for interest in self.interests.values()]
        return bool(self.net.told) or any(STORE_LOST in refusal for refusal in refusals)

    @property
    def seen(self) -> Counter[str]:
        return sum((disk.seen for disk in self.lying), Counter())

    def wrong(self) -> list[str]:
        unsaid = [
            f"{name} was given, and was never stored" for d in self.lying for name in d.unsaid
        ]
        return super().wrong() + unsaid


@contextmanager
def lying_scenario(
    seed: int, *, brokers: int = 0, lies: Collection[str] = LIES
) -> Iterator[LyingScenario]:
    """In memory, where that is to be had."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as directory:
        scenario = LyingScenario(seed, brokers or 1 + seed % 4, Path(directory), lies)
        try:
            yield scenario
        finally:
            scenario.net.faulty = False
            for disk in scenario.lying:
                disk.end()


def run(seed: int, lies: Collection[str] = LIES) -> LyingScenario:
    with lying_scenario(seed, lies=lies) as scenario:
        scenario.net.disturb(cut_every=20.0, crash_every=1.0, may_crash=scenario.server_peers)
        test_exactly_once.live_through(
            *(scenario, 2, test_exactly_once.random_path),
            *(test_exactly_once.random_message, test_exactly_once.change_something),
        )
    return scenario


def faults(scenario: LyingScenario) -> list[object]:
    return [*scenario.missing(), *scenario.wrong(), *scenario.unexplained()]


@pytest.mark.parametrize("first", SEEDS[::RUNS_PER_TEST])
def test_what_a_disk_does_is_told_or_does_no_harm(first: int) -> None:
    """In more seeds if something rare has not happened."""
    rare = (*LIES, *POWER_CUTS, "failed sync", "full disk", "store-lost", "damaged")
    seen: Counter[str] = Counter()
    for seed in until_seen(batch(SEEDS, first, RUNS_PER_TEST), seen, rare):
        scenario = run(seed)
        assert faults(scenario) == [], f"seed {seed}"
        seen += scenario.seen + scenario.net.told
    assert all(seen[kind] for kind in rare), seen


def go_back(seed: int) -> tuple[bool, bool, LyingScenario]:
    """All files of a process become those of an earlier time, its head too; whether they are, and
    anybody is told that."""
    with lying_scenario(seed, brokers=3, lies=()) as scenario:
        net, random = scenario.net, scenario.random
        for _ in range(4):
            scenario.add_profile("/m")
        source = scenario.register_source()

        def publish(count: int) -> None:
            for _ in range(count):
                scenario.publish(source, b'<m a="1"/>')
                net.run_until(lambda: False, random.uniform(0, 0.3))

        for interest in scenario.interests.values():  # much waits for them
            net.pause(net.nodes[f"subscriber/{interest.profile}"], 30.0)
        publish(20)
        net.faulty = False
        net.run_until(lambda: False, 5.0)
        node = net.nodes[random.choice(scenario.server_peers)]
        assert isinstance(node.disk, LyingDisk)
        net.crash(node, 0.5)
        went_back = node.disk.go_back()
        is_told = net.run_until(scenario.is_store_lost, 10.0)
        if not is_told:
            publish(5)
            net.run_until(scenario.all_there(), 60.0)
    return went_back, is_told, scenario


def test_who_is_of_an_earlier_time_is_told_so_by_others_or_lacks_nothing() -> None:
    told = 0
    for seed in (these := [2 + seed for seed in known_seeds(8)]):
        went_back, is_told, scenario = go_back(seed)
        assert is_told or not scenario.missing(), f"seed {seed}"
        assert not Scenario.wrong(scenario), f"seed {seed}"
        told += went_back and is_told
    assert told > len(these) // 3


def shows(seed: int, lies: Collection[str]) -> bool:
    """Whether a run finds that something is wrong."""
    try:
        return bool(faults(run(seed, lies)))
    except Exception:  # whatever comes of rows that are not what was stored
        return True


@pytest.mark.parametrize(
    ("mending", "lies", "seeds"),
    [
        ("store.check_rows", ("altered value",), range(5, 9)),
        ("store.check_head", ("older copy",), range(1, 3)),
    ],
)
def test_a_lie_shows_where_nobody_looks(
    mending: str, lies: Collection[str], seeds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"overlay.link.{mending}", lambda *arguments: None)
    monkeypatch.setattr("tests.simulation.scenario.PATIENCE", 60.0)
    assert any(shows(seed, lies) for seed in seeds)


def test_a_power_cut_shows_where_a_store_may_not_be_ahead_of_its_head(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("overlay.link.store_format.DIGESTS", 1)
    assert any(shows(seed, ()) for seed in range(1, 5))


def test_an_earlier_time_shows_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("overlay.link.link_layer.check_store", lambda *arguments: None)
    found = (go_back(seed) for seed in range(1, 9))
    assert any(scenario.missing() and not is_told for _, is_told, scenario in found)
