"""Whose things are that a request is about, for the table of access (overlay/access.py)."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET

from overlay import verbs
from overlay.link.principal import Principal


def users_named(asked: verbs.OfUser, asker: Principal) -> Iterator[tuple[str, str]]:
    """(scope, owner) of what belongs to the users whom a request names."""
    named = {verbs.user_meant(asked.user, asker)}
    if isinstance(asked, verbs.ProfileAddMany) and asked.users is not UNSET:
        named = set(asked.users)
    for user in sorted(named):
        yield "", f"user/{user}"


def as_oneself(asked: verbs.Asked, asker: Principal) -> Iterator[tuple[str, str]]:
    """Of what will belong to whoever asks."""
    yield "", str(asker)
