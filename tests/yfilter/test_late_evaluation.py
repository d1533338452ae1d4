"""A process of its own evaluates what takes long."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from itertools import count

import pytest

from formats.limits import DEFAULT_LIMITS
from formats.text import parse_text
from tests.yfilter.hostile_profiles import HOSTILE, MESSAGE
from yfilter import Matcher, MatchLimits
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.late_evaluation import question_about
from yfilter.late_questions import (
    EvaluateProfile,
    LateWorker,
    ProfileEvaluated,
    pack_answer,
    unpack_answer,
)

STREAM = parse_text(MESSAGE)


@pytest.fixture(scope="module")
def worker() -> Iterator[LateWorker]:
    worker = LateWorker()
    yield worker
    worker.close()


def about(text: str, seconds: float = 10.0) -> EvaluateProfile:
    return question_about(text, STREAM, DEFAULT_LIMITS, seconds)


@pytest.mark.parametrize(
    "text",
    [
        *("/a[v = 7]", "for $v in /a/v where $v > 297 return <r k='{$v/@k}'>{$v}</r>"),
        *("/a[some $x in v, $y in v satisfies $x + $y = 597]", "/a[v = 'x']"),
        "for $v in /a/v where $v = 'x' return <r/>",
    ],
)
def test_results_are_those_of_a_matcher(worker: LateWorker, text: str) -> None:
    matcher = Matcher()
    matcher.add(text)
    expected = [result for one in matcher.deliver(STREAM) for result in one.results]
    found = worker.ask(about(text))
    assert (list(found.results), found.limit) == (expected, None)
    assert found.seconds > 0.0


def test_a_limit_is_told_with_what_was_spent(worker: LateWorker) -> None:
    found = worker.ask(about(HOSTILE["pairs that never sum"], 0.01))
    assert found.exceeded == ("too-much-time", "a profile takes more than 10 ms for this message")
    assert found.seconds > 0.0


@pytest.mark.parametrize(("late_messages", "over_limit"), [(0, 2), (8, 0)])
def test_what_is_evaluated_again_elsewhere_is_beyond_no_limit(
    late_messages: int, over_limit: int
) -> None:
    seconds = count()
    limits = EvaluationLimits(late_messages=late_messages, clock=lambda: float(next(seconds)))
    matcher = Matcher(MatchLimits(evaluation=limits))
    matcher.add(HOSTILE["pairs that never sum"])
    matcher.add("for $v in /a return <r>{for $x in 1 to 90000 return $x * 2}</r>")
    told = [one.exceeded for one in matcher.deliver(STREAM)]
    assert [limit and limit.code for limit in told] == ["too-much-time"] * 2
    assert matcher.statistics().over_limit == over_limit


def test_a_process_that_died_is_an_answer_and_another_one_begins() -> None:
    worker = LateWorker()
    try:
        assert worker.ask(about("/a")).results
        process = worker._process._process
        assert process is not None
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        limit = worker.ask(about("/a")).limit
        assert limit is not None and limit.code == "too-much-time"
        assert worker.ask(about("/a")).results
    finally:
        worker.close()


@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"\x93\x90\xc0\xc0", b"\x93\xa1x\xc0\xcb" + bytes(8)]
)
def test_what_is_no_answer_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        unpack_answer(data)


def test_answers_come_through_as_they_are() -> None:
    for answer in (
        ProfileEvaluated((b"<a/>", b""), None, 0.5),
        ProfileEvaluated((), ("too-much-memory", "why"), 0.0),
        ProfileEvaluated((b"<a/>",), ("result-too-large", "why"), 0.0),
    ):
        assert unpack_answer(pack_answer(answer)) == answer
