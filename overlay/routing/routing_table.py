"""The routing table: who wants what, per broadcast tree (section 4.2.1 of the paper).

Conceptually a table of (routing query, output link) pairs for each root broker.  A routing query
is a set of disjuncts (``Conjunction``: absolute linear paths joined by *and*).  The table does not
evaluate anything: the disjuncts of all links live in the broker's one Matcher, annotated with
their link, which is the paper's Collect().  How they are told is that of every BranchTable.

Invariant: of what the parent has been told nothing is covered by the rest (``CoverForest``).  So
equal interests, and those that a more general one covers, cost one entry on each link however many
users share them.  It is kept within a budget by generalisation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from formats import ElementStream
from overlay.routing.branch_table import BranchTable, Changes, Forgotten
from overlay.routing.branches import Branch
from overlay.routing.cover_forest import CoverForest
from overlay.routing.delta import Delta
from overlay.routing.generalisation import Budget, disjunct_bytes
from overlay.routing.message_sample import MessageSample
from overlay.routing.pattern_pool import PatternPool
from yfilter.engine.linear_paths import Conjunction
from yfilter.engine.readings import Readings
from yfilter.matcher import LinkTarget, Matcher


class LinkInterests:
    """The routing query of a child's branch: its disjuncts, which the matcher is told of."""

    __slots__ = ("_matcher", "_target", "bytes", "entries")

    def __init__(self, matcher: Matcher, branch: Branch) -> None:
        self._matcher = matcher
        self._target = LinkTarget(branch.name, branch.broker, branch.roots)
        self.entries: set[Conjunction] = set()
        self.bytes = 0  # as ``disjunct_bytes`` counts

    def change(
        self, added: Iterable[Conjunction], removed: Iterable[Conjunction]
    ) -> Changes[Conjunction]:
        fresh = [one for one in dict.fromkeys(added) if one not in self.entries]
        self.entries.update(fresh)
        for disjunct in fresh:
            self._matcher.add_route(disjunct, self._target)
        gone = [one for one in dict.fromkeys(removed) if one in self.entries]
        self.entries.difference_update(gone)
        for disjunct in gone:
            self._matcher.remove_route(disjunct, self._target)
        self.bytes += sum(map(disjunct_bytes, fresh)) - sum(map(disjunct_bytes, gone))
        return Changes(fresh, gone)

    def close(self) -> None:
        self.change((), list(self.entries))


