"""UserBacklogs: what waits for each user of a broker, in all their mailboxes together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf

from onyx.broker.deliveries.mailbox import UNKNOWN_USER, Mailbox, UserBacklog

ROOM_SHARE = 1024  # beyond the bound, so much of it goes as well: a few ms of work at once


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
            excess += self.bytes_max // ROOM_SHARE
            fullest = sorted(user.boxes, key=lambda box: (-box.backlog_bytes, box.index))
            for box in fullest:
                before = box.backlog_bytes
                dropped += drop(box, max(before // 2, before - excess))
                excess -= before - box.backlog_bytes
                if excess <= 0:
                    break
        return dropped
