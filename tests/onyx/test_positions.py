"""Positions in a file of their user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from onyx import PositionFile
from onyx.errors import StoreUnusable
from overlay.link.events import Put
from overlay.link.store import Store


def test_what_was_saved_is_there_in_the_next_run(tmp_path: Path) -> None:
    file = tmp_path / "positions"
    with PositionFile(file) as positions:
        assert positions.load("p1") == 0
        positions.save("p1", 7)
        positions.save("p2", 1)
        positions.save("p1", 8)
    with PositionFile(file) as positions:
        assert (positions.load("p1"), positions.load("p2")) == (8, 1)


def test_a_file_of_positions_is_of_one_process_and_of_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "positions"
    with PositionFile(file), pytest.raises(StoreUnusable, match="in use by another process"):
        PositionFile(file)
    with Store(file) as store:
        store.commit([Put("inbox", "x", b"")])
    with pytest.raises(StoreUnusable, match="rows of 'inbox'; expected 'position' only"):
        PositionFile(file)
