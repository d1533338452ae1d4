"""Positions: how far a user is with the deliveries of each profile, kept by the user.

A broker gives a delivery again that was not acknowledged.  Whether something was done with it the
user knows better::

    position of p7: 41    what is done with delivery 42  ─┐ together, in one transaction of
                          position of p7: 42             ─┘ the user; then 42 is acknowledged

In a next run, with positions, what is at or below them is not given again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, Self, TypeAlias

from onyx.own_store import open_own
from onyx.store_errors import store_errors
from overlay.link.events import Put
from overlay.link.tables import Table

POSITIONS = Table("position", int)


class Positions(Protocol):
    """Where positions are kept; of what one ``save`` has returned of the next run has to know."""

    def load(self, profile: str) -> int:
        """The position of the last delivery of a profile that is done; 0: there is none."""

    def save(self, profile: str, position: int) -> None:
        """One is done."""


PositionOf: TypeAlias = Callable[[str], int]
"""``load`` alone, of who keeps positions in transactions of their own (``Delivery.position``)."""


def load_and_save(
    positions: Positions | PositionOf | None,
) -> tuple[PositionOf, Callable[[str, int], None] | None]:
    """How positions are asked for, and how saved, if that is wanted."""
    if positions is None:
        return lambda profile: 0, None
    if callable(positions):
        return positions, None
    return positions.load, positions.save


class PositionFile:
    """Positions in a file, each on the disk when it is saved; a context manager that closes it.

    It knows of a delivery when the next is asked for.  So what is done with one has to bear being
    done twice if the process dies in between, as a file that is written anew under the same name.
    """

    def __init__(self, path: Path | str) -> None:
        """StoreUnusable if another process has it, or it is of something else."""
        self._store, self._positions = open_own(path, POSITIONS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def load(self, profile: str) -> int:
        return self._positions.get(profile, 0)

    def save(self, profile: str, position: int) -> None:
        with store_errors():
            self._store.commit([Put(POSITIONS.space, profile, POSITIONS.pack(position))])
        self._positions[profile] = position

    def close(self) -> None:
        self._store.close()