class RoutingTable(BranchTable[Conjunction, Delta, LinkInterests, CoverForest]):
    """The routing queries of all links of one broker, on every open tree."""

    def __init__(self, matcher: Matcher) -> None:
        super().__init__()
        self._matcher = matcher
        self.closed: set[str] = set()  # trees on which no message comes any more
        self._sample = MessageSample()
        self.pool = PatternPool()

    def _new_below(self, branch: Branch) -> LinkInterests:
        return LinkInterests(self._matcher, branch)

    def _new_upward(self) -> CoverForest:
        return CoverForest(pool=self.pool, sample=self._sample)

    @property
    def roots(self) -> tuple[str, ...]:
        """The trees that are open, each by its name, in order of opening."""
        return tuple(root for root in self.trees if root not in self.closed)

    def is_open(self, root: str) -> bool:
        return root in self.trees and root not in self.closed

    def close_tree(self, root: str) -> None:
        """No message comes on a tree any more.  What is known of its branches stays until it is
        certain that no other tree needs them, at this broker or at its neighbours."""
        if root in self.trees:
            self.closed.add(root)

    def forget_closed(self, is_alive: Callable[[str], bool]) -> Forgotten[Conjunction]:
        """Forget the trees that are closed, and the branches that no tree that ``is_alive`` has."""
        closed = list(self.closed)
        self.closed.clear()
        return self._forget(closed, is_alive)

    def set_budget(self, branch: str, budget: Budget) -> Delta:
        """How large the routing query of an own branch may be; returns what its parent must be
        told."""
        return self._upward[branch].set_budget(budget)

    def change_local(
        self, added: Iterable[Conjunction], removed: Iterable[Conjunction]
    ) -> dict[str, Delta]:
        return super().change_local(map(self.pool.share, added), removed)

    def change_child(
        self, branch: Branch, added: Iterable[Conjunction], removed: Iterable[Conjunction]
    ) -> dict[str, Delta]:
        return super().change_child(branch, map(self.pool.share, added), removed)

    def arrived(self, root: str, source: str, number: int) -> None:
        """A message came from the parent on a tree, the ``number``-th of its source."""
        own = self._own.get(root)
        if own is not None:
            self._upward[own.name].arrived(source, number)

    def blame(self, root: str, message: ElementStream | Readings) -> dict[str, Delta]:
        """It came for nothing: what let it pass is noted.  Per own branch, what the parent must be
        told when that leads to other generalisations."""
        own = self._own.get(root)
        delta = Delta() if own is None else self._upward[own.name].blame(message)
        return {own.name: delta} if own is not None and delta else {}

    def take_sample(self, root: str, message: ElementStream | Readings) -> list[str]:
        """A message is one of the sample; the links that it is to be sent over for that."""
        if root in self._own:
            self._sample.add(message)
        return [branch.broker for branch in self.trees.get(root, ()) if self._below[branch].entries]

    @property
    def is_working(self) -> bool:
        """Whether some routing query is still being generalised."""
        return any(forest.is_working for forest in self._upward.values())

    def work(self) -> dict[str, Delta]:
        """Go on with that, a bounded step; per own branch, what the parent must be told."""
        working = {own: forest for own, forest in self._upward.items() if forest.is_working}
        deltas = {own: forest.work() for own, forest in working.items()}
        return {own: delta for own, delta in deltas.items() if delta}

    def settle(self) -> dict[str, Delta]:
        """What the parents have to unlearn after a restart."""
        return {branch: forest.settle() for branch, forest in self._upward.items()}

    def entries(self) -> Iterator[tuple[Branch, Conjunction]]:
        """Every disjunct with the child's branch that wants it."""
        for branch, wanted in self._below.items():
            for disjunct in wanted.entries:
                yield branch, disjunct

    def wanted(self, root: str, link: str) -> Collection[Conjunction]:
        """The routing query of a link on a tree."""
        below = self.behind(root, link)
        return () if below is None else below.entries

    def is_wanted(self, root: str) -> bool:
        """Whether anybody here or behind a child link wants messages of a tree."""
        return bool(self._local) or any(
            self._below[branch].entries for branch in self.trees.get(root, ())
        )

    def wanted_on(self, branch: Branch) -> Collection[Conjunction]:
        """The routing query of a child's branch that is kept."""
        return self._below[branch].entries

    def statistics(self) -> dict[str, int]:
        """``table_bytes`` of the entries, ``told_bytes`` of what the parents keep for this broker;
        ``shared_entries``: how many more there would be, did each tree have its own."""
        entries = sum(len(below.entries) for below in self._below.values())
        of_trees = (self._below[branch] for below in self.trees.values() for branch in below)
        trees = sum(len(below.entries) for below in of_trees)
        return {
            "trees": len(self.trees),
            "branches": len(self._upward),
            "child_branches": len(self._below),
            "distinct_disjuncts": len(self.pool),
            "local_disjuncts": len(self._local),
            "entries": entries,
            "shared_entries": trees - entries,
            "table_bytes": sum(below.bytes for below in self._below.values()),
            "sampled": len(self._sample),
            **self._told_statistics(),
        }

    def dump(self) -> str:
        """The table as the paper draws it: root, link and routing query, a disjunct a line."""
        lines = []
        for root, below in self.trees.items():
            lines.append(f"tree of {root}")
            for branch in sorted(below, key=lambda branch: branch.broker):
                lines.append(f"  {branch.broker}:")
                lines += sorted(f"    {disjunct}" for disjunct in self._below[branch].entries)
        return "\n".join(lines)
