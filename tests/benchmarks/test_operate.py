"""``python -m benchmarks operate``: it times what has run, and says what has not."""

from __future__ import annotations

import sys

import pytest

from benchmarks.benchmark import WrongAnswers
from benchmarks.operate import _cpu_seconds
from benchmarks.plain_message import plain_message

PYTHON = sys.executable


def test_what_a_process_computes_is_counted() -> None:
    small = _cpu_seconds([PYTHON, "-S", "-c", "print('done')"], "done")
    burnt = "import time\nwhile time.process_time() < 0.5: pass\nprint('done')"
    assert _cpu_seconds([PYTHON, "-S", "-c", burnt], "done") >= 0.5
    assert small > 0


@pytest.mark.parametrize("program", ["print('other')", "print('done'); raise SystemExit(3)"])
def test_a_command_that_did_not_do_it_is_not_timed(program: str) -> None:
    with pytest.raises(WrongAnswers, match="expected 'done'"):
        _cpu_seconds([PYTHON, "-S", "-c", program], "done")


def test_the_way_of_a_plain_message_is_timed_and_counted() -> None:
    found = plain_message(rounds=1)
    assert found.calls >= found.functions > 0
    assert found.us > 0
