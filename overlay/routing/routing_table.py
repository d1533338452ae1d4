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

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeAlias, TypeVar
from weakref import WeakValueDictionary

from formats import ElementStream
from overlay.routing.branch_table import BranchTable, Changes, Forgotten
from overlay.routing.branches import Branch
from overlay.routing.delta import Delta, DeltaSum
from overlay.routing.generalisation import UNBOUNDED, Budget, disjunct_bytes, generalise
from overlay.routing.message_sample import MessageSample
from overlay.statistics import RoutingTableFigures
from yfilter.engine.containment import Chain, EqualityKey, Pattern, covers
from yfilter.engine.linear_paths import ANY_MESSAGE, Conjunction
from yfilter.engine.readings import Reading, Readings
from yfilter.engine.routing_templates import read_conjunction
from yfilter.errors import MatchLimitExceeded
from yfilter.language.profile_limits import MatchLimits
from yfilter.language.query_ast import ANY, NameTest
from yfilter.matcher import LinkTarget, Matcher

# -------------------------------------------------------------------------------------------------
# PatternPool: each disjunct of a broker is there once, however many trees and links have it.
#
# The same interests come up every tree whose root has a source.  What is large about a disjunct,
# its syntax tree and what containment needs of it, is shared by all of them; what is not parsed
# again costs no time either.  A disjunct that nobody holds any more is gone from the pool.


class PatternPool:
    """Disjuncts and their patterns, by text."""

    def __init__(self) -> None:
        self._disjuncts: WeakValueDictionary[str, Conjunction] = WeakValueDictionary()
        self._patterns: WeakValueDictionary[str, Pattern] = WeakValueDictionary()

    def parse(self, text: str) -> Conjunction:
        """As ``Conjunction.parse``."""
        known = self._disjuncts.get(text)
        if known is None:
            known = self._disjuncts[text] = read_conjunction(text)
        return known

    def share(self, disjunct: Conjunction) -> Conjunction:
        """The one that is in the pool; from now on this one if there was none."""
        return self._disjuncts.setdefault(disjunct.text, disjunct)

    def pattern(self, disjunct: Conjunction) -> Pattern:
        known = self._patterns.get(disjunct.text)
        if known is None:
            known = self._patterns[disjunct.text] = Pattern(self.share(disjunct))
        return known

    def __len__(self) -> int:
        return len(self._disjuncts)


# -------------------------------------------------------------------------------------------------


# -------------------------------------------------------------------------------------------------
# CoverForest: the interests of a broker on one tree, and which of them its parent must know.
#
# Interests stand in a forest: each below one that covers it.  What is told to the parent are the
# tops, of which none covers another::
#
#     //part                    told
#     ├── /m/part               not told: //part covers it
#     │   └── /m/part[@a = "1"]
#     └── //part[@b]
#     /m[@c = "1"]              told
#
# Adding is looking for a top that covers the new interest; if there is none it becomes a top, and
# the tops that it covers go below it.  Removing is exact: what stood below a top that goes is
# looked for a place again, and what nothing else covers is told once more.
#
# With a budget the tops are kept within it: generalisations, wider disjuncts that nobody asked for,
# stand as tops over what they take the place of (generalisation.py).  One with fewer than two below
# it goes again; when much of the budget is free, so do others; and so does one that lets more pass
# for nothing than was thought (routing_table.py).  So a generalisation costs crossings and never a
# message, and what it hid comes back when there is room.
#
# Generalising a large forest takes a while, so it is done in bounded steps: one with each change,
# and more whenever ``work`` is called while the forest ``is_working``; it is beyond its budget
# until that is done.
#
# Invariants: every interest is told or below one that covers it; no top covers another as far as
# ``covers`` can tell; what ``change`` returns, summed, is what is told.


