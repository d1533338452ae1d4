"""What ``onyx status`` says of a broker."""

from __future__ import annotations

import pytest

from onyx.cli.status import HEADING, Found, _lines, _row
from onyx.doctor import Facts, Process, restarted
from overlay.link.validity import DAY


def row(told: dict[str, object] | None, down: str = "") -> dict[str, object]:
    found = Found("B1", "127.0.0.1:1", told, down)
    return dict(zip(HEADING, _row(found, found.statistics), strict=True))


def lines(told: dict[str, object]) -> list[str]:
    found = Found("B1", "127.0.0.1:1", told)
    return list(_lines(found, found.statistics))


def test_what_waits_is_for_brokers_and_for_users() -> None:
    found = row(
        {
            "broker": "B1",
            "links": {"backlog_bytes": 7},
            "node": {"longest_turn_ms": 1.5},
            "mailboxes": {"stored_bytes": 5},
            "query": {"profiles": 3},
            "data": {"crossings": {"B2": 1}, "published": 1, "delivered": 2},
        }
    )
    assert found["WAITING BYTES"] == 12
    assert found["LONGEST TURN MS"] == 1.5
    assert (found["PROFILES"], found["DELIVERED"]) == (3, 2)


@pytest.mark.parametrize(
    ("store", "state"), [({}, "up"), ({"epoch": 0}, "up"), ({"epoch": 3}, "up, epoch 3")]
)
def test_the_epoch_of_a_node_is_told_where_there_is_one(store: dict[str, int], state: str) -> None:
    assert row({"registration": "R1", "node": {"store": store}})["STATE"] == state


def test_a_process_that_is_not_started_again_yet_is_down() -> None:
    assert row(None, "failed")["STATE"] == "down"


def test_profiles_that_are_suspended_are_named() -> None:
    told = {"broker": "B1", "budgets": {"suspended": {"p1": "it is suspended"}}}
    assert lines(told) == ["B1: p1: it is suspended"]
    assert lines({"broker": "B1", "budgets": {"suspended": {}}}) == []


def test_a_process_that_was_started_again_is_named() -> None:
    told = {"broker": "B1", "node": {"restarts": 2}}
    assert lines(told) == ["B1 was started again 2 times: its log says why"]
    (finding,) = restarted(Facts("0", processes={"B1": Process("127.0.0.1:1", told)}))
    assert (finding.about, finding.severity) == ("B1", "warning")
    assert "2 times" in finding.what


def test_brokers_that_are_away_for_long_are_named() -> None:
    (line,) = lines({"registration": "R1", "processes": {"away": ["B3"]}})
    assert line.startswith("B3 is away for long")


def test_users_who_are_slowed_are_named() -> None:
    assert lines({"broker": "B1", "budgets": {"slowed": ["ann"]}}) == [
        "B1: user ann is slowed, whose profiles have spent half of their processor time"
    ]


def test_statistics_that_cannot_be_read_are_said_and_hide_no_others() -> None:
    told = {"broker": "B1", "data": {"published": "many"}}
    assert row(told)["STATE"] == "unreadable"
    why = "the statistics of broker/B1 cannot be read: 'data'.published must be a whole number"
    assert lines(told) == [f"{why}, not 'many'"]


def test_certificates_that_end_soon_are_told() -> None:
    tls = {"ends": {"own": 12.1 * DAY, "authority": 40 * DAY}, "ending": {"user/ann": 0.5 * DAY}}
    assert lines({"broker": "B1", "node": {"time": 0.0, "tls": tls}}) == [
        "B1: its certificate ends in 12 days, 1970-01-13 02:24 Z",
        "B1: the certificate of user/ann, who is connected, ends in 12 hours, 1970-01-01 12:00 Z",
    ]


def test_why_a_process_does_not_answer_stands_below_its_row() -> None:
    found = Found("B1", "127.0.0.1:1", None, why="it has shown a certificate that is over")
    assert _row(found, None)[2] == "no answer"
    assert list(_lines(found, None)) == [
        "B1 at 127.0.0.1:1: it has shown a certificate that is over"
    ]
