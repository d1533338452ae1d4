"""LateResults: results that take longer than a profile's slice, made by a process of its own.

::

    message ──> more than a slice ──> kept for the mailbox, as one that may match
    taken   ──> asked for once    ──> the connection waits, others go on ──> the answer is at hand

What was asked is forgotten with the core: it is asked again when somebody takes the delivery again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeAlias

from formats.element_stream import ElementStream
from formats.limits import MessageLimits
from overlay.link.events import AskEvaluation, Evaluated
from yfilter.late_evaluation import evaluate, question_about
from yfilter.late_questions import ProfileEvaluated

ANSWERS_MAX = 256  # that wait for the connection that asked; the oldest go, and are asked for again

SUSPENDED = ProfileEvaluated((), ("suspended", "the profile is suspended"), 0.0)

TellCost: TypeAlias = "Callable[[str, int, Collection[str], float], None]"
"""(source, number, equal profiles, seconds of processor time for that message)."""


class LateResults:
    """``answer`` where it is known; else it is asked for, and ``awaited``."""

    def __init__(
        self,
        limits: MessageLimits,
        clock: Callable[[], float],
        tell_cost: TellCost,
        seconds_for: Callable[[str], float],
    ) -> None:
        """``tell_cost`` is told what profiles have taken together; ``seconds_for``: the processor
        time, by ``clock``, that a profile may take for a message now."""
        self._tell_cost, self._seconds_for = tell_cost, seconds_for
        self._limits = limits
        self._clock = clock
        self._waiting: dict[str, tuple[str, int, list[str]]] = {}  # what was asked, for whom
        self._answers: dict[str, ProfileEvaluated] = {}
        self.asks: list[AskEvaluation] = []
        """That nobody has said yet."""

    def answer(
        self, source: str, number: int, text: str, stream: ElementStream, profiles: list[str]
    ) -> ProfileEvaluated | None:
        """What profiles of a text get of a message; None: not yet."""
        key = _key(source, number, text)
        found = self._answers.get(key)
        if found is None and key not in self._waiting:
            seconds = self._seconds_for(profiles[0])
            if not seconds:
                return SUSPENDED
            self._waiting[key] = source, number, profiles
            self.asks.append(
                AskEvaluation(key, question_about(text, stream, self._limits, seconds))
            )
        return found

    def at_once(
        self, source: str, number: int, text: str, stream: ElementStream, profiles: list[str]
    ) -> ProfileEvaluated:
        """The same for somebody who cannot wait."""
        seconds = self._seconds_for(profiles[0])
        if not seconds:
            return SUSPENDED
        found = evaluate(text, stream, seconds, self._clock, self._clock())
        self._tell_cost(source, number, profiles, found.seconds)
        return found

    def answered(self, event: Evaluated) -> None:
        asked = self._waiting.pop(event.key, None)
        if asked is None:
            return
        self._tell_cost(*asked, event.answer.seconds)
        while len(self._answers) >= ANSWERS_MAX:
            del self._answers[next(iter(self._answers))]
        self._answers[event.key] = event.answer

    @property
    def is_awaited(self) -> bool:
        """Whether an answer is to come."""
        return bool(self._waiting)

    @property
    def is_busy(self) -> bool:
        """Whether there are answers, or are to come."""
        return bool(self._waiting or self._answers)

    def knows(self, source: str, number: int, text: str) -> bool:
        """Whether it was asked for already."""
        key = _key(source, number, text)
        return key in self._waiting or key in self._answers


def _key(source: str, number: int, text: str) -> str:
    return f"{number} {source} {text}"
