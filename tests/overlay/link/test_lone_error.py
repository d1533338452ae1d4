"""lone_error: the error that a nursery's group is about."""

from __future__ import annotations

import pytest
import trio

from overlay.link.lone_error import lone_error


async def a_time_that_is_over_as_well() -> None:
    """A block fails while both it and the task beside it are cancelled from outside."""
    with trio.CancelScope() as outside:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            await trio.lowlevel.checkpoint()
            outside.cancel()
            raise ValueError("no answer")


async def test_who_was_cancelled_beside_it_does_not_count() -> None:
    with pytest.raises(BaseExceptionGroup) as caught:
        await a_time_that_is_over_as_well()
    assert repr(lone_error(caught.value)) == "ValueError('no answer')"


def test_a_group_of_several_stays_one() -> None:
    group = ExceptionGroup("", [ValueError(), KeyError()])
    assert lone_error(group) is group


def test_groups_in_groups_are_opened() -> None:
    error = ValueError()
    assert lone_error(ExceptionGroup("", [ExceptionGroup("", [error])])) is error
    assert lone_error(error) is error
