"""BranchTable: what is wanted behind the links of a broker, told from child to parent.

::

    profiles here ──Map()──┐
                           ├──Aggregate()──> what this broker stands for ──> parent, as deltas
    child links ─Collect()─┘

What trees have in common is there once (``branches.py``): what a child wants for each of its
branches, and what this broker tells for each branch of its own.  So neither memory nor messages
grow with the number of root brokers, but with that of different branches.

What is wanted, the *entries*, is said by two classes that a table is made of: one keeps what a
child's branch wants and shows it to whoever acts on it (``Below``), one decides what of all entries
the parent must know: what covers what, and what gives way within a budget (``Upward``).  Interests
are one such table (``routing_table.py``), needs another (``overlay/transformation``).

Invariant: what the parent has been told stands for local ∪ every child's entries, per branch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from overlay.routing.branches import Branch

Entry = TypeVar("Entry", bound=Hashable)
News = TypeVar("News")
News_co = TypeVar("News_co", covariant=True)


class Changes(NamedTuple, Generic[Entry]):
    """Entries that come and entries that go."""

    added: Collection[Entry]
    removed: Collection[Entry]


class Below(Protocol[Entry]):
    """What a child's branch wants."""

    @property
    def entries(self) -> Collection[Entry]: ...
    def change(self, added: Iterable[Entry], removed: Iterable[Entry]) -> Changes[Entry]:
        """Gives what was news: adding what is there and removing what is not are ignored."""

    def close(self) -> None:
        """The branch is gone."""


class Upward(Protocol[Entry, News_co]):
    """What is told about an own branch."""

    @property
    def told(self) -> Iterator[Entry]: ...
    def change(self, added: Iterable[Entry], removed: Iterable[Entry]) -> News_co:
        """One taker more for each of ``added``, one less for each of ``removed``."""

    def restore(self, told: Entry) -> None:
        """What the parent knew before a restart; to be called before anything else is there."""

    def report(self, said: Any) -> None:
        """Add its figures to the statistics of its table."""


class Forgotten(NamedTuple, Generic[Entry]):
    """What a table has no more: ``trees``, what the parents knew by own branch, and what the
    children wanted."""

    trees: Collection[str]
    told: Mapping[str, Collection[Entry]]
    wanted: Mapping[Branch, Collection[Entry]]


AnyBelow = TypeVar("AnyBelow", bound=Below)  # type: ignore[type-arg]  # of the entries
AnyUpward = TypeVar("AnyUpward", bound=Upward)  # type: ignore[type-arg]


