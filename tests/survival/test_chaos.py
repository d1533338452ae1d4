"""A few seconds of ``chaos.py``, and that its ledger sees what must not be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio

from tests.survival.chaos import Chaos
from tests.survival.ledger import Ledger, Wanted, group_of, index_in, message
from tests.survival.replicas import replicated_postgres

SECONDS = float(os.environ.get("ONYX_CHAOS_SECONDS", "15"))
SEED = int(os.environ.get("ONYX_CHAOS_SEED", "1"))
pytestmark = pytest.mark.usefixtures("real_starts")
HANGING_SECONDS = 540.0  # so that what was said, and the logs of nodes, are there to be looked at
WITH_STANDBYS = os.environ.get("ONYX_CHAOS_STANDBYS") == "1"


async def test_what_was_accepted_arrives_once_and_in_order_through_faults(tmp_path: Path) -> None:
    await check(Chaos(SECONDS, SEED, rate=300.0, directory=tmp_path))


async def test_it_does_while_certificates_end_are_revoked_and_renewed(tmp_path: Path) -> None:
    """And clocks are set, by which certificates are over or not good yet."""
    only = ("end_certificate", "revoke_certificate", "renew", "set_clock", "kill")
    await check(Chaos(SECONDS, SEED, rate=100.0, directory=tmp_path, only=only))


@pytest.mark.skipif(not WITH_STANDBYS, reason="a campaign sets ONYX_CHAOS_STANDBYS=1")
async def test_it_does_where_standbys_and_a_replica_take_over(tmp_path: Path) -> None:
    with replicated_postgres() as server:
        await check(Chaos(SECONDS, SEED, rate=300.0, directory=tmp_path, server=server))


async def check(chaos: Chaos) -> None:
    with trio.fail_after(HANGING_SECONDS):
        verdict = await chaos.run()
    said = f"seed {SEED}, {dict(chaos.faults)}, {verdict.examples}"
    assert verdict.is_good, said
    assert chaos.unexpected == [], said
    assert verdict.accepted and verdict.delivered >= chaos.ledger.due() and chaos.faults, said


def test_a_message_tells_its_index() -> None:
    for index in (0, 7, 123_456_789):
        assert index_in(message(index, padding=3)) == index


@pytest.mark.parametrize(
    ("taken", "found"),
    [
        ([0, 1, 2, 3], (0, 0, 0, 0)),
        ([0, 1, 3], (1, 0, 0, 0)),
        ([0, 1, 2, 4], (1, 0, 0, 0)),  # as many as were accepted
        ([0, 1, 1, 2, 3], (0, 1, 0, 0)),
        ([0, 2, 1, 3], (0, 0, 1, 0)),
        ([0, 1, 2, 3, 4], (0, 0, 0, 0)),  # nothing was heard of the last one
        ([0, 1, 2, 3, 5], (0, 0, 0, 1)),  # it was never published
        ([], (4, 0, 0, 0)),
    ],
)
def test_the_ledger_sees_what_must_not_be(
    taken: list[int], found: tuple[int, int, int, int]
) -> None:
    ledger = Ledger()
    ledger.add_profile("p1", Wanted(None))
    ledger.add_source("s1")
    ledger.accepted["s1"].extend(range(4))
    ledger.uncertain["s1"].add(4)
    for index in taken:
        ledger.take("p1", "s1", message(index, padding=0))
    verdict = ledger.verdict()
    assert (verdict.lost, verdict.doubled, verdict.disordered, verdict.wrong) == found
    assert verdict.is_good == (not any(found))
    assert ledger.due() == 4
    assert ledger.is_complete() == (not verdict.lost)


def test_the_ledger_knows_what_a_profile_does_not_want() -> None:
    ledger = Ledger()
    other = next(index for index in range(100) if group_of(index) != group_of(0))
    ledger.add_profile("p1", Wanted(group_of(0)))
    ledger.add_source("s1")
    ledger.accepted["s1"].extend([0, other])
    assert ledger.due() == 1
    ledger.take("p1", "s1", message(0, padding=0))
    assert ledger.verdict().is_good
    ledger.take("p1", "s1", message(other, padding=0))
    assert ledger.verdict().wrong == 1
