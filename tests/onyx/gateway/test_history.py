"""The hour of a network that its gateway keeps: fixed in size, with gaps where nobody answered."""

from __future__ import annotations

from math import isnan

from onyx.doctor import DoctorFinding
from onyx.gateway.history import POINTS, PROFILES_MAX, STEP_SECONDS, History
from onyx.network_view import NOTHING, NetworkView, TopBroker, TopSource


def view(published: float, state: str = "up", source: str = "s1") -> NetworkView:
    figures = (2, published, 0.0, 0.0, 3.0, 0.0, 5_000, 0, 0.0) if state == "up" else NOTHING
    return NetworkView(
        brokers=[TopBroker("broker", "B1", state, *figures)],
        sources=[TopSource("source", source, "B1", published, 0.0, 7)],
        latency_s={"B1": (0.5, 10)} if state == "up" else {},
    )


def taken(*views: NetworkView) -> History:
    history = History()
    for at, each in enumerate(views):
        history.take(each, 1_000_000.0 + at * STEP_SECONDS)
    return history


def test_a_chart_says_the_last_value_and_the_most_in_words_and_as_a_table() -> None:
    rates, waiting, latency = taken(view(8.0), view(4.0)).charts("broker", "B1")
    assert rates.said == "published 4, at most 8; delivered 3, at most 3"
    assert rates.rows[0] == ("13:47 Z", [4.0, 3.0])
    assert rates.rows[1][1] == [None, None], "before the gateway began nobody knows"
    assert (waiting.said, latency.said) == (
        "waiting 5, at most 5",
        "time to mailboxes 50, at most 50",
    )
    assert "messages a second" in rates.svg
    assert "minutes since" in rates.svg
    assert "<style" not in rates.svg, "a page with a strict policy shows no other's style"


def test_a_time_without_an_answer_is_a_gap_of_the_curve() -> None:
    history = taken(view(1.0), view(2.0), view(0.0, "no answer"), view(3.0), view(4.0))
    waiting = history.charts("broker", "B1")[1]
    assert waiting.svg.count("<polyline") == 2
    assert history.charts("network")[0].said.startswith("published 4, at most 4")


def test_measured_and_declared_rates_stand_beside_each_other() -> None:
    (rate,) = taken(view(4.0)).charts("source", "s1", declared=9.0)
    assert rate.said == "measured 4, at most 4; declared 9, at most 9"


def test_a_source_that_published_nothing_for_an_hour_takes_no_room() -> None:
    history = taken(view(4.0), *[view(0.0)] * POINTS)
    assert ("source", "s1") not in history._rings
    history.take(view(0.0, source="never"), 0.0)
    assert set(history._rings) == {("network", ""), ("broker", "B1")}


def test_profiles_have_a_history_from_when_somebody_looks_and_the_last_ones_only() -> None:
    history = taken(view(0.0))
    for number in range(PROFILES_MAX + 1):
        history.look_at(f"p{number}", "127.0.0.1:1")
    history.take_positions("p0", 0, 100)
    assert ("profile", "p0") not in history._rings, "others were looked at since"
    history.take_positions("p1", 10, 40)
    history.take(view(0.0), 1_000_000.0 + STEP_SECONDS)
    history.take_positions("p1", 10, 100)
    rate, waiting = history.charts("profile", "p1")
    assert rate.said == "delivered 2, at most 2"
    assert waiting.said == "waiting 90, at most 90"
    assert isnan(history._rings["profile", "p1"].hour("delivered", 2)[-2])


def test_a_finding_is_told_since_when_it_was_found_first() -> None:
    history = History()

    def found(what: str) -> DoctorFinding:
        return DoctorFinding("process", "problem", "B1", what, "start it")

    history.diagnose([found("waits for 1 s")], 100.0)
    history.diagnose([found("waits for 61 s")], 160.0)
    assert [(each.finding.what, each.since) for each in history.findings] == [
        ("waits for 61 s", 100.0)
    ]
    history.diagnose([], 220.0)
    history.diagnose([found("waits for 1 s")], 280.0)
    assert [each.since for each in history.findings] == [280.0]
