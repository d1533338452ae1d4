"""What operators of the network are annotated with: links and local queries.

The paper calls both *targets* (section 4.2.1).
"""

from __future__ import annotations

from dataclasses import dataclass

from yfilter.language.query_ast import Profile


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """A link to a neighbour, on the broadcast tree of the root broker ``root``."""

    root: str
    link: str


class Query:
    """One internal query: all profiles with equal bodies.  Compared by identity.

    ``subscribers`` maps a profile id to the number of its registration.  ``remainder`` says that
    the network's answer is necessary but not sufficient, so that the rendering decides.  ``number``
    is the query's in the index, 0 for one that is not there.
    """

    __slots__ = ("number", "profile", "remainder", "subscribers")

    def __init__(self, profile: Profile, remainder: bool) -> None:
        self.profile = profile
        self.remainder = remainder
        self.subscribers: dict[str, int] = {}
        self.number = 0
