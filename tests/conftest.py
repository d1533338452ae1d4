"""Spark sessions, which files share one after the other; how ``pytest -n`` and
``pytest --fast`` share and choose tests; the garbage collector leaves the suite itself alone."""

from __future__ import annotations

import gc
import locale
import math
import signal
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from registration.spark.session import SparkOptions, spark_session
from tests.forked import forked_starts
from tests.layers import FAST_SEEDS, OWN_SEEDS, SEEDS, Seeds, is_slow, is_slow_place, no_processes
from tests.postgres import Postgres, running_postgres

LOCALE = locale.setlocale(locale.LC_ALL)

# A shell in the background starts processes that ignore Ctrl-C, and so do all that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Networks of tests are noted where only tests find them, also in processes that they start."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        monkeypatch.delenv("ONYX_CREDENTIALS", raising=False)
        yield


@pytest.fixture(autouse=True, scope="session")
def starts(request: pytest.FixtureRequest, own_state: None) -> Iterator[None]:
    """Processes of Onyx are forked, but for a campaign, which starts them as users do."""
    with nullcontext() if request.config.option.seeds == 0 else forked_starts():
        yield


@pytest.fixture(autouse=True)
def same_locale() -> Iterator[None]:
    """No test changes the locale of its process (Saxon does): the next ones would be given it."""
    yield
    assert locale.setlocale(locale.LC_ALL) == LOCALE


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


class Sessions:
    """The session of this process, kept as long as tests need one with the same options."""

    def __init__(self, kept: ExitStack) -> None:
        self._kept = kept
        self._options: SparkOptions | None = None
        self._session: Any = None

    def of(self, options: SparkOptions) -> Any:
        if options != self._options:
            self._kept.close()
            self._options = None
            self._session = self._kept.enter_context(spark_session(options))
            self._options = options
        return self._session


@pytest.fixture(scope="session")
def sessions() -> Iterator[Sessions]:
    with ExitStack() as kept:
        yield Sessions(kept)


@pytest.fixture(scope="module")
def spark(sessions: Sessions) -> Any:
    """On the Java that is found: ``make`` has an archive of Spark's classes for that one."""
    return sessions.of(SparkOptions(settings=SETTINGS))


@pytest.fixture(scope="module")
def query_spark(sessions: Sessions) -> Any:
    """A provider's, with slots for several fragments."""
    from registration.spark.fragment_job import STATIC_SETTINGS  # noqa: PLC0415 - takes long

    return sessions.of(SparkOptions("local[4]", STATIC_SETTINGS))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With pytest-xdist, which is not needed otherwise."""
    from tests.side_by_side import SideBySide  # noqa: PLC0415

    return SideBySide(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fast", action="store_true", help="the fast layer only (tests/layers.py)")
    parser.addoption(
        "--seeds", type=int, metavar="N", help="of tests with seeds the first N each; 0: all"
    )


def pytest_configure() -> None:
    """Modules and tests are kept: the collector would look at them in vain, again and again."""
    gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """PERF: of a fresh clone each process that shares the tests prepares some modules, and finds
    the others done; else all would write the same ones at the same time."""
    config = session.config
    worker: Any = getattr(config, "workerinput", None)
    if worker is None or config.option.fast or config.args != config.getini("testpaths"):
        return
    files = sorted((config.rootpath / "tests").rglob("test_*.py"))
    for path in files[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
        with suppress(Exception, pytest.skip.Exception):  # it is told where it is collected
            import_module(".".join(path.relative_to(config.rootpath).with_suffix("").parts))


def pytest_collection_finish() -> None:
    """PERF: looking at all tests again and again takes a quarter of the time of most of them."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What is slow is not even imported."""
    if not config.option.fast or not collection_path.is_relative_to(config.rootpath):
        return None
    return is_slow_place(collection_path.relative_to(config.rootpath).as_posix()) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in filter(is_slow, items):
        item.add_marker("slow")
    is_fast, count = config.option.fast, config.option.seeds
    wanted = [each for each in items if not (is_fast and each.get_closest_marker("slow"))]
    if count is None:
        seeds = Seeds(FAST_SEEDS if is_fast else SEEDS)
        wanted = [each for each in wanted if each.nodeid.startswith(OWN_SEEDS) or seeds.takes(each)]
    elif count:
        wanted = list(filter(Seeds(count).takes, wanted))
    config.hook.pytest_deselected(items=list(set(items).difference(wanted)))
    if hasattr(config, "workerinput"):
        from tests.side_by_side import longest_first  # noqa: PLC0415

        longest_first(wanted)
    items[:] = wanted


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    with no_processes() if item.config.option.fast else nullcontext():
        return (yield)
