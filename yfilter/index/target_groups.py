"""TargetGroups: which queries are still worth a look, by the links that they lead to.

Queries that lead to the same set of targets are one group; what is known of a group while a
message is matched stands in a column that the run reads (section 4.3.1)::

    group_of   query -> group
    verdict    group -> -epoch   none of its links is wanted, for the rest of this message
                        stamp    one of them was wanted when the stamp was new
                        else     not known: ``is_open`` finds out

For routing queries the wanted links are those of the message's tree that are not reached yet;
each one reached makes a new stamp.  For transformation queries they are those that were reached.
So a group is looked at once for each link reached, whatever the number of its queries.
"""

from __future__ import annotations

from collections.abc import Iterable

from yfilter.engine.targets import LinkTarget
from yfilter.index.columns import grown, ints


class TargetGroups:
    """``assign`` targets to queries; ``begin`` a message; then ask about groups."""

    def __init__(self) -> None:
        self.group_of = ints(64)
        self.verdict = ints(64)
        self.stamp = 0
        self._numbers: dict[frozenset[LinkTarget], int] = {}
        self._links: list[dict[str, tuple[str, ...]]] = [{}]  # of each group, by tree
        self._keys: list[frozenset[LinkTarget]] = [frozenset()]
        self._queries = [0]  # of each group
        self._free: list[int] = []
        self._trees: dict[str, dict[str, int]] = {}  # root -> link -> groups
        self._epoch = 0
        self._root = ""
        self._closing = True
        self._wanted: dict[str, None] = {}
        self._reached: list[str] = []

    # -- structure

    def assign(self, query: int, targets: Iterable[LinkTarget]) -> None:
        """The targets of a query, from now on; none for a query that is gone."""
        if query >= len(self.group_of):
            self.group_of = grown(self.group_of, query + query // 2 + 8)
        before = self.group_of[query]
        self.group_of[query] = self._acquire(tuple(targets))
        if before:
            self._release(before)

    def names(self, query: int) -> list[str]:
        """The targets of a query, for people."""
        group = self.group_of[query] if query < len(self.group_of) else 0
        return [
            name
            for root, links in self._links[group].items()
            for link in links
            for name in LinkTarget(root, link).names()
        ]

    def statistics(self) -> dict[str, int]:
        return {"target_groups": len(self._numbers)}

    def restart(self) -> None:
        """Epochs and stamps begin again."""
        self.verdict = ints(len(self.verdict))
        self.stamp = 0

    # -- one message

    def begin(self, epoch: int, root: str, links: Iterable[str], *, closing: bool) -> int:
        """Look for queries that lead to these links of a tree; gives the first stamp.

        ``closing``: a link that is reached is not wanted any more.
        """
        self._epoch = epoch
        self._root = root
        self._closing = closing
        self._wanted = dict.fromkeys(links)
        self._reached = []
        self.stamp += 1
        return self.stamp

    def links_of(self, root: str) -> list[str]:
        """All links of a tree that some query leads to."""
        return list(self._trees.get(root, ()))

    def is_open(self, group: int) -> bool:
        """Whether one of the group's links is wanted; noted for the next who asks."""
        wanted = any(link in self._wanted for link in self._links[group].get(self._root, ()))
        self.verdict[group] = self.stamp if wanted else -self._epoch
        return wanted

    def reach(self, query: int) -> int:
        """A query holds: the stamp from now on, or 0 when nothing is wanted any more."""
        if not self._closing:
            return self.stamp
        for link in self._links[self.group_of[query]].get(self._root, ()):
            if link in self._wanted:
                del self._wanted[link]
                self._reached.append(link)
        self.stamp += 1
        return self.stamp if self._wanted else 0

    @property
    def reached(self) -> list[str]:
        """The links reached so far, in order."""
        return self._reached

    # -- groups

    def _acquire(self, targets: tuple[LinkTarget, ...]) -> int:
        if not targets:
            return 0
        key = frozenset(targets)
        group = self._numbers.get(key)
        if group is None:
            group = self._numbers[key] = self._new_group(key, targets)
        self._queries[group] += 1
        return group

    def _new_group(self, key: frozenset[LinkTarget], targets: tuple[LinkTarget, ...]) -> int:
        links: dict[str, tuple[str, ...]] = {}
        for target in targets:
            links[target.root] = (*links.get(target.root, ()), target.link)
            groups = self._trees.setdefault(target.root, {})
            groups[target.link] = groups.get(target.link, 0) + 1
        if self._free:
            group = self._free.pop()
            self._keys[group], self._links[group] = key, links
        else:
            group = len(self._keys)
            self._keys.append(key)
            self._links.append(links)
            self._queries.append(0)
        if group >= len(self.verdict):
            self.verdict = grown(self.verdict, 2 * group)
        self.verdict[group] = 0
        return group

    def _release(self, group: int) -> None:
        self._queries[group] -= 1
        if self._queries[group]:
            return
        del self._numbers[self._keys[group]]
        for root, links in self._links[group].items():
            groups = self._trees[root]
            for link in links:
                groups[link] -= 1
                if not groups[link]:
                    del groups[link]
            if not groups:
                del self._trees[root]
        self._keys[group], self._links[group] = frozenset(), {}
        self._free.append(group)
