"""Rejections: what users could not do with comes again later, and in the end is a dead letter.

::

    given out ──> taken                              it goes
              ──> rejected, fewer times than may be   delayed ──> due: given out again
              ──> rejected for the last time          dead letter, which may be replayed
              ──> its connection broke, BREAKS_MAX    likewise
                  times while it was the oldest
                  there

Only of profiles that are shared: there each delivery is taken by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from onyx.broker.deliveries.delivery_log import DeliveryLog, Results
from onyx.broker.deliveries.lines import Lines
from onyx.broker.deliveries.mailbox import Mailbox, Sharer
from onyx.broker.deliveries.policies import Policies
from onyx.broker.deliveries.silence import Given
from overlay.link.dead_letters import UNDELIVERABLE, DeadLetter, DeadLetters
from overlay.link.delivery_frames import Rejected
from overlay.link.errors import ProtocolError
from overlay.link.request_server import RequestRefused
from overlay.link.row_log import RowLog, numbered_key
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Table

BREAKS_MAX = 20  # connections that broke while one delivery was worked on


@dataclass(frozen=True, slots=True)
class _DelayedRow:
    """Under the profile, ``|`` and the number of a delivery: seconds of the calendar."""

    due: float


DELAYED = Table("delivery-delayed", _DelayedRow)


class _Burial(NamedTuple):
    """A delivery that was rejected for the last time."""

    box: Mailbox
    number: int
    position: int
    reason: str


class Rejections:
    """``reject`` as users say, ``return_due`` as time goes on, ``bury`` when rows were read."""

    def __init__(
        self,
        rows: RowLog,
        boxes: Mapping[str, Mailbox],
        lines: Lines,
        log: DeliveryLog,
        policies: Policies,
        dead: DeadLetters,
        wall: Callable[[], float],
        release: Callable[[Mailbox, list[int]], None],
        deliver: Callable[[str, int, list[Given], None], int],
    ) -> None:
        """``wall``: seconds of the calendar; ``release``: a mailbox holds some positions no
        longer, or is another; ``deliver``: see Mailboxes."""
        self._rows = rows
        self._boxes = boxes
        self._deliver = deliver
        dead.replays[UNDELIVERABLE] = self._replay
        self._lines = lines
        self._log = log
        self._policies = policies
        self._dead = dead
        self._wall = wall
        self._release = release
        self._delayed: dict[Mailbox, None] = {}
        self._burials: list[_Burial] = []
        self._counters: Counter[str] = Counter()

    def restore(self, rows: StoredRows) -> None:
        """Behind the mailboxes, with what is open."""
        for key, row in rows.take(DELAYED):
            profile, _, number = key.rpartition("|")
            box = self._boxes.get(profile)
            if box is None or box.sharing is None or int(number) not in box.sharing.open:
                DELAYED.delete(self._rows, key)
            else:
                box.sharing.delay(int(number), row.due)
                self._delayed[box] = None

    def reject(self, taker: Mailbox | Sharer, frame: Rejected) -> None:
        """ProtocolError of one who does not share the profile."""
        if not isinstance(taker, Sharer) or taker.in_order:
            detail = f"only who shares {taker.profile!r} may reject a delivery of it"
            raise ProtocolError("not-expected", detail)
        box, policy = taker.box, self._policies.of(taker.profile)
        position = taker.sharing.open.get(frame.number, 0)
        due = self._wall() + policy.retry_s
        times = self._lines.reject(taker, frame.number, due)
        if not times:
            return  # it was thrown away meanwhile
        self._counters["rejected"] += 1
        self._release(box, [])
        self._delayed[box] = None
        if times < policy.attempts_max:
            DELAYED.put(self._rows, numbered_key(box.profile, frame.number), _DelayedRow(due))
        else:
            taker.sharing.hold(frame.number)
            reason = frame.reason or "no reason was given"
            self._burials.append(_Burial(box, frame.number, position, reason))
            self.bury()

    def note_broken(self, box: Mailbox, number: int, times: int) -> None:
        """The connection of one who shared a mailbox is gone; see Sharing.note_broken.  One break
        says nothing of the delivery; if it is always this one, whoever works on it dies of it."""
        if times == BREAKS_MAX and box.sharing is not None:
            box.sharing.hold(number)
            reason = f"{times} connections broke while it was worked on"
            self._burials.append(_Burial(box, number, box.sharing.open[number], reason))
            self.bury()

    def return_due(self) -> bool:
        """What was delayed and is due has its turn again; whether there is any."""
        is_any = False
        for box in list(self._delayed):
            sharing = box.sharing
            due = [] if sharing is None else sharing.return_due(self._wall())
            for number in due:
                DELAYED.delete(self._rows, numbered_key(box.profile, number))
            if due and box.line:
                self._lines.queue(box)
                is_any = True
            if sharing is None or not sharing.delayed:
                del self._delayed[box]
        return is_any

    def bury(self) -> None:
        """Dead letters of what was rejected for good, as soon as its results are in memory."""
        burials, self._burials = self._burials, []
        for burial in burials:
            box, number, position, reason = burial
            if box.sharing is None or box.sharing.open.get(number) != position:
                continue  # it was thrown away, or is given out once more by somebody in order
            record = self._log.records[position]
            if record.results(box.index) is None and record.message is not None:
                self._lines.make(record, position, [box])
            results = record.results(box.index)
            if results is None:
                self._burials.append(burial)
                self._log.ask([position])
                continue
            what = (record.source, record.number), reason
            made = results.lengths, results.payload
            self._dead.note_undeliverable(box.user.name, box.profile, *what, made)
            self._log.let_go(record)
            del box.sharing.open[number]
            self._release(box, [position])

    def _replay(self, letter: DeadLetter) -> None:
        """Deliver what was rejected once more."""
        box = self._boxes.get(letter.profile)
        if box is None:
            raise RequestRefused("unknown-profile", f"{letter.profile} is not here any more")
        results = Results(letter.lengths, letter.data)
        self._deliver(letter.source, letter.number, [([box], results)], None)

    def forget(self, box: Mailbox) -> None:
        self._delayed.pop(box, None)
        for _, number in () if box.sharing is None else box.sharing.delayed:
            DELAYED.delete(self._rows, numbered_key(box.profile, number))

    def statistics(self) -> Mapping[str, int]:
        return dict(self._counters)
