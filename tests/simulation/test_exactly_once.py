"""Hundreds of networks with breaking links and dying processes; see scenario.py for what holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from onyx.broker.broker_core import BrokerCore
from tests.simulation.scenario import Interest, Scenario
from tests.simulation.seeds import batch, known_seeds, seeds

# Beside those of test_the_simulation_really_disturbs_and_really_delivers.
SEEDS = seeds(40, first=41)
RUNS_PER_TEST = 20


def random_path(scenario: Scenario) -> str:
    """A profile over messages of random_message: from nearly all of them to none."""
    random = scenario.random
    key, value = random.choice("abc"), random.randrange(3)
    return random.choice(
        [
            "/m",
            f"/m[@{key} = '{value}']",
            f"/m/part[@{key} = '{value}']",
            f"//part[@{key} > {value}]",
            f"/m[part[@a = '{value}']][part/@b = '{random.randrange(3)}']",
            f"/m[@{key} = '{value}' or part/@c = '0']",
            f"//part[text() = 'word{value}']",
            "/nothing/like/it",
        ]
    )


def random_message(scenario: Scenario) -> bytes:
    """Small; one in fifteen is cut off and must be refused."""
    random = scenario.random
    if random.random() < 1 / 15:
        return b"<m><part>cut of"
    parts = "".join(
        f'<part {random.choice("abc")}="{random.randrange(3)}">word{random.randrange(4)}</part>'
        for _ in range(random.randrange(4))
    )
    return f'<m {random.choice("abc")}="{random.randrange(3)}">{parts}</m>'.encode()


def refused_at_times(element: str) -> Callable[[Scenario], bytes]:
    """One message in eight has this element; the line end makes the scenario expect that it is
    refused."""

    def message(scenario: Scenario) -> bytes:
        random = scenario.random
        if random.random() < 1 / 8:
            return f"<m a='{random.randrange(1_000_000)}'><{element}/></m>\n".encode()
        return random_message(scenario)

    return message


def change_something(scenario: Scenario, profile: Callable[[Scenario], str] = random_path) -> None:
    """One of the things that users do."""
    random = scenario.random
    kept = [interest for interest in scenario.interests.values() if not interest.removed]
    choice = random.random()
    if choice < 0.5 or not kept:
        scenario.add_profile(profile(scenario))
        return
    interest: Interest = random.choice(kept)
    if random.random() < 0.5:
        # So that what the old version was owed is checked strictly, not only what the last is.
        scenario.wait(scenario.all_there(), "what was owed before a change")
    if choice < 0.8:
        scenario.update_profile(interest, profile(scenario))
    else:
        scenario.remove_profile(interest)


def run(seed: int) -> Scenario:
    scenario = Scenario(seed, brokers=1 + seed % 6)
    live_through(scenario, 1, random_path, random_message, change_something)
    return scenario


def live_through(
    scenario: Scenario,
    profiles_min: int,
    profile: Callable[[Scenario], str],
    message: Callable[[Scenario], bytes],
    change: Callable[[Scenario], None],
) -> None:
    """Messages and changes while connections break and processes die, until all is delivered."""
    random = scenario.random
    scenario.net.disturb(
        cut_every=random.choice([0.5, 2.0, 10.0]),
        crash_every=random.choice([2.0, 5.0, 1000.0]),
        may_crash=scenario.server_peers,
    )
    for _ in range(random.randint(profiles_min, 5)):
        scenario.add_profile(profile(scenario))
    sources = [scenario.register_source()]
    for _ in range(random.randint(10, 40)):
        action = random.random()
        if action < 0.7:
            scenario.publish(random.choice(sources), message(scenario))
        elif action < 0.75 and len(sources) < 3:
            sources.append(scenario.register_source())
        else:
            change(scenario)
        scenario.net.run_until(lambda: False, random.uniform(0, 0.3))
    scenario.settle()


def right(seed: int) -> Scenario:
    """A run in which every message has reached each live profile exactly once."""
    scenario = run(seed)
    assert not scenario.missing(), f"seed {seed}"
    assert not scenario.wrong(), f"seed {seed}"
    assert not scenario.unexplained(), f"seed {seed}"
    return scenario


@pytest.mark.parametrize("first", SEEDS[::RUNS_PER_TEST])
def test_every_message_reaches_each_live_profile_exactly_once(first: int) -> None:
    for seed in batch(SEEDS, first, RUNS_PER_TEST):
        right(seed)


def test_the_simulation_really_disturbs_and_really_delivers() -> None:
    """A net without holes: over a few seeds all of it happens."""
    scenarios = [right(seed) for seed in known_seeds(80)]
    assert sum(scenario.net.cuts for scenario in scenarios) > len(scenarios)
    assert sum(scenario.net.crashes for scenario in scenarios) > len(scenarios) // 4
    deferred = sum(
        int(node.core.statistics().data.deferred)  # type: ignore[call-overload]
        for scenario in scenarios
        for node in scenario.net.nodes.values()
        if isinstance(node.core, BrokerCore)
    )
    assert deferred > len(scenarios) // 2
    delivered = sum(
        interest.subscriber.got.total()
        for scenario in scenarios
        for interest in scenario.interests.values()
    )
    assert delivered > 100
    assert sum(scenario.generalisations() for scenario in scenarios) > 5
    explained = sum((scenario.witness.explained for scenario in scenarios), Counter())
    assert explained["generalisation"] > 20


def test_messages_that_are_worked_on_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """As large ones are; of half of the seeds slices end."""
    monkeypatch.setattr("onyx.broker.messages.data_plane.LARGE_BYTES", 1)
    for seed in known_seeds(20):
        right(seed)


def test_the_same_seed_gives_the_same_run() -> None:
    def story(seed: int) -> list[tuple[str, dict[tuple[str, int], int]]]:
        scenario = run(seed)
        return [
            (interest.profile, dict(interest.subscriber.got))
            for interest in scenario.interests.values()
        ]

    assert story(5) == story(5)
