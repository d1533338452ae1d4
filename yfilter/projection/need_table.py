"""NeedTable: all needs of a plan as one trie of paths, with what is to be done at its nodes.

::

    /feed/entry [category/@term = "a"]  keep title          (feed)
    /feed/entry [category/@term = "b"]  keep title            │
                                                           (entry)   binding, group 0: title
                                                          ╱       ╲
          check @term: "a" -> group 0, "b" -> group 0  (category)  (title)   keep subtree: group 0

Needs with the same binding path and the same kept paths are one *group*, a bit in masks; they only
differ in when it is wanted.  A condition is taken apart into *atoms*, each a question about the
elements at one node of the trie, and the equalities there are one look-up, however many they are.
Of a condition's atoms it is only asked that they hold below the same bound element, so more may be
found wanted than is; that is always right.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple, TypeAlias

from yfilter.engine.linear_paths import Conjunction, StructuralStep
from yfilter.index.ways import condition_of
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
from yfilter.projection.needs import Kept, Kind, Need, Steps, touched

# A kind, and the attribute or the part.
Looked: TypeAlias = tuple[Kind, NameTest | str | None]


class Node:
    """A node of the trie; the first one stands for the document node."""

    __slots__ = ("binding", "checks", "children", "kept", "number", "parent", "step", "touched")

    def __init__(self, number: int, parent: Node | None, step: StructuralStep | None) -> None:
        self.number = number
        self.parent = parent
        self.step = step
        self.children: dict[StructuralStep, Node] = {}
        self.binding: Binding | None = None
        self.kept: dict[Looked, int] = {}  # -> mask
        self.checks: dict[tuple[Binding, int, NameTest | None], Check] = {}
        self.touched: Counter[Looked] = Counter()

    @property
    def loops(self) -> bool:
        """Whether a path goes on at any depth below."""
        return any(descendant for descendant, _ in self.children)

    @property
    def is_used(self) -> bool:
        return bool(self.children or self.binding or self.kept or self.checks or self.touched)


class NeedTable:
    """Add and remove needs, each as often as it is there; ``version`` counts changes."""

    def __init__(self) -> None:
        self.version = 0
        self.needs: Counter[Need] = Counter()
        self._nodes = 1
        self._next_bit = 1
        self._free_bits: list[int] = []
        self.root = Node(0, None, None)
        self.root.binding = self.document = Binding()

    def add(self, need: Need) -> None:
        self.needs[need] += 1
        if self.needs[need] == 1:
            self.version += 1
            self._install(need)

    def remove(self, need: Need) -> None:
        """Undo one ``add``; KeyError if it is not there."""
        if not self.needs[need]:
            del self.needs[need]
            raise KeyError(need)
        self.needs[need] -= 1
        if not self.needs[need]:
            del self.needs[need]
            self.version += 1
            self._take_out(need)

    def statistics(self) -> dict[str, int]:
        return {"needs": len(self.needs)}

    def _install(self, need: Need) -> None:
        node = self._node(need.binding)
        if node.binding is None:
            node.binding = Binding()
        binding = node.binding
        group = binding.groups.get(need.kept)
        if group is None:
            group = binding.groups[need.kept] = Group(self._new_bit())
            for kept in need.kept:
                place = self._node(need.binding + kept.steps)
                looked = _looked(kept)
                place.kept[looked] = place.kept.get(looked, 0) | group.bit
            if any(kept.kind is Kind.SUBTREE and not kept.steps for kept in need.kept):
                binding.full |= group.bit
        if need.condition is None:
            group.always = True
        else:
            group.disjuncts[need.condition] = self._disjunct(need, need.condition, binding, group)
        binding.set_masks(group)

    def _take_out(self, need: Need) -> None:
        node = self._node(need.binding)
        binding = node.binding
        assert binding is not None
        group = binding.groups[need.kept]
        if need.condition is None:
            group.always = False
        else:
            self._forget(group.disjuncts.pop(need.condition))
        binding.set_masks(group)
        if group.is_used:
            return
        del binding.groups[need.kept]
        binding.full &= ~group.bit
        self._free_bits.append(group.bit)
        for kept in need.kept:
            place = self._node(need.binding + kept.steps)
            looked = _looked(kept)
            place.kept[looked] &= ~group.bit
            if not place.kept[looked]:
                del place.kept[looked]
            self._prune(place)
        if not binding.groups and node is not self.root:
            node.binding = None
            self._prune(node)

    def _disjunct(
        self, need: Need, condition: Conjunction, binding: Binding, group: Group
    ) -> Disjunct:
        # In a condition on a bound element the first step is that element itself.
        skipped = 1 if need.binding else 0
        keys: dict[_PlacedAtom, None] = {}
        for path in condition.paths:
            for number, step in enumerate(path.steps, 1):
                steps = need.binding + tuple(s.structure for s in path.steps[skipped:number])
                place = self._node(steps)
                for selection in step.selections:
                    keys[place, *self._atom_key(place, binding, selection)] = None
            if len(path.steps) > skipped and not path.steps[-1].selections:
                keys[place, self._check(place, binding, STRUCTURE, None), None, None] = None
        looked_at = tuple(
            (need.binding + kept.steps[skipped:], (kept.kind, kept.attribute))
            for kept in touched(condition)
        )
        for steps, looked in looked_at:
            self._node(steps).touched[looked] += 1
        disjunct = Disjunct(group, tuple(keys), looked_at)
        for number, (_, check, operator, value) in enumerate(keys):
            check.atom(operator, value).disjuncts[disjunct] = 1 << number
        return disjunct

    def _forget(self, disjunct: Disjunct) -> None:
        for place, check, operator, value in disjunct.atoms:
            atom = check.atom(operator, value)
            del atom.disjuncts[disjunct]
            if not atom.disjuncts:
                check.discard(operator, value)
                if not check.atoms:
                    del place.checks[check.binding, check.subject, check.attribute]
                    self._prune(place)
        for steps, looked in disjunct.touched:
            place = self._node(steps)
            place.touched[looked] -= 1
            if not place.touched[looked]:
                del place.touched[looked]
            self._prune(place)

    def _atom_key(
        self, place: Node, binding: Binding, selection: Expression
    ) -> tuple[Check, Operator | None, object]:
        known = condition_of(selection) or _substring_of(selection)
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
        return found

    def _node(self, steps: Steps) -> Node:
        node = self.root
        for step in steps:
            child = node.children.get(step)
            if child is None:
                child = node.children[step] = Node(self._nodes, node, step)
                self._nodes += 1
            node = child
        return node

    def _prune(self, node: Node) -> None:
        """Take out a node that nothing is at any more, and so on upwards."""
        while node.parent is not None and node.step is not None and not node.is_used:
            del node.parent.children[node.step]
            node = node.parent

    def _new_bit(self) -> int:
        if self._free_bits:
            return self._free_bits.pop()
        bit = self._next_bit
        self._next_bit <<= 1
        return bit


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
    return kept.kind, kept.part if kept.kind is Kind.PART else kept.attribute


_SUBJECTS = {NodeKind.ATTRIBUTE: ATTRIBUTE, NodeKind.TEXT: TEXT, NodeKind.SELF: VALUE}
