"""What ``Matcher.match`` yields: decisions about one message, in order of need."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from formats.element_stream import ElementStream
from yfilter.answers import Answer, Answers
from yfilter.engine.readings import Reading, Readings
from yfilter.errors import MatchLimitExceeded
from yfilter.language.evaluation import MessageEvaluator
from yfilter.language.matching_path import is_path, matching_path
from yfilter.language.node_functions import PARENT
from yfilter.language.nodes import DOCUMENT, DynamicError, Node, NodeType
from yfilter.language.query_ast import Expression, ForClause, Profile
from yfilter.local_queries import tree_of


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
    """Bindings and results of one query on one message, each made when first called.

    ``answer`` None: the result is the message.  ``show`` has the index look at a message, which
    ``answers`` are about.
    """

    __slots__ = (
        "_answer",
        "_answers",
        "_bindings",
        "_message",
        "_reading",
        "_results",
        "_show",
        "_text",
    )

    def __init__(
        self,
        text: bytes,
        answer: Answer | None,
        message: Readings,
        reading: Reading,
        answers: Answers,
        show: Callable[[ElementStream], None],
    ) -> None:
        self._text = text
        self._answer = answer
        self._message = message
        self._reading = reading
        self._answers = answers
        self._show = show
        self._bindings: tuple[int, ...] | None = None
        self._results: list[bytes] | None = None

    def bindings(self) -> tuple[int, ...]:
        if self._bindings is None:
            profile = tree_of(self._text)
            answer = self._answer or Answer(profile)
            stream = self._message.in_(self._reading)
            if answer.paths:
                self._show(stream)
                self._bindings = tuple(self._answers.bindings(answer))
            else:
                self._bindings = _selected(profile, stream)
        return self._bindings

    def results(self) -> list[bytes]:
        if self._results is None:
            if self._answer is None:
                self._results = [self._answers.whole_message(self._message)]
            else:
                self._show(self._message.in_(self._reading))
                self._results = self._answers.results(self._answer, self._message, self._reading)
        return self._results


def _selected(profile: Profile, stream: ElementStream) -> tuple[int, ...]:
    """The elements that a path of any kind, or the first for clause, selects, or in which it does
    so; of a profile without either those that its matching path does."""
    body, flwor = profile.body, profile.flwor
    source: Expression = matching_path(profile)
    if is_path(body):
        source = body
    elif flwor is not None and flwor.clauses and isinstance(flwor.clauses[0], ForClause):
        source = flwor.clauses[0].path
    evaluator = MessageEvaluator(stream)
    try:
        found = evaluator.evaluate(source, DOCUMENT, {})
    except DynamicError:
        return ()
    nodes = [item for item in found if isinstance(item, Node)]
    elements = {
        next(evaluator.axes.step(node, PARENT), node)
        if node.type in (NodeType.ATTRIBUTE, NodeType.CONTENT)
        else node
        for node in nodes
        if node.tree == DOCUMENT.tree
    }
    return tuple(sorted({max(element.number, 0) for element in elements}))


class Delivered(NamedTuple):
    """What some profiles get of a message: ``numbers`` of their registrations, in no order, and the
    results, which are equal for all of them.  ``exceeded``: the limit that left them without.
    ``is_made`` False: the results were put off; ``Matcher.deliver_to`` makes them.  ``media_type``
    of the results, "": XML."""

    numbers: array[int]
    results: list[bytes]
    exceeded: MatchLimitExceeded | None = None
    is_made: bool = True
    media_type: str = ""


PAUSE = Delivered(array("i"), [], None, is_made=False)
"""Nothing yet: whoever asks may do something else before they go on."""

MakesNow: TypeAlias = "Callable[[array[int], bool], bool]"
"""(numbers of registrations, whether it takes their results to know that there are any) -> whether
these are made at once."""


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
