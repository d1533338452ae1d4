"""ProfilePolicies: how profiles are kept that are kept otherwise than usual, beside their entries.

Whoever hosts such a profile next is told ahead of it.
"""

from __future__ import annotations

from collections.abc import Collection

from overlay.delivery_policy import USUAL, DeliveryPolicy
from overlay.link.frames import DeliveryPolicies
from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Table

POLICIES = Table("profile-policy", DeliveryPolicy)


class ProfilePolicies:
    """Most profiles have none, and no row."""

    def __init__(self, rows: RowLog) -> None:
        self._rows = rows
        self._of: dict[str, DeliveryPolicy] = {}

    def restore(self, rows: StoredRows) -> None:
        self._of = dict(rows.take(POLICIES))

    def of(self, profile: str) -> DeliveryPolicy:
        return self._of.get(profile, USUAL)

    def put(self, profile: str, policy: DeliveryPolicy) -> None:
        if policy == USUAL:
            self.forget(profile)
        else:
            self._of[profile] = policy
            POLICIES.put(self._rows, profile, policy)

    def forget(self, profile: str) -> None:
        if self._of.pop(profile, None) is not None:
            POLICIES.delete(self._rows, profile)

    def keep(self, there: Collection[str]) -> None:
        """Forget those of profiles that there are not."""
        for profile in [profile for profile in self._of if profile not in there]:
            self.forget(profile)

    def told(self, *profiles: str) -> list[DeliveryPolicies]:
        """What whoever hosts some profiles is told ahead of them: one frame, or none."""
        if not self._of:
            return []
        there = [(profile, *self._of[profile]) for profile in profiles if profile in self._of]
        return [DeliveryPolicies(there)] if there else []
