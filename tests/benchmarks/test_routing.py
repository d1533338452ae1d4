"""The routing benchmark on a small network: its figures are there, and the exact ones are exact."""

from __future__ import annotations

from benchmarks.__main__ import _parser
from benchmarks.routing import ROUTING


def test_without_a_budget_routing_is_the_optimum() -> None:
    words = ["--number", "200", "--brokers", "5", "--messages", "10", "--local", "0", "20"]
    words += ["--churn", "5", "--churn-seconds", "1"]
    report = ROUTING.run(_parser().parse_args(["routing", *words])).to_json()
    assert report["crossings_over_optimum_exact"] == 1.0
    over = report["crossings_over_optimum_budget"]
    assert isinstance(over, float) and over >= 1.0
    assert report["budget_table_bytes"] <= report["exact_table_bytes"]  # type: ignore[operator]
    more, less = report["disjunct_bytes_4"], report["disjunct_bytes_1"]
    assert isinstance(more, float) and isinstance(less, float) and more < 2 * less
    for key in ("root_lookup_over_parse", "first_forward_growth"):
        assert isinstance(report[key], float)
