"""Line: one connection of a user, with the mailboxes in its slots and what is on the wire."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from onyx.broker.deliveries.mailbox import Mailbox, Sharer

Taker: TypeAlias = Mailbox | Sharer
"""What is in a slot."""


@dataclass(slots=True, eq=False)
class Line:
    """A connection with the mailboxes in its slots.

    ``queue`` is a heap of (position, slot), and so is ``held``, where each slot is once, with
    whether it still waits until there is room on the wire: ``waits``.  What is there: of each
    position its bytes, and in how many slots it is not taken; it counts until it is taken in all.
    ``gone``: by slot what has left a mailbox while it was on the wire, with its last number.
    """

    connection: int
    frame_bytes_max: int
    boxes: dict[int, Taker] = field(default_factory=dict)
    queue: list[tuple[int, int]] = field(default_factory=list)
    held: list[tuple[int, int]] = field(default_factory=list)
    waits: dict[int, bool] = field(default_factory=dict)
    on_wire: dict[int, list[int]] = field(default_factory=dict)
    on_wire_bytes: int = 0
    gone: dict[int, tuple[int, list[int]]] = field(default_factory=dict)
    frames: list[bytes] = field(default_factory=list)  # that leave together, and their bytes
    frames_bytes: int = 0
