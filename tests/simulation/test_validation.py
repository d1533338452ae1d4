"""Networks with sources whose messages are refused where they are not valid, in their order."""

from __future__ import annotations

import pytest

from tests.simulation.scenario import Scenario
from tests.simulation.seeds import seeds
from tests.simulation.sim_clients import SourceClient
from tests.simulation.test_exactly_once import (
    change_something,
    live_through,
    random_path,
    refused_at_times,
)

SEEDS = seeds(24, first=12_000)

SCHEMA = b"""<element name="m" xmlns="http://relaxng.org/ns/structure/1.0">
<zeroOrMore><attribute><anyName/></attribute></zeroOrMore>
<zeroOrMore><element name="part"><zeroOrMore><attribute><anyName/></attribute></zeroOrMore>
<text/></element></zeroOrMore></element>"""


class Validated(Scenario):
    def register_source(self) -> SourceClient:
        return self.registered(schema_name="m.rng", schema=SCHEMA, validate="reject")


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_valid_comes_once_and_of_the_others_their_source_is_told(seed: int) -> None:
    scenario = Validated(seed, brokers=1 + seed % 5)
    live_through(scenario, 1, random_path, refused_at_times("wrong"), change_something)
    assert not scenario.missing()
    assert not scenario.wrong()
    assert not scenario.unexplained()
    told = [frame.code for source in scenario.sources.values() for frame in source.refused]
    wrong = [message for message in scenario.published if b"wrong" in message.data]
    assert told.count("invalid") == len(wrong)
