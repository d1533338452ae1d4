"""What ``Matcher.match`` yields: decisions about one message, in order of need."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from formats.element_stream import ElementStream
from yfilter.errors import MatchLimitExceeded


@dataclass(frozen=True, slots=True)
class RouteMatch:
    """The message is wanted behind ``link``."""

    link: str


@dataclass(frozen=True, slots=True)
class TransformationMatch:
    """The message is wanted behind ``link``, and this much of it: the message itself, or ``stream``
    with what somebody there needs, the same object for links that keep the same."""

    link: str
    stream: ElementStream


class Rendering(Protocol):
    """Bindings and results of one query on one message; both raise MatchLimitExceeded."""

    def bindings(self) -> tuple[int, ...]: ...

    def results(self) -> list[bytes]: ...


class Delivered(NamedTuple):
    """What some profiles get of a message: ``numbers`` of their registrations, in no order, and the
    results, which are equal for all of them.  ``exceeded``: the limit that left them without, or
    with the first alone.  ``is_made`` False: the results were put off; ``Matcher.deliver_to`` makes
    them.  ``media_type`` of the results, "": XML."""

    numbers: array[int]
    results: list[bytes]
    exceeded: MatchLimitExceeded | None = None
    is_made: bool = True
    media_type: str = ""


PAUSE = Delivered(array("i"), [], None, is_made=False)
"""Nothing yet: whoever asks may do something else before they go on."""

MakesNow: TypeAlias = "Callable[[array[int], bool, bool], bool]"
"""(numbers of registrations, whether it takes their results to know that there are any, whether
the result is the message) -> whether these are made at once."""


class ProfileMatch:
    """The message matches a local profile; equal to another of the same profile and bindings."""

    # PERF: a message may match thousands; a plain class is made faster than a frozen one.
    __slots__ = ("_rendering", "profile_id")

    def __init__(self, profile_id: str, rendering: Rendering) -> None:
        self.profile_id = profile_id
        self._rendering = rendering

    @property
    def bindings(self) -> tuple[int, ...]:
        """The elements that the path, or the first for clause, selects, in document order.

        Where a profile has a remainder, some of them may come to nothing.  Computed when first
        asked for, once for equal profiles; raises MatchLimitExceeded when that costs more than
        EvaluationLimits allow.
        """
        return self._rendering.bindings()

    def results(self) -> list[bytes]:
        """The messages to deliver; rendered when first asked for, once for equal profiles.

        Raises MatchLimitExceeded when the rendering costs more than EvaluationLimits allow.
        """
        return self._rendering.results()

    def __repr__(self) -> str:
        return f"ProfileMatch(profile_id={self.profile_id!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProfileMatch):
            return NotImplemented
        return self.profile_id == other.profile_id and self.bindings == other.bindings

    def __hash__(self) -> int:
        return hash(self.profile_id)


Match: TypeAlias = RouteMatch | TransformationMatch | ProfileMatch
