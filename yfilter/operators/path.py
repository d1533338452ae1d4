# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Path: a location path on the columns of a message.

A step is a row of STEP_WIDTH numbers, its CODE, the NAME (symbol or attribute) that it asks for,
whether its predicates are about positions, POSITIONAL, and whether nodes of one context can be
reached from another, SEVERAL::

    CHILD BELOW         elements           SELF_AND_BELOW   what // stands for before a position
    ATTRIBUTE ATTRIBUTES_BELOW             TEXT TEXTS_BELOW
    FILTER PARENT and the axes SELF_AXIS to PRECEDING_SIBLING

Whether a path selects anything is asked depth first, up to the first node, where at most one step
can reach a node in several ways; else, and where all nodes are wanted, step by step, with each node
once (``collect``).
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from yfilter.index.columns import ints
from yfilter.language.nodes import Atom, DynamicError, Untyped, Value
from yfilter.language.query_ast import Operator as Relation

if cython.compiled:
    from cython.cimports.yfilter.operators.message_columns import MessageColumns
    from cython.cimports.yfilter.operators.operator import Operator
    from cython.cimports.yfilter.operators.scratch import Scratch
    from cython.cimports.yfilter.operators.value_tests import ValueTest, compares
else:
    from yfilter.operators.message_columns import MessageColumns
    from yfilter.operators.operator import Operator
    from yfilter.operators.scratch import (
        KIND_ATTRIBUTE,
        KIND_ELEMENT,
        KIND_MASK,
        KIND_SHIFT,
        KIND_TEXT,
        KINDS,
        ROOT,
        Scratch,
    )
    from yfilter.operators.value_tests import ValueTest, compares
from yfilter.operators.value_tests import RELATIONS

if not cython.compiled:
    STEP_CODE, STEP_NAME, STEP_POSITIONAL, STEP_SEVERAL, STEP_WIDTH = range(5)

    CHILD, BELOW, SELF_AND_BELOW = range(3)
    ATTRIBUTE, ATTRIBUTES_BELOW, TEXT, TEXTS_BELOW = range(3, 7)
    FILTER, PARENT = 7, 8
    SELF_AXIS, PARENT_AXIS, BELOW_OR_SELF, ANCESTOR, ANCESTOR_OR_SELF = range(9, 14)
    FOLLOWING_SIBLING, PRECEDING_SIBLING = 14, 15

    FROM_CONTEXT, FROM_MESSAGE, FROM_VARIABLE, FROM_NODES = range(4)

# A code from which a node can be reached from several contexts.
_SEVERAL_WAYS = frozenset(
    (
        *(BELOW, SELF_AND_BELOW, ATTRIBUTES_BELOW, TEXTS_BELOW, PARENT, PARENT_AXIS),
        *(BELOW_OR_SELF, ANCESTOR, ANCESTOR_OR_SELF, FOLLOWING_SIBLING, PRECEDING_SIBLING),
    )
)


class Variable:
    """A variable that ranges over nodes: the one at hand."""

    def __init__(self) -> None:
        self.node = ROOT


class Position(Operator):
    """A predicate on the position of a node: ``position() relation number``, or, ``from_last``,
    ``position() relation last() - number``."""

    def __init__(self, relation: Relation, number: float, from_last: bool = False) -> None:
        super().__init__()
        self._relation = RELATIONS[relation]
        self._number = number
        self._from_last = from_last

    def accepts(self, position: cython.longlong, size: cython.longlong) -> cython.bint:
        number: cython.double = size - self._number if self._from_last else self._number
        return compares(position, self._relation, number)


class PathStep(NamedTuple):
    """``name``: a symbol, or the number of an attribute, 0 for any."""

    code: int
    name: int
    predicates: tuple[Operator, ...]


class Nodes(Operator):
    """Whatever selects nodes: they are pushed on the stack of the scratch."""

    def __init__(self, scratch: Scratch, parts: Iterable[Operator] = ()) -> None:
        super().__init__(parts)
        self.scratch = scratch

    def collect(self, node: cython.longlong) -> cython.int:
        """Push all nodes, in document order, each once; where they begin on the stack."""
        raise NotImplementedError


class Union(Nodes):
    """``a | b``."""

    def __init__(self, scratch: Scratch, parts: Sequence[Nodes]) -> None:
        super().__init__(scratch, parts)
        self._parts = list(parts)

    def collect(self, node: cython.longlong) -> cython.int:
        part: Nodes
        base: cython.int = self.scratch.top
        for part in self._parts:
            part.collect(node)
        self.scratch.tidy(base)
        return base


