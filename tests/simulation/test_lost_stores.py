"""A broker comes back without its store: nobody talks to it, and nothing is lost when the store is
put back."""

from __future__ import annotations

import pytest

from tests.simulation.scenario import Scenario
from tests.simulation.sim_disk import MemoryDisk


@pytest.mark.parametrize("seed", range(1, 4))
def test_what_is_published_while_a_store_is_gone_arrives_when_it_is_back(seed: int) -> None:
    scenario = Scenario(seed, brokers=4)
    net, random = scenario.net, scenario.random
    net.faulty = False
    for _ in range(5):
        scenario.add_profile("/m")
    source = scenario.register_source()

    def publish(count: int) -> None:
        for _ in range(count):
            scenario.publish(source, b'<m a="1"/>')
            net.run_until(lambda: False, random.uniform(0, 0.1))

    publish(5)
    net.run_until(lambda: False, 2.0)
    others = [broker for broker in scenario.topology.broker_ids if broker != source.root]
    node = net.nodes[f"broker/{random.choice(others)}"]
    net.crash(node, 0.5)
    stored, node.disk = node.disk, MemoryDisk()
    publish(10)
    net.run_until(lambda: False, 5.0)
    core = scenario._core(node.peer.partition("/")[2])
    neighbours = scenario.topology.neighbours(core.identity)
    assert any("store-lost" in core.refusal(f"broker/{other}") for other in neighbours)
    net.crash(node, 0.5)
    node.disk = stored
    publish(5)
    scenario.settle()
    assert not scenario.missing()
    assert not scenario.wrong()
