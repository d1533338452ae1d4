"""UnclaimedProfiles: profiles whose results nobody has ever come for go, after a long time.

Somebody who adds a profile and never learns its id, since the answer was lost and they did not ask
again, cannot take its results or remove it.  It would cost the network for ever.

A profile is *claimed* for good when a connection attaches to it, and when it is changed.
"""

from __future__ import annotations

from collections.abc import Mapping

from onyx.broker.deliveries.mailboxes import Mailboxes
from onyx.broker.moves.profile_moves import ProfileMoves
from onyx.broker.profiles.query_plane import QueryPlane
from overlay.limits import Limits
from overlay.link.core_context import CoreContext
from overlay.link.part import Part

LOOKED_AT_ONCE = 2_000  # profiles; then others have their turn
ROUNDS = 64  # in the time that a profile may be unclaimed


class UnclaimedProfiles(Part):
    """Removes them from their host broker, as their users would."""

    section = "query"

    def __init__(
        self, context: CoreContext, query: QueryPlane, mailboxes: Mailboxes, moves: ProfileMoves
    ) -> None:
        self._query = query
        self._mailboxes = mailboxes
        self._moves = moves
        self._age_s_max = context.limits.unclaimed_profile_s_max  # 0: for ever
        self._wall = context.wall
        self._say = context.say
        self._left: list[str] = []  # to be looked at in this round
        self._next_round = 0.0
        self._removed = 0

    def take_limits(self, limits: Limits) -> None:
        self._age_s_max = limits.unclaimed_profile_s_max

    def tick(self, now: float) -> None:
        wall = self._wall()
        if self._age_s_max and not self._left and wall >= self._next_round:
            self._next_round = wall + self._age_s_max / ROUNDS
            self._left = list(self._query.profiles)
            self.work_soon()

    def work(self) -> None:
        """Look at some; those that move are looked at when they have come."""
        some = self._left[-LOOKED_AT_ONCE:]
        del self._left[-LOOKED_AT_ONCE:]
        before = self._wall() - self._age_s_max
        gone = [
            profile
            for profile in some
            if (hosted := self._query.profiles.get(profile)) is not None
            and 0 < hosted.unclaimed_since <= before
            and profile not in self._moves
            and not self._mailboxes.box(profile).is_claimed
        ]
        if gone:
            self._query.remove_all(gone)
            self._removed += len(gone)
            self._say(
                f"removed {len(gone)} profiles whose results nobody has come for in "
                f"{self._age_s_max} s: {', '.join(gone[:10])}{' ...' * (len(gone) > 10)}"
            )
        if self._left:
            self.work_soon()

    def statistics(self) -> Mapping[str, object]:
        return {"unclaimed_removed": self._removed}
