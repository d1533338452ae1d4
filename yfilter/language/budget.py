"""Budget: what may still be spent on one profile and one message; see EvaluationLimits."""

from __future__ import annotations

from yfilter.errors import MatchLimitExceeded
from yfilter.language.profile_limits import EvaluationLimits

ELEMENTPATH_COST = 32  # of a call of elementpath, in visits
CALL_COST = 16  # of a call of a declared function


class Budget:
    """Each ``charge`` raises MatchLimitExceeded when there is not enough left."""

    def __init__(self, limits: EvaluationLimits) -> None:
        self.limits = limits
        self.renew()

    def renew(self) -> None:
        """All of it may be spent again."""
        self.tuples_left = self.limits.tuples_max
        self.visits_left = self.limits.visits_max
        self.bytes_left = self.limits.bytes_max

    @property
    def visits(self) -> int:
        """What was charged since then."""
        return self.limits.visits_max - self.visits_left

    def charge(self, amount: int = 1) -> None:
        """Counts nodes looked at and items made."""
        self.visits_left -= amount
        if self.visits_left < 0:
            raise MatchLimitExceeded(
                "too-many-visits", "a condition looks at too many nodes of this message"
            )

    def charge_tuple(self) -> None:
        self.tuples_left -= 1
        if self.tuples_left < 0:
            raise MatchLimitExceeded(
                "too-many-tuples",
                f"a profile binds more than {self.limits.tuples_max} tuples",
            )

    def charge_bytes(self, size: int) -> None:
        """Counts what is about to be written, so that a bound holds before memory is spent."""
        self.bytes_left -= size
        if self.bytes_left < 0:
            raise MatchLimitExceeded(
                "result-too-large",
                f"the results of a profile are larger than {self.limits.bytes_max} bytes",
            )
