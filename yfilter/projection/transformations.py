"""Transformations: the needs of all links, and what is left of a message for each (section 4.2.2).

The needs of a link are its transformation query; needs that several links have are there once
(transformations.py), and one pass over a message finds what is left for all links that it reaches
(projector.py).

For each part that is wanted at an element a link has the choice: its piece, or what it looks at::

    plain     nothing is computed                                      raw of all parts
    common    what several of the parts have in common is computed     pieces of it, raw of the rest
    largest   the parts are computed                                   pieces

All three are right, since whoever gets a message computes what he lacks.  So it is measured now
and then (MEASURED_EVERY) which makes the least of a message, and that is done until the next time.
What has come as a piece is passed on as a piece, or goes into the larger part that is computed of
it.  Each of the three is a link of its own for the projector.

After several messages of which nearly all was kept a link's are mostly passed on without a look
(RESTS_MAX).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from functools import lru_cache
from heapq import heappop, heappush

from msgspec import Struct

from formats.binary import encode_binary
from formats.element_stream import ElementStream
from yfilter.engine.linear_paths import Conjunction
from yfilter.engine.readings import Readings
from yfilter.engine.targets import LinkTarget, Transforming
from yfilter.engine.work import EngineStatistics
from yfilter.errors import MatchLimitExceeded
from yfilter.index.derived_condition import condition_of
from yfilter.index.index import Index
from yfilter.index.ways import conditions_of
from yfilter.language import query_ast as ast
from yfilter.language.evaluator import written
from yfilter.language.nodes import DOCUMENT, DynamicError, element_node
from yfilter.language.profile_limits import DEFAULT_EVALUATION_LIMITS, EvaluationLimits
from yfilter.operators.evaluation import Evaluation
from yfilter.projection.needs import Kept, Kind, Need, Steps, looked_at
from yfilter.projection.parts import KnownPart, pack_pieces, part_of_text, with_path_usage
from yfilter.projection.projector import (
    WHOLE_SHARE,
    Atom,
    Binding,
    Disjunct,
    Group,
    Left,
    Looked,
    Place,
    Projector,
)

# -------------------------------------------------------------------------------------------------
# NeedTable: all needs of all links, as queries of the index and what is done where they are found.
#
# ::
#
#     /feed/entry [category/@term = "a"]  keep title   of B2, B3
#     /feed/entry [category/@term = "b"]  keep title   of B2, B3
#     /feed/entry                         keep author  of B3
#
#     queries of the index                what is done at the elements found
#     /feed/entry                         binding: group 0 on a condition, group 1 always
#     /feed/entry/title                   keep: group 0
#     /feed/entry/author                  keep: group 1
#     /feed/entry/category[@term = "a"]   its condition holds: group 0
#     /feed/entry/category[@term = "b"]   the same
#
# A need is there once, however many links have it.  Needs with the same binding path, kept paths
# and links are one *group*, a bit in masks; they only differ in when it is wanted.  A need that
# another link takes, too, goes to another group; nothing else changes.  A condition is taken apart
# into *atoms*, each a query of its own, which the index finds as it finds those of profiles.  Of a
# condition's atoms it is only asked that they hold below the same bound element, so more may be
# found wanted than is; that is always right.
#
# Links are numbers, sets of them masks.


MASKS_MAX = 4096  # of groups or links, whose links or groups are remembered


class Entry:
    """A need that is there: its ``links``, and how often those have it that do so ``more`` than
    once."""

    __slots__ = ("disjunct", "group", "links", "more")

    def __init__(self, links: int, group: Group, disjunct: Disjunct | None) -> None:
        self.links = links
        self.group = group
        self.disjunct = disjunct
        self.more: Counter[int] | None = None

    @property
    def is_unconditional(self) -> bool:
        return self.disjunct is None or not self.disjunct.whole


class NeedTable:
    """Add and remove needs of links, each as often as it is there.

    ``found`` has what stands for a query of the index, by its number; ``root`` is the place of the
    document node, which is bound to ``document``.
    """

    def __init__(self, index: Index) -> None:
        self.needs: dict[Need, Entry] = {}
        self.found: dict[int, Place | Atom] = {}
        self._index = index
        self._places: dict[Steps, Place] = {}
        self._atoms: dict[tuple[Steps, ast.Expression], Atom] = {}
        self._groups: list[Group | None] = []  # by number of the bit
        self._free_bits: list[int] = []
        self._links: dict[int, int] = {}  # link -> the groups that it is among the links of
        self._links_of: dict[int, int] = {}  # groups -> their links
        self._asked_of: dict[int, int] = {}  # links -> their groups
        self.root = self._places[()] = Place(0, ())
        self.root.binding = self.document = Binding()

    def add(self, need: Need, link: int) -> None:
        entry = self.needs.get(need)
        if entry is None:
            self._install(need, 1 << link)
        elif entry.links >> link & 1:
            entry.more = entry.more or Counter()
            entry.more[link] += 1
        else:
            self._move(need, entry, entry.links | 1 << link)

    def remove(self, need: Need, link: int) -> None:
        """Undo one ``add``; KeyError if it is not there."""
        entry = self.needs[need]
        if not entry.links >> link & 1:
            raise KeyError(need)
        if entry.more is not None and entry.more[link]:
            entry.more[link] -= 1
        elif entry.links == 1 << link:
            del self.needs[need]
            self._take_out(need, entry)
        else:
            self._move(need, entry, entry.links & ~(1 << link))

    def links_of(self, groups: int) -> int:
        """The links that want any of some groups."""
        links = self._links_of.get(groups)
        if links is None:
            if len(self._links_of) >= MASKS_MAX:
                self._links_of.clear()
            links = 0
            for number in _bits(groups):
                group = self._groups[number]
                links |= group.links if group is not None else 0
            self._links_of[groups] = links
        return links

    def asked_of(self, links: int) -> int:
        """The groups that any of some links wants."""
        groups = self._asked_of.get(links)
        if groups is None:
            if len(self._asked_of) >= MASKS_MAX:
                self._asked_of.clear()
            groups = 0
            for link in bits_of(links):
                groups |= self._links.get(link, 0)
            self._asked_of[links] = groups
        return groups

    def report(self, said: EngineStatistics) -> None:
        said.needs, said.need_groups = len(self.needs), len(self._groups) - len(self._free_bits)

    def names_of(self, query: int) -> list[str]:
        """For people: what is done where a query is found."""
        found = self.found.get(query)
        if isinstance(found, Atom):
            return ["a condition of needs"]
        if found is None:
            return []
        binds = ["binds"] if found.binding else []
        asked = ["a condition of needs"] if found.there else []
        return [*binds, *asked, *(str(_kept_of(looked)) for looked in found.kept)]

    def _install(self, need: Need, links: int) -> None:
        place = self._place(need.binding)
        if place.binding is None:
            place.binding = Binding()
        group = self._group(need, place.binding, links)
        disjunct = None
        if need.condition is not None:
            disjunct = self._disjunct(need, need.condition, place.binding, group)
        self.needs[need] = entry = Entry(links, group, disjunct)
        self._enter(entry, place.binding)

    def _move(self, need: Need, entry: Entry, links: int) -> None:
        """To the group of other links."""
        place = self._places[need.binding]
        binding = place.binding
        assert binding is not None
        former, group = entry.group, self._group(need, binding, links)
        entry.links, entry.group = links, group
        if entry.disjunct is not None:
            entry.disjunct.bit = group.bit
            for touched, looked in entry.disjunct.touched:
                touched.touch(looked, links, 1)
                touched.touch(looked, former.links, -1)
        self._enter(entry, binding)
        self._leave(entry, need, place, former)

    def _take_out(self, need: Need, entry: Entry) -> None:
        place = self._places[need.binding]
        if entry.disjunct is not None:
            self._forget(entry.disjunct, entry.links)
        self._leave(entry, need, place, entry.group)

    def _enter(self, entry: Entry, binding: Binding) -> None:
        entry.group.needs += 1
        entry.group.unconditional += entry.is_unconditional
        binding.set_masks(entry.group)

    def _leave(self, entry: Entry, need: Need, place: Place, group: Group) -> None:
        binding = place.binding
        assert binding is not None
        group.needs -= 1
        group.unconditional -= entry.is_unconditional
        binding.set_masks(group)
        if group.needs:
            return
        del binding.groups[need.kept, group.links]
        binding.full &= ~group.bit
        self._free(group)
        for kept, looked in group.places:
            kept.keep(looked, group.bit, False)
            self._prune(kept)
        if not binding.groups and place is not self.root:
            place.binding = None
            self._prune(place)

    def _group(self, need: Need, binding: Binding, links: int) -> Group:
        group = binding.groups.get((need.kept, links))
        if group is not None:
            return group
        places = tuple(
            (self._place(need.binding + kept.steps), _looked(kept)) for kept in need.kept
        )
        number = self._free_bits.pop() if self._free_bits else len(self._groups)
        group = binding.groups[need.kept, links] = Group(1 << number, links, places)
        if number == len(self._groups):
            self._groups.append(group)
        else:
            self._groups[number] = group
        for place, looked in places:
            place.keep(looked, group.bit, True)
        if any(kept.kind is Kind.SUBTREE and not kept.steps for kept in need.kept):
            binding.full |= group.bit
        for link in bits_of(links):
            self._links[link] = self._links.get(link, 0) | group.bit
        self._asked_of.clear()
        return group

    def _free(self, group: Group) -> None:
        number = group.bit.bit_length() - 1
        self._groups[number] = None
        self._free_bits.append(number)
        for link in bits_of(group.links):
            self._links[link] &= ~group.bit
            if not self._links[link]:
                del self._links[link]
        self._asked_of.clear()
        self._links_of.clear()

    def _disjunct(
        self, need: Need, condition: Conjunction, binding: Binding, group: Group
    ) -> Disjunct:
        # In a condition on a bound element the first step is that element itself.
        skipped = 1 if need.binding else 0
        atoms: dict[Atom, None] = {}
        touched: dict[tuple[Place, Looked], None] = {}
        for path in condition.paths:
            steps = need.binding
            for number, step in enumerate(path.steps):
                if number >= skipped:
                    steps = (*steps, step.structure)
                for selection in step.selections:
                    known = condition_of(selection)
                    atoms[self._atom(steps, selection, known)] = None
                    if known is not None:
                        looked: Looked = _LOOKED_AT[known.kind], known.test
                        touched[self._place(steps), looked] = None
                        continue
                    for kept in looked_at(selection):
                        touched[self._place(steps), _looked(kept)] = None
            if len(path.steps) > skipped and not path.steps[-1].selections:
                atoms[self._there(steps)] = None
        for place, looked in touched:
            place.touch(looked, group.links, 1)
        disjunct = Disjunct(group.bit, binding, tuple(atoms), tuple(touched))
        for number, atom in enumerate(atoms):
            atom.asked.setdefault(binding, {})[disjunct] = 1 << number
        return disjunct

    def _forget(self, disjunct: Disjunct, links: int) -> None:
        for atom in disjunct.atoms:
            asked = atom.asked[disjunct.binding]
            del asked[disjunct]
            if not asked:
                del atom.asked[disjunct.binding]
                if not atom.asked:
                    self._discard(atom)
        for place, looked in disjunct.touched:
            place.touch(looked, links, -1)
            self._prune(place)

    def _place(self, steps: Steps) -> Place:
        place = self._places.get(steps)
        if place is None:
            query = self._index.add_place(steps)
            place = self._places[steps] = self.found[query] = Place(query, steps)
        return place

    def _atom(
        self, steps: Steps, selection: ast.Expression, known: ast.LeafCondition | None
    ) -> Atom:
        atom = self._atoms.get((steps, selection))
        if atom is None:
            conditions = (known,) if known else conditions_of(selection)
            query = self._index.add_place(steps, conditions)
            atom = self._atoms[steps, selection] = self.found[query] = Atom(query, steps, selection)
        return atom

    def _there(self, steps: Steps) -> Atom:
        place = self._place(steps)
        if place.there is None:
            place.there = Atom(0, steps, None)
        return place.there

    def _discard(self, atom: Atom) -> None:
        if atom.selection is None:
            place = self._places[atom.steps]
            place.there = None
            self._prune(place)
            return
        del self._atoms[atom.steps, atom.selection]
        del self.found[atom.query]
        self._index.remove(atom.query)

    def _prune(self, place: Place) -> None:
        """Take out a place where nothing is done any more."""
        if not place.is_used and place.query in self.found:
            del self.found[place.query]
            del self._places[place.steps]
            self._index.remove(place.query)


@lru_cache(maxsize=MASKS_MAX)
def bits_of(mask: int) -> tuple[int, ...]:
    """Of links: the numbers of the bits that are set, the lowest first."""
    return tuple(_bits(mask))


def _bits(mask: int) -> Iterator[int]:
    """The same of any mask; those of groups may be long, and are not remembered."""
    text = bin(mask)[:1:-1]
    number = text.find("1")
    while number >= 0:
        yield number
        number = text.find("1", number + 1)


def _looked(kept: Kept) -> Looked:
    return int(kept.kind), kept.part if kept.kind is Kind.PART else kept.attribute


def _kept_of(looked: Looked) -> Kept:
    kind, what = looked
    if kind == Kind.PART:
        return Kept((), Kind.PART, None, str(what))
    return Kept((), Kind(kind), what if isinstance(what, ast.NameTest) else None)


_LOOKED_AT = {
    ast.NodeKind.ATTRIBUTE: int(Kind.ATTRIBUTE),
    ast.NodeKind.TEXT: int(Kind.VALUE),
    ast.NodeKind.SELF: int(Kind.VALUE),
}


def projector_of(index: Index, whole_share: float = WHOLE_SHARE) -> Projector:
    """A projector without needs; ``whole_share``: see Projector."""
    return Projector(index, NeedTable(index), whole_share)


# -------------------------------------------------------------------------------------------------


MEASURED_EVERY = 64  # messages in which parts are wanted
PARTS_MAX = 256  # different parts of a link that are ever computed; the others stay plain
WHOLES_BEFORE_REST = 16  # messages passed on whole, one after the other
RESTS_MAX = 15  # messages that are then passed on whole without a look, between looks
PLANS_MAX = 1024  # sets of links, remembered

_TAGS_BYTES = 16  # of an element

PLAIN, COMMON, LARGEST = "plain", "common", "largest"
_NOTHING_CHOSEN: frozenset[str] = frozenset()


class Transformations:
    """``open`` links, add and remove their needs; ``left`` of messages."""

    def __init__(
        self,
        index: Index,
        whole_share: float = WHOLE_SHARE,
        limits: EvaluationLimits = DEFAULT_EVALUATION_LIMITS,
    ) -> None:
        """``whole_share``: of a message, from which on it is passed on as it is; ``limits``: of all
        pieces of a message."""
        self._limits = limits
        self._projector = projector_of(index, whole_share)
        self._links: dict[LinkTarget, _Link] = {}
        self._on: dict[tuple[str, str], _Link] = {}  # by root and link
        self._modes: dict[str, Transforming] = {}
        self._plans: dict[tuple[str, tuple[str, ...]], _Plan] = {}
        self._numbers = 0
        self._free: list[int] = []  # a heap
        self._wholes: Counter[int] = Counter()  # by number: messages passed on whole, in a row
        self._rests: dict[int, int] = {}  # by number: how many more without a look
        self._resting = 0  # those, as a mask
        self.counted = PieceCounts()

    @property
    def is_empty(self) -> bool:
        return not self._links

    def open(self, target: LinkTarget) -> None:
        """What nobody behind a link needs is left out from now on; so far nobody needs anything."""
        if target not in self._links:
            link = self._links[target] = _Link(_Way(self._new_number(), _NOTHING_CHOSEN))
            self._on.update({(root, target.link): link for root in target.roots})
            self._plans.clear()

    def close(self, target: LinkTarget) -> None:
        """Forget a link with its needs; KeyError if it is not open."""
        link = self._links.pop(target)
        self._drop_ways(link, *tuple(link.ways))
        for root in target.roots:
            if self._on.get((root, target.link)) is link:
                del self._on[root, target.link]
        self._plans.clear()

    def set_mode(self, link: str, mode: Transforming) -> None:
        """What is done to a link's messages on every tree; CUTTING unless this says otherwise."""
        if self._modes.get(link, Transforming.CUTTING) is not mode:
            self._modes[link] = mode
            self._plans.clear()

    def add(self, need: Need, target: LinkTarget) -> None:
        """Keep what a need asks for, too; the link is opened if it is not open."""
        self.open(target)
        link = self._links[target]
        if need not in link.needs:
            self._change(link, need, 1)
        link.needs[need] += 1

    def remove(self, need: Need, target: LinkTarget) -> None:
        """Undo one ``add``; KeyError if it is not there."""
        link = self._links[target]
        if need not in link.needs:
            raise KeyError(need)
        if link.needs[need] == 1:
            self._change(link, need, -1)
            del link.needs[need]
        else:
            link.needs[need] -= 1

    def left(self, message: Readings, root: str, links: Sequence[str]) -> dict[str, ElementStream]:
        """What is left of a message for those of the links of a tree that are open and not passed
        over; the very same message where that is nearly all, or a striped graph, one object for
        links that keep the same."""
        key = root, tuple(links)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._new_plan(*key)
        stream = message.document
        if stream is None:
            return dict.fromkeys((*plan.names.values(), *plan.with_parts), message.carried)
        result = dict.fromkeys(plan.names.values(), stream)
        asked = plan.asked & ~self._rest(plan.asked) if plan.asked & self._resting else plan.asked
        if plan.with_parts:
            return result | self._left_with_parts(stream, plan, asked)
        if asked:
            for mask, left in self._project(stream, asked):
                if left.stream is not None:
                    result.update(dict.fromkeys(plan.names_of(mask), left.stream))
        return result

    def way_of(self, target: LinkTarget) -> str:
        """How a link's messages are made at present, of PLAIN, COMMON and LARGEST."""
        return self._links[target].way

    def names_of(self, query: int) -> list[str]:
        """For people: what is done where a query of the index is found."""
        return self._projector.table.names_of(query)

    def lines(self, needs_max: int) -> Iterator[str]:
        """For people: the oldest needs with the links that have them, and how many more there
        are."""
        links: dict[Need, list[str]] = {}
        for target, link in self._links.items():
            for need in link.needs:
                if need in links or len(links) < needs_max:
                    links.setdefault(need, []).extend(target.names())
        if links:
            yield "needs (binding, condition, what is kept)"
            for need, names in links.items():
                yield f"  {need}  -> {', '.join(names)}"
            more = len({need for link in self._links.values() for need in link.needs}) - len(links)
            if more:
                yield f"… and {more} needs more"

    def report(self, said: EngineStatistics) -> None:
        self._projector.report(said)
        said.links_open = len(self._links)
        said.link_needs = sum(len(link.needs) for link in self._links.values())

    # -- needs

    def _change(self, link: _Link, need: Need, count: int) -> None:
        is_other = False
        for kept in need.kept:
            if kept.kind is Kind.PART:
                link.parts[kept.part] += count
                is_other |= link.parts[kept.part] == max(count, 0)  # the first one, or none
                if not link.parts[kept.part]:
                    del link.parts[kept.part]
        if is_other:  # what is common may be something else now
            self._drop_ways(link, COMMON, LARGEST)
            link.way = PLAIN
            link.until_measured = 0
            self._plans.clear()
        for way in link.ways.values():
            self._change_way(way, need, count)

    def _change_way(self, way: _Way, need: Need, count: int) -> None:
        raw = with_path_usage(need, way.chosen)
        if count > 0:
            self._projector.add(raw, way.number)
        else:
            self._projector.remove(raw, way.number)
            self._wholes.pop(way.number, None)
        if self._rests.pop(way.number, None) is not None:
            self._resting &= ~(1 << way.number)

    def _drop_ways(self, link: _Link, *names: str) -> None:
        for name in names:
            way = link.ways.pop(name, None)
            if way is not None:
                for need in link.needs:
                    self._change_way(way, need, -1)
                heappush(self._free, way.number)

    def _make_ways(self, link: _Link) -> None:
        if len(link.ways) > 1 or len(link.parts) > PARTS_MAX:
            return
        parts = [part_of_text(text) for text in link.parts]
        largest = frozenset(part.digest for part in parts)
        seen = Counter(
            digest for part in parts for digest in {inner.digest for inner in part.with_all_inner()}
        )
        common = frozenset(digest for digest, count in seen.items() if count > 1)
        for name, chosen in ((LARGEST, largest), (COMMON, common)):
            if chosen and (name == LARGEST or chosen != largest):
                way = link.ways[name] = _Way(self._new_number(), chosen)
                for need in link.needs:
                    self._change_way(way, need, 1)

    def _new_number(self) -> int:
        if self._free:
            return heappop(self._free)
        self._numbers += 1
        return self._numbers - 1

    # -- messages

    def _new_plan(self, root: str, links: tuple[str, ...]) -> _Plan:
        if len(self._plans) >= PLANS_MAX:
            self._plans.clear()
        plan = self._plans[root, links] = _Plan()
        for name in links:
            link = self._on.get((root, name))
            mode = self._modes.get(name, Transforming.CUTTING)
            if link is not None and mode is not Transforming.NOT:
                number = link.ways[PLAIN].number
                plan.names[number] = name
                if link.parts:
                    plan.with_parts[name] = link, mode is Transforming.RESTRUCTURING
                else:
                    plan.asked |= 1 << number
        return plan

    def _project(self, stream: ElementStream, asked: int) -> list[tuple[int, Left]]:
        """By mask of numbers; notes of which nearly all was kept."""
        found = self._projector.project(stream, asked)
        for mask, left in found:
            if left.stream is None:
                for number in bits_of(mask):
                    self._note_whole(number)
                continue
            left.stream.accepted = stream.accepted
            for number in bits_of(mask) if self._wholes else ():
                self._wholes.pop(number, None)
        return found

    def _note_whole(self, number: int) -> None:
        self._wholes[number] += 1
        if self._wholes[number] >= WHOLES_BEFORE_REST:
            rests = min(self._wholes[number] - WHOLES_BEFORE_REST + 1, RESTS_MAX)
            self._rests[number] = rests
            self._resting |= 1 << number

    def _rest(self, asked: int) -> int:
        """Those of some numbers that rest."""
        resting = asked & self._resting
        for number in bits_of(resting):
            self.counted.rested += 1
            self._rests[number] -= 1
            if not self._rests[number]:
                del self._rests[number]
                self._resting &= ~(1 << number)
        return resting

    def _left_with_parts(
        self, stream: ElementStream, plan: _Plan, asked: int
    ) -> dict[str, ElementStream]:
        """What is left for all that do not rest; links with parts may ask for it in more ways than
        one."""
        message = _Message(stream, self.counted, self._limits)
        waiting: dict[str, tuple[_Link, bool]] = {}
        for name, (link, restructures) in plan.with_parts.items():
            way = link.ways[link.way if restructures and link.until_measured > 0 else PLAIN]
            if not self._rest(1 << way.number):
                asked |= 1 << way.number
                waiting[name] = link, restructures
        message.take(self._project(stream, asked) if asked else ())
        again = 0
        for link, restructures in waiting.values():
            if restructures and link.until_measured <= 0:
                if message.left[link.ways[PLAIN].number].parts:  # else nothing is to be learnt
                    self._make_ways(link)
                    again |= sum(1 << way.number for way in link.ways.values())
            elif restructures and message.made(link.ways[link.way]) is None:
                again |= 1 << link.ways[PLAIN].number
        again &= ~sum(1 << number for number in message.left)
        message.take(self._project(stream, again) if again else ())
        result = {
            plan.names[number]: left.stream
            for number, left in message.left.items()
            if left.stream is not None and plan.asked >> number & 1
        }
        for name, (link, restructures) in waiting.items():
            result[name] = self._made(message, link, restructures)
        return result

    def _made(self, message: _Message, link: _Link, restructures: bool) -> ElementStream:
        """In a link's way; it is measured when that is time."""
        plain = link.ways[PLAIN]
        way = link.ways[link.way] if restructures else plain
        if restructures and link.until_measured <= 0:
            if not message.left[plain.number].parts:
                return message.made(plain) or message.stream
            link.until_measured = MEASURED_EVERY
            made = {
                name: message.made(way) or message.made(plain) for name, way in link.ways.items()
            }
            sizes = {name: message.size_of(left or message.stream) for name, left in made.items()}
            link.way = min(sizes, key=lambda name: (sizes[name], name))
            return made[link.way] or message.stream
        link.until_measured -= bool(restructures and message.left[way.number].parts)
        return message.made(way) or message.made(plain) or message.stream


