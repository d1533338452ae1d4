"""AccessRules: who may do what at this broker, as the registration service says.

Until it has said anything the topology decides.  Who may no longer publish, or take what they took,
is sent away; which messages profiles see is looked at message by message (local_deliveries.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from onyx.broker.network.control_plane import ControlPlane
from overlay.access import Access, Right, Rule, Token
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.durable import StoredValue
from overlay.link.frames import AccessAnnounced
from overlay.link.part import Part, Taker, takes
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table
from overlay.statistics import BrokerStatistics


class _AccessRow(Row, frozen=True):
    rules: list[Rule]
    tokens: list[Token]
    revoked: list[bytes] = msgspec.field(default_factory=list)
    version: int = 0


RULES = Table("access", _AccessRow)


class AccessRules(Part):
    """``table`` is the one in force."""

    def __init__(
        self, context: CoreContext, control: ControlPlane, revoke: Callable[[frozenset[int]], None]
    ) -> None:
        """``revoke`` is told which certificates nobody may show any more, by serial number."""
        self._revoke = revoke
        self._holders = context.holders
        self._control = control
        self._links = context.links
        self._said: StoredValue[_AccessRow | None] = StoredValue(context.rows, RULES, None)
        self.table = context.access

    def frames(self) -> Iterable[Taker]:
        yield takes(AccessAnnounced, "registration", self._handle_announced)

    def restore(self, rows: StoredRows) -> None:
        if self._said.now is not None:
            self._use(self._said.now)

    def tick(self, now: float) -> None:
        self._holders.send_away(self._links)

    def announced(self) -> AccessAnnounced | None:
        """As the registration service has said it; None: it has said nothing."""
        row = self._said.now
        if row is None:
            return None
        return AccessAnnounced([*row.rules], [*row.tokens], row.revoked, row.version)

    def publishes(self, connection: int, source: str) -> bool:
        """Whether whoever is at the other end may publish as a source, if it is one of here."""
        principal = self._links.principal(connection)
        entry = self._control.sources.get(source)
        owner = "" if entry is None else entry.owner
        return self.table.now.may(principal, Right.PUBLISH, source, owner)

    def takes(self, connection: int, profile: str, user: str) -> bool:
        """Whether they may take the results of a user's profile."""
        principal = self._links.principal(connection)
        return self.table.now.may(principal, Right.OWN, profile, f"user/{user}")

    def report(self, said: BrokerStatistics) -> None:
        said.access.tokens = len(self.table.now.tokens)

    def _handle_announced(self, frame: AccessAnnounced, arrival: Arrival) -> None:
        former = self.table.now
        rules, tokens = [Rule(*r) for r in frame.rules], [Token(*t) for t in frame.tokens]
        row = _AccessRow(rules, tokens, frame.revoked, frame.version)
        self._said.put(row)
        now = self._use(row)
        self._holders.send_away(self._links)
        for connection, peer, principal in self._links.principals():
            role, name, *_ = peer.split("/")
            if role == "source":
                is_over = not self.publishes(connection, name)
            else:
                is_over = role == "subscriber" and now.takes_from(former, principal, Right.OWN)
            if is_over:
                detail = f"{principal} may no longer do what {peer} does here"
                self._links.refuse(connection, "not-authorised", detail)

    def _use(self, row: _AccessRow) -> Access:
        self._revoke(frozenset(map(int.from_bytes, row.revoked)))
        self.table.now = Access(row.rules, row.tokens)
        return self.table.now
