"""AuditReports: changes of operators at this broker, and those whom it refuses, told to the
registration service; and the digests of entries that the service has told in return, which show
whether its audit log is whole (overlay/link/audit.py)."""

from __future__ import annotations

from collections.abc import Iterable

from onyx.broker.network.control_plane import ControlPlane
from overlay import verbs
from overlay.answers import AuditMark, AuditMarked
from overlay.link.arrival import Arrival
from overlay.link.audit import Refusals
from overlay.link.core_context import CoreContext
from overlay.link.durable import StoredMap
from overlay.link.frame import AUDIT
from overlay.link.frames import AUDIT_LENGTH_MAX, Audited, AuditMarks
from overlay.link.part import Part, Taker, takes
from overlay.link.principal import Principal
from overlay.link.request_server import Verb, alone
from overlay.link.row_log import number_key
from overlay.link.tables import Row, Table
from registration.catalog import REGISTRATION_KEY

MARKS_MAX = 256  # that are kept; beyond, those that were told first go


class _Mark(Row, frozen=True):
    number: int
    digest: str
    refused: bool


MARKS = Table("audit-mark", _Mark)


class AuditReports(Part):
    """Nothing that was told is ever replaced by what is told later."""

    def __init__(self, context: CoreContext, control: ControlPlane) -> None:
        self._links = context.links
        self._registration = control.registration
        self._marks = StoredMap(context.rows, MARKS)  # in the order in which they were told
        self._refusals = Refusals(lambda *said: self._tell(*said, refused=True))
        context.server.audit = self._audit
        context.server.refused = self._refusals.note
        self.verbs = (Verb(verbs.AuditMarks, alone(self._list)),)

    def frames(self) -> Iterable[Taker]:
        yield takes(AuditMarks, "registration", self._handle_marks)

    def tick(self, now: float) -> None:
        self._refusals.tick(now)

    def _audit(self, who: Principal | None, what: str, detail: str) -> None:
        self._tell(str(who), what, detail)

    def _tell(self, who: str, what: str, detail: str, *, refused: bool = False) -> None:
        if self._links.may_have(self._registration, AUDIT):
            said = Audited(who, what, detail[:AUDIT_LENGTH_MAX], refused)
            self._links.send(self._registration, REGISTRATION_KEY, said)

    def _handle_marks(self, frame: AuditMarks, arrival: Arrival) -> None:
        for told in frame.marks:
            mark = _Mark(*told)
            if mark in self._marks.values():
                continue
            last = int(next(reversed(self._marks), "0"))
            self._marks[number_key(last + 1)] = mark
            if len(self._marks) > MARKS_MAX:
                del self._marks[next(iter(self._marks))]

    def _list(self, asked: verbs.AuditMarks) -> AuditMarked:
        found = [AuditMark(each.number, each.digest, each.refused) for each in self._marks.values()]
        return AuditMarked(found)
