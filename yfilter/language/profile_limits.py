"""What one profile, and one evaluation of it, may cost.

The policy: a profile beyond a bound of ProfileLimits is refused at registration with the code
given here; a message that needs more than EvaluationLimits allow is not evaluated further and
MatchLimitExceeded names the bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from formats.characters import find_illegal_character
from yfilter.errors import ProfileRefused


@dataclass(frozen=True, slots=True)
class ProfileLimits:
    """Bounds for the text of one profile.

    length_max    bytes of the text in UTF-8 (code ``too-long``); frames take no longer ones
    depth_max     nesting of predicates, parentheses, function calls, constructors and FLWOR
                  expressions, taken together (``too-deep``)
    steps_max     location steps of one path; triples of a graph query (``too-many-steps``)
    all_steps_max location steps in the whole profile (``too-many-steps``); a computed name counts
                  for each fourth of the namespaces that are declared around it
    clauses_max   for and let clauses in the whole profile (``too-many-clauses``)
    pattern_max   characters of a regular expression (``pattern``), whose states are bounded besides
    ranges_max    ranges of characters in all regular expressions, repetitions written out
                  (``pattern``)
    uri_max       characters of a namespace (``too-long``)

    ``idle_paths_refused``: whether a path that selects nothing ever is refused (``idle-path``).
    ``faults_refused``: whether a constant that can only be an error is (``error``).
    """

    length_max: int = 262_144
    depth_max: int = 64
    steps_max: int = 1_024
    all_steps_max: int = 8_192
    clauses_max: int = 256
    pattern_max: int = 65_536
    ranges_max: int = 262_144
    uri_max: int = 1_024
    idle_paths_refused: bool = True
    faults_refused: bool = True


def no_time() -> float:
    """A clock that stands still: nothing takes long."""
    return 0.0


@dataclass(frozen=True, slots=True)
class EvaluationLimits:
    """Bounds for one profile on one message.

    visits_max   nodes looked at by location steps (code ``too-many-visits``)
    tuples_max   tuples that for clauses bind (``too-many-tuples``)
    bytes_max    bytes of all results together (``result-too-large``)
    memory_max   bytes of the values that it builds on the way, about, the small ones not counted
                 (``too-much-memory``)
    calls_max    calls of declared functions in each other (``too-many-calls``)
    seconds_max  of processor time, by ``clock`` (``too-much-time``); what takes few
                 visits is not timed
    late_messages
                 so many messages after one that took too long are not tried, ``too-much-time`` at
                 once: whoever gives slices of time evaluates them elsewhere
    """

    visits_max: int = 5_000_000
    tuples_max: int = 100_000
    bytes_max: int = 16 * 1024 * 1024
    memory_max: int = 16 * 1024 * 1024
    calls_max: int = 512
    seconds_max: float = 0.05
    late_messages: int = 0
    clock: Callable[[], float] = no_time

    def is_final(self, code: str) -> bool:
        """Whether what ended with this code is not evaluated again elsewhere."""
        return code != "too-much-time" or not self.late_messages


DEFAULT_PROFILE_LIMITS = ProfileLimits()

# For the text of paths that were derived from accepted profiles (matching_path.py): names are
# written in full there, and conditions have moved a few levels down.
DERIVED_PATH_LIMITS = ProfileLimits(
    length_max=4_194_304,
    depth_max=72,
    steps_max=8_192,
    all_steps_max=65_536,
    clauses_max=65_536,
    idle_paths_refused=False,
    faults_refused=False,
)
DEFAULT_EVALUATION_LIMITS = EvaluationLimits()


def utf8_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def checked_text(text: str, limits: ProfileLimits) -> str:
    """The text without a byte order mark, its line ends normalised; ProfileRefused if it is too
    long, or has a character that cannot stand in XML."""
    if utf8_length(text) > limits.length_max:
        raise ProfileRefused(
            "too-long", f"the profile is longer than {limits.length_max:,} bytes", text
        )
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    illegal = find_illegal_character(text)
    if illegal >= 0:
        raise ProfileRefused(
            "syntax", f"the character U+{ord(text[illegal]):04X} cannot stand in XML", text, illegal
        )
    return text


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
