"""The routing table: who wants what, per broadcast tree (section 4.2.1 of the paper).

Conceptually a table of (routing query, output link) pairs for each root broker.  A routing query
is a set of disjuncts (``Conjunction``: absolute linear paths joined by *and*).  The table does not
evaluate anything: the disjuncts of all links live in the broker's one Matcher, annotated with
their link, which is the paper's Collect().

::

    profiles here ──Map()──┐
                           ├──Aggregate()──> disjuncts this broker stands for ──> parent
    child links ─Collect()─┘                 on the tree, as deltas

What trees have in common is there once (``branches.py``): a child's routing query for each of its
branches, and what this broker tells for each branch of its own.  So neither memory nor messages
grow with the number of root brokers, but with that of different branches.

Invariant: what the parent has been told covers local ∪ every child's disjuncts, per branch, and
nothing of it is covered by the rest (``CoverForest``).  So equal interests, and those that a more
general one covers, cost one entry on each link however many users share them.  It is kept within a
budget by generalisation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from formats import ElementStream
from overlay.routing.branches import Branch
from overlay.routing.cover_forest import CoverForest
from overlay.routing.delta import Delta
from overlay.routing.generalisation import Budget, disjunct_bytes
from overlay.routing.message_sample import MessageSample
from overlay.routing.pattern_pool import PatternPool
from yfilter.engine.linear_paths import Conjunction
from yfilter.matcher import LinkTarget, Matcher


class Forgotten(NamedTuple):
    """What a table has no more: ``trees``, what the parents knew by own branch, and what the
    children wanted."""

    trees: Collection[str]
    told: Mapping[str, Collection[Conjunction]]
    wanted: Mapping[Branch, Collection[Conjunction]]


class RoutingTable:
    """The routing queries of all links of one broker, on every open tree."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._trees: dict[str, tuple[Branch, ...]] = {}  # root -> the children's branches
        self._closed: set[str] = set()  # of these, the ones on which no message comes any more
        self._upward: dict[str, CoverForest] = {}  # own branch -> what its parent knows
        self._branches: dict[str, Branch] = {}  # those, by name
        self._own: dict[str, Branch] = {}  # root -> own branch; none where this is the root
        self._wanted: dict[Branch, set[Conjunction]] = {}  # a child's branch -> disjuncts
        self._local: Counter[Conjunction] = Counter()  # disjunct -> profiles here
        self._bytes = 0  # of the entries
        self._sample = MessageSample()
        self.pool = PatternPool()

    @property
    def roots(self) -> tuple[str, ...]:
        """The trees that are open, each by its name, in order of opening."""
        return tuple(root for root in self._trees if root not in self._closed)

    def is_open(self, root: str) -> bool:
        return root in self._trees and root not in self._closed

    def open_tree(self, root: str, own: Branch | None, below: Iterable[Branch]) -> Delta:
        """Start a tree; returns what the parent must be told (Aggregate of what is known here).

        ``own``: this broker's branch on it, None at the root broker, which has nobody to tell;
        ``below``: its children's.  There is nothing to tell where another tree has the branch.
        """
        if root in self._trees:
            return Delta()
        self._trees[root] = tuple(below)
        for branch in self._trees[root]:
            self._wanted.setdefault(branch, set())
        if own is None:
            return Delta()
        self._own[root] = own
        if own.name in self._upward:
            return Delta()
        forest = self._upward[own.name] = CoverForest(pool=self.pool, sample=self._sample)
        self._branches[own.name] = own
        known = [*self._local, *(d for branch in self._trees[root] for d in self._wanted[branch])]
        return forest.change(known, ())

    def close_tree(self, root: str) -> None:
        """No message comes on a tree any more.  What is known of its branches stays until it is
        certain that no other tree needs them, at this broker or at its neighbours."""
        if root in self._trees:
            self._closed.add(root)

    def keep_own(self, own: Branch) -> None:
        """After a restart: the parent knows something of a branch, though no tree of it be open."""
        if own.name not in self._upward:
            self._upward[own.name] = CoverForest(pool=self.pool, sample=self._sample)
            self._branches[own.name] = own

    def keep_child(self, branch: Branch) -> None:
        """After a restart: a child wants something, though no tree of its branch be open."""
        self._wanted.setdefault(branch, set())

    def forget_closed(self, is_alive: Callable[[str], bool]) -> Forgotten:
        """Forget the trees that are closed, and the branches that no tree that ``is_alive`` has."""
        for root in self._closed:
            del self._trees[root]
            self._own.pop(root, None)
        trees = list(self._closed)
        self._closed.clear()
        wanted = {}
        for branch in [b for b in self._wanted if not any(map(is_alive, b.roots))]:
            wanted[branch] = self._wanted.pop(branch)
            target = LinkTarget(branch.name, branch.broker, branch.roots)
            for disjunct in wanted[branch]:
                self._matcher.remove_route(disjunct, target)
            self._bytes -= sum(map(disjunct_bytes, wanted[branch]))
        told = {}
        for own in [b for b in self._branches.values() if not any(map(is_alive, b.roots))]:
            del self._branches[own.name]
            told[own.name] = set(self._upward.pop(own.name).told)
        return Forgotten(trees, told, wanted)

    def set_budget(self, branch: str, budget: Budget) -> Delta:
        """How large the routing query of an own branch may be; returns what its parent must be
        told."""
        return self._upward[branch].set_budget(budget)

    def change_local(
        self, added: Iterable[Conjunction], removed: Iterable[Conjunction]
    ) -> dict[str, Delta]:
        """A profile of this broker comes (its disjuncts), goes, or changes; per own branch, what
        the parent must be told."""
        fresh, gone = [], []
        for disjunct in map(self.pool.share, dict.fromkeys(added)):
            self._local[disjunct] += 1
            if self._local[disjunct] == 1:
                fresh.append(disjunct)
        for disjunct in dict.fromkeys(removed):
            self._local[disjunct] -= 1
            if not self._local[disjunct]:
                del self._local[disjunct]
                gone.append(disjunct)
        return self._change(self._upward, fresh, gone)

    def change_child(self, branch: Branch, delta: Delta) -> dict[str, Delta]:
        """A child's routing query changes; per own branch, what the parent must be told.

        KeyError when no open tree has the branch.  Adding what is there and removing what is not
        are ignored, so that a delta may be applied again after a restart.
        """
        wanted = self._wanted[branch]
        target = LinkTarget(branch.name, branch.broker, branch.roots)
        added = [self.pool.share(d) for d in dict.fromkeys(delta.added) if d not in wanted]
        wanted.update(added)
        for disjunct in added:
            self._matcher.add_route(disjunct, target)
        removed = [d for d in dict.fromkeys(delta.removed) if d in wanted]
        wanted.difference_update(removed)
        self._bytes += sum(map(disjunct_bytes, added)) - sum(map(disjunct_bytes, removed))
        for disjunct in removed:
            self._matcher.remove_route(disjunct, target)
        # All trees of an own branch have the same branches below.
        return self._change((own for own in self._upward if own in branch.roots), added, removed)

    def arrived(self, root: str, source: str, number: int) -> None:
        """A message came from the parent on a tree, the ``number``-th of its source."""
        own = self._own.get(root)
        if own is not None:
            self._upward[own.name].arrived(source, number)

    def blame(self, root: str, message: ElementStream) -> dict[str, Delta]:
        """It came for nothing: what let it pass is noted.  Per own branch, what the parent must be
        told when that leads to other generalisations."""
        own = self._own.get(root)
        delta = Delta() if own is None else self._upward[own.name].blame(message)
        return {own.name: delta} if own is not None and delta else {}

    def take_sample(self, root: str, message: ElementStream) -> list[str]:
        """A message is one of the sample; the links that it is to be sent over for that."""
        if root in self._own:
            self._sample.add(message)
        return [branch.broker for branch in self._trees.get(root, ()) if self._wanted[branch]]

    @property
    def is_working(self) -> bool:
        """Whether some routing query is still being generalised."""
        return any(forest.is_working for forest in self._upward.values())

    def work(self) -> dict[str, Delta]:
        """Go on with that, a bounded step; per own branch, what the parent must be told."""
        working = {own: forest for own, forest in self._upward.items() if forest.is_working}
        deltas = {own: forest.work() for own, forest in working.items()}
        return {own: delta for own, delta in deltas.items() if delta}

    def restore_told(self, told: Iterable[tuple[str, Conjunction]]) -> None:
        """What the parents knew before a restart, as (own branch, disjunct); to be called when the
        trees are open and nothing else is there yet, and ``settle`` when all is."""
        for branch, disjunct in told:
            self._upward[branch].restore(disjunct)

    def settle(self) -> dict[str, Delta]:
        """What the parents have to unlearn after a restart."""
        return {branch: forest.settle() for branch, forest in self._upward.items()}

    def entries(self) -> Iterator[tuple[Branch, Conjunction]]:
        """Every disjunct with the child's branch that wants it."""
        for branch, wanted in self._wanted.items():
            for disjunct in wanted:
                yield branch, disjunct

    def wanted(self, root: str, link: str) -> Collection[Conjunction]:
        """The routing query of a link on a tree."""
        for branch in self._trees.get(root, ()):
            if branch.broker == link:
                return self._wanted[branch]
        return ()

    def is_wanted(self, root: str) -> bool:
        """Whether anybody here or behind a child link wants messages of a tree."""
        return bool(self._local) or any(
            self._wanted[branch] for branch in self._trees.get(root, ())
        )

    def aggregate(self, root: str) -> set[Conjunction]:
        """All that this broker stands for on a tree; its parent has been told what covers it."""
        return set(self._local).union(*(self._wanted[branch] for branch in self._trees[root]))

    def told(self, root: str) -> set[Conjunction]:
        """What the parent on a tree knows; nothing at the root broker."""
        own = self._own.get(root)
        return set() if own is None else set(self._upward[own.name].told)

    def statistics(self) -> dict[str, int]:
        """``table_bytes`` of the entries, ``told_bytes`` of what the parents keep for this broker;
        ``shared_entries``: how many more there would be, did each tree have its own."""
        upward: Counter[str] = Counter()
        for forest in self._upward.values():
            upward.update(forest.statistics())
        entries = sum(map(len, self._wanted.values()))
        trees = sum(len(self._wanted[branch]) for below in self._trees.values() for branch in below)
        return {
            "trees": len(self._trees),
            "branches": len(self._upward),
            "child_branches": len(self._wanted),
            "distinct_disjuncts": len(self.pool),
            "local_disjuncts": len(self._local),
            "entries": entries,
            "shared_entries": trees - entries,
            "table_bytes": self._bytes,
            "sampled": len(self._sample),
            **upward,
        }

    def dump(self) -> str:
        """The table as the paper draws it: root, link and routing query, a disjunct a line."""
        lines = []
        for root, below in self._trees.items():
            lines.append(f"tree of {root}")
            for branch in sorted(below, key=lambda branch: branch.broker):
                lines.append(f"  {branch.broker}:")
                lines += sorted(f"    {disjunct}" for disjunct in self._wanted[branch])
        return "\n".join(lines)

    def _change(
        self, branches: Iterable[str], added: list[Conjunction], removed: list[Conjunction]
    ) -> dict[str, Delta]:
        deltas = {own: self._upward[own].change(added, removed) for own in branches}
        return {own: delta for own, delta in deltas.items() if delta}
