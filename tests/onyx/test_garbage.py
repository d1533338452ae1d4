"""What has survived is left alone, and looked at again when it has become twice as much."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator, Mapping

import pytest

from onyx import garbage
from onyx.garbage import leave_survivors_alone


class Ring:
    """A cycle: no reference count ever frees it."""

    def __init__(self) -> None:
        self.ring = self


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """As in a process of its own, and then as it was before (tests/conftest.py)."""
    callbacks, thresholds = list(gc.callbacks), gc.get_threshold()
    gc.unfreeze()
    yield
    gc.callbacks[:] = callbacks
    gc.set_threshold(*thresholds)
    gc.freeze()


def test_a_cycle_that_is_new_is_found() -> None:
    leave_survivors_alone()
    seen = weakref.ref(Ring())
    gc.collect()
    assert seen() is None


def test_what_has_survived_is_not_looked_at_again_until_it_is_twice_as_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(garbage, "COUNTED_EVERY", 1)
    gc.collect()
    monkeypatch.setattr(garbage, "LEFT_ALONE_LEAST", len(gc.get_objects()) + 10_000)
    leave_survivors_alone()
    before = gc.get_freeze_count()
    assert before > 0
    ring = Ring()
    gc.collect()
    seen = weakref.ref(ring)
    del ring
    gc.collect()
    assert seen() is not None
    kept = [[number] for number in range(20_000)]
    gc.collect()  # they are left alone, too
    gc.collect()  # it is counted, and looked at
    assert seen() is None
    assert len(kept) == 20_000


def test_it_is_said_once() -> None:
    leave_survivors_alone()
    count = len(gc.callbacks)
    leave_survivors_alone()
    assert len(gc.callbacks) == count


def test_the_first_look_is_no_longer_than_others() -> None:
    old = [[number] for number in range(400_000)]
    leave_survivors_alone()
    new: list[list[int]] = []
    looked_at: list[int] = []

    def note(phase: str, about: Mapping[str, int]) -> None:
        if phase == "start" and about["generation"] == 2:
            looked_at.append(len(new))

    gc.callbacks.append(note)
    while not looked_at:
        new.append([len(new)])
    assert looked_at[0] < 50_000
    assert len(old) == 400_000