# -------------------------------------------------------------------------------------------------
# CoverIndex: among very many disjuncts, those that cover a given one, and those it covers.
#
# Comparing all pairs is out of the question, so disjuncts are filed by what containment cannot do
# without.  An equality with a text is implied by the same equality only; so a disjunct that has
# some is filed under its rarest, and found where that is given::
#
#     @x = "v" ── disjuncts to compare, each with a mask of the names that it asks for
#
# The others are at the ends of a trie of chains, anchors in order, conditions left out::
#
#     ──(at least 1) b ──(exactly 1) c ──┬ trailing 0: disjuncts
#          │                             └ trailing 1: ...
#          └──(exactly 2) *[..] ──...
#
# *Covering* walks the trie along the given chains, taking an edge wherever containment could lay
# its anchor.  *Covered* by a disjunct without equalities lays its chain onto a trie of all paths; a
# subtree in which one of its names does not occur is not entered.  ``covers`` decides about what
# was found.


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

    def _covers(self, general: _Item, special: _Item) -> bool:
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


# -------------------------------------------------------------------------------------------------
# MeasuredCosts: what generalisations let pass for nothing, counted where it arrives.
#
# A message that came from the parent and that nobody here or below wants was let pass by some
# generalisation, or by what routing queries cannot say.  Those that hold on it are found by an
# engine of their own, which such messages alone are shown, and share the blame::
#
#     standing       what is told now: thought to cost so much, blamed for so many
#     remembered     what was measured of those that were told once, by disjunct
#     by shape       measured over thought, by disjunct without its values: what is true of
#                    ``/m[@a = "1"]`` says something of ``/m[@a = "2"]``
#
# All are shares of the messages published on the trees, which the numbers of the messages that
# arrive tell.  A generalisation *disappoints* when it costs twice what it was thought to, and more
# than next to nothing; it is remembered with its cost, so that it comes back only where all else is
# worse, and is not found disappointing again: choices settle.


MESSAGES_MIN = 32  # that count as much as what was thought
DISAPPOINTS_AT = 2.0  # times what was thought
DISAPPOINTS_FROM = 0.01  # of all messages
REMEMBERED_MAX = 4096
LAZY_BYTES_MAX = 1024 * 1024  # of the engine, which few messages are shown
_VALUE = re.compile(r'"[^"]*"|(?<![\w.])-?\d[\d.eE+]*')


@dataclass(slots=True)
class _Standing:
    """``since``: how many messages had been published before."""

    disjunct: Conjunction
    thought: float
    since: int
    blamed: float = 0.0


class MeasuredCosts:
    """Of the generalisations of one branch."""

    def __init__(self) -> None:
        self._matcher: Matcher | None = None  # of what stands; large, so there when it is needed
        self._standing: dict[str, _Standing] = {}
        self._remembered: dict[str, float] = {}
        self._by_shape: dict[str, tuple[float, float]] = {}  # measured, thought
        self._last: dict[str, int] = {}  # number of the last message, by source
        self._published = 0
        self.useless = 0
        self.unexplained = 0

    def stand(self, disjunct: Conjunction, thought: float) -> None:
        """A generalisation is told from now on."""
        self._standing[disjunct.text] = _Standing(disjunct, thought, self._published)
        if self._matcher is None:
            self._matcher = Matcher(MatchLimits(lazy_bytes_max=LAZY_BYTES_MAX))
        self._matcher.add_route(disjunct, LinkTarget("", disjunct.text))

    def fall(self, disjunct: Conjunction) -> None:
        """It is not any more."""
        del self._standing[disjunct.text]
        if self._matcher is not None:
            self._matcher.remove_route(disjunct, LinkTarget("", disjunct.text))
        if not self._standing:
            self._matcher = None

    def arrived(self, source: str, number: int) -> None:
        """A message came from the parent; those in between went elsewhere, or nowhere."""
        last = self._last.get(source)
        self._last[source] = number
        self._published += 1 if last is None else max(0, number - last)

    def blame(self, message: ElementStream | Readings) -> bool:
        """A message came for nothing; whether a generalisation let it pass."""
        self.useless += 1
        holding: list[str] = []
        with suppress(MatchLimitExceeded):
            if self._matcher is not None:
                holding.extend(self._matcher.matched_links(message))
        for text in holding:
            self._standing[text].blamed += 1 / len(holding)
        self.unexplained += not holding
        return bool(holding)

    def disappointing(self) -> list[Conjunction]:
        """Those that give way to others; all that was measured is remembered."""
        found = []
        for text, standing in self._standing.items():
            seen = self._published - standing.since
            if seen < MESSAGES_MIN:
                continue
            cost = (standing.blamed + standing.thought * MESSAGES_MIN) / (seen + MESSAGES_MIN)
            if cost >= DISAPPOINTS_FROM and cost >= DISAPPOINTS_AT * standing.thought:
                found.append(standing.disjunct)
                self._remember(text, cost, standing.thought)
        return found

    def cost_of(self, disjunct: Conjunction, thought: float) -> float:
        """What a disjunct costs as far as that is known, at least ``thought`` if it is not."""
        known = self._remembered.get(disjunct.text)
        if known is not None:
            return known
        if not self._by_shape:
            return thought
        measured, expected = self._by_shape.get(_shape(disjunct.text), (1.0, 1.0))
        return min(1.0, thought * max(1.0, measured / expected))

    def _remember(self, text: str, cost: float, thought: float) -> None:
        self._remembered.pop(text, None)
        self._remembered[text] = cost
        shape = _shape(text)
        measured, expected = self._by_shape.pop(shape, (0.0, 0.0))
        self._by_shape[shape] = measured + cost, expected + thought
        for known in (self._remembered, self._by_shape):
            if len(known) > REMEMBERED_MAX:
                del known[next(iter(known))]  # the oldest


