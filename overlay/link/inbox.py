"""Inbox: where the deliveries of one profile arrive; any number of them share one queue."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from overlay.link.client_limits import RemoteError
from overlay.link.client_stream import ANYIO
from overlay.link.frames import Deliveries
from overlay.link.loop import Latch, Loop
from overlay.link.subscription import Attachment

CHECKPOINT_EVERY = 16  # arrivals that were there already, or messages that are published


class Arrived(NamedTuple):
    """A delivery with its number in the inbox; to be given to ``acknowledge`` when it is done."""

    inbox: Inbox
    number: int
    frame: Deliveries


@dataclass(slots=True, eq=False)
class Inbox:
    """``ended``: why nothing comes any more."""

    attachment: Attachment
    queue: InboxQueue
    ended: RemoteError | None = None

    @property
    def profile(self) -> str:
        return self.attachment.profile

    @property
    def processed(self) -> int:
        """How many deliveries were acknowledged, of all that there ever were."""
        return self.attachment.processed

    @property
    def lost(self) -> int:
        """How many were thrown away because nobody took them."""
        return self.attachment.lost

    def end(self, error: RemoteError) -> None:
        if self.ended is None:
            self.ended = error
            self.queue.put_news(self)


@dataclass(slots=True, eq=False)
class InboxQueue:
    """What has arrived in some inboxes, in order; then those that have ended, or miss something.
    ``loop`` is that of whoever waits."""

    loop: Loop = ANYIO
    _arrived: deque[Arrived] = field(default_factory=deque)
    _news: dict[int, Inbox] = field(default_factory=dict)  # by id
    _changed: Latch | None = None  # as long as somebody waits for it
    _given_at_once: int = 0

    def put(self, arrived: Arrived) -> None:
        self._arrived.append(arrived)
        if self._changed is not None:
            self._changed.set()

    def put_news(self, inbox: Inbox) -> None:
        self._news[id(inbox)] = inbox
        if self._changed is not None:
            self._changed.set()

    def take_back(self, inbox: Inbox) -> list[int]:
        """What has arrived in an inbox is not to be handed out; the numbers of it."""
        numbers = [arrived.number for arrived in self._arrived if arrived.inbox is inbox]
        self._arrived = deque(arrived for arrived in self._arrived if arrived.inbox is not inbox)
        return numbers

    def next_nowait(self) -> Arrived | Inbox | None:
        """The next arrival; where there is none an inbox that has ended, or misses something."""
        if self._arrived:
            return self._arrived.popleft()
        return self._news.pop(next(iter(self._news))) if self._news else None

    def more(self, most: int) -> list[Arrived]:
        """The next arrivals that are there, so many at most."""
        return [self._arrived.popleft() for _ in range(min(most, len(self._arrived)))]

    async def next(self) -> Arrived | Inbox:
        """The same, when there is one."""
        # PERF: a turn of the scheduler for each delivery costs more than the delivery.
        self._given_at_once += 1
        if self._given_at_once >= CHECKPOINT_EVERY:
            self._given_at_once = 0
            await self.loop.checkpoint()
        while (found := self.next_nowait()) is None:
            self._changed = self.loop.event()
            await self._changed.wait()
        return found
