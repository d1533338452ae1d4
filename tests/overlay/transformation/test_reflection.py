"""Which changes of needs a message takes into account, hop by hop."""

from __future__ import annotations

from typing import Any

import pytest

from overlay.link.events import Delete, Put
from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from overlay.transformation import reflection
from overlay.transformation.reflection import NOTHING, WHOLE, Reflection


def test_a_message_reflects_what_was_told_upward_before_it_was_cut() -> None:
    broker = Reflection(RowLog())
    assert broker.reflected("up", "B4", "up", 5) == NOTHING
    assert broker.next("up") == 2
    broker.carry("B4", "up", 2, ["up"])
    broker.carry("B4", "up", 3, ["up"])  # nothing new follows from it: change 2 has it, too
    assert broker.next("up") == 3
    broker.carry("B4", "up", 4, ["up"])
    assert broker.reflected("up", "B4", "up", NOTHING) == NOTHING
    assert broker.reflected("up", "B4", "up", 2) == 3
    assert broker.reflected("up", "B4", "up", 3) == 4
    assert broker.reflected("up", "B4", "up", 9) == 4


def test_what_is_cut_here_reflects_all_that_has_come() -> None:
    broker = Reflection(RowLog())
    broker.carry("B4", "up", 7, [])
    assert broker.reflected(None, "B4", "up", WHOLE) == 7
    assert broker.reflected("up", "B4", "up", WHOLE) == 7
    assert broker.reflected("up", "B4", "up", 7) == NOTHING


def test_all_of_it_survives_a_restart() -> None:
    rows = RowLog()
    broker = Reflection(rows)
    disk: dict[tuple[str, str], bytes] = {}
    for number in range(2, 12):
        broker.next("up")
        broker.carry("B4", "B1", 2 * number, ["up"])
        if number % 3 == 0:
            broker.carry("B4", "B1", 2 * number + 1, ["up"])
    for action in rows.drain():
        match action:
            case Put(space, key, value):
                disk[space, key] = value
            case Delete(space, key):
                del disk[space, key]
    again = Reflection(RowLog())
    again.restore(StoredRows((space, key, value) for (space, key), value in disk.items()))
    assert again.last("up") == broker.last("up")
    assert again.come("B4", "B1") == broker.come("B4", "B1")
    for reflects in range(15):
        answers: list[Any] = [one.reflected("up", "B4", "B1", reflects) for one in (broker, again)]
        assert answers[0] == answers[1]


def test_the_oldest_changes_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflection, "CHANGES_MAX", 3)
    broker = Reflection(RowLog())
    for number in range(2, 7):
        broker.next("up")
        broker.carry("B4", "up", number, ["up"])
    assert [broker.reflected("up", "B4", "up", n) for n in range(2, 7)] == [NOTHING] * 2 + [4, 5, 6]
