"""UserBudgets: what the evaluation of a user's profiles may cost, over all their messages.

What a profile takes of a message is bounded, but there are many messages.  Each user has an account
of processor time, which fills up steadily, to what they may spend at once; profiles that go beyond
the bound for a message are charged with it.  Whose account is empty loses the profile that emptied
it: it is suspended, and its user told, by a delivery that waits for them as any other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from onyx.broker.deliveries.delivery_log import without_results
from onyx.broker.deliveries.mailboxes import Mailboxes
from onyx.broker.query_plane import QueryPlane
from overlay.link.part import Part
from yfilter.errors import MatchLimitExceeded

BURST_SECONDS = 10.0  # for so long what a user has a second may be saved
ACCOUNTS_MAX = 4096
OTHERS = 5  # bounds but those of time are reached in a part of it
_TIMED = ("too-much-time", "too-many-visits")


class UserBudgets(Part):
    """``exceeded`` is told of profiles that cost too much on a message."""

    section = "budgets"

    def __init__(
        self, query: QueryPlane, mailboxes: Mailboxes, per_second: float, for_message: float
    ) -> None:
        """Seconds of processor time: of a user, a second; of a profile, a message."""
        self._query = query
        self._mailboxes = mailboxes
        self._per_second = per_second
        self._for_message = for_message
        self._accounts: dict[str, tuple[float, float]] = {}  # by user: spent, and when that was
        self._due: dict[str, tuple[str, int]] = {}  # profiles to suspend, with the last message

    def exceeded(
        self, source: str, number: int, profiles: Collection[str], limit: MatchLimitExceeded
    ) -> None:
        """Equal profiles are evaluated once: each is charged its share."""
        cost = self._for_message if limit.code in _TIMED else self._for_message / OTHERS
        for profile in profiles:
            hosted = self._query.profiles.get(profile)
            if hosted is None or profile in self._due:
                continue
            if self._spent(hosted.user, cost / len(profiles)):
                self._due[profile] = source, number
                self.flush_soon()

    def flush(self) -> None:
        """Nothing is asked any more in this event, so that profiles can be taken out."""
        due, self._due = self._due, {}
        for profile, (source, number) in due.items():
            if profile not in self._query.profiles:
                continue
            why = (
                f"the profile is suspended until it is updated: with it {self._of(profile)} has "
                f"spent {BURST_SECONDS * self._per_second:g} s of processor time on messages "
                f"beyond the bound, where {1000 * self._per_second:g} ms a second are allowed"
            )
            self._query.suspend(profile, why)
            told = without_results("suspended", why)
            boxes = self._mailboxes.boxes([profile])
            self._mailboxes.deliver_message(source, number, [(boxes, told)], None)

    def statistics(self) -> Mapping[str, object]:
        return {"suspended": dict(self._query.suspensions.why)}

    def _of(self, profile: str) -> str:
        user = self._query.profiles[profile].user
        return f"user {user}" if user else "its user"

    def _spent(self, user: str, seconds: float) -> bool:
        """Whether that was more than there is."""
        now = 0.0 if self.agenda is None else self.agenda.now
        spent, before = self._accounts.pop(user, (0.0, now))
        spent = max(0.0, spent - (now - before) * self._per_second) + seconds
        if len(self._accounts) >= ACCOUNTS_MAX:
            del self._accounts[next(iter(self._accounts))]  # the one that was charged longest ago
        self._accounts[user] = spent, now
        return spent >= BURST_SECONDS * self._per_second
