"""Standing queries: what a query asks of an archive becomes a profile of its user.

``archive.wire(profile => '…')`` reads what was published; the profile gets what will be, of every
source of the network.  It is live before the archive is read, so no message is missed between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256

from onyx.blocking import User
from onyx.clients import user_name
from onyx.spark.network import Network
from overlay.answers import ProfileInfo
from registration.queries.query_plan import Fragment
from registration.queries.refusals import QueryRefused


def standing_profiles(fragments: Iterable[Fragment]) -> Mapping[str, str]:
    """By their texts the profiles by which a query plan reads archives, each with the registration
    service that the archive's catalog names, or "".  QueryRefused where it reads none."""
    found = {
        arguments["profile"]: dict(scan.relation.options).get("registration", "")
        for fragment in fragments
        for scan in fragment.scans
        if "profile" in (arguments := dict(scan.arguments))
    }
    if not found:
        raise QueryRefused(
            "forbidden-sql",
            "the query reads no archive by a profile, so it asks nothing of messages to come",
            hint="name one as archive.SOURCE(profile => '…'), or leave out --standing",
        )
    return found


def add_standing(network: Network, user: str, text: str) -> ProfileInfo:
    """The user's profile of that text, which is live; to add it again is to find it.  ``user`` "":
    the user of the credentials, or the login name.  ProfileNotAccepted, the network's refusal."""
    key = f"standing-{sha256(text.encode()).hexdigest()[:16]}"
    where = network.registration
    with network.shown(), User(where, user or user_name(where)) as client:
        return client.add_profile(text, key=key)
