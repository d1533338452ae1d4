"""Subscription: the deliveries of any number of profiles, as their user takes them, without I/O.

The other end of it is a broker's mailboxes (onyx/broker/deliveries)::

    attach("p7") ──> attachments() ──> broker
    arrived(Deliveries) ──> what is new, by profile
    take(...) ──> taken() ──> broker                one frame for all that was taken meanwhile

What has come is remembered by its number, so that over a new connection nothing comes twice; what
was not taken when the process ended comes again in its next run.

Of a profile that is shared any numbers come, and each is taken by itself.  With a connection the
broker gives what was not taken to others: of that nothing is handed on any more but what its user
has begun with.  What they have taken is said once more over the next connection, for what was said
last may have been lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from overlay.link.errors import ProtocolError
from overlay.link.frames import (
    SHARED,
    SLOTS_MAX,
    Attach,
    Deliveries,
    Detached,
    Missed,
    Rejected,
    Taken,
    columns,
    packed_numbers,
    packed_slots,
)
from overlay.link.limits import WINDOW_FRAMES_CEILING

REASON_BYTES_MAX = 1_024  # of why something was rejected


@dataclass(slots=True, eq=False)
class Attachment:
    """One profile: ``last`` is the number of its last delivery that has come or will not,
    ``arrived`` of the last one that has, ``processed`` of the last one that was taken; ``lost``:
    how many were thrown away before they came.  ``shared``: what is known where it is shared."""

    slot: int
    profile: str
    mode: int = 0
    last: int = 0
    arrived: int = 0
    processed: int = 0
    lost: int = 0
    shared: Shared | None = None


@dataclass(slots=True)
class Shared:
    """``here``: numbers that have come and are not taken; ``taken``: the last that were, as many as
    a broker may not know of."""

    here: set[int] = field(default_factory=set)
    taken: dict[int, None] = field(default_factory=dict)

    def take(self, number: int) -> bool:
        """Whether it was not taken before."""
        self.here.discard(number)
        if number in self.taken:
            return False
        self.taken[number] = None
        if len(self.taken) > WINDOW_FRAMES_CEILING:
            del self.taken[next(iter(self.taken))]
        return True


class Subscription:
    """``duplicates`` counts deliveries that came once more."""

    def __init__(self) -> None:
        self.duplicates = 0
        self._slots = 0
        self._attached: dict[int, Attachment] = {}
        self._taken: dict[int, Attachment] = {}
        self._taken_singly: list[tuple[int, int]] = []  # (slot, number) of shared ones

    def attach(
        self, profile: str, received: int = 0, mode: int = 0, shared: Shared | None = None
    ) -> Attachment:
        """One profile more, of which all through ``received`` was taken; to be told.

        One that is ``shared`` goes on with what is known of it from before.
        """
        self._slots += 1
        made = Attachment(self._slots, profile, mode, received, received, received)
        if mode & SHARED:
            made.shared = shared or Shared()
        self._attached[made.slot] = made
        return made

    def told(self, attachments: Iterable[Attachment]) -> Iterator[Attach | Taken]:
        """What is said of new attachments, or over a new connection."""
        entries, singly = [], []
        for each in attachments:
            if each.shared is None:
                entries.append((each.slot, each.profile, each.processed, each.mode))
            else:
                entries.append((each.slot, each.profile, each.last, each.mode))
                singly += [(each.slot, number) for number in each.shared.taken]
        for first in range(0, len(entries), SLOTS_MAX):
            yield Attach(entries[first : first + SLOTS_MAX])
        yield from _frames(singly)

    def give_back(self, attachment: Attachment, numbers: Iterable[int]) -> None:
        """Somebody else may get what has come here and was not begun with."""
        assert attachment.shared is not None
        attachment.shared.here.difference_update(numbers)

    def reject(self, attachment: Attachment, number: int, reason: str) -> Rejected | None:
        """One of a profile that is shared is to come again, here or at somebody else; what is to be
        said, nothing where it is given to others anyway."""
        assert attachment.shared is not None
        attachment.shared.here.discard(number)
        if attachment.slot not in self._attached:
            return None
        cut = reason.encode()[:REASON_BYTES_MAX].decode(errors="ignore")
        return Rejected(attachment.slot, number, cut)

    def detach(self, attachment: Attachment) -> None:
        """What comes for it is passed over from now on."""
        self._attached.pop(attachment.slot, None)
        self._taken.pop(attachment.slot, None)
        self._taken_singly = [each for each in self._taken_singly if each[0] != attachment.slot]

    def detached(self, frame: Detached) -> Attachment | None:
        """The broker ends a slot; None for one that is over already."""
        attachment = self._attached.get(frame.slot)
        if attachment is not None:
            self.detach(attachment)
        return attachment

    def attachments(self) -> Iterator[Attach | Taken]:
        """For a new connection: all profiles, and what was taken of them."""
        self._taken.clear()
        self._taken_singly.clear()
        yield from self.told(self._attached.values())

    def arrived(self, frame: Deliveries) -> Iterator[tuple[Attachment, int]]:
        """The profiles for which a delivery is new, with its number there; a gap is a fatal
        ProtocolError."""
        for slot, number in columns(frame):
            if (attachment := self.arrives(slot, number)) is not None:
                yield attachment, number

    def arrives(self, slot: int, number: int) -> Attachment | None:
        """The same of one; None: it is not new."""
        attachment = self._attached.get(slot)
        if attachment is None:
            return None
        if attachment.shared is not None:
            is_new = self._arrives_shared(attachment, attachment.shared, number)
            return attachment if is_new else None
        if number <= attachment.last:
            self.duplicates += 1
            return None
        if number != attachment.last + 1:
            raise ProtocolError(
                "not-expected",
                f"delivery {number} of {attachment.profile!r} after {attachment.last}",
                fatal=True,
            )
        attachment.last = attachment.arrived = number
        return attachment

    def _arrives_shared(self, attachment: Attachment, shared: Shared, number: int) -> bool:
        """Whether one of a shared profile is new."""
        attachment.last = max(attachment.last, number)
        if number in shared.taken:
            self._taken_singly.append((attachment.slot, number))
        elif number not in shared.here:
            shared.here.add(number)
            return True
        self.duplicates += 1
        return False

    def missed(self, frame: Missed) -> int:
        """Deliveries will not come; how many of them are missed for good."""
        attachment = self._attached.get(frame.slot)
        if attachment is not None and attachment.shared is not None:
            attachment.lost += frame.lost
            if not frame.lost:
                self.take(attachment, frame.through)
            return frame.lost
        if attachment is None or frame.through <= attachment.last:
            return 0
        lost = min(frame.lost, frame.through - attachment.last)
        if attachment.processed == attachment.last:
            self.take(attachment, frame.through)
        attachment.last = frame.through
        attachment.lost += lost
        return lost

    def take(self, attachment: Attachment, number: int) -> None:
        """All deliveries of a profile through a number are done, and what will not come behind; of
        one that is shared, this one."""
        if attachment.shared is not None:
            attachment.processed += attachment.shared.take(number)
            if attachment.slot in self._attached:
                self._taken_singly.append((attachment.slot, number))
            return
        if number == attachment.arrived:
            number = attachment.last
        if number > attachment.processed:
            attachment.processed = number
            if attachment.slot in self._attached:
                self._taken[attachment.slot] = attachment

    def taken(self) -> Iterator[Taken]:
        """What was taken since the last time."""
        entries = [(each.slot, each.processed) for each in self._taken.values()]
        entries += self._taken_singly
        self._taken.clear()
        self._taken_singly.clear()
        yield from _frames(entries)


def _frames(entries: list[tuple[int, int]]) -> Iterator[Taken]:
    for first in range(0, len(entries), SLOTS_MAX):
        part = entries[first : first + SLOTS_MAX]
        yield Taken(
            packed_slots([slot for slot, _ in part]), packed_numbers([number for _, number in part])
        )
