# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Scratch: what operators share while they work on one message.

A node is one number, its own times KINDS and its kind, so that nodes of one kind sort in document
order::

    element n      KINDS * n + KIND_ELEMENT          attribute n    KINDS * n + KIND_ATTRIBUTE
    text node n    KINDS * n + KIND_TEXT             document node  ROOT

Operators push the nodes that they find on a stack, ``nodes`` up to ``top``, and whoever asked them
takes them off again.  ``octets`` from ``first`` to ``last`` is the string value looked at last.

The names of a message are known by symbols (see yfilter/index/symbols.py), in a table that belongs
to the operators: what they ask for makes no new labels in the index.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from array import array

from formats.element_stream import ElementStream
from yfilter.errors import MatchLimitExceeded
from yfilter.index.columns import grown, longs
from yfilter.language.budget import NOT_BEGUN, paced, since
from yfilter.language.evaluation import MessageEvaluator
from yfilter.language.nodes import DOCUMENT, Node, NodeType, element_node
from yfilter.language.profile_limits import EvaluationLimits

if cython.compiled:
    from cython.cimports.yfilter.index.symbols import SymbolTable
    from cython.cimports.yfilter.operators.message_columns import MessageColumns
else:
    from yfilter.index.symbols import SymbolTable
    from yfilter.operators.message_columns import MessageColumns

if not cython.compiled:
    KIND_ELEMENT, KIND_ATTRIBUTE, KIND_TEXT, KIND_MASK, KINDS = range(5)
    KIND_SHIFT = 2
    ROOT = -4
ELEMENT, ATTRIBUTE, TEXT = 0, 1, 2
_FIRST_LOOK = 512  # visits, from 10 ns each to several us, where values are compared
_FIRST_STEP = _FIRST_LOOK // 8
_NOT_BEGUN = NOT_BEGUN


