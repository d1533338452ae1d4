# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""NeedStates: the trie of a NeedTable as a lazy DFA, made as far as it is needed.

A state is a set of the trie's nodes, each as reached or as a loop (a ``//`` stands behind it), and
has together what is to be done at these nodes.  State 0 is the empty set: nothing below matters.

A change of a node concerns the states that hold it: what they do is found anew, and where they lead
if it has other children; those that hold a node that is gone go, too.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from collections import Counter
from typing import Any, TypeAlias

from formats.names import QualifiedName
from yfilter.index.columns import grown, ints, octets
from yfilter.language.query_ast import ANY, NameTest
from yfilter.projection.need_parts import Binding, Check
from yfilter.projection.need_table import Looked, NeedTable, Node

STATES_MAX = 4096  # beyond it they are forgotten before the next message
LABELS_MIN = 1024  # of which most may be out of use

# Nodes of a state: as reached, or as a loop (True).
Items: TypeAlias = "list[tuple[Node, bool]]"

LOOKS = 1  # flag of a state: it binds or checks
KEEPS = 2  # it keeps, if a group is wanted
TOUCHES = 4  # it keeps, if the element is there


class StateContent:
    """What is to be done at an element in this state: ``kept`` (groups, kind, test), ``touched``
    (links, kind, test)."""

    __slots__ = ("bindings", "checks", "items", "kept", "touched")

    def __init__(self, items: Items) -> None:
        self.items = items
        self.look()

    def look(self) -> None:
        """At the nodes, whatever was there before."""
        reached = [node for node, loop in self.items if not loop]
        self.bindings: list[Binding] = [node.binding for node in reached if node.binding]
        self.checks: list[Check] = [check for node in reached for check in node.checks.values()]
        kept: Counter[Looked] = Counter()
        touched: Counter[Looked] = Counter()
        for node in reached:
            for looked, groups in node.kept.items():
                kept[looked] |= groups
            for looked, sets in node.touched.items():
                for links in sets:
                    touched[looked] |= links
        self.kept = [(groups, kind, test) for (kind, test), groups in kept.items()]
        self.touched = [(links, kind, test) for (kind, test), links in touched.items()]

    @property
    def flags(self) -> int:
        looks = LOOKS if self.bindings or self.checks else 0
        return looks | (KEEPS if self.kept else 0) | (TOUCHES if self.touched else 0)


