"""NeedTable: all needs of all links as one trie of paths, with what is to be done at its nodes.

::

    /feed/entry [category/@term = "a"]  keep title   of B2, B3      (feed)
    /feed/entry [category/@term = "b"]  keep title   of B2, B3        │
    /feed/entry                         keep author  of B3         (entry)   binding
                                                                  ╱   │   ╲
                 check @term: "a" -> group 0, "b" -> group 0  (category)  (author)  keeps: group 1
                                                                   (title)  keeps: group 0

A need is there once, however many links have it.  Needs with the same binding path, kept paths and
links are one *group*, a bit in masks; they only differ in when it is wanted.  A need that another
link takes, too, goes to another group; nothing else changes.  A condition is taken apart into
*atoms*, each a question about the elements at one node of the trie, and the equalities there are
one look-up, however many they are.  Of a condition's atoms it is only asked that they hold below
the same bound element, so more may be found wanted than is; that is always right.

Links are numbers, sets of them masks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from yfilter.engine.linear_paths import Conjunction, StructuralStep
from yfilter.index.symbols import SymbolTable
from yfilter.index.ways import Condition, condition_of
from yfilter.language.query_ast import (
    Comparison,
    Expression,
    FunctionCall,
    Literal,
    NameTest,
    NodeKind,
    Operator,
)
from yfilter.projection.need_parts import (
    ATTRIBUTE,
    OTHER,
    STRUCTURE,
    TEXT,
    VALUE,
    Binding,
    Check,
    Disjunct,
    Group,
)
from yfilter.projection.needs import Kept, Kind, Need, Steps, looked_at

MASKS_MAX = 4096  # of groups or links, whose links or groups are remembered

# The number of a kind, and the attribute or the part.
Looked: TypeAlias = tuple[int, NameTest | str | None]


class Node:
    """A node of the trie; the first one stands for the document node.

    ``kept``: of which groups; ``touched``: for which sets of links, and by how many conditions;
    ``states``: the lazy states that hold it.
    """

    __slots__ = (
        *("binding", "checks", "children", "descendants", "kept", "number", "parent", "states"),
        *("step", "symbol", "touched"),
    )

    def __init__(self, number: int, parent: Node | None, step: StructuralStep | None) -> None:
        self.number = number
        self.parent = parent
        self.step = step
        self.symbol = 0
        self.children: dict[StructuralStep, Node] = {}
        self.descendants = 0  # of the children, those at any depth
        self.binding: Binding | None = None
        self.kept: dict[Looked, int] = {}
        self.checks: dict[tuple[Binding, int, NameTest | None], Check] = {}
        self.touched: dict[Looked, Counter[int]] = {}
        self.states: set[int] = set()

    @property
    def is_used(self) -> bool:
        return bool(self.children or self.binding or self.kept or self.checks or self.touched)


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

    ``changed`` are the nodes whose content or children have changed, ``pruned`` those that are
    gone, as far as there are states that hold them; whoever makes the states clears both.
    ``tests`` counts changes of the name tests that there are.
    """

    def __init__(self) -> None:
        self.needs: dict[Need, Entry] = {}
        self.symbols = SymbolTable()
        self.tests = 0
        self.changed: dict[Node, bool] = {}  # -> whether its children have
        self.pruned: list[Node] = []
        self._nodes = 1
        self._groups: list[Group | None] = []  # by number of the bit
        self._free_bits: list[int] = []
        self._links: dict[int, int] = {}  # link -> the groups that it is among the links of
        self._links_of: dict[int, int] = {}  # groups -> their links
        self._asked_of: dict[int, int] = {}  # links -> their groups
        self.root = Node(0, None, None)
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

    def renew_symbols(self) -> None:
        """Labels are numbered anew; no state may be left."""
        self.tests += 1
        self.symbols = SymbolTable()
        waiting = [self.root]
        while waiting:
            for (_, test), child in waiting.pop().children.items():
                child.symbol = self.symbols.acquire(test)
                waiting.append(child)

    def statistics(self) -> dict[str, int]:
        return {
            "needs": len(self.needs),
            "need_groups": len(self._groups) - len(self._free_bits),
        }

    def _install(self, need: Need, links: int) -> None:
        node = self._node(need.binding)
        if node.binding is None:
            node.binding = Binding()
            self._change(node)
        binding = node.binding
        group = self._group(need, node, binding, links)
        disjunct = None
        if need.condition is not None:
            disjunct = self._disjunct(need, need.condition, node, binding, group)
        self.needs[need] = entry = Entry(links, group, disjunct)
        self._enter(entry, binding)

    def _move(self, need: Need, entry: Entry, links: int) -> None:
        """To the group of other links."""
        node = self._node(need.binding)
        binding = node.binding
        assert binding is not None
        former, group = entry.group, self._group(need, node, binding, links)
        entry.links, entry.group = links, group
        if entry.disjunct is not None:
            entry.disjunct.bit = group.bit
            for place, looked in entry.disjunct.touched:
                self._touch(place, looked, links, 1)
                self._touch(place, looked, former.links, -1)
        self._enter(entry, binding)
        self._leave(entry, need, node, former)

    def _take_out(self, need: Need, entry: Entry) -> None:
        node = self._node(need.binding)
        if entry.disjunct is not None:
            self._forget(entry.disjunct, entry.links)
        self._leave(entry, need, node, entry.group)

    def _enter(self, entry: Entry, binding: Binding) -> None:
        entry.group.needs += 1
        entry.group.unconditional += entry.is_unconditional
        binding.set_masks(entry.group)

    def _leave(self, entry: Entry, need: Need, node: Node, group: Group) -> None:
        binding = node.binding
        assert binding is not None
        group.needs -= 1
        group.unconditional -= entry.is_unconditional
        binding.set_masks(group)
        if group.needs:
            return
        del binding.groups[need.kept, group.links]
        binding.full &= ~group.bit
        self._free(group)
        for place, looked in group.places:
            place.kept[looked] &= ~group.bit
            if not place.kept[looked]:
                del place.kept[looked]
            self._change(place)
            self._prune(place)
        if not binding.groups and node is not self.root:
            node.binding = None
            self._change(node)
            self._prune(node)

    def _group(self, need: Need, node: Node, binding: Binding, links: int) -> Group:
        group = binding.groups.get((need.kept, links))
        if group is not None:
            return group
        places = tuple((self._node(kept.steps, node), _looked(kept)) for kept in need.kept)
        number = self._free_bits.pop() if self._free_bits else len(self._groups)
        group = binding.groups[need.kept, links] = Group(1 << number, links, places)
        if number == len(self._groups):
            self._groups.append(group)
        else:
            self._groups[number] = group
        for place, looked in places:
            place.kept[looked] = place.kept.get(looked, 0) | group.bit
            self._change(place)
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
        self, need: Need, condition: Conjunction, node: Node, binding: Binding, group: Group
    ) -> Disjunct:
        # In a condition on a bound element the first step is that element itself.
        skipped = 1 if need.binding else 0
        keys: dict[_PlacedAtom, None] = {}
        looks: dict[tuple[Node, Looked], None] = {}
        for path in condition.paths:
            place = node
            for number, step in enumerate(path.steps):
                if number >= skipped:
                    place = self._child(place, step.structure)
                for selection in step.selections:
                    known = condition_of(selection) or _substring_of(selection)
                    key = self._atom_key(place, binding, selection, known)
                    keys[(place, *key)] = None
                    if known is not None:
                        looks[place, (_LOOKED_AT[known.kind], known.test)] = None
                        continue
                    for kept in looked_at(selection):
                        looks[place, _looked(kept)] = None
            if len(path.steps) > skipped and not path.steps[-1].selections:
                keys[place, self._check(place, binding, STRUCTURE, None), None, None] = None
        for place, looked in looks:
            self._touch(place, looked, group.links, 1)
        disjunct = Disjunct(group.bit, tuple(keys), tuple(looks))
        for number, (_, check, operator, value) in enumerate(keys):
            check.atom(operator, value).disjuncts[disjunct] = 1 << number
        return disjunct

    def _forget(self, disjunct: Disjunct, links: int) -> None:
        for place, check, operator, value in disjunct.atoms:
            atom = check.atom(operator, value)
            del atom.disjuncts[disjunct]
            if not atom.disjuncts:
                check.discard(operator, value)
                if not check.atoms:
                    del place.checks[check.binding, check.subject, check.attribute]
                    self._change(place)
                    self._prune(place)
        for place, looked in disjunct.touched:
            self._touch(place, looked, links, -1)
            self._prune(place)

    def _touch(self, place: Node, looked: Looked, links: int, count: int) -> None:
        """So many conditions more of a set of links look at something at a node."""
        sets = place.touched.setdefault(looked, Counter())
        sets[links] += count
        if sets[links] == 0:
            del sets[links]
            if not sets:
                del place.touched[looked]
        elif sets[links] != count:
            return
        self._change(place)

    def _atom_key(
        self,
        place: Node,
        binding: Binding,
        selection: Expression,
        known: Condition | _Substring | None,
    ) -> tuple[Check, Operator | None, object]:
        if known is None:
            return self._check(place, binding, OTHER, None), None, selection
        subject = _SUBJECTS[known.kind]
        check = self._check(place, binding, subject, known.test)
        if isinstance(known, _Substring):
            return check, None, (known.function, known.literal)
        if known.operator is None:
            return check, None, None
        if isinstance(known.value, str):
            return check, known.operator, known.value.encode()
        return check, known.operator, known.number

    def _check(
        self, place: Node, binding: Binding, subject: int, attribute: NameTest | None
    ) -> Check:
        key = (binding, subject, attribute)
        found = place.checks.get(key)
        if found is None:
            found = place.checks[key] = Check(binding, subject, attribute)
            self._change(place)
        return found

    def _node(self, steps: Steps, node: Node | None = None) -> Node:
        """From the root, or another one."""
        found = self.root if node is None else node
        for step in steps:
            found = self._child(found, step)
        return found

    def _child(self, node: Node, step: StructuralStep) -> Node:
        child = node.children.get(step)
        if child is None:
            child = node.children[step] = Node(self._nodes, node, step)
            self._nodes += 1
            node.descendants += step[0]
            child.symbol = self.symbols.acquire(step[1])
            self.tests += 1
            self._change(node, children=True)
        return child

    def _prune(self, node: Node) -> None:
        """Take out a node that nothing is at any more, and so on upwards."""
        while node.parent is not None and node.step is not None and not node.is_used:
            parent = node.parent
            if parent.children.get(node.step) is not node:
                return
            del parent.children[node.step]
            parent.descendants -= node.step[0]
            self.symbols.release(node.symbol)
            self.tests += 1
            if node.states:
                self.pruned.append(node)
            self._change(parent, children=True)
            node = parent

    def _change(self, node: Node, *, children: bool = False) -> None:
        if node.states:
            self.changed[node] = children or self.changed.get(node, False)


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


