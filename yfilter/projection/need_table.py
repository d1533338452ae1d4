"""NeedTable: all needs of all links, as queries of the index and what is done where they are found.

::

    /feed/entry [category/@term = "a"]  keep title   of B2, B3
    /feed/entry [category/@term = "b"]  keep title   of B2, B3
    /feed/entry                         keep author  of B3

    queries of the index                what is done at the elements found
    /feed/entry                         binding: group 0 on a condition, group 1 always
    /feed/entry/title                   keep: group 0
    /feed/entry/author                  keep: group 1
    /feed/entry/category[@term = "a"]   its condition holds: group 0
    /feed/entry/category[@term = "b"]   the same

A need is there once, however many links have it.  Needs with the same binding path, kept paths and
links are one *group*, a bit in masks; they only differ in when it is wanted.  A need that another
link takes, too, goes to another group; nothing else changes.  A condition is taken apart into
*atoms*, each a query of its own, which the index finds as it finds those of profiles.  Of a
condition's atoms it is only asked that they hold below the same bound element, so more may be found
wanted than is; that is always right.

Links are numbers, sets of them masks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from yfilter.engine.linear_paths import Conjunction
from yfilter.index.element_condition import Condition, condition_of
from yfilter.index.index import Index
from yfilter.index.ways import conditions_of
from yfilter.language.query_ast import Expression, NameTest, NodeKind
from yfilter.projection.needs import Kept, Kind, Need, Steps, looked_at
from yfilter.projection.projector import (
    WHOLE_SHARE,
    Atom,
    Binding,
    Disjunct,
    Group,
    Looked,
    Place,
    Projector,
)

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
        self._atoms: dict[tuple[Steps, Expression], Atom] = {}
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

    def statistics(self) -> dict[str, int]:
        return {
            "needs": len(self.needs),
            "need_groups": len(self._groups) - len(self._free_bits),
        }

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

    def _atom(self, steps: Steps, selection: Expression, known: Condition | None) -> Atom:
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
    return Kept((), Kind(kind), what if isinstance(what, NameTest) else None)


_LOOKED_AT = {
    NodeKind.ATTRIBUTE: int(Kind.ATTRIBUTE),
    NodeKind.TEXT: int(Kind.VALUE),
    NodeKind.SELF: int(Kind.VALUE),
}


def projector_of(index: Index, whole_share: float = WHOLE_SHARE) -> Projector:
    """A projector without needs; ``whole_share``: see Projector."""
    return Projector(index, NeedTable(index), whole_share)
