"""The routing table: who wants what, per broadcast tree (section 4.2.1 of the paper).

Conceptually a table of (routing query, output link) pairs for each root broker.  A routing query
is a set of disjuncts (``Conjunction``: absolute linear paths joined by *and*).  The table does not
evaluate anything: the disjuncts of all links live in the broker's one Matcher, annotated with
their link, which is the paper's Collect().

::

    profiles here ──Map()──┐
                           ├──Aggregate()──> disjuncts this broker stands for ──> parent
    child links ─Collect()─┘                 on the tree, as deltas

Invariant: what the parent has been told covers local ∪ every child's disjuncts, per tree, and
nothing of it is covered by the rest (``CoverForest``).  So equal interests, and those that a more
general one covers, cost one entry on each link however many users share them.  It is kept within a
budget by generalisation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from overlay.routing.cover_forest import CoverForest
from overlay.routing.delta import Delta
from overlay.routing.generalisation import Budget
from overlay.routing.pattern_pool import PatternPool
from yfilter.engine.linear_paths import Conjunction
from yfilter.matcher import LinkTarget, Matcher


class _Tree:
    """One broadcast tree as this broker sees it; ``forest`` is None at the root broker, which
    has nobody to tell."""

    __slots__ = ("forest", "wanted")

    def __init__(self, forest: CoverForest | None) -> None:
        self.forest = forest
        self.wanted: dict[str, set[Conjunction]] = {}  # child link -> disjuncts

    def change(self, added: Iterable[Conjunction], removed: Iterable[Conjunction]) -> Delta:
        return Delta() if self.forest is None else self.forest.change(added, removed)


class RoutingTable:
    """The routing queries of all links of one broker, on every open tree."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._trees: dict[str, _Tree] = {}
        self._local: Counter[Conjunction] = Counter()  # disjunct -> profiles here
        self.pool = PatternPool()

    @property
    def roots(self) -> tuple[str, ...]:
        """The root brokers whose trees are open, in order of opening."""
        return tuple(self._trees)

    def open_tree(self, root: str, *, has_parent: bool) -> Delta:
        """Start a tree; returns what the parent must be told (Aggregate of the local profiles)."""
        if root in self._trees:
            return Delta()
        tree = self._trees[root] = _Tree(CoverForest(pool=self.pool) if has_parent else None)
        return tree.change(self._local, ())

    def set_budget(self, root: str, budget: Budget) -> Delta:
        """How large the routing query on a tree may be; returns what the parent must be told."""
        forest = self._trees[root].forest
        return Delta() if forest is None else forest.set_budget(budget)

    def change_local(
        self, added: Iterable[Conjunction], removed: Iterable[Conjunction]
    ) -> dict[str, Delta]:
        """A profile of this broker comes (its disjuncts), goes, or changes; per tree, what the
        parent must be told."""
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
        deltas = {root: tree.change(fresh, gone) for root, tree in self._trees.items()}
        return {root: delta for root, delta in deltas.items() if delta}

    def change_child(self, root: str, link: str, delta: Delta) -> Delta:
        """A child's routing query changes; returns what the parent must be told.

        Adding what is there and removing what is not are ignored, so that a delta may be applied
        again after a restart.
        """
        tree = self._trees[root]
        wanted = tree.wanted.setdefault(link, set())
        target = LinkTarget(root, link)
        added = [self.pool.share(d) for d in dict.fromkeys(delta.added) if d not in wanted]
        wanted.update(added)
        for disjunct in added:
            self._matcher.add_route(disjunct, target)
        removed = [d for d in dict.fromkeys(delta.removed) if d in wanted]
        wanted.difference_update(removed)
        for disjunct in removed:
            self._matcher.remove_route(disjunct, target)
        return tree.change(added, removed)

    def restore_told(self, told: Iterable[tuple[str, Conjunction]]) -> None:
        """What the parents knew before a restart, as (root, disjunct); to be called when the
        trees are open and nothing else is there yet, and ``settle`` when all is."""
        for root, disjunct in told:
            forest = self._trees[root].forest
            if forest is not None:
                forest.restore(disjunct)

    def settle(self) -> dict[str, Delta]:
        """What the parents have to unlearn after a restart."""
        forests = {root: tree.forest for root, tree in self._trees.items()}
        return {root: forest.settle() for root, forest in forests.items() if forest is not None}

    def entries(self) -> Iterator[tuple[str, str, Conjunction]]:
        """(root, link, disjunct) of every entry."""
        for root, tree in self._trees.items():
            for link, wanted in tree.wanted.items():
                for disjunct in wanted:
                    yield root, link, disjunct

    def wanted(self, root: str, link: str) -> Collection[Conjunction]:
        """The routing query of a link on a tree."""
        tree = self._trees.get(root)
        return () if tree is None else tree.wanted.get(link, ())

    def is_wanted(self, root: str) -> bool:
        """Whether anybody here or behind a child link wants messages of a tree."""
        tree = self._trees.get(root)
        return bool(self._local) or (tree is not None and any(tree.wanted.values()))

    def aggregate(self, root: str) -> set[Conjunction]:
        """All that this broker stands for on a tree; its parent has been told what covers it."""
        return set(self._local).union(*self._trees[root].wanted.values())

    def told(self, root: str) -> set[Conjunction]:
        """What the parent on a tree knows; nothing at the root broker."""
        forest = self._trees[root].forest
        return set() if forest is None else set(forest.told)

    def statistics(self) -> dict[str, int]:
        forests = [tree.forest for tree in self._trees.values() if tree.forest is not None]
        upward: Counter[str] = Counter()
        for forest in forests:
            upward.update(forest.statistics())
        return {
            "trees": len(self._trees),
            "distinct_disjuncts": len(self.pool),
            "local_disjuncts": len(self._local),
            "entries": sum(
                len(wanted) for tree in self._trees.values() for wanted in tree.wanted.values()
            ),
            **upward,
        }

    def dump(self) -> str:
        """The table as the paper draws it: root, link and routing query, a disjunct a line."""
        lines = []
        for root, tree in self._trees.items():
            lines.append(f"tree of {root}")
            for link in sorted(tree.wanted):
                lines.append(f"  {link}:")
                lines += sorted(f"    {disjunct}" for disjunct in tree.wanted[link])
        return "\n".join(lines)
