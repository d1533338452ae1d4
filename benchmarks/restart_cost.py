"""What it takes to start a broker again that hosts many profiles: killed, until it is ready.

The profiles are added as a user adds many, to a real network of one broker, each live.
"""

from __future__ import annotations

import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from benchmarks.network.onyx_network import BROKER, REGISTRATION, onyx_network
from benchmarks.workload import ProfileMaker, make_schema
from onyx import User

_SEED = 1
_PORTION = 20_000  # profiles that are made at a time


class RestartCost(NamedTuple):
    """Seconds until ready, and of processor time, of the broker; and until ready of the
    registration service.  ``added_s``: what it took to add the profiles."""

    broker_s: float
    broker_cpu_s: float
    registration_s: float
    added_s: float


async def restart_cost(profiles: int) -> RestartCost:
    """With so many different profiles."""
    texts = ProfileMaker(make_schema(_SEED), _SEED).distinct()
    with tempfile.TemporaryDirectory(prefix="onyx-restart-") as folder:
        async with onyx_network(Path(folder) / "network", capacity=profiles) as network:
            start = time.perf_counter()
            async with User(network.registration, "benchmark") as user:
                for left in range(profiles, 0, -_PORTION):
                    some = list(islice(texts, min(left, _PORTION)))
                    async for _ in user.add_profiles(some):
                        pass
            added = time.perf_counter() - start
            start = time.perf_counter()
            await network.kill(BROKER)
            broker = time.perf_counter() - start
            used = await network.processor_seconds(BROKER)
            start = time.perf_counter()
            await network.kill(REGISTRATION)
            return RestartCost(broker, used, time.perf_counter() - start, added)
