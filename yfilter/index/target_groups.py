"""TargetGroups: which queries are still worth a look, by the links that they lead to.

Queries that lead to the same set of targets are one group; what is known of a group while a
message is matched stands in a column that the run reads (section 4.3.1)::

    group_of   query -> group
    verdict    group -> -epoch   none of its links is wanted, for the rest of this message
                        stamp    one of them was wanted when the stamp was new
                        else     not known: ``is_open`` finds out

The wanted links are those of the message's tree that are not reached yet; each one reached makes a
new stamp.  So a group is looked at once for each link reached, whatever the number of its queries.

A set of targets is a number with a bit for each; so a change costs the same however many there are.
"""

from __future__ import annotations

from collections.abc import Iterator

from yfilter.engine.targets import LinkTarget
from yfilter.index.columns import grown, ints


class TargetGroups:
    """``add`` targets to queries; ``begin`` a message; then ask about groups."""

    def __init__(self) -> None:
        self.group_of = ints(64)
        self.verdict = ints(64)
        self.stamp = 0
        self.reached: list[str] = []  # in the order found
        self._groups: dict[int, int] = {0: 0}  # by the bits of their targets
        self._bits = [0]  # of each group
        self._queries = [0]  # of each group
        self._free_groups: list[int] = []
        self._bit_of: dict[LinkTarget, int] = {}
        self._targets: list[LinkTarget] = []  # by bit
        self._uses: list[int] = []  # of each target
        self._free_bits: list[int] = []
        self._trees: dict[str, int] = {}  # the bits of each tree that are in use
        self._epoch = 0
        self._wanted = 0

    # -- structure

    def add(self, query: int, target: LinkTarget) -> None:
        """A query leads to one target more."""
        bit = self._bit_of.get(target)
        if bit is None:
            bit = self._new_bit(target)
            for root in target.roots:
                self._trees[root] = self._trees.get(root, 0) | 1 << bit
        self._uses[bit] += 1
        if query >= len(self.group_of):
            self.group_of = grown(self.group_of, query + query // 2 + 8)
        self._move(query, self._bits[self.group_of[query]] | 1 << bit)

    def remove(self, query: int, target: LinkTarget) -> None:
        """Undo ``add``."""
        bit = self._bit_of[target]
        self._move(query, self._bits[self.group_of[query]] & ~(1 << bit))
        self._uses[bit] -= 1
        if not self._uses[bit]:
            del self._bit_of[target]
            self._free_bits.append(bit)
            for root in target.roots:
                self._trees[root] &= ~(1 << bit)
                if not self._trees[root]:
                    del self._trees[root]

    def names(self, query: int) -> list[str]:
        """The targets of a query, for people."""
        group = self.group_of[query] if query < len(self.group_of) else 0
        return [name for target in self._listed(self._bits[group]) for name in target.names()]

    @property
    def count(self) -> int:
        return len(self._groups) - 1

    def restart(self) -> None:
        """Epochs and stamps begin again."""
        self.verdict = ints(len(self.verdict))
        self.stamp = 0

    # -- one message

    def begin_tree(self, root: str) -> bool:
        """Look for what leads to any link of a tree; one that is reached is not wanted any more.
        Whether some query does so."""
        self._wanted = self._trees.get(root, 0)
        self.reached = []
        return self._wanted != 0

    def begin_run(self, epoch: int) -> bool:
        """Look in a reading of the message; whether any link is wanted, or still is."""
        self._epoch = epoch
        self.stamp += 1
        return self._wanted != 0

    def is_open(self, group: int) -> bool:
        """Whether one of the group's links is wanted; noted for the next who asks."""
        wanted = self._bits[group] & self._wanted != 0
        self.verdict[group] = self.stamp if wanted else -self._epoch
        return wanted

    def reach(self, query: int) -> int:
        """A query holds: the stamp from now on, or 0 when nothing is wanted any more."""
        found = self._bits[self.group_of[query]] & self._wanted
        self.reached.extend(target.link for target in self._listed(found))
        self._wanted &= ~found
        self.stamp += 1
        return self.stamp if self._wanted else 0

    # -- groups and bits

    def _listed(self, bits: int) -> Iterator[LinkTarget]:
        while bits:
            lowest = bits & -bits
            yield self._targets[lowest.bit_length() - 1]
            bits ^= lowest

    def _move(self, query: int, bits: int) -> None:
        """Another set of targets for a query."""
        before = self.group_of[query]
        group = self._groups.get(bits)
        if group is None:
            group = self._groups[bits] = self._new_group(bits)
        self._queries[group] += 1
        self.group_of[query] = group
        if before:
            self._queries[before] -= 1
            if not self._queries[before]:
                del self._groups[self._bits[before]]
                self._free_groups.append(before)

    def _new_group(self, bits: int) -> int:
        if self._free_groups:
            group = self._free_groups.pop()
            self._bits[group] = bits
        else:
            group = len(self._bits)
            self._bits.append(bits)
            self._queries.append(0)
        if group >= len(self.verdict):
            self.verdict = grown(self.verdict, 2 * group)
        self.verdict[group] = 0
        return group

    def _new_bit(self, target: LinkTarget) -> int:
        if self._free_bits:
            bit = self._free_bits.pop()
            self._targets[bit] = target
        else:
            bit = len(self._targets)
            self._targets.append(target)
            self._uses.append(0)
        self._bit_of[target] = bit
        return bit
