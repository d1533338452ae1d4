"""What a query leads to: links, what links need, and local queries.

The paper calls them *targets* (section 4.2.1); they fall into three classes (section 4.3.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Priority(IntEnum):
    """What comes first: whether a link is taken; then, only for links taken, how its message is
    transformed; then who is here."""

    ROUTE = 0
    TRANSFORMATION = 1
    PROFILE = 2


class Transforming(IntEnum):
    """The work on a link's messages: none, leaving out the parts that are not needed, and computing
    pieces where that makes less of them."""

    NOT = 0
    CUTTING = 1
    RESTRUCTURING = 2


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """A link to a neighbour, on the broadcast tree of the root broker ``root``, and on those of
    ``others`` that share what is behind it."""

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
