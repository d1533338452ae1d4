"""NeedsTable: what every link is sent of a message (section 4.2.2).

::

    profiles here ──needs──┐
                           ├──NeedSet──> what this broker's branch needs ──> parent
    child links ───needs───┘                        as deltas
          └──> the matcher, which cuts the messages of all links (yfilter/projection)

How needs are told is that of every BranchTable (overlay/routing/branch_table.py).

Invariant: what the parent has been told keeps all that the needs of local profiles and of every
child keep, per branch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from overlay.routing.branch_table import BranchTable, Changes, Forgotten
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

    __slots__ = ("_entries", "_target", "_transformer")

    def __init__(self, transformer: LinkTransformer, branch: Branch) -> None:
        self._transformer = transformer
        self._target = LinkTarget(branch.name, branch.broker, branch.roots)
        self._entries: dict[Need, None] = {EVERYTHING: None}
        transformer.add_need(EVERYTHING, self._target)

    @property
    def entries(self) -> Collection[Need]:
        return self._entries

    def change(self, added: Iterable[Need], removed: Iterable[Need]) -> Changes[Need]:
        fresh = [need for need in dict.fromkeys(added) if need not in self._entries]
        self._entries.update(dict.fromkeys(fresh))
        for need in fresh:
            self._transformer.add_need(need, self._target)
        gone = [need for need in dict.fromkeys(removed) if need in self._entries]
        for need in gone:
            del self._entries[need]
            self._transformer.remove_need(need, self._target)
        return Changes(fresh, gone)

    def close(self) -> None:
        self._transformer.close_needs(self._target)


class NeedsTable(BranchTable[Need, None, LinkNeeds, NeedSet]):
    """The needs of all links of one broker, on every open tree, and of its profiles.

    What the parents must be told is not given with each change, but by ``take``.
    """

    def __init__(self, transformer: LinkTransformer, bytes_max: int) -> None:
        """``bytes_max``: of what is told about one own branch."""
        super().__init__()
        self._transformer = transformer
        self._bytes_max = bytes_max

    def _new_below(self, branch: Branch) -> LinkNeeds:
        return LinkNeeds(self._transformer, branch)

    def _new_upward(self) -> NeedSet:
        return NeedSet(self._bytes_max)

    @property
    def is_changed(self) -> bool:
        """Since ``take``."""
        return any(needs.is_changed for needs in self._upward.values())

    def forget_dead(self, is_alive: Callable[[str], bool]) -> Forgotten[Need]:
        """Forget the trees that are not alive, and the branches of which no tree is."""
        return self._forget([root for root in self.trees if not is_alive(root)], is_alive)

    def take(self) -> dict[str, NeedDelta]:
        """By own branch, what the parents must be told since the last time."""
        news = {own: needs.take() for own, needs in self._upward.items()}
        return {own: delta for own, delta in news.items() if delta}

    def statistics(self) -> dict[str, int]:
        return {
            "local_needs": len(self._local),
            "link_needs": sum(len(link.entries) for link in self._below.values()),
            **self._told_statistics(),
        }
