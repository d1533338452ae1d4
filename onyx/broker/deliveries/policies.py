"""Policies: the mailboxes that are kept otherwise than the network's bounds say.

Only what is not usual is here (overlay/delivery_policy.py), so a profile without a policy costs
nothing: of a message it is asked whether any mailbox has one.

::

    append ──> is it too much? ──> the oldest goes       drop-oldest
                               ──> deaf until some goes   drop-newest: ``full``
                               ──> detached              disconnect
    tick   ──> is it too old?  ──> it goes               ``ttl_s``
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice

from onyx.broker.deliveries.delivery_log import DeliveryLog, without_results
from onyx.broker.deliveries.mailbox import Mailbox
from onyx.broker.deliveries.silence import Given
from overlay.delivery_policy import DISCONNECT, DROP_NEWEST, USUAL, DeliveryPolicy
from overlay.link.dead_letters import DeadLetters
from overlay.link.durable import StoredMap
from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table

TOLD_AT_ONCE = 64  # profiles, a second
POLICIES = Table("delivery-policy", DeliveryPolicy)


class _Untold(Row, frozen=True):
    """Its key is the profile: ``count`` messages were not kept for it, through this one."""

    source: str
    number: int
    count: int


UNTOLD = Table("delivery-untold", _Untold)


class Policies:
    """``full``: mailboxes that keep nothing new; ``untold``: by profile, what was not kept, while
    its user does not know; ``dropped``: how much of which had to go, and why, that no dead letter
    says yet.

    Of what a full mailbox does not keep its user is told by a delivery without results, ahead of
    the next that is kept; or, where none comes, once they have taken all.
    """

    def __init__(
        self,
        rows: RowLog,
        log: DeliveryLog,
        dead: DeadLetters,
        bytes_max: int,
        drop: Callable[[Mailbox, int, str], int],
        detach: Callable[[Mailbox, str, str], None],
        deliver: Callable[[str, int, list[Given], None], int],
    ) -> None:
        """``dead`` is told what had to go; ``bytes_max``: of any mailbox; ``drop``: it
        throws away all through a number, and why; ``detach`` whoever takes it, with code and
        detail; ``deliver``: what a message gives."""
        self.full: set[Mailbox] = set()
        self.bounded: dict[Mailbox, DeliveryPolicy] = {}
        self.dropped: Counter[tuple[Mailbox, str]] = Counter()
        self._of = StoredMap(rows, POLICIES)
        self._expiring: dict[Mailbox, int] = {}  # and the seconds that each keeps something
        self._rows = rows
        self._log = log
        self._dead = dead
        self.bytes_max = bytes_max
        self._drop = drop
        self._detach = detach
        self._deliver = deliver
        self.untold: dict[str, _Untold] = {}
        self._changed: set[str] = set()  # of those, the ones whose rows say less
        self._at_least: frozenset[str] = frozenset()  # of which a row was read, that may say less

    def __len__(self) -> int:
        return len(self._of)

    def restore(self, rows: StoredRows) -> None:
        """Ahead of ``begin``, for each mailbox with what it holds."""
        self.untold = dict(rows.take(UNTOLD))
        self._at_least = frozenset(self.untold)

    def of(self, profile: str) -> DeliveryPolicy:
        return self._of.get(profile, USUAL)

    def put(self, profile: str, policy: DeliveryPolicy, box: Mailbox | None) -> None:
        """From now on; also of a profile that is not here yet, and of one without a mailbox."""
        self._end(profile, box)
        if policy != USUAL:
            self._of[profile] = policy
            if box is not None:
                self.begin(box)
                self.check([box])

    def forget(self, profile: str, box: Mailbox | None) -> None:
        """A profile is gone."""
        self._end(profile, box)
        if self.untold.pop(profile, None) is not None:
            UNTOLD.delete(self._rows, profile)

    def _end(self, profile: str, box: Mailbox | None) -> None:
        self._of.pop(profile)
        if box is not None:
            self.bounded.pop(box, None)
            self._expiring.pop(box, None)
            self.full.discard(box)

    def begin(self, box: Mailbox) -> None:
        """A mailbox is there."""
        policy = self._of.get(box.profile)
        if policy is None:
            return
        if policy.is_bounded:
            self.bounded[box] = policy
            if policy.when_full == DROP_NEWEST and self._is_full(box, policy):
                self.full.add(box)
        if policy.ttl_s:
            self._expiring[box] = policy.ttl_s

    def heard(self, source: str, number: int, given: list[Given]) -> list[Given]:
        """What a message gives, without what is the newest for a mailbox that is full."""
        heard = []
        told = []
        for boxes, made in given:
            room = [box for box in boxes if box not in self.full]
            for box in boxes if len(room) < len(boxes) else ():
                if box in self.full:
                    self.dropped[box, DROP_NEWEST] += 1
                    self._leave_out(box.profile, source, number)
            if room:
                heard.append((room, made))
                told += [box for box in room if box.profile in self.untold]
        for box in told:
            self._tell(box)
        return heard

    def _leave_out(self, profile: str, source: str, number: int) -> None:
        before = self.untold.get(profile)
        now = _Untold(source, number, 1 if before is None else before.count + 1)
        self.untold[profile] = now
        if before is None:
            UNTOLD.put(self._rows, profile, now)
        else:
            self._changed.add(profile)

    def _tell(self, box: Mailbox) -> None:
        """What was not kept, ahead of what is."""
        untold = self.untold.pop(box.profile)
        UNTOLD.delete(self._rows, box.profile)
        some = "1 result was" if untold.count == 1 else f"{untold.count} results were"
        if box.profile in self._at_least:
            self._at_least -= {box.profile}
            some = f"at least {some}"
        why = f"{some} not kept, as more would have waited than the policy of the profile allows"
        given: list[Given] = [([box], without_results("dropped", why))]
        self._deliver(untold.source, untold.number, given, None)

    def tell_all(self, box_of: Callable[[str], Mailbox | None]) -> None:
        """Whoever has taken all learns what was not kept; the rest is in the store as it is now."""
        for profile in list(self.untold):
            box = box_of(profile)
            if box is not None and not box.count:
                self._tell(box)
        for profile in self._changed & self.untold.keys():
            UNTOLD.put(self._rows, profile, self.untold[profile])
        self._changed.clear()

    def check(self, boxes: Iterable[Mailbox]) -> int:
        """Behind a delivery more for some mailboxes: what is too much goes; how many."""
        dropped = 0
        for box in boxes:
            policy = self.bounded.get(box)
            if policy is None:
                continue
            if policy.when_full == DROP_NEWEST:
                if self._is_full(box, policy):
                    self.full.add(box)
            elif self._exceeds(box, policy):
                if policy.when_full == DISCONNECT and box.line:
                    detail = f"more waits for {box.profile} than its policy allows"
                    self._detach(box, "too-slow", detail)
                dropped += self._drop_oldest(box, policy)
        return dropped

    def note_room(self, box: Mailbox) -> None:
        """Something has left a mailbox that was full."""
        if not self._is_full(box, self.bounded[box]):
            self.full.discard(box)

    def drop_aged(self, now: int) -> int:
        """What has waited for longer than its profile's policy says, at this second; how many."""
        return sum(self.expire(box, now) for box in list(self._expiring))

    def expire(self, box: Mailbox, now: int) -> int:
        """The same of one mailbox."""
        seconds = self._expiring.get(box)
        if seconds is None:
            return 0
        through = 0
        for number, position in box.waiting(0):
            if self._log.records[position].second > now - seconds:
                break
            through = number
        return self._go(box, through, "ttl")

    def tell_dropped(self) -> None:
        """Dead letters say what had to go, of a bounded number of profiles."""
        dropped, self.dropped = self.dropped, Counter()
        for (box, why), count in islice(dropped.items(), TOLD_AT_ONCE):
            self._dead.note_dropped(box.user.name, box.profile, why, count)
        if len(dropped) > TOLD_AT_ONCE:
            rest = sum(islice(dropped.values(), TOLD_AT_ONCE, None))
            why = f"of {len(dropped) - TOLD_AT_ONCE} profiles besides those that are named"
            self._dead.note_dropped("", "", why, rest)

    # --- helpers --------------------------------------------------------------------------

    def _is_full(self, box: Mailbox, policy: DeliveryPolicy) -> bool:
        """Whether there is no room for one more."""
        return box.backlog_bytes >= self._bytes_of(policy) or 0 < policy.deliveries_max <= box.count

    def _exceeds(self, box: Mailbox, policy: DeliveryPolicy) -> bool:
        return box.backlog_bytes > self._bytes_of(policy) or 0 < policy.deliveries_max < box.count

    def _bytes_of(self, policy: DeliveryPolicy) -> int:
        return min(policy.bytes_max or self.bytes_max, self.bytes_max)

    def _drop_oldest(self, box: Mailbox, policy: DeliveryPolicy) -> int:
        through, count, left = 0, box.count, box.backlog_bytes
        for number, position in box.waiting(0):
            is_less = policy.deliveries_max == 0 or count <= policy.deliveries_max
            if is_less and left <= self._bytes_of(policy):
                break
            count -= 1
            left -= self._log.records[position].size
            through = number
        return self._go(box, through, policy.when_full)

    def _go(self, box: Mailbox, through: int, why: str) -> int:
        return self._drop(box, through, why) if through else 0
