"""Each message is worked on once, however often its publisher and its subscriber are killed; and a
cache of metadata is right, however often it and its provider are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.survival.killed_ends import KilledEnds
from tests.survival.killed_metadata import KilledMetadata

KILLS = int(os.environ.get("ONYX_KILLS", "2"))
SEED = int(os.environ.get("ONYX_KILLS_SEED", "1"))


async def test_each_message_is_worked_on_once(tmp_path: Path) -> None:
    verdict = await KilledEnds(KILLS, SEED, tmp_path).run()
    assert not verdict.lost.total() and not verdict.doubled.total(), f"seed {SEED}: {verdict}"
    assert all(verdict.kills[kind] == KILLS for kind in ("nothing", "journal", "subscriber"))


@pytest.mark.skipif("ONYX_KILLS" not in os.environ, reason="minutes: by hand, make campaign")
async def test_a_cache_is_right_whatever_is_killed(tmp_path: Path) -> None:
    assert await KilledMetadata(KILLS, SEED, tmp_path).run() == []
