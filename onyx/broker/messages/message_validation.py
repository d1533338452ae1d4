"""MessageValidation: messages of sources that have them validated, until it is known what they are.

::

    Publish ──> held ──question──> a process of its own (formats/schema_worker.py)
    taken  <─── in order  <──────── SchemaAnswered

What is held is not taken: it is not acknowledged, nothing of it is stored, and it comes again when
its connection, or this process, ends before its turn.  So it counts against its source's window;
of all sources together no more than HELD_BYTES_MAX are held.  Of each source one question is under
way, about all that had come; meanwhile others ask theirs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from formats import DecodeError, MessageRefused, SchemaRefused, Validation, Violation, WireFormat
from formats.schema_questions import CheckMessages, Finding, MessagesChecked
from onyx.broker.messages.observers import Observers
from onyx.broker.messages.publish_quota import PublishQuota
from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.packing.codebook import is_media_type
from onyx.broker.packing.parcel import Parcel
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.events import AskSchemaWorker, Flow, SchemaAnswered
from overlay.link.frames import Publish
from overlay.link.part import Hearer, Part, hears
from overlay.link.suspect import CoreFailed, mark_of
from overlay.link.unfinished_frames import UnfinishedFrames
from overlay.link.work_mark import AT, MARK
from overlay.statistics import Data

HELD_BYTES_MAX = 64 * 1024 * 1024
ASKED_BYTES_MAX = 64 * 1024 * 1024  # in questions that are not answered; then nothing is asked
QUESTION_BYTES = 256 * 1024  # a question has no more messages behind so many
QUESTION_MESSAGES = 64


_NO_DOCUMENT = SchemaRefused(
    "no-document", "a graph is no document that could be held against the source's XML schema"
)


@dataclass(slots=True)
class Held:
    """``found`` of the message, once it is decided: what is wrong with it, None if nothing is."""

    arrival: Arrival
    parcel: Parcel | None = None
    is_decided: bool = False
    found: Finding | MessageRefused | DecodeError = None

    def decide(self, found: Finding | MessageRefused | DecodeError) -> None:
        self.is_decided, self.found = True, found

    def open(self, tree: str) -> Parcel:
        """The message, to go down a tree; MessageRefused or DecodeError where it is none."""
        if isinstance(self.found, MessageRefused | DecodeError):
            raise self.found
        assert self.parcel is not None
        self.parcel.root = tree
        return self.parcel


@dataclass(slots=True)
class _Line:
    """What is held of a source."""

    connection: int
    held: deque[Held] = field(default_factory=deque)
    bytes: int = 0


@dataclass(slots=True)
class _Question:
    about: list[Held]
    bytes: int


class MessageValidation(Part):
    """``taken`` says whether it is a message's turn; ``judge`` what becomes of it then."""

    def __init__(
        self,
        context: CoreContext,
        control: ControlPlane,
        quota: PublishQuota,
        observers: Observers,
        counted: Data,
        open_: Callable[[Publish, int], Parcel],
    ) -> None:
        """``open_`` a message with its number."""
        self._control = control
        self._links = context.links
        self._quota = quota
        self._observers = observers
        self._dead = context.dead
        self._is_over = context.slice.is_over
        self._open = open_
        self._lines: dict[str, _Line] = {}  # by source
        self._asked: dict[str, _Question] = {}  # by source, which may be gone meanwhile
        self._room = UnfinishedFrames(HELD_BYTES_MAX)
        self._to_do: dict[str, None] = {}  # sources, in turn
        self._turn: Held | None = None
        self._counted = counted

    def awaits(self, arrival: Arrival) -> bool:
        """Whether it has to come to ``taken`` before anybody acts on it."""
        frame = arrival.frame
        return (
            isinstance(frame, Publish)
            and frame.source in self._control.validated
            and (self._turn is None or self._turn.arrival is not arrival)
        )

    def taken(self, arrival: Arrival) -> Held | None:
        """The message if it is its turn; None: it is held, and is handed on again then."""
        if self._turn is not None and self._turn.arrival is arrival:
            return self._turn
        self._hold(Held(arrival))
        return None

    def judge(self, held: Held) -> None:
        """MessageRefused if its source has what was found refused."""
        source, number, found = held.arrival.sender, held.arrival.sequence, held.found
        refuses = self._control.sources[source].validation == Validation.REJECT
        if found is None:
            self._counted.valid += 1
        elif isinstance(found, SchemaRefused):
            self._counted.not_validated += 1
            if refuses:
                raise MessageRefused(found.code, found.reason)
        elif isinstance(found, Violation):
            self._counted.invalid += 1
            self._counted.invalid_by_source[source] += 1
            if self._observers.connections:
                self._observers.note("invalid", source, number, reason=found.reason)
            if refuses:
                raise MessageRefused("invalid", found.reason, found.line, found.column)

    def events(self) -> Iterable[Hearer]:
        yield hears(SchemaAnswered, self._answered)

    def _answered(self, event: SchemaAnswered) -> bool:
        about, found = self._asked.pop(event.key).about, event.answer
        findings: Iterable[Finding] = ()
        if isinstance(found, MessagesChecked):
            findings = found.findings
        elif isinstance(found, SchemaRefused):  # all its messages cost too much
            findings = [found] * len(about)
        for held, finding in zip(about, findings, strict=False):  # of the others it is asked again
            held.decide(finding)
        self._do_soon(event.key)
        return True

    def begin_anew(self, source: str, code: str, detail: str) -> None:
        """Its schema is another, or it is gone: what is held comes again, on another connection, or
        not at all."""
        line = self._lines.get(source)
        if line is not None:
            self._drop(source)
            self._links.refuse(line.connection, code, detail)

    def gone(self, arrival: Arrival) -> None:
        """What is held comes again."""
        line = self._lines.get(arrival.sender)
        if line is not None and line.connection == arrival.connection:
            self._drop(arrival.sender)

    def work(self) -> None:
        self.flush_soon()

    def flush(self) -> None:
        """Ask about what has come, then take what is decided: until the slice is over."""
        to_do, self._to_do = self._to_do, {}
        for source in to_do:
            if source in self._lines and source not in self._asked:
                self._ask(source)
        waiting = deque(to_do)
        while waiting:
            source = waiting.popleft()
            if self._take_first(source):
                waiting.append(source)
                if self._is_over():
                    self._to_do.update(dict.fromkeys(waiting))
                    self.work_soon()
                    return

    # --- helpers --------------------------------------------------------------------------

    def _hold(self, held: Held) -> None:
        """Behind all that are, also if it is decided already."""
        arrival = held.arrival
        source, frame = arrival.sender, arrival.frame
        assert isinstance(frame, Publish)
        self._links.journal(arrival.peer).hold(Flow.MESSAGE, arrival.key, arrival.sequence)
        if self._dead.passed_over and self._dead.known(arrival):
            held.decide(None)
        elif self._quota.is_on and self.agenda is not None:
            try:
                self._quota.check(arrival.connection, len(frame.payload), self.agenda.now)
            except MessageRefused as refusal:
                held.decide(refusal)
        line = self._lines.setdefault(source, _Line(arrival.connection))
        line.held.append(held)
        line.bytes += len(frame.payload)
        self._do_soon(source)
        for connection, size in self._room.note(arrival.connection, line.bytes):
            detail = f"{size} bytes of messages are to be validated, and there is no room for more"
            self._links.refuse(connection, "no-room", detail)

    def _do_soon(self, source: str) -> None:
        self._to_do[source] = None
        self.flush_soon()

    def _ask(self, source: str) -> None:
        if sum(question.bytes for question in self._asked.values()) >= ASKED_BYTES_MAX:
            self._to_do[source] = None  # until others are answered
            return
        about: list[Held] = []
        texts: list[bytes] = []
        size = 0
        for held in self._lines[source].held:
            text = None if held.is_decided else self._text(held)
            if text is not None:
                about.append(held)
                texts.append(text)
                size += len(text)
                if size >= QUESTION_BYTES or len(texts) >= QUESTION_MESSAGES:
                    break
        if about:
            self._asked[source] = _Question(about, size)
            question = CheckMessages(self._control.schema_of(source), tuple(texts))
            self.ask_shell(AskSchemaWorker(source, question))

    def _text(self, held: Held) -> bytes | None:
        """As it was written; None, and it is decided, if it cannot be read, or is a graph."""
        arrival = held.arrival
        MARK.pack_into(self._dead.mark, 0, AT, mark_of(arrival).encode())
        try:
            if held.parcel is None:
                assert isinstance(arrival.frame, Publish)
                held.parcel = self._open(arrival.frame, arrival.sequence)
                if is_media_type(arrival.frame.format):
                    held.decide(_NO_DOCUMENT)
                    return None
            return held.parcel.in_form(WireFormat.TEXT)
        except (MessageRefused, DecodeError) as refusal:
            held.decide(refusal)
            return None
        except Exception as error:
            raise CoreFailed(self._dead.suspect(arrival)) from error

    def _take_first(self, source: str) -> bool:
        """The first message of a source, if it is decided; False: there is none."""
        line = self._lines.get(source)
        if line is None or not line.held[0].is_decided:
            return False
        arrival = line.held[0].arrival
        if self._links.connection_of(arrival.peer) != arrival.connection:
            return False  # we are about to be told
        self._turn = line.held.popleft()
        assert isinstance(arrival.frame, Publish)
        line.bytes -= len(arrival.frame.payload)
        if line.held:
            list(self._room.note(arrival.connection, line.bytes))
        else:
            self._drop(source)
        self._links.journal(arrival.peer).settle(Flow.MESSAGE, arrival.key)
        self.hand_on(arrival)
        self._turn = None
        return True

    def _drop(self, source: str) -> None:
        self._room.forget(self._lines.pop(source).connection)
