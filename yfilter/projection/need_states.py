# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""NeedStates: the trie of a NeedTable as a deterministic automaton, made as far as it is needed.

A state is a set of the trie's nodes, each as reached or as a loop (a ``//`` stands behind it), and
has together what is to be done at these nodes.  State 0 is the empty set: nothing below matters.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from collections import Counter
from typing import TypeAlias

from formats.names import QualifiedName
from yfilter.index.columns import grown, ints, octets
from yfilter.index.symbols import SymbolTable
from yfilter.language.query_ast import ANY, NameTest
from yfilter.projection.need_parts import Binding, Check
from yfilter.projection.need_table import Looked, NeedTable, Node

STATES_MAX = 4096  # beyond it they are forgotten before the next message

# Nodes of a state: as reached, or as a loop (True).
Items: TypeAlias = "list[tuple[Node, bool]]"

LOOKS = 1  # flag of a state: it binds or checks
KEEPS = 2  # it keeps, if a group is wanted
TOUCHES = 4  # it keeps, if the element is there


class StateContent:
    """What is to be done at an element in this state."""

    __slots__ = ("bindings", "checks", "items", "kept", "touched")

    def __init__(self, items: Items) -> None:
        self.items = items
        reached = [node for node, loop in items if not loop]
        self.bindings: list[Binding] = [node.binding for node in reached if node.binding]
        self.checks: list[Check] = [check for node in reached for check in node.checks.values()]
        masks: Counter[Looked] = Counter()
        touched: dict[Looked, None] = {}
        for node in reached:
            for looked, mask in node.kept.items():
                masks[looked] |= mask
            touched.update(dict.fromkeys(node.touched))
        self.kept = [(mask, int(kind), test) for (kind, test), mask in masks.items()]
        self.touched = [(int(kind), test) for kind, test in touched]

    @property
    def flags(self) -> int:
        looks = LOOKS if self.bindings or self.checks else 0
        return looks | (KEEPS if self.kept else 0) | (TOUCHES if self.touched else 0)


class NeedStates:
    """``bind`` to the names of a message, then ``follow``; the first state is 1, the document."""

    def __init__(self, table: NeedTable) -> None:
        self._table = table
        self._names: list[QualifiedName] = []
        self.names_version = 0
        self._forget()

    def bind(self, names: list[QualifiedName]) -> cython.int:
        """The names of the message that is to be walked through."""
        i: cython.Py_ssize_t
        if self._version != self._table.version or len(self.contents) > STATES_MAX:
            self._forget()
        count: cython.Py_ssize_t = len(names)
        if count == len(self._names):
            for i in range(count):
                if names[i] is not self._names[i]:
                    break
            else:
                return 0
        self._names = list(names)
        self.names_version += 1
        self._accepted: dict[NameTest | None, bytes] = {}
        self._symbols.translate(names)
        self._label = self._symbols.label
        for i in range(count):
            if self._label[i] >= self._width:
                self._widen(self._label[i])
        return 0

    def follow(self, state: cython.int, name: cython.int) -> cython.int:
        """The state of an element of a name below one in a state."""
        place: cython.Py_ssize_t = state
        place = place * self._width + self._label[name]
        target: cython.int = self._next[place]
        return self._find(state, name) if target < 0 else target

    def accepted(self, test: NameTest | None) -> bytes:
        """For each name of the message whether a test accepts it; None accepts all."""
        found = self._accepted.get(test)
        if found is None:
            found = bytes([_accepts(test, name) for name in self._names])
            self._accepted[test] = found
        return found

    def _forget(self) -> None:
        self._version = self._table.version
        self._symbols = SymbolTable()
        self._names = []
        self._numbers: dict[tuple[int, ...], int] = {}
        self.contents: list[StateContent] = []
        self._width = 64
        self._rows = 64
        self._next = ints(self._width * self._rows)
        self.flags = octets(self._rows)
        self._acquire(self._table.root)
        self._add([])
        self._add([(self._table.root, False)])

    def _acquire(self, root: Node) -> None:
        waiting = [root]
        while waiting:
            for (_, test), child in waiting.pop().children.items():
                self._symbols.acquire(test)
                waiting.append(child)

    def _find(self, state: cython.int, name: cython.int) -> cython.int:
        found = self._names[name]
        content: StateContent = self.contents[state]
        items: Items = []
        for node, loop in content.items:
            for (descendant, test), child in node.children.items():
                if (descendant or not loop) and _accepts(test, found):
                    items.append((child, False))
            if node.loops:
                items.append((node, True))
        target = self._add(items)
        self._next[state * self._width + self._label[name]] = target
        return target

    def _add(self, items: Items) -> cython.int:
        by_number = {2 * node.number + loop: (node, loop) for node, loop in items}
        key = tuple(sorted(by_number))
        number = self._numbers.get(key)
        if number is not None:
            return number
        number = self._numbers[key] = len(self.contents)
        content = StateContent([by_number[item] for item in key])
        self.contents.append(content)
        if number >= self._rows:
            self._rows *= 2
            self._next = grown(self._next, self._width * self._rows)
            self.flags = grown(self.flags, self._rows)
        self.flags[number] = content.flags
        place: cython.Py_ssize_t
        for place in range(number * self._width, (number + 1) * self._width):
            self._next[place] = -1 if number else 0
        return number

    def _widen(self, label: cython.int) -> None:
        """Room for larger labels: all transitions are found anew."""
        place: cython.Py_ssize_t
        while self._width <= label:
            self._width *= 2
        self._next = ints(self._width * self._rows)
        for place in range(self._width, self._width * self._rows):
            self._next[place] = -1


def _accepts(test: NameTest | None, name: QualifiedName) -> bool:
    if test is None:
        return True
    return test.namespace in (ANY, name.namespace) and test.local in (ANY, name.local)
