"""Renewals: certificates of those who are connected, signed anew where the authority's key is.

::

    cert.renew ──AskDesk──> a process with the key ──DeskAnswered──> answer

Nobody names for whom: it is the principal of the connection, and the certificate that it shows.  An
answer is kept for a while, so that a request that comes twice makes one certificate.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from overlay import answers, verbs
from overlay.link.core_context import CoreContext
from overlay.link.events import AskDesk, DeskAnswered
from overlay.link.frames import Request
from overlay.link.part import Hearer, Part, hears
from overlay.link.principal import Principal
from overlay.link.request_server import RequestRefused, Verb
from overlay.link.validity import minute
from registration.renewal_questions import RenewalWanted, Renewed

AGAIN_SECONDS = 600.0  # between two certificates of a principal
AT_ONCE_MAX = 16
KEY = "renewal/"


@dataclass(slots=True)
class _Renewal:
    """Asked for ``at`` a second of the calendar, last by the ``asker`` (connection, request)."""

    at: float
    request: bytes
    asker: tuple[int, str]
    answer: answers.CertRenewed | None = None


class Renewals(Part):
    """Answers ``cert.renew``."""

    def __init__(self, context: CoreContext, *, signs: bool) -> None:
        """``signs``: the shell can, as the authority is here."""
        self._links = context.links
        self._server = context.server
        self._wall = context.wall
        self._signs = signs
        self._known: dict[str, _Renewal] = {}  # by principal
        self.verbs = (Verb(verbs.CertRenew, self._renew),)

    def events(self) -> Iterable[Hearer]:
        yield hears(DeskAnswered, self._answered)

    def _renew(
        self, connection: int, request: Request, asked: verbs.CertRenew
    ) -> answers.CertRenewed | None:
        principal = self._links.principal(connection)
        shown = None if principal is None else principal.certificate
        if shown is None:
            raise _refused("no-certificate", "the asker has not shown one to renew")
        if not self._signs:
            raise _refused(
                "no-authority",
                "the authority of the network is not beside the registration service; where it "
                f"is, say onyx cert issue {principal} --out FILE",
            )
        now = self._wall()
        if now < shown.may_renew_at:
            when = minute(shown.may_renew_at)
            raise _refused("too-soon", f"the certificate is renewed from {when} on")
        self._known = {
            who: known for who, known in self._known.items() if now < known.at + AGAIN_SECONDS
        }
        asker = connection, request.request
        known = self._known.get(str(principal))
        if known is not None:
            if known.request != asked.request:
                raise _refused("too-soon", f"{principal} has just got one; ask again later")
            known.asker = asker
            return known.answer
        if sum(each.answer is None for each in self._known.values()) >= AT_ONCE_MAX:
            raise _refused("busy", f"{AT_ONCE_MAX} are being signed; ask again later")
        self._known[str(principal)] = _Renewal(now, asked.request, asker)
        self.ask_shell(AskDesk(f"{KEY}{principal}", RenewalWanted(shown, asked.request)))
        return None

    def _answered(self, event: DeskAnswered) -> bool:
        answer = event.answer
        if not isinstance(answer, Renewed):
            return False
        who = event.key.removeprefix(KEY)
        known = self._known.get(who)
        if known is None or known.answer is not None:
            return True  # nobody is interested any more
        connection, request = known.asker
        if answer.failed:
            del self._known[who]
            self._server.refuse(connection, request, _refused("not-renewed", answer.failed))
        else:
            known.answer = answers.CertRenewed(answer.certificates)
            self._server.audit(Principal.parse(who), verbs.CertRenew.verb, f"of {who}")
            self._server.answer(connection, request, known.answer)
        return True


def _refused(code: str, reason: str) -> RequestRefused:
    return RequestRefused(code, f"{verbs.CertRenew.verb}: {reason}")