class Selected(Nodes):
    """``(nodes)[predicate]``, where positions count among all nodes."""

    def __init__(self, source: Nodes, predicates: tuple[Operator, ...] = ()) -> None:
        super().__init__(source.scratch, (source, *predicates))
        self._source = source
        self._predicates = predicates
        self.uses_context = source.uses_context

    def collect(self, node: cython.longlong) -> cython.int:
        base: cython.int = self._source.collect(node)
        _filter(self.scratch, self._predicates, base)
        return base


class Each(Nodes):
    """``left/(right)``: the nodes of ``right`` for each node of ``left``."""

    def __init__(self, left: Nodes, right: Nodes) -> None:
        super().__init__(left.scratch, (left, right))
        self._left = left
        self._right = right
        self.uses_context = left.uses_context

    def collect(self, node: cython.longlong) -> cython.int:
        scratch: Scratch = self.scratch
        base: cython.int = self._left.collect(node)
        end: cython.int = scratch.top
        i: cython.int
        for i in range(base, end):
            self._right.collect(scratch.nodes[i])
        for i in range(end, scratch.top):
            scratch.nodes[base + i - end] = scratch.nodes[i]
        scratch.top = base + scratch.top - end
        scratch.tidy(base)
        return base


class Path(Nodes):
    """The nodes that the steps lead to from the context node, the message, a variable, or the nodes
    of ``source``."""

    def __init__(
        self,
        scratch: Scratch,
        steps: list[PathStep],
        origin: int = FROM_CONTEXT,
        variable: Variable | None = None,
        source: Nodes | None = None,
    ) -> None:
        super().__init__(scratch, (part for step in steps for part in step.predicates))
        self._source = source
        self._origin = origin
        self._variable = Variable() if variable is None else variable
        self._count = len(steps)
        self._steps = ints(STEP_WIDTH * (len(steps) + 1))
        self._predicates = [step.predicates for step in steps]
        several = 0
        for at, step in enumerate(steps):
            several += step.code in _SEVERAL_WAYS
            positional = any(isinstance(part, Position) for part in step.predicates)
            row = STEP_WIDTH * at
            self._steps[row + STEP_CODE] = step.code
            self._steps[row + STEP_NAME] = step.name
            self._steps[row + STEP_POSITIONAL] = positional
            self._steps[row + STEP_SEVERAL] = step.code in _SEVERAL_WAYS
        self._searched = several > 1 or source is not None
        self.uses_context = origin == FROM_CONTEXT
        if source is not None:
            self.uses_context = source.uses_context
            self.free |= source.free
            self.is_costly |= source.is_costly
        if origin == FROM_VARIABLE:
            self.free |= {self._variable}
        self.is_constant = origin == FROM_MESSAGE and not self.free
        self.is_costly |= several > 0
        self._message = 0
        self._values: set[bytes] = set()

    # -- as an operator

    def holds(self, node: cython.longlong) -> cython.bint:
        return self.some(node, None)

    def value(self, node: cython.longlong) -> Value:
        return self.scratch.nodes_from(self.collect(node))

    def items(self, node: cython.longlong) -> list[Atom]:
        scratch: Scratch = self.scratch
        base: cython.int = self.collect(node)
        found: list[Atom] = [
            Untyped(scratch.text(scratch.nodes[i])) for i in range(base, scratch.top)
        ]
        scratch.top = base
        return found

    def first_atom(self, node: cython.longlong) -> Atom | None:
        found: cython.longlong = self.first_node(node)
        return None if found == -1 else Untyped(self.scratch.text(found))

    def count(self, node: cython.longlong) -> cython.int:
        """How many nodes there are."""
        base: cython.int = self.collect(node)
        found: cython.int = self.scratch.top - base
        self.scratch.top = base
        return found

    # -- for other operators

    def own_attribute(self) -> int:
        """The number of the attribute of the context node that the path is, or 0."""
        if self._count != 1 or self._origin != FROM_CONTEXT or self._predicates[0]:
            return 0
        return self._steps[STEP_NAME] if self._steps[STEP_CODE] == ATTRIBUTE else 0

    def start(self, node: cython.longlong) -> cython.longlong:
        """Where the path starts, for a context node."""
        if self._origin == FROM_CONTEXT:
            return node
        return ROOT if self._origin == FROM_MESSAGE else self._variable.node

    def some(self, node: cython.longlong, test: ValueTest | None) -> cython.bint:
        """Whether there is a node, or one whose value a test accepts."""
        scratch: Scratch = self.scratch
        base: cython.int
        i: cython.int
        found: cython.bint = False
        if not self._searched:
            return self._leads(0, self.start(node), test)
        base = self.collect(node)
        if test is None:
            found = scratch.top > base
        else:
            for i in range(base, scratch.top):
                scratch.look_at(scratch.nodes[i])
                if test.accepts(scratch):
                    found = True
                    break
        scratch.top = base
        return found

    def first_node(self, node: cython.longlong) -> cython.longlong:
        """The first node in document order, -1 for none."""
        scratch: Scratch = self.scratch
        base: cython.int = self.collect(node)
        found: cython.longlong = scratch.nodes[base] if scratch.top > base else -1
        scratch.top = base
        return found

    def value_set(self, node: cython.longlong) -> set[bytes]:
        """The values of all nodes, as octets; of a path from the message once a message."""
        scratch: Scratch = self.scratch
        base: cython.int
        i: cython.int
        if self.is_constant and self._message == scratch.message:
            return self._values
        found = set()
        base = self.collect(node)
        for i in range(base, scratch.top):
            scratch.look_at(scratch.nodes[i])
            found.add(scratch.octets[scratch.first : scratch.last])
        scratch.top = base
        if self.is_constant:
            self._values = found
            self._message = scratch.message
        return found

    def collect(self, node: cython.longlong) -> cython.int:
        """Push all nodes, in document order, each once; where they begin on the stack."""
        scratch: Scratch = self.scratch
        base: cython.int = scratch.top
        first: cython.int = base
        end: cython.int
        at: cython.int
        i: cython.int
        code: cython.int
        covered: cython.int
        if self._source is not None:
            self._source.collect(node)
        else:
            scratch.push(self.start(node))
        for at in range(self._count):
            end = scratch.top
            covered = 0
            code = self._steps[STEP_WIDTH * at + STEP_CODE]
            for i in range(first, end):
                node = scratch.nodes[i]
                if (
                    code in (BELOW, ATTRIBUTES_BELOW, TEXTS_BELOW)
                    and not self._steps[STEP_WIDTH * at + STEP_POSITIONAL]
                ):
                    # What is below a node that is below another one has been found.
                    if node >= 0 and node >> KIND_SHIFT < covered:
                        continue
                    if node & KIND_MASK == KIND_ELEMENT and node >= 0:
                        covered = scratch.columns.end[node >> KIND_SHIFT]
                self._step(at, node)
            for i in range(end, scratch.top):
                scratch.nodes[base + i - end] = scratch.nodes[i]
            scratch.top = base + scratch.top - end
            first = base
            if end - base > 1 or code == TEXTS_BELOW or code >= ANCESTOR:
                scratch.tidy(base)
        return base

    def _leads(self, at: cython.int, node: cython.longlong, test: ValueTest | None) -> cython.bint:
        """Whether the steps from one on lead to a node, or to one that a test accepts."""
        scratch: Scratch = self.scratch
        base: cython.int = scratch.top
        i: cython.int
        found: cython.bint = False
        if at == self._count:
            if test is None:
                return True
            scratch.look_at(node)
            return test.accepts(scratch)
        self._step(at, node)
        if at + 1 == self._count and test is None:
            found = scratch.top > base
        else:
            for i in range(base, scratch.top):
                if self._leads(at + 1, scratch.nodes[i], test):
                    found = True
                    break
        scratch.top = base
        return found

    def _step(self, at: cython.int, node: cython.longlong) -> cython.int:
        """Push what one step selects from a node, in the order of its axis."""
        base: cython.int = self.scratch.top
        code: cython.int = self._steps[STEP_WIDTH * at + STEP_CODE]
        name: cython.int = self._steps[STEP_WIDTH * at + STEP_NAME]
        if code <= SELF_AND_BELOW:
            self._push_elements(code, name, node)
        elif code <= TEXTS_BELOW:
            self._push_contents(code, name, node)
        else:
            self._push_others(code, name, node)
        if self._predicates[at] and self.scratch.top > base:
            _filter(self.scratch, self._predicates[at], base)
        return 0

    def _push_elements(
        self, code: cython.int, symbol: cython.int, node: cython.longlong
    ) -> cython.int:
        scratch: Scratch = self.scratch
        columns: MessageColumns = scratch.columns
        element: cython.int = node >> KIND_SHIFT
        child: cython.int
        end: cython.int
        if node & KIND_MASK:
            if code == SELF_AND_BELOW:
                scratch.push(node)
            return 0
        end = columns.elements if element < 0 else columns.end[element]
        child = element + 1
        if code == CHILD:
            while child < end:
                scratch.visits += 1
                if scratch.accepts(symbol, child):
                    scratch.push(KINDS * child)
                child = columns.end[child]
            return scratch.visit(0)
        if code == SELF_AND_BELOW:
            scratch.push(node)
        scratch.visit(end - child)
        for child in range(element + 1, end):
            if scratch.accepts(symbol, child):
                scratch.push(KINDS * child)
        return 0

    def _push_contents(
        self, code: cython.int, attribute: cython.int, node: cython.longlong
    ) -> cython.int:
        """Attributes or text nodes of an element, or of all below it as well."""
        scratch: Scratch = self.scratch
        columns: MessageColumns = scratch.columns
        element: cython.int = node >> KIND_SHIFT
        end: cython.int = element + 1
        i: cython.int
        if node & KIND_MASK:
            return 0
        if code in (ATTRIBUTES_BELOW, TEXTS_BELOW):
            end = columns.elements if element < 0 else columns.end[element]
        element = max(element, 0)
        scratch.visit(end - element)
        while element < end:
            if code <= ATTRIBUTES_BELOW:
                for i in range(
                    columns.attribute_start[element], columns.attribute_start[element + 1]
                ):
                    scratch.visits += 1
                    if attribute == 0 or scratch.attribute[columns.attribute_name[i]] == attribute:
                        scratch.push(KINDS * i + KIND_ATTRIBUTE)
            else:
                i = columns.text_first[element]
                while i >= 0:
                    scratch.visits += 1
                    scratch.push(KINDS * i + KIND_TEXT)
                    i = columns.text_next[i]
            element += 1
        return 0

    def _push_others(
        self, code: cython.int, symbol: cython.int, node: cython.longlong
    ) -> cython.int:
        """What the other axes lead to, in their order."""
        scratch: Scratch = self.scratch
        columns: MessageColumns = scratch.columns
        element: cython.int = node >> KIND_SHIFT
        parent: cython.longlong
        child: cython.int
        end: cython.int
        i: cython.int
        if code == FILTER:
            return scratch.push(node)
        if (
            code in (SELF_AXIS, BELOW_OR_SELF, ANCESTOR_OR_SELF)
            and node & KIND_MASK == KIND_ELEMENT
            and element >= 0
            and scratch.accepts(symbol, element)
        ):
            scratch.push(node)  # the node itself
        if code == BELOW_OR_SELF:
            return self._push_elements(BELOW, symbol, node)
        if code in (PARENT, PARENT_AXIS, ANCESTOR, ANCESTOR_OR_SELF):
            parent = self._parent(node)
            while parent != -1:
                scratch.visits += 1
                if code == PARENT or (
                    parent >= 0 and scratch.accepts(symbol, parent >> KIND_SHIFT)
                ):
                    scratch.push(parent)
                if code in (PARENT, PARENT_AXIS):
                    break
                parent = self._parent(parent)
            return scratch.visit(0)
        if code in (FOLLOWING_SIBLING, PRECEDING_SIBLING) and node & KIND_MASK == KIND_TEXT:
            element = columns.content_next[element]
            child = columns.content_parent[node >> KIND_SHIFT]
        elif node & KIND_MASK == KIND_ELEMENT and element > 0:
            child = columns.parent[element]
        else:
            return 0
        if child < 0:
            return 0
        end = columns.end[child]
        if code == FOLLOWING_SIBLING:
            child = element if node & KIND_MASK else columns.end[element]
            while child < end:
                scratch.visits += 1
                if scratch.accepts(symbol, child):
                    scratch.push(KINDS * child)
                child = columns.end[child]
        elif code == PRECEDING_SIBLING:
            end = scratch.top
            child += 1
            while child < element:
                scratch.visits += 1
                if scratch.accepts(symbol, child):
                    scratch.push(KINDS * child)
                child = columns.end[child]
            for i in range((scratch.top - end) >> 1):
                parent = scratch.nodes[end + i]
                scratch.nodes[end + i] = scratch.nodes[scratch.top - 1 - i]
                scratch.nodes[scratch.top - 1 - i] = parent
        return scratch.visit(0)

    def _parent(self, node: cython.longlong) -> cython.longlong:
        """The element or document above a node, -1 above the document."""
        columns: MessageColumns = self.scratch.columns
        number: cython.int = node >> KIND_SHIFT
        if node == ROOT:
            return -1
        if node & KIND_MASK == KIND_ELEMENT:
            return KINDS * columns.parent[number]
        if node & KIND_MASK == KIND_TEXT:
            return KINDS * columns.content_parent[number]
        number = self.scratch.element_with(number)
        return KINDS * number


@cython.cfunc
@cython.exceptval(-1)
def _filter(scratch: Scratch, predicates: tuple, base: cython.int) -> cython.int:  # type: ignore[type-arg]
    """Keep of the nodes from ``base`` on those that all predicates accept, none by an error."""
    predicate: Operator
    position: Position
    i: cython.int
    kept: cython.int
    size: cython.int
    node: cython.longlong
    for part in predicates:
        kept = base
        size = scratch.top - base
        if isinstance(part, Position):
            position = part
            for i in range(base, scratch.top):
                if position.accepts(i - base + 1, size):
                    scratch.nodes[kept] = scratch.nodes[i]
                    kept += 1
        else:
            predicate = part
            for i in range(base, scratch.top):
                node = scratch.nodes[i]
                try:
                    if not predicate.holds(node):
                        continue
                except DynamicError:
                    continue
                scratch.nodes[kept] = node
                kept += 1
        scratch.top = kept
    return 0
