"""AccessControl: the table of who may do what, which operators change and every broker is told.

====================  ========================================================================
``access.list``        the rules in force: [principal, role, scope, whether the topology has it]
``access.grant``       one more, ``principal``, ``role`` and ``scope``
``access.revoke``      one less; those of the topology's ``[access]`` stay
====================  ========================================================================
"""

from __future__ import annotations

from overlay.access import ANYTHING, Access, AccessTable, Right, Rule, check_rule
from overlay.link.frames import AccessAnnounced, Request
from overlay.link.link_layer import LinkLayer
from overlay.link.part import Part
from overlay.link.request_server import RequestRefused, Result, Verb, name_argument
from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Table
from overlay.topology import Topology
from registration.audit_log import AuditLog
from registration.catalog import REGISTRATION_KEY

GRANTS_MAX = 10_000


class AccessControl(Part):
    """``table`` is the one that decides here; brokers have the same a moment later."""

    section = "access"

    def __init__(self, topology: Topology, links: LinkLayer, rows: RowLog, audit: AuditLog) -> None:
        self._fixed = topology.access.rules()
        self._brokers = topology.broker_ids
        self._links = links
        self._rows = rows
        self._audit = audit
        self._granted: dict[Rule, None] = {}
        self._told: dict[str, tuple[Rule, ...]] = {}  # in this run, by broker
        self.table = AccessTable(Access(self._fixed))
        self.verbs = {
            "access.list": Verb(Right.ADMIN, self._list),
            "access.grant": Verb(Right.ADMIN, self._grant),
            "access.revoke": Verb(Right.ADMIN, self._revoke),
        }

    def restore(self, rows: StoredRows) -> None:
        self._granted = {rule: None for _, rule in rows.take(GRANTS)}
        self._use()

    def use_topology(self, topology: Topology) -> None:
        """Brokers have come or gone."""
        self._brokers = topology.broker_ids

    def tell(self, broker: str) -> None:
        """Tell a broker that is here what it does not know."""
        rules = self.table.now.rules
        if self._told.get(broker) != rules:
            self._told[broker] = rules
            frame = AccessAnnounced(rules=list(rules))
            self._links.send(f"broker/{broker}", REGISTRATION_KEY, frame)

    def statistics(self) -> dict[str, object]:
        return {"granted": len(self._granted), "is_restricted": self.table.now.is_restricted}

    # --- verbs ----------------------------------------------------------------------------

    def _list(self, connection: int, request: Request) -> Result:
        rules = [[*rule, True] for rule in self._fixed]
        return {"rules": rules + [[*rule, False] for rule in self._granted]}

    def _grant(self, connection: int, request: Request) -> Result:
        rule = _rule_argument(request)
        if rule in self._fixed or rule in self._granted:
            return {"changed": False}
        if len(self._granted) >= GRANTS_MAX:
            raise RequestRefused("too-many", f"{GRANTS_MAX} rules are granted already")
        self._granted[rule] = None
        GRANTS.put(self._rows, "|".join(rule), rule)
        self._changed(connection, request)
        return {"changed": True}

    def _revoke(self, connection: int, request: Request) -> Result:
        rule = _rule_argument(request)
        if rule in self._fixed:
            raise RequestRefused(
                "not-granted",
                f"{' '.join(rule)} follows from [access] of the topology file; change it there, "
                "and start the network again",
            )
        if rule not in self._granted:
            return {"changed": False}
        del self._granted[rule]
        GRANTS.delete(self._rows, "|".join(rule))
        self._changed(connection, request)
        return {"changed": True}

    # --- helpers --------------------------------------------------------------------------

    def _changed(self, connection: int, request: Request) -> None:
        self._use()
        asked = _rule_argument(request)
        self._audit.note(self._links.principal(connection), request.verb, " ".join(asked))
        for broker in self._brokers:
            self.tell(broker)

    def _use(self) -> None:
        self.table.now = Access((*self._fixed, *self._granted))


GRANTS = Table("grant", Rule)


def _rule_argument(request: Request) -> Rule:
    rule = Rule(
        name_argument(request, "principal"),
        name_argument(request, "role"),
        name_argument(request, "scope", default=ANYTHING),
    )
    try:
        check_rule(rule)
    except ValueError as error:
        raise RequestRefused("bad-argument", f"{request.verb}: {error}") from None
    return rule