class BranchTable(ABC, Generic[Entry, News, AnyBelow, AnyUpward]):
    """Of one kind of entries; ``News`` is what an Upward gives of a change."""

    def __init__(self) -> None:
        self.trees: dict[str, tuple[Branch, ...]] = {}  # root -> the children's branches
        self._own: dict[str, Branch] = {}  # root -> own branch; none where this is the root
        self._below: dict[Branch, AnyBelow] = {}  # a child's branch
        self._upward: dict[str, AnyUpward] = {}  # own branch -> what its parent knows
        self._branches: dict[str, Branch] = {}  # those, by name
        self._local: Counter[Entry] = Counter()  # entry -> profiles here

    @abstractmethod
    def _new_below(self, branch: Branch) -> AnyBelow: ...

    @abstractmethod
    def _new_upward(self) -> AnyUpward: ...

    # --- trees

    def open_tree(self, root: str, own: Branch | None, below: Iterable[Branch]) -> dict[str, News]:
        """Start a tree; per own branch, what the parent must be told.

        ``own``: this broker's branch on it, None at the root broker, which has nobody to tell;
        ``below``: its children's.  There is nothing to tell where another tree has the branch.
        """
        if root in self.trees:
            return {}
        self.trees[root] = tuple(below)
        for branch in self.trees[root]:
            self.keep_child(branch)
        if own is None:
            return {}
        self._own[root] = own
        return self.keep_own(own)

    def keep_own(self, own: Branch) -> dict[str, News]:
        """The parent is told of a branch, also while no tree of it is open, as after a restart."""
        if own.name in self._upward:
            return {}
        upward = self._upward[own.name] = self._new_upward()
        self._branches[own.name] = own
        # All trees of an own branch have the same branches below.
        below = (one.entries for branch, one in self._below.items() if own.name in branch.roots)
        return self._worth_telling({own.name: upward.change(chain(self._local, *below), ())})

    def keep_child(self, branch: Branch) -> None:
        """A child wants something, also while no tree of its branch is open."""
        if branch not in self._below:
            below = self._below[branch] = self._new_below(branch)
            self._change(self.carriers(branch), below.entries, ())

    def _forget(self, trees: Collection[str], is_alive: Callable[[str], bool]) -> Forgotten[Entry]:
        """Forget trees, and the branches that no tree that ``is_alive`` has."""
        for root in trees:
            del self.trees[root]
            self._own.pop(root, None)
        told, wanted = {}, {}
        for own in [b for b in self._branches.values() if not any(map(is_alive, b.roots))]:
            del self._branches[own.name]
            told[own.name] = list(self._upward.pop(own.name).told)
        for branch in [b for b in self._below if not any(map(is_alive, b.roots))]:
            below = self._below.pop(branch)
            wanted[branch] = list(below.entries)
            below.close()
        return Forgotten(trees, told, wanted)

    # --- changes

    def change_local(self, added: Iterable[Entry], removed: Iterable[Entry]) -> dict[str, News]:
        """A profile of this broker comes (its entries), goes, or changes; per own branch, what
        the parent must be told."""
        fresh, gone = [], []
        for entry in dict.fromkeys(added):
            self._local[entry] += 1
            if self._local[entry] == 1:
                fresh.append(entry)
        for entry in dict.fromkeys(removed):
            self._local[entry] -= 1
            if not self._local[entry]:
                del self._local[entry]
                gone.append(entry)
        return self._change(self._upward, fresh, gone)

    def change_child(
        self, branch: Branch, added: Iterable[Entry], removed: Iterable[Entry]
    ) -> dict[str, News]:
        """A child wants something else; per own branch, what the parent must be told.

        KeyError when no open tree has the branch.  Adding what is there and removing what is not
        are ignored, so that a delta may be applied again after a restart.
        """
        news = self._below[branch].change(added, removed)
        return self._change(self.carriers(branch), news.added, news.removed)

    def restore_told(self, own: str, entry: Entry) -> None:
        """What the parent knew before a restart; to be called before anything else is there."""
        self._upward[own].restore(entry)

    def _change(
        self, branches: Iterable[str], added: Collection[Entry], removed: Collection[Entry]
    ) -> dict[str, News]:
        if not added and not removed:
            return {}
        return self._worth_telling(
            {own: self._upward[own].change(added, removed) for own in branches}
        )

    @staticmethod
    def _worth_telling(news: Mapping[str, News]) -> dict[str, News]:
        return {own: one for own, one in news.items() if one}

    # --- questions

    @property
    def own_branches(self) -> tuple[str, ...]:
        return tuple(self._upward)

    def carriers(self, branch: Branch) -> list[str]:
        """The own branches that a child's branch is in."""
        return [own for own in self._upward if own in branch.roots]

    def behind(self, root: str, link: str) -> AnyBelow | None:
        """What is wanted behind a link on a tree; None where the tree does not have it."""
        for branch in self.trees.get(root, ()):
            if branch.broker == link:
                return self._below[branch]
        return None

    def aggregate(self, root: str) -> set[Entry]:
        """All that this broker stands for on a tree; its parent has been told what covers it."""
        return set(self._local).union(*(self._below[one].entries for one in self.trees[root]))

    def told(self, root: str) -> set[Entry]:
        """What the parent on a tree knows; nothing at the root broker."""
        own = self._own.get(root)
        return set() if own is None else self.told_about(own.name)

    def told_about(self, own: str) -> set[Entry]:
        """What the parent of an own branch knows."""
        return set(self._upward[own].told)

    def report(self, said: Any) -> None:
        """Add the figures of all own branches."""
        for upward in self._upward.values():
            upward.report(said)
