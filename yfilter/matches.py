"""What ``Matcher.match`` yields: decisions about one message, in order of need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from formats.element_stream import ElementStream
from yfilter.language.evaluation import MessageEvaluator
from yfilter.language.matching_path import matching_path
from yfilter.language.nodes import DOCUMENT
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.query_ast import Profile
from yfilter.language.result import render, render_with_parts
from yfilter.local_queries import tree_of
from yfilter.projection.parts import with_parts


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


class Rendering:
    """Bindings and results of one query on one message, each made when first called."""

    __slots__ = ("_bindings", "_limits", "_profile", "_results", "_stream")

    def __init__(
        self,
        profile: Profile | bytes,
        stream: ElementStream,
        bindings: Sequence[int] | None,
        limits: EvaluationLimits,
    ) -> None:
        self._profile = profile
        self._stream = stream
        self._bindings = None if bindings is None else tuple(bindings)
        self._limits = limits
        self._results: list[bytes] | None = None

    @property
    def profile(self) -> Profile:
        """Made of its text, if that was given, when first asked for."""
        if isinstance(self._profile, bytes):
            self._profile = tree_of(self._profile)
        return self._profile

    def bindings(self) -> tuple[int, ...]:
        if self._bindings is None:
            evaluator = MessageEvaluator(self._stream, self._limits)
            found = evaluator.select(matching_path(self.profile), DOCUMENT, {})
            self._bindings = tuple(node.number for node in found)
        return self._bindings

    def results(self) -> list[bytes]:
        if self._results is None:
            self._results = self._rendered()
        return self._results

    def _rendered(self) -> list[bytes]:
        if self._stream.pieces:
            put_in, parts = with_parts(self.profile)
            if parts:
                return render_with_parts(
                    self.profile, put_in, self._stream, self.bindings(), self._limits
                )
        return render(self.profile, self._stream, self.bindings(), self._limits)


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
