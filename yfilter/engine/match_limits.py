"""What the matcher may hold and what one message may cost it."""

from __future__ import annotations

from dataclasses import dataclass

from yfilter.language.profile_limits import DEFAULT_EVALUATION_LIMITS, EvaluationLimits


@dataclass(frozen=True, slots=True)
class MatchLimits:
    """Bounds of one matcher.

    profiles_max   profiles registered at the same time; one more is refused with
                   ProfileRefused, code ``too-many-profiles``
    routes_max     (conjunction, target) pairs; one more is refused with ProfileRefused, code
                   ``too-many-routes``
    visits_max     heads and elements that the index looks at for one message, conditions that it
                   evaluates, and an eighth of the candidates; beyond it the match ends with
                   MatchLimitExceeded, code ``too-many-visits``
    lazy_bytes_max the index's lazily made states, in bytes; beyond it a new generation of them
                   begins, which takes over what messages still use.  The answers are the same.
                   0: 4 KB for each query there is then, at least 512 MB and at most 4 GB
    evaluation     what a condition that an operator verifies, and the rendering of a profile, may
                   cost on one message; one beyond it does not match the message, the others do
    """

    profiles_max: int = 1_000_000
    routes_max: int = 1_000_000
    visits_max: int = 100_000_000
    lazy_bytes_max: int = 0
    evaluation: EvaluationLimits = DEFAULT_EVALUATION_LIMITS


DEFAULT_MATCH_LIMITS = MatchLimits(evaluation=EvaluationLimits(visits_max=1_000_000))
"""Of a matcher that is given none.  It has no clock, and a visit may take some microseconds."""
