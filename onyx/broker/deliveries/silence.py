"""Silence: ephemeral mailboxes that nobody takes, and that keep nothing therefore.

One whose user was sent to another broker is kept for a while, here as there: they come soon.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from onyx.broker.deliveries.delivery_log import Results
from onyx.broker.deliveries.mailbox import Mailbox
from overlay.link.frames import Ephemeral

Given: TypeAlias = tuple[list[Mailbox], Results | None]
"""Mailboxes that get the same, and what; None: it is made when it is taken."""

AWAITED_TICKS = 60  # seconds in which one who was sent elsewhere gets there


class Silence:
    """``boxes`` are silent."""

    def __init__(self, empty: Callable[[Mailbox], None]) -> None:
        """``empty`` forgets what is in a mailbox."""
        self.boxes: set[Mailbox] = set()
        self._awaited: dict[Mailbox, int] = {}  # ticks until they are silent, too
        self._empty = empty

    def begin(self, boxes: Iterable[Mailbox]) -> None:
        """Nobody takes some mailboxes any more."""
        for box in boxes:
            self._awaited.pop(box, None)
            self.boxes.add(box)
            if box.count or box.lost:
                self._empty(box)

    def wait(self, boxes: Iterable[Mailbox]) -> None:
        """Somebody comes soon to take them, here or elsewhere."""
        for box in boxes:
            self._awaited[box] = AWAITED_TICKS

    def end(self, box: Mailbox) -> None:
        """Somebody takes a mailbox, or it is gone."""
        self.boxes.discard(box)
        self._awaited.pop(box, None)

    def tick(self) -> None:
        """A second later."""
        for box in list(self._awaited):
            self._awaited[box] -= 1
            if not self._awaited[box]:
                self.begin([box])

    def state(self, box: Mailbox) -> Ephemeral:
        if not box.is_ephemeral:
            return Ephemeral.NOT
        return Ephemeral.SILENT if box in self.boxes else Ephemeral.TAKEN

    def take_over(self, box: Mailbox, state: Ephemeral) -> None:
        """What it was at another broker."""
        box.is_ephemeral = state is not Ephemeral.NOT
        if state is Ephemeral.TAKEN:
            self.wait([box])
        elif state is Ephemeral.SILENT:
            self.begin([box])

    def heard(self, given: list[Given]) -> list[Given]:
        """What a message gives, without what silent mailboxes would get."""
        heard = [([box for box in boxes if box not in self.boxes], made) for boxes, made in given]
        return [(boxes, made) for boxes, made in heard if boxes]
