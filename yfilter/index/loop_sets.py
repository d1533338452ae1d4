# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""LoopSets: the looping nodes that states hold, one generation's, each set once.

A ``//`` that was passed stays with everything below it, so that half of what states hold are
looping nodes, in a tenth as many different sets.  They accept nothing and have no edges but names.
A set is a number, 0 the empty one, and a row of LOOPS_WIDTH in ``sets``::

    FIRST, COUNT   its members
    NAMES          a bit for each name edge of its members
    TIME           when it was last looked at
    CHANGED        time of a member's last change, by then
    TWIN           the same set in the generation before, or -1

``members`` are in order; ``names`` has the bits of each.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from yfilter.index.columns import grown, ints

if cython.compiled:
    from cython.cimports.yfilter.index.int_cache import IntCache
    from cython.cimports.yfilter.index.sorting import place_of
    from cython.cimports.yfilter.index.trie import Trie
else:
    from yfilter.index.int_cache import IntCache
    from yfilter.index.sorting import place_of
    from yfilter.index.trie import LOG_MASK, NODE_CHANGED, NODE_NAMES, NODE_WIDTH, Trie

if not cython.compiled:
    LOOPS_FIRST, LOOPS_COUNT, LOOPS_NAMES, LOOPS_TIME, LOOPS_CHANGED, LOOPS_TWIN = range(6)
    LOOPS_WIDTH = 8


