"""Subscription: the deliveries of any number of profiles, as their user takes them, without I/O.

The other end of it is a broker's mailboxes (onyx/broker/deliveries)::

    attach("p7") ──> attachments() ──> broker
    arrived(Deliveries) ──> what is new, by profile
    take(...) ──> taken() ──> broker                one frame for all that was taken meanwhile

What has come is remembered by its number, so that over a new connection nothing comes twice; what
was not taken when the process ended comes again in its next run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from overlay.link.delivery_frames import (
    SLOTS_MAX,
    Attach,
    Deliveries,
    Detached,
    Missed,
    Taken,
    columns,
    packed_numbers,
    packed_slots,
)
from overlay.link.errors import ProtocolError


@dataclass(slots=True, eq=False)
class Attachment:
    """One profile: ``last`` is the number of its last delivery that has come or will not,
    ``arrived`` of the last one that has, ``processed`` of the last one that was taken; ``lost``:
    how many were thrown away before they came."""

    slot: int
    profile: str
    last: int = 0
    arrived: int = 0
    processed: int = 0
    lost: int = 0


class Subscription:
    """``duplicates`` counts deliveries that came once more."""

    def __init__(self) -> None:
        self.duplicates = 0
        self._slots = 0
        self._attached: dict[int, Attachment] = {}
        self._taken: dict[int, Attachment] = {}

    def attach(self, profile: str, received: int = 0) -> Attachment:
        """One profile more, of which all through ``received`` was taken; to be told."""
        self._slots += 1
        made = Attachment(self._slots, profile, received, received, received)
        self._attached[made.slot] = made
        return made

    def detach(self, attachment: Attachment) -> None:
        """What comes for it is passed over from now on."""
        self._attached.pop(attachment.slot, None)
        self._taken.pop(attachment.slot, None)

    def detached(self, frame: Detached) -> Attachment | None:
        """The broker ends a slot; None for one that is over already."""
        attachment = self._attached.get(frame.slot)
        if attachment is not None:
            self.detach(attachment)
        return attachment

    def attachments(self) -> Iterator[Attach]:
        """For a new connection: all profiles, and what was taken of them."""
        entries = [(each.slot, each.profile, each.processed) for each in self._attached.values()]
        self._taken.clear()
        for first in range(0, len(entries), SLOTS_MAX):
            yield Attach(entries[first : first + SLOTS_MAX])

    def arrived(self, frame: Deliveries) -> Iterator[tuple[Attachment, int]]:
        """The profiles for which a delivery is new, with its number there; a gap is a fatal
        ProtocolError."""
        for slot, number in columns(frame):
            attachment = self._attached.get(slot)
            if attachment is None:
                continue
            if number <= attachment.last:
                self.duplicates += 1
                continue
            if number != attachment.last + 1:
                raise ProtocolError(
                    "not-expected",
                    f"delivery {number} of {attachment.profile!r} after {attachment.last}",
                    fatal=True,
                )
            attachment.last = attachment.arrived = number
            yield attachment, number

    def missed(self, frame: Missed) -> int:
        """Deliveries will not come; how many of them are missed for good."""
        attachment = self._attached.get(frame.slot)
        if attachment is None or frame.through <= attachment.last:
            return 0
        lost = min(frame.lost, frame.through - attachment.last)
        if attachment.processed == attachment.last:
            self.take(attachment, frame.through)
        attachment.last = frame.through
        attachment.lost += lost
        return lost

    def take(self, attachment: Attachment, number: int) -> None:
        """All deliveries of a profile through a number are done, and what will not come behind."""
        if number == attachment.arrived:
            number = attachment.last
        if number > attachment.processed:
            attachment.processed = number
            if attachment.slot in self._attached:
                self._taken[attachment.slot] = attachment

    def taken(self) -> Iterator[Taken]:
        """What was taken since the last time."""
        entries = list(self._taken.values())
        self._taken.clear()
        for first in range(0, len(entries), SLOTS_MAX):
            part = entries[first : first + SLOTS_MAX]
            yield Taken(
                packed_slots([each.slot for each in part]),
                packed_numbers([each.processed for each in part]),
            )
