"""One parse of a message's life: what a network does with messages, counted at each broker."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec.structs import asdict

from onyx.broker.broker_core import BrokerCore
from tests.simulation.scenario import Scenario

MESSAGES = 40


def run(seed: int, wire_format: str) -> tuple[dict[str, Counter[str]], str]:
    """The counters of the data plane of every broker, and the root broker's id."""
    scenario = Scenario(seed, 5, (wire_format,))
    scenario.net.faulty = False
    for text in ("/m", "/m[@a = '1']", "/m[part > 3]"):
        scenario.add_profile(text)
    source = scenario.register_source()
    for number in range(MESSAGES):
        xml = f'<m a="{number % 2}"><part b="1">{number}</part></m>'.encode()
        scenario.publish(source, xml)
        scenario.net.run_until(lambda: False, 0.02)
    scenario.settle()
    assert not scenario.wrong()
    counters = {}
    for peer, node in scenario.net.nodes.items():
        if peer.startswith("broker/"):
            assert isinstance(node.core, BrokerCore)
            data = node.core.statistics().data
            counters[peer.partition("/")[2]] = Counter(
                {name: value for name, value in asdict(data).items() if isinstance(value, int)}
            )
            counters[peer.partition("/")[2]]["sent"] = sum(data.crossings.values())
    return counters, source.root


@pytest.mark.parametrize("wire_format", ["text", "binary", "dictionary+zstd", "binary+zlib"])
@pytest.mark.parametrize("seed", [1, 2, 4])
def test_it_is_decoded_once_at_a_broker_and_passed_on_as_it_came(
    seed: int, wire_format: str
) -> None:
    counters, root = run(seed, wire_format)
    at_root = counters.pop(root)
    assert at_root["published"] == at_root["decoded"] == MESSAGES
    # For all links together, one form and one compression of it; the text is there already.
    forms = 0 if wire_format == "text" else MESSAGES
    assert at_root["encoded"] <= forms
    assert at_root["packed"] <= (forms if "+" in wire_format else 0)
    for there in counters.values():
        assert there["decoded"] == there["received"] - there["unwanted"]
        assert there["passed_on_unchanged"] == there["sent"]
        assert there["encoded"] == there["packed"] == 0
        assert there["unpacked"] <= there["delivered"], "what is kept needs no dictionary"
    assert any(there["sent"] for there in counters.values()) or at_root["sent"]


def test_only_where_formats_differ_it_is_written_anew() -> None:
    scenario = Scenario(4, 6, ("text", "binary+zstd"))
    scenario.net.faulty = False
    scenario.add_profile("/m")
    source = scenario.register_source()
    for number in range(MESSAGES):
        scenario.publish(source, f"<m>{number}</m>".encode())
    scenario.settle()
    for node in scenario.net.nodes.values():
        if isinstance(node.core, BrokerCore):
            data = node.core.statistics().data
            assert data.decoded <= data.received + data.published
            assert data.packed <= data.decoded
            assert data.encoded <= data.decoded
