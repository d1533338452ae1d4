"""MessageValidation: messages that a process of its own reads or validates, until they are known.

::

    Publish ──> held ──question──> a process of its own (formats/schema_worker.py)
    taken  <─── in order  <──────── SchemaAnswered

Of a source that has its messages validated all are held.  Of others those are that would stop the
broker for long: from LARGE_BYTES on graphs, RDF/XML, and XML that takes expat (formats/text.py);
from HUGE_BYTES on all XML; and all that come behind one that is held, of the same
publisher.

A held message is not taken: it is not acknowledged, nothing of it is stored, and it comes again
when its connection, or this process, ends before its turn.  So it counts against its
publisher's window; of all together no more than HELD_BYTES_MAX are held.  Of each one question is
under way, about all that had come or one message to read; meanwhile others ask theirs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from formats import DecodeError, MessageRefused, SchemaRefused, Validation, Violation, WireFormat
from formats.graph.syntaxes import by_media_type
from formats.media_types import TEXT
from formats.schema_questions import (
    CheckMessages,
    Finding,
    MessageRead,
    MessagesChecked,
    ReadMessage,
    SchemaQuestion,
)
from onyx.broker.messages.local_deliveries import LARGE_BYTES
from onyx.broker.messages.observers import Observers
from onyx.broker.messages.publish_quota import PublishQuota
from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.packing.codebook import Codebook, is_media_type
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
HUGE_BYTES = 1024 * 1024


_NO_DOCUMENT = SchemaRefused(
    "no-document", "a graph is no document that could be held against the source's XML schema"
)


@dataclass(slots=True)
class Held:
    """``found`` of the message, once it is decided: what is wrong with it, None if nothing is;
    ``largest``, ``seconds``: see MessageRead; ``parcel``: None if nobody has read it yet."""

    arrival: Arrival
    parcel: Parcel | None = None
    largest: int = 0
    seconds: float = 0.0
    is_decided: bool = False
    found: Finding | MessageRefused | DecodeError = None

    def decide(self, found: Finding | MessageRefused | DecodeError) -> None:
        self.is_decided, self.found = True, found

    def open(self, tree: str, number: int) -> Parcel | None:
        """The message, to go down a tree by a number; MessageRefused or DecodeError where it is
        none."""
        if isinstance(self.found, MessageRefused | DecodeError):
            raise self.found
        if self.parcel is not None:
            self.parcel.root, self.parcel.number = tree, number
        return self.parcel


@dataclass(slots=True)
class _Line:
    """What is held of a publisher."""

    source: str
    connection: int
    held: deque[Held] = field(default_factory=deque)
    bytes: int = 0


@dataclass(slots=True)
class _Question:
    about: list[Held]
    bytes: int


class MessageValidation(Part):
    """``awaits`` says whether a message has to be held, ``turn`` which one was and is to be taken
    now, and ``judge`` then what becomes of it.  ``lines``: what is held, by publisher."""

    def __init__(
        self,
        context: CoreContext,
        control: ControlPlane,
        quota: PublishQuota,
        observers: Observers,
        counted: Data,
        published: Codebook,
        open_: Callable[[Publish, int, MessageRead | None], Parcel],
    ) -> None:
        """``published``: of messages that no root broker has taken yet; ``open_`` one with its
        number, if another process has read it as that has."""
        self._control = control
        self._links = context.links
        self._quota = quota
        self._observers = observers
        self._dead = context.dead
        self._is_over = context.slice.is_over
        self._published = published
        self._open = open_
        self.lines: dict[str, _Line] = {}
        self._asked: dict[str, _Question] = {}  # by publisher, which may be gone meanwhile
        self._room = UnfinishedFrames(HELD_BYTES_MAX)
        self._to_do: dict[str, None] = {}  # publishers, in turn
        self.turn: Held | None = None
        self._counted = counted

    def awaits(self, arrival: Arrival) -> bool:
        """Whether it is to be held before anybody acts on it."""
        frame, turn = arrival.frame, self.turn
        if not isinstance(frame, Publish) or (turn is not None and turn.arrival is arrival):
            return False
        return (
            frame.source in self._control.validated
            or arrival.peer in self.lines
            or (len(frame.payload) >= LARGE_BYTES and self._is_dear(arrival))
        )

    def hold(self, arrival: Arrival) -> None:
        """Behind all that are, also if it is decided already; it is handed on again in its turn."""
        by, frame, held = arrival.peer, arrival.frame, Held(arrival)
        assert isinstance(frame, Publish)
        self._links.journal(by).hold(Flow.MESSAGE, arrival.key, arrival.sequence)
        if self._is_known_dead(arrival):
            held.decide(None)
        elif self._quota.is_on and self.agenda is not None:
            try:
                self._quota.check(arrival.connection, len(frame.payload), self.agenda.now)
            except MessageRefused as refusal:
                held.decide(refusal)
        line = self.lines.setdefault(by, _Line(frame.source, arrival.connection))
        line.held.append(held)
        line.bytes += len(frame.payload)
        self._do_soon(by)
        for connection, size in self._room.note(arrival.connection, line.bytes):
            detail = f"{size} bytes of messages are to be validated, and there is no room for more"
            self._links.refuse(connection, "no-room", detail)

    def judge(self, held: Held, number: int) -> None:
        """MessageRefused if its source has what was found refused."""
        frame, found = held.arrival.frame, held.found
        assert isinstance(frame, Publish)
        source = frame.source
        if source not in self._control.validated:
            return
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
        findings: Iterable[Finding | MessageRefused] = ()
        if isinstance(found, MessageRead):
            self._take_read(about[0], found)
        elif isinstance(found, MessageRefused):
            findings = [found]
        elif isinstance(found, MessagesChecked):
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
        for by, line in [each for each in self.lines.items() if each[1].source == source]:
            self._drop(by)
            self._links.refuse(line.connection, code, detail)

    def gone(self, arrival: Arrival) -> None:
        """What is held comes again."""
        line = self.lines.get(arrival.peer)
        if line is not None and line.connection == arrival.connection:
            self._drop(arrival.peer)

    def work(self) -> None:
        self.flush_soon()

    def flush(self) -> None:
        """Ask about what has come, then take what is decided: until the slice is over."""
        to_do, self._to_do = self._to_do, {}
        for by in to_do:
            if by in self.lines and by not in self._asked:
                self._ask(by)
        waiting = deque(to_do)
        while waiting:
            by = waiting.popleft()
            if self._take_first(by):
                waiting.append(by)
                if self._is_over():
                    self._to_do.update(dict.fromkeys(waiting))
                    self.work_soon()
                    return

    # --- helpers --------------------------------------------------------------------------

    def _is_known_dead(self, arrival: Arrival) -> bool:
        return bool(self._dead.passed_over and self._dead.known(arrival))

    def _is_dear(self, arrival: Arrival) -> bool:
        """Whether to read it would stop the broker for long."""
        frame = arrival.frame
        assert isinstance(frame, Publish)
        if len(frame.payload) < LARGE_BYTES or self._is_known_dead(arrival):
            return False
        if frame.format != TEXT:
            return by_media_type(frame.format) is not None
        if len(frame.payload) >= HUGE_BYTES:
            return True
        try:
            with self._suspected(arrival):
                return not self._published.is_ordinary(frame.payload)
        except MessageRefused:
            return False  # nor is to refuse it dear

    @contextmanager
    def _suspected(self, arrival: Arrival) -> Iterator[None]:
        """Whatever goes wrong meanwhile is of this message."""
        MARK.pack_into(self._dead.mark, 0, AT, mark_of(arrival).encode())
        try:
            yield
        except (MessageRefused, DecodeError):
            raise
        except Exception as error:
            raise CoreFailed(self._dead.suspect(arrival)) from error

    def _do_soon(self, by: str) -> None:
        self._to_do[by] = None
        self.flush_soon()

    def _ask(self, by: str) -> None:
        if sum(question.bytes for question in self._asked.values()) >= ASKED_BYTES_MAX:
            self._to_do[by] = None  # until others are answered
            return
        about: list[Held] = []
        question: SchemaQuestion
        texts: list[bytes] = []
        size = 0
        line = self.lines[by]
        for held in line.held:
            if not held.is_decided and held.parcel is None and self._is_dear(held.arrival):
                if not about:
                    about, size, question = [held], *self._reading(held.arrival)
                break
            text = None if held.is_decided else self._text(held)
            if text is not None:
                about.append(held)
                texts.append(text)
                size += len(text)
                question = CheckMessages(self._control.schema_of(line.source), tuple(texts))
                if size >= QUESTION_BYTES or len(texts) >= QUESTION_MESSAGES:
                    break
        if about:
            self._asked[by] = _Question(about, size)
            self.ask_shell(AskSchemaWorker(by, question))

    def _reading(self, arrival: Arrival) -> tuple[int, ReadMessage]:
        frame = arrival.frame
        assert isinstance(frame, Publish)
        what = frame.source, frame.format, frame.payload
        return len(frame.payload), self._published.question(self._control.current_tree, *what)

    def _take_read(self, held: Held, read: MessageRead) -> None:
        frame = held.arrival.frame
        assert isinstance(frame, Publish)
        held.largest, held.seconds = read.largest, read.seconds
        held.parcel = self._open(frame, held.arrival.sequence, read)
        if frame.source not in self._control.validated:
            held.decide(None)
        elif is_media_type(frame.format):
            held.decide(_NO_DOCUMENT)

    def _text(self, held: Held) -> bytes | None:
        """As it was written; None, and it is decided, if it cannot be read, is a graph, or is not
        validated."""
        arrival = held.arrival
        frame = arrival.frame
        assert isinstance(frame, Publish)
        if frame.source not in self._control.validated:
            held.decide(None)
            return None
        try:
            with self._suspected(arrival):
                if held.parcel is None:
                    held.parcel = self._open(frame, arrival.sequence, None)
                    if is_media_type(frame.format):
                        held.decide(_NO_DOCUMENT)
                        return None
                elif frame.format == TEXT:
                    return frame.payload
                return held.parcel.in_form(WireFormat.TEXT)
        except (MessageRefused, DecodeError) as refusal:
            held.decide(refusal)
            return None

    def _take_first(self, by: str) -> bool:
        """The first message of a publisher, if it is decided; False: there is none."""
        line = self.lines.get(by)
        if line is None or not line.held[0].is_decided:
            return False
        arrival = line.held[0].arrival
        if self._links.connection_of(by) != arrival.connection:
            return False  # we are about to be told
        self.turn = line.held.popleft()
        assert isinstance(arrival.frame, Publish)
        line.bytes -= len(arrival.frame.payload)
        if line.held:
            list(self._room.note(arrival.connection, line.bytes))
        else:
            self._drop(by)
        self._links.journal(by).settle(Flow.MESSAGE, arrival.key)
        self.hand_on(arrival)
        self.turn = None
        return True

    def _drop(self, by: str) -> None:
        self._room.forget(self.lines.pop(by).connection)
