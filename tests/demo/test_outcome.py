"""A run is good only when nothing at all is wrong with it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from demo.acceptance import Refusal
from demo.expectations import expect
from demo.messages import DemoMessage, DemoSource
from demo.outcome import Decision, Outcome, Registered, Run, judge_run
from demo.profile_files import DemoProfile
from demo.report import Report, to_json
from demo.scenario import Scenario
from demo.verdict import DeliveryKey
from overlay.routing.broadcast_tree import broadcast_trees
from overlay.topology import load_topology

TOPOLOGY = load_topology(Path(__file__).resolve().parents[2] / "topologies" / "figure4.toml")
PROFILES = ["/a", "for $b in $msg//b return $b", "//c"]
SCENARIO = Scenario(
    "a test",
    (DemoSource("news", "", ""), DemoSource("markets", "", "")),
    [DemoProfile(f"u{place}", f"U{place}", "", "x", text) for place, text in enumerate(PROFILES)],
    [
        DemoMessage("news", "n1", b"<a><b>1</b><b>2</b></a>"),
        DemoMessage("news", "n2", b"<a>"),
        DemoMessage("news", "n3", b"<x><b/></x>"),
        DemoMessage("markets", "m1", b"<a/>"),
    ],
)


@pytest.fixture
def run() -> Run:
    """Everything as it should be; not byte by byte, but as XML."""
    run = Run(TOPOLOGY, broadcast_trees(TOPOLOGY))
    run.sources = {"news": Registered("s1", "B1"), "markets": Registered("s2", "B4")}
    run.profiles = [Registered("p1", "B2"), Registered("p2", "B5"), Registered("p3", "B6")]
    run.decisions = {
        0: Decision(1, None),
        1: Decision(2, Refusal("malformed", "unclosed", 1, 4)),
        2: Decision(3, None),
        3: Decision(1, None),
    }
    run.deliveries = [
        (DeliveryKey("p1", "news", 1), [b"<a><b>1</b><b>2</b></a>"]),
        (DeliveryKey("p2", "news", 1), [b"<b>1</b>", b"<b>2</b>"]),
        (DeliveryKey("p2", "news", 3), [b"<b></b>"]),
        (DeliveryKey("p1", "markets", 1), [b"<a ></a>"]),
    ]
    run.traffic.roots = {"s1": "B1", "s2": "B4"}
    for source, number, broker, link in (
        ("s1", 1, "B1", "B2"),
        ("s1", 1, "B1", "B4"),
        ("s1", 1, "B4", "B5"),
        ("s2", 1, "B4", "B1"),
    ):
        event = {"broker": broker, "source": source, "number": number, "bytes": 10}
        run.traffic.take({**event, "kind": "crossing", "link": link})
    run.crossings_counted = 4
    return run


def judged(run: Run, leftovers: tuple[str, ...] = ()) -> Outcome:
    expectations = [expect(PROFILES, message.data) for message in SCENARIO.messages]
    return judge_run(SCENARIO, run, expectations, leftovers)


def summary(outcome: Outcome) -> str:
    stream = io.StringIO()
    Report(stream, SCENARIO, quiet=True, colour=False).summary(outcome)
    return stream.getvalue()


def test_a_good_run(run: Run) -> None:
    outcome = judged(run)
    assert outcome.good
    assert (outcome.verdict.right, outcome.accepted) == (4, 3)
    assert outcome.accepted_by_root == {"B1": 2, "B4": 1}
    assert outcome.flooding == 15
    text = summary(outcome)
    assert "✓ every user got exactly" in text
    assert "news n2: line 1, column 4: unclosed [malformed]" in text
    assert "4 link crossings, 40 B; flooding would have cost 15: 73% saved" in text
    assert "\x1b" not in text


def test_a_suppressed_delivery(run: Run) -> None:
    del run.deliveries[2]
    outcome = judged(run)
    assert not outcome.good
    assert "missing: n3 for U1 (u1)" in summary(outcome)


def test_a_delivery_that_was_tampered_with(run: Run) -> None:
    run.deliveries[2] = (run.deliveries[2][0], [b"<b> </b>"])
    outcome = judged(run)
    assert [fault.kind for fault in outcome.verdict.faults] == ["wrong"]
    assert not outcome.good


def test_a_delivery_that_is_no_xml(run: Run) -> None:
    run.deliveries[2] = (run.deliveries[2][0], [b"<b>"])
    assert [fault.kind for fault in judged(run).verdict.faults] == ["wrong"]


def test_a_delivery_of_a_refused_message(run: Run) -> None:
    run.deliveries.append((DeliveryKey("p1", "news", 2), [b"<a/>"]))
    assert [fault.kind for fault in judged(run).verdict.faults] == ["extra"]


def test_a_refusal_without_a_reason(run: Run) -> None:
    run.decisions[3] = Decision(1, Refusal("malformed", "I do not like it", 1, 1))
    del run.deliveries[3]
    outcome = judged(run)
    assert outcome.verdict.faults == ()
    assert list(outcome.disagreements) == ["markets m1"]
    assert not outcome.good


def test_what_is_no_xml_accepted(run: Run) -> None:
    run.decisions[1] = Decision(2, None)
    outcome = judged(run)
    assert list(outcome.disagreements) == ["news n2"]
    assert not outcome.good


def test_a_message_without_a_decision(run: Run) -> None:
    del run.decisions[1]
    assert judged(run).problems == ("news n2: neither accepted nor refused",)
    assert not judged(run).good


def test_crossings_that_observers_did_not_see(run: Run) -> None:
    run.crossings_counted = 5
    assert not judged(run).good


def test_what_was_abnormal_or_is_left_behind(run: Run) -> None:
    assert not judged(run, ("process 1 is still there",)).good
    run.abnormal.append("the process of B1 died")
    assert not judged(run).good


def test_an_oracle_that_gives_up_is_no_excuse(run: Run) -> None:
    expectations = [expect(["//a[", "//b", "//c"], message.data) for message in SCENARIO.messages]
    outcome = judge_run(SCENARIO, run, expectations)
    assert any("the oracle cannot say" in problem for problem in outcome.problems)
    assert not outcome.good


def test_the_summary_as_json(run: Run) -> None:
    values = json.loads(json.dumps(to_json(judged(run))))
    assert values["good"] is True
    assert (values["accepted"], values["right"], values["crossings_of_flooding"]) == (3, 4, 15)
    assert values["crossings"][0] == {"root": "B1", "from": "B1", "to": "B2", "count": 1}
    assert values["refused"][0]["line"] == 1
