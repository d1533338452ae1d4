"""Every target on seeded damage; ``python -m tests.fuzz`` runs more, and is guided by coverage.

ONYX_FUZZ_RUNS multiplies how many inputs there are, of which CI takes half.
"""

from __future__ import annotations

import os
import re
from dataclasses import fields
from random import Random

import pytest

from tests.fuzz.chance import ByteChance
from tests.fuzz.cost import Meter, TooCostly, a_message, a_profile, evaluate
from tests.fuzz.targets import TARGETS
from yfilter import MatchLimits
from yfilter.language.profile_limits import EvaluationLimits

TIMES = float(os.environ.get("ONYX_FUZZ_RUNS", "0.5"))
INPUTS = {
    "frame": 4_000,
    "peer": 2_000,
    "broker": 30,
    "text": 4_000,
    "graph": 1_500,
    "taxonomy": 1_000,
    "binary": 4_000,
    "profile": 2_000,
    "graph query": 2_000,
    "metadata rule": 1_000,
    "metadata message": 1_000,
    "metadata question": 1_000,
    "metadata document": 1_000,
    "topology": 1_000,
    "schema": 2_000,
    "token": 2_000,
    "keys": 1_000,
    "cost": 30,
}
FEW_CALLS = 5_000  # bounded, PAIRS takes 1,730 and the memory of 100,000 numbers
PAIRS = "//a[some $a in 1 to 100000, $b in 1 to 100000 satisfies $a + $b = 0]"
WITHOUT_END = MatchLimits(
    evaluation=EvaluationLimits(
        **{
            each.name: 10**15
            for each in fields(EvaluationLimits)
            if isinstance(each.default, int | float)
        }
    )
)
"""Without any bound on what an evaluation costs."""


@pytest.mark.parametrize("name", INPUTS)
def test_whatever_comes_in_is_read_or_refused(name: str) -> None:
    target = TARGETS[name]
    for number in range(round(TIMES * INPUTS[name])):
        data = target.an_input(Random(f"test.{number}"))
        try:
            target.run(data)
        except BaseException as error:
            raise AssertionError(f"{name}: {data.hex()}") from error


def test_the_oracle_sees_what_stalls_a_broker() -> None:
    """A message of 21 bytes that took 30 s."""
    with pytest.raises(TooCostly):
        evaluate(PAIRS, b"<a><b>1</b><c>2</c></a>", WITHOUT_END, Meter(FEW_CALLS))
    evaluate(PAIRS.replace("100000", "10"), b"<a/>", WITHOUT_END, Meter(FEW_CALLS))


def test_the_oracle_sees_memory_that_one_call_held() -> None:
    for mebibytes in (40, 80, 40):
        with Meter() as meter:
            assert b"x" * (mebibytes << 20)
        assert (mebibytes - 4) << 20 < meter.peak_bytes < (mebibytes + 4) << 20
    with Meter() as meter:
        assert b"x" * (80 << 20)
    with pytest.raises(TooCostly):
        meter.check()


def test_the_cost_fuzzer_finds_such_a_profile_where_nothing_is_bounded() -> None:
    for number in range(60):
        chance = ByteChance(TARGETS["cost"].an_input(Random(f"test.{number}")))
        profile, message = a_profile(chance), a_message(chance)
        if re.search(r"(some|every) .*100000.*100000", profile):
            try:
                evaluate(profile, message, WITHOUT_END, Meter(FEW_CALLS))
            except TooCostly:
                return
    pytest.fail("none was found")


def test_values_cost_when_they_are_written() -> None:
    """Found by the cost fuzzer: 100,000 numbers for each of forty elements, all for nothing."""
    meter = Meter()
    limits = MatchLimits(evaluation=EvaluationLimits(clock=meter.seconds))
    message = b"<a>" * 40 + b"</a>" * 40
    evaluate("for $x in //a return <r>{(1 to 100000)}</r>", message, limits, meter)


def test_choices_are_made_by_the_bytes() -> None:
    one, same = (ByteChance(bytes(range(100))) for _ in range(2))
    values = [one.randrange(1_000) for _ in range(20)]
    assert values == [same.randrange(1_000) for _ in range(20)]
    assert len(set(values)) > 10
    end = ByteChance(b"")
    assert [end.randrange(7), end.choice("abc"), end.random()] == [0, "a", 0.0]