class _Way:
    """What is left when the parts that are ``chosen``, by digest, are computed: ``number`` of the
    projector."""

    __slots__ = ("chosen", "number")

    def __init__(self, number: int, chosen: frozenset[str]) -> None:
        self.number = number
        self.chosen = chosen


class _Link:
    """``parts``: by text, of how many needs."""

    __slots__ = ("needs", "parts", "until_measured", "way", "ways")

    def __init__(self, plain: _Way) -> None:
        self.needs: Counter[Need] = Counter()
        self.parts: Counter[str] = Counter()
        self.ways = {PLAIN: plain}
        self.way = PLAIN
        self.until_measured = 0


class _Plan:
    """Which links are asked for when some are reached: as a mask those without parts; the others
    by name, each with whether it restructures."""

    __slots__ = ("_names_of", "asked", "names", "with_parts")

    def __init__(self) -> None:
        self.asked = 0
        self.names: dict[int, str] = {}
        self.with_parts: dict[str, tuple[_Link, bool]] = {}
        self._names_of: dict[int, tuple[str, ...]] = {}

    def names_of(self, mask: int) -> tuple[str, ...]:
        found = self._names_of.get(mask)
        if found is None:
            if len(self._names_of) >= PLANS_MAX:
                self._names_of.clear()
            found = tuple(self.names[number] for number in bits_of(mask))
            self._names_of[mask] = found
        return found


