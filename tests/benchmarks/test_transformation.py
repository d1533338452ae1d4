"""The transformation benchmark on few messages: its figures are there, and bytes
are saved."""

from __future__ import annotations

from benchmarks.__main__ import _parser
from benchmarks.transformation import TRANSFORMATION


def test_a_tenth_of_the_content_is_a_fraction_of_the_bytes() -> None:
    words = ["--messages", "2", "--rounds", "1", "--hops", "2", "--needs", "500"]
    words += ["--kinds", "batches", "pictures"]
    report = TRANSFORMATION.run(_parser().parse_args(["transformation", *words])).to_json()
    for key in ("bytes_ratio_10_percent", "bytes_ratio_restructured"):
        ratio = report[key]
        assert isinstance(ratio, float) and 0 < ratio < 0.3
    assert isinstance(report["cpu_ratio_three_hops"], float)
    assert isinstance(report["overhead_100_percent"], float)
    for key in ("links_1_us", "links_32_us", "links_different_each_us", "needs_added_s"):
        figure = report[key]
        assert isinstance(figure, float) and figure > 0
    rows = report["rows"]
    assert isinstance(rows, dict)
    assert len(rows["batches_10"]["projection"]["bytes_a_message_by_link"]) == 2
    assert len(rows["batches_10"]["off"]["cpu_us_a_message_by_broker"]) == 3
