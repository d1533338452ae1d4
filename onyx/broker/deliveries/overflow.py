"""Overflow: what is too much to keep for users who do not take it goes, the oldest first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf

from onyx.broker.deliveries.delivery_log import DeliveryLog
from onyx.broker.deliveries.mailbox import UNKNOWN_USER, Mailbox, UserBacklog
from overlay import statistics
from overlay.limits import Limits

# -------------------------------------------------------------------------------------------------
# UserBacklogs: what waits for each user of a broker, in all their mailboxes together.


BACKLOG_SHARE = 1024  # beyond the bound, so much of it goes as well: a few ms of work at once


class UserBacklogs(Mapping[str, int]):
    """``give`` a mailbox to its user, ``leave`` when it is gone.  As a mapping: the bytes that wait
    for each user who has a mailbox, looked up when they are asked for."""

    def __init__(self, bytes_max: float) -> None:
        """``bytes_max`` of one user; 0: any number."""
        self.bytes_max = bytes_max or inf
        self._users: dict[str, UserBacklog] = {}

    def __getitem__(self, user: str) -> int:
        return int(self._users[user].bytes)

    def __iter__(self) -> Iterator[str]:
        return iter(self._users)

    def __len__(self) -> int:
        return len(self._users)

    def give(self, box: Mailbox, user: str) -> None:
        if box.user is UNKNOWN_USER:
            found = self._users.get(user)
            if found is None:
                found = self._users[user] = UserBacklog(user)
            box.user = found
            found.boxes.add(box)
            found.bytes += box.backlog_bytes

    def leave(self, box: Mailbox) -> None:
        """It is empty."""
        box.user.boxes.discard(box)
        if not box.user.boxes and self._users.get(box.user.name) is box.user:
            del self._users[box.user.name]

    def shrink(self, boxes: Iterable[Mailbox], drop: Callable[[Mailbox, float], int]) -> int:
        """Where one of the users of some mailboxes has too much waiting, the oldest goes of those
        of theirs that have most; how many deliveries.

        ``drop`` what is oldest of a mailbox, down to so many bytes; how many deliveries.
        """
        dropped = 0
        for user in dict.fromkeys(box.user for box in boxes):
            excess = user.bytes - self.bytes_max
            if excess <= 0:
                continue
            excess += self.bytes_max // BACKLOG_SHARE
            fullest = sorted(user.boxes, key=lambda box: (-box.backlog_bytes, box.index))
            for box in fullest:
                before = box.backlog_bytes
                dropped += drop(box, max(before // 2, before - excess))
                excess -= before - box.backlog_bytes
                if excess <= 0:
                    break
        return dropped


# -------------------------------------------------------------------------------------------------


ROOM_SHARE = 16  # where the store is too full, at least such a part of it goes


class Overflow:
    """Each says how many deliveries had to go."""

    def __init__(
        self,
        limits: Limits,
        boxes: Mapping[str, Mailbox],
        log: DeliveryLog,
        drop: Callable[[Mailbox, int], int],
        counted: statistics.Mailboxes,
    ) -> None:
        """``drop``: a mailbox throws away all through a number; how many."""
        self.users = UserBacklogs(limits.principal_waiting_bytes_max)
        self._limits = limits
        self._boxes = boxes
        self._log = log
        self._drop = drop
        self._counted = counted

    def take_limits(self, limits: Limits) -> None:
        self._limits = limits
        self.users.bytes_max = limits.principal_waiting_bytes_max or inf

    def drop_oldest(self, box: Mailbox) -> int:
        """What is too much for a mailbox."""
        return self._drop_to(box, self._limits.delivery_backlog_bytes_max)

    def drop_of_users(self, boxes: Iterable[Mailbox]) -> int:
        """What is too much for the users of some mailboxes."""
        dropped = self.users.shrink(boxes, self._drop_to)
        self._counted.dropped_for_users += dropped
        return dropped

    def make_room(self) -> int:
        """What is too much for the store."""
        bound = self._limits.delivery_store_bytes_max
        excess = self._log.stored_bytes - bound + bound // ROOM_SHARE
        position = 0
        for position, record in self._log.records.items():  # noqa: B007 (the last is wanted)
            excess -= record.stored
            if excess <= 0:
                break
        dropped = self._drop_through(position)
        self._counted.dropped_for_room += dropped
        return dropped

    def drop_aged(self, now: int) -> int:
        """What has waited for too long at this second."""
        through = 0
        for position, record in self._log.records.items():
            if record.second > now - self._limits.delivery_age_s_max:
                break
            through = position
        dropped = self._drop_through(through) if through else 0
        self._counted.dropped_for_age += dropped
        return dropped

    def _drop_to(self, box: Mailbox, bytes_max: float) -> int:
        """The oldest of a mailbox, until so much is left."""
        through, left = 0, box.backlog_bytes
        for number, position in box.waiting(0):
            if left <= bytes_max:
                break
            left -= self._log.records[position].size
            through = number
        return self._drop(box, through) if through else 0

    def _drop_through(self, position: int) -> int:
        """All through a position, of all mailboxes."""
        dropped = 0
        for box in self._boxes.values():
            through = 0
            for number, held in box.waiting(0):
                if held > position:
                    break
                through = number
            if through:
                dropped += self._drop(box, through)
        return dropped
