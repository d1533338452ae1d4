"""A network of the last release becomes one of this, one process after the other, in use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio

from tests.hanging import SAFETY_SECONDS
from tests.survival.upgrade import HistoryMissing, former_code, upgrade

pytestmark = pytest.mark.usefixtures("real_starts")
SEED = int(os.environ.get("ONYX_UPGRADE_SEED", "1"))


async def test_each_process_of_a_network_in_use_is_replaced(tmp_path: Path) -> None:
    former, network = tmp_path / "former", tmp_path / "network"
    network.mkdir()
    try:
        former_code(former)
    except HistoryMissing as missing:
        if os.environ.get("ONYX_FORMER_RELEASE") == "require":
            raise
        pytest.skip(str(missing))
    with trio.fail_after(SAFETY_SECONDS):
        traffic = await upgrade(network, former, SEED)
    taken = {"B1": traffic.accepted, "B3": traffic.accepted}
    assert traffic.taken == taken, f"seed {SEED}"
