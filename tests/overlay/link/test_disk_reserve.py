"""A disk is short below its reserve, and is so no more once there is an eighth more than that."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from overlay.link.disk_reserve import DiskReserve
from overlay.link.store import Store


def test_it_says_what_has_changed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    blocks = 0
    monkeypatch.setattr(
        os, "statvfs", lambda path: SimpleNamespace(f_bavail=blocks, f_frsize=4096, f_bfree=10**9)
    )
    reserve = DiskReserve(tmp_path, 1000 * 4096)
    told = []
    for blocks in (5000, 1000, 999, 0, 1000, 1124, 1125, 1000, 999):
        changed = reserve.look()
        told.append((reserve.is_short, changed))
        assert reserve.free == blocks * 4096
    assert told == [
        *((False, False), (False, False), (True, True), (True, False), (True, False)),
        *((True, False), (False, True), (False, False), (True, True)),
    ]


def test_without_a_reserve_nothing_is_short(tmp_path: Path) -> None:
    assert not DiskReserve(tmp_path, 0).look()
    assert DiskReserve(tmp_path, 2**50).look(), "of the disk that there is"
    assert not DiskReserve(None, 2**50).look(), "of another machine's"


def test_a_store_says_on_which_disk_it_is(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        assert store.disk == tmp_path