class PieceCounts(Struct):
    """Of pieces; ``rested``: how often a link's message was passed on without a look."""

    rested: int = 0
    failed: int = 0
    passed_on: int = 0
    computed: int = 0


class _Message:
    """What was made of a message so far; links share what is the same."""

    def __init__(
        self, stream: ElementStream, counted: PieceCounts, limits: EvaluationLimits
    ) -> None:
        self.stream = stream
        self._limits = limits
        self.left: dict[int, Left] = {}  # by number of the way
        self._counted = counted
        self._made: dict[tuple[Left, frozenset[str]], ElementStream | None] = {}
        self._computed: dict[tuple[int, str], bytes] = {}
        self._evaluation: Evaluation | None = None
        self._sizes: dict[ElementStream, int] = {}

    def take(self, found: Iterable[tuple[int, Left]]) -> None:
        for mask, left in found:
            self.left.update(dict.fromkeys(bits_of(mask), left))

    def made(self, way: _Way) -> ElementStream | None:
        """What a way makes of it; None where it is to be made plainly."""
        left = self.left[way.number]
        key = left, way.chosen
        if key not in self._made:
            self._made[key] = self._with_pieces(left, way)
        return self._made[key]

    def size_of(self, stream: ElementStream) -> int:
        """As it would be sent."""
        if stream not in self._sizes:
            self._sizes[stream] = _size(stream)
        return self._sizes[stream]

    def _with_pieces(self, left: Left, way: _Way) -> ElementStream | None:
        if left.stream is None:
            return self.stream
        if not (way.chosen or self.stream.pieces):
            return left.stream
        pieces: dict[tuple[int, str], bytes] = {}
        try:
            for element, place, text in left.parts:
                self._collect(part_of_text(text), way.chosen, element, place, pieces)
        except (DynamicError, MatchLimitExceeded):
            self._counted.failed += 1  # whoever wants the result finds out the same
            return None
        made = copy(left.stream)
        made.pieces = pieces
        if way.chosen and _weight(made) > _weight(self.stream):
            return None  # no link carries more than came
        return made

    def _collect(
        self,
        part: KnownPart,
        chosen: frozenset[str],
        element: int,
        place: int,
        pieces: dict[tuple[int, str], bytes],
    ) -> None:
        """The piece of a part, or those of the parts in it that are chosen or have come."""
        came = self.stream.pieces.get((element, part.digest))
        if came is not None:
            self._counted.passed_on += 1
            pieces[place, part.digest] = came
        elif part.digest in chosen:
            if (element, part.digest) not in self._computed:
                self._counted.computed += 1
                if self._evaluation is None:
                    self._evaluation = Evaluation(self.stream, self._limits)
                self._computed[element, part.digest] = computed(part, self._evaluation, element)
            pieces[place, part.digest] = self._computed[element, part.digest]
        else:
            for inner in part.inner:
                self._collect(inner, chosen, element, place, pieces)


def computed(part: KnownPart, evaluation: Evaluation, element: int) -> bytes:
    """The piece of a part at an element, of other pieces where there are some; DynamicError, and
    MatchLimitExceeded beyond what is left to the evaluation for all pieces of the message."""
    variables = {ast.PART_VARIABLE: [element_node(element)]}
    value = evaluation.value(part.expression, DOCUMENT, variables)
    return written(evaluation.trees, value)


def _weight(stream: ElementStream) -> int:
    """About what values, tags and pieces have in bytes, as text."""
    values = len(stream.attribute_values) + len(stream.content_values)
    return values + _TAGS_BYTES * len(stream) + sum(map(len, stream.pieces.values()))


def _size(stream: ElementStream) -> int:
    return len(encode_binary(stream)) + len(pack_pieces(stream.pieces))
