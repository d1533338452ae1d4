"""Every sequenced frame arrives exactly once and in order, whatever happens in between."""

from __future__ import annotations

import pytest

from tests.overlay.link.lossy_network import LossyNetwork

SEEDS_PER_TEST = 25
STEPS = 500


@pytest.mark.parametrize("first", range(0, 200, SEEDS_PER_TEST))
def test_exactly_once_in_order(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        network = LossyNetwork(seed)
        for _ in range(STEPS):
            network.step()
        network.settle()
        assert network.a.sent() == network.b.taken(), f"seed {seed}"
        assert network.b.sent() == network.a.taken(), f"seed {seed}"


def test_the_simulation_makes_trouble() -> None:
    """What the test above is worth: frames, lost connections and crashes in numbers."""
    frames = cuts = crashes = duplicates = 0
    for seed in range(20):
        network = LossyNetwork(seed)
        for _ in range(STEPS):
            network.step()
        frames += sum(network.totals())
        cuts += network.cuts
        crashes += network.crashes
        duplicates += network.duplicates
    assert frames > 1000
    assert duplicates == 0  # a hello is exact: nothing comes over connections of before it
    assert cuts > 100
    assert crashes > 100


def test_a_seed_replays() -> None:
    def history(seed: int) -> object:
        network = LossyNetwork(seed)
        for _ in range(STEPS):
            network.step()
        return network.a.rows, network.b.rows, network.cuts, network.crashes

    assert history(5) == history(5)
    assert history(5) != history(6)
