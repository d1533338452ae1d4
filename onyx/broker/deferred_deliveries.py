"""DeferredDeliveries: messages that were sent on and are still to meet the local profiles.

The paper's fast path (section 4.3.1): a message is forwarded before any local profile is looked
at.  For that to be felt on the wire, what a message means for the links is committed and leaves
first, and what it means for users is worked out in a second call (``events.CallAgain``)::

    first call    Message to children (outbox) + this row + what was received (inbox)   one commit
    second call   results for users (delivery) + this row deleted                       one commit

So a crash in between loses nothing and doubles nothing: the row is found again, and only local
profiles are looked at.  Before anything but a message is handled, all that is deferred is done:
so a message meets the profiles that there were when it came.  What comes behind a deferred message
is deferred too, so that deliveries keep the order of their messages.

At most the messages of one batch of events wait here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

from onyx.broker.deliveries.delivery_log import Results
from onyx.broker.deliveries.mailbox import Mailbox
from onyx.broker.packing.parcel import Parcel
from overlay.link.row_log import RowLog, number_key, read_record

DEFERRED_SPACE = "deferred"


class Given(NamedTuple):
    """The same results of a message for some mailboxes; None: they are made when they are taken.
    ``is_of_now``: by the texts that the profiles have now."""

    boxes: list[Mailbox]
    results: Results | None
    is_of_now: bool


Deliver: TypeAlias = Callable[[Parcel, Iterable[Given]], None]


class DeferredDeliveries:
    """First in, first out; durable."""

    def __init__(self, rows: RowLog) -> None:
        self._rows = rows
        self.waiting: deque[tuple[str, Parcel, Iterable[Given]]] = deque()
        self._last = 0

    def restore(
        self,
        rows: Iterable[tuple[str, bytes]],
        reopen: Callable[[dict[str, Any]], tuple[Parcel, Iterable[Given]]],
    ) -> None:
        """(key, value) in order; ``reopen`` makes of a record what ``put`` was given."""
        for key, value in rows:
            self.waiting.append((key, *reopen(read_record(value))))
            self._last = int(key)

    def put(self, parcel: Parcel, given: Iterable[Given]) -> None:
        """``given`` is asked later."""
        self._last += 1
        key = number_key(self._last)
        record = {
            "root": parcel.root,
            "source": parcel.source,
            "number": parcel.number,
            "hops": parcel.hops,
            "format": parcel.wire_format.value,
            "payload": parcel.payload,
            "reflects": parcel.reflects,
            "pieces": parcel.pieces,
        }
        self._rows.put(DEFERRED_SPACE, key, record)
        self.waiting.append((key, parcel, given))

    def run(self, deliver: Deliver) -> None:
        """All that wait, in order."""
        while self.waiting:
            key, parcel, given = self.waiting.popleft()
            deliver(parcel, given)
            self._rows.delete(DEFERRED_SPACE, key)
