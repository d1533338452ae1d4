"""Rendering: bindings and results of one query of the index on one message."""

from __future__ import annotations

from collections.abc import Callable

from formats.element_stream import ElementStream
from yfilter.answers import Answer, Answers
from yfilter.engine.readings import Reading, Readings
from yfilter.language.interpreted_result import selected
from yfilter.local_queries import tree_of


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
                self._bindings = selected(profile, stream)
        return self._bindings

    def results(self) -> list[bytes]:
        if self._results is None:
            if self._answer is None:
                self._results = [self._answers.whole_message(self._message)]
            else:
                self._show(self._message.in_(self._reading))
                self._results = self._answers.results(self._answer, self._message, self._reading)
        return self._results
