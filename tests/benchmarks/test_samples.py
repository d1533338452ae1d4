"""What is said of many timings."""

from __future__ import annotations

import pytest

from benchmarks.samples import mean, median, percentile


def test_a_percentile_is_a_sample_that_was_measured() -> None:
    samples = [float(number) for number in range(1, 101)][::-1]
    assert percentile(samples, 99) == 99
    assert percentile(samples, 100) == 100
    assert percentile(samples, 1) == 1
    assert percentile([3.0, 1.0], 50) == 1
    assert percentile([7.0], 99) == 7


def test_mean_and_median() -> None:
    assert mean([1.0, 2.0, 9.0]) == 4
    assert median([9.0, 1.0, 2.0]) == 2


@pytest.mark.parametrize(("samples", "percent"), [([], 50), ([1.0], 0), ([1.0], 101)])
def test_what_is_no_percentile_is_refused(samples: list[float], percent: float) -> None:
    with pytest.raises(ValueError):
        percentile(samples, percent)
