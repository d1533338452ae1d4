"""Functions, calls and microseconds of a plain message in a warm broker core, without any I/O.

The setting is that of ``tests/onyx/broker/test_plain_message.py``, which holds the calls down: one
profile whose user is there, one link, a message of 60 bytes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from benchmarks.benchmark import WrongAnswers
from benchmarks.samples import median
from overlay.link.events import SendData, singly
from tests.onyx.broker.test_plain_message import Walk, Warm

ROUNDS, MESSAGES = 20, 200
FRAMES = 3  # that leave for a message: one to the link, one to the user, one to the source


@dataclass(frozen=True, slots=True)
class PlainMessage:
    """``us``: the median round's processor time, for a message."""

    functions: int
    calls: int
    us: float


class _Stopwatch:
    """The processor time while it is on; a context manager."""

    def __init__(self) -> None:
        self.ns = 0

    def __enter__(self) -> None:
        self._begun = time.thread_time_ns()

    def __exit__(self, *error: object) -> None:
        self.ns += time.thread_time_ns() - self._begun


def plain_message(rounds: int = ROUNDS) -> PlainMessage:
    """WrongAnswers where a message is not passed on, delivered and acknowledged."""
    warm, walk = Warm(), Walk()
    warm.watched(walk)
    times = []
    for _ in range(rounds):
        watch = _Stopwatch()
        actions = warm.watched(watch, MESSAGES).actions
        sent = sum(isinstance(action, SendData) for action in singly(actions))
        if sent != FRAMES * MESSAGES:
            raise WrongAnswers(f"{sent} frames were sent of {MESSAGES} messages, not {FRAMES} each")
        times.append(watch.ns / MESSAGES / 1e3)
    return PlainMessage(len(walk.calls), walk.calls.total(), median(times))
