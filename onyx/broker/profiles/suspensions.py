"""Suspensions: profiles that are not evaluated, as their user has spent their processor time.

They stay where they are, live and with all that waits; but no message meets them until their text
is given again.  So it is after a restart.
"""

from __future__ import annotations

from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Table
from yfilter.matcher import Matcher

SUSPENDED = Table("suspended", str)  # by profile: why


class Suspensions:
    """Of profiles in the Matcher; ``why`` by profile."""

    def __init__(self, rows: RowLog, matcher: Matcher) -> None:
        self._rows = rows
        self._matcher = matcher
        self.why: dict[str, str] = {}

    def restore(self, rows: StoredRows) -> None:
        """When all profiles are in the Matcher."""
        for profile, why in rows.take(SUSPENDED):
            self._matcher.remove(profile)
            self.why[profile] = why

    def suspend(self, profile: str, why: str) -> None:
        self._matcher.remove(profile)
        self.why[profile] = why
        SUSPENDED.put(self._rows, profile, why)

    def take_out(self, profile: str) -> None:
        """Take a profile out of the Matcher, where it may not be any more."""
        if self.why.pop(profile, None) is None:
            self._matcher.remove(profile)
        else:
            SUSPENDED.delete(self._rows, profile)
