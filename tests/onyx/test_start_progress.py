"""A network that starts is given up for standing still, not for having much to do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.testing

from onyx.child_process import RestartPolicy
from onyx.errors import LaunchError
from onyx.launcher import _wait_all_ready
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Table

START_SECONDS = RestartPolicy().start_seconds


class Starting:
    """A child as the launcher sees it."""

    def __init__(self, node_id: str) -> None:
        self.node_id = node_id
        self.state = "starting"
        self.came_further_at = trio.current_time()
        self.last_lines = ["the last line"]
        self._ready = trio.Event()

    async def wait_ready(self) -> None:
        await self._ready.wait()

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
    assert trio.current_time() - begun == 3 * (START_SECONDS - 1) + START_SECONDS


def test_rows_that_take_long_are_counted() -> None:
    said: list[tuple[int, int]] = []
    few = [("few", str(number), b"\x07") for number in range(10)]
    many = [("many", f"{number:05}", b"\x08") for number in range(2_500)]
    rows = StoredRows([*many, *few], lambda taken, total: said.append((taken, total)))
    assert len(list(rows.take(Table("few", int)))) == 10
    assert list(rows.take(Table("many", int))) == [(key, 8) for _, key, _ in many]
    assert said == [(0, 2_510), (1_000, 2_510), (2_000, 2_510)]