class NeedStates:
    """``bind`` to the names of a message, then ``follow``; the first state is 1, the document.

    ``made``: how many states were ever made, ``outdated``: how many of them a change concerned.
    """

    def __init__(self, table: NeedTable) -> None:
        self._table = table
        self._names: list[QualifiedName] = []
        self.names_version = 0
        self.made = 0
        self.outdated = 0
        self._tests = -1
        self._forget()

    def bind(self, names: list[QualifiedName]) -> cython.int:
        """The names of the message that is to be walked through."""
        i: cython.Py_ssize_t
        is_changed: cython.bint = self._tests != self._table.tests
        self._tests = self._table.tests
        if len(self._numbers) > STATES_MAX:
            self._forget()
            is_changed = True
        elif self._table.changed or self._table.pruned:
            self._take_in()
            is_changed = True
        count: cython.Py_ssize_t = len(names)
        if count == len(self._names) and not is_changed:
            for i in range(count):
                if names[i] is not self._names[i]:
                    break
            else:
                return 0
        self._names = list(names)
        self.names_version += 1
        self._accepted: dict[NameTest | None, bytes] = {}
        self._table.symbols.translate(names)
        self._label = self._table.symbols.label
        for i in range(count):
            if self._label[i] >= self._width:
                return self._widen(self._label[i], names)
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
        """All states, and the labels that names have had."""
        table = self._table
        for content in self.contents if self.made else ():
            if content is not None:
                for node, _ in content.items:
                    node.states.clear()
        table.changed.clear()
        table.pruned.clear()
        table.renew_symbols()
        self._names = []
        self._numbers: dict[tuple[int, ...], int] = {}
        self.contents: list[Any] = []  # StateContent, None for a number that is free
        self._free: list[int] = []
        self._width = 64
        self._rows = 64
        self._next = ints(self._width * self._rows)
        self.flags = octets(self._rows)
        self._add([])
        self._add([(table.root, False)])

    def _take_in(self) -> None:
        """The changes of the table since the last message."""
        table = self._table
        dropped: set[int] = set()
        for node in table.pruned:
            dropped.update(node.states)
        looked_at: set[int] = set()
        for node, has_other_children in table.changed.items():
            looked_at.update(node.states)
            if has_other_children:
                for number in node.states:
                    self._clear_row(number)
        table.pruned.clear()
        table.changed.clear()
        for number in dropped:
            self._drop(number)
        for number in looked_at - dropped:
            content: StateContent = self.contents[number]
            content.look()
            self.flags[number] = content.flags
        self.outdated += len(looked_at | dropped)

    def _drop(self, number: cython.int) -> None:
        content: StateContent = self.contents[number]
        for node, _ in content.items:
            node.states.discard(number)
        del self._numbers[_key(content.items)]
        self.contents[number] = None
        self._free.append(number)

    def _clear_row(self, number: cython.int) -> None:
        place: cython.Py_ssize_t
        first: cython.Py_ssize_t = number
        first = first * self._width
        for place in range(first, first + self._width):
            self._next[place] = -1

    def _find(self, state: cython.int, name: cython.int) -> cython.int:
        namespace, local = self._names[name].namespace, self._names[name].local
        wildcards = NameTest(namespace, ANY), NameTest(ANY, local), NameTest(ANY, ANY)
        tests = NameTest(namespace, local), *wildcards
        content: StateContent = self.contents[state]
        items: dict[tuple[Node, bool], None] = {}
        for node, loop in content.items:
            children = node.children
            for test in tests:
                child = None if loop else children.get((False, test))
                if child is not None:
                    items[child, False] = None
                child = children.get((True, test)) if node.descendants else None
                if child is not None:
                    items[child, False] = None
            if node.descendants:
                items[node, True] = None
        target = self._add(list(items))
        place: cython.Py_ssize_t = state
        self._next[place * self._width + self._label[name]] = target
        return target

    def _add(self, items: Items) -> cython.int:
        key = _key(items)
        number = self._numbers.get(key)
        if number is not None:
            return number
        content = StateContent(sorted(items, key=_order))
        if self._free:
            number = self._free.pop()
            self.contents[number] = content
        else:
            number = len(self.contents)
            self.contents.append(content)
        self._numbers[key] = number
        self.made += 1
        for node, _ in items:
            node.states.add(number)
        if number >= self._rows:
            self._rows *= 2
            self._next = grown(self._next, self._width * self._rows)
            self.flags = grown(self.flags, self._rows)
        self.flags[number] = content.flags
        if number:  # from the empty set nothing leads anywhere
            self._clear_row(number)
        return number

    def _widen(self, label: cython.int, names: list[QualifiedName]) -> cython.int:
        """Room for larger labels: all transitions are found anew; or, where most labels are out of
        use, without any."""
        place: cython.Py_ssize_t
        labels: cython.int = self._table.symbols.statistics()["index_labels"]
        if label > LABELS_MIN and label > 4 * labels:
            self._forget()
        else:
            while self._width <= label:
                self._width *= 2
            self._next = ints(self._width * self._rows)
            for place in range(self._width, self._width * self._rows):
                self._next[place] = -1
        self._names = []
        return self.bind(names)


def _order(item: tuple[Node, bool]) -> int:
    return 2 * item[0].number + item[1]


def _key(items: Items) -> tuple[int, ...]:
    return tuple(sorted(map(_order, items)))


def _accepts(test: NameTest | None, name: QualifiedName) -> bool:
    if test is None:
        return True
    return test.namespace in (ANY, name.namespace) and test.local in (ANY, name.local)
