"""SourceQuestions: clients ask a source through this broker, its root; its process answers, of
several the first that answers questions.

::

    client                  root broker                  process of the source
      │─── source.ask ─────────>│─── source-asked ────────────────>│
      │<── response ────────────│<──────────────── source-answered ─│

Nothing is stored: a question ends with its answer, its time, or the connection of either end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from formats.errors import Fault, Refusal, read_fault
from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.network.publishers import Publishers
from overlay import verbs
from overlay.access import Right
from overlay.answers import SourceAnswer
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.errors import ProtocolError
from overlay.link.frame import SOURCE_QUESTIONS
from overlay.link.frames import (
    QUESTIONS_BYTES_MAX,
    QUESTIONS_MAX,
    Request,
    Response,
    SourceAnswered,
    SourceAsked,
)
from overlay.link.part import Part, Taker, takes
from overlay.link.request_server import RequestRefused, Verb

NO_ANSWERS = "no-answers"
OF_ASKER_MAX = 16  # open questions to one source


@dataclass(frozen=True, slots=True)
class Question:
    """``connection``: of the client; ``asker``: its principal, or without TLS its connection;
    ``left``: connections of other publishers that are asked if this one answers no questions."""

    source: str
    connection: int
    request: str
    asker: str
    asked: SourceAsked
    until: float
    left: list[int]


class SourceQuestions(Part):
    """``source.ask``."""

    def __init__(self, context: CoreContext, control: ControlPlane, publishers: Publishers) -> None:
        self._control = control
        self._publishers = publishers
        self._answer: set[int] = set()  # connections that have
        self._links = context.links
        self.verbs = (Verb(verbs.SourceAsk, self._ask, control.source_named),)
        # By the connection of the source, and by number.
        self._open: defaultdict[int, dict[int, Question]] = defaultdict(dict)
        self._asked = 0

    def frames(self) -> Iterable[Taker]:
        yield takes(SourceAnswered, "source", self._answered, is_aside=True, right=Right.PUBLISH)

    def _ask(self, connection: int, request: Request, asked: verbs.SourceAsk) -> None:
        source = asked.source
        self._control.check_root(source)
        here = self._publishers.connections(source)
        if not here:
            raise RequestRefused("source-away", f"no process is connected as the source {source}")
        left = [there for peer, there in here if SOURCE_QUESTIONS in self._links.features(peer)]
        if not left:
            raise RequestRefused(NO_ANSWERS, f"{source} is of a release that answers nothing")
        left.sort(key=lambda there: there not in self._answer)
        there = left.pop(0)
        principal = self._links.principal(connection)
        said = "" if principal is None else str(principal)
        asker = said or f"connection {connection}"
        self._check_room(self._open[there], asker, len(asked.body))
        self._asked += 1
        try:
            frame = SourceAsked(self._asked, said, asked.writes, asked.body)
            self._links.reply(there, frame)
        except ProtocolError as error:
            raise RequestRefused(error.code, f"{source} cannot be asked: {error.reason}") from None
        now = 0.0 if self.agenda is None else self.agenda.now
        self._open[there][self._asked] = Question(
            *(source, connection, request.request, asker, frame, now + asked.timeout, left)
        )

    def _check_room(self, waiting: Mapping[int, Question], asker: str, size: int) -> None:
        """RequestRefused "busy" where too many questions to the source are open."""
        own = sum(question.asker == asker for question in waiting.values())
        size += sum(len(question.asked.payload) for question in waiting.values())
        if own >= OF_ASKER_MAX or len(waiting) >= QUESTIONS_MAX or size > QUESTIONS_BYTES_MAX:
            raise RequestRefused(
                "busy",
                f"{len(waiting)} questions to the source are open, {own} of them by {asker}; at "
                f"most {QUESTIONS_MAX}, {OF_ASKER_MAX} of one principal, and "
                f"{QUESTIONS_BYTES_MAX:,} bytes",
            )

    def _answered(self, frame: SourceAnswered, arrival: Arrival) -> None:
        question = self._open[arrival.connection].pop(frame.number, None)
        if question is None:
            return  # it came too late
        if frame.fault.get("code") == NO_ANSWERS and question.left:
            there = question.left.pop(0)
            self._links.reply(there, question.asked)
            self._open[there][frame.number] = question
            return
        self._answer.add(arrival.connection)
        if frame.fault:
            usual = Fault("source-failed", f"{question.source} has refused, and does not say why")
            self._refuse(question, read_fault(frame.fault, usual))
            return
        result = SourceAnswer(frame.payload).result()
        self._links.reply(question.connection, Response(question.request, ok=True, result=result))

    def gone(self, arrival: Arrival) -> None:
        self._answer.discard(arrival.connection)
        for question in self._open.pop(arrival.connection, {}).values():
            reason = f"the connection of {question.source} was lost before its answer"
            self._refuse(question, Fault("source-lost", reason))
        for waiting in self._open.values():
            for number in [n for n in waiting if waiting[n].connection == arrival.connection]:
                del waiting[number]

    def tick(self, now: float) -> None:
        for waiting in self._open.values():
            for number in [n for n in waiting if waiting[n].until <= now]:
                question = waiting.pop(number)
                reason = f"{question.source} has not answered in time"
                self._refuse(question, Fault("timeout", reason))

    @property
    def open(self) -> int:
        """Questions that have not been answered."""
        return sum(map(len, self._open.values()))

    def _refuse(self, question: Question, fault: Fault) -> None:
        result = Refusal(fault).answer()
        self._links.reply(question.connection, Response(question.request, ok=False, result=result))