_PlacedAtom: TypeAlias = tuple[Node, Check, Operator | None, object]


class _Substring(NamedTuple):
    """``contains(@a, "x")`` and the like, of an attribute or the string value of the element."""

    kind: NodeKind
    test: NameTest | None
    function: str
    literal: bytes


def _substring_of(selection: Expression) -> _Substring | None:
    match selection:
        case FunctionCall("contains" | "starts-with" | "ends-with", (path, Literal(str(literal)))):
            # Of nothing at all an empty literal is a part, too; that is left to the interpreter.
            there = condition_of(Comparison(path, Operator.EQ, Literal(literal)))
            if literal and there is not None and there.kind is not NodeKind.TEXT:
                return _Substring(there.kind, there.test, selection.name, literal.encode())
    return None


def _looked(kept: Kept) -> Looked:
    return int(kept.kind), kept.part if kept.kind is Kind.PART else kept.attribute


_LOOKED_AT = {
    NodeKind.ATTRIBUTE: int(Kind.ATTRIBUTE),
    NodeKind.TEXT: int(Kind.VALUE),
    NodeKind.SELF: int(Kind.VALUE),
}
_SUBJECTS = {NodeKind.ATTRIBUTE: ATTRIBUTE, NodeKind.TEXT: TEXT, NodeKind.SELF: VALUE}
