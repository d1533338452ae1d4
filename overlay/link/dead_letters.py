"""DeadLetters: inputs at which a core fell over, kept aside and passed over from then on.

::

    input ─> core raises ─> the shell stores a dead letter, by itself, and makes a new core
    the same input again ─> passed over; whoever can be told is told ``internal`` and the id

A request that fails before anything was changed ends nothing: it is answered ``internal`` in its
place and kept as well.  The log has the traceback under the id.

Bounded: KEPT_MAX letters, the oldest go, of each DATA_BYTES_MAX of the input.  Of what a broker or
the registration service says about interests, profiles and sources only PASSED_MAX inputs are
passed over before somebody looks (``dead.remove``): each leaves a gap in what the network knows.
Who has ended a core FELLED_MAX times is not let in again before that: a source, or a user whom the
connection's principal names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from traceback import format_exception

from overlay.access import Right
from overlay.link.arrival import Arrival
from overlay.link.events import Failed, Put
from overlay.link.frames import Publish, Refused, Request, Response
from overlay.link.link_layer import LinkLayer
from overlay.link.part import Part
from overlay.link.principal import NOBODY
from overlay.link.request_server import RequestRefused, Result, Verb, name_argument
from overlay.link.row_log import RowLog
from overlay.link.row_store import RowStore
from overlay.link.stored_rows import StoredRows
from overlay.link.suspect import Suspect, id_of, mark_of, marked, suspect_of
from overlay.link.tables import Table
from overlay.link.work_mark import WorkMark, unshared_mark

INTERNAL = "internal"
KEPT_MAX = 256
DATA_BYTES_MAX = 64 * 1024
TRACE_LENGTH_MAX = 16 * 1024
PASSED_MAX = 16
FELLED_MAX = 8
_BARRED_ROLES = ("source/", "user/")
FAILURES_MAX = 8  # of one connection; beyond, it is closed
_ROLES = ("broker/", "registration/")


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """``at`` in seconds of the calendar; ``size`` of the whole input, of which ``data`` may
    be the beginning; ``has_ended``: it has ended a core, and is passed over."""

    at: float
    what: str
    who: str
    error: str
    trace: str
    size: int
    data: bytes
    has_ended: bool


DEAD = Table("dead", DeadLetter)


def dead_letter(
    suspect: Suspect, error: BaseException, at: float, *, has_ended: bool
) -> DeadLetter:
    trace = "".join(format_exception(error))[-TRACE_LENGTH_MAX:]
    said = f"{type(error).__name__}: {error}"[:500]
    size, data = len(suspect.data), suspect.data[:DATA_BYTES_MAX]
    return DeadLetter(at, suspect.what, suspect.who, said, trace, size, data, has_ended)


def keep_aside(store: RowStore, suspect: Suspect, error: BaseException, at: float) -> None:
    """In a commit of its own, when the core that fell over at it is gone."""
    letter = dead_letter(suspect, error, at, has_ended=True)
    store.commit([Put(DEAD.space, suspect.id, DEAD.pack(letter))])


class DeadLetters(Part):
    """``passed_over``: the ids of inputs that have ended a core; ask only where there are any."""

    section = "dead"

    def __init__(
        self,
        links: LinkLayer,
        rows: RowLog,
        wall: Callable[[], float],
        mark: WorkMark | None = None,
    ) -> None:
        """``wall``: seconds of the calendar; ``mark``: where a core says what it is at."""
        self.mark = unshared_mark() if mark is None else mark
        self._links = links
        self._rows = rows
        self._wall = wall
        self._letters: dict[str, DeadLetter] = {}  # by id, the oldest first
        self.passed_over: set[str] = set()
        self.felled: Counter[str] = Counter()  # by who, if they may be kept out for it
        self._counters: Counter[str] = Counter()
        self._failures: Counter[int] = Counter()  # answered in their place, by connection
        self.verbs: dict[str, Verb] = {
            "dead.list": Verb(Right.OPERATE, self._list),
            "dead.show": Verb(Right.OPERATE, self._show),
            "dead.remove": Verb(Right.OPERATE, self._remove),
        }

    def restore(self, rows: StoredRows) -> None:
        found = sorted(rows.take(DEAD), key=lambda entry: entry[1].at)
        self._letters = dict(found)
        gaps = [name for name, letter in found if letter.who.startswith(_ROLES)]
        self.passed_over = {name for name, letter in found if letter.has_ended}
        self.passed_over -= set(gaps[PASSED_MAX:])
        self.felled.update(
            letter.who
            for _, letter in found
            if letter.has_ended and letter.who.startswith(_BARRED_ROLES)
        )
        self._drop_oldest()

    def suspect(self, arrival: Arrival) -> Suspect:
        """The input, and who it is of: whom the principal of the connection names, of a client."""
        who, role = arrival.peer, arrival.peer.partition("/")[0]
        principal = self._links.principal(arrival.connection)
        if role in ("client", "subscriber") and principal not in (None, NOBODY):
            who = str(principal)
        return suspect_of(arrival, who)

    def bar(self, arrival: Arrival) -> str:
        """Why a hello is not accepted; "" if it is."""
        for who in (arrival.peer, str(self._links.principal(arrival.connection))):
            if self.felled[who] >= FELLED_MAX:
                times = f"{who} has ended this process {self.felled[who]} times"
                return f"{times}; onyx dead list shows the operator at what"
        return ""

    def gone(self, arrival: Arrival) -> None:
        self._failures.pop(arrival.connection, None)

    def known(self, arrival: Arrival) -> str:
        """The id of an arrival that has ended a core, or its process; else ""."""
        names = id_of(arrival), marked(mark_of(arrival)).id
        return next((name for name in names if name in self.passed_over), "")

    def passes_stored(self, suspect: Suspect) -> bool:
        """Whether a message that is in the store is not to be looked at."""
        is_passed = suspect.id in self.passed_over
        if is_passed:
            self._pass(suspect.id, suspect)
        return is_passed

    def passes(self, arrival: Arrival) -> str:
        """Why an arrival is not to be handled, "" if it is; whoever has sent it is told, if they
        can be."""
        name = self.known(arrival)
        if not name:
            return ""
        self._pass(name, self.suspect(arrival))
        frame = arrival.frame
        if isinstance(frame, Request):
            self._answer(arrival.connection, frame, name)
        elif isinstance(frame, Publish):
            source = arrival.sender
            refused = Refused(source, arrival.sequence, INTERNAL, said_of(name), 0, 0)
            self._links.send(arrival.peer, source, refused)
        elif not arrival.sequence:
            self._links.refuse(arrival.connection, INTERNAL, said_of(name))
        return said_of(name)

    def answer_failed(self, connection: int, request: Request, error: Exception) -> None:
        """Nothing was changed by a request that has failed: it is answered and kept, no more."""
        peer = self._links.peer_of(connection)
        suspect = self.suspect(Arrival(connection, peer, request))
        letter = dead_letter(suspect, error, self._wall(), has_ended=False)
        if suspect.id not in self._letters:
            self._letters[suspect.id] = letter
            DEAD.put(self._rows, suspect.id, letter)
            self._drop_oldest()
        self._counters["answered"] += 1
        self.ask_shell(Failed(suspect.id, letter.what, letter.trace))
        self._answer(connection, request, suspect.id)
        self._failures[connection] += 1
        if self._failures[connection] > FAILURES_MAX:
            self._links.refuse(connection, "too-many-errors", f"{FAILURES_MAX} requests failed")

    def statistics(self) -> Mapping[str, int]:
        return {"kept": len(self._letters), **self._counters}

    # --- helpers --------------------------------------------------------------------------

    def _pass(self, name: str, suspect: Suspect) -> None:
        """Of an input that has ended the process nothing was kept before it comes again."""
        self._counters["passed_over"] += 1
        letter = self._letters.get(name)
        if letter is not None and not letter.size:
            size, data = len(suspect.data), suspect.data[:DATA_BYTES_MAX]
            what, who = suspect.what, suspect.who
            letter = replace(letter, what=what, who=who, size=size, data=data)
            self._letters[name] = letter
            DEAD.put(self._rows, name, letter)

    def _answer(self, connection: int, request: Request, name: str) -> None:
        result = {"code": INTERNAL, "message": said_of(name)}
        self._links.reply(connection, Response(request.request, ok=False, result=result))

    def _drop_oldest(self) -> None:
        while len(self._letters) > KEPT_MAX:
            self._drop(next(iter(self._letters)))

    def _drop(self, name: str) -> None:
        letter = self._letters.pop(name)
        if letter.who in self.felled and letter.has_ended:
            self.felled[letter.who] -= 1
        self.passed_over.discard(name)
        DEAD.delete(self._rows, name)

    def _list(self, connection: int, request: Request) -> Result:
        return {"letters": [_shown(name, letter) for name, letter in self._letters.items()]}

    def _show(self, connection: int, request: Request) -> Result:
        name, letter = self._letter_argument(request)
        return {**_shown(name, letter), "trace": letter.trace, "data": letter.data}

    def _remove(self, connection: int, request: Request) -> Result:
        """From now on it is handled when it comes again."""
        name, _ = self._letter_argument(request)
        self._drop(name)
        return {"removed": name}

    def _letter_argument(self, request: Request) -> tuple[str, DeadLetter]:
        name = name_argument(request, "id")
        if name not in self._letters:
            raise RequestRefused("unknown-letter", f"there is no dead letter {name!r} here")
        return name, self._letters[name]


def said_of(name: str) -> str:
    """To whoever sent it."""
    return (
        f"an error in this process, not in what was asked; its log explains it under {name}, "
        "and onyx dead show has it for the operator"
    )


def _shown(name: str, letter: DeadLetter) -> Result:
    keys: Iterable[str] = ("at", "what", "who", "error", "size", "has_ended")
    return {"id": name, **{key: getattr(letter, key) for key in keys}}
