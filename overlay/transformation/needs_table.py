"""NeedsTable: what every link is sent of a message (section 4.2.2).

::

    profiles here ──needs──┐
                           ├──NeedSet──> what this broker's branch needs ──> parent
    child links ───needs───┘                        as deltas
          └──> the matcher, which cuts the messages of all links (yfilter/projection)

What trees have in common is there once, as in the routing table (overlay/routing/branches.py).

Invariant: what the parent has been told keeps all that the needs of local profiles and of every
child keep, per branch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Protocol

from overlay.routing.branches import Branch
from overlay.transformation.need_set import NeedDelta, NeedSet
from yfilter.engine.targets import LinkTarget
from yfilter.projection.needs import EVERYTHING, Need


class LinkTransformer(Protocol):
    """A Matcher, which leaves of a link's messages what its needs keep."""

    def open_needs(self, target: LinkTarget) -> None: ...
    def close_needs(self, target: LinkTarget) -> None: ...
    def add_need(self, need: Need, target: LinkTarget) -> None: ...
    def remove_need(self, need: Need, target: LinkTarget) -> None: ...


class LinkNeeds:
    """What is needed in a child's branch, everything until it has said anything; the transformer
    is told of it."""

    __slots__ = ("_target", "_transformer", "needs")

    def __init__(self, transformer: LinkTransformer, branch: Branch) -> None:
        self._transformer = transformer
        self._target = LinkTarget(branch.name, branch.broker, branch.roots)
        self.needs: dict[Need, None] = {EVERYTHING: None}
        transformer.add_need(EVERYTHING, self._target)

    def close(self) -> None:
        self._transformer.close_needs(self._target)

    def change(self, delta: NeedDelta) -> NeedDelta:
        """Gives what was news."""
        added = tuple(need for need in dict.fromkeys(delta.added) if need not in self.needs)
        self.needs.update(dict.fromkeys(added))
        for need in added:
            self._transformer.add_need(need, self._target)
        removed = tuple(need for need in dict.fromkeys(delta.removed) if need in self.needs)
        for need in removed:
            del self.needs[need]
            self._transformer.remove_need(need, self._target)
        return NeedDelta(added, removed)


class NeedsTable:
    """The needs of all links of one broker, on every open tree, and of its profiles."""

    def __init__(self, transformer: LinkTransformer, bytes_max: int) -> None:
        """``bytes_max``: of what is told about one own branch."""
        self._transformer = transformer
        self._bytes_max = bytes_max
        self._trees: dict[str, tuple[Branch, ...]] = {}  # root -> the children's branches
        self._upward: dict[str, NeedSet] = {}  # own branch -> what its parent knows
        self._branches: dict[str, Branch] = {}  # those, by name
        self._own: dict[str, Branch] = {}  # root -> own branch; none where this is the root
        self._links: dict[Branch, LinkNeeds] = {}  # a child's branch
        self._local: Counter[Need] = Counter()
        self.is_changed = False  # since ``take``

    def open_tree(self, root: str, own: Branch | None, below: Iterable[Branch]) -> None:
        """``own``: this broker's branch on it, None at the root; ``below``: its children's."""
        if root in self._trees:
            return
        self._trees[root] = tuple(below)
        for branch in self._trees[root]:
            self.keep_child(branch)
        if own is not None:
            self._own[root] = own
            self.keep_own(own)

    def keep_own(self, own: Branch) -> None:
        """What is told about a branch, also while no tree of it is open."""
        self.is_changed = True
        if own.name not in self._upward:
            needs = self._upward[own.name] = NeedSet(self._bytes_max)
            self._branches[own.name] = own
            needs.change(self._local, ())
            for branch, link in self._links.items():
                if own.name in branch.roots:
                    needs.change(link.needs, ())

    def keep_child(self, branch: Branch) -> None:
        """A child's branch, also while no tree of it is open."""
        self.is_changed = True
        if branch not in self._links:
            link = self._links[branch] = LinkNeeds(self._transformer, branch)
            for own in self.carriers(branch):
                self._upward[own].change(link.needs, ())

    def forget_dead(
        self, is_alive: Callable[[str], bool]
    ) -> tuple[dict[str, list[Need]], dict[Branch, list[Need]]]:
        """Forget the trees that are not alive, and the branches of which no tree is; what the
        parents knew by own branch, and what the children needed."""
        for root in [root for root in self._trees if not is_alive(root)]:
            del self._trees[root]
            self._own.pop(root, None)
        told, needed = {}, {}
        for own in [b for b in self._branches.values() if not any(map(is_alive, b.roots))]:
            del self._branches[own.name]
            told[own.name] = list(self._upward.pop(own.name).told)
        for branch in [b for b in self._links if not any(map(is_alive, b.roots))]:
            link = self._links.pop(branch)
            link.close()
            needed[branch] = list(link.needs)
        return told, needed

    def change_local(self, added: Iterable[Need], removed: Iterable[Need]) -> None:
        """A profile of this broker comes, goes, or changes."""
        self.is_changed = True
        fresh, gone = [], []
        for need in dict.fromkeys(added):
            self._local[need] += 1
            if self._local[need] == 1:
                fresh.append(need)
        for need in dict.fromkeys(removed):
            self._local[need] -= 1
            if not self._local[need]:
                del self._local[need]
                gone.append(need)
        for needs in self._upward.values():
            needs.change(fresh, gone)

    def change_child(self, branch: Branch, delta: NeedDelta) -> None:
        """A child's needs change; KeyError when no open tree has the branch.  Adding what is there
        and removing what is not are ignored, so that a delta may be applied again."""
        self.is_changed = True
        news = self._links[branch].change(delta)
        for own in self.carriers(branch):
            self._upward[own].change(news.added, news.removed)

    def carriers(self, branch: Branch) -> list[str]:
        """The own branches that a child's branch is in."""
        return [own for own in self._upward if own in branch.roots]

    def restore_told(self, own: str, need: Need) -> None:
        """What the parent knew before a restart; to be called before anything else is there."""
        self.is_changed = True
        self._upward[own].restore(need)

    def take(self) -> dict[str, NeedDelta]:
        """By own branch, what the parents must be told since the last time."""
        self.is_changed = False
        news = {own: needs.take() for own, needs in self._upward.items()}
        return {own: delta for own, delta in news.items() if delta}

    @property
    def own_branches(self) -> tuple[str, ...]:
        return tuple(self._upward)

    def behind(self, root: str, link: str) -> LinkNeeds | None:
        """What is needed behind a link on a tree; None where the tree does not have it."""
        for branch in self._trees.get(root, ()):
            if branch.broker == link:
                return self._links[branch]
        return None

    def told(self, root: str) -> set[Need]:
        """What the parent on a tree knows; nothing at the root broker."""
        own = self._own.get(root)
        return set() if own is None else self.told_about(own.name)

    def told_about(self, own: str) -> set[Need]:
        """What the parent of an own branch knows."""
        return set(self._upward[own].told)

    def aggregate(self, root: str) -> set[Need]:
        """All that this broker stands for on a tree."""
        links = (self._links[branch].needs for branch in self._trees[root])
        return set(self._local).union(*links)

    def statistics(self) -> dict[str, int]:
        upward: Counter[str] = Counter()
        for needs in self._upward.values():
            upward.update(needs.statistics())
        return {
            "local_needs": len(self._local),
            "link_needs": sum(len(link.needs) for link in self._links.values()),
            **upward,
        }
