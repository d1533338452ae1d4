"""What ``onyx status`` says of a broker."""

from __future__ import annotations

import pytest

from onyx.cli.status import HEADING, _away, _row, _slowed, _suspended


def test_what_waits_is_for_brokers_and_for_users() -> None:
    statistics = {
        "links": {"backlog_bytes": 7},
        "node": {"longest_turn_ms": 1.5},
        "mailboxes": {"stored_bytes": 5},
        "query": {"profiles": 3},
        "data": {"crossings": {"B2": 1}, "published": 1, "delivered": 2},
    }
    row = dict(zip(HEADING, _row("B1", "127.0.0.1:1", statistics), strict=True))
    assert row["WAITING BYTES"] == 12
    assert row["LONGEST TURN MS"] == 1.5
    assert (row["PROFILES"], row["DELIVERED"]) == (3, 2)


@pytest.mark.parametrize(
    ("store", "state"), [({}, "up"), ({"epoch": 0}, "up"), ({"epoch": 3}, "up, epoch 3")]
)
def test_the_epoch_of_a_node_is_told_where_there_is_one(store: dict[str, int], state: str) -> None:
    statistics = {
        "links": {"backlog_bytes": 0},
        "node": {"longest_turn_ms": 1.5, "store": store},
        "catalog": {"profiles": 0},
    }
    row = dict(zip(HEADING, _row("R1", "127.0.0.1:1", statistics), strict=True))
    assert row["STATE"] == state


def test_a_process_that_is_not_started_again_yet_is_down() -> None:
    row = dict(zip(HEADING, _row("B1", "127.0.0.1:1", {"down": "failed"}), strict=True))
    assert row["STATE"] == "down"


def test_profiles_that_are_suspended_are_named() -> None:
    found = {
        "B1": ("127.0.0.1:1", {"budgets": {"suspended": {"p1": "it is suspended"}}}),
        "B2": ("127.0.0.1:2", {"budgets": {"suspended": {}}}),
        "B3": ("127.0.0.1:3", None),
    }
    assert _suspended(found) == ["B1: p1: it is suspended"]


def test_brokers_that_are_away_for_long_are_named() -> None:
    (line,) = _away({"R1": ("127.0.0.1:1", {"processes": {"away": ["B3"]}}), "B3": ("", None)})
    assert line.startswith("B3 is away for long")


def test_users_who_are_slowed_are_named() -> None:
    found = {"B1": ("127.0.0.1:1", {"budgets": {"slowed": ["ann"]}}), "B2": ("127.0.0.1:2", None)}
    assert _slowed(found) == [
        "B1: user ann is slowed, whose profiles have spent half of their processor time"
    ]
