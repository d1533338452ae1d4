"""A network that starts is given up for standing still, not for having much to do."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio
import trio.testing

from onyx.child_process import ChildProcess, RestartPolicy
from onyx.errors import LaunchError
from onyx.launcher import _wait_all_ready
from onyx.start_progress import StartProgress
from overlay.link.made_aside import made_aside
from overlay.link.stored_rows import Progress, StoredRows
from overlay.link.tables import Table

START_SECONDS = RestartPolicy().start_seconds


class Starting:
    """A child as the launcher sees it."""

    def __init__(self, node_id: str) -> None:
        self.node_id = node_id
        self.state = "starting"
        self.came_further_at = trio.current_time()
        self.last_lines = ["the last line"]
        self.share = 0.0  # of the processor
        self._ready = trio.Event()

    async def wait_ready(self) -> None:
        await self._ready.wait()

    def worked_seconds(self) -> float:
        return self.share * trio.current_time()

    async def come_further(self, times: int, ready: bool) -> None:
        for _ in range(times):
            await trio.sleep(START_SECONDS - 1)
            self.came_further_at = trio.current_time()
        if ready:
            self.state = "ready"
            self._ready.set()


async def wait(*starting: Starting) -> None:
    children: Any = list(starting)
    await _wait_all_ready(children, RestartPolicy())


async def test_progress_of_one_is_patience_for_all(autojump_clock: trio.testing.MockClock) -> None:
    slow, waiting = Starting("B1"), Starting("B2")

    async def both() -> None:
        await slow.come_further(5, ready=True)
        await waiting.come_further(1, ready=True)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(both)
        await wait(waiting, slow)
    assert trio.current_time() >= 6 * (START_SECONDS - 1)


async def test_who_stands_still_is_given_up(autojump_clock: trio.testing.MockClock) -> None:
    begun = trio.current_time()
    stuck, fine = Starting("B1"), Starting("B2")
    tasks: list[Callable[[], Awaitable[None]]] = [
        lambda: fine.come_further(1, ready=True),
        lambda: stuck.come_further(3, ready=False),
    ]
    async with trio.open_nursery() as nursery:
        for task in tasks:
            nursery.start_soon(task)
        with pytest.raises(LaunchError, match=r"without progress not ready: B1; .*\n.*last line"):
            await wait(stuck, fine)
    waited = 3 * (START_SECONDS - 1) + START_SECONDS
    assert trio.current_time() - begun == pytest.approx(waited)


@pytest.mark.parametrize(("share", "times"), [(0.001, 1), (0.1, 10), (1.0, 1)])
async def test_a_slow_machine_has_more_patience(
    share: float, times: float, autojump_clock: trio.testing.MockClock
) -> None:
    begun = trio.current_time()
    idle, works = Starting("B1"), Starting("B2")
    works.share = share
    with pytest.raises(LaunchError, match="without progress not ready: B1, B2"):
        await wait(idle, works)
    assert trio.current_time() - begun == pytest.approx(times * START_SECONDS, abs=1.5)


def test_a_process_has_worked() -> None:
    child = ChildProcess("B1", Path(), (), 0, None, RestartPolicy(), lambda *_: None, print)
    assert child.worked_seconds() == 0
    begun = time.process_time()
    while time.process_time() < begun + 0.02:
        pass
    child._process = cast(trio.Process, SimpleNamespace(pid=os.getpid()))
    assert 0 < child.worked_seconds() <= time.process_time() + 0.02


def test_rows_that_take_long_are_counted() -> None:
    said: list[tuple[str, int, int]] = []
    few = [("few", str(number), b"\x07") for number in range(10)]
    many = [("many", f"{number:05}", b"\x08") for number in range(2_500)]
    rows = StoredRows([*many, *few], lambda *far: said.append(far))
    assert len(list(rows.take(Table("few", int)))) == 10
    assert list(rows.take(Table("many", int))) == [(key, 8) for _, key, _ in many]
    assert list(rows.counted("profiles", range(3), 3)) == [0, 1, 2]
    assert said == [
        *(("read", count, 0) for count in (0, 1_000, 2_000)),
        *(("restored", count, 2_510) for count in (0, 1_000, 2_000)),
        ("profiles", 0, 3),
    ]


def test_how_far_a_start_is_is_said() -> None:
    came = StartProgress()
    came.note("read", 12_000, 0)
    assert str(came) == "12,000 rows of its store are read"
    came.note("restored", 11_000, 12_000)
    came.note("profiles", 9_000, 10_000)
    came.note("of-a-later-release", 1, 2)
    assert str(came) == "11,000 of 12,000 rows are restored, 9,000 of 10,000 profiles are installed"


async def test_whoever_makes_a_core_leaves_off_when_it_is_told_to() -> None:
    came: list[int] = []

    def make(progress: Progress) -> None:
        for number in itertools.count():
            progress("restored", number, 0)

    with trio.CancelScope() as scope:

        def come_further(what: str, done: int, total: int) -> None:
            came.append(done)
            if done == 3:
                trio.from_thread.run_sync(scope.cancel)

        await made_aside(make, come_further)
    assert scope.cancelled_caught
    assert came == [0, 1, 2, 3]
