"""The registration service tells brokers the plan, and adds up what they count."""

from __future__ import annotations

from typing import Any

import pytest

from overlay.link.frames import PartitionsMatched, PlanInForce
from registration.measured_shares import WINDOW_MESSAGES
from registration.planning.plan_file import plan_id, to_json
from tests.registration.test_placement_by_plan import make, use
from tests.registration.test_registration_core import Setting

PLAN = make()


def told(setting: Setting) -> list[list[str]]:
    """The plans that each broker was told since the last time."""
    return [[f.plan for f in peer.take(PlanInForce)] for peer in setting.brokers.values()]


def measured(setting: Setting) -> dict[str, Any]:
    shown = setting.client.ask("plan.show")
    assert shown is not None
    found = shown.result["measured"]
    assert isinstance(found, dict)
    return found


def report(setting: Setting, broker: str, accepted: int, *matched: tuple[int, int]) -> None:
    frame = PartitionsMatched(plan=plan_id(PLAN), accepted=accepted, matched=list(matched))
    setting.brokers[broker].send("registration", frame)


def test_every_broker_is_told_each_plan_once() -> None:
    setting = Setting()
    assert told(setting) == [[]] * 6
    use(setting, PLAN)
    (frame, *_) = setting.brokers["B1"].all(PlanInForce)
    assert frame.payload == to_json(PLAN).encode()
    assert told(setting) == [[plan_id(PLAN)]] * 6
    use(setting, PLAN)
    setting.restart()
    assert told(setting) == [[]] * 6
    setting.client.ask("plan.use", plan=b"")
    assert told(setting) == [[""]] * 6


def test_counts_add_up_and_survive_a_restart() -> None:
    setting = Setting()
    use(setting, PLAN)
    assert measured(setting) == {"messages": 0.0, "matched": [], "matched_share": None}
    report(setting, "B1", 10, (0, 4))
    report(setting, "B2", 0, (0, 1), (5, 7), (10_000, 1))
    expected = {"messages": 10.0, "matched": [[0, 5.0], [5, 7.0]]}
    for _ in range(2):
        found = measured(setting)
        assert found["matched_share"] == pytest.approx(12 / 10 / PLAN.partitions)
        assert {key: found[key] for key in expected} == expected
        setting.restart()


def test_counts_of_another_plan_are_passed_over() -> None:
    setting = Setting()
    report(setting, "B1", 10, (0, 4))
    use(setting, PLAN)
    assert measured(setting)["messages"] == 0
    report(setting, "B1", 10, (0, 4))
    setting.client.ask("plan.use", plan=b"")
    assert measured(setting)["messages"] == 0


def test_recent_messages_count_more() -> None:
    setting = Setting()
    use(setting, PLAN)
    report(setting, "B1", WINDOW_MESSAGES, (0, WINDOW_MESSAGES))
    for _ in range(20):
        report(setting, "B1", WINDOW_MESSAGES // 2)
    found = measured(setting)
    assert found["messages"] <= WINDOW_MESSAGES
    assert found["matched_share"] * PLAN.partitions < 0.01
