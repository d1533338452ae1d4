"""Access: who may do what; one table, and the one function that decides by it.

::

    principal    role        scope
    user/*       subscribe   *        every user's profiles see the messages of all sources
    user/*       own         own      every user has profiles, and does with them what they like
    source/*     publish     own      every source publishes as itself, and as what it registered
    user/bob     publish     s7-...   one more

A role is a right with those that it includes: who may ``admin`` may ``operate``, and who may
operate may do what owners and sources may.  Without TLS nobody is asked (principal None).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256
from hmac import compare_digest
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict

from overlay.errors import TopologyError
from overlay.link.principal import NOBODY, Principal

ANYTHING, OWN = "*", "own"


class Right(StrEnum):
    """What a request or a frame needs of whoever sends it."""

    KNOWN = "known"  # to have shown who they are
    PEER = "peer"  # to be the process or the source of its channel
    PUBLISH = "publish"  # as a source
    SUBSCRIBE = "subscribe"  # to a source: that one's profiles see its messages
    READ_ARCHIVE = "read-archive"  # of a source: what was kept of its messages
    OWN = "own"  # a profile: to add, change, remove and take it
    OPERATE = "operate"  # the network: its shape, plans, figures and traces
    ADMIN = "admin"  # to say who may do what


Role: TypeAlias = Literal["publish", "subscribe", "read-archive", "own", "operate", "admin"]
_OPERATE = frozenset({Right.PUBLISH, Right.SUBSCRIBE, Right.READ_ARCHIVE, Right.OWN, Right.OPERATE})
ROLES: Mapping[str, frozenset[Right]] = MappingProxyType(
    {
        "publish": frozenset({Right.PUBLISH}),
        "subscribe": frozenset({Right.SUBSCRIBE}),
        "read-archive": frozenset({Right.READ_ARCHIVE}),
        "own": frozenset({Right.OWN}),
        "operate": _OPERATE,
        "admin": _OPERATE | {Right.ADMIN},
    }
)
"""What may stand in the table, and which rights it gives."""


class Token(NamedTuple):
    """Whoever has its secret is ``principal``, until the second ``expires`` of the calendar.

    ``digest`` is what is kept of the secret; ``only``: (role, scope), as in a Rule, beyond which it
    does nothing, none: it does whatever the principal may.
    """

    principal: str
    digest: bytes
    expires: int
    only: list[tuple[str, str]]

    @property
    def id(self) -> str:
        return f"t-{self.digest.hex()[:12]}"

    @staticmethod
    def digest_of(secret: str) -> bytes:
        """PERF: not a slow one, which is for what people think up: a secret is 32 random bytes."""
        return sha256(secret.encode()).digest()


class Rule(NamedTuple):
    """A row: ``principal`` "user/ann", all of a role "user/*", or "*"; ``scope`` the id of a source
    or profile, ``own`` for what belongs to the principal, or ``*`` for anything."""

    principal: str
    role: str
    scope: str


class AccessOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """Who may do so unless the table says more (``[access]``): principals, each."""

    subscribe: tuple[str, ...] = ("user/*",)
    """who sees the messages of all sources"""
    own: tuple[str, ...] = ("user/*",)
    """who has profiles"""
    publish: tuple[str, ...] = ("source/*",)
    """who may register sources, and publish as these"""

    def check(self) -> None:
        """TopologyError where somebody is no principal."""
        for name, principals in asdict(self).items():
            for principal in principals:
                try:
                    check_rule(Rule(principal, name, ANYTHING))
                except ValueError as error:
                    raise TopologyError("", name, str(error)) from None

    def rules(self) -> tuple[Rule, ...]:
        return (
            Rule("operator/*", "admin", ANYTHING),
            *(Rule(principal, "subscribe", ANYTHING) for principal in self.subscribe),
            *(Rule(principal, "own", OWN) for principal in self.own),
            *(Rule(principal, "publish", OWN) for principal in self.publish),
        )


class Access:
    """A table of rules, and of tokens, to be asked."""

    def __init__(self, rules: Iterable[Rule], tokens: Iterable[Token] = ()) -> None:
        self.rules = tuple(rules)
        self.tokens = {token.id: token for token in tokens}
        self._scopes: dict[tuple[str, Right], frozenset[str]] = {}  # of those who were asked about
        self.is_restricted = not any(
            rule.scope == ANYTHING
            and rule.principal in ("user/*", ANYTHING)
            and Right.SUBSCRIBE in ROLES[rule.role]
            for rule in self.rules
        )
        """Whether some users may not see all sources."""

    def may(
        self, principal: Principal | None, right: Right, scope: str = "", owner: str = ""
    ) -> bool:
        """Whether a principal may do something with ``scope`` (a source, a profile; "": with none
        in particular), which belongs to ``owner`` ("user/ann")."""
        if principal is None:
            return True
        if principal == NOBODY or right is Right.PEER:
            return principal.is_process
        if principal.token and not self._does(principal, right, scope, owner):
            return False
        if right is Right.KNOWN:
            return True
        scopes = self._scopes_of(str(principal), right)
        return _covers(scopes, principal, scope, owner)

    def holder(self, secret: str, now: float) -> Principal:
        """Whoever shows a secret, at a second of the calendar; NOBODY where no token has it."""
        digest = Token.digest_of(secret)
        token = self.tokens.get(Token("", digest, 0, []).id)
        if token is None or not compare_digest(token.digest, digest) or now >= token.expires:
            return replace(NOBODY, why="a token that is revoked, over, or none of this network")
        holder = Principal.parse(token.principal)
        return replace(holder, token=token.id, until=token.expires)

    def is_over(self, principal: Principal, now: float) -> bool:
        """Whether a principal is one by a token that is none any more."""
        is_revoked = bool(principal.token) and principal.token not in self.tokens
        return is_revoked or now >= principal.until

    def _does(self, principal: Principal, right: Right, scope: str, owner: str) -> bool:
        """Whether the token that was shown does this, if its principal may."""
        token = self.tokens.get(principal.token)
        if token is None or not token.only or right is Right.KNOWN:
            return token is not None
        scopes = {scope for role, scope in token.only if right in ROLES[role]}
        return _covers(scopes, principal, scope, owner)

    def sees(self, user: str, source: str) -> bool:
        """Whether profiles of a user see the messages of a source."""
        scopes = self._scopes_of(f"user/{user}", Right.SUBSCRIBE)
        return ANYTHING in scopes or source in scopes

    def takes_from(self, former: Access, principal: Principal, right: Right) -> bool:
        """Whether a principal may less than by a former table."""
        return not former._scopes_of(str(principal), right) <= self._scopes_of(
            str(principal), right
        )

    def _scopes_of(self, principal: str, right: Right) -> frozenset[str]:
        found = self._scopes.get((principal, right))
        if found is None:
            found = self._scopes[principal, right] = frozenset(
                rule.scope for rule in self.rules_of(principal) if right in ROLES[rule.role]
            )
        return found

    def rules_of(self, principal: str) -> list[Rule]:
        """The rules about a principal: of its name, of its role, and of all."""
        named = principal, f"{principal.partition('/')[0]}/*", ANYTHING
        return [rule for rule in self.rules if rule.principal in named]


@dataclass(slots=True)
class AccessTable:
    """The table in force, where it may change."""

    now: Access


def _covers(scopes: Collection[str], principal: Principal, scope: str, owner: str) -> bool:
    if ANYTHING in scopes or (scope and scope in scopes):
        return True
    return OWN in scopes and (owner == str(principal) or scope == _as_itself(principal))


def _as_itself(principal: Principal) -> str:
    """The id of the source that a source is."""
    return principal.name if principal.role == "source" else " "


def check_rule(rule: Rule) -> None:
    """ValueError says what was expected."""
    if rule.role not in ROLES:
        raise ValueError(f"role {rule.role!r}; expected one of {', '.join(ROLES)}")
    role, slash, name = rule.principal.partition("/")
    if rule.principal != ANYTHING and not (slash and name == ANYTHING and role):
        Principal.parse(rule.principal)
    if not rule.scope:
        raise ValueError("no scope; expected the id of a source or a profile, 'own' or '*'")
    if rule.scope == OWN and rule.role not in (of_owners := ("own", "publish", "read-archive")):
        raise ValueError(
            f"scope 'own' with {rule.role!r}; expected it with one of {', '.join(of_owners)}"
        )
