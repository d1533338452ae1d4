"""What a matching plan leads to: links, transformation queries of links, and local queries.

The paper calls them *targets* (section 4.2.1); they fall into three classes (section 4.3.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

from yfilter.language.query_ast import Profile


class Priority(IntEnum):
    """What comes first: whether a link is taken; then, only for links taken, how its message is
    transformed; then who is here."""

    ROUTE = 0
    TRANSFORMATION = 1
    PROFILE = 2


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """A link to a neighbour, on the broadcast tree of the root broker ``root``, and on those of
    ``others`` that share what is behind it."""

    priority: ClassVar[Priority] = Priority.ROUTE

    root: str
    link: str
    others: frozenset[str] = frozenset()

    @property
    def roots(self) -> frozenset[str]:
        return self.others | {self.root}

    def is_on(self, root: str) -> bool:
        """Whether the link belongs to a tree."""
        return root == self.root or root in self.others

    def names(self) -> list[str]:
        """For people, as of each kind of target."""
        return [f"{self.link} (tree of {', '.join(sorted(self.roots))})"]


class Transformation:
    """One transformation query, and the links whose messages it is for.  Compared by identity.

    ``remainder``: it can have no result although its matching path matched.
    """

    __slots__ = ("profile", "remainder", "targets")
    priority: ClassVar[Priority] = Priority.TRANSFORMATION

    def __init__(self, profile: Profile, remainder: bool) -> None:
        self.profile = profile
        self.remainder = remainder
        self.targets: dict[LinkTarget, None] = {}

    def names(self) -> list[str]:
        return [f"transformation for {name}" for target in self.targets for name in target.names()]

    def links_of(self, root: str) -> list[str]:
        """The links of a tree whose messages it is for."""
        return [target.link for target in self.targets if target.is_on(root)]
