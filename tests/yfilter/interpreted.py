"""The interpreter on one profile alone, from its beginning: an oracle for the engine.

It shares the parser and the language with the engine, and none of what finds or verifies anything:
no matching path, no bindings, no index and no operators.
"""

from __future__ import annotations

from formats.element_stream import ElementStream
from formats.text import to_text
from tests.oracle.interpreted_result import Asked, interpreted
from yfilter.errors import MatchLimitExceeded
from yfilter.language.profile_limits import DEFAULT_EVALUATION_LIMITS, EvaluationLimits
from yfilter.language.query_ast import Profile
from yfilter.language.query_parser import parse_profile


def results(
    profile: str | Profile,
    stream: ElementStream,
    limits: EvaluationLimits = DEFAULT_EVALUATION_LIMITS,
) -> list[bytes]:
    """What a profile delivers of a message.  Raises MatchLimitExceeded."""
    parsed = parse_profile(profile) if isinstance(profile, str) else profile
    return interpreted(Asked(parsed), stream, (), limits, lambda: to_text(stream))


def matches(
    profile: str | Profile,
    stream: ElementStream,
    limits: EvaluationLimits = DEFAULT_EVALUATION_LIMITS,
) -> bool:
    """Whether it delivers anything; a profile that costs too much does not."""
    try:
        return bool(results(profile, stream, limits))
    except MatchLimitExceeded:
        return False
