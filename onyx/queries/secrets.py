"""Secrets of users for old systems: each is in a query plan for the cycle provider that needs it.

A relation says which of its options are secrets, ``q:secret "password=warehouse"``, and the user
has the text of ``warehouse``.  The asking process seals it for the certificate of each cycle
provider that reads such a relation, and for this query and user: as part of another plan it is of
no use.  A secret is a value of a fragment's options from when it is opened, and in no text.

Users' secrets are a mapping from ``NAME``, for any cycle provider that reads a relation by it, or
``NAME@PROVIDER``, for that one alone; no name in a catalog has a "@".
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import msgspec
from cryptography import x509

from onyx.errors import NotAuthenticated
from onyx.identity.sealing import seal_for
from onyx.identity.signing import Signer
from registration.queries.providers import CycleProvider, Market, Relation, Secret
from registration.queries.query_plan import Fragment
from registration.queries.refusals import QueryRefused, did_you_mean


class SealedSecret(NamedTuple):
    """``site``: URI of the cycle provider that opens it; ``text``: base64."""

    site: str
    name: str
    text: str


Of = tuple[str, str]
"""The id of a query, and its user as a principal, "" for an anonymous one."""


def where_allowed(market: Market, secrets: Mapping[str, str]) -> Market:
    """The market, its relations read only where the user lets their secrets be, as far as there is
    such a place.  QueryRefused for a secret of a provider that the market does not have."""
    sites = {site.uri: site for site in market.sites}
    names = {site.name for site in sites.values()}
    for key in secrets:
        _, sign, provider = key.rpartition("@")
        if sign and provider not in names:
            reason = (
                f"the secret {key} is for {provider}, which is no cycle provider of the catalog"
            )
            raise QueryRefused("not-allowed", reason, hint=did_you_mean(provider, names))

    def narrowed(relation: Relation) -> Relation:
        allowed = tuple(
            uri
            for uri in relation.read_at
            if uri in sites
            and all(_of(secrets, name, sites[uri]) is not None for _, name in relation.secrets)
        )
        return replace(relation, read_at=allowed or relation.read_at)

    return replace(market, relations={uri: narrowed(r) for uri, r in market.relations.items()})


def seal_secrets(
    of: Of,
    fragment: Fragment,
    secrets: Mapping[str, str],
    certificate: Callable[[], x509.Certificate],
) -> tuple[SealedSecret, ...]:
    """Those that a fragment needs; ``certificate``: of its cycle provider.  QueryRefused where the
    user has not given one for it, NotAuthenticated."""
    names = {name for scan in fragment.scans for _, name in scan.relation.secrets}
    if not names:
        return ()
    with_secrets(fragment, secrets)
    site, holder = fragment.site, certificate()
    return tuple(
        SealedSecret(site.uri, name, b64encode(sealed).decode())
        for name in sorted(names)
        for text in (_of(secrets, name, site) or "",)
        for sealed in (seal_for(holder, text.encode(), _context(of, site.uri, name)),)
    )


def open_secrets(
    of: Of, sealed: tuple[SealedSecret, ...], site: str, signer: Signer | None
) -> Mapping[str, str]:
    """Those of a query plan for this cycle provider, by name.  QueryRefused ``bad-signature``."""
    found = {}
    for each in sealed:
        if each.site == site and signer is not None:
            try:
                text = signer.open(b64decode(each.text), _context(of, site, each.name))
                found[each.name] = text.decode()
            except (NotAuthenticated, ValueError) as error:
                reason = f"the secret {each.name!r}: {error}"
                raise QueryRefused("bad-signature", reason, site) from None
    return found


def with_secrets(fragment: Fragment, secrets: Mapping[str, str]) -> Fragment:
    """The fragment with secrets as values of options.  QueryRefused for one that is missing."""
    scans = (
        replace(scan, relation=relation_with(scan.relation, secrets, fragment.site))
        for scan in fragment.scans
    )
    return replace(fragment, scans=tuple(scans))


def relation_with(relation: Relation, secrets: Mapping[str, str], site: CycleProvider) -> Relation:
    """The same of one relation, which is read at a site."""
    found = []
    for option, name in relation.secrets:
        value = _of(secrets, name, site)
        if value is None:
            others = [key.rpartition("@")[2] for key in secrets if key.startswith(f"{name}@")]
            reason = f"{relation.name} is read by the secret {name!r}"
            hint = f"say --secret {name}=FILE, with the file that has it"
            if others:
                reason = f"{reason} at {site.name}, and that is for {', '.join(others)} alone"
                hint = f"say --secret {name}@{site.name}=FILE where {site.name} may have it"
            raise QueryRefused("not-allowed", reason, relation.uri, hint=hint)
        found.append((option, Secret(value)))
    return replace(relation, options=(*relation.options, *found))


def _of(secrets: Mapping[str, str], name: str, site: CycleProvider) -> str | None:
    """The user's text for a cycle provider; those for it alone come first."""
    return secrets.get(f"{name}@{site.name}", secrets.get(name))


def _context(of: Of, site: str, name: str) -> bytes:
    return msgspec.json.encode((*of, site, name))
