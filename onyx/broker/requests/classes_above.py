"""ClassesAbove: profiles here that ask for what is above a class follow the taxonomies.

Such a profile says the classes above itself (yfilter/graph/classes_above.py), so that the brokers
on a message's way match and route by its text alone.  When the registration service says other
taxonomies its host broker updates it, as its user could: a new version, which is live when every
broker on the way has its interests.  Until then messages are matched by the former one.

``yfilter`` says what is to be changed; here is when: after an announcement and a restart all
profiles are looked at, in slices, and one that comes here when it has come.  Those on the move are
looked at when that is over, those that are suspended when their text is given again.
"""

from __future__ import annotations

from collections.abc import Mapping

from onyx.broker.moves.profile_moves import ProfileMoves
from onyx.broker.network.taxonomies import Taxonomies
from onyx.broker.profiles.query_plane import QueryPlane
from overlay.link.core_context import CoreContext
from overlay.link.part import Part
from overlay.link.stored_rows import StoredRows
from yfilter.errors import ProfileRefused
from yfilter.graph.graph_query import may_ask_above
from yfilter.language.query_ast import Profile
from yfilter.matcher import check_profile

UPDATED_AT_ONCE = 32


class ClassesAbove(Part):
    """Updates them; nothing of its own is stored."""

    section = "taxonomies"

    def __init__(
        self, context: CoreContext, query: QueryPlane, moves: ProfileMoves, taxonomies: Taxonomies
    ) -> None:
        self._query = query
        self._moves = moves
        self._taxonomies = taxonomies
        self._is_over = context.slice.is_over
        self._left: list[str] = []  # to be looked at
        self._moving: dict[str, None] = {}  # when they do not move any more
        self._updated = self._too_many = 0
        query.tell_added.append(self._look_at)
        taxonomies.tell_announced.append(self._look_at_all)

    def restore(self, rows: StoredRows) -> None:
        """Nobody knows how far it was."""
        if self._taxonomies.version():
            self._look_at_all()

    def tick(self, now: float) -> None:
        if self._moving:
            self._left += self._moving
            self._moving.clear()
            self.work_soon()

    def work(self) -> None:
        """Go on until the slice is over."""
        changes: list[tuple[str, Profile]] = []
        while self._left and len(changes) < UPDATED_AT_ONCE:
            profile = self._left.pop()
            changed = self._changed(profile)
            if changed is not None:
                changes.append((profile, changed))
            if self._is_over():
                break
        if changes:
            self._update(changes)
        if self._left:
            self.work_soon()

    def statistics(self) -> Mapping[str, object]:
        return {"profiles_updated": self._updated, "profiles_with_too_many": self._too_many}

    def _look_at_all(self) -> None:
        self._left = list(self._query.profiles)
        self.work_soon()

    def _look_at(self, profile: str) -> None:
        """One that has come, or has another text."""
        if may_ask_above(self._query.profiles[profile].text):
            self._left.append(profile)
            self.work_soon()

    def _changed(self, profile: str) -> Profile | None:
        """What it is to be by the taxonomies, if it is not that; one of which that is too much
        stays as it is."""
        hosted = self._query.profiles.get(profile)
        if hosted is None or not may_ask_above(hosted.text):
            return None
        if profile in self._moves:
            self._moving[profile] = None
            return None
        if profile in self._query.suspensions.why:
            return None
        try:
            text = self._taxonomies.said_in(hosted.text)
            return None if text == hosted.text else check_profile(text)
        except ProfileRefused:
            self._too_many += 1
            return None

    def _update(self, changes: list[tuple[str, Profile]]) -> None:
        self._query.finish()
        self._updated += len(changes)
        unclaimed = [(p, self._query.profiles[p].unclaimed_since) for p, _ in changes]
        self._query.update_all(changes)
        for profile, since in unclaimed:
            if since:
                self._query.keep_unclaimed(profile, since)
