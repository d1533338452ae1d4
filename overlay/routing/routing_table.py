"""The routing table: who wants what, per broadcast tree (section 4.2.1 of the paper).

Conceptually a table of (routing query, output link) pairs for each root broker.  A routing query
is a set of disjuncts (``Conjunction``: absolute linear paths joined by *and*).  The table does not
evaluate anything: the disjuncts of all links live in the broker's one Matcher, annotated with
their link, which is the paper's Collect().

::

    profiles here ──Map()──┐
                           ├──Aggregate()──> disjuncts this broker stands for ──> parent
    child links ─Collect()─┘                 on the tree, as deltas

Invariant: what the parent has been told is exactly local ∪ every child's disjuncts, per tree.  A
disjunct is sent up when its first taker appears and withdrawn when the last one goes, so equal
interests cost one entry on each link however many users share them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from yfilter.engine.linear_paths import Conjunction
from yfilter.matcher import LinkTarget, Matcher


@dataclass(frozen=True, slots=True)
class Delta:
    """A change of a routing query: disjuncts that come and disjuncts that go."""

    added: tuple[Conjunction, ...] = ()
    removed: tuple[Conjunction, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


_MakeDelta: TypeAlias = Callable[[tuple[Conjunction, ...]], Delta]


@dataclass(slots=True)
class _Tree:
    """One broadcast tree as this broker sees it."""

    wanted: dict[str, set[Conjunction]] = field(default_factory=dict)  # child link -> disjuncts
    takers: Counter[Conjunction] = field(default_factory=Counter)  # child links per disjunct


class RoutingTable:
    """The routing queries of all links of one broker, on every open tree."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._trees: dict[str, _Tree] = {}
        self._local: Counter[Conjunction] = Counter()  # disjunct -> profiles here

    @property
    def roots(self) -> tuple[str, ...]:
        """The root brokers whose trees are open, in order of opening."""
        return tuple(self._trees)

    def open_tree(self, root: str) -> Delta:
        """Start a tree; returns what the parent must be told (Aggregate of the local profiles)."""
        if root in self._trees:
            return Delta()
        self._trees[root] = _Tree()
        return Delta(added=tuple(self._local))

    def add_local(self, disjuncts: Iterable[Conjunction]) -> dict[str, Delta]:
        """A profile of this broker is added; per tree, what the parent must be told."""
        fresh = []
        for disjunct in dict.fromkeys(disjuncts):
            self._local[disjunct] += 1
            if self._local[disjunct] == 1:
                fresh.append(disjunct)
        return self._per_tree(fresh, lambda changed: Delta(added=changed))

    def remove_local(self, disjuncts: Iterable[Conjunction]) -> dict[str, Delta]:
        """The opposite of add_local, with the same disjuncts."""
        gone = []
        for disjunct in dict.fromkeys(disjuncts):
            self._local[disjunct] -= 1
            if not self._local[disjunct]:
                del self._local[disjunct]
                gone.append(disjunct)
        return self._per_tree(gone, lambda changed: Delta(removed=changed))

    def change_child(self, root: str, link: str, delta: Delta) -> Delta:
        """A child's routing query changes; returns what the parent must be told.

        Adding what is there and removing what is not are ignored, so that a delta may be applied
        again after a restart.
        """
        tree = self._trees[root]
        wanted = tree.wanted.setdefault(link, set())
        target = LinkTarget(root, link)
        added: list[Conjunction] = []
        removed: list[Conjunction] = []
        for disjunct in delta.added:
            if disjunct in wanted:
                continue
            wanted.add(disjunct)
            self._matcher.add_route(disjunct, target)
            tree.takers[disjunct] += 1
            if tree.takers[disjunct] == 1 and disjunct not in self._local:
                added.append(disjunct)
        for disjunct in delta.removed:
            if disjunct not in wanted:
                continue
            wanted.remove(disjunct)
            self._matcher.remove_route(disjunct, target)
            tree.takers[disjunct] -= 1
            if not tree.takers[disjunct]:
                del tree.takers[disjunct]
                if disjunct not in self._local:
                    removed.append(disjunct)
        return Delta(tuple(added), tuple(removed))

    def entries(self) -> Iterator[tuple[str, str, Conjunction]]:
        """(root, link, disjunct) of every entry."""
        for root, tree in self._trees.items():
            for link, wanted in tree.wanted.items():
                for disjunct in wanted:
                    yield root, link, disjunct

    def is_wanted(self, root: str) -> bool:
        """Whether anybody here or behind a child link wants messages of a tree."""
        tree = self._trees.get(root)
        return bool(self._local) or (tree is not None and bool(tree.takers))

    def aggregate(self, root: str) -> set[Conjunction]:
        """All that this broker stands for on a tree; what its parent has been told."""
        return set(self._local) | set(self._trees[root].takers)

    def statistics(self) -> dict[str, int]:
        return {
            "trees": len(self._trees),
            "local_disjuncts": len(self._local),
            "entries": sum(1 for _ in self.entries()),
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

    def _per_tree(self, changed: list[Conjunction], make: _MakeDelta) -> dict[str, Delta]:
        """For each tree the part of a local change that its children do not already cover."""
        deltas = {}
        for root, tree in self._trees.items():
            uncovered = tuple(disjunct for disjunct in changed if disjunct not in tree.takers)
            if uncovered:
                deltas[root] = make(uncovered)
        return deltas


def texts(disjuncts: Iterable[Conjunction]) -> list[str]:
    """Disjuncts as they travel between brokers."""
    return [str(disjunct) for disjunct in disjuncts]


def parse_delta(added: Iterable[str], removed: Iterable[str]) -> Delta:
    """What ``texts`` made of a delta; ProfileRefused when it is not one."""
    return Delta(
        tuple(Conjunction.parse(text) for text in added),
        tuple(Conjunction.parse(text) for text in removed),
    )
