"""A core that falls over lives again, in the same process, without what has felled it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
import trio

from onyx.child_process import RestartPolicy
from onyx.node_process import CAUTIOUS_TURNS, Death, run_lives
from overlay.backoff import Backoff
from overlay.link.dead_letters import DEAD
from overlay.link.events import Delete, Put
from overlay.link.suspect import CoreFailed, Suspect

POISON = Suspect("abc", "request 'x' of client/c", "client/c", b"poison")


class Store:
    def __init__(self) -> None:
        self.rows: dict[str, bytes] = {}

    def commit(self, changes: Iterable[Put | Delete]) -> None:
        for change in changes:
            assert isinstance(change, Put) and change.space == DEAD.space
            self.rows[change.key] = change.value

    def read(self, space: str, first: str, last: str) -> tuple[tuple[str, bytes], ...]:
        raise NotImplementedError


class Lives:
    """Each ends as the list says, in a group as nurseries make them; None: when it is told to."""

    def __init__(self, *ends: BaseException | None) -> None:
        self.cautions: list[int] = []
        self.began: list[float] = []
        self._ends = list(ends)

    async def __call__(self, caution: int) -> None:
        self.cautions.append(caution)
        self.began.append(trio.current_time())
        await trio.lowlevel.checkpoint()
        end = self._ends.pop(0)
        if end is not None:
            try:
                raise ZeroDivisionError
            except ZeroDivisionError as cause:
                end.__cause__ = cause
                raise BaseExceptionGroup("of a nursery", [end]) from None


async def test_the_input_is_kept_aside_and_the_pauses_grow(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    lives, store = Lives(CoreFailed(POISON), CoreFailed(POISON), None), Store()
    await run_lives(lives, store, RestartPolicy(delay=Backoff(1.0, 30.0)), lambda: 7.0)
    assert lives.cautions == [0, 0, 0]
    assert [
        after - before for before, after in zip(lives.began, lives.began[1:], strict=False)
    ] == [
        1.0,
        2.0,
    ]
    letter = DEAD.read("abc", store.rows["abc"])
    assert (letter.at, letter.what, letter.data) == (7.0, POISON.what, b"poison")
    assert "ZeroDivisionError" in letter.trace
    assert "abc: failed at request 'x' of client/c" in caplog.text
    assert "Traceback" in caplog.text


async def test_what_the_process_before_died_of_is_kept_aside(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    lives, store = Lives(None), Store()
    death = Death("attach from subscriber/p1 (abc)", "Fatal Python error", is_vague=False)
    await run_lives(lives, store, RestartPolicy(), lambda: 7.0, death)
    assert lives.cautions == [0]
    ((name, row),) = store.rows.items()
    letter = DEAD.read(name, row)
    assert (letter.what, letter.error) == (death.at, "ProcessDied: Fatal Python error")
    assert (letter.has_ended, letter.size) == (True, 0)
    assert f"{name}: died at attach from subscriber/p1 (abc)" in caplog.text


@pytest.mark.parametrize(("is_vague", "caution"), [(False, 0), (True, CAUTIOUS_TURNS)])
async def test_of_what_it_died_is_not_known_after_one_death(
    autojump_clock: trio.testing.MockClock, is_vague: bool, caution: int
) -> None:
    lives, store = Lives(None), Store()
    await run_lives(lives, store, RestartPolicy(), lambda: 7.0, Death("it", "", is_vague))
    assert (lives.cautions, store.rows) == ([caution], {})


async def test_a_life_after_a_failure_at_nothing_known_is_cautious(
    autojump_clock: trio.testing.MockClock,
) -> None:
    lives, store = Lives(CoreFailed(None), CoreFailed(POISON), None), Store()
    await run_lives(lives, store, RestartPolicy())
    assert lives.cautions == [0, CAUTIOUS_TURNS, 0]
    assert set(store.rows) == {"abc"}


@pytest.mark.parametrize("last", [CoreFailed(None), OSError("the disk is full")])
async def test_what_caution_does_not_find_and_what_no_input_has_done_ends_the_process(
    autojump_clock: trio.testing.MockClock, last: Exception
) -> None:
    lives = Lives(CoreFailed(None), last)
    with pytest.raises(BaseExceptionGroup) as caught:
        await run_lives(lives, Store(), RestartPolicy())
    assert caught.value.exceptions == (last,)
