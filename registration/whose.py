"""Whose things are that a request is about, for the table of access (overlay/access.py)."""

from __future__ import annotations

from collections.abc import Iterator

from overlay.link.frames import Request
from overlay.link.principal import Principal
from overlay.link.request_server import name_argument


def user_argument(request: Request, asker: Principal | None) -> str:
    """The user that is named; a user who names nobody is meant."""
    named = name_argument(request, "user", default="")
    return asker.name if not named and asker is not None and asker.role == "user" else named


def users_named(request: Request, asker: Principal) -> Iterator[tuple[str, str]]:
    """(scope, owner) of what belongs to the users whom a request names."""
    many = request.arguments.get("users")
    named = set(map(str, many)) if isinstance(many, list) else {user_argument(request, asker)}
    for user in sorted(named):
        yield "", f"user/{user}"


def as_oneself(request: Request, asker: Principal) -> Iterator[tuple[str, str]]:
    """Of what will belong to whoever asks."""
    yield "", str(asker)
