"""Compatibility: at which cycle provider a user may have a relation, its rows, or a function.

The matrices of section 2.2, a row a mask: bit ``i`` is ``sites[i]``.  A place is allowed where

- the user may ``use`` the cycle provider,
- for reading: it is named by ``readAt``, and the user may ``read`` the relation and its provider's,
- for rows: each flow rule of the relation and of its provider leads there, or it is read there,
- for a function: the user may ``execute`` it and ``load`` its code, there too, and its flow rules
  let the code go there; of the function provider likewise.

Rows of several relations may go where the rows of each may.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from registration.queries.providers import RIGHTS, Flow, Market, Permission


class Denial(NamedTuple):
    """``kind``: a right, ``flow``, or ``aggregates`` (aggregates alone may go there).  ``resource``
    and ``rule`` are URIs, ``site`` too, "" for everywhere."""

    kind: str
    resource: str
    site: str
    rule: str


class Compatibility:
    """Of one user of a market.  Masks are 0 for a URI that the market does not have."""

    def __init__(self, market: Market, user: str = "", groups: Collection[str] = ()) -> None:
        """``user``: a name, "" of one who has not shown who they are."""
        self._market = market
        self._subjects = {"anonymous"}
        if user:
            self._subjects |= {"*", f"user/{user}", *(f"group/{each}" for each in groups)}
        self._permissions: dict[tuple[str, str], list[Permission]] = {}
        for rule in market.permissions:
            for right in (rule.right,) if rule.right else RIGHTS:
                self._permissions.setdefault((right, rule.resource), []).append(rule)
        self._flows: dict[str, list[Flow]] = {}
        for flow in market.flows:
            self._flows.setdefault(flow.resource, []).append(flow)
        self.sites = market.sites
        self.everywhere = (1 << len(self.sites)) - 1
        self._bits = {site.uri: 1 << at for at, site in enumerate(self.sites)}
        self.execute_mask = self._where("use")
        """The sites at which fragments of the user's may be executed."""
        self._load_mask = self._where("load")

    @property
    def client_mask(self) -> int:
        return self._bits[self._market.client.uri]

    def read_mask(self, relation: str) -> int:
        """Where the relation may be scanned."""
        found = self._market.relations.get(relation)
        if found is None or not self._may("read", (relation, found.provider)):
            return 0
        return self.execute_mask & self._mask(found.read_at)

    def flow_mask(self, relation: str) -> int:
        """Where rows of the relation may be."""
        return self._rows(relation, aggregates=False)

    def aggregate_mask(self, relation: str) -> int:
        """Where rows of the relation may be after a partial aggregate; ``flow_mask`` is in it."""
        return self._rows(relation, aggregates=True)

    def function_mask(self, function: str) -> int:
        """Where the function may be loaded and executed."""
        found = self._market.functions.get(function)
        if found is None:
            return 0
        of = function, found.provider
        if not (self._may("execute", of) and self._may("load", of)):
            return 0
        mask = self.execute_mask & self._load_mask
        for resource in of:
            mask &= self._flow(resource, 0, aggregates=False)
        return mask

    def denials(self) -> tuple[Denial, ...]:
        """All that the rules of the market forbid this user."""
        market, found = self._market, list[Denial]()
        for relation in market.relations.values():
            found += self._of_relation(relation.uri)
        for function in market.functions.values():
            found += self._of_function(function.uri)
        for site in self._bits:
            found += self._of_site(site, ("use", "load"))
        return tuple(dict.fromkeys(found))

    def why(self, resource: str, site: str = "") -> tuple[str, ...]:
        """The URIs of the rules that forbid a relation or a function to the user at a cycle
        provider; ``site`` "": at any, for a relation at any that can read it."""
        relation = self._market.relations.get(resource)
        sites = (site,) if site else relation.read_at if relation else tuple(self._bits)
        if relation:
            found = [*self._of_relation(resource)]
            found += (each for at in sites for each in self._of_site(at, ("use",)))
        elif resource in self._market.functions:
            found = [*self._of_function(resource)]
            found += (each for at in sites for each in self._of_site(at, ("use", "load")))
        else:
            found = [*self._of_site(resource, ("use",))]
        return tuple(dict.fromkeys(each.rule for each in found if each.site in ("", *sites)))

    # --- rights ---------------------------------------------------------------------------

    def _may(self, right: str, resources: Iterable[str]) -> bool:
        return not any(self._refusals(right, each) for each in resources)

    def _refusals(self, right: str, resource: str) -> list[Permission]:
        """The permissions that name the resource for others alone."""
        rules = self._permissions.get((right, resource), [])
        return [] if any(rule.subject in self._subjects for rule in rules) else rules

    def _where(self, right: str) -> int:
        """The sites that have the right about them."""
        return self._mask(site.uri for site in self.sites if self._may(right, (site.uri,)))

    def _mask(self, sites: Iterable[str]) -> int:
        mask = 0
        for uri in sites:
            mask |= self._bits.get(uri, 0)
        return mask

    # --- flows ----------------------------------------------------------------------------

    def _rows(self, relation: str, *, aggregates: bool) -> int:
        found = self._market.relations.get(relation)
        if found is None:
            return 0
        own, mask = self._mask(found.read_at), self.execute_mask
        for resource in (relation, found.provider):
            mask &= self._flow(resource, own, aggregates=aggregates)
        return mask

    def _flow(self, resource: str, own: int, *, aggregates: bool) -> int:
        """The sites to which the flow rules of one resource lead; ``own``: where it is read."""
        if resource not in self._flows:
            return self.everywhere
        mask = own
        for flow in self._flows[resource]:
            if aggregates or not flow.aggregates_only:
                mask |= self._bits.get(flow.to or "", 0)
                if flow.to_group:
                    mask |= self._mask(s.uri for s in self.sites if flow.to_group in s.groups)
        return mask

    # --- denials --------------------------------------------------------------------------

    def _of_relation(self, uri: str) -> Iterator[Denial]:
        of = self._market.relations[uri]
        for resource in (uri, of.provider):
            yield from self._refused("read", resource)
            yield from self._kept(resource, self._mask(of.read_at))

    def _of_function(self, uri: str) -> Iterator[Denial]:
        for resource in (uri, self._market.functions[uri].provider):
            for right in ("execute", "load"):
                yield from self._refused(right, resource)
            yield from self._kept(resource, 0)

    def _of_site(self, uri: str, rights: Iterable[str]) -> Iterator[Denial]:
        for right in rights:
            yield from self._refused(right, uri, uri)

    def _refused(self, right: str, resource: str, site: str = "") -> Iterator[Denial]:
        for rule in self._refusals(right, resource):
            yield Denial(right, resource, site, rule.uri)

    def _kept(self, resource: str, own: int) -> Iterator[Denial]:
        """The sites to which the flow rules of a resource do not lead."""
        rows = self._flow(resource, own, aggregates=False)
        partly = self._flow(resource, own, aggregates=True)
        for uri, bit in self._bits.items():
            if not rows & bit:
                kind = "aggregates" if partly & bit else "flow"
                for flow in self._flows[resource]:
                    yield Denial(kind, resource, uri, flow.uri)
