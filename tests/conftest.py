"""One Spark session for all tests that need one, its JVM ends with it; what ``pytest -n`` does."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
import trio
import trio.testing

from registration.spark.session import SparkOptions, spark_session
from tests.postgres import Postgres, running_postgres


@pytest.fixture(autouse=True, scope="session")
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Networks of tests are noted where only tests find them, also in processes that they start."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        monkeypatch.delenv("ONYX_CREDENTIALS", raising=False)
        yield


@pytest.fixture
def autojump_clock(monkeypatch: pytest.MonkeyPatch) -> trio.testing.MockClock:
    """Jumps when nothing but time is waited for: not while a thread writes to a disk."""
    clock = trio.testing.MockClock(autojump_threshold=0)
    running = 0
    run_sync = trio.to_thread.run_sync

    async def run_without_jumps(*args: Any, **options: Any) -> Any:
        nonlocal running
        running += 1
        clock.autojump_threshold = math.inf
        try:
            return await run_sync(*args, **options)
        finally:
            running -= 1
            if not running:
                clock.autojump_threshold = 0

    monkeypatch.setattr(trio.to_thread, "run_sync", run_without_jumps)
    return clock


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A server that tests share; skipped where there is none."""
    with running_postgres() as server:
        yield server


SETTINGS = {
    "spark.driver.memory": "600m",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """On the Java that is found first: the one of the system where there is one."""
    with spark_session(SparkOptions(settings=SETTINGS)) as session:
        yield session


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With pytest-xdist, which is not needed otherwise."""
    from tests.side_by_side import SideBySide  # noqa: PLC0415

    return SideBySide(config, log)
