"""Compatibility: at which cycle provider a user may have a relation, its rows, or a function.

The matrices of section 2.2, a row a mask: bit ``i`` is ``sites[i]``.  A place is allowed where

- the user may ``use`` the cycle provider,
- for reading: it is named by ``readAt``, and the user may ``read`` the relation and its provider's,
- for rows: each flow rule of the relation and of its provider leads there, or it is read there,
- for a function: the user may ``execute`` it and ``load`` its code, there too, and its flow rules
  let the code go there; of the function provider likewise.

Rows of several relations may go where the rows of each may.  All that is forbidden is a *denial*,
and a mask is all that no denial takes away.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cache
from typing import NamedTuple

from registration.queries.providers import (
    RIGHTS,
    CycleProvider,
    Flow,
    Market,
    Permission,
    Relation,
)


class Denial(NamedTuple):
    """``kind``: a right, ``flow``, or ``aggregates`` (aggregates alone may go there).  ``resource``
    and ``rule`` are URIs, ``site`` too, "" for everywhere."""

    kind: str
    resource: str
    site: str
    rule: str


class Compatibility:
    """Of one user of a market.  Masks are 0 for a URI that the market does not have."""

    def __init__(
        self,
        market: Market,
        user: str = "",
        sites: tuple[CycleProvider, ...] | None = None,
    ) -> None:
        """``user``: a name, "" of one who has not shown who they are; ``sites``: those of masks."""
        self._market, self._user = market, user
        self._subjects = {"anonymous"}
        if user:
            of = {f"group/{each.name}" for each in market.groups.values() if user in each.members}
            self._subjects |= {"*", f"user/{user}"} | of
        self._permissions: dict[tuple[str, str], list[Permission]] = {}
        for rule in market.permissions:
            for right in (rule.right,) if rule.right else RIGHTS:
                self._permissions.setdefault((right, rule.resource), []).append(rule)
        self._flows: dict[str, list[Flow]] = {}
        for flow in market.flows:
            self._flows.setdefault(flow.resource, []).append(flow)
        self.sites = market.sites if sites is None else sites
        self._bits = {site.uri: 1 << at for at, site in enumerate(self.sites)}
        self._at_sites = [
            denial
            for uri in self._bits
            for right in ("use", "load")
            for denial in self._refused(right, uri, uri)
        ]
        self.execute_mask = self._left(self._at_sites, "use")
        """The sites at which fragments of the user's may be executed."""
        self._denied = cache(lambda uri: tuple(self._found(uri)))

    def over(self, mask: int) -> Compatibility:
        """The same user's, with masks over some of the sites alone."""
        sites = tuple(site for at, site in enumerate(self.sites) if mask >> at & 1)
        return Compatibility(self._market, self._user, sites)

    def read_mask(self, relation: str) -> int:
        """Where the relation may be scanned."""
        found = self._market.relations.get(relation)
        at = found.read_at if found else ()
        read = sum(self._bits.get(uri, 0) for uri in dict.fromkeys(at))
        return read & self._mask(self._market.relations, relation, "read")

    def flow_mask(self, relation: str) -> int:
        """Where rows of the relation may be."""
        return self._mask(self._market.relations, relation, "flow", "aggregates")

    def aggregate_mask(self, relation: str) -> int:
        """Where rows of the relation may be after a partial aggregate; ``flow_mask`` is in it."""
        return self._mask(self._market.relations, relation, "flow")

    def function_mask(self, function: str) -> int:
        """Where the function may be loaded and executed."""
        return self._mask(self._market.functions, function, "load", "execute", "flow", "aggregates")

    def denials(self) -> tuple[Denial, ...]:
        """All that the rules of the market forbid this user."""
        of = (*self._market.relations, *self._market.functions)
        found = [denial for uri in of for denial in self._denied(uri)]
        return tuple(dict.fromkeys((*found, *self._at_sites)))

    def why(self, resource: str, site: str = "") -> tuple[str, ...]:
        """The URIs of the rules that forbid a relation or a function to the user at a cycle
        provider; ``site`` "": at any, for a relation at any that can read it."""
        relation = self._market.relations.get(resource)
        sites = (site,) if site else relation.read_at if relation else tuple(self._bits)
        is_function = relation is None and resource in self._market.functions
        at = sites if relation or is_function else (resource,)
        found = [*self._denied(resource)]
        found += (
            each
            for each in self._at_sites
            if each.site in at and (each.kind == "use" or is_function)
        )
        return tuple(dict.fromkeys(each.rule for each in found if each.site in ("", *sites)))

    def _mask(self, known: Collection[str], uri: str, *kinds: str) -> int:
        """The sites where fragments may be executed and no denial of some kinds is about it."""
        if uri not in known:
            return 0
        return self._left((*self._at_sites, *self._denied(uri)), "use", *kinds)

    def _left(self, denials: Iterable[Denial], *kinds: str) -> int:
        mask = (1 << len(self.sites)) - 1
        for each in denials:
            if each.kind in kinds:
                mask &= ~self._bits[each.site] if each.site else 0
        return mask

    def _found(self, uri: str) -> Iterator[Denial]:
        """All that forbids a relation or a function, and what the market has it from."""
        of = self._market.relations.get(uri) or self._market.functions.get(uri)
        if of is None:
            return
        is_relation = isinstance(of, Relation)
        for resource in (uri, of.provider):
            for right in ("read",) if is_relation else ("execute", "load"):
                yield from self._refused(right, resource)
            yield from self._kept(resource, of.read_at if isinstance(of, Relation) else ())

    def _refused(self, right: str, resource: str, site: str = "") -> Iterator[Denial]:
        """By the permissions that name the resource for others alone."""
        rules = self._permissions.get((right, resource), [])
        if not any(rule.subject in self._subjects for rule in rules):
            for rule in rules:
                yield Denial(right, resource, site, rule.uri)

    def _kept(self, resource: str, own: Collection[str]) -> Iterator[Denial]:
        """The sites to which the flow rules of a resource, read at its ``own``, do not lead."""
        flows = self._flows.get(resource, [])
        for site in self.sites if flows else ():
            leading = [f for f in flows if f.to == site.uri or f.to_group in site.groups]
            if site.uri not in own and all(flow.aggregates_only for flow in leading):
                kind = "aggregates" if leading else "flow"
                for flow in flows:
                    yield Denial(kind, resource, site.uri, flow.uri)
