"""AccessControl: the table of who may do what, which operators change and every broker is told."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from overlay import answers, verbs
from overlay.access import Access, Right, Rule, Token, check_rule
from overlay.link.core_context import CoreContext
from overlay.link.durable import StoredMap, StoredValue
from overlay.link.frames import REVOKED_MAX, SERIAL_BYTES, AccessAnnounced, Request
from overlay.link.part import Part
from overlay.link.principal import Principal
from overlay.link.request_server import Changed, RequestRefused, Verb, alone
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table
from overlay.topology import Topology
from registration.catalog import REGISTRATION_KEY

GRANTS_MAX = 10_000
TOKENS_MAX = 10_000


class AccessControl(Part):
    """``table`` is the one that decides here; brokers have the same a moment later."""

    def __init__(self, context: CoreContext, revoked: Callable[[], frozenset[int]]) -> None:
        """``revoked``: the serial numbers of certificates."""
        self._wall = context.wall
        self._holders = context.holders
        self._revoked = revoked
        self._revoked_before = revoked()
        self._tokens = StoredMap(context.rows, TOKENS)
        self._version = StoredValue(context.rows, VERSION, _VersionRow(0))  # of the table
        self._fixed = context.topology.access.rules()
        self._brokers = context.topology.broker_ids
        self._links = context.links
        self._granted = StoredMap(context.rows, GRANTS)
        self._told: dict[str, AccessAnnounced] = {}  # in this run, by broker
        self._of: tuple[Access, frozenset[int]] | None = None  # what brokers are to know
        self._announced = AccessAnnounced([], [], [])  # that
        self.table = context.access
        self.is_known = True
        """Whether the grants are known; they are not while brokers are asked for them."""
        self.verbs = (
            Verb(verbs.Whoami, self._whoami),
            Verb(verbs.AccessList, alone(self._list)),
            Verb(verbs.AccessGrant, alone(self._grant)),
            Verb(verbs.AccessRevoke, alone(self._revoke)),
            Verb(verbs.TokenList, alone(self._list_tokens)),
            Verb(verbs.TokenIssue, alone(self._issue)),
            Verb(verbs.TokenRevoke, alone(self._revoke_token)),
        )

    def restore(self, rows: StoredRows) -> None:
        self._use()

    def use_topology(self, topology: Topology) -> None:
        """Brokers have come or gone."""
        self._brokers = topology.broker_ids

    def reinstate(self, known: AccessAnnounced | None) -> None:
        """What brokers know, after the store was lost; None: they know of nothing."""
        self.is_known = True
        if known is None:
            return
        self._granted.clear()
        self._tokens.clear()
        for rule in (Rule(*each) for each in known.rules):
            if rule not in self._fixed:
                self._granted[_key(rule)] = rule
        for token in (Token(*each) for each in known.tokens):
            self._tokens[token.id] = token
        self._version.put(_VersionRow(max(self._version.now.version, known.version)))
        self._use()

    def tell(self, broker: str) -> None:
        """Tell a broker that is here what it does not know."""
        self._renew()
        if self._told.get(broker) is not self._announced:
            self._told[broker] = self._announced
            self._links.send(f"broker/{broker}", REGISTRATION_KEY, self._announced)

    def tick(self, now: float) -> None:
        self._holders.send_away(self._links)
        if self._revoked() != self._revoked_before and self.is_known:
            self._revoked_before = self._revoked()
            self._tell_all()

    # --- verbs ----------------------------------------------------------------------------

    def _whoami(self, connection: int, request: Request, asked: verbs.Whoami) -> answers.Asker:
        asker = self._links.principal(connection)
        access = self.table.now
        found = answers.Asker(
            "" if asker is None else str(asker),
            operates=access.may(asker, Right.OPERATE),
            administers=access.may(asker, Right.ADMIN),
        )
        if asker is None:
            return found
        token = access.tokens.get(asker.token)
        return replace(
            found,
            rules=[answers.Rule(*rule) for rule in access.rules_of(str(asker))],
            only=[] if token is None else token.only,
        )

    def _list(self, asked: verbs.AccessList) -> answers.Rules:
        fixed = [answers.Rule(*rule, from_topology=True) for rule in self._fixed]
        return answers.Rules(fixed + [answers.Rule(*rule) for rule in self._granted.values()])

    def _grant(self, asked: verbs.AccessGrant) -> answers.RuleChanged | Changed:
        rule = _rule(asked)
        if rule in self._fixed or _key(rule) in self._granted:
            return answers.RuleChanged(*rule, changed=False)
        if len(self._granted) >= GRANTS_MAX:
            raise RequestRefused("too-many", f"{GRANTS_MAX} rules are granted already")
        self._granted[_key(rule)] = rule
        self._changed()
        return Changed(" ".join(rule), answers.RuleChanged(*rule, changed=True))

    def _revoke(self, asked: verbs.AccessRevoke) -> answers.RuleChanged | Changed:
        rule = _rule(asked)
        if rule in self._fixed:
            raise RequestRefused(
                "not-granted",
                f"{' '.join(rule)} follows from [access] of the topology file; change it there, "
                "and start the network again",
            )
        if self._granted.pop(_key(rule), None) is None:
            return answers.RuleChanged(*rule, changed=False)
        self._changed()
        return Changed(" ".join(rule), answers.RuleChanged(*rule, changed=True))

    def _list_tokens(self, asked: verbs.TokenList) -> answers.Tokens:
        found = self._tokens.items()
        listed = [answers.TokenInfo(name, t.principal, t.expires, [*t.only]) for name, t in found]
        return answers.Tokens(listed)

    def _issue(self, asked: verbs.TokenIssue) -> answers.TokenIssued | Changed:
        token = _token(asked, self._wall())
        if token.id in self._tokens:
            return answers.TokenIssued(token.id, self._tokens[token.id].expires)
        over = [name for name, each in self._tokens.items() if each.expires <= self._wall()]
        for name in over:
            del self._tokens[name]
        if len(self._tokens) >= TOKENS_MAX:
            raise RequestRefused("too-many", f"there are {TOKENS_MAX} tokens already")
        self._tokens[token.id] = token
        self._changed()
        bound = "".join(f", only {role} {scope}" for role, scope in token.only)
        line = f"{token.id} of {token.principal} until {token.expires}{bound}"
        return Changed(line, answers.TokenIssued(token.id, token.expires))

    def _revoke_token(self, asked: verbs.TokenRevoke) -> Changed:
        name = asked.token
        token = self._tokens.get(name)
        if token is None:
            raise RequestRefused("unknown-token", f"there is no token {name!r}")
        del self._tokens[name]
        self._changed()
        return Changed(f"{name} of {token.principal}", answers.TokenRevoked(name))

    # --- helpers --------------------------------------------------------------------------

    def _changed(self) -> None:
        self._version.put(_VersionRow(self._version.now.version + 1))
        self._use()
        self._tell_all()

    def _renew(self) -> None:
        """PERF: what all brokers are to know is made once, not for each."""
        now = access, revoked = self.table.now, self._revoked()
        if now == self._of:
            return
        self._of = now
        fitting = [serial for serial in sorted(revoked) if serial < 1 << 8 * SERIAL_BYTES]
        serials = [serial.to_bytes(SERIAL_BYTES) for serial in fitting[:REVOKED_MAX]]
        self._announced = AccessAnnounced(
            list(access.rules), list(access.tokens.values()), serials, self._version.now.version
        )

    def _tell_all(self) -> None:
        for broker in self._brokers:
            self.tell(broker)

    def _use(self) -> None:
        self.table.now = Access((*self._fixed, *self._granted.values()), self._tokens.values())


def _key(rule: Rule) -> str:
    return "|".join(rule)


class _VersionRow(Row, frozen=True):
    version: int


VERSION = Table("access-version", _VersionRow)
GRANTS = Table("grant", Rule)
TOKENS = Table("token", Token)


def _token(asked: verbs.TokenIssue, now: float) -> Token:
    try:
        if Principal.parse(asked.principal).role not in ("user", "source", "operator"):
            raise ValueError(f"{asked.principal!r}; expected a user, a source or an operator")
        for role, scope in asked.only:
            check_rule(Rule(asked.principal, role, scope))
    except ValueError as error:
        raise RequestRefused("bad-argument", f"{asked.verb}: {error}") from None
    return Token(asked.principal, asked.digest, int(now + asked.seconds), asked.only)


def _rule(asked: verbs.AccessRule) -> Rule:
    rule = Rule(asked.principal, asked.role, asked.scope)
    try:
        check_rule(rule)
    except ValueError as error:
        raise RequestRefused("bad-argument", f"{asked.verb}: {error}") from None
    return rule
