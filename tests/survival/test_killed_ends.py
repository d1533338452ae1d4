"""Each message is worked on once, however often its publisher and its subscriber are killed."""

from __future__ import annotations

import os
from pathlib import Path

from tests.survival.killed_ends import KilledEnds

KILLS = int(os.environ.get("ONYX_KILLS", "2"))
SEED = int(os.environ.get("ONYX_KILLS_SEED", "1"))


async def test_each_message_is_worked_on_once(tmp_path: Path) -> None:
    verdict = await KilledEnds(KILLS, SEED, tmp_path).run()
    assert not verdict.lost.total() and not verdict.doubled.total(), f"seed {SEED}: {verdict}"
    assert all(verdict.kills[kind] == KILLS for kind in ("nothing", "journal", "subscriber"))
