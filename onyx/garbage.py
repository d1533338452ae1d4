"""Garbage: a process looks for cycles only among what is new to it.

Python's collector looks at everything that there is, now and then: 0.4 us an object, so half a
second where there are 10,000 connections or some thousand profiles, in which nobody is answered.
Nearly all that a node drops goes by its reference count (a connection leaves no cycle behind), so
what has survived is left alone from then on (``gc.freeze``).  It is looked at again when twice as
much has gathered: then something may have been left in it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

COUNTED_EVERY = 256  # collections; counting what is left alone takes a look at it
LEFT_ALONE_LEAST = 4_000_000  # objects; 40,000 connections have so many
_THRESHOLDS = (700, 10, 3)  # so that a collection has some 20,000 objects to look at


class _LeftAlone:
    """Called by the collector."""

    def __init__(self) -> None:
        self._collections = 0
        self._most = LEFT_ALONE_LEAST

    def __call__(self, phase: str, about: Mapping[str, int]) -> None:
        if about["generation"] < 2:
            return
        if phase == "start":
            self._collections += 1
            if self._collections % COUNTED_EVERY == 0 and gc.get_freeze_count() >= self._most:
                gc.unfreeze()
                self._most = 0
            return
        gc.freeze()
        if not self._most:
            self._most = max(2 * gc.get_freeze_count(), LEFT_ALONE_LEAST)


@contextmanager
def none_looked_for() -> Iterator[None]:
    """PERF: while modules are loaded, of which all is kept: 8% of a broker's start."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def leave_survivors_alone() -> None:
    """From now on, in this process; again when much has been made before anybody is there."""
    if not any(isinstance(each, _LeftAlone) for each in gc.callbacks):
        gc.set_threshold(*_THRESHOLDS)
        gc.callbacks.append(_LeftAlone())
    gc.collect()
    # The collector waits until a quarter of what it saw last has come anew: let that be nothing.
    gc.collect()