class Scratch:
    """``begin`` a message whose columns are bound; ``message`` counts them."""

    def __init__(self, columns: MessageColumns, limits: EvaluationLimits) -> None:
        self.columns = columns
        self.symbols = SymbolTable()
        self.message = 0
        self.nodes = longs(256)
        self.top = 0
        self.visits = 0
        self.visits_max = limits.visits_max
        self.clock_at = 0
        self.began = self._looked = _NOT_BEGUN
        self._step = _FIRST_STEP
        self.octets = b""
        self._limits = limits
        self._evaluator: MessageEvaluator | None = None
        self._is_spent = False
        self.begin(ElementStream())

    def begin(self, stream: ElementStream) -> None:
        """A new message, which the columns are bound to."""
        symbols: SymbolTable = self.symbols
        symbols.translate(stream.names)
        self.label = symbols.label
        self.attribute = symbols.attribute
        self.exact = symbols.exact
        self.in_namespace = symbols.in_namespace
        self.any_namespace = symbols.any_namespace
        self.message += 1
        self.top = 0
        self._evaluator = None

    def restart(self, spent: cython.longlong = 0) -> cython.int:
        """A new evaluation, with a budget of its own, of which some is spent."""
        self.visits = spent
        self.clock_at = min(spent + _FIRST_LOOK, self.visits_max)
        self.began = _NOT_BEGUN
        self._looked = _NOT_BEGUN
        self._step = _FIRST_STEP
        self.top = 0
        self._is_spent = True
        return 0

    def accepts(self, symbol: cython.int, element: cython.int) -> cython.bint:
        """Whether a name test accepts the name of an element."""
        label: cython.int
        if symbol == 0:
            return True
        label = self.label[self.columns.name[element]]
        return (
            self.exact[label] == symbol
            or self.in_namespace[label] == symbol
            or self.any_namespace[label] == symbol
        )

    def visit(self, count: cython.longlong) -> cython.int:
        """So many nodes are looked at.  Raises MatchLimitExceeded."""
        self.visits += count
        if self.visits > self.clock_at:
            self._look()
        return 0

    def _look(self) -> cython.int:
        """At what is left, and at the clock."""
        if self.visits > self.visits_max:
            raise MatchLimitExceeded(
                "too-many-visits", "a condition looks at too many nodes of this message"
            )
        now: cython.double = since(self.began, self._limits)
        if self.began == _NOT_BEGUN:
            self.began = now
        elif self._looked != _NOT_BEGUN:
            self._step = paced(self._step, now - self._looked)
        self._looked = now
        self.clock_at = min(self.visits + self._step, self.visits_max)
        return 0

    def push(self, node: cython.longlong) -> cython.int:
        if self.top == len(self.nodes):
            self.nodes = grown(self.nodes, 2 * self.top)
        self.nodes[self.top] = node
        self.top += 1
        return 0

    def tidy(self, base: cython.int) -> cython.int:
        """Bring the nodes from ``base`` on into document order, each once."""
        nodes: cython.longlong[::1] = self.nodes
        i: cython.int
        j: cython.int
        node: cython.longlong
        kept: cython.int = base
        i = base + 1
        while i < self.top and nodes[i - 1] < nodes[i]:
            i += 1
        if i >= self.top:
            return 0
        if self.top - base > 24:
            ordered = array("q", sorted(nodes[base : self.top]))
            for i in range(len(ordered)):
                nodes[base + i] = ordered[i]
        else:
            for i in range(base + 1, self.top):
                node = nodes[i]
                j = i
                while j > base and nodes[j - 1] > node:
                    nodes[j] = nodes[j - 1]
                    j -= 1
                nodes[j] = node
        for i in range(base, self.top):
            if kept == base or nodes[kept - 1] != nodes[i]:
                nodes[kept] = nodes[i]
                kept += 1
        self.top = kept
        return 0

    def look_at(self, node: cython.longlong) -> cython.int:
        """Set ``octets``, ``first`` and ``last`` to the string value of a node."""
        columns: MessageColumns = self.columns
        number: cython.int = node >> KIND_SHIFT
        kind: cython.int = node & KIND_MASK
        if kind == KIND_ATTRIBUTE:
            self.octets = columns.attribute_values
            self.first = columns.attribute_offset[number]
            self.last = columns.attribute_offset[number + 1]
        elif kind == KIND_TEXT:
            self.octets = columns.content_values
            self.first = columns.content_offset[number]
            self.last = columns.content_offset[number + 1]
        elif columns.only_text:
            number = max(number, 0)
            self.octets = columns.content_values
            self.first = columns.content_offset[columns.within_first[number]]
            self.last = columns.content_offset[columns.within_last[number]]
        else:
            self.octets = columns._stream.string_value(max(number, 0)).encode()
            self.first = 0
            self.last = len(self.octets)
        return 0

    def text(self, node: cython.longlong) -> str:
        """The string value of a node."""
        self.look_at(node)
        return self.octets[self.first : self.last].decode()

    def node_of(self, node: cython.longlong) -> object:
        """The node as the interpreter knows it."""
        number: cython.int = node >> KIND_SHIFT
        kind: cython.int = node & KIND_MASK
        if kind == KIND_ELEMENT:
            return DOCUMENT if number < 0 else element_node(number)
        if kind == KIND_TEXT:
            return Node(self.columns.content_next[number], NodeType.CONTENT, number)
        return Node(self.element_with(number), NodeType.ATTRIBUTE, number)

    def nodes_from(self, base: cython.int) -> object:
        """The nodes from ``base`` on as the interpreter knows them, taken off the stack."""
        found = [self.node_of(self.nodes[i]) for i in range(base, self.top)]
        self.top = base
        return found

    def evaluator(self) -> MessageEvaluator:
        """The interpreter on the message at hand."""
        if self._evaluator is None:
            self._evaluator = MessageEvaluator(self.columns._stream, self._limits)
        elif self._is_spent:
            self._evaluator.renew()
        if self._is_spent:
            self._evaluator.began = self.began
        self._is_spent = False
        return self._evaluator

    def element_with(self, attribute: cython.int) -> cython.int:
        """The element that an attribute belongs to."""
        low, high = 0, self.columns.elements - 1
        starts = self.columns._stream.attribute_start
        while low < high:
            middle = (low + high + 1) >> 1
            if starts[middle] <= attribute:
                low = middle
            else:
                high = middle - 1
        return low
