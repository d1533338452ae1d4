"""What is held comes in its order, but that messages do not wait for the entry behind them."""

from __future__ import annotations

from onyx.broker.shape.tree_versions import HeldFrames
from overlay.link.events import Put
from overlay.link.frame import Frame
from overlay.link.frames import TreeBegun, TreeEnded
from overlay.link.link_layer import Arrival
from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from tests.onyx.broker.test_broker_core import announced

TREE = "B1@2"


def taken(held: HeldFrames) -> list[str]:
    found = []
    while arrival := held.first(TREE):
        assert arrival.frame is not None
        found.append(getattr(arrival.frame, "source", "") or arrival.frame.type)
        held.drop_first(TREE)
    return found


def test_entries_of_sources_are_next_also_after_a_restart() -> None:
    rows = RowLog()
    held = HeldFrames(rows)
    frames: list[Frame] = [TreeBegun(root=TREE, after="B1"), announced("s1", TREE)]
    frames += [TreeEnded(root=TREE), announced("s2", TREE)]
    for number, frame in enumerate(frames, 1):
        held.put(Arrival(1, "broker/B2", frame, TREE, number))
    stored = [(row.space, row.key, row.value) for row in rows.drain() if isinstance(row, Put)]
    again = HeldFrames(RowLog())
    again.restore(StoredRows(stored))
    expected = ["s1", "s2", "tree-begun", "tree-ended"]
    assert taken(held) == taken(again) == expected
