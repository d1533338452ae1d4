"""AuditLog: the chains of the network (overlay/link/audit.py); durable.

The verb ``audit.list`` shows it.  The newest entries are kept; the log of the process, to which
each goes as well, with its digest, may keep more.  Brokers are told the last digests in the second
in which these change.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from overlay import verbs
from overlay.answers import AuditEntry, AuditPage
from overlay.link.arrival import Arrival
from overlay.link.audit import Refusals, digest_of, most_kept
from overlay.link.core_context import CoreContext
from overlay.link.durable import StoredMap
from overlay.link.frame import AUDIT
from overlay.link.frames import AUDIT_LENGTH_MAX, Audited, AuditMarks
from overlay.link.part import Part, Taker, takes
from overlay.link.request_server import Verb, alone
from overlay.link.row_log import RowLog, number_key
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table
from overlay.topology import Topology

PAGE = 1_000
ITSELF = "registration"  # by nobody's request
AUTHORITY = "authority"  # by whoever has the authority of the network


class Entry(Row, frozen=True):
    """At a ``second`` of the calendar ``who`` (a principal; "-" without TLS) has done ``what``, a
    verb, as ``detail`` says; ``before``: the digest of the entry before it."""

    second: int
    who: str
    what: str
    detail: str
    before: str = ""


class _Lines(Row, frozen=True):
    """So many lines of a file have entries."""

    count: int


TABLES = {False: Table("audit", Entry), True: Table("audit-refused", Entry)}
LINES = Table("audit-lines", _Lines)


class _Chain:
    """``digest`` of the last entry, "" before there is one."""

    def __init__(self, rows: RowLog, *, refused: bool) -> None:
        self.entries: deque[AuditEntry] = deque()
        self.digest = ""
        self.refused = refused
        self._rows = rows
        self._table = TABLES[refused]
        self._most = most_kept(refused=refused)

    def restore(self, rows: StoredRows) -> None:
        for key, entry in sorted(rows.take(self._table), key=lambda each: each[0]):
            self._take(int(key), entry)

    def add(self, number: int, second: int, who: str, what: str, detail: str) -> AuditEntry:
        entry = Entry(second, who, what, detail, self.digest)
        self._table.put(self._rows, number_key(number), entry)
        if len(self.entries) == self._most:
            self._table.delete(self._rows, number_key(self.entries.popleft().number))
        return self._take(number, entry)

    def _take(self, number: int, entry: Entry) -> AuditEntry:
        said = entry.second, entry.who, entry.what, entry.detail
        taken = AuditEntry(number, *said, self.refused, entry.before)
        self.entries.append(taken)
        self.digest = digest_of(taken)
        return taken


class AuditLog(Part):
    """Notes what requests have done (Changed), whom they were refused, what brokers and the list of
    certificates say, and by ``note`` what the service does by itself, in the call that does it:
    both are committed, or neither."""

    def __init__(
        self, context: CoreContext, certificates: Callable[[], Mapping[str, Sequence[str]]] = dict
    ) -> None:
        """``certificates``: the lines of those that the authority has issued and revoked, by what
        it has done."""
        self._certificates = certificates
        self._lines = StoredMap(context.rows, LINES)
        self._wall = context.wall
        self._say = context.say
        self._links = context.links
        self._brokers = context.topology.broker_ids
        self._told: dict[str, int] = {}  # numbers, by broker, on the connection that is there
        self._chains = {refused: _Chain(context.rows, refused=refused) for refused in TABLES}
        self._last = 0
        self._refusals = Refusals(self._note_refused)
        context.server.audit = self.note
        context.server.refused = self._refusals.note
        self.verbs = (Verb(verbs.AuditList, alone(self._list)),)

    def restore(self, rows: StoredRows) -> None:
        for chain in self._chains.values():
            chain.restore(rows)
            if chain.entries:
                self._last = max(self._last, chain.entries[-1].number)

    def frames(self) -> Sequence[Taker]:
        return (takes(Audited, "broker", self._handle_audited),)

    def use_topology(self, topology: Topology) -> None:
        """Brokers have come or gone."""
        self._brokers = topology.broker_ids

    def gone(self, arrival: Arrival) -> None:
        self._told.pop(arrival.sender, None)

    def tick(self, now: float) -> None:
        self._refusals.tick(now)
        for what, lines in self._certificates().items():
            self._note_lines(what, lines)
        for broker in self._brokers:
            self._tell(broker)

    def _tell(self, broker: str) -> None:
        """The digests that a connected broker does not know."""
        connection = self._links.connection_of(f"broker/{broker}")
        is_told = self._told.get(broker, 0) == self._last
        if connection is None or is_told or AUDIT not in self._links.features(f"broker/{broker}"):
            return
        self._told[broker] = self._last
        chains = [chain for chain in self._chains.values() if chain.entries]
        last = [(chain.entries[-1].number, chain.digest, chain.refused) for chain in chains]
        self._links.reply(connection, AuditMarks(last))

    def note(self, who: object, what: str, detail: str, *, refused: bool = False) -> None:
        self._last += 1
        chain = self._chains[refused]
        shown = "-" if who is None else str(who)
        said = detail[:AUDIT_LENGTH_MAX]
        entry = chain.add(self._last, int(self._wall()), shown, what, said)
        kind = "refusal" if refused else "change"
        self._say(f"audit: {shown}: {what}: {entry.detail} ({kind} {self._last}, {chain.digest})")

    def _note_refused(self, who: str, what: str, detail: str) -> None:
        self.note(who, what, detail, refused=True)

    def _note_lines(self, what: str, lines: Sequence[str]) -> None:
        known = self._lines[what].count if what in self._lines else 0
        if len(lines) in (0, known):  # none: a standby's machine may lack the list
            return
        self._lines[what] = _Lines(len(lines))
        if len(lines) < known:
            self.note(AUTHORITY, what, f"{known - len(lines)} lines are gone from the list")
        for line in lines[known:]:
            self.note(AUTHORITY, what, line)

    def _handle_audited(self, frame: Audited, arrival: Arrival) -> None:
        detail = f"{frame.detail} (at {arrival.sender})"
        self.note(frame.who, frame.what, detail, refused=frame.refused)

    def _list(self, asked: verbs.AuditList) -> AuditPage:
        every = (each for chain in self._chains.values() for each in chain.entries)
        found = sorted((e for e in every if e.number > asked.after), key=lambda e: e.number)
        return AuditPage(found[:PAGE], more=len(found) > PAGE)
