"""The clock of processor time, with times that the test says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overlay.link import processor_clock
from overlay.link.processor_clock import READ_SECONDS, ProcessorClock


class Times:
    """``wall`` goes on, and processor time a part of it; ``reads`` of that."""

    def __init__(self) -> None:
        self.wall = self.processor = 0.0
        self.reads = 0

    def read(self) -> float:
        self.reads += 1
        return self.processor


@given(st.lists(st.tuples(st.floats(0, 0.001), st.floats(0, 1)), max_size=100))
def test_it_never_goes_back_and_is_hardly_ahead(steps: list[tuple[float, float]]) -> None:
    times = Times()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processor_clock, "perf_counter", lambda: times.wall)
        patch.setattr(processor_clock, "thread_time", times.read)
        clock = ProcessorClock()
        before = 0.0
        for passed, share in steps:
            times.wall += passed
            times.processor += passed * share
            told = clock()
            assert before <= told
            assert times.processor - 1e-9 <= told <= times.processor + READ_SECONDS
            before = told


def test_it_seldom_asks_for_processor_time() -> None:
    times = Times()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processor_clock, "perf_counter", lambda: times.wall)
        patch.setattr(processor_clock, "thread_time", times.read)
        clock = ProcessorClock()
        for _ in range(1_000):
            times.wall += READ_SECONDS / 100
            clock()
    assert times.reads == pytest.approx(11, abs=1)
