"""AuditLog: who has changed who may do what, the network's shape, or a source; durable.

The verb ``audit.list`` shows it.  The newest ENTRIES_MAX are kept; the log of the process, to which
each goes as well, may keep more.
"""

from __future__ import annotations

from collections import deque

from msgspec.structs import astuple

from overlay import verbs
from overlay.answers import AuditEntry, AuditPage
from overlay.link.core_context import CoreContext
from overlay.link.part import Part
from overlay.link.request_server import Verb, alone
from overlay.link.row_log import number_key
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table

ENTRIES_MAX = 20_000
PAGE = 1_000
TEXT_LENGTH_MAX = 2_000
ITSELF = "registration"  # by nobody's request


class Entry(Row, frozen=True):
    """At a ``second`` of the calendar ``who`` (a principal; "-" without TLS) has done ``what``, a
    verb, as ``detail`` says."""

    second: int
    who: str
    what: str
    detail: str


ENTRIES = Table("audit", Entry)


class AuditLog(Part):
    """Notes what requests have done (Changed), and by ``note`` what the service does by itself, in
    the call that does it: both are committed, or neither."""

    def __init__(self, context: CoreContext) -> None:
        self._rows = context.rows
        self._wall = context.wall
        self._say = context.say
        self._entries: deque[tuple[str, Entry]] = deque()
        self._last = 0
        context.server.audit = self.note
        self.verbs = (Verb(verbs.AuditList, alone(self._list)),)

    def restore(self, rows: StoredRows) -> None:
        self._entries.extend(sorted(rows.take(ENTRIES), key=lambda each: each[0]))
        if self._entries:
            self._last = int(self._entries[-1][0])

    def note(self, who: object, what: str, detail: str) -> None:
        self._last += 1
        key = number_key(self._last)
        shown = "-" if who is None else str(who)
        entry = Entry(int(self._wall()), shown, what, detail[:TEXT_LENGTH_MAX])
        self._entries.append((key, entry))
        ENTRIES.put(self._rows, key, entry)
        if len(self._entries) > ENTRIES_MAX:
            ENTRIES.delete(self._rows, self._entries.popleft()[0])
        self._say(f"audit: {shown}: {what}: {entry.detail}")

    def _list(self, asked: verbs.AuditList) -> AuditPage:
        found = [(int(key), entry) for key, entry in self._entries if int(key) > asked.after]
        page = [AuditEntry(n, *astuple(entry)) for n, entry in found[:PAGE]]
        return AuditPage(page, more=len(found) > len(page))
