"""LinkQueries: the routing queries of a broker's links.

A routing query is a set of conjunctions for each link and tree, its disjuncts; an equal one of
several links is one query with several targets.  They stand in the index.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from yfilter.engine.linear_paths import Conjunction
from yfilter.engine.match_limits import MatchLimits
from yfilter.engine.targets import LinkTarget
from yfilter.errors import ProfileRefused
from yfilter.index.index import Index


@dataclass(slots=True)
class _Place:
    """Where a query is: under a number in the index."""

    number: int
    targets: dict[LinkTarget, None] = field(default_factory=dict)


class LinkQueries:
    """Add and remove (query, target) pairs; each is there once.  ``routes``: by disjunct."""

    def __init__(self, index: Index, limits: MatchLimits) -> None:
        self._index = index
        self._limits = limits
        self.routes: dict[Conjunction, _Place] = {}
        self._route_count = 0

    def add_route(self, conjunction: Conjunction, target: LinkTarget) -> None:
        """A disjunct of the target's routing query; ValueError if it is there already."""
        place = self.routes.get(conjunction)
        if place is not None and target in place.targets:
            raise ValueError(f"{target} has this conjunction already: {conjunction}")
        _check_room(self._route_count, self._limits.routes_max, "routes")
        if place is None:
            place = self.routes[conjunction] = _Place(self._index.add_conjunction(conjunction))
        self._add_target(place, target)
        self._route_count += 1

    def remove_route(self, conjunction: Conjunction, target: LinkTarget) -> None:
        """Undo ``add_route`` of exactly this pair; KeyError if it is not there."""
        place = self.routes[conjunction]
        self._remove_target(place, target)
        self._route_count -= 1
        if not place.targets:
            del self.routes[conjunction]
            self._index.remove(place.number)

    def statistics(self) -> dict[str, int]:
        return {
            "routes": self._route_count,
            "route_queries": len(self.routes),
        }

    def _add_target(self, place: _Place, target: LinkTarget) -> None:
        place.targets[target] = None
        self._index.add_target(place.number, target)

    def _remove_target(self, place: _Place, target: LinkTarget) -> None:
        del place.targets[target]
        self._index.remove_target(place.number, target)


def _check_room(count: int, bound: int, what: str) -> None:
    if count >= bound:
        raise ProfileRefused(f"too-many-{what}", f"{bound} {what} are registered already")
