"""DeadLetters: what could not be dealt with, kept aside until somebody has looked.

``poison``: inputs at which a core fell over, passed over from then on::

    input ─> core raises ─> the shell stores a dead letter, by itself, and makes a new core
    the same input again ─> passed over; whoever can be told is told ``internal`` and the id

A request that fails before anything was changed ends nothing: it is answered ``internal`` in its
place and kept as well.  The log has the traceback under the id.

``refused``: messages that their sources were refused.  ``undeliverable``: deliveries that were
rejected as often as their profile's policy says.  ``over-limit``: of each profile, how many
deliveries had to go for want of room or time.  The last two belong to the profile's user, who may
see them.

Bounded: of each kind KEPT_MAX letters, the oldest of it go, of each DATA_BYTES_MAX of the input; of
a source NOTED_MAX refused messages a second, the others are counted.  Of what a broker or
the registration service says about interests, profiles and sources only PASSED_MAX inputs are
passed over before somebody looks (``dead.drop``): each leaves a gap in what the network knows.
Who has ended a core FELLED_MAX times is not let in again before that: a source, or a user whom the
connection's principal names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from hashlib import blake2b
from itertools import islice
from traceback import format_exception

import msgspec
from msgspec.structs import asdict, replace

from overlay import answers, verbs
from overlay.link.arrival import Arrival
from overlay.link.events import Failed, Put
from overlay.link.frames import Publish, Refused, Request, Response
from overlay.link.link_layer import LinkLayer
from overlay.link.part import Part
from overlay.link.principal import NOBODY, Principal
from overlay.link.request_server import RequestRefused, Verb, alone
from overlay.link.row_log import RowLog
from overlay.link.row_store import RowStore
from overlay.link.stored_rows import StoredRows
from overlay.link.suspect import Suspect, id_of, mark_of, marked, suspect_of
from overlay.link.tables import Row, Table
from overlay.link.work_mark import WorkMark, unshared_mark
from overlay.statistics import Dead, NodeStatistics

INTERNAL = "internal"
POISON, REFUSED, UNDELIVERABLE = "poison", "refused", "undeliverable"
OVER_LIMIT = "over-limit"
KINDS = (POISON, REFUSED, UNDELIVERABLE, OVER_LIMIT)
NOTED_MAX = 8
KEPT_MAX = 256
DATA_BYTES_MAX = 64 * 1024
TRACE_LENGTH_MAX = 16 * 1024
PASSED_MAX = 16
FELLED_MAX = 8
_BARRED_ROLES = ("source/", "user/")
FAILURES_MAX = 8  # of one connection; beyond, it is closed
_ROLES = ("broker/", "registration/")


class DeadLetter(Row, frozen=True):
    """``at`` in seconds of the calendar; ``size`` of the whole input, of which ``data`` may
    be the beginning; ``has_ended``: it has ended a core, and is passed over.

    Of a message, or what one has given: its ``source`` and ``number``; its ``format``, or the
    ``lengths`` of the results in ``data``; the ``profile`` that got them.  ``count``: how many, of
    which this is the last.
    """

    at: float
    what: str
    who: str
    error: str
    trace: str
    size: int
    data: bytes
    has_ended: bool
    kind: str = POISON
    profile: str = ""
    source: str = ""
    number: int = 0
    format: str = ""
    lengths: list[int] = msgspec.field(default_factory=list)
    count: int = 1

    @property
    def is_whole(self) -> bool:
        return self.size == len(self.data)


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
        self._of_profiles: Counter[str] = Counter()  # letters
        self.felled: Counter[str] = Counter()  # by who, if they may be kept out for it
        self._let_go = 0
        self._failures: Counter[int] = Counter()  # answered in their place, by connection
        self._noted: Counter[str] = Counter()  # refused messages since the last tick, by source
        self.verbs = (
            Verb(verbs.DeadList, self._list, self._users_named),
            Verb(verbs.DeadShow, alone(self._show), self._owners),
            Verb(verbs.DeadReplay, alone(self._replay), self._owners),
            Verb(verbs.DeadDrop, alone(self._drop_named), self._owners),
        )

    def restore(self, rows: StoredRows) -> None:
        found = sorted(rows.take(DEAD), key=lambda entry: entry[1].at)
        self._letters = dict(found)
        self._of_profiles.update(letter.profile for _, letter in found if letter.profile)
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
        peer = "/".join(arrival.peer.split("/")[:2])  # as which of its publishers, is all the same
        for who in (peer, str(self._links.principal(arrival.connection))):
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
            source = frame.source
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
            self._keep(suspect.id, letter)
        self.ask_shell(Failed(suspect.id, letter.what, letter.trace))
        self._answer(connection, request, suspect.id)
        self._failures[connection] += 1
        if self._failures[connection] > FAILURES_MAX:
            self._links.refuse(connection, "too-many-errors", f"{FAILURES_MAX} requests failed")

    def tick(self, now: float) -> None:
        self._noted.clear()

    def note_refused(
        self, source: str, number: int, why: str, format_name: str, data: bytes
    ) -> None:
        """A message was refused to its source."""
        self._noted[source] += 1
        if self._noted[source] > NOTED_MAX:
            return
        what = f"message {number} of {source}"
        letter = DeadLetter(
            *(self._wall(), what, f"source/{source}", why[:500], "", len(data)),
            *(data[:DATA_BYTES_MAX], False, REFUSED),
            source=source,
            number=number,
            format=format_name,
        )
        self._keep(_id_of(REFUSED, source, number), letter)

    def note_undeliverable(
        self,
        user: str,
        profile: str,
        message: tuple[str, int],
        why: str,
        results: tuple[list[int], bytes],
    ) -> None:
        """A profile's user could not do with what a ``message`` (source, number) gives: results of
        these lengths, end to end."""
        (source, number), (lengths, data) = message, results
        what = f"results of message {number} of {source} for {profile}"
        letter = DeadLetter(
            *(self._wall(), what, f"user/{user}", why[:500], "", len(data)),
            *(data[:DATA_BYTES_MAX], False, UNDELIVERABLE, profile, source, number),
            lengths=lengths if len(data) <= DATA_BYTES_MAX else [],
        )
        self._keep(_id_of(UNDELIVERABLE, f"{profile} {source}", number), letter)

    def note_dropped(self, user: str, profile: str, why: str, count: int) -> None:
        """Some deliveries of a profile had to go, besides those that had before."""
        name = _id_of(OVER_LIMIT, profile, 0)
        known = self._letters.get(name)
        total = count if known is None else known.count + count
        letter = DeadLetter(
            *(self._wall(), f"deliveries of {profile}", f"user/{user}", why, "", 0, b"", False),
            *(OVER_LIMIT, profile),
            count=total,
        )
        self._keep(name, letter)

    def forget_profile(self, profile: str) -> None:
        """A profile is gone."""
        if not self._of_profiles[profile]:
            return
        for name in [name for name, each in self._letters.items() if each.profile == profile]:
            self._drop(name)

    def report(self, said: NodeStatistics) -> None:
        kinds = Counter(letter.kind for letter in self._letters.values())
        said.dead = Dead(kinds[POISON], dict(kinds))

    # --- helpers --------------------------------------------------------------------------

    def _pass(self, name: str, suspect: Suspect) -> None:
        """Of an input that has ended the process nothing was kept before it comes again."""
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

    def _keep(self, name: str, letter: DeadLetter) -> None:
        """As the newest."""
        known = self._letters.pop(name, None)
        if known is None and letter.profile:
            self._of_profiles[letter.profile] += 1
        self._letters[name] = letter
        DEAD.put(self._rows, name, letter)
        self._drop_oldest()

    def _drop_oldest(self) -> None:
        kinds = Counter(letter.kind for letter in self._letters.values())
        for kind, count in kinds.items():
            oldest = (name for name, each in self._letters.items() if each.kind == kind)
            for name in list(islice(oldest, max(0, count - KEPT_MAX))):
                self._let_go += 1
                self._drop(name)

    def _drop(self, name: str) -> None:
        letter = self._letters.pop(name)
        self._of_profiles[letter.profile] -= bool(letter.profile)
        if letter.who in self.felled and letter.has_ended:
            self.felled[letter.who] -= 1
        self.passed_over.discard(name)
        DEAD.delete(self._rows, name)

    def _users_named(self, asked: verbs.DeadList, asker: Principal) -> Iterator[tuple[str, str]]:
        """Whose letters are to be listed: of one user, or all, which takes an operator."""
        user = verbs.user_meant(asked.user, asker)
        yield "", f"user/{user}" if user else ""

    def _owners(self, asked: verbs.DeadLetterNamed, asker: Principal) -> Iterator[tuple[str, str]]:
        """What belongs to a profile belongs to its user, all else to operators."""
        letter = self._letters.get(asked.id)
        if letter is not None:
            yield letter.profile, letter.who if letter.profile else ""

    def _list(self, connection: int, request: Request, asked: verbs.DeadList) -> answers.Letters:
        user = verbs.user_meant(asked.user, self._links.principal(connection))
        shown = [
            _shown(name, letter)
            for name, letter in self._letters.items()
            if not user or (letter.profile and letter.who == f"user/{user}")
        ]
        return answers.Letters(shown, self._let_go)

    def _show(self, asked: verbs.DeadShow) -> answers.LetterShown:
        letter = self._letter(asked.id)
        return answers.LetterShown(
            **asdict(_shown(asked.id, letter)),
            trace=letter.trace,
            data=letter.data,
            lengths=letter.lengths,
        )

    def _replay(self, asked: verbs.DeadReplay) -> answers.LetterReplayed:
        """Announce the letter to the part that deals with it once more, or let its input in when
        that comes again.  A source's message is returned: the client publishes it, and drops it."""
        name, letter = asked.id, self._letter(asked.id)
        if letter.kind == OVER_LIMIT:
            raise RequestRefused("not-kept", f"{name} counts what had to go, which is gone")
        if not letter.is_whole and letter.kind != POISON:
            raise RequestRefused(
                "not-kept",
                f"{name} has {letter.size} bytes, of which {len(letter.data)} were kept",
            )
        if letter.kind == REFUSED:
            return answers.LetterReplayed(name, letter.kind, letter.format, letter.data)
        self.announce(letter)
        self._drop(name)
        return answers.LetterReplayed(name, letter.kind)

    def _drop_named(self, asked: verbs.DeadDrop) -> answers.LetterDropped:
        self._letter(asked.id)
        self._drop(asked.id)
        return answers.LetterDropped(asked.id)

    def _letter(self, name: str) -> DeadLetter:
        if name not in self._letters:
            raise RequestRefused("unknown-letter", f"there is no dead letter {name!r} here")
        return self._letters[name]


def said_of(name: str) -> str:
    """To whoever sent it."""
    return (
        f"an error in this process, not in what was asked; its log explains it under {name}, "
        "and onyx dead show has it for the operator"
    )


def _id_of(kind: str, whose: str, number: int) -> str:
    return blake2b(f"{kind} {whose} {number}".encode(), digest_size=8).hexdigest()


def _shown(name: str, letter: DeadLetter) -> answers.Letter:
    fields = [each for each in answers.Letter.__struct_fields__ if each != "id"]
    return answers.Letter(id=name, **{each: getattr(letter, each) for each in fields})
