"""In which order groups of tests are begun."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("xdist")


@dataclass
class Item:
    nodeid: str
    is_slow: bool = False

    def get_closest_marker(self, name: str) -> object:
        return name if name == "slow" and self.is_slow else None


def test_those_that_take_longest_come_first_and_simulations_last() -> None:
    from tests.side_by_side import longest_first  # noqa: PLC0415

    wanted: list[Any] = [
        Item("tests/onyx/test_archives.py::test_a", is_slow=True),
        Item("tests/registration/spark/test_java.py::test_a"),
        Item("tests/onyx/test_launcher.py::test_b", is_slow=True),
        Item("tests/survival/test_chaos.py::test_c", is_slow=True),
        Item("tests/demo/test_demo_run.py::test_z", is_slow=True),
        Item("tests/onyx/broker/test_parts.py::test_d"),
        Item("tests/formats/test_text.py::test_e"),
        Item("tests/simulation/test_moves.py::test_f[1]", is_slow=True),
    ]
    items = [wanted[place] for place in (7, 6, 4, 0, 2, 3, 5, 1)]
    longest_first(items)
    assert items[:5] == wanted[:5]
    assert set(map(str, items[5:7])) == set(map(str, wanted[5:7]))
    assert items[7] is wanted[7]
