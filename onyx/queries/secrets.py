"""Secrets of users for old systems: each is in a query plan for the cycle provider that needs it.

A relation says which of its options are secrets, ``q:secret "password=warehouse"``, and the user
has the text of ``warehouse``.  The asking process seals it for the certificate of each cycle
provider that reads such a relation, and for this query and user: as part of another plan it is of
no use.  A secret is a value of a fragment's options from when it is opened, and in no text.
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
from registration.queries.providers import Relation, Secret
from registration.queries.query_plan import Fragment
from registration.queries.refusals import QueryRefused


class SealedSecret(NamedTuple):
    """``site``: URI of the cycle provider that opens it; ``text``: base64."""

    site: str
    name: str
    text: str


Of = tuple[str, str]
"""The id of a query, and its user as a principal, "" for an anonymous one."""


def seal_secrets(
    of: Of,
    fragment: Fragment,
    secrets: Mapping[str, str],
    certificate: Callable[[], x509.Certificate],
) -> tuple[SealedSecret, ...]:
    """Those that a fragment needs; ``certificate``: of its cycle provider.  QueryRefused where the
    user has not given one, NotAuthenticated."""
    names = {name for scan in fragment.scans for _, name in scan.relation.secrets}
    if not names:
        return ()
    with_secrets(fragment, secrets)
    site, holder = fragment.site.uri, certificate()
    return tuple(
        SealedSecret(site, name, b64encode(sealed).decode())
        for name in sorted(names)
        for sealed in (seal_for(holder, secrets[name].encode(), _context(of, site, name)),)
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

    return replace(
        fragment,
        scans=tuple(
            replace(scan, relation=relation_with(scan.relation, secrets)) for scan in fragment.scans
        ),
    )


def relation_with(relation: Relation, secrets: Mapping[str, str]) -> Relation:
    """The same of one relation."""
    for _, name in relation.secrets:
        if name not in secrets:
            reason = f"{relation.name} is read by the secret {name!r}"
            hint = f"say --secret {name}=FILE, with the file that has it"
            raise QueryRefused("not-allowed", reason, relation.uri, hint=hint)
    found = tuple((option, Secret(secrets[name])) for option, name in relation.secrets)
    return replace(relation, options=(*relation.options, *found))


def _context(of: Of, site: str, name: str) -> bytes:
    return msgspec.json.encode((*of, site, name))
