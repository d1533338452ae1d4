"""CoverIndex: among very many disjuncts, those that cover a given one, and those it covers.

Comparing all pairs is out of the question, so disjuncts are filed by what containment cannot do
without.  An equality with a text is implied by the same equality only; so a disjunct that has some
is filed under its rarest, and found where that is given::

    @x = "v" ── disjuncts to compare, each with a mask of the names that it asks for

The others are at the ends of a trie of chains, anchors in order, conditions left out::

    ──(at least 1) b ──(exactly 1) c ──┬ trailing 0: disjuncts
         │                             └ trailing 1: ...
         └──(exactly 2) *[..] ──...

*Covering* walks the trie along the given chains, taking an edge wherever containment could lay its
anchor.  *Covered* by a disjunct without equalities lays its chain onto a trie of all paths; a
subtree in which one of its names does not occur is not entered.  ``covers`` decides about what was
found.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeAlias, TypeVar

from yfilter.engine.containment import Chain, EqualityKey, Pattern, covers
from yfilter.language.query_ast import ANY, NameTest

_Item = TypeVar("_Item", bound=Pattern)
# With the mask of the names that each asks for.
_Bucket: TypeAlias = dict[_Item, int]
_Gap: TypeAlias = tuple[int, bool]

# Names that share a bit of a subtree's mask are told apart further down.
_MASK_BITS = 512
_NOTHING: dict[Any, int] = {}


class _Node(Generic[_Item]):
    """``names``: a mask of the names that occurred below this node; ``filed``: how many disjuncts
    are filed at the ends here and below."""

    __slots__ = ("edges", "ends", "filed", "names")

    def __init__(self) -> None:
        self.edges: dict[NameTest, dict[_Gap, _Node[_Item]]] = {}
        self.ends: dict[int, _End[_Item]] = {}  # by trailing levels
        self.names = 0
        self.filed = 0


class _End(Generic[_Item]):
    """The disjuncts with a path that ends here; ``filed``: those to be found from here when they
    cover something."""

    __slots__ = ("every", "filed")

    def __init__(self) -> None:
        self.filed: dict[_Item, None] = {}
        self.every: dict[_Item, None] = {}


class CoverIndex(Generic[_Item]):
    """A set of patterns."""

    def __init__(self) -> None:
        self._root: _Node[_Item] = _Node()
        self._filed_as: dict[_Item, tuple[Chain, EqualityKey | None]] = {}
        self._filed: dict[EqualityKey, _Bucket[_Item]] = {}
        self._every: dict[EqualityKey, _Bucket[_Item]] = {}
        self._bits: dict[str, int] = {}
        self._compared = 0

    def __len__(self) -> int:
        return len(self._filed_as)

    def __contains__(self, pattern: _Item) -> bool:
        return pattern in self._filed_as

    def __iter__(self) -> Iterator[_Item]:
        return iter(self._filed_as)

    def add(self, pattern: _Item) -> None:
        """ValueError if it is there already."""
        if pattern in self._filed_as:
            raise ValueError(f"in the index already: {pattern.disjunct}")
        chain, key = self._filed_as[pattern] = self._choose(pattern)
        mask = self._names(pattern)
        if key is None:
            self._end(chain, filed=1).filed[pattern] = None
        else:
            self._filed.setdefault(key, {})[pattern] = mask
        for each in pattern.chains:
            self._end(each).every[pattern] = None
            self._note_names(each)
            for posted in each.keys:
                self._every.setdefault(posted, {})[pattern] = mask

    def remove(self, pattern: _Item) -> None:
        """KeyError if it is not there."""
        chain, key = self._filed_as.pop(pattern)
        if key is None:
            del self._end(chain, filed=-1).filed[pattern]
        else:
            _take_out(self._filed, key, pattern)
        for each in pattern.chains:
            # Two paths of a disjunct may end in one place, or ask for the same equality.
            self._end(each).every.pop(pattern, None)
            for posted in each.keys:
                _take_out(self._every, posted, pattern)
        for each in pattern.chains:
            self._prune(each)

    def covering(self, pattern: _Item) -> Iterator[_Item]:
        """Those that cover ``pattern``, itself left out, each once."""
        names = self._names(pattern)
        for chain in pattern.chains:
            for key in chain.keys:
                for found, mask in self._filed.get(key, _NOTHING).items():
                    if (
                        found.keys <= pattern.keys
                        and not mask & ~names
                        and self._covers(found, pattern)
                    ):
                        yield found
        seen: set[_End[_Item]] = set()
        for chain in pattern.chains:
            for end in self._ends_above(chain):
                if end in seen:
                    continue
                seen.add(end)
                for found in end.filed:
                    if self._covers(found, pattern):
                        yield found

    def covered(self, pattern: _Item) -> list[_Item]:
        """Those that ``pattern`` covers, itself left out."""
        chain, key = self._choose(pattern)
        names = self._names(pattern)
        candidates: dict[_Item, None] = {}
        if key is not None:
            bucket = self._every.get(key, _NOTHING)
            candidates.update(
                (found, None)
                for found, mask in bucket.items()
                if pattern.keys <= found.keys and not names & ~mask
            )
        else:
            for end in self._ends_below(chain):
                candidates.update(end.every)
        return [found for found in candidates if self._covers(pattern, found)]

    def statistics(self) -> dict[str, int]:
        return {"patterns": len(self), "keys": len(self._every), "compared": self._compared}

    def _covers(self, general: _Item, special: _Item) -> bool:
        self._compared += 1
        return general is not special and covers(general, special)

    def _choose(self, pattern: Pattern) -> tuple[Chain, EqualityKey | None]:
        """The path and its equality that fewest share; the longest path if none has one."""
        keyed = [(chain, key) for chain in pattern.chains for key in chain.keys]
        if keyed:
            return min(keyed, key=lambda place: len(self._every.get(place[1], _NOTHING)))
        return max(pattern.chains, key=lambda chain: len(chain.anchors)), None

    def _names(self, pattern: Pattern) -> int:
        mask = 0
        for chain in pattern.chains:
            mask |= self._masks(chain)[0]
        return mask

    # --- the trie -----------------------------------------------------------------------------

    def _end(self, chain: Chain, filed: int = 0) -> _End[_Item]:
        """The end of a chain, made if it is not there, when so many more are filed at it."""
        node = self._root
        node.filed += filed
        for anchor in chain.anchors:
            below = node.edges.setdefault(anchor.test, {})
            place = (anchor.gap, anchor.is_open)
            node = below[place] if place in below else below.setdefault(place, _Node())
            node.filed += filed
        end = node.ends.get(chain.trailing)
        return node.ends.setdefault(chain.trailing, _End()) if end is None else end

    def _note_names(self, chain: Chain) -> None:
        node = self._root
        for mask, anchor in zip(self._masks(chain), chain.anchors, strict=False):
            node.names |= mask
            node = node.edges[anchor.test][anchor.gap, anchor.is_open]

    def _prune(self, chain: Chain) -> None:
        """Take away what an empty end leaves behind."""
        way: list[tuple[_Node[_Item], NameTest, _Gap]] = []
        node = self._root
        for anchor in chain.anchors:
            gap = (anchor.gap, anchor.is_open)
            if gap not in node.edges.get(anchor.test, ()):
                return  # another path of the same disjunct ended here, and is done
            way.append((node, anchor.test, gap))
            node = node.edges[anchor.test][gap]
        end = node.ends.get(chain.trailing)
        if end is not None and not end.every:
            del node.ends[chain.trailing]
        while way and not node.ends and not node.edges:
            node, test, gap = way.pop()
            del node.edges[test][gap]
            if not node.edges[test]:
                del node.edges[test]

    def _ends_above(self, chain: Chain) -> Iterator[_End[_Item]]:
        """The ends at which something is filed, of all chains that could cover ``chain``, but for
        their conditions."""
        if not self._root.filed:
            return
        start = (self._root, -1)
        pending = [start]
        visited = {start}
        given: dict[_End[_Item], None] = {}
        while pending:
            node, at = pending.pop()
            room = chain.levels_below(at)
            for trailing, end in node.ends.items():
                if trailing <= room and end.filed and end not in given:
                    given[end] = None
                    yield end
            for lower in range(at + 1, len(chain.anchors)):
                for test in chain.anchors[lower].accepting:
                    for gap, below in node.edges.get(test, {}).items():
                        place = (below, lower)
                        if below.filed and place not in visited and chain.fits(*gap, at, lower):
                            visited.add(place)
                            pending.append(place)

    def _ends_below(self, chain: Chain) -> Iterator[_End[_Item]]:
        """The ends of all chains that ``chain`` could cover, but for their conditions."""
        needed = self._masks(chain)
        start: tuple[_Laid, ...] = (_Laid(0, 0, 0),)
        pending = [(self._root, 0, 0, start)]
        while pending:
            node, depth, opened, laid = pending.pop()
            levels = [depth - state.depth for state in laid if state.count == len(chain.anchors)]
            for trailing, end in node.ends.items():
                if any(below + trailing >= chain.trailing for below in levels):
                    yield end
            for test, gaps in node.edges.items():
                for (gap, is_open), below in gaps.items():
                    place = _Laid(0, depth + gap, opened + is_open)
                    kept = tuple(
                        state
                        for state in _lay(chain, laid, test, place)
                        if not needed[state.count] & ~below.names
                    )
                    if kept:
                        pending.append((below, place.depth, place.opened, kept))

    def _masks(self, chain: Chain) -> list[int]:
        """One bit for each local name that is asked for: by all anchors, by all but the first, and
        so on to none."""
        masks = [0]
        for anchor in reversed(chain.anchors):
            local = anchor.test.local
            if local == ANY:
                masks.append(masks[-1])
            else:
                bit = self._bits.setdefault(local, len(self._bits) % _MASK_BITS)
                masks.append(masks[-1] | 1 << bit)
        masks.reverse()
        return masks


class _Laid:
    """The first ``count`` anchors of a chain are laid, the last at this depth of the trie."""

    __slots__ = ("count", "depth", "opened")

    def __init__(self, count: int, depth: int, opened: int) -> None:
        self.count = count
        self.depth = depth
        self.opened = opened


def _lay(chain: Chain, laid: tuple[_Laid, ...], test: NameTest, place: _Laid) -> list[_Laid]:
    """What is laid when the trie goes on with an edge: as it was, and with it one anchor more."""
    after = list(laid)
    for state in laid:
        if state.count == len(chain.anchors):
            continue
        anchor = chain.anchors[state.count]
        levels = place.depth - state.depth
        near = levels >= anchor.gap if anchor.is_open else levels == anchor.gap
        if (
            near
            and (anchor.is_open or place.opened == state.opened)
            and anchor.test.namespace in (ANY, test.namespace)
            and anchor.test.local in (ANY, test.local)
        ):
            after.append(_Laid(state.count + 1, place.depth, place.opened))
    return after


def _take_out(buckets: dict[EqualityKey, _Bucket[_Item]], key: EqualityKey, pattern: _Item) -> None:
    bucket = buckets.get(key)
    if bucket is not None:
        bucket.pop(pattern, None)
        if not bucket:
            del buckets[key]