def _shape(text: str) -> str:
    return _VALUE.sub("?", text)


# -------------------------------------------------------------------------------------------------


# Shares of the budget: generalised down to, specialised when below, and no further than.
_GENERALISED_TO, _SPECIALISED_AT, _SPECIALISED_TO = 0.9, 0.4, 0.6
_COSTS = (0.001, 0.004, 0.016, 0.064, 0.25, 1.0)  # of a generalisation at most, round by round
_USEFUL_FROM = 0.2  # of what is too much: such a round is followed by one of the same cost
_BELOW_MIN = 2
STEPS = 512  # of generalising, at a time: a disjunct looked at or put, or a few candidates
SPECIALISED_MAX = 64  # at a time
REVISED_EVERY = 64  # messages that came for nothing


class _Interest(Pattern):
    """``pattern`` is shared with other trees; ``takers``: how many stand behind this interest,
    local profiles together counting as one."""

    __slots__ = ("above", "below", "pattern", "takers")

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.disjunct = pattern.disjunct
        self.reading = pattern.reading
        self.chains = pattern.chains
        self.keys = pattern.keys
        self.takers = 0
        self.above: _Interest | None = None
        self.below: dict[_Interest, None] = {}


class CoverForest:
    """Interests with their takers; ``told`` is what the parent knows."""

    def __init__(
        self,
        budget: Budget = UNBOUNDED,
        pool: PatternPool | None = None,
        sample: MessageSample | None = None,
    ) -> None:
        """``pool`` and ``sample``, of the messages of all trees, are shared with other forests."""
        self._budget = budget
        self._sample = sample
        self._pool = PatternPool() if pool is None else pool
        self._interests: dict[Conjunction, _Interest] = {}
        self._tops: CoverIndex[_Interest] = CoverIndex()
        self._general: dict[_Interest, None] = {}  # nobody asked for them
        self._bytes = 0  # of the tops
        self._generalised = 0
        self._is_settled = True
        self._cost = 0  # of the next round: which of _COSTS
        self._shrinking: Iterator[None] | None = None
        self._measured = MeasuredCosts()
        self._blamed = 0
        self._revised = 0
        self._news = DeltaSum()

    def change(self, added: Iterable[Conjunction], removed: Iterable[Conjunction]) -> Delta:
        """One taker more for each of ``added``, one less for each of ``removed``; gives what the
        parent must be told.  KeyError for one without a taker."""
        for disjunct in added:
            self._add(disjunct)
        for disjunct in removed:
            self._remove(disjunct)
        self._fit()
        return self._news.take()

    def restore(self, told: Conjunction) -> None:
        """Something that the parent knew before a restart; before anything else is added, and
        ``settle`` when all is."""
        interest = self._new(told)
        self._general[interest] = None  # as long as nobody asks for it
        self._raise(interest)
        self._news.take()
        self._is_settled = False

    def settle(self) -> Delta:
        """Drop what was told and stands for nothing any more; gives what the parent must be
        told."""
        for interest in list(self._general):
            self._drop_if_idle(interest)
        for interest in self._general:
            self._measured.stand(interest.disjunct, 0.0)
        self._is_settled = True
        self._fit()
        return self._news.take()

    def set_budget(self, budget: Budget) -> Delta:
        """Gives what the parent must be told; all of it at once, so that what is told first of a
        new branch is within its budget."""
        self._budget = budget
        self._shrinking = None
        self._fit()
        while self.is_working:
            self._shrink()
        return self._news.take()

    @property
    def is_working(self) -> bool:
        """Whether generalising is not done yet."""
        return self._shrinking is not None

    def work(self) -> Delta:
        """Go on with it; gives what the parent must be told."""
        self._fit()
        return self._news.take()

    def arrived(self, source: str, number: int) -> None:
        """A message came from the parent, the ``number``-th of its source."""
        self._measured.arrived(source, number)

    def blame(self, message: ElementStream | Readings) -> Delta:
        """It came for nothing; gives what the parent must be told if choices are revised."""
        if self._measured.blame(message):
            self._blamed += 1
            if self._blamed % REVISED_EVERY == 0:
                self._revise()
        return self._news.take()

    @property
    def told(self) -> Iterator[Conjunction]:
        return (interest.disjunct for interest in self._tops)

    def report(self, said: RoutingTableFigures) -> None:
        said.interests += len(self._interests) - len(self._general)
        said.told += len(self._tops)
        said.generalisations += len(self._general)
        said.generalised += self._generalised
        said.revised += self._revised
        said.useless += self._measured.useless
        said.unexplained += self._measured.unexplained

    # --- changes --------------------------------------------------------------------------

    def _add(self, disjunct: Conjunction) -> None:
        interest = self._interests.get(disjunct)
        if interest is None:
            interest = self._new(disjunct)
            self._place(interest)
        interest.takers += 1
        self._unset_general(interest)

    def _new(self, disjunct: Conjunction) -> _Interest:
        interest = _Interest(self._pool.pattern(disjunct))
        self._interests[interest.disjunct] = interest
        return interest

    def _remove(self, disjunct: Conjunction) -> None:
        interest = self._interests[disjunct]
        interest.takers -= 1
        if not interest.takers:
            self._drop(interest)

    def _place(self, interest: _Interest) -> None:
        """Below a top that covers it, else on top of those that it covers."""
        cover = next(self._tops.covering(interest), None)
        if cover is not None:
            _put_below(cover, interest)
            return
        for lower in self._tops.covered(interest):
            self._lower(lower)
            if lower in self._general:
                self._forget(lower)
                for hidden in lower.below:
                    _put_below(interest, hidden)
            else:
                _put_below(interest, lower)
        self._raise(interest)

    def _drop(self, interest: _Interest) -> None:
        """Take an interest out; what stood below it finds another place."""
        self._forget(interest)
        above = interest.above
        if above is not None:
            del above.below[interest]
            for lower in interest.below:
                _put_below(above, lower)
            self._drop_if_idle(above)
            return
        self._lower(interest)
        for lower in interest.below:
            lower.above = None
            self._place(lower)

    def _drop_if_idle(self, interest: _Interest) -> None:
        """A generalisation for one interest is no use."""
        if interest in self._general and len(interest.below) < _BELOW_MIN:
            self._drop(interest)

    def _forget(self, interest: _Interest) -> None:
        del self._interests[interest.disjunct]
        self._unset_general(interest)

    def _set_general(self, interest: _Interest, thought: float) -> None:
        self._general[interest] = None
        self._measured.stand(interest.disjunct, thought)

    def _unset_general(self, interest: _Interest) -> None:
        if interest in self._general:
            del self._general[interest]
            if self._is_settled:
                self._measured.fall(interest.disjunct)

    def _raise(self, interest: _Interest) -> None:
        self._tops.add(interest)
        self._bytes += disjunct_bytes(interest.disjunct)
        self._news.add(interest.disjunct)

    def _lower(self, interest: _Interest) -> None:
        self._tops.remove(interest)
        self._bytes -= disjunct_bytes(interest.disjunct)
        self._news.remove(interest.disjunct)

    # --- the budget -----------------------------------------------------------------------

    def _fit(self) -> None:
        """Generalise when the tops are beyond the budget, specialise when much of it is free."""
        if not self._is_settled:
            return
        if self._shrinking is None and not self._allows(1.0):
            self._shrinking = self._rounds()
        if self._shrinking is not None:
            self._shrink()
        for _ in range(SPECIALISED_MAX):
            if not self._general or not self._allows(_SPECIALISED_AT):
                break
            fewest = min(self._general, key=lambda interest: len(interest.below))
            if not self._allows(_SPECIALISED_TO, more=[top.disjunct for top in fewest.below]):
                break
            self._drop(fewest)

    def _allows(self, share: float, more: Collection[Conjunction] = ()) -> bool:
        size = self._bytes + sum(map(disjunct_bytes, more))
        return self._budget.allows(len(self._tops) + len(more), size, share)

    def _shrink(self) -> None:
        if self._shrinking is not None and sum(1 for _ in islice(self._shrinking, STEPS)) < STEPS:
            self._shrinking = None

    def _rounds(self) -> Iterator[None]:
        """First what costs nearly nothing, as long as that is of use; then what costs more.  It
        begins with what was of use the last time."""
        while len(self._tops) > len(self._readings()) and not self._allows(_GENERALISED_TO):
            excess = self._excess()
            yield from self._round(excess, _COSTS[self._cost])
            if excess - self._excess() >= _USEFUL_FROM * excess:
                continue
            if self._cost + 1 < len(_COSTS):
                self._cost += 1
            elif self._excess() >= excess:
                for reading in self._readings():
                    self._put_general(ANY_MESSAGE[reading], 1.0)
        self._cost = max(0, self._cost - 1)

    def _readings(self) -> set[Reading]:
        """Of the tops; nothing covers what is of both, so one of each is the least."""
        return {top.reading for top in self._tops}

    def _excess(self) -> float:
        tops = (interest.disjunct for interest in self._tops)
        return sum(map(self._budget.weight, tops)) - _GENERALISED_TO

    def _round(self, excess: float, cost_max: float) -> Iterator[None]:
        """Wider disjuncts, enough or as many as there are.  What has changed since the round began
        is found out when one is put."""
        tops = [interest.disjunct for interest in self._tops]
        cost_of, sample = self._measured.cost_of, self._sample
        for wider in generalise(tops, self._budget, excess, cost_of, sample, cost_max):
            if wider is not None:
                self._generalised += 1
                self._put_general(wider.disjunct, wider.cost)
            yield

    def _put_general(self, wider: Conjunction, thought: float) -> None:
        if wider in self._interests:
            return
        interest = self._new(wider)
        if next(self._tops.covering(interest), None) is not None:
            del self._interests[interest.disjunct]
            return
        self._set_general(interest, thought)
        self._place(interest)
        self._drop_if_idle(interest)

    def _revise(self) -> None:
        """Those that cost more than was thought give way to others."""
        for disjunct in self._measured.disappointing():
            interest = self._interests.get(disjunct)
            if interest is not None and interest in self._general:
                self._revised += 1
                self._drop(interest)
        self._fit()


def _put_below(cover: _Interest, interest: _Interest) -> None:
    interest.above = cover
    cover.below[interest] = None


# -------------------------------------------------------------------------------------------------


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

    def statistics(self) -> RoutingTableFigures:
        said = RoutingTableFigures(branches=len(self._upward))
        for below in self._below.values():
            said.entries += len(below.entries)
            said.table_bytes += below.bytes
        self.report(said)
        return said

    def dump(self) -> str:
        """The table as the paper draws it: root, link and routing query, a disjunct a line."""
        lines = []
        for root, below in self.trees.items():
            lines.append(f"tree of {root}")
            for branch in sorted(below, key=lambda branch: branch.broker):
                lines.append(f"  {branch.broker}:")
                lines += sorted(f"    {disjunct}" for disjunct in self._below[branch].entries)
        return "\n".join(lines)
