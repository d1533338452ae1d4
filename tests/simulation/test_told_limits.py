"""What a bound cuts, through a network: users have the first results and the count of the rest."""

from __future__ import annotations

from tests.simulation.scenario import Scenario
from yfilter.schematron import compile_schematron

RULES = b"""<schema xmlns="http://purl.oclc.org/dsdl/schematron" queryBinding="xslt2"><pattern>
<rule context="item"><assert id="a" test="@sum"><value-of select="/bill/text"/></assert></rule>
</pattern></schema>"""
(RULE,) = (profile.text for profile in compile_schematron(RULES).profiles)
COPIES = "for $i in //item[@no < 21] return <c>{string(/bill/text)}</c>"
FAILING = 30
ITEMS = "".join(f'<item no="{number}"/>' for number in range(1, FAILING + 1))
BILL = f"<bill><text>{'x' * 835_000}</text>{ITEMS}</bill>".encode()
"""30 results are beyond what a profile may write, 16 MiB; 20 are not, but are beyond a frame."""


def test_what_the_engine_and_a_frame_cut_is_told_with_its_count() -> None:
    scenario = Scenario(1, 3)
    interests = [scenario.add_profile(text) for text in (RULE, COPIES)]
    source = scenario.register_source()
    scenario.publish(source, BILL)
    scenario.settle()
    assert not scenario.missing()
    rule, copies = (interest.subscriber for interest in interests)
    ((key, results),) = rule.results.items()
    *told, of_frame, of_engine = [result[-200:].decode() for result in results]
    assert of_frame.endswith("fit in a frame [result-too-large]</svrl:text></svrl:failed-assert>")
    counts = [
        int(said.partition("<svrl:text>")[2].partition(" more: the results ")[0])
        for said in (of_frame, of_engine)
    ]
    assert min(len(told), *counts) > 0
    assert len(told) + sum(counts) == FAILING
    assert f'location="/bill[1]/item[{len(told)}]"'.encode() in results[len(told) - 1]
    left = 20 - len(copies.results[key])
    assert left > 0
    assert rule.limits == {}
    assert copies.limits[key].startswith(f"{left} more: the results have 16700")
