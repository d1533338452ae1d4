"""Whoever waits for a broker whose files are damaged is told so, and gets nothing altered."""

from __future__ import annotations

import os
from pathlib import Path

from tests.survival.lying_disks import DAMAGES, LyingDisks

SEED = int(os.environ.get("ONYX_CHAOS_SEED", "1"))


async def test_source_and_user_are_told_and_nothing_is_lost_by_the_good_files(
    tmp_path: Path,
) -> None:
    disks = LyingDisks(tmp_path, SEED)
    verdict = (await disks.run()).verdict()
    assert [told.damage for told in disks.told] == [damage.__name__ for damage, _ in DAMAGES]
    assert verdict.is_good and verdict.accepted, f"seed {SEED}: {verdict}"
