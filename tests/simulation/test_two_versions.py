"""Processes of the last release, of this and of one to come are one network, in which each becomes
another when it starts again: nothing is lost, doubled or out of order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from overlay.link import frame_codec
from overlay.link.frame import FEATURES, PROTOCOL_VERSION
from overlay.link.link_layer import LinkLayer
from tests.simulation import test_exactly_once
from tests.simulation.other_releases import FormerRelease, LaterCore, Listening
from tests.simulation.scenario import Scenario
from tests.simulation.seeds import seeds, until_seen
from tests.simulation.sim_network import Core, Rows
from tests.survival.upgrade import HistoryMissing

SEEDS = seeds(12)
FORMER, NOW, COMING = "former", "now", "coming"
AFTER = {FORMER: (FORMER, FORMER, NOW), NOW: (NOW, COMING), COMING: (NOW, COMING)}
"""A store goes on to this release, and not back."""


class MixedScenario(Scenario):
    """``releases`` of each process; ``changes`` of them."""

    def __init__(self, seed: int, brokers: int, former: FormerRelease) -> None:
        self.releases: dict[str, str] = {}
        self.seen: Counter[str] = Counter()
        self._former = former
        super().__init__(seed, brokers)

    def new_broker(self, broker: str, instance: str, rows: Rows) -> Core:
        release = self._release(f"broker/{broker}")
        if release == FORMER:
            arguments = self.topology, broker, instance, rows, self.seed
            core: Core = self._former.core("broker", *arguments)
        else:
            core = super().new_broker(broker, instance, rows)
            core = LaterCore(core) if release == COMING else core
        return Listening(core, release, self.seen)

    def new_registration(self, registration: str, instance: str, rows: Rows) -> Core:
        release = self._release(f"registration/{registration}")
        if release == FORMER:
            arguments = self.topology, registration, instance, rows, self.seed
            return self._former.core("registration", *arguments)
        core = super().new_registration(registration, instance, rows)
        return LaterCore(core) if release == COMING else core

    def ask_for_policy(self) -> None:
        """Of a profile, which not all releases can keep."""
        kept = [interest for interest in self.interests.values() if not interest.removed]
        if kept:
            interest = self.random.choice(kept)
            asker = self.hosts[interest.subscriber.host]
            policy = {"attempts_max": self.random.randint(1, 9)}
            answer = self.answer(asker, "profile.policy", profile=interest.profile, policy=policy)
            code = "" if answer.ok else answer.result["code"]
            assert code in ("", "no-policies", "unknown-verb"), answer
            self.seen[f"policy {code}"] += 1

    def _release(self, peer: str) -> str:
        before = self.releases.get(peer)
        choices = (FORMER, NOW, COMING) if before is None else AFTER[before]
        after = self.releases[peer] = self.random.choice(choices)
        if before not in (None, after):
            self.seen[f"{before} becomes {after}"] += 1
        return after


@pytest.fixture(scope="module")
def former(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FormerRelease]:
    folder: Path = tmp_path_factory.mktemp("former")
    try:
        release = FormerRelease(folder)
    except HistoryMissing as missing:
        pytest.skip(str(missing))
    with release:
        yield release


def run(seed: int, former: FormerRelease) -> MixedScenario:
    scenario = MixedScenario(seed, 3 + seed % 4, former)
    scenario.net.disturb(cut_every=20.0, crash_every=3.0, may_crash=scenario.server_peers)

    def change(_: Scenario) -> None:
        scenario.ask_for_policy()
        test_exactly_once.change_something(scenario)

    test_exactly_once.live_through(
        *(scenario, 2, test_exactly_once.random_path),
        *(test_exactly_once.random_message, change),
    )
    return scenario


RARE = (
    *("former keeps a field", "now keeps a field"),
    *("policy ", "policy no-policies", "policy unknown-verb"),
)


def test_releases_work_together_and_follow_each_other(former: FormerRelease) -> None:
    """In more seeds if something rare has not happened."""
    seen: Counter[str] = Counter()
    for seed in until_seen(SEEDS, seen, RARE, known=(18, 7)):
        scenario = run(seed, former)
        assert not scenario.missing(), f"seed {seed}"
        assert not scenario.wrong(), f"seed {seed}"
        seen += scenario.seen
    assert seen["former becomes now"] > len(SEEDS) // 4
    assert seen["now becomes coming"] > len(SEEDS) // 4
    assert seen["coming becomes now"] > len(SEEDS) // 4
    assert all(seen[rare] for rare in RARE), seen


def shows(seed: int, former: FormerRelease) -> bool:
    """Whether a run finds that something is wrong."""
    try:
        scenario = run(seed, former)
    except (AssertionError, RuntimeError):
        return True
    return bool(scenario.missing() or scenario.wrong())


def test_releases_that_do_not_talk_show(
    former: FormerRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.simulation.scenario.PATIENCE", 30.0)
    monkeypatch.setattr("tests.simulation.scenario.CALM", 40.0)
    assert not shows(3, former), "it takes longer"
    with monkeypatch.context() as patched:
        patched.setattr("overlay.link.frame_codec.OLDEST_VERSION", PROTOCOL_VERSION + 1)
        assert shows(3, former)
    with monkeypatch.context() as patched:
        patched.setattr(LinkLayer, "features", lambda self, peer: FEATURES)
        patched.setitem(AFTER, FORMER, (FORMER,))
        assert any(shows(seed, former) for seed in (5, *range(1, 9)))
    with monkeypatch.context() as patched:
        layouts = {
            name: replace(layout, keeps_unknown=False)
            for name, layout in frame_codec._LAYOUTS.items()
        }
        patched.setattr(frame_codec, "_LAYOUTS", layouts)
        seen = sum((run(seed, former).seen for seed in (1, 3)), Counter())
        assert not seen["now keeps a field"]
        assert seen["coming keeps a field"]