class LoopSets:
    """``union`` makes sets; ``last_change`` brings one up to date."""

    def __init__(self, trie: Trie, bytes_max: int, older: LoopSets | None) -> None:
        bits_max = max(6, (bytes_max // 64).bit_length() - 1)
        self.trie = trie
        self.older = older
        self.sets = ints(max(bytes_max // 4, 64))
        self.members = ints(max(bytes_max // 4, 64))
        self.names = ints(max(bytes_max // 4, 64))
        self._numbers = IntCache(min(8, bits_max), bits_max)
        self._merged = ints(256)
        self._merged_names = ints(256)
        self._bound = 1
        self._used = 0

    def union(
        self, loops: cython.int, nodes: cython.int[::1], first: cython.int, count: cython.int
    ) -> cython.int:
        """The set with some nodes more, which stand in order from ``first`` on."""
        # PERF: what is known of the set is taken from it; of its nodes each is a cache miss.
        merged: cython.int = 0
        node: cython.int
        i: cython.int = self.sets[LOOPS_WIDTH * loops + LOOPS_FIRST]
        end: cython.int = i + self.sets[LOOPS_WIDTH * loops + LOOPS_COUNT]
        last: cython.int = first + count
        change: cython.int
        if count == 0:
            return loops
        change = self.last_change(loops)
        if count + end - i > len(self._merged):
            self._merged = ints(2 * (count + end - i))
            self._merged_names = ints(2 * (count + end - i))
        while i < end or first < last:
            if first == last or (i < end and self.members[i] < nodes[first]):
                self._merged[merged] = self.members[i]
                self._merged_names[merged] = self.names[i]
                i += 1
            else:
                if i < end and self.members[i] == nodes[first]:
                    i += 1
                node = nodes[first]
                self._merged[merged] = node
                self._merged_names[merged] = self.trie.nodes[NODE_WIDTH * node + NODE_NAMES]
                change = max(change, self.trie.nodes[NODE_WIDTH * node + NODE_CHANGED])
                first += 1
            merged += 1
        if merged == self.sets[LOOPS_WIDTH * loops + LOOPS_COUNT]:
            return loops
        return self._intern(merged, change)

    def carry(self, older: LoopSets, loops: cython.int) -> cython.int:
        """The same set as one of the generation before."""
        return self.union(
            0,
            older.members,
            older.sets[LOOPS_WIDTH * loops + LOOPS_FIRST],
            older.sets[LOOPS_WIDTH * loops + LOOPS_COUNT],
        )

    def last_change(self, loops: cython.int) -> cython.int:
        """The time of the last change of a member; what is known of them is right from now on."""
        trie: Trie = self.trie
        row: cython.int = LOOPS_WIDTH * loops
        change: cython.int = self.sets[row + LOOPS_TIME] + 1
        place: cython.int
        if trie.clock - change >= 8:
            place = self.sets[row + LOOPS_FIRST] + self.sets[row + LOOPS_COUNT]
            if (
                trie.next_changed(self.members, self.sets[row + LOOPS_FIRST], place, change - 1)
                < place
            ):
                self._derive(loops)
        else:
            while change <= trie.clock:
                place = trie.log_node[change & LOG_MASK]
                place = place_of(
                    self.members, self.sets[row + LOOPS_FIRST], self.sets[row + LOOPS_COUNT], place
                )
                if place >= 0:
                    self.names[place] = trie.nodes[NODE_WIDTH * self.members[place] + NODE_NAMES]
                    self.sets[row + LOOPS_NAMES] |= self.names[place]
                    self.sets[row + LOOPS_CHANGED] = change
                change += 1
        self.sets[row + LOOPS_TIME] = trie.clock
        return self.sets[row + LOOPS_CHANGED]

    def used_bytes(self) -> cython.longlong:
        total: cython.longlong = 8 * self._used + 32 * self._bound
        return total + self._numbers.size_bytes()

    def _intern(self, count: cython.int, change: cython.int) -> cython.int:
        """The set of the nodes in ``_merged``, the last of which changed then."""
        i: cython.int
        bits: cython.int = 0
        key: cython.longlong = hash_of(count, self._merged, count)
        loops: cython.int = self._find(self._merged, count, key)
        if loops:
            self.last_change(loops)
            return loops
        loops = self._bound
        self._bound = loops + 1
        if LOOPS_WIDTH * (loops + 1) > len(self.sets):
            self.sets = grown(self.sets, 2 * len(self.sets))
        if self._used + count > len(self.members):
            self.members = grown(self.members, 2 * (self._used + count))
            self.names = grown(self.names, 2 * (self._used + count))
        self.sets[LOOPS_WIDTH * loops + LOOPS_FIRST] = self._used
        self.sets[LOOPS_WIDTH * loops + LOOPS_COUNT] = count
        self.sets[LOOPS_WIDTH * loops + LOOPS_TIME] = self.trie.clock
        self.sets[LOOPS_WIDTH * loops + LOOPS_TWIN] = -1
        if self.older is not None:
            self.sets[LOOPS_WIDTH * loops + LOOPS_TWIN] = (
                self.older._find(self._merged, count, key) or -1
            )
        for i in range(count):
            bits |= self._merged_names[i]
            self.members[self._used + i] = self._merged[i]
            self.names[self._used + i] = self._merged_names[i]
        self.sets[LOOPS_WIDTH * loops + LOOPS_NAMES] = bits
        self.sets[LOOPS_WIDTH * loops + LOOPS_CHANGED] = change
        self._used += count
        self._numbers.put(key, loops)
        return loops

    def _find(self, nodes: cython.int[::1], count: cython.int, key: cython.longlong) -> cython.int:
        i: cython.int = 0
        loops: cython.int = self._numbers.recall(key)
        if loops < 0 or self.sets[LOOPS_WIDTH * loops + LOOPS_COUNT] != count:
            return 0
        while (
            i < count and self.members[self.sets[LOOPS_WIDTH * loops + LOOPS_FIRST] + i] == nodes[i]
        ):
            i += 1
        return loops if i == count else 0

    def _derive(self, loops: cython.int) -> cython.int:
        i: cython.int
        node: cython.int
        row: cython.int = LOOPS_WIDTH * loops
        bits: cython.int = 0
        last: cython.int = 0
        for i in range(
            self.sets[row + LOOPS_FIRST],
            self.sets[row + LOOPS_FIRST] + self.sets[row + LOOPS_COUNT],
        ):
            node = self.members[i]
            self.names[i] = self.trie.nodes[NODE_WIDTH * node + NODE_NAMES]
            bits |= self.names[i]
            last = max(last, self.trie.nodes[NODE_WIDTH * node + NODE_CHANGED])
        self.sets[row + LOOPS_NAMES] = bits
        self.sets[row + LOOPS_CHANGED] = last
        return 0


def hash_of(start: cython.int, nodes: cython.int[::1], count: cython.int) -> cython.longlong:
    """A number above 0 for the first nodes of a column, and one more."""
    # PERF: a sum, whose products do not wait for each other.
    i: cython.int
    key: cython.longlong
    mask: cython.ulonglong = 0x7FFFFFFFFFFFFFFF
    prime: cython.ulonglong = 0x7F51AFD7ED558CCD
    mixed: cython.ulonglong = start
    product: cython.ulonglong
    mixed = (mixed * 0x1E3779B97F4A7C15) & mask
    for i in range(count):
        product = nodes[i] + 1
        product = (product * prime) & mask
        mixed = (mixed + (product ^ (product >> 31))) & mask
    key = mixed | 1
    return key
