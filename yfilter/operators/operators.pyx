"""Operators: the compiled expressions that the automaton does not decide.

Scratch holds the nodes that an evaluation looks at.  Path leads to nodes, value tests and
conditions decide on them, and the other operators give values; compiler.py makes them of an
expression.  OperatorTable keeps each expression once, with a count of its users.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from math import isnan, nan
from typing import Any, NamedTuple

from formats.element_stream import ElementStream
from formats.names import QualifiedName
from yfilter.errors import MatchLimitExceeded
from yfilter.index.columns import doubles, grown, ints, longs, octets as zero_octets
from yfilter.language.atoms import (
    arithmetic,
    atom_text,
    cast,
    compare,
    is_number,
    negate,
    order_sign,
    to_double,
)
from yfilter.language.budget import (
    MUCH,
    NOT_BEGUN,
    POINTER_BYTES,
    paced,
    since,
    too_many_tuples,
    too_many_visits,
    too_much_time,
)
from yfilter.language.query_ast import MIRRORED
from yfilter.language.evaluator import Evaluator
from yfilter.language.evaluator import effective_boolean
from yfilter.language.function_library import (
    STRING_FUNCTIONS,
    applied,
    identity_of,
    integers,
    rounded,
)
from yfilter.language.functions import FUNCTIONS, ArgumentKind, ResultKind, Signature
from yfilter.language.evaluator import as_declared, is_of_type, some_pair
from yfilter.language.nodes import (
    DOCUMENT,
    NODES,
    Atom,
    DynamicError,
    Item,
    Node,
    NodeType,
    Untyped,
    Value,
    element_node,
)
from yfilter.language.numbers import is_exact, parse_double
from yfilter.language.patterns import Pattern
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.query_ast import Expression, NameTest, Operator as Relation, SequenceType
from yfilter.language.query_text import unparse
from yfilter.language.words import spaced

from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.math cimport ceil, fabs, floor, fmod, isfinite, trunc
from libc.string cimport memcmp, memcpy

from yfilter.index.automaton cimport SymbolTable
from yfilter.index.value_hash cimport value_hash


# -------------------------------------------------------------------------------------------------
# Numbers as they stand in messages: from bytes to xs:double.


cdef double _NAN = float("nan")
_POWERS = doubles(23)
for _power in range(23):
    _POWERS[_power] = 10.0**_power
cdef double[::1] _powers = _POWERS


cdef double number_in(const unsigned char* values, int first, int last) except? -1:
    """The number that ``values[first:last]`` is, NaN if it is none."""
    # PERF: up to 15 digits and 22 behind the point the quotient is exact as it stands.
    cdef int octet = 0
    cdef int digits = 0
    cdef int behind = -1
    cdef int place = first
    cdef long long mantissa = 0
    cdef bint negative = False
    cdef double value
    while place < last and _is_space(values[place]):
        place += 1
    if place < last and values[place] in (43, 45):
        negative = values[place] == 45
        place += 1
    while place < last:
        octet = values[place]
        if 48 <= octet <= 57:
            mantissa = 10 * mantissa + (octet - 48)
            digits += 1
            if behind >= 0:
                behind += 1
            if digits > 15:
                return _any_number(bytes(values[first:last]))
        elif octet == 46 and behind < 0:
            behind = 0
        else:
            break
        place += 1
    while place < last and _is_space(values[place]):
        place += 1
    if place < last:
        # An exponent, INF, or no number: most words are none.
        if octet in (69, 101) if digits else octet == 73:
            return _any_number(bytes(values[first:last]))
        return _NAN
    if digits == 0:
        return _NAN
    value = mantissa
    if behind > 0:
        value = value / _powers[behind]
    return -value if negative else value


def _any_number(value: bytes) -> float:
    number = parse_double(value.decode())
    return _NAN if number is None else number


cdef inline bint _is_space(int octet) noexcept:
    return octet in (9, 10, 13, 32)


# -------------------------------------------------------------------------------------------------
# MessageColumns: the columns of one message, for compiled code.
#
# Those of the element stream, and what is found in one pass over its content: the text nodes of
# each element as a chain (``text_first`` of an element, ``text_next`` of a text node, -1 at the
# end), and the content within each element, from ``within_first`` to before ``within_last``.
#
# The string value of an element is one run of bytes, ``text_values`` from ``text_offset`` of the
# first to that of the last content within: those of the content itself, unless a comment or
# processing instruction lies anywhere (``only_text`` is false then).
#
# Behind the rows of the message stand those of the trees that were constructed, one tree behind the
# other, so that one number is a node of any of them.  In front of each tree is one row of each
# kind: that of the elements is its document node, if it has one.  Names of elements and parents
# beside those of a message:

cdef enum:
    _DOCUMENT_NAME = -1  # the name of a row that is a document
    _NO_NAME = -2  # the name of one that is no node
    _NO_PARENT = -2


cdef inline void _set(const int[::1] column, int at, int value) noexcept:
    (<int*>&column[at])[0] = value


cdef int _copy(
    const int[::1] source, int first, int last, const int[::1] target, int at, int shift
) noexcept:
    """Rows of a stream as rows of one's own, which count from elsewhere."""
    cdef int i
    for i in range(first, last):
        _set(target, at + i - first, source[i] + shift)
    return 0


cdef class TreeColumns:
    """A tree behind a message: where its rows are, and the values that they point into."""


cdef class MessageColumns:
    """``bind_columns`` to one message after another; the columns of its own are kept."""

    def __init__(self) -> None:
        self.elements = self.attributes = self.contents = 0
        self.names: list[QualifiedName] = []
        self._trees: list[TreeColumns] = []
        self.deepest = 0
        self.text_first = self.within_first = self.within_last = ints(258)
        self.text_next = ints(1025)
        self.within_first = ints(258)
        self.within_last = ints(258)

    cpdef int bind_columns(self, stream) except -1:
        """Look at a message."""
        cdef int element
        self._stream = stream
        self.elements = len(stream)
        self.name = stream.element_name
        self.parent = stream.element_parent
        self.depth = stream.element_depth
        self.end = stream.element_end
        self.attribute_start = stream.attribute_start
        self.attribute_name = stream.attribute_name
        self.attribute_offset = stream.attribute_offset
        self.attribute_values = stream.attribute_values
        self.content_kind = stream.content_kind
        self.content_parent = stream.content_parent
        self.content_next = stream.content_next
        self.content_offset = stream.content_offset
        self.content_values = stream.content_values
        self.attributes = len(stream.attribute_name)
        self.contents = len(stream.content_kind)
        self.drop_trees()
        if self.elements >= len(self.text_first) - 1:
            self.text_first = ints(2 * self.elements + 2)
            self.within_first = ints(2 * self.elements + 2)
            self.within_last = ints(2 * self.elements + 2)
        if self.contents > len(self.text_next):
            self.text_next = ints(2 * self.contents + 1)
        self.deepest = 0
        for element in range(self.elements):
            self.deepest = max(self.deepest, self.depth[element])
        self.only_text = self._link_contents(0, self.elements, 0, self.contents)
        self.text_values, self.text_offset = self.content_values, self.content_offset
        if not self.only_text:
            self.text_values, self.text_offset = _texts_alone(
                self.content_values, self.content_kind, self.content_offset, 0, self.contents
            )
        return 0

    cdef bint _link_contents(self, int first, int end, int content, int last) except -1:
        """Of rows of elements the text nodes of each as a chain, and the content within each as a
        range; whether all of the content is text."""
        cdef int element, parent
        cdef int start = content
        cdef bint only_text = True
        for element in range(first, end):
            self.text_first[element] = -1
            while content < last and self.content_next[content] <= element:
                content += 1
            self.within_first[element] = content
            self.within_last[element] = content
        for content in range(last - 1, start - 1, -1):
            parent = self.content_parent[content]
            if parent < 0:
                continue
            self.within_last[parent] = max(self.within_last[parent], content + 1)
            if self.content_kind[content] == 0:
                self.text_next[content] = self.text_first[parent]
                self.text_first[parent] = content
            else:
                only_text = False
        for element in range(end - 1, first, -1):
            parent = self.parent[element]
            self.within_last[parent] = max(self.within_last[parent], self.within_last[element])
        return only_text

    # -- trees

    cdef int drop_trees(self) except -1:
        """There are no rows but those of the message."""
        if self._stream is not None:
            self.names = self._stream.names
        self._trees.clear()
        self._elements_used, self._contents_used = self.elements, self.contents
        self._attributes_used = self.attributes
        self._numbers_of_names = None
        return 0

    cdef bint add_tree(self, stream, top) except -1:
        """A tree of ``top``, a Node of a stream, with all below it; whether it has names that no
        tree in front has."""
        cdef TreeColumns tree = TreeColumns()
        cdef int names = len(self.names)
        cdef int row = self._elements_used  # in front of its elements
        cdef int element, element_end, attribute, attribute_end, content, content_end, i
        cdef bint is_alone = top.type in (NodeType.ATTRIBUTE, NodeType.CONTENT)
        cdef bint is_document = top.type is NodeType.DOCUMENT
        element = element_end = max(top.position, 0)
        attribute = attribute_end = content = content_end = 0
        if is_alone and top.type is NodeType.ATTRIBUTE:
            attribute, attribute_end = top.number, top.number + 1
        elif is_alone:
            content, content_end = top.number, top.number + 1
        else:
            element_end = len(stream) if is_document else stream.element_end[element]
            attribute = stream.attribute_start[element]
            attribute_end = stream.attribute_start[element_end]
            content_end = len(stream.content_kind)
            if not is_document:
                within = stream.content_within(element)
                content, content_end = within.start, within.stop
        tree.number = 1 + len(self._trees)
        tree.element, tree.content = row, self._contents_used + 1
        tree.elements = row - element + (top.type is not NodeType.ATTRIBUTE)
        tree.attributes = self._attributes_used + 1 - attribute
        tree.contents = tree.content - content
        tree.attribute_values, tree.content_values = stream.attribute_values, stream.content_values
        self._elements_used = row + 1 + element_end - element
        self._attributes_used = tree.attributes + attribute_end
        self._contents_used = tree.contents + content_end
        self._make_room()
        self._put_rows(tree, stream, element, element_end)
        for i in range(attribute, attribute_end):
            name = stream.names[stream.attribute_name[i]]
            _set(self.attribute_name, tree.attributes + i, self._name(name))
        _copy(
            stream.attribute_offset, attribute, attribute_end + 1,
            self.attribute_offset, tree.attributes + attribute, 0
        )
        for i in range(content, content_end):
            (<unsigned char*>&self.content_kind[tree.contents + i])[0] = stream.content_kind[i]
        for column, own in (
            (stream.content_parent, self.content_parent), (stream.content_next, self.content_next)
        ):
            _copy(column, content, content_end, own, tree.content, tree.elements)
        _copy(stream.content_offset, content, content_end + 1, self.content_offset, tree.content, 0)
        _set(self.name, row, _DOCUMENT_NAME if is_document else _NO_NAME)
        _set(self.parent, row, _NO_PARENT)
        _set(self.end, row, self._elements_used)
        if is_document:
            tree.top = KINDS * row
        elif not is_alone:
            tree.top = KINDS * (row + 1)
            _set(self.parent, row + 1, _NO_PARENT)
        elif attribute_end:
            tree.top = KINDS * row + tree.attributes + attribute + 1
        else:
            tree.top = KINDS * (row + 1) - CONTENT + tree.content
            _set(self.content_parent, tree.content, _NO_PARENT)
        self._link_contents(
            row + (not is_document), self._elements_used, tree.content, self._contents_used
        )
        tree.text_values, offsets = _texts_alone(
            stream.content_values, stream.content_kind, stream.content_offset, content, content_end
        )
        _copy(offsets, 0, len(offsets), self.text_offset, tree.content, 0)
        self._trees.append(tree)
        return len(self.names) > names

    cdef int _put_rows(self, TreeColumns tree, stream, int first, int end) except -1:
        """The rows of elements of a tree."""
        cdef int at = tree.element + 1
        cdef int i
        if end == first:
            return 0
        _copy(stream.element_parent, first, end, self.parent, at, tree.elements)
        _copy(stream.element_end, first, end, self.end, at, tree.elements)
        _copy(stream.attribute_start, first, end + 1, self.attribute_start, at, tree.attributes)
        for i in range(first, end):
            _set(self.name, at + i - first, self._name(stream.names[stream.element_name[i]]))
        return 0

    cdef int _name(self, name) except -1:
        """The number of a name of a tree."""
        if self._numbers_of_names is None:
            self.names = list(self.names)  # no more those of the stream
            self._numbers_of_names = {name: number for number, name in enumerate(self.names)}
        number = self._numbers_of_names.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number

    cdef int _make_room(self) except -1:
        """Columns of one's own, with room for the rows of all trees."""
        cdef int rows = 2 * self._elements_used + 2
        if self._elements_used >= len(self.name):
            self.name = grown(self.name, rows)
            self.parent = grown(self.parent, rows)
            self.end = grown(self.end, rows)
            self.attribute_start = grown(self.attribute_start, rows)
        if self._elements_used >= len(self.text_first):
            self.text_first = grown(self.text_first, rows)
            self.within_first = grown(self.within_first, rows)
            self.within_last = grown(self.within_last, rows)
        rows = 2 * self._attributes_used + 2
        if self._attributes_used >= len(self.attribute_name):
            self.attribute_name = grown(self.attribute_name, rows)
            self.attribute_offset = grown(self.attribute_offset, rows)
        rows = 2 * self._contents_used + 2
        if self._contents_used >= len(self.content_kind):
            self.content_kind = grown(self.content_kind, rows)
            self.content_parent = grown(self.content_parent, rows)
            self.content_next = grown(self.content_next, rows)
            self.content_offset = grown(self.content_offset, rows)
            self.text_offset = grown(self.text_offset, rows)
        if self._contents_used >= len(self.text_next):
            self.text_next = grown(self.text_next, rows)
        return 0

    cdef TreeColumns tree_of(self, long long node):
        """The tree that a node is in; None for one of the message."""
        cdef long long content = _within(node) + CONTENT
        cdef bint is_content = _within(node) < 0
        cdef int position = _position(node)
        cdef int low = 0
        cdef int high = len(self._trees)
        cdef int middle
        cdef TreeColumns tree
        while low < high:
            middle = (low + high) >> 1
            tree = self._trees[middle]
            if tree.content <= content if is_content else tree.element <= position:
                low = middle + 1
            else:
                high = middle
        return None if low == 0 else self._trees[low - 1]


cdef tuple _texts_alone(
    bytes content, const unsigned char[::1] kind, const int[::1] offset, int first, int last
):
    """Of a range of content the octets that are text, for comments and processing instructions are
    no part of a string value, and where each begins."""
    cdef const unsigned char[::1] values = content
    cdef unsigned char[::1] texts
    cdef int[::1] offsets = ints(last - first + 1)
    cdef int i, octet
    cdef int size = 0
    cdef bint only_text = True
    for i in range(first, last):
        only_text &= kind[i] == 0
    if only_text:
        return content, offset[first : last + 1]
    texts = bytearray(offset[last] - offset[first])
    for i in range(first, last):
        if kind[i] == 0:
            for octet in range(offset[i], offset[i + 1]):
                texts[size] = values[octet]
                size += 1
        offsets[i - first + 1] = size
    return bytes(texts[:size]), offsets


# -------------------------------------------------------------------------------------------------
# Scratch: the state that operators share while they work on one message.
#
# A node is one number, so that nodes of all kinds sort in document order.  It has the position of
# the node in its upper half, as the Node of nodes.py, and in the lower one::
#
#     element n        KINDS * n                   attribute m of it    KINDS * n + m + 1
#     content c, in front of element n             KINDS * n - CONTENT + c
#     document node    ROOT, which is KINDS * -1   that of a tree, in front of it: KINDS * n
#
# Operators push the nodes that they find on a stack, ``nodes`` up to ``top``, and whoever asked
# them takes them off again.  ``octets`` from ``first`` to ``last`` is the string value looked at
# last.
#
# The names of a message are known by symbols (see yfilter/index/symbols.py), in a table that
# belongs to the operators, so that their names make no new labels in the index.

cdef enum:
    _FIRST_LOOK = 512  # visits, from 10 ns each to several us, where values are compared
    _FIRST_STEP = 64

cpdef enum:
    # Kinds of nodes, as bits; those of content in the order of ContentKind.
    ELEMENTS = 1
    ATTRIBUTES = 2
    DOCUMENTS = 4
    TEXTS = 8
    COMMENTS = 16
    INSTRUCTIONS = 32
    CONTENTS = 56
    ANY_KIND = 63


cdef double _NOT_BEGUN = NOT_BEGUN


cdef class Scratch:
    """``begin`` a message whose columns are bound; ``message`` counts them.  ``binding``: the
    variable of the first ``for`` clause of all profiles whose results are made of one element."""

    def __init__(self, columns: MessageColumns, limits: EvaluationLimits) -> None:
        self.columns = columns
        self.symbols = SymbolTable()
        self.message = 0
        self.nodes = longs(256)
        self.top = 0
        self.binding = Variable()
        self.visits = 0
        self.visits_max = limits.visits_max
        self._tuples_max = limits.tuples_max
        self.clock_at = 0
        self.began = self._looked = _NOT_BEGUN
        self._step = _FIRST_STEP
        self.octets = b""
        self._limits = limits
        self._evaluator: Evaluator | None = None
        self._is_spent = False
        self.strict = False
        self.begin()

    def begin(self) -> None:
        """A new message, which the columns are bound to."""
        self.columns.drop_trees()
        self.translate()
        self.message += 1
        self.top = 0
        self._evaluator = None

    def translate(self) -> None:
        """The names of the message and of the trees by the symbols that there are now."""
        cdef SymbolTable symbols = self.symbols
        symbols.translate(self.columns.names)
        self.label = symbols.label
        self.exact = symbols.exact
        self.in_namespace = symbols.in_namespace
        self.any_namespace = symbols.any_namespace

    cpdef int restart(self, long long spent=0) except -1:
        """A new evaluation, with a budget of its own, of which some is spent."""
        self.visits = spent
        self.clock_at = min(spent + _FIRST_LOOK, self.visits_max)
        self.began = _NOT_BEGUN
        self._looked = _NOT_BEGUN
        self._step = _FIRST_STEP
        self.top = 0
        self.position = self.size = 1
        self._tuples_left = self._tuples_max
        self._is_spent = True
        return 0

    cdef int build(self, long long count) except -1:
        """A sequence is about to have so many items more.  Raises MatchLimitExceeded."""
        self.visit(count)
        if count > MUCH:
            self.evaluator().charge_memory(POINTER_BYTES * count)
        return 0

    cdef int bind_tuple(self) except -1:
        """A ``for`` clause binds one more.  Raises MatchLimitExceeded."""
        self._tuples_left -= 1
        if self._tuples_left < 0:
            raise too_many_tuples(self._limits)
        return 0

    cdef bint accepts(self, int symbol, int name) noexcept:
        """Whether a name test accepts a name of the message."""
        cdef int label
        if symbol == 0:
            return True
        label = self.label[name]
        return (
            self.exact[label] == symbol
            or self.in_namespace[label] == symbol
            or self.any_namespace[label] == symbol
        )

    cdef int visit(self, long long count) except -1:
        """So many nodes are looked at.  Raises MatchLimitExceeded."""
        self.visits += count
        if self.visits > self.clock_at:
            self._look()
        return 0

    cdef int _look(self) except -1:
        """At what is left, and at the clock."""
        if self.visits > self.visits_max:
            raise too_many_visits()
        cdef double now = since(self.began, self._limits)
        if self.began == _NOT_BEGUN:
            self.began = now
        elif self._looked != _NOT_BEGUN:
            self._step = paced(self._step, now - self._looked)
        self._looked = now
        self.clock_at = min(self.visits + self._step, self.visits_max)
        return 0

    cdef int push(self, long long node) except -1:
        if self.top == len(self.nodes):
            self.nodes = grown(self.nodes, 2 * self.top)
        self.nodes[self.top] = node
        self.top += 1
        return 0

    cdef int turn(self, int base) except -1:
        """Turn the order of the nodes from ``base`` on."""
        cdef int low = base
        cdef int high = self.top - 1
        while low < high:
            self.nodes[low], self.nodes[high] = self.nodes[high], self.nodes[low]
            low += 1
            high -= 1
        return 0

    cdef int tidy(self, int base) except -1:
        """Bring the nodes from ``base`` on into document order, each once."""
        cdef long long[::1] nodes = self.nodes
        cdef int i, j
        cdef long long node
        cdef int kept = base
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

    cdef bint passes(self, int test, int symbol, long long node) noexcept:
        """Whether a node is of a kind and a name."""
        cdef int element = _position(node)
        cdef long long within = _within(node)
        if within < 0:
            return test & (TEXTS << self.columns.content_kind[within + CONTENT])
        if within > 0:
            return test & ATTRIBUTES and self.accepts(
                symbol, self.columns.attribute_name[within - 1]
            )
        if element < 0 or self.columns.name[element] < 0:
            return test & DOCUMENTS
        return test & ELEMENTS and self.accepts(symbol, self.columns.name[element])

    cdef long long parent(self, long long node) except -2:
        """The element or document above a node, -1 if there is none."""
        cdef long long within = _within(node)
        cdef int parent
        if within > 0:
            return -1 if self.columns.name[_position(node)] == _NO_NAME else node - within
        if within < 0:
            parent = self.columns.content_parent[within + CONTENT]
        else:
            parent = _NO_PARENT if node == ROOT else self.columns.parent[_position(node)]
        return -1 if parent == _NO_PARENT else KINDS * parent

    cdef long long root(self, long long node) except -2:
        """The node of its tree that nothing is above."""
        cdef TreeColumns tree = self.columns.tree_of(node)
        return ROOT if tree is None else tree.top

    cdef long long behind(self, long long node) noexcept:
        """The least number that a node behind a node, and not within it, can have."""
        cdef int element = _position(node)
        if _within(node):
            return node + 1
        if element < 0:
            return KINDS * self.columns.elements - CONTENT + self.columns.contents
        return (
            KINDS * self.columns.end[element] - CONTENT + self.columns.within_last[element]
        )

    cdef int look_at(self, long long node) except -1:
        """Set ``octets``, ``first`` and ``last`` to the string value of a node, and whether that
        ``is_untyped``."""
        cdef MessageColumns columns = self.columns
        cdef int number = max(_position(node), 0)
        cdef long long within = _within(node)
        cdef bint is_of_tree = number >= columns.elements and columns._trees
        cdef TreeColumns tree = columns.tree_of(node) if is_of_tree else None
        self.is_untyped = True
        if within > 0:
            number = within - 1
            self.octets = columns.attribute_values if tree is None else tree.attribute_values
            self.first = columns.attribute_offset[number]
            self.last = columns.attribute_offset[number + 1]
        elif within < 0:
            number = within + CONTENT
            self.octets = columns.content_values if tree is None else tree.content_values
            self.first = columns.content_offset[number]
            self.last = columns.content_offset[number + 1]
            self.is_untyped = columns.content_kind[number] == 0
            if columns.content_kind[number] == 2:
                self.first = self._behind_target(self.first, self.last)
        else:
            self.octets = columns.text_values if tree is None else tree.text_values
            self.first = columns.text_offset[columns.within_first[number]]
            self.last = columns.text_offset[columns.within_last[number]]
        return 0

    cdef int look_at_octets(self, bytes octets) except -1:
        """The same of a string that is no node's."""
        self.octets, self.first, self.last = octets, 0, len(octets)
        self.is_untyped = False
        return 0

    cdef int _behind_target(self, int first, int last) except -1:
        """Where the data of a processing instruction begins, which stands behind its target."""
        cdef int space = self.octets.find(b" ", first, last)
        return last if space < 0 else space + 1

    cdef str text(self, long long node):
        """The string value of a node."""
        self.look_at(node)
        return self.octets[self.first : self.last].decode()

    cdef object atom(self, long long node):
        """The atomic value of a node."""
        text = self.text(node)
        return Untyped(text) if self.is_untyped else text

    cdef str target(self, long long node):
        """The target of a processing instruction; nothing for other nodes."""
        cdef int number = _within(node) + CONTENT
        if _within(node) >= 0 or self.columns.content_kind[number] != 2:
            return ""
        self.look_at(node)
        found = self.octets[self.columns.content_offset[number] : self.last]
        return found.partition(b" ")[0].decode()

    cdef double number(self) except? -1:
        """The value looked at last as xs:double; DynamicError if it is none."""
        cdef double number = number_in(self.octets, self.first, self.last)
        if not self.is_untyped or (
            number != number and self.octets[self.first : self.last].strip() != b"NaN"
        ):
            raise DynamicError("FORG0001", "a value is no number")
        return number

    def number_of(self, node: Node) -> int:
        """A node of the message, or of a tree of the evaluator, as operators know it."""
        cdef long long position, number
        cdef TreeColumns tree
        position, type_, number, at = node
        if at:
            if at > len(self.columns._trees):
                self._adopt(at)
            tree = self.columns._trees[at - 1]
            position += tree.elements
            number += tree.contents if type_ is NodeType.CONTENT else tree.attributes
        if type_ is NodeType.CONTENT:
            return KINDS * position - CONTENT + number
        return KINDS * position + (number + 1 if type_ is NodeType.ATTRIBUTE else 0)

    cdef int _adopt(self, int trees) except -1:
        """Give the first so many trees of the evaluator columns."""
        cdef bint has_new_names = False
        evaluator = self.evaluator()
        for at in range(len(self.columns._trees) + 1, trees + 1):
            top = evaluator.tops.get(at) or element_node(0, at)
            has_new_names |= self.columns.add_tree(evaluator.streams[at], top)
        if has_new_names:
            self.translate()
        return 0

    cdef object node_of(self, long long node):
        """The node as an item."""
        cdef int element = _position(node)
        cdef long long within = _within(node)
        cdef TreeColumns tree = None
        if element >= self.columns.elements:
            tree = self.columns.tree_of(node)
        if tree is None:
            if within < 0:
                return Node(element, NodeType.CONTENT, within + CONTENT)
            if within > 0:
                return Node(element, NodeType.ATTRIBUTE, within - 1)
            return DOCUMENT if element < 0 else element_node(element)
        at = tree.number
        element -= tree.elements
        if within < 0:
            return Node(element, NodeType.CONTENT, within + CONTENT - tree.contents, at)
        if within > 0:
            return Node(element, NodeType.ATTRIBUTE, within - 1 - tree.attributes, at)
        return element_node(element, at) if element >= 0 else DOCUMENT._replace(tree=at)

    cdef object nodes_from(self, int base):
        """The nodes from ``base`` on as items, taken off the stack."""
        found = [self.node_of(self.nodes[i]) for i in range(base, self.top)]
        self.top = base
        return found

    cdef long long[::1] taken(self, int base):
        """The nodes from ``base`` on, taken off the stack."""
        cdef int count = self.top - base
        cdef long long[::1] found = longs(count)
        if count:
            memcpy(&found[0], &self.nodes[base], 8 * count)
        self.top = base
        return found

    cpdef object evaluator(self):
        """The trees of the message at hand, and the budget of the evaluation."""
        if self._evaluator is None:
            self._evaluator = Evaluator(self.columns._stream, self._limits, strict=self.strict)
        elif self._is_spent:
            self._evaluator.renew()
        if self._is_spent:
            self._evaluator.began = self.began
        self._is_spent = False
        return self._evaluator


# -------------------------------------------------------------------------------------------------
# Value tests: conditions on one string value, on its octets as they stand in the message.
#
# UTF-8 sorts as code points do, so texts are compared without being decoded.  An untyped value
# becomes an xs:double where it is compared with a number; one that is no number compares with none.


RELATIONS = {
    Relation.EQ: 0,
    Relation.NE: 1,
    Relation.LT: 2,
    Relation.LE: 3,
    Relation.GT: 4,
    Relation.GE: 5,
}
_KNOWN_MAX = 65_536  # octets of values of which a test remembers whether it accepts them
_SHORT = 256  # octets of a value that is often spaced again, for another test
_spaced_before = lru_cache(4_096)(spaced)

_NAMES_MAX = 1_024  # names of which a test remembers whether it accepts them
_KNOWN_SIZE = 64  # octets that a value takes beside its own, about


def _made(functions: tuple[Callable[[str], str], ...], value: bytes) -> bytes:
    """The text that functions make of a text, the first one first."""
    text = value.decode()
    for function in functions:
        text = function(text)
    return text.encode()


_made_before = lru_cache(4_096)(_made)


cdef class ValueTest:
    """``accepts`` the value that the scratch looks at."""

    cdef bint accepts(self, Scratch scratch) except -1:
        raise NotImplementedError


cdef class EqualTo(ValueTest):
    """Equal to a text; or not, if that is ``wanted``."""

    cdef bytes _octets
    cdef int _length
    cdef bint _wanted

    def __init__(self, text: str, wanted: bool = True) -> None:
        self._octets = text.encode()
        self._length = len(self._octets)
        self._wanted = wanted

    cdef bint accepts(self, Scratch scratch) except -1:
        cdef const unsigned char* octets = scratch.octets
        cdef const unsigned char* own = self._octets
        cdef int i
        if scratch.last - scratch.first != self._length:
            return not self._wanted
        for i in range(self._length):
            if octets[scratch.first + i] != own[i]:
                return not self._wanted
        return self._wanted


cdef class OneOf(ValueTest):
    """Equal to one of many texts, given as octets."""

    cdef readonly object values

    def __init__(self, values: Iterable[bytes]) -> None:
        self.values = frozenset(values)

    cdef bint accepts(self, Scratch scratch) except -1:
        return scratch.octets[scratch.first : scratch.last] in self.values


cdef class TextTest(ValueTest):
    """A test about a text."""

    cdef bytes _octets

    def __init__(self, text: str) -> None:
        self._octets = text.encode()


cdef class Ordered(TextTest):
    """Before or after a text: ``<``, ``<=``, ``>`` or ``>=``."""

    cdef int _operator

    def __init__(self, relation: Relation, text: str) -> None:
        super().__init__(text)
        self._operator = RELATIONS[relation]

    cdef bint accepts(self, Scratch scratch) except -1:
        value = scratch.octets[scratch.first : scratch.last]
        return compares((value > self._octets) - (value < self._octets), self._operator, 0)


cdef class NumberTest(ValueTest):
    """A number that compares so with another one."""

    cdef int _operator
    cdef readonly double number

    def __init__(self, relation: Relation, number: float) -> None:
        self._operator = RELATIONS[relation]
        self.number = number

    cdef bint accepts(self, Scratch scratch) except -1:
        cdef double value = number_in(scratch.octets, scratch.first, scratch.last)
        if not scratch.is_untyped:
            return False  # a string compares with no number
        if value != value:  # - NaN, or no number, which compares with none
            if self._operator != 1:
                return False
            return scratch.octets[scratch.first : scratch.last].strip(b" \t\n\r") == b"NaN"
        return compares(value, self._operator, self.number)


cdef class Contains(TextTest):
    cdef bint accepts(self, Scratch scratch) except -1:
        cdef int found = scratch.octets.find(self._octets, scratch.first, scratch.last)
        return found >= 0


cdef class StartsWith(TextTest):
    cdef bint accepts(self, Scratch scratch) except -1:
        return scratch.octets.startswith(self._octets, scratch.first, scratch.last)


cdef class EndsWith(TextTest):
    cdef bint accepts(self, Scratch scratch) except -1:
        return scratch.octets.endswith(self._octets, scratch.first, scratch.last)


cdef class LanguageIs(ValueTest):
    """A language of ``xml:lang`` is another one, or a kind of it, in letters of any case."""

    cdef str _asked

    def __init__(self, asked: str) -> None:
        self._asked = asked.lower()

    cdef bint accepts(self, Scratch scratch) except -1:
        language = scratch.octets[scratch.first : scratch.last].decode().lower()
        return language == self._asked or language.startswith(f"{self._asked}-")


cdef class HasWords(ValueTest):
    """One, or every, needle is in the text as words.py spaces it."""

    cdef int _spacing
    cdef list _needles
    cdef bint _every

    def __init__(self, spacing: int, needles: list[bytes], every: bool = False) -> None:
        self._spacing = spacing
        self._needles = needles
        self._every = every

    cdef bint accepts(self, Scratch scratch) except -1:
        cdef bytes needle, text
        value = scratch.octets[scratch.first : scratch.last]
        if scratch.last - scratch.first <= _SHORT:
            text = _spaced_before(value, self._spacing)
        else:
            scratch.visit((scratch.last - scratch.first) >> 6)
            text = spaced(value, self._spacing)
        for needle in self._needles:
            if (needle in text) != self._every:
                return not self._every
        return self._every


cdef class TrueOrFalse(ValueTest):
    """A boolean is equal to one, or not."""

    cdef tuple _accepted

    def __init__(self, value: bool) -> None:
        self._accepted = (b"true", b"1") if value else (b"false", b"0")

    cdef bint accepts(self, Scratch scratch) except -1:
        value = scratch.octets[scratch.first : scratch.last].strip(b" \t\n\r")
        return scratch.is_untyped and value in self._accepted


cdef class Within(ValueTest):
    """The value between two texts is in a text, such as a list of codes between spaces."""

    cdef bytes _text, _before, _after
    cdef object _codes  # the values without such a space

    def __init__(self, text: str, before: str, after: str) -> None:
        self._text = text.encode()
        self._before = before.encode()
        self._after = after.encode()
        codes: list[bytes] = []
        if before == after and len(self._before) == 1:
            codes = self._text.split(self._before)
        self._codes = frozenset(codes[1 : len(codes) - 1])

    cdef bint accepts(self, Scratch scratch) except -1:
        value = scratch.octets[scratch.first : scratch.last]
        if self._codes and self._before not in value:
            return value in self._codes
        scratch.visit(len(self._text) >> 6)
        return self._before + value + self._after in self._text


cdef class LengthTest(NumberTest):
    """The number of characters compares so with a number."""

    cdef bint accepts(self, Scratch scratch) except -1:
        cdef const unsigned char* octets = scratch.octets
        cdef int i
        cdef int count = 0
        for i in range(scratch.first, scratch.last):
            count += octets[i] & 0xC0 != 0x80
        return compares(count, self._operator, self.number)


cdef class Spelled(ValueTest):
    """A test accepts the text that functions make of the value, the first one first."""

    cdef tuple _functions
    cdef ValueTest _test
    cdef bint _is_spacing

    def __init__(self, functions: Iterable[Callable[[str], str]], test: ValueTest) -> None:
        self._functions = tuple(functions)
        self._test = test
        self._is_spacing = self._functions == (STRING_FUNCTIONS["normalize-space"],)

    cdef bint accepts(self, Scratch scratch) except -1:
        cdef bytes made
        cdef int size = scratch.last - scratch.first
        if not (self._is_spacing and _is_spaced(scratch)):
            value = scratch.octets[scratch.first : scratch.last]
            if size <= _SHORT:
                made = _made_before(self._functions, value)
            else:
                scratch.visit(size >> 6)
                made = _made(self._functions, value)
            scratch.look_at_octets(made)
        scratch.is_untyped = False
        return self._test.accepts(scratch)


cdef bint _is_spaced(Scratch scratch) noexcept:
    """Whether normalize-space() leaves the value as it is."""
    cdef const unsigned char* octets = scratch.octets
    cdef int i
    cdef bint is_behind_space = True
    for i in range(scratch.first, scratch.last):
        if octets[i] > 32:
            is_behind_space = False
        elif octets[i] != 32 or is_behind_space:
            return False
        else:
            is_behind_space = True
    return not is_behind_space or scratch.first == scratch.last


cdef class Matches(ValueTest):
    """A regular expression is found in it; answers are remembered by value.

    A search is charged before it is begun, as RE2 cannot be interrupted: MatchLimitExceeded.
    """

    cdef object _pattern
    cdef dict _known
    cdef long long _known_size

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern
        self._known: dict[bytes, bool] = {}
        self._known_size = 0

    cdef bint accepts(self, Scratch scratch) except -1:
        cdef long long size
        value = scratch.octets[scratch.first : scratch.last]
        known = self._known.get(value)
        if known is None:
            known = self._found(scratch, value)
            size = len(value) + _KNOWN_SIZE
            if self._known_size + size > _KNOWN_MAX:
                self._known.clear()
                self._known_size = 0
            if size <= _KNOWN_MAX:
                self._known[value] = known
                self._known_size += size
        cdef bint answer = known
        return answer

    cdef bint _found(self, Scratch scratch, bytes value) except -1:
        cdef bint found
        cdef long long cost = self._pattern.cost(len(value))
        if cost > MUCH:  # whether there is the time for it is for the evaluator's budget to say
            found = self._pattern.search(value.decode(), scratch.evaluator().charge)
        else:
            scratch.visit(cost)
            found = self._pattern.search(value.decode())
        return found


cdef bint compares(double number, int relation, double other) noexcept:
    """Whether a number compares so with another one; ``relation`` as in RELATIONS."""
    if relation == 0:
        return number == other
    if relation == 1:
        return number != other
    if relation == 2:
        return number < other
    if relation == 3:
        return number <= other
    if relation == 4:
        return number > other
    return number >= other


# -------------------------------------------------------------------------------------------------
# Keys: atomic values as columns, which joins, groups and orders look at without an object for each.
#
# A text is a run of octets and a number that is a double exactly is that; any other value, a date
# or a number of more digits, is known by the place of its identity among those of its kind.
#
# Texts and untyped values are equal by their octets, numbers by their double.  A general comparison
# reads an untyped value as a number where the other one is a number: KeyIndex does so.

cdef enum:
    # The kind of a key.
    _UNTYPED = 0
    _TEXT = 1
    _NUMERIC = 2
    _OTHER = 3
    _MISSING = 4

    _FEW_KEYS = 8  # so many items are looked at one by one

# A seed that hides the table's order from authors of messages.
cdef unsigned long long _KEY_SEED = hash("yfilter.operators.keys") & 0xFFFFFFFFFFFF


cdef class Keys:
    """``has``: the kinds of the keys, as bits."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self.count = self.has = 0
        self.kind = ints(16)
        self._first = longs(16)
        self._size = longs(16)
        self._number = doubles(16)
        self._octets = zero_octets(256)
        self._used = 0
        self._atoms: list[Atom] = []  # of the keys that are no texts
        self._known: dict[Any, int] = {}  # the places of identities

    cdef int clear(self) except -1:
        self.count = self.has = 0
        self._used = 0
        self._atoms.clear()
        self._known.clear()
        return 0

    cdef int _room(self, int kind) except -1:
        """Room for one more, of a kind."""
        cdef int size = len(self.kind)
        if self.count == size:
            if size > MUCH:
                self._scratch.evaluator().charge_memory(32 * size)
            self.kind = grown(self.kind, 2 * size)
            self._first = grown(self._first, 2 * size)
            self._size = grown(self._size, 2 * size)
            self._number = grown(self._number, 2 * size)
        self.kind[self.count] = kind
        self.has |= 1 << kind
        self.count += 1
        return self.count - 1

    cdef int put_text(
        self, const unsigned char* values, long long size, bint is_untyped
    ) except -1:
        cdef int at = self._room(_UNTYPED if is_untyped else _TEXT)
        cdef long long room = len(self._octets)
        if self._used + size > room:
            room = 2 * (self._used + size)
            if room > MUCH:
                self._scratch.evaluator().charge_memory(room)
            self._octets = grown(self._octets, room)
        memcpy(&self._octets[0] + self._used, values, size)
        self._first[at] = self._used
        self._size[at] = size
        self._used += size
        return self._scratch.visit(size >> 6)

    cdef int put_value(self, Scratch scratch) except -1:
        """The value that the scratch looks at."""
        cdef const unsigned char* values = scratch.octets
        return self.put_text(
            values + scratch.first, scratch.last - scratch.first, scratch.is_untyped
        )

    cdef int put_number(self, double number) except -1:
        cdef int at = self._room(_NUMERIC)
        self._number[at] = _NAN if number != number else number + 0.0  # of the two zeros one
        self._first[at] = -1
        return 0

    cdef int put_atom(self, atom) except -1:
        cdef Py_ssize_t size
        cdef const char* text
        cdef int at
        if isinstance(atom, str):
            text = PyUnicode_AsUTF8AndSize(atom, &size)
            return self.put_text(<const unsigned char*>text, size, isinstance(atom, Untyped))
        if is_number(atom) and _is_double(atom):
            self.put_number(atom)
            at = self.count - 1
        else:
            at = self._room(_OTHER)
            self._number[at] = self._known.setdefault(identity_of(atom), len(self._known))
        self._first[at] = len(self._atoms)
        self._atoms.append(atom)
        return 0

    cdef int put_missing(self) except -1:
        """No value, where there may be one."""
        self._room(_MISSING)
        return 0

    cdef object atom(self, int at):
        """A value; None for a missing one."""
        if self.kind[at] == _MISSING:
            return None
        if self.kind[at] > _TEXT:
            return self._atoms[self._first[at]]
        text = bytes(self._octets[self._first[at] : self._first[at] + self._size[at]]).decode()
        return Untyped(text) if self.kind[at] == _UNTYPED else text

    cdef double as_number(self, int at) except? -1:
        """An untyped value as a number, NaN if it is none."""
        cdef bytes text
        cdef const unsigned char* values
        if self._size[at] == 0 or self._octets[self._first[at]] > 57:  # no digit, sign or space
            if self._size[at] == 0 or self._octets[self._first[at]] != 73:
                return _NAN
        text = bytes(self._octets[self._first[at] : self._first[at] + self._size[at]])
        values = text
        return number_in(values, 0, len(text))

    cdef unsigned int hashed(self, int at) noexcept:
        cdef int kind = self.kind[at]
        if kind <= _TEXT:
            return value_hash(
                _KEY_SEED, 0, &self._octets[0] + self._first[at], 0, self._size[at]
            )
        if kind == _MISSING:
            return 1
        return value_hash(_KEY_SEED, kind, <const unsigned char*>&self._number[at], 0, 8)

    cdef bint is_same(self, int at, Keys others, int other) noexcept:
        """Whether two keys are the same value; NaN is the same as NaN."""
        cdef int kind = self.kind[at]
        cdef double one, two
        if kind <= _TEXT:
            return (
                others.kind[other] <= _TEXT
                and self._size[at] == others._size[other]
                and memcmp(
                    &self._octets[0] + self._first[at],
                    &others._octets[0] + others._first[other],
                    self._size[at],
                ) == 0
            )
        if kind != others.kind[other]:
            return False
        one, two = self._number[at], others._number[other]
        return kind == _MISSING or one == two or (one != one and two != two)

    cdef int sign(self, int one, int other, bint missing_greatest) except -2:
        """Of two keys of ``order by``: -1, 0 or 1; DynamicError."""
        cdef int kind = self.kind[one]
        cdef long long size
        cdef int found
        if kind <= _TEXT and self.kind[other] <= _TEXT:
            size = min(self._size[one], self._size[other])
            found = memcmp(
                &self._octets[0] + self._first[one], &self._octets[0] + self._first[other], size
            )
            if found == 0:
                found = (self._size[one] > size) - (self._size[other] > size)
            return (found > 0) - (found < 0)
        if kind == _NUMERIC and self.kind[other] == _NUMERIC and (
            self._number[one] == self._number[one] and self._number[other] == self._number[other]
        ):
            return (self._number[one] > self._number[other]) - (
                self._number[one] < self._number[other]
            )
        return order_sign(self.atom(one), self.atom(other), missing_greatest)


cdef bint _is_double(number) except -1:
    """Whether a number loses nothing as xs:double."""
    if isinstance(number, float):
        return True
    try:
        return float(number) == number
    except OverflowError:
        return False


cdef class KeyIndex:
    """Rows of ``width`` keys by a hash of these.

    ``places`` are what stands for each row: nodes, or anything that ascends.
    """

    cdef Keys _keys
    cdef int _width, _mask
    cdef long long[::1] _places
    # Of equal rows the first is their head: the heads of each bucket, by one more than the row, and
    # the rows equal to a head, -1 behind the last.
    cdef int[::1] _buckets, _next, _after, _last
    cdef int[::1] _heads
    cdef int _count
    cdef KeyIndex _numbers  # the untyped keys that are numbers, by those
    cdef Keys _probes

    def __init__(self, Keys keys, long long[::1] places, int width=1) -> None:
        cdef int rows = keys.count // width
        cdef int size = 4
        cdef int row, head, bucket
        while size < 2 * rows:
            size *= 2
        self._keys = keys
        self._places = places
        self._width = width
        self._mask = size - 1
        self._buckets = ints(size)
        self._next = ints(rows)
        self._after = ints(rows)
        self._last = ints(rows)
        self._heads = ints(rows)
        self._count = 0
        for row in range(rows):
            head = self._head(keys, row, &bucket)
            self._after[row] = -1
            if head < 0:
                self._next[row] = self._buckets[bucket]
                self._buckets[bucket] = row + 1
                self._last[row] = row
                self._heads[self._count] = row
                self._count += 1
            else:
                self._after[self._last[head]] = row
                self._last[head] = row

    cdef int _head(self, Keys keys, int row, int* bucket) noexcept:
        """The first of the rows that are the same as one, -1 for none."""
        cdef unsigned int hashed = 0
        cdef int width = self._width
        cdef int i, found
        for i in range(row * width, row * width + width):
            hashed = 31 * hashed + keys.hashed(i)
        bucket[0] = hashed & self._mask
        found = self._buckets[bucket[0]] - 1
        while found >= 0:
            for i in range(width):
                if not self._keys.is_same(found * width + i, keys, row * width + i):
                    break
            else:
                return found
            found = self._next[found] - 1
        return -1

    cdef int[::1] heads(self):
        """Of equal rows the first, in their order."""
        return self._heads[: self._count]

    cdef int after(self, int row) noexcept:
        """The next row that is the same, -1 for none."""
        return self._after[row]

    cdef bint push_equal(self, Operator probe, long long node, bint first=False) except -1:
        """``push`` for the values of an operator."""
        cdef Keys probes = self._probes
        cdef bint found
        if probes is None:
            probes = Keys(self._keys._scratch)
        self._probes = None  # these are in use
        probes.clear()
        probe.put_keys(node, probes)
        found = self.push(probes, first)
        self._probes = probes
        return found

    cdef bint push(self, Keys probes, bint first=False) except -1:
        """Push the places of the keys that equal one of the probes, as a general comparison does,
        of each of these in order, or the ``first`` alone; False where that cannot be told."""
        cdef Scratch scratch = self._keys._scratch
        cdef int count = probes.count
        cdef int i, kind
        cdef double number
        if self._keys.has & 1 << _OTHER:
            return False
        for i in range(count):
            kind = probes.kind[i]
            number = _NAN
            if kind <= _TEXT:
                self._push_same(probes, i, scratch, first)
                if kind == _UNTYPED and self._keys.has & 1 << _NUMERIC:
                    number = probes.as_number(i)
                    if number == number:
                        self._push_number(number, probes, scratch, first)
                continue
            if self._keys.has & 1 << _TEXT:
                return False
            if kind == _NUMERIC:
                number = probes._number[i]
            elif is_number(probes.atom(i)) and not self._keys.has & 1 << _NUMERIC:
                number = to_double(probes.atom(i))
            else:
                return False
            if number == number:
                self._push_number(number, probes, scratch, first)
                if self._keys.has & 1 << _UNTYPED:
                    self._of_numbers()._push_number(number, probes, scratch, first)
        return True

    cdef int _push_number(
        self, double number, Keys probes, Scratch scratch, bint first
    ) except -1:
        probes.put_number(number)
        self._push_same(probes, probes.count - 1, scratch, first)
        probes.count -= 1
        return 0

    cdef int _push_same(self, Keys probes, int at, Scratch scratch, bint first) except -1:
        cdef int bucket
        cdef int row = self._head(probes, at, &bucket)
        while row >= 0:
            scratch.push(self._places[row])
            row = -1 if first else self._after[row]
        return 0

    cdef KeyIndex _of_numbers(self):
        cdef int i
        cdef double number
        if self._numbers is None:
            numbers = Keys(self._keys._scratch)
            places = array("q")
            for i in range(self._keys.count):
                number = self._keys.as_number(i) if self._keys.kind[i] == _UNTYPED else _NAN
                if number == number:
                    numbers.put_number(number)
                    places.append(self._places[i])
            self._numbers = KeyIndex(numbers, places)
        return self._numbers


# -------------------------------------------------------------------------------------------------
# Operator: a compiled expression; what every kind of them can be asked about a context node.
#
# An operator is made once for a profile, or for all that share it, and asked on message after
# message.  An operator without a quicker way defines only its ``value``.


cdef class Output:
    """Where operators write their values; defined by returns.pyx."""

    cdef int put_items(self, value) except -1:
        """Write items as nodes.py has them."""
        raise NotImplementedError

    cdef int put_nodes(self, int base) except -1:
        """Write the nodes from a place of the stack on, which are taken off."""
        raise NotImplementedError

    cdef int open_string(self) except -1:
        """Begin a string, of which ``put_octets`` writes the parts."""
        raise NotImplementedError

    cdef int put_octets(self, bytes octets, int first, int last) except -1:
        raise NotImplementedError

    cdef int attempt(self, Operator operand, long long node) except -1:
        """Write the value of an operand; nothing if that raises a DynamicError."""
        raise NotImplementedError


cdef class Operator:
    """``parts``: the operators that it asks; ``operand`` and ``other`` are the first two, or None.

    ``is_costly``: its answer for a node is worth remembering.  ``uses_context``: it depends on
    the context node.  ``free``: the variables bound around it that it depends on.  ``is_truth``:
    what its value is, it has a truth value.

    ``is_number``: it compares with numbers as the one that ``number`` gives, without an object for
    it; that is all of its value if it ``is_double``, or ``is_integer``, a small one.
    """

    def __init__(self, scratch: Scratch, *parts: Operator) -> None:
        self.scratch = scratch
        self.parts = parts
        self.operand = parts[0] if parts else None
        self.other = parts[1] if len(parts) > 1 else None
        self.is_costly = any(part.is_costly for part in parts)
        self.uses_context = any(part.uses_context for part in parts)
        self.is_double = self.is_integer = self.is_number = False
        self.free = frozenset().union(*(part.free for part in parts))

    cdef object value(self, long long node):
        """The items of the expression, as nodes.py has them; DynamicError."""
        raise NotImplementedError

    cdef object items(self, long long node):
        """The atomic values of the items.  By default there are no nodes among these."""
        return self.value(node)[:]

    cdef bint holds(self, long long node) except -1:
        """The effective boolean value; DynamicError."""
        cdef bint answer = effective_boolean(self.value(node))
        return answer

    cdef object atom(self, long long node):
        """The one atomic value of an operand, None for nothing; DynamicError for several."""
        items = self.items(node)
        if len(items) > 1:
            raise DynamicError("XPTY0004", "several items where one is wanted")
        return items[0] if items else None

    cdef object first_atom(self, long long node):
        """The atomic value of the first item, None for nothing."""
        items = self.items(node)
        return items[0] if items else None

    cdef object text(self, long long node):
        """The first item, a string, as a function of texts takes it: empty for nothing."""
        found = self.first_atom(node)
        if found is None:
            return ""
        if not isinstance(found, str):
            raise DynamicError("XPTY0004", "a function takes a string")
        return found

    cdef bint number(self, long long node, double* found) except -1:
        """Whether there is a value, if it is a number; DynamicError."""
        raise NotImplementedError

    cdef int put_keys(self, long long node, Keys keys) except -1:
        """Put the atomic values of the items behind the keys; DynamicError, behind some of them."""
        for atom in self.items(node):
            keys.put_atom(atom)
        return 0

    cdef int write(self, long long node, Output out) except -1:
        """Write the items of the expression; DynamicError."""
        return out.put_items(self.value(node))

    # For Python: a context node is the number that ``Scratch.number_of`` gives.

    def value_at(self, node: int) -> Value:
        return self.value(node)

    def atom_at(self, node: int) -> Atom | None:
        return self.atom(node)


# -------------------------------------------------------------------------------------------------
# Exact: decimals and integers of few digits, without an object for each.
#
# Such a number is ``digits`` over ten to the power of ``places``.  An operator that does not know
# one, as it has too many digits or is an error, says so, and is asked for its ``atom`` instead.

cdef enum:
    _NOTHING = 0
    _ONE = 1
    _UNKNOWN = 2
    _PLACES_MAX = 18

cdef long long _DIGITS_MOST = 10**18
cdef double _ROUGHNESS = 1e-12
_TENS = longs(_PLACES_MAX + 1)
for _power in range(_PLACES_MAX + 1):
    _TENS[_power] = 10**_power
cdef long long[::1] _tens = _TENS


cdef class Exact(Operator):
    """``is_exact``: its value may be known by ``exact``; ``is_rough``: by ``rough`` alone."""

    cdef bint is_exact, is_rough

    cdef int exact(self, long long node, long long* digits, int* places) except -1:
        """Whether there is a value, and is known; DynamicError."""
        return _UNKNOWN

    cdef int rough(self, long long node, double* found) except -1:
        """The same of a double nearest to the value, but for the last digits."""
        cdef long long digits = 0
        cdef int places = 0
        cdef int known = self.exact(node, &digits, &places)
        found[0] = <double>digits / <double>_tens[places]
        return known


cdef class Several(Exact):
    """Its items are those of one operator behind those of another."""

    cdef object value(self, long long node):
        return self.each(node, False)

    cdef object items(self, long long node):
        return self.each(node, True)

    cdef list each(self, long long node, bint is_of_atoms):
        """The items, or their atomic values."""
        raise NotImplementedError


cdef class Passing(Exact):
    """Its value is that of another operator, at the same node or another."""

    cdef Operator passes_on(self, long long* node):
        """The operator; the node is set to that at which it is asked."""
        raise NotImplementedError

    cdef object value(self, long long node):
        return self.passes_on(&node).value(node)

    cdef object items(self, long long node):
        return self.passes_on(&node).items(node)

    cdef bint holds(self, long long node) except -1:
        return self.passes_on(&node).holds(node)

    cdef bint number(self, long long node, double* found) except -1:
        return self.passes_on(&node).number(node, found)

    cdef int exact(self, long long node, long long* digits, int* places) except -1:
        return (<Exact>self.passes_on(&node)).exact(node, digits, places)

    cdef int rough(self, long long node, double* found) except -1:
        return (<Exact>self.passes_on(&node)).rough(node, found)

    cdef int write(self, long long node, Output out) except -1:
        return self.passes_on(&node).write(node, out)


cdef bint _as_exact(Operator operand) except -1:
    return isinstance(operand, Exact) and (<Exact>operand).is_exact


cdef bint _times(long long* digits, long long factor) noexcept:
    """Multiply; False where that has too many digits."""
    if factor and fabs(<double>digits[0]) > _DIGITS_MOST / fabs(<double>factor):
        return False
    digits[0] *= factor
    return True


cdef bint _align(long long* one, int* places, long long* other, int other_places) noexcept:
    """Give two numbers the same places."""
    if places[0] >= other_places:
        return _times(other, _tens[places[0] - other_places])
    if not _times(one, _tens[other_places - places[0]]):
        return False
    places[0] = other_places
    return True


cdef int _exact_in(
    const unsigned char* values, int first, int last, long long* digits, int* places
) noexcept:
    """The decimal that ``values[first:last]`` is, written with few digits."""
    cdef int count = 0
    cdef int behind = -1
    cdef bint negative = False
    while first < last and _is_space(values[first]):
        first += 1
    while first < last and _is_space(values[last - 1]):
        last -= 1
    if first < last and values[first] in (43, 45):
        negative = values[first] == 45
        first += 1
    digits[0] = 0
    for first in range(first, last):
        if 48 <= values[first] <= 57:
            digits[0] = 10 * digits[0] + (values[first] - 48)
            count += 1
            behind += behind >= 0
        elif values[first] == 46 and behind < 0 and count:
            behind = 0
        else:
            return _UNKNOWN
        if count > 17:
            return _UNKNOWN
    if count == 0 or behind == 0:
        return _UNKNOWN
    places[0] = max(behind, 0)
    if negative:
        digits[0] = -digits[0]
    return _ONE


def _exact_number(number: Atom) -> tuple[int, int] | None:
    """An integer or decimal as digits and places; None for others, and for many digits."""
    if type(number) is int and abs(number) < _DIGITS_MOST:
        return number, 0
    if type(number) is not Decimal or not number.is_finite():
        return None
    _, figures, exponent = number.as_tuple()
    if not -_PLACES_MAX <= exponent <= 0 or len(figures) > _PLACES_MAX:
        return None
    return int(number.scaleb(-exponent)), -exponent


_exact_before = lru_cache(4_096)(_exact_number)


cdef int _exact_atom(atom, long long* digits, int* places) except -1:
    if type(atom) is not int and type(atom) is not Decimal:
        return _UNKNOWN
    found = _exact_before(atom)
    if found is None:
        return _UNKNOWN
    digits[0], places[0] = found
    return _ONE


cdef int _compare_rough(Exact left, int relation, Exact right, long long node) except -1:
    """``_compare_exact`` of numbers that clearly differ."""
    cdef double one = 0
    cdef double other = 0
    cdef int found = left.rough(node, &one)
    if found == _UNKNOWN:
        return _UNKNOWN
    cdef int second = right.rough(node, &other)
    if second == _UNKNOWN:
        return _UNKNOWN
    if found == _NOTHING or second == _NOTHING:
        return 0
    if not fabs(one - other) > _ROUGHNESS * (fabs(one) + fabs(other)):  # infinity and NaN, too
        return _UNKNOWN
    return compares(one, relation, other)


cdef int _compare_exact(Exact left, int relation, Exact right, long long node) except -1:
    """Whether both are there and compare so: 1 or 0; _UNKNOWN."""
    if left.is_rough or right.is_rough:
        return _compare_rough(left, relation, right, node)
    cdef long long one = 0
    cdef long long other = 0
    cdef int places = 0
    cdef int other_places = 0
    cdef int found = left.exact(node, &one, &places)
    if found == _UNKNOWN:
        return _UNKNOWN
    cdef int second = right.exact(node, &other, &other_places)
    if second == _UNKNOWN:
        return _UNKNOWN
    if found == _NOTHING or second == _NOTHING:
        return 0
    if not _align(&one, &places, &other, other_places):
        return _UNKNOWN
    return compares((one > other) - (one < other), relation, 0)


# -------------------------------------------------------------------------------------------------
# Path: a location path on the columns of a message.
#
# A step is a row of STEP_WIDTH numbers: its AXIS, the kinds of nodes that its TEST accepts, as
# bits, the symbol of their NAME, 0 for any, and whether its predicates are POSITIONAL.  ``//`` is
# the axis DESCENDANT, or ATTRIBUTES_BELOW, but a step DESCENDANT_OR_SELF where positions count.
#
# Each axis is a range of the element stream: elements and pieces of content, each from one number
# to another; on the axes of siblings a range that skips what is below the elements in it.
#
# Whether a path selects anything is asked depth first, up to the first node, where at most one step
# can reach a node in several ways; else, and where all nodes are wanted, step by step, with each
# node once (``collect``).
#
# Two things are looked up and not walked.  Of many nodes those before or behind a context node, or
# its siblings, are the first so many of one Row, which is made once for all contexts.  And the
# nodes of a step whose predicate is an equality with what is bound around the path,
# ``//item[@no = $i/@no]``, are found by a hash of their keys once the step is asked for again.

cpdef enum:
    # Fields of a step.
    STEP_AXIS = 0
    STEP_TEST = 1
    STEP_NAME = 2
    STEP_POSITIONAL = 3
    STEP_WIDTH = 4

    # Axes; from SEVERAL_WAYS on a node can be reached from several contexts, those from ANCESTOR on
    # are not in document order, and those from FOLLOWING_SIBLING on are looked up in Rows.
    SELF = 0
    CHILD = 1
    ATTRIBUTE = 2
    SEVERAL_WAYS = 3
    PARENT = 3
    ATTRIBUTES_BELOW = 4
    DESCENDANT = 5
    DESCENDANT_OR_SELF = 6
    ANCESTOR = 7
    ANCESTOR_OR_SELF = 8
    FOLLOWING_SIBLING = 9
    PRECEDING_SIBLING = 10
    FOLLOWING = 11
    PRECEDING = 12

    # Where a path starts.
    FROM_CONTEXT = 0
    FROM_MESSAGE = 1
    FROM_VARIABLE = 2
    FROM_NODES = 3

    _WIDE = 32  # nodes of a range from which on a Row is worth it


cdef class Variable:
    """A variable that ranges over nodes: the one at hand."""

    def __init__(self) -> None:
        self.node = ROOT

    cdef object held(self):
        """What ``hold`` takes, to be what it is now."""
        return self.node

    cdef int hold(self, held) except -1:
        self.node = held
        return 0


cdef class Row:
    """Nodes in such an order that those which a step on one axis selects are the first so many.

    Before a node, or before it among its siblings: sorted by where they end.  Behind it: the last
    one first.  ``keys`` are what says of each whether it is one of them.
    """

    cdef long long[::1] nodes, keys
    cdef int size
    cdef object test  # of which ``held`` is the first place that it accepts
    cdef int tried, held
    cdef list least, greatest  # of the values that a path leads to, up to a place
    cdef KeyIndex index  # the first place of each, up to ``fault``
    cdef int fault

    def __init__(self, nodes: array[int], keys: array[int]) -> None:
        self.nodes = nodes
        self.keys = keys
        self.size = len(nodes)
        self.test = None
        self.tried = 0
        self.held = self.fault = self.size
        self.index = self.least = self.greatest = None

    cdef int up_to(self, long long key) noexcept:
        """How many keys are not above one."""
        cdef int low = 0
        cdef int high = self.size
        cdef int middle
        while low < high:
            middle = (low + high) >> 1
            if self.keys[middle] <= key:
                low = middle + 1
            else:
                high = middle
        return low


cdef class Place(Operator):
    """``position()``, or ``last()`` if that is ``of_last``, of the context node."""

    cdef bint _of_last

    def __init__(self, scratch: Scratch, of_last: bool) -> None:
        super().__init__(scratch)
        self._of_last = of_last
        self.is_integer = self.is_number = True

    cdef object value(self, long long node):
        return [self.scratch.size if self._of_last else self.scratch.position]

    cdef bint number(self, long long node, double* found) except -1:
        found[0] = self.scratch.size if self._of_last else self.scratch.position
        return True


cdef class Position(Operator):
    """A predicate on the position of a node: ``position() relation number``, or, ``from_last``,
    ``position() relation last() - number``."""

    cdef int _relation
    cdef double _number
    cdef bint _from_last

    def __init__(
        self, scratch: Scratch, relation: Relation, number: float, from_last: bool = False
    ) -> None:
        super().__init__(scratch)
        self._relation = RELATIONS[relation]
        self._number = number
        self._from_last = from_last

    cdef int only(self) noexcept:
        """The one position that it accepts, counted from the first; 0 for others."""
        if self._relation != 0 or self._from_last or not 1 <= self._number <= 1_000_000:
            return 0
        return <int>self._number if <int>self._number == self._number else 0

    cdef bint holds(self, long long node) except -1:
        cdef Scratch scratch = self.scratch
        cdef double number = scratch.size - self._number if self._from_last else self._number
        return compares(scratch.position, self._relation, number)


cdef class Numbered(Operator):
    """A predicate whose value may be a number, which is a position."""

    cdef bint holds(self, long long node) except -1:
        value = self.operand.value(node)
        if len(value) == 1 and is_number(value[0]):
            return value[0] == self.scratch.position
        return effective_boolean(value)


class PathStep(NamedTuple):
    """``test``: kinds of nodes as bits; ``name``: a symbol, 0 for any; ``positional``: whether a
    predicate depends on the position of a node."""

    axis: int
    test: int
    name: int = 0
    predicates: tuple[Operator, ...] = ()
    positional: bool = False


cdef class Targets(Operator):
    """A processing instruction has a target: ``processing-instruction("target")``."""

    cdef str _target

    def __init__(self, scratch: Scratch, target: str) -> None:
        super().__init__(scratch)
        self._target = target

    cdef bint holds(self, long long node) except -1:
        return self.scratch.target(node) == self._target


cdef class ItemVariable


cdef class Nodes(Operator):
    """Whatever selects nodes: they are pushed on the stack of the scratch."""

    def __init__(self, scratch: Scratch, *parts: Operator) -> None:
        super().__init__(scratch, *parts)
        self.is_truth = True

    cdef object value(self, long long node):
        return self.scratch.nodes_from(self.collect(node))

    cdef object items(self, long long node):
        return self.items_behind(self.collect(node))

    cdef list items_behind(self, int base):
        """The atomic values of the nodes from ``base`` on, taken off the stack."""
        cdef Scratch scratch = self.scratch
        cdef int i
        found = [scratch.atom(scratch.nodes[i]) for i in range(base, scratch.top)]
        scratch.top = base
        return found

    cdef bint holds(self, long long node) except -1:
        cdef int base = self.collect(node)
        cdef bint found = self.scratch.top > base
        self.scratch.top = base
        return found

    cdef int put_keys(self, long long node, Keys keys) except -1:
        return self.put_values(self.collect(node), keys)

    cdef int put_values(self, int base, Keys keys) except -1:
        """Put the values of the nodes from ``base`` on, taken off the stack, behind the keys."""
        cdef Scratch scratch = self.scratch
        cdef int i
        cdef int top = scratch.top
        scratch.top = base
        for i in range(base, top):
            scratch.look_at(scratch.nodes[i])
            keys.put_value(scratch)
        return 0

    cdef int write(self, long long node, Output out) except -1:
        return out.put_nodes(self.collect(node))

    cdef int collect(self, long long node) except -1:
        """Push all nodes, in their order, each once; where they begin on the stack."""
        raise NotImplementedError


cdef class OfKind(Nodes):
    """Nodes of a declared type, all elements or all attributes where that is asked."""

    cdef bint _elements, _attributes
    cdef long long _least, _most

    def __init__(
        self, source: Nodes, elements: bool, attributes: bool, least: int, most: int
    ) -> None:
        super().__init__(source.scratch, source)
        self._elements = elements
        self._attributes = attributes
        self._least = least
        self._most = most

    cdef int collect(self, long long node) except -1:
        cdef Scratch scratch = self.scratch
        cdef int base = (<Nodes>self.operand).collect(node)
        cdef bint matches = self._least <= scratch.top - base <= self._most
        cdef int i
        for i in range(base, scratch.top):
            if self._elements:
                matches &= scratch.passes(ELEMENTS, 0, scratch.nodes[i])
            if self._attributes:
                matches &= _within(scratch.nodes[i]) > 0
        if not matches:
            raise DynamicError("XPTY0004", "a value of another type than the one declared")
        return base


cdef class RootOf(Nodes):
    """``root(node)``."""

    cdef int collect(self, long long node) except -1:
        cdef int base = (<Nodes>self.operand).collect(node)
        if self.scratch.top > base + 1:
            raise DynamicError("XPTY0004", "root() takes one node")
        if self.scratch.top > base:
            self.scratch.nodes[base] = self.scratch.root(self.scratch.nodes[base])
        return base


cdef class Combined(Nodes):
    """``a | b``, ``a intersect b``, ``a except b``; and ``a, b``, which is in no document order."""

    cdef str _name

    def __init__(self, scratch: Scratch, name: str, parts: Iterable[Nodes]) -> None:
        super().__init__(scratch, *parts)
        self._name = name

    cdef int collect(self, long long node) except -1:
        cdef Scratch scratch = self.scratch
        cdef Nodes part
        cdef int base = scratch.top
        cdef int kept = base
        cdef int middle = base
        cdef int i, j
        for part in self.parts:
            middle = scratch.top
            part.collect(node)
            if self._name != ",":
                scratch.tidy(middle)
        if self._name == "|":
            scratch.tidy(base)
        elif self._name != ",":
            j = middle
            for i in range(base, middle):
                while j < scratch.top and scratch.nodes[j] < scratch.nodes[i]:
                    j += 1
                if (j < scratch.top and scratch.nodes[j] == scratch.nodes[i]) == (
                    self._name == "intersect"
                ):
                    scratch.nodes[kept] = scratch.nodes[i]
                    kept += 1
            scratch.top = kept
        return base


cdef class NodesOf(Nodes):
    """The items of an operator as nodes; an error with ``code`` where one is none."""

    cdef str _code

    def __init__(self, scratch: Scratch, operand: Operator, code: str = "XPTY0019") -> None:
        super().__init__(scratch, operand)
        self._code = code

    cdef int collect(self, long long node) except -1:
        cdef Scratch scratch = self.scratch
        cdef int base = scratch.top
        for item in self.operand.value(node):
            if isinstance(item, Node):
                scratch.push(scratch.number_of(item))
            elif isinstance(item, NODES):
                for made in scratch.evaluator().nodes((item,)):
                    scratch.push(scratch.number_of(made))
            else:
                scratch.top = base
                raise DynamicError(self._code, "a step from what is no node")
        return base


cdef class RootHere(Nodes):
    """The document of a path from the message, within ``try``: an error where the context, which
    is an item of a variable or else a node, is in no document."""

    def __init__(self, scratch: Scratch, *context: ItemVariable) -> None:
        super().__init__(scratch, *context)
        self.uses_context = not context

    cdef int collect(self, long long node) except -1:
        cdef Scratch scratch = self.scratch
        if self.operand is not None:
            (item,) = (<ItemVariable>self.operand)._items
            node = scratch.number_of(item) if isinstance(item, Node) else ROOT
            if isinstance(item, NODES) and not isinstance(item, Node):
                node = -1
        if node == -1 or scratch.root(node) != ROOT:
            raise DynamicError("XPDY0050", "the context item is in no document")
        scratch.push(ROOT)
        return scratch.top - 1


cdef class Selected(Nodes):
    """``(nodes)[predicate]``, where positions count among all nodes."""

    cdef tuple _predicates

    def __init__(self, source: Nodes, predicates: tuple[Operator, ...] = ()) -> None:
        super().__init__(source.scratch, source, *predicates)
        self._predicates = predicates
        self.uses_context = source.uses_context

    cdef int collect(self, long long node) except -1:
        cdef int base = (<Nodes>self.operand).collect(node)
        _filter(self.scratch, self._predicates, base)
        return base


cdef class Each(Nodes):
    """``left/(right)``: the nodes of ``right`` for each node of ``left``."""

    def __init__(self, left: Nodes, right: Nodes) -> None:
        super().__init__(left.scratch, left, right)
        self.uses_context = left.uses_context

    cdef int collect(self, long long node) except -1:
        cdef Scratch scratch = self.scratch
        cdef int base = (<Nodes>self.operand).collect(node)
        cdef int end = scratch.top
        cdef int i
        for i in range(base, end):
            (<Nodes>self.other).collect(scratch.nodes[i])
        for i in range(end, scratch.top):
            scratch.nodes[base + i - end] = scratch.nodes[i]
        scratch.top = base + scratch.top - end
        scratch.tidy(base)
        return base


cdef class Join
cdef class ForEachNode
cdef class OncePerMessage


cdef class Path(Nodes):
    """The nodes that the steps lead to from the context node, the message, a variable, or the nodes
    of ``source``."""

    cdef int _origin
    cdef Nodes _source
    cdef Variable _variable
    cdef int _count
    cdef int[::1] _steps
    cdef list _predicates
    cdef readonly bint is_constant
    cdef int _asked_of, _kept_of  # messages of which it was asked, and what it selects is kept
    cdef long long[::1] _kept
    cdef int _message, _searched
    cdef object _values
    cdef int _lead  # steps to parents that it begins with
    cdef readonly bint is_ranged, is_anchored  # behind these, on an axis of Rows; by other steps
    cdef bint _is_quick
    cdef list _joins  # of each step the predicate that is looked up, or None
    cdef int _joined  # the first step that has one, or -1
    cdef dict _rows, _known
    cdef int _rows_of
    cdef bytes signature  # of a path of children and attributes: equal for equal ones

    def __init__(
        self, scratch: Scratch, steps: list[PathStep], origin: int = FROM_CONTEXT,
        variable: Variable | None = None, source: Nodes | None = None
    ) -> None:
        super().__init__(scratch, *(part for step in steps for part in step.predicates))
        self._source = source
        self._origin = origin
        self._variable = Variable() if variable is None else variable
        self._count = len(steps)
        self._steps = ints(STEP_WIDTH * (len(steps) + 1))
        self._predicates = [step.predicates for step in steps]
        for at, step in enumerate(steps):
            fields = (step.axis, step.test, step.name, step.positional)
            for field in range(STEP_WIDTH):
                self._steps[STEP_WIDTH * at + field] = fields[field]
        several = sum(step.axis >= SEVERAL_WAYS for step in steps)
        self._searched = several > 1 or source is not None
        leads = [step[:4] != (PARENT, ANY_KIND, 0, ()) for step in steps]
        self._lead = leads.index(True) if True in leads else len(steps)
        begins = (
            origin in (FROM_CONTEXT, FROM_VARIABLE) and not self.free and self._lead < len(steps)
        )
        first = self._lead
        is_ranged = begins and steps[first].axis >= FOLLOWING_SIBLING
        self.is_ranged = is_ranged and not steps[first].positional
        self.is_anchored = begins and first > 0 and not is_ranged
        self._is_quick = several - first <= 2
        self._joins = [_join_of(step) for step in steps]
        self._joined = -1
        if origin == FROM_MESSAGE:
            freed = [at for at, step in enumerate(steps) if any(p.free for p in step.predicates)]
            if freed and self._joins[freed[0]] is not None:
                self._joined = freed[0]
                self._searched = True
        self._rows: dict[int, Row] = {}
        self._known: dict[object, object] = {}
        self._rows_of = 0
        self.uses_context = origin == FROM_CONTEXT
        if source is not None:
            self.uses_context = source.uses_context
            self.free |= source.free
            self.is_costly |= source.is_costly
        if origin == FROM_VARIABLE:
            self.free |= {self._variable}
        self.is_constant = not self.free and not self.uses_context
        self.is_costly |= several > 0
        self._message = 0
        self._values: set[bytes] = set()
        is_plain = origin == FROM_CONTEXT and not several and not any(self._predicates)
        self.signature = bytes(self._steps) if is_plain and source is None else None

    # -- as an operator

    cdef bint holds(self, long long node) except -1:
        return self.some(node, None)

    cdef object items(self, long long node):
        cdef object known
        cdef long long anchor = -1
        if self.is_anchored:
            anchor = self._anchor(node)
            known = self._known.get(("items", anchor))
            if known is not None:
                return known
        found = self.items_behind(self.collect(node))
        if self.is_anchored:
            self._known["items", anchor] = found
        return found

    cdef object first_atom(self, long long node):
        cdef long long found = self.first_node(node)
        return None if found == -1 else self.scratch.atom(found)

    cdef object text(self, long long node):
        cdef long long found = self.first_node(node)
        return "" if found == -1 else self.scratch.text(found)

    cdef bint number(self, long long node, double* found) except -1:
        """Of its one node the value as an operand of arithmetic."""
        cdef Scratch scratch = self.scratch
        cdef int base = self.collect(node)
        cdef int count = scratch.top - base
        scratch.top = base
        if count > 1:
            raise DynamicError("XPTY0004", "several items where one is wanted")
        if count == 0:
            return False
        scratch.look_at(scratch.nodes[base])
        found[0] = scratch.number()
        return True

    cdef int count(self, long long node) except -1:
        """How many nodes there are."""
        cdef int found = 0
        cdef int base
        if self.is_ranged and self._lead + 1 == self._count and self.row(node, &found) is not None:
            return found
        base = self.collect(node)
        found = self.scratch.top - base
        self.scratch.top = base
        return found

    # -- for other operators

    cdef long long start(self, long long node) noexcept:
        """Where the path starts, for a context node."""
        if self._origin == FROM_CONTEXT:
            return node
        return ROOT if self._origin == FROM_MESSAGE else self._variable.node

    cdef bint some(self, long long node, ValueTest test) except -1:
        """Whether there is a node, or one whose value a test accepts."""
        cdef Scratch scratch = self.scratch
        cdef int base, i
        cdef bint found = False
        if self.is_ranged and self._is_quick:
            row = self.row(node, &base)
            if row is not None:
                return self._some_in_row(row, base, test)
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

    cdef long long first_node(self, long long node) except -2:
        """The first node in document order, -1 for none."""
        cdef Scratch scratch = self.scratch
        cdef int base = self.collect(node)
        cdef long long found = scratch.nodes[base] if scratch.top > base else -1
        scratch.top = base
        return found

    cdef object value_set(self, long long node):
        """The values of all nodes, as octets; of a path from the message once a message, of one
        from a node above once for that."""
        cdef Scratch scratch = self.scratch
        cdef object known
        cdef long long anchor = -1
        if self.is_constant and self._message == scratch.message:
            return self._values
        if self.is_anchored:
            anchor = self._anchor(node)
            known = self._known.get(anchor)
            if known is not None:
                return known
        found = self._values_behind(self.collect(node))
        if self.is_anchored:
            self._known[anchor] = found
        if self.is_constant:
            self._values = found
            self._message = scratch.message
        return found

    cdef set _values_behind(self, int base):
        """The values of the nodes from ``base`` on, as octets, taken off the stack."""
        cdef Scratch scratch = self.scratch
        cdef int i
        found = set()
        for i in range(base, scratch.top):
            scratch.look_at(scratch.nodes[i])
            found.add(scratch.octets[scratch.first : scratch.last])
        scratch.top = base
        return found

    # -- what is looked up

    cdef int _forget(self) except -1:
        """Drop the knowledge of another message."""
        if self._rows_of != self.scratch.message:
            self._rows.clear()
            self._known.clear()
            self._rows_of = self.scratch.message
        return 0

    cdef long long _anchor(self, long long node) except -2:
        """The node that the first steps lead to, all to parents; -1 for none."""
        cdef int _i
        self._forget()
        node = self.start(node)
        for _i in range(self._lead):
            if node != -1:
                node = self.scratch.parent(node)
        return node

    cdef Row row(self, long long node, int* count):
        """Of a path on an axis of Rows: the nodes of that step from all contexts, and how many of
        them it is from this one.  None where there is no context, and where they are few."""
        node = self._anchor(node)
        return None if node == -1 else self._row(self._lead, node, True, count)

    cdef Row _row(self, int at, long long node, bint is_filtered, int* count):
        cdef Scratch scratch = self.scratch
        cdef MessageColumns columns = scratch.columns
        cdef int axis = self._steps[STEP_WIDTH * at + STEP_AXIS]
        cdef long long around, key
        cdef int element
        cdef Row row
        self._forget()
        around = scratch.root(node) if axis >= FOLLOWING else scratch.parent(node)
        if around in (-1, node) or (axis < FOLLOWING and _within(node) > 0):
            return None
        element = _position(around)
        if _WIDE > (
            columns.elements if element < 0
            else columns.end[element] - element
            + columns.within_last[element] - columns.within_first[element]
        ):
            return None
        key = ((element + 1) * 65_536LL + at) * 2 + is_filtered
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = self._new_row(at, around, is_filtered)
        if axis in (PRECEDING_SIBLING, PRECEDING):
            count[0] = row.up_to(node)
        else:
            count[0] = row.up_to(-scratch.behind(node))
        scratch.visit(1)
        return row

    cdef Row _new_row(self, int at, long long around, bint is_filtered):
        cdef Scratch scratch = self.scratch
        cdef int base = scratch.top
        cdef int axis = self._steps[STEP_WIDTH * at + STEP_AXIS]
        self._push_range(at, axis >= FOLLOWING, around, -1, ROOT)
        if is_filtered:
            _filter(scratch, self._predicates[at], base)
        nodes = array("q", scratch.nodes[base : scratch.top])
        scratch.top = base
        if axis in (FOLLOWING_SIBLING, FOLLOWING):
            nodes.reverse()
            return Row(nodes, array("q", [-node for node in nodes]))
        if not is_filtered:
            return Row(nodes, nodes)  # that of which some are ancestors
        pairs = sorted([(scratch.behind(node), node) for node in nodes])
        return Row(array("q", [pair[1] for pair in pairs]), array("q", [pair[0] for pair in pairs]))

    cdef bint _some_in_row(self, Row row, int count, ValueTest test) except -1:
        if row.test is not test:
            row.test, row.tried, row.held = test, 0, row.size
        while row.tried < count and row.held == row.size:
            self.scratch.visit(1)
            if self._leads(self._lead + 1, row.nodes[row.tried], test):
                row.held = row.tried
            row.tried += 1
        return row.held < count

    cdef int behind(self, long long node) except -1:
        """Push what the steps behind the first one on an axis of Rows lead to."""
        self.scratch.push(node)
        return self._follow(self.scratch.top - 1, self._lead + 1)

    cdef object extremes(self, Row row, int count):
        """The least and the greatest of the values of the first so many of a Row."""
        if count == 0:
            return ()
        if row.least is None:
            least, greatest = [], []
            some: tuple[object, ...] = ()
            for found in row.nodes:
                values = self._values_behind(self.behind(found)).union(some)
                some = (min(values), max(values)) if values else ()
                least.append(some[0] if some else None)
                greatest.append(some[1] if some else None)
            row.least, row.greatest = least, greatest
        if row.least[count - 1] is None:
            return ()
        return {row.least[count - 1], row.greatest[count - 1]}

    cdef int first_equal(self, long long node, Operator each, Operator other) except -3:
        """Whether a value of another operator is equal to one of a path on an axis of Rows, or of
        what ``each`` makes of its nodes: 1 or 0, -1 where no index can tell."""
        cdef Scratch scratch = self.scratch
        cdef int count = 0
        cdef int base = scratch.top
        cdef Row row = self.row(node, &count)
        cdef long long place
        if row is None:
            return -1
        if row.index is None:
            row.index = self._index_of(row, each)
        if count > row.fault:
            return -1
        if not row.index.push_equal(other, node, True):
            scratch.top = base
            return -1
        place = count
        while scratch.top > base:
            scratch.top -= 1
            place = min(place, scratch.nodes[scratch.top])
        return place < count

    cdef KeyIndex _index_of(self, Row row, Operator each):
        cdef Scratch scratch = self.scratch
        cdef Keys keys = Keys(scratch)
        cdef long long[::1] nodes
        cdef int base, place, i
        places = array("q")
        for place in range(row.size):
            base = self.behind(row.nodes[place])
            if each is None:
                self.put_values(base, keys)
            else:
                nodes = scratch.taken(base)
                try:
                    for i in range(len(nodes)):
                        each.put_keys(nodes[i], keys)
                except DynamicError:
                    row.fault = min(row.fault, place)
            while len(places) < keys.count:
                places.append(place)
        return KeyIndex(keys, places)

    cdef bint _push_joined(self, int at, long long node) except -1:
        """Push the nodes of a step, of a path from the message up to that step, that its join
        accepts; False where it is asked for the first time on this message."""
        cdef Scratch scratch = self.scratch
        cdef int base = scratch.top
        cdef int i
        cdef Join join = self._joins[at]
        cdef long long[::1] nodes
        self._forget()
        key = at, node
        if key not in self._known:
            self._known[key] = None
            return False
        known = self._known[key]
        if known is None:
            scratch.push(ROOT if self._joined == at else node)
            if self._joined == at:
                self._walk(base, 0, at)
            nodes = scratch.taken(base)
            for i in range(len(nodes)):
                self._push(at, nodes[i])
            scratch.tidy(base)
            _filter(scratch, join.own, base)
            known = self._known[key] = join.index(scratch, scratch.taken(base))
        if not join.push(known):
            scratch.top = base
            return False
        scratch.tidy(base)
        scratch.visit(1 + scratch.top - base)
        if join.rest:
            _filter(scratch, join.rest, base)
        return True

    cdef int collect(self, long long node) except -1:
        """Push all nodes, in document order, each once; where they begin on the stack."""
        cdef Scratch scratch = self.scratch
        cdef int base = scratch.top
        cdef int i
        if self.is_constant and self._kept_of == scratch.message:
            scratch.visit(1 + len(self._kept))
            for i in range(len(self._kept)):
                scratch.push(self._kept[i])
            return base
        if self._source is not None:
            self._source.collect(node)
            if self._count:
                scratch.tidy(base)
        elif self._joined >= 0 and self._push_joined(self._joined, ROOT):
            return self._follow(base, self._joined + 1)
        else:
            scratch.push(self.start(node))
        self._follow(base, 0)
        if self.is_constant:
            if self._asked_of == scratch.message:
                self._kept = array("q", scratch.nodes[base : scratch.top])
                self._kept_of = scratch.message
            self._asked_of = scratch.message
        return base

    cdef int _follow(self, int base, int at) except -1:
        """Take the steps from ``at`` on from the nodes from ``base`` on, which is returned."""
        return self._walk(base, at, self._count)

    cdef int _walk(self, int base, int at, int to) except -1:
        cdef Scratch scratch = self.scratch
        cdef int end, i, axis
        cdef long long node, covered
        cdef bint positional
        for at in range(at, to):
            end = scratch.top
            covered = ROOT
            axis = self._steps[STEP_WIDTH * at + STEP_AXIS]
            positional = self._steps[STEP_WIDTH * at + STEP_POSITIONAL]
            if axis >= FOLLOWING and not positional and end > base and (
                scratch.root(scratch.nodes[base]) == scratch.root(scratch.nodes[end - 1])
            ):
                self._step(at, self._widest(axis, base, end))
            else:
                for i in range(base, end):
                    node = scratch.nodes[i]
                    if ATTRIBUTES_BELOW <= axis <= DESCENDANT_OR_SELF and not positional:
                        # The nodes below a node that is below another one have been found.
                        if node < covered and _within(node) <= 0:
                            continue
                        covered = max(covered, scratch.behind(node))
                    self._step(at, node)
            for i in range(end, scratch.top):
                scratch.nodes[base + i - end] = scratch.nodes[i]
            scratch.top = base + scratch.top - end
            if end - base > 1 or axis >= ANCESTOR:
                scratch.tidy(base)
        return base

    cdef long long _widest(self, int axis, int base, int end) except -2:
        """The context node that all others are behind of, or in front of: what follows, or
        precedes, any of them does so that one."""
        cdef Scratch scratch = self.scratch
        cdef long long node = scratch.nodes[end - 1]
        cdef int i
        if axis == FOLLOWING:
            for i in range(base, end):
                if scratch.behind(scratch.nodes[i]) < scratch.behind(node):
                    node = scratch.nodes[i]
        return node

    cdef bint _leads(self, int at, long long node, ValueTest test) except -1:
        """Whether the steps from one on lead to a node, or to one that a test accepts."""
        cdef Scratch scratch = self.scratch
        cdef int base = scratch.top
        cdef int i
        cdef bint found = False
        if at == self._count:
            if test is None:
                return True
            scratch.look_at(node)
            return test.accepts(scratch)
        if at + 1 == self._count and test is None and self._is_plain(at):
            return self._has_accepted(at, node)
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

    cdef bint _is_plain(self, int at) noexcept:
        """Whether a step has predicates, and all that these ask for is the node."""
        return (
            self._predicates[at]
            and self._joins[at] is None
            and not self._steps[STEP_WIDTH * at + STEP_POSITIONAL]
        )

    cdef bint _has_accepted(self, int at, long long node) except -1:
        """Whether a plain step leads to a node; nodes behind the first are not asked, whose
        predicates may be errors."""
        cdef Scratch scratch = self.scratch
        cdef int base = scratch.top
        cdef int i
        cdef bint found = False
        cdef Operator predicate
        self._push(at, node)
        for i in range(base, scratch.top):
            try:
                for predicate in self._predicates[at]:
                    if not predicate.holds(scratch.nodes[i]):
                        break
                else:
                    found = True
                    break
            except DynamicError:
                if scratch.strict:
                    raise
        scratch.top = base
        return found

    cdef int _step(self, int at, long long node) except -1:
        """Push what one step selects from a node, in the order of its axis."""
        cdef Scratch scratch = self.scratch
        cdef int base = scratch.top
        cdef int axis = self._steps[STEP_WIDTH * at + STEP_AXIS]
        cdef bint positional = self._steps[STEP_WIDTH * at + STEP_POSITIONAL]
        predicates = self._predicates[at]
        if at != self._joined and self._joins[at] is not None and self._push_joined(at, node):
            return 0
        if positional and axis >= FOLLOWING_SIBLING and self._push_only(at, node):
            predicates = predicates[1:]
        else:
            self._push(at, node)
            if positional and axis in (PRECEDING_SIBLING, PRECEDING):
                scratch.turn(base)
        if predicates and scratch.top > base:
            _filter(scratch, predicates, base)
        return 0

    cdef bint _push_only(self, int at, long long node) except -1:
        """Push the one node that the first predicate accepts by its position, looked up in a Row;
        False where that is not worth it."""
        cdef Scratch scratch = self.scratch
        cdef int count = 0
        cdef int only, i
        cdef Row row
        is_before = self._steps[STEP_WIDTH * at + STEP_AXIS] in (PRECEDING_SIBLING, PRECEDING)
        predicate = self._predicates[at][0]
        only = (<Position>predicate).only() if isinstance(predicate, Position) else 0
        row = self._row(at, node, False, &count) if only else None
        if row is None:
            return False
        for i in range(count - 1, -1, -1):
            if is_before and scratch.behind(row.nodes[i]) > node:
                continue  # an ancestor, or the node itself
            only -= 1
            if only == 0:
                scratch.push(row.nodes[i])
                break
        return True

    cdef int _push(self, int at, long long node) except -1:
        """Push what axis and test of a step lead to, ancestors from the nearest on, all others in
        document order."""
        cdef Scratch scratch = self.scratch
        cdef int axis = self._steps[STEP_WIDTH * at + STEP_AXIS]
        cdef int test = self._steps[STEP_WIDTH * at + STEP_TEST]
        cdef int name = self._steps[STEP_WIDTH * at + STEP_NAME]
        cdef long long around
        if axis in (SELF, DESCENDANT_OR_SELF, ANCESTOR_OR_SELF):
            if scratch.passes(test, name, node):
                scratch.push(node)
        if axis in (ATTRIBUTE, ATTRIBUTES_BELOW):
            return self._push_attributes(axis, name, node)
        if axis in (CHILD, DESCENDANT, DESCENDANT_OR_SELF):
            if _within(node) == 0:
                self._push_range(at, axis != CHILD, node, -1, ROOT)
        elif axis >= FOLLOWING:
            around = scratch.root(node)
            if node != around:
                self._push_range(at, True, around, axis, node)
        elif axis >= FOLLOWING_SIBLING:
            scratch.visits += 1
            around = scratch.parent(node)
            if around != -1 and _within(node) <= 0:
                self._push_range(at, False, around, axis, node)
        elif axis != SELF:
            around = scratch.parent(node)
            while around != -1:
                scratch.visits += 1
                if scratch.passes(test, name, around):
                    scratch.push(around)
                around = -1 if axis == PARENT else scratch.parent(around)
        return scratch.visit(0)

    cdef int _push_attributes(self, int axis, int name, long long node) except -1:
        cdef Scratch scratch = self.scratch
        cdef MessageColumns columns = scratch.columns
        cdef int element = max(_position(node), 0)
        cdef int end = element + 1
        cdef int i
        if _within(node):
            return 0
        cdef bint is_document = node == ROOT or columns.name[element] < 0
        if axis == ATTRIBUTES_BELOW:
            end = columns.elements if node == ROOT else columns.end[element]
            element += is_document and node != ROOT
        elif is_document:
            return 0
        scratch.visit(end - element)
        for element in range(element, end):
            for i in range(columns.attribute_start[element], columns.attribute_start[element + 1]):
                scratch.visits += 1
                if scratch.accepts(name, columns.attribute_name[i]):
                    scratch.push(KINDS * element + i + 1)
        return 0

    cdef int _push_range(
        self, int at, bint deep, long long around, int axis, long long node
    ) except -1:
        """Push of what is below an element or document, or if not ``deep`` of its children, what
        the test of a step accepts; on an axis of Rows only behind, or before, a node."""
        cdef Scratch scratch = self.scratch
        cdef MessageColumns columns = scratch.columns
        cdef int test = self._steps[STEP_WIDTH * at + STEP_TEST]
        cdef int name = self._steps[STEP_WIDTH * at + STEP_NAME]
        cdef int parent = _position(around)
        cdef int element = parent + 1  # the next one, up to ``end``
        cdef int end = columns.elements
        cdef int content = 0  # the next one, up to ``last``
        cdef int last = columns.contents
        cdef int base = scratch.top
        cdef int stop, i, kept
        cdef long long within = _within(node)
        if parent >= 0:
            end = columns.end[parent]
            content, last = columns.within_first[parent], columns.within_last[parent]
        if axis in (FOLLOWING_SIBLING, FOLLOWING):
            element = _position(node)
            if within < 0:
                content = within + CONTENT + 1
            elif within > 0:
                content = columns.within_first[element]
                element += 1
            else:
                content, element = columns.within_last[element], columns.end[element]
        elif axis in (PRECEDING_SIBLING, PRECEDING):
            end = _position(node)
            last = within + CONTENT if within < 0 else columns.within_first[end]
        if not deep and test == TEXTS and axis < 0 and parent >= 0:
            content = columns.text_first[parent]
            while content >= 0:
                scratch.visits += 1
                scratch.push(KINDS * columns.content_next[content] - CONTENT + content)
                content = columns.text_next[content]
            return scratch.visit(1)
        if deep and test == ELEMENTS:
            scratch.visit(max(end - element, 0))
            for i in range(element, end):
                if scratch.accepts(name, columns.name[i]):
                    scratch.push(KINDS * i)
            element, content = end, last
        elif deep and not test & ELEMENTS:
            element = end
        while True:
            stop = columns.within_first[element] if element < end else last
            if test & CONTENTS:
                scratch.visits += max(stop - content, 0)
                for i in range(content, stop):
                    if test & (TEXTS << columns.content_kind[i]):
                        scratch.push(KINDS * columns.content_next[i] - CONTENT + i)
            if element >= end:
                break
            scratch.visits += 1
            if test & ELEMENTS and scratch.accepts(name, columns.name[element]):
                scratch.push(KINDS * element)
            if deep:
                content = stop
                element += 1
            else:
                content, element = columns.within_last[element], columns.end[element]
        if axis == PRECEDING:
            kept = base
            for i in range(base, scratch.top):
                if scratch.behind(scratch.nodes[i]) <= node:  # it is no ancestor
                    scratch.nodes[kept] = scratch.nodes[i]
                    kept += 1
            scratch.top = kept
        return scratch.visit(0)


def _join_of(step: PathStep) -> Join | None:
    """The equality among the predicates of a step that is looked up."""
    predicates = step.predicates
    if step.axis not in (CHILD, DESCENDANT) or step.positional:
        return None
    freed = [part for part in predicates if part.free]
    for part in freed:
        for key, probe in part.sides() if isinstance(part, Equality) else ():
            if not key.free and not probe.uses_context:
                own = tuple(other for other in predicates if not other.free)
                rest = tuple(other for other in freed if other is not part)
                return Join(key, probe, own, rest)
    return None


cdef class Join:
    """An equality of ``key``, of a node, with ``probe``, of what is bound around the path; with
    the predicates beside it that have no such variables, and the ``rest``."""

    cdef Operator key, probe
    cdef readonly tuple own, rest

    def __init__(
        self, key: Operator, probe: Operator, own: tuple[Operator, ...], rest: tuple[Operator, ...]
    ) -> None:
        self.key = key
        self.probe = probe
        self.own = own
        self.rest = rest

    cdef KeyIndex index(self, Scratch scratch, long long[::1] nodes):
        """Of the keys of nodes, which ascend."""
        cdef Keys keys = Keys(scratch)
        cdef int i, before
        places = array("q")
        for i in range(len(nodes)):
            before = keys.count
            try:
                self.key.put_keys(nodes[i], keys)
            except DynamicError:
                keys.count = before
            while len(places) < keys.count:
                places.append(nodes[i])
        return KeyIndex(keys, places)

    cdef bint push(self, KeyIndex index) except -1:
        """Push the nodes of which the probe equals a key; False where that cannot be told."""
        try:
            return index.push_equal(self.probe, ROOT)
        except DynamicError:
            return True


cdef int _filter(Scratch scratch, predicates, int base) except -1:
    """Keep of the nodes from ``base`` on those that all predicates accept, none by an error."""
    cdef Operator predicate
    cdef int i, kept, size
    cdef int outer = scratch.position
    cdef int outer_size = scratch.size
    cdef long long node
    for predicate in predicates:
        kept = base
        size = scratch.top - base
        for i in range(base, base + size):
            node = scratch.nodes[i]
            scratch.position = i - base + 1
            scratch.size = size
            try:
                if not predicate.holds(node):
                    continue
            except DynamicError:
                if scratch.strict:
                    raise
                continue
            scratch.nodes[kept] = node
            kept += 1
        scratch.top = kept
    scratch.position = outer
    scratch.size = outer_size
    return 0


# -------------------------------------------------------------------------------------------------
# Conditions: the operators whose value is true or false, and are asked for nothing else.
#
# ``or`` and ``and`` ask their parts in order up to the first that decides; an error in a part is
# one of the whole where no other part decides.


cdef class Condition(Operator):
    """An operator that is true or false."""

    def __init__(self, scratch: Scratch, *parts: Operator) -> None:
        super().__init__(scratch, *parts)
        self.is_truth = True

    cdef object value(self, long long node):
        return [self.holds(node)]


cdef class Constant(Exact):
    """Literals."""

    cdef list _items
    cdef double _number
    cdef object _exact

    def __init__(self, scratch: Scratch, items: Sequence[Atom]) -> None:
        super().__init__(scratch)
        self._items = list(items)
        self._number = self.constant()
        self._exact = _exact_number(self._items[0]) if len(self._items) == 1 else None
        self.is_exact = self._exact is not None
        self.is_number = not isnan(self._number) and is_exact(self._items[0])
        self.is_integer = (
            self.is_number and isinstance(self._items[0], int) and abs(self._number) < 1 << 31
        )

    cdef object value(self, long long node):
        return self._items

    cdef object items(self, long long node):
        return self._items

    cdef bint number(self, long long node, double* found) except -1:
        found[0] = self._number
        return True

    cdef int exact(self, long long node, long long* digits, int* places) except -1:
        digits[0], places[0] = self._exact
        return _ONE

    def constant(self) -> float:
        """The value of a single number as an xs:double; NaN for anything else."""
        if len(self._items) != 1 or not is_number(self._items[0]):
            return nan
        return to_double(self._items[0])


cdef class Not(Condition):
    cdef bint holds(self, long long node) except -1:
        return not self.operand.holds(node)


cdef class Guarded(Condition):
    """A condition of which an error does not hold: ``some $v in . satisfies``."""

    cdef bint holds(self, long long node) except -1:
        try:
            return self.operand.holds(node)
        except DynamicError:
            return False


cdef class Both(Condition):
    """``and``; with ``some``, ``or``."""

    cdef bint _wanted

    def __init__(
        self, scratch: Scratch, parts: Iterable[Operator], some: bool = False
    ) -> None:
        super().__init__(scratch, *parts)
        self._wanted = some

    cdef bint holds(self, long long node) except -1:
        cdef Operator part
        error: DynamicError | None = None
        for part in self.parts:
            try:
                if part.holds(node) == self._wanted:
                    return self._wanted
            except DynamicError as raised:
                error = raised
        if error is not None:
            raise error
        return not self._wanted


cdef class ValueCondition(Condition):
    """A path, and a test that is asked of values of its nodes."""

    cdef Path _path
    cdef ValueTest _test

    def __init__(self, path: Path, test: ValueTest) -> None:
        super().__init__(path.scratch, path)
        self._path = path
        self._test = test


cdef class SomeValue(ValueCondition):
    """A test accepts the value of some node: a general comparison with literals."""

    cdef bint holds(self, long long node) except -1:
        return self._path.some(node, self._test)


cdef class SomeString(Condition):
    """A test accepts some string of a value; DynamicError where there is something else."""

    cdef ValueTest _test

    def __init__(self, operand: Operator, test: ValueTest) -> None:
        super().__init__(operand.scratch, operand)
        self._test = test

    cdef bint holds(self, long long node) except -1:
        cdef Scratch scratch = self.scratch
        texts = self.operand.items(node)
        for text in texts:
            if not isinstance(text, str):
                raise DynamicError("XPTY0004", "a function takes strings")
        for text in texts:
            scratch.look_at_octets(text.encode())
            if self._test.accepts(scratch):
                return True
        return False


cdef class FirstValue(ValueCondition):
    """A test accepts the value of the first node, or the empty text where there is none."""

    def __init__(self, path: Path, test: ValueTest) -> None:
        super().__init__(path, test)
        self.is_costly |= isinstance(test, (Matches, Spelled))

    cdef bint holds(self, long long node) except -1:
        cdef Scratch scratch = self.scratch
        cdef long long found = self._path.first_node(node)
        if found == -1:
            scratch.look_at_octets(b"")
        else:
            scratch.look_at(found)
        return self._test.accepts(scratch)


cdef class SomeNode(Condition):
    """A condition holds at some node; an error at any node is one of the whole."""

    def __init__(self, nodes: Nodes, condition: Operator) -> None:
        super().__init__(nodes.scratch, nodes, condition)
        self.uses_context = nodes.uses_context

    cdef bint holds(self, long long node) except -1:
        cdef Scratch scratch = self.scratch
        cdef int base = (<Nodes>self.operand).collect(node)
        cdef bint found = False
        cdef int i
        for i in range(base, scratch.top):
            scratch.visit(1)
            found |= self.other.holds(scratch.nodes[i])
        scratch.top = base
        return found


cdef class OnlyValue(ValueCondition):
    """A value comparison with a text: there is at most one node; DynamicError for several."""

    cdef bint holds(self, long long node) except -1:
        cdef Scratch scratch = self.scratch
        cdef int base = self._path.collect(node)
        cdef int count = scratch.top - base
        scratch.top = base
        if count > 1:
            raise DynamicError("XPTY0004", "several items where one is wanted")
        if count == 0:
            return False
        scratch.look_at(scratch.nodes[base])
        return self._test.accepts(scratch)

    cdef object value(self, long long node):
        if not self._path.some(node, None):
            return []
        return [self.holds(node)]


cdef class NodeComparison(Operator):
    """``is``, ``<<`` and ``>>``: one node with one, by document order; nothing if either is
    missing."""

    cdef str _name

    def __init__(self, name: str, left: Nodes, right: Nodes) -> None:
        super().__init__(left.scratch, left, right)
        self._name = name

    cdef object value(self, long long node):
        cdef Scratch scratch = self.scratch
        cdef int base = (<Nodes>self.operand).collect(node)
        cdef int middle = (<Nodes>self.other).collect(node)
        cdef int top = scratch.top
        scratch.top = base
        if middle > base + 1 or top > middle + 1:
            raise DynamicError("XPTY0004", f"'{self._name}' compares one node with one")
        if middle == base or top == middle:
            return []
        one, other = scratch.nodes[base], scratch.nodes[middle]
        if self._name == "is":
            return [one == other]
        return [one < other if self._name == "<<" else one > other]


cdef class Exists(Condition):
    """There is any item."""

    cdef bint holds(self, long long node) except -1:
        cdef long long digits = 0
        cdef int places = 0
        cdef int found
        if _as_exact(self.operand):
            found = (<Exact>self.operand).exact(node, &digits, &places)
            if found != _UNKNOWN:
                return found == _ONE
        return len(self.operand.value(node)) > 0


cdef class CountIs(Condition):
    """The number of nodes compares so with a number."""

    cdef int _relation
    cdef double _number

    def __init__(self, path: Path, relation: Relation, number: float) -> None:
        super().__init__(path.scratch, path)
        self._relation = RELATIONS[relation]
        self._number = number

    cdef bint holds(self, long long node) except -1:
        return compares((<Path>self.operand).count(node), self._relation, self._number)


cdef class Equality(Condition):
    """What may be an equality of two operators."""

    def sides(self) -> tuple[tuple[Operator, Operator], ...]:
        """In both orders; nothing if it is none."""
        return ()


cdef class PathJoin(Equality):
    """Some value of one path compares so with some value of another; both are untyped."""

    cdef Path _left, _right
    cdef int _relation

    def __init__(self, left: Path, relation: Relation, right: Path) -> None:
        super().__init__(left.scratch, left, right)
        if left.is_ranged and not right.is_ranged:
            left, relation, right = right, MIRRORED[relation], left
        self._left = left
        self._right = right
        self._relation = RELATIONS[relation]

    def sides(self) -> tuple[tuple[Operator, Operator], ...]:
        one, other = self._left, self._right
        return () if self._relation else ((one, other), (other, one))

    cdef bint holds(self, long long node) except -1:
        cdef int count = 0
        cdef Row row = None
        if self._right.is_ranged:
            if self._relation == 0:
                count = self._right.first_equal(node, None, self._left)
                if count >= 0:
                    return count
            else:
                row = self._right.row(node, &count)
        left = self._left.value_set(node)
        if not left:
            return False
        if row is None:
            right = self._right.value_set(node)
        else:
            right = self._right.extremes(row, count)
        if not right:
            return False
        if self._relation == 0:
            return not left.isdisjoint(right)
        if self._relation == 1:
            return len(left) > 1 or len(right) > 1 or left != right
        if self._relation == 2:
            return min(left) < max(right)
        if self._relation == 3:
            return min(left) <= max(right)
        if self._relation == 4:
            return max(left) > min(right)
        return max(left) >= min(right)


cdef class Bound(Several):
    """An expression in which a variable ranges over a source: one that is a Variable over nodes,
    an ItemVariable over items of any kind."""

    cdef object variable
    cdef bint _of_nodes

    def __init__(
        self, scratch: Scratch, variable: Variable | ItemVariable | NodesVariable,
        source: Operator, rest: Operator
    ) -> None:
        super().__init__(scratch, source, rest)
        self.variable = variable
        self.free = source.free | (rest.free - {variable})
        self.is_costly = True
        self._of_nodes = isinstance(variable, Variable)

    cdef list look_up(self, long long node):
        """The items; None for nodes, which are on the stack then."""
        if not self._of_nodes:
            return list(self.operand.value(node))
        (<Nodes>self.operand).collect(node)
        return None

    cdef int bind(self, list items, int base, int place) except -1:
        self.scratch.visit(1)
        if self._of_nodes:
            (<Variable>self.variable).node = self.scratch.nodes[base + place]
        else:
            (<ItemVariable>self.variable)._items = [items[place]]
        return 0


cdef class Ranging(Bound):
    """``some`` or ``every`` node or item satisfies a condition about the variable."""

    cdef bint _every
    cdef Variable _outer

    def __init__(
        self, scratch: Scratch, variable: Variable | ItemVariable, source: Operator,
        condition: Operator, outer: Variable, every: bool
    ) -> None:
        """``outer``: the context node, for what in the source is about it."""
        super().__init__(scratch, variable, source, condition)
        self._every = every
        self._outer = outer
        self.uses_context |= outer in self.free
        self.free -= {outer}

    cdef list each(self, long long node, bint is_of_atoms):
        return [self.holds(node)]

    cdef bint holds(self, long long node) except -1:
        cdef bint answer = self._every
        cdef bint holds
        cdef int i
        cdef int base = self.scratch.top
        self._outer.node = node
        items = self.look_up(node)
        for i in range(self.scratch.top - base if items is None else len(items)):
            self.bind(items, base, i)
            try:
                holds = self.other.holds(node)
            except DynamicError:
                if self.scratch.strict:
                    raise
                holds = False
            if holds != self._every:
                answer = not self._every
                break
        self.scratch.top = base
        return answer


cdef class Binding(Bound):
    """``for`` of a FLWOR expression, with what stands behind it; ``place``: the variable of the
    position, if there is one."""

    cdef ItemVariable _place

    def __init__(
        self, scratch: Scratch, variable: Variable | ItemVariable | NodesVariable,
        source: Operator, rest: Operator, place: ItemVariable | None = None
    ) -> None:
        super().__init__(scratch, variable, source, rest)
        self._place = place
        self.free -= {place}

    cdef list each(self, long long node, bint is_of_atoms):
        """What stands behind it comes to, for one node or item after another."""
        cdef int i
        cdef int base = self.scratch.top
        cdef list found = []
        items = self.look_up(node)
        for i in range(self.scratch.top - base if items is None else len(items)):
            self.scratch.bind_tuple()
            self.bind(items, base, i)
            if self._place is not None:
                self._place._items = [i + 1]
            made = self.other.items(node) if is_of_atoms else self.other.value(node)
            if made:
                self.scratch.build(len(made))
                found += made
        self.scratch.top = base
        return found

    cdef int write(self, long long node, Output out) except -1:
        cdef int i
        cdef int base = self.scratch.top
        items = self.look_up(node)
        for i in range(self.scratch.top - base if items is None else len(items)):
            self.scratch.bind_tuple()
            self.bind(items, base, i)
            if self._place is not None:
                self._place._items = [i + 1]
            self.other.write(node, out)
        self.scratch.top = base
        return 0


cdef class Let(Passing):
    """``let`` of a FLWOR expression, or a parameter, with what stands behind it."""

    cdef object _variable

    def __init__(
        self, scratch: Scratch, variable: ItemVariable | NodesVariable, source: Operator,
        rest: Operator
    ) -> None:
        super().__init__(scratch, source, rest)
        self._variable = variable
        self.free = source.free | (rest.free - {variable})
        self.is_costly = True
        self.is_truth = rest.is_truth

    cdef Operator passes_on(self, long long* node):
        """The expression behind it, when the variable is bound."""
        cdef int base
        if isinstance(self._variable, NodesVariable):
            base = (<Nodes>self.operand).collect(node[0])
            (<NodesVariable>self._variable)._bound = self.scratch.taken(base)
        else:
            (<ItemVariable>self._variable)._items = list(self.operand.value(node[0]))
        return self.other


cdef class LetNodes(Nodes):
    """A ``let`` behind which nodes stand."""

    cdef int collect(self, long long node) except -1:
        return (<Nodes>(<Let>self.operand).passes_on(&node)).collect(node)


# -------------------------------------------------------------------------------------------------
# ``group by`` and ``order by``: the tuples of the clauses in front of them are gathered first.
#
# The innermost of these clauses has Gathered behind it, which keeps of each tuple the keys and what
# the variables are bound to, and yields nothing.  Then Gathering binds them again, row by row, for
# what stands behind.


cpdef object held_by(variable):
    """What a variable is bound to, for ``hold``."""
    if isinstance(variable, Variable):
        return (<Variable>variable).held()
    if isinstance(variable, NodesVariable):
        return (<NodesVariable>variable)._bound
    return (<ItemVariable>variable)._items


cpdef int hold(variable, held) except -1:
    """Bind a variable to what it was bound to before."""
    if isinstance(variable, Variable):
        (<Variable>variable).hold(held)
    elif isinstance(variable, NodesVariable):
        (<NodesVariable>variable)._bound = held
    else:
        (<ItemVariable>variable)._items = held
    return 0


cdef class Tuples:
    """The ``keys`` of tuples, row by row, and what variables are bound to: of those over nodes the
    ``nodes``, of the others what they are ``held`` by."""

    cdef Keys keys
    cdef int width, count
    cdef long long[::1] nodes
    cdef list held

    def __init__(self, keys: Keys, width: int) -> None:
        self.keys = keys
        self.width = width
        self.count = 0
        self.nodes = longs(16)
        self.held: list[Any] = []

    cdef int put_node(self, int at, long long node) except -1:
        if at >= len(self.nodes):
            self.nodes = grown(self.nodes, 2 * at)
        self.nodes[at] = node
        return 0


cdef class Gathered(Operator):
    """The end of clauses whose tuples are gathered: of each the atomic values of the ``keys``, and
    what ``variables`` are bound to.  A key that has a variable in ``names`` is bound to it, for the
    keys behind."""

    cdef tuple variables, keys, names
    cdef list _others, _is_used  # variables that are not over nodes; names that a key refers to
    cdef list _over_nodes
    cdef Tuples tuples

    def __init__(
        self, scratch: Scratch, variables: Sequence[Variable | ItemVariable | NodesVariable],
        keys: Sequence[Operator], names: Sequence[ItemVariable] = ()
    ) -> None:
        super().__init__(scratch, *keys)
        self.variables = tuple(variables)
        self.keys = tuple(keys)
        self.names = tuple(names)
        self._over_nodes = [one for one in variables if isinstance(one, Variable)]
        self._others = [one for one in variables if not isinstance(one, Variable)]
        self._is_used = [name in self.free for name in names]
        self.free = (self.free - frozenset(names)) | frozenset(variables)
        self.tuples = None

    cdef object value(self, long long node):
        cdef Tuples tuples = self.tuples
        cdef Keys keys = tuples.keys
        cdef int i, before
        cdef int first = keys.count
        try:
            for i in range(len(self.keys)):
                before = keys.count
                (<Operator>self.keys[i]).put_keys(node, keys)
                if keys.count > before + 1:
                    raise DynamicError("XPTY0004", "several items where one is wanted")
                if keys.count == before:
                    keys.put_missing()
                if self.names and self._is_used[i]:
                    (<ItemVariable>self.names[i])._items = _key_items(keys, before)
        except DynamicError:  # the tuple is left out
            keys.count = first
            if self.scratch.strict:
                raise
            return []
        for i in range(len(self._over_nodes)):
            tuples.put_node(
                tuples.count * len(self._over_nodes) + i, (<Variable>self._over_nodes[i]).node
            )
        for variable in self._others:
            tuples.held.append(held_by(variable))
        tuples.count += 1
        return []


cdef list _key_items(Keys keys, int at):
    """What a variable of ``group by`` is bound to."""
    if keys.kind[at] == _MISSING:
        return []
    atom = keys.atom(at)
    return [str(atom) if isinstance(atom, Untyped) else atom]


cdef class Gathering(Several):
    """The clauses up to a Gathered, and what stands ``rest`` behind it."""

    cdef Gathered end

    def __init__(
        self, scratch: Scratch, source: Operator, end: Gathered, rest: Operator,
        bound: Iterable[Variable | ItemVariable | NodesVariable]
    ) -> None:
        """``bound``: the variables that ``rest`` sees and nothing around does."""
        super().__init__(scratch, source, rest)
        self.end = end
        self.free = source.free | (rest.free - frozenset(bound))
        self.is_costly = True

    cdef Tuples gather(self, long long node):
        """The tuples, with their keys."""
        cdef Tuples found = Tuples(Keys(self.scratch), len(self.end.keys))
        outer, self.end.tuples = self.end.tuples, found
        try:
            self.operand.value(node)
            return found
        finally:
            self.end.tuples = outer

    cdef Bindings bindings(self, long long node):
        """What variables are to be bound to, for one row behind another."""
        raise NotImplementedError

    cdef list each(self, long long node, bint is_of_atoms):
        cdef list found = []
        cdef Bindings bindings = self.bindings(node)
        while bindings.bind_next():
            made = self.other.items(node) if is_of_atoms else self.other.value(node)
            self.scratch.build(len(made))
            found += made
        return found

    cdef int write(self, long long node, Output out) except -1:
        cdef Bindings bindings = self.bindings(node)
        while bindings.bind_next():
            self.other.write(node, out)
        return 0


cdef class Bindings:
    """The rows of tuples in the order in which they are bound."""

    cdef Tuples tuples
    cdef Gathered end
    cdef int[::1] rows
    cdef int at

    def __init__(self, end: Gathered, tuples: Tuples, int[::1] rows) -> None:
        self.end = end
        self.tuples = tuples
        self.rows = rows
        self.at = 0

    cdef bint bind_next(self) except -1:
        """Bind the variables; False behind the last row."""
        if self.at == len(self.rows):
            return False
        self.bind(self.rows[self.at])
        self.at += 1
        return True

    cdef int bind(self, int row) except -1:
        cdef list over_nodes = self.end._over_nodes
        cdef list others = self.end._others
        cdef int i
        for i in range(len(over_nodes)):
            (<Variable>over_nodes[i]).node = self.tuples.nodes[row * len(over_nodes) + i]
        for i in range(len(others)):
            hold(others[i], self.tuples.held[row * len(others) + i])
        return 0


cdef class OrderBy(Gathering):
    """``order by``: equal tuples stay as they came."""

    cdef tuple _orders

    def __init__(
        self, scratch: Scratch, source: Operator, end: Gathered, rest: Operator,
        orders: Iterable[tuple[bool, bool]]
    ) -> None:
        """``orders``: of each key whether it is descending, and whether nothing is greatest."""
        super().__init__(scratch, source, end, rest, end.variables)
        self._orders = tuple(orders)

    cdef Bindings bindings(self, long long node):
        cdef Tuples tuples = self.gather(node)
        cdef int[::1] rows = array("i", range(tuples.count))
        self._sort(tuples, rows, ints(tuples.count), 0, tuples.count)
        return Bindings(self.end, tuples, rows)

    cdef int _sort(
        self, Tuples tuples, int[::1] rows, int[::1] room, int first, int last
    ) except -1:
        """Merge what is sorted of both halves."""
        cdef int middle = (first + last) >> 1
        cdef int one = first
        cdef int other = middle
        cdef int at
        if last - first < 2:
            return 0
        self._sort(tuples, rows, room, first, middle)
        self._sort(tuples, rows, room, middle, last)
        for at in range(first, last):
            if other == last or (
                one < middle and not self._is_behind(tuples, rows[one], rows[other])
            ):
                room[at] = rows[one]
                one += 1
            else:
                room[at] = rows[other]
                other += 1
        rows[first:last] = room[first:last]
        return 0

    cdef bint _is_behind(self, Tuples tuples, int one, int other) except -1:
        cdef int i, sign
        self.scratch.visit(1)
        for i in range(tuples.width):
            is_descending, missing_greatest = self._orders[i]
            sign = tuples.keys.sign(
                one * tuples.width + i, other * tuples.width + i, missing_greatest
            )
            if sign:
                return (sign > 0) != is_descending
        return False


cdef class GroupBy(Gathering):
    """``group by``: a key is its value, another variable all its items."""

    cdef list _over_nodes, _others

    def __init__(
        self, scratch: Scratch, source: Operator, end: Gathered, rest: Operator,
        variables: Sequence[ItemVariable | NodesVariable]
    ) -> None:
        """``variables``: for those of ``end``, of a group."""
        super().__init__(scratch, source, end, rest, (*end.names, *variables))
        pairs = list(zip(end.variables, variables, strict=True))
        self._over_nodes = [group for one, group in pairs if isinstance(one, Variable)]
        self._others = [group for one, group in pairs if not isinstance(one, Variable)]

    cdef Bindings bindings(self, long long node):
        cdef Tuples tuples = self.gather(node)
        cdef KeyIndex index = KeyIndex(tuples.keys, None, tuples.width)
        sizes = tuples.count * len(self._over_nodes) + sum(map(len, tuples.held))
        if sizes > MUCH:
            self.scratch.evaluator().charge_memory(POINTER_BYTES * sizes)
        return Groups(self.end, tuples, index.heads(), index, self)


cdef class Groups(Bindings):
    """A row is the first of a group; the others are those with the same keys."""

    cdef KeyIndex _index
    cdef GroupBy _by

    def __init__(
        self, end: Gathered, tuples: Tuples, int[::1] rows, index: KeyIndex, by: GroupBy
    ) -> None:
        super().__init__(end, tuples, rows)
        self._index = index
        self._by = by

    cdef int bind(self, int row) except -1:
        cdef Tuples tuples = self.tuples
        cdef list over_nodes = self._by._over_nodes
        cdef list others = self._by._others
        cdef Scratch scratch = self._by.scratch
        cdef int base = scratch.top
        cdef int i, each
        for i in range(tuples.width):
            (<ItemVariable>self.end.names[i])._items = _key_items(
                tuples.keys, row * tuples.width + i
            )
        for i in range(len(over_nodes)):
            each = row
            while each >= 0:
                scratch.push(tuples.nodes[each * len(over_nodes) + i])
                each = self._index.after(each)
            (<NodesVariable>over_nodes[i])._bound = scratch.taken(base)
        for i in range(len(others)):
            each = row
            found = []
            while each >= 0:
                found.extend(tuples.held[each * len(others) + i])
                each = self._index.after(each)
            if isinstance(others[i], NodesVariable):
                found = array("q", found)
            hold(others[i], found)
        return 0


# -------------------------------------------------------------------------------------------------
# Values: the operators whose value is items.
#
# Numbers, texts and dates, and functions of them, are those of yfilter/language/atoms.py and
# function_library.py.


# How an argument is handed over: as it is, as all its atomic values, or as the first of them.
AS_IT_IS, ATOMS, FIRST = range(3)
_TAKES = {
    ArgumentKind.NODES: AS_IT_IS,
    ArgumentKind.ITEMS: AS_IT_IS,
    ArgumentKind.CONDITION: AS_IT_IS,
    ArgumentKind.ATOMS: ATOMS,
    ArgumentKind.STRINGS: ATOMS,
}


cdef class Evaluated(Operator):
    """An operator in Python (items.py), which defines ``evaluate``; ``bound``: variables that are
    bound for its parts alone."""

    def __init__(
        self, scratch: Scratch, parts: Iterable[Operator] = (),
        bound: Iterable[Variable | ItemVariable | NodesVariable] = ()
    ) -> None:
        super().__init__(scratch, *parts)
        self.free -= frozenset(bound)
        self.is_costly = True

    cdef object value(self, long long node):
        return self.evaluate(node)

    cdef object items(self, long long node):
        return self.scratch.evaluator().atoms(self.evaluate(node))

    def evaluate(self, node: int) -> Value:
        """The items at a context node; DynamicError."""
        raise NotImplementedError


cdef class ItemVariable(Exact):
    """A variable that ranges over items of any kind: the one at hand."""

    cdef public list _items

    def __init__(self, scratch: Scratch) -> None:
        super().__init__(scratch)
        self._items: list[Item] = []
        self.free = frozenset((self,))
        self.is_exact = True

    cdef int exact(self, long long node, long long* digits, int* places) except -1:
        if len(self._items) != 1:
            return _UNKNOWN
        return _exact_atom(self._items[0], digits, places)

    cdef object value(self, long long node):
        return self._items

    cdef object items(self, long long node):
        return self.scratch.evaluator().atoms(self._items)

    cdef int put_keys(self, long long node, Keys keys) except -1:
        for item in self._items:
            if isinstance(item, NODES):
                item = self.scratch.evaluator().atom(item)
            keys.put_atom(item)
        return 0


cdef class NodesVariable(Nodes):
    """A variable that ``let`` binds to nodes."""

    cdef public long long[::1] _bound

    def __init__(self, scratch: Scratch) -> None:
        super().__init__(scratch)
        self._bound = longs(0)
        self.free = frozenset((self,))

    cdef int collect(self, long long node) except -1:
        cdef int base = self.scratch.top
        cdef int i
        self.scratch.visit(len(self._bound))
        for i in range(len(self._bound)):
            self.scratch.push(self._bound[i])
        return base


cdef class Tried(Operator):
    """Nothing where an expression raises an error, as it is in a tuple of FLWOR."""

    def __init__(self, operand: Operator) -> None:
        super().__init__(operand.scratch, operand)
        self.is_truth = operand.is_truth

    cdef bint holds(self, long long node) except -1:
        cdef bint answer
        if not self.is_truth:
            answer = effective_boolean(self.value(node))
            return answer
        try:
            return self.operand.holds(node)
        except DynamicError:
            return False

    cdef object value(self, long long node):
        try:
            return self.operand.value(node)
        except DynamicError:
            return []

    cdef object items(self, long long node):
        try:
            return self.operand.items(node)
        except DynamicError:
            return []

    cdef int write(self, long long node, Output out) except -1:
        return out.attempt(self.operand, node)


cdef class NameOf(Operator):
    """``name``, ``local-name`` or ``namespace-uri`` of the first node of a path, an element or an
    attribute; found out once for each name of a message."""

    cdef object _said, _nothing
    cdef int _message
    cdef dict _texts

    def __init__(self, path: Path, said: Callable[[QualifiedName], str]) -> None:
        super().__init__(path.scratch, path)
        self._said = said
        self._nothing = said(QualifiedName("", "", ""))
        self._message = 0
        self._texts: dict[int, str] = {}

    cdef object value(self, long long node):
        return [self.first_atom(node)]

    cdef object first_atom(self, long long node):
        cdef Scratch scratch = self.scratch
        cdef long long found = (<Path>self.operand).first_node(node)
        cdef long long within = _within(found)
        cdef int name
        if found == -1 or (within == 0 and scratch.passes(DOCUMENTS, 0, found)):
            return self._nothing
        if within < 0:
            return self._said(QualifiedName("", "", scratch.target(found)))
        if self._message != scratch.message:
            self._message = scratch.message
            self._texts.clear()
        if within > 0:
            name = scratch.columns.attribute_name[within - 1]
        else:
            name = scratch.columns.name[_position(found)]
        text = self._texts.get(name)
        if text is None:
            text = self._texts[name] = self._said(scratch.columns.names[name])
        return text


cdef class NamedSo(Condition):
    """A test accepts a name of a node; each name is tested once."""

    cdef ValueTest _test
    cdef dict _known

    def __init__(self, name: NameOf, test: ValueTest) -> None:
        super().__init__(name.scratch, name)
        self._test = test
        self._known: dict[str, bool] = {}

    cdef bint holds(self, long long node) except -1:
        cdef Scratch scratch = self.scratch
        text = self.operand.first_atom(node)
        known = self._known.get(text)
        if known is None:
            scratch.look_at_octets(text.encode())
            known = self._test.accepts(scratch)
            if len(self._known) == _NAMES_MAX:
                self._known.clear()
            self._known[text] = known
        cdef bint answer = known
        return answer


cdef class AtMostOne(Selected):
    """``zero-or-one(nodes)``."""

    cdef int collect(self, long long node) except -1:
        cdef Scratch scratch = self.scratch
        cdef int base = (<Nodes>self.operand).collect(node)
        if scratch.top > base + 1:
            raise DynamicError("FORG0003", "several items where one at most is wanted")
        return base


cdef class CountOf(Operator):
    """How many nodes a path leads to."""

    def __init__(self, path: Path) -> None:
        super().__init__(path.scratch, path)
        self.is_integer = self.is_number = True

    cdef object value(self, long long node):
        return [(<Path>self.operand).count(node)]

    cdef bint number(self, long long node, double* found) except -1:
        found[0] = (<Path>self.operand).count(node)
        return True


cdef class Places(Operator):
    """The positions of the nodes that a path leads to."""

    cdef object value(self, long long node):
        return list(range(1, (<Path>self.operand).count(node) + 1))


NUMBER_CALLS = ("number", "round", "floor", "ceiling", "abs", "sum", "avg", "min", "max")

cdef enum:
    # Places in NUMBER_CALLS; from _SUM on functions of many values.
    _NUMBER = 0
    _ROUND = 1
    _FLOOR = 2
    _CEILING = 3
    _ABS = 4
    _SUM = 5
    _AVG = 6
    _MIN = 7


cdef class Call(Exact):
    """A function that is not declared."""

    cdef str _name
    cdef bytes _takes
    cdef bint _may_give_nodes

    def __init__(
        self, scratch: Scratch, name: str, arguments: Sequence[Operator], strict: bool = False
    ) -> None:
        """``strict``: an argument that is several items where one is wanted is an error."""
        super().__init__(scratch, *arguments)
        self.is_costly = True
        signature = FUNCTIONS.get(name) or Signature(ResultKind.ANY, (ArgumentKind.ITEMS,), 0)
        self._name = name
        kinds = [signature.argument(index) for index in range(len(self.parts))]
        self._takes = bytes(_TAKES.get(kind, FIRST) for kind in kinds)
        if name == "string":
            self._takes = bytes((FIRST,))
        if strict:
            self._takes = bytes(len(kinds))
        self._may_give_nodes = signature.result is ResultKind.ANY

    cdef object value(self, long long node):
        cdef Operator argument
        values: list[Value] = []
        cdef int i
        for i in range(len(self.parts)):
            argument = self.parts[i]
            if self._takes[i] == 2:
                first = argument.first_atom(node)
                values.append([] if first is None else [first])
            elif self._takes[i] == 1:
                values.append(argument.items(node))
            else:
                values.append(argument.value(node))
        return applied(self.scratch.evaluator(), self._name, values)

    cdef object items(self, long long node):
        value = self.value(node)
        if self._may_give_nodes:
            return self.scratch.evaluator().atoms(value)
        return value[:]


cdef class ToDecimal(Call):
    """``xs:decimal``."""

    def __init__(
        self, scratch: Scratch, name: str, arguments: Sequence[Operator], strict: bool = False
    ) -> None:
        super().__init__(scratch, name, arguments, strict)
        is_path = isinstance(arguments[0], Nodes)
        self.is_rough = not is_path and arguments[0].is_double
        self.is_exact = is_path or self.is_rough or _as_exact(arguments[0])

    cdef int exact(self, long long node, long long* digits, int* places) except -1:
        cdef Scratch scratch = self.scratch
        cdef Operator operand = self.operand
        cdef int base, count
        if self.is_rough:
            return _UNKNOWN
        if not isinstance(operand, Nodes):
            return (<Exact>operand).exact(node, digits, places)
        base = (<Nodes>operand).collect(node)
        count = scratch.top - base
        scratch.top = base
        if count != 1:
            return _NOTHING if count == 0 else _UNKNOWN
        scratch.look_at(scratch.nodes[base])
        return _exact_in(scratch.octets, scratch.first, scratch.last, digits, places)

    cdef int rough(self, long long node, double* found) except -1:
        if not self.is_rough:
            return Exact.rough(self, node, found)
        return _ONE if (<Operator>self.operand).number(node, found) else _NOTHING


cdef class TextCall(Operator):
    """A function of texts, each the first of its argument, an empty one for none."""

    cdef object _function

    def __init__(
        self, scratch: Scratch, function: Callable[..., Atom], arguments: Sequence[Operator]
    ) -> None:
        super().__init__(scratch, *arguments)
        self.is_costly = True
        self.is_integer = self.is_number = function is len
        self._function = function

    cdef object value(self, long long node):
        return [self.first_atom(node)]

    cdef object first_atom(self, long long node):
        cdef Operator argument
        cdef Scratch scratch = self.scratch
        texts = [argument.text(node) for argument in self.parts]
        for text in texts:
            scratch.visit(len(text) >> 6)
        return self._function(*texts)

    cdef object atom(self, long long node):
        return self.first_atom(node)

    cdef bint number(self, long long node, double* found) except -1:
        found[0] = self.first_atom(node)
        return True

    cdef bint holds(self, long long node) except -1:
        return bool(self.first_atom(node))


cdef class Concatenated(TextCall):
    """``concat``: the texts of values of any type, one behind another."""

    cdef object first_atom(self, long long node):
        cdef Operator argument
        texts = []
        for argument in self.parts:
            if isinstance(argument, Path):
                texts.append(argument.text(node))
            elif (atom := argument.first_atom(node)) is not None:
                texts.append(atom_text(atom))
        size = sum(map(len, texts))
        if size > _SHORT:
            budget = self.scratch.evaluator()
            budget.charge_memory(size)
            budget.charge_text(size)
        return "".join(texts)

    cdef int write(self, long long node, Output out) except -1:
        cdef Operator argument
        cdef Scratch scratch = self.scratch
        cdef long long found
        out.open_string()
        for argument in self.parts:
            scratch.visit(1)
            if isinstance(argument, Path):
                found = (<Path>argument).first_node(node)
                if found != -1:
                    scratch.look_at(found)
                    out.put_octets(scratch.octets, scratch.first, scratch.last)
            elif (atom := argument.first_atom(node)) is not None:
                octets = atom_text(atom).encode()
                out.put_octets(octets, 0, len(octets))
        return 0


cdef long long _SMALL = 10**9  # of integers whose product has few digits

cdef enum:
    # Operators of Arithmetic.
    _PLUS = 0
    _MINUS = 1
    _TIMES = 2
    _DIV = 3
    _MOD = 4


cdef class Arithmetic(Exact):
    """``+ - * div idiv mod`` of two numbers; nothing if either is missing."""

    cdef str _name
    cdef int _code

    def __init__(self, name: str, left: Operator, right: Operator) -> None:
        super().__init__(left.scratch, left, right)
        self.is_costly = True
        self._name = name
        self._code = ("+", "-", "*", "div", "mod", "idiv").index(name)
        is_of_doubles = (_as_double(left) and (_as_double(right) or right.is_number)) or (
            _as_double(right) and left.is_number
        )
        self.is_double = is_of_doubles and self._code <= _MOD
        self.is_integer = left.is_integer and right.is_integer and (
            self._code < _TIMES
            or (self._code == _MOD and isinstance(right, Constant) and right.constant() != 0)
        )
        self.is_number = is_of_doubles or self.is_integer
        self.is_exact = self._code < _MOD and _as_exact(left) and _as_exact(right)

    cdef int exact(self, long long node, long long* digits, int* places) except -1:
        cdef long long other = 0
        cdef int other_places = 0
        cdef int found = (<Exact>self.operand).exact(node, digits, places)
        if found == _UNKNOWN:
            return _UNKNOWN
        cdef int second = (<Exact>self.other).exact(node, &other, &other_places)
        if second == _UNKNOWN or found == _NOTHING or second == _NOTHING:
            return second if second == _UNKNOWN else _NOTHING
        if self._code == _DIV:
            return _divide(digits, places, other, other_places)
        if self._code == _TIMES:
            places[0] += other_places
            return _ONE if places[0] <= _PLACES_MAX and _times(digits, other) else _UNKNOWN
        if not _align(digits, places, &other, other_places):
            return _UNKNOWN
        digits[0] += other if self._code == _PLUS else -other
        return _ONE if -_DIGITS_MOST < digits[0] < _DIGITS_MOST else _UNKNOWN

    cdef bint number(self, long long node, double* found) except -1:
        cdef double other = 0
        try:
            if not self.operand.number(node, found) or not self.other.number(node, &other):
                return False
        except DynamicError:  # or the other value is missing, and this one need be no number
            result = self.atom(node)
            if result is None:
                return False
            found[0] = float(result)
            return True
        if self._code == _PLUS:
            found[0] += other
        elif self._code == _MINUS:
            found[0] -= other
        elif self._code == _TIMES:
            found[0] *= other
        elif self._code == _DIV:
            found[0] /= other
        elif self._code == _MOD:
            found[0] = fmod(found[0], other)
        else:
            if other == 0 or not isfinite(found[0] / other):
                arithmetic(self._name, found[0], other)  # an error
            found[0] = trunc(found[0] / other)
        return True

    cdef object value(self, long long node):
        found = self.atom(node)
        return [] if found is None else [found]

    cdef object atom(self, long long node):
        left = self.operand.atom(node)
        right = None if left is None else self.other.atom(node)
        if right is None:
            return None
        if type(left) is int and type(right) is int and self._code <= _TIMES:
            if -_SMALL < left < _SMALL and -_SMALL < right < _SMALL:
                if self._code == _TIMES:
                    return left * right
                return left + right if self._code == _PLUS else left - right
        return arithmetic(self._name, left, right)


cdef int _divide(long long* digits, int* places, long long other, int other_places) noexcept:
    """Divide by ten, a hundred, and so on."""
    cdef int power = 0
    while power < _PLACES_MAX and _tens[power] < other:
        power += 1
    places[0] += power - other_places
    if _tens[power] != other or not 0 <= places[0] <= _PLACES_MAX:
        return _UNKNOWN
    return _ONE


cdef bint _as_double(Operator operand) except -1:
    """Whether an operand of arithmetic is an xs:double, or becomes one, being untyped."""
    return operand.is_double or isinstance(operand, Path)


cdef class NumberCall(Call):
    """``number`` and rounding functions of one value, the sum and the like of many."""

    cdef int _code

    def __init__(self, scratch: Scratch, name: str, arguments: Sequence[Operator]) -> None:
        super().__init__(scratch, name, arguments)
        self._code = NUMBER_CALLS.index(name)
        is_path = isinstance(self.operand, Path)
        if len(self.parts) == 1 and (
            is_path or (self._code < _SUM and self.operand.is_double)
        ):
            self.is_number = True
            self.is_double = self._code < _SUM
        self.is_exact = (
            len(self.parts) == 1
            and _NUMBER < self._code <= _SUM
            and _as_exact(self.operand)
        )

    cdef int exact(self, long long node, long long* digits, int* places) except -1:
        cdef Operator operand = self.operand
        if self._code == _SUM:
            if isinstance(operand, OncePerMessage):
                operand = (<OncePerMessage>operand).operand
            if isinstance(operand, ForEachNode):
                return self._sum_exact(operand, node, digits, places)
        cdef int found = (<Exact>operand).exact(node, digits, places)
        cdef long long ten, rest
        if found == _NOTHING and self._code == _SUM:
            digits[0] = places[0] = 0
            return _ONE
        if found != _ONE or self._code == _SUM:
            return found
        if self._code == _ABS:
            digits[0] = abs(digits[0])
            return _ONE
        ten = _tens[places[0]]
        rest = digits[0] % ten
        if rest < 0:
            rest += ten
        digits[0] = (digits[0] - rest) // ten
        places[0] = 0
        if rest and (self._code == _CEILING or (self._code == _ROUND and 2 * rest >= ten)):
            digits[0] += 1
        return _ONE

    cdef int _sum_exact(
        self, ForEachNode each, long long node, long long* digits, int* places
    ) except -1:
        cdef Scratch scratch = self.scratch
        cdef int base = (<Nodes>each.operand).collect(node)
        cdef int found = _ONE
        cdef long long one
        cdef int one_places, i
        digits[0] = places[0] = 0
        for i in range(base, scratch.top):
            scratch.visit(1)
            found = (<Exact>each.other).exact(scratch.nodes[i], &one, &one_places)
            if found == _ONE:
                if not _align(digits, places, &one, one_places):
                    found = _UNKNOWN
                else:
                    digits[0] += one
                    if not -_DIGITS_MOST < digits[0] < _DIGITS_MOST:
                        found = _UNKNOWN
            if found == _UNKNOWN:
                break
        scratch.top = base
        return _UNKNOWN if found == _UNKNOWN else _ONE

    cdef bint number(self, long long node, double* found) except -1:
        cdef Operator operand = self.operand
        if self._code >= _SUM:
            return self._of_many(operand, node, found)
        if isinstance(operand, Path):
            if not self._first(operand, node, found):
                return self._code == _NUMBER
        elif not operand.number(node, found):
            found[0] = _NAN
            return self._code == _NUMBER
        if self._code == _ROUND:
            found[0] = rounded(found[0])
        elif self._code == _FLOOR:
            found[0] = floor(found[0])
        elif self._code == _CEILING:
            found[0] = ceil(found[0])
        elif self._code == _ABS:
            found[0] = fabs(found[0])
        return True

    cdef bint _first(self, Path path, long long node, double* found) except -1:
        """The value of the first node, NaN for none."""
        cdef Scratch scratch = self.scratch
        cdef long long first = path.first_node(node)
        found[0] = _NAN
        if first == -1:
            return False
        scratch.look_at(first)
        if self._code == _NUMBER:
            found[0] = number_in(scratch.octets, scratch.first, scratch.last)
        else:
            found[0] = scratch.number()
        return True

    cdef bint _of_many(self, Path path, long long node, double* found) except -1:
        cdef Scratch scratch = self.scratch
        cdef int base = path.collect(node)
        cdef int count = scratch.top - base
        cdef int i
        cdef double number
        scratch.top = base
        found[0] = 0
        for i in range(base, base + count):
            scratch.look_at(scratch.nodes[i])
            number = scratch.number()
            if self._code <= _AVG:
                found[0] += number
            elif i == base or number != number or (
                number < found[0] if self._code == _MIN else number > found[0]
            ):
                found[0] = number
                if number != number:  # - NaN
                    break
        if self._code == _AVG:
            found[0] /= count
        return count > 0 or self._code == _SUM


cdef class Negated(Operator):
    """A number with its sign turned."""

    def __init__(self, operand: Operator) -> None:
        super().__init__(operand.scratch, operand)
        self.is_double = self.is_number = _as_double(operand)

    cdef bint number(self, long long node, double* found) except -1:
        if not self.operand.number(node, found):
            return False
        found[0] = -found[0]
        return True

    cdef object value(self, long long node):
        atom = self.operand.atom(node)
        return [] if atom is None else [negate(atom)]


cdef class CastTo(Operator):
    """``cast as``, which takes one value, or none if that is ``optional``."""

    cdef str _type
    cdef bint _optional

    def __init__(self, type_name: str, optional: bool, operand: Operator) -> None:
        super().__init__(operand.scratch, operand)
        self._type = type_name
        self._optional = optional

    cdef object value(self, long long node):
        atom = self.operand.atom(node)
        if atom is not None:
            return [cast(atom, self._type)]
        if not self._optional:
            raise DynamicError("XPTY0004", "a cast of the empty sequence")
        return []


cdef class Remembered(Exact):
    """Atomic values that depend on one node, computed once for each node of a message; where there
    is one who asks, each time.  The node is the context, or is bound to ``variable``."""

    cdef Variable _variable
    cdef int users, _message
    cdef dict _known, _numbers

    def __init__(
        self, scratch: Scratch, operand: Operator, variable: Variable | None = None,
        users: int = 1
    ) -> None:
        super().__init__(scratch, operand)
        _be_as(self, operand)
        self.uses_context = True
        self.free = frozenset()
        self._variable = variable
        self.users = users
        self._message = 0

    cdef long long _at(self, long long node) except -2:
        """The context of the operand, where the node is bound."""
        if self._variable is None:
            return node
        self._variable.node = node
        return ROOT

    cdef object value(self, long long node):
        return self.items(node)

    cdef object items(self, long long node):
        if self.users < 2:
            return self.operand.items(self._at(node))
        self._forget()
        known = self._known.get(node)
        if known is None:
            known = self._known[node] = self.operand.items(self._at(node))
        return known

    cdef bint holds(self, long long node) except -1:
        if self.users < 2:
            return self.operand.holds(self._at(node))
        self._forget()
        known = self._known.get(node)
        if known is None and self.is_truth:
            known = self._known[node] = [self.operand.holds(self._at(node))]
        cdef bint answer = effective_boolean(self.items(node) if known is None else known)
        return answer

    cdef bint number(self, long long node, double* found) except -1:
        if self.users < 2:
            return self.operand.number(self._at(node), found)
        self._forget()
        known = self._numbers.get(node, self)
        if known is self:
            known = found[0] if self.operand.number(self._at(node), found) else None
            self._numbers[node] = known
        if known is None:
            return False
        found[0] = known
        return True

    cdef int exact(self, long long node, long long* digits, int* places) except -1:
        if self.users < 2:
            return (<Exact>self.operand).exact(self._at(node), digits, places)
        known = self.items(node)
        if len(known) != 1:
            return _UNKNOWN if known else _NOTHING
        return _exact_atom(known[0], digits, places)

    cdef int rough(self, long long node, double* found) except -1:
        if self.is_rough:
            return (<Exact>self.operand).rough(self._at(node), found)
        return Exact.rough(self, node, found)

    cdef int _forget(self) except -1:
        """Drop the knowledge of another message."""
        if self._message != self.scratch.message:
            self._message = self.scratch.message
            self._known = {}
            self._numbers = {}
        return 0


cdef int _be_as(Exact operator, Operator operand) except -1:
    """Give an operator the kind of value that another one has."""
    operator.is_double, operator.is_integer = operand.is_double, operand.is_integer
    operator.is_number, operator.is_truth = operand.is_number, operand.is_truth
    operator.is_exact = _as_exact(operand)
    operator.is_rough = operator.is_exact and (<Exact>operand).is_rough
    return 0


cdef class AtNode(Passing):
    """What is remembered of the node of a variable."""

    cdef Variable _variable

    def __init__(self, variable: Variable, operand: Remembered) -> None:
        super().__init__(operand.scratch, operand)
        _be_as(self, operand)
        self.uses_context = False
        self.free = frozenset((variable,))
        self._variable = variable

    cdef Operator passes_on(self, long long* node):
        node[0] = self._variable.node
        return self.operand


cdef class ItemComparison(Equality):
    """A general comparison: some pair of a value on the left and one on the right compares so."""

    cdef bint _has_number
    cdef double _number
    cdef int _compared
    cdef object _relation
    cdef bint _is_list
    cdef object _list
    cdef KeyIndex _index
    cdef Path _row
    cdef Operator _each
    cdef bint _is_exact

    def __init__(
        self, scratch: Scratch, left: Operator, relation: Relation, right: Operator
    ) -> None:
        super().__init__(scratch, left, right)
        self._relation = relation
        self._compared = RELATIONS[relation]
        self._number = right.constant() if isinstance(right, Constant) else nan
        self._has_number = not isnan(self._number)
        self.is_costly = not (self._has_number and isinstance(left, Remembered))
        is_second = _is_known(left) or _row_of(left) is not None
        if self._compared == 0 and is_second and not self._has_number:
            self.operand, self.other = right, left
        self._is_list = self._compared == 0 and _is_known(self.other)
        self._row = _row_of(self.other) if self._compared == 0 else None
        self._each = None
        if self._row is not None and isinstance(self.other, ForEachNode):
            self._each = (<ForEachNode>self.other).other
        self._list: list[Atom] | None = None
        self._index = None
        self._is_exact = _as_exact(left) and _as_exact(right)

    def sides(self) -> tuple[tuple[Operator, Operator], ...]:
        one, other = self.operand, self.other
        return () if self._compared else ((one, other), (other, one))

    cdef bint holds(self, long long node) except -1:
        cdef double number = 0
        cdef double second = 0
        if self.operand.is_number and self.other.is_number:
            return (
                self.operand.number(node, &number)
                and self.other.number(node, &second)
                and compares(number, self._compared, second)
            )
        cdef int found
        if self._is_exact:
            found = _compare_exact(self.operand, self._compared, self.other, node)
            if found != _UNKNOWN:
                return found
        if self._row is not None:
            found = self._row.first_equal(node, self._each, self.operand)
            if found >= 0:
                return found
        left = self.operand.items(node)
        if self._has_number and len(left) == 1 and type(left[0]) is float:
            number = left[0]
            if number == number:  # - not NaN
                return compares(number, self._compared, self._number)
        right = self.other.items(node)
        if not left or not right:
            return False
        if self._compared == 0 and len(left) == 1 and len(right) == 1:
            one, other = left[0], right[0]
            if isinstance(one, str) and isinstance(other, str):
                return one == other  # texts, or untyped
        if self._is_list and len(right) > _FEW_KEYS:
            found = self._is_in(left, right)
            if found >= 0:
                return found
        cdef bint answer = some_pair(self.scratch.evaluator(), left, self._relation, right)
        return answer

    cdef int _is_in(self, left, right) except -2:
        """Whether a value is in a list, which is asked of more than once: 1 or 0, -1 where no index
        can tell."""
        cdef Scratch scratch = self.scratch
        cdef Keys keys
        cdef int base = scratch.top
        cdef int found
        if right is not self._list:
            scratch.visit(len(right))
            keys = Keys(scratch)
            for atom in right:
                keys.put_atom(atom)
            self._list = right
            self._index = KeyIndex(keys, longs(len(right)))
        keys = Keys(scratch)
        for atom in left:
            keys.put_atom(atom)
        found = -1
        if self._index.push(keys, True):
            scratch.visit(len(left))
            found = scratch.top > base
        scratch.top = base
        return found


def _is_known(operator: Operator) -> bool:
    """Whether its items are one list for the whole message, or for many nodes of it."""
    return isinstance(operator, OncePerMessage) or (
        isinstance(operator, Path) and operator.is_anchored
    )


cdef Path _row_of(Operator operator):
    """The path on an axis of Rows that it is, or asks at each node of."""
    found = (<ForEachNode>operator).operand if isinstance(operator, ForEachNode) else operator
    return found if isinstance(found, Path) and (<Path>found).is_ranged else None


cdef class ValueComparison(Operator):
    """``eq`` and its like: one value with one; nothing if either is missing."""

    cdef object _relation

    def __init__(self, left: Operator, relation: Relation, right: Operator) -> None:
        super().__init__(left.scratch, left, right)
        self.is_costly = True
        self._relation = relation

    cdef object value(self, long long node):
        cdef double number = 0
        cdef double other = 0
        if self.operand.is_number and self.other.is_number:
            if self.operand.number(node, &number) and self.other.number(node, &other):
                return [compares(number, RELATIONS[self._relation], other)]
            return []
        left = self.operand.atom(node)
        right = None if left is None else self.other.atom(node)
        if right is None:
            return []
        return [compare(left, self._relation, right)]


cdef class ForEachNode(Several):
    """``left/right`` where ``right`` is no step: its atomic values for each node of ``left``."""

    def __init__(self, left: Nodes, right: Operator) -> None:
        super().__init__(left.scratch, left, right)
        self.is_costly = True
        self.uses_context = left.uses_context
        self.is_exact = _as_exact(right)
        self.is_rough = self.is_exact and (<Exact>right).is_rough

    cdef int _only(self, long long node, long long* found) except -1:
        """The one node of ``left``: _ONE, or _NOTHING; _UNKNOWN of several."""
        cdef Scratch scratch = self.scratch
        cdef int base = (<Nodes>self.operand).collect(node)
        cdef int count = scratch.top - base
        scratch.top = base
        if count == 1:
            found[0] = scratch.nodes[base]
        return _UNKNOWN if count > 1 else _ONE if count else _NOTHING

    cdef int exact(self, long long node, long long* digits, int* places) except -1:
        cdef int found = self._only(node, &node)
        return found if found != _ONE else (<Exact>self.other).exact(node, digits, places)

    cdef int rough(self, long long node, double* number) except -1:
        cdef int found = self._only(node, &node)
        return found if found != _ONE else (<Exact>self.other).rough(node, number)

    cdef list each(self, long long node, bint is_of_atoms):
        cdef Scratch scratch = self.scratch
        cdef int base = (<Nodes>self.operand).collect(node)
        cdef int i
        cdef list found = []
        for i in range(base, scratch.top):
            node = scratch.nodes[i]
            made = self.other.items(node) if is_of_atoms else self.other.value(node)
            scratch.build(1 + len(made))
            found += made
        scratch.top = base
        return found


cdef class Chosen(Passing):
    """``if``: a condition, its consequence and the alternative."""

    def __init__(self, condition: Operator, *parts: Operator) -> None:
        super().__init__(condition.scratch, condition, *parts)
        self.is_exact = all(_as_exact(part) and not (<Exact>part).is_rough for part in parts)

    cdef Operator passes_on(self, long long* node):
        return self.parts[1 if self.operand.holds(node[0]) else 2]


cdef class Joined(Several):
    """``(a, b)``."""

    cdef list each(self, long long node, bint is_of_atoms):
        cdef Operator part
        cdef list found = []
        for part in self.parts:
            made = part.items(node) if is_of_atoms else part.value(node)
            self.scratch.build(len(made))
            found += made
        return found

    cdef int write(self, long long node, Output out) except -1:
        cdef Operator part
        for part in self.parts:
            part.write(node, out)
        return 0


cdef class Filtered(Operator):
    """``(items)[predicate]``; a predicate that ``is_fixed`` depends on no item, nor on where one
    stands, and is evaluated once.  One that asks for the item finds it in ``context``."""

    cdef bint _is_fixed
    cdef ItemVariable _context

    def __init__(
        self, scratch: Scratch, source: Operator, predicate: Operator, is_fixed: bool,
        context: ItemVariable | None = None
    ) -> None:
        super().__init__(scratch, source, predicate)
        self.free -= {context}
        self._is_fixed = is_fixed and isinstance(predicate, Numbered)
        self._context = context or ItemVariable(scratch)

    cdef object value(self, long long node):
        cdef Scratch scratch = self.scratch
        cdef list kept = []
        found = self.operand.value(node)
        if self._is_fixed and found:
            return self._at_place(found, node)
        outer = scratch.position, scratch.size, self._context._items
        scratch.size = len(found)
        scratch.position = 0
        try:
            for item in found:
                scratch.visit(1)
                scratch.position += 1
                self._context._items = [item]
                try:
                    if self.other.holds(node):
                        kept.append(item)
                except DynamicError:
                    if scratch.strict:
                        raise
        finally:
            scratch.position, scratch.size, self._context._items = outer
        return kept

    cdef list _at_place(self, list found, long long node):
        try:
            asked = (<Numbered>self.other).operand.value(node)
            if len(asked) != 1 or not is_number(asked[0]):
                return found[:] if effective_boolean(asked) else []
        except DynamicError:
            if self.scratch.strict:
                raise
            return []
        place = asked[0]
        is_there = 1 <= place <= len(found) and place == int(place)
        return [found[int(place) - 1]] if is_there else []

    cdef object items(self, long long node):
        return self.scratch.evaluator().atoms(self.value(node))


cdef class EachItem(Operator):
    """``left ! right``, whose right side has the item in the variable ``context``; ``left/right``
    where it ``is_path``: the left side gives nodes, and nodes come in document order."""

    cdef ItemVariable _context
    cdef bint _is_path

    def __init__(
        self, scratch: Scratch, context: ItemVariable, source: Operator, right: Operator,
        is_path: bool
    ) -> None:
        super().__init__(scratch, source, right)
        self.free -= {context}
        self.is_costly = True
        self._context = context
        self._is_path = is_path

    cdef object value(self, long long node):
        cdef Scratch scratch = self.scratch
        cdef list found = []
        cdef int base
        items = self.operand.value(node)
        outer = scratch.position, scratch.size, self._context._items
        try:
            for place, item in enumerate(items, 1):
                scratch.position, scratch.size, self._context._items = place, len(items), [item]
                made = self.other.value(node)
                scratch.build(1 + len(made))
                found += made
        finally:
            scratch.position, scratch.size, self._context._items = outer
        if not self._is_path or not any([isinstance(item, NODES) for item in found]):
            return found
        if not all([isinstance(item, NODES) for item in found]):
            raise DynamicError("XPTY0018", "a step yields both nodes and values")
        base = scratch.top
        for one in scratch.evaluator().nodes(found):
            scratch.push(scratch.number_of(one))
        scratch.tidy(base)
        return scratch.nodes_from(base)

    cdef object items(self, long long node):
        return self.scratch.evaluator().atoms(self.value(node))


cdef class Range(Operator):
    """``first to last``."""

    cdef object value(self, long long node):
        first = self.operand.atom(node)
        last = None if first is None else self.other.atom(node)
        if last is None:
            return []
        return integers(self.scratch.evaluator(), first, last)


cdef class Castable(CastTo):
    """``castable as``."""

    cdef object value(self, long long node):
        return [self.holds(node)]

    cdef bint holds(self, long long node) except -1:
        value = self.operand.value(node)  # of which an error is one of the whole
        try:
            if len(value) > 1:
                return False
            atom = self.operand.atom(node)
            if atom is not None:
                cast(atom, self._type)
            return self._optional or atom is not None
        except DynamicError:
            return False


cdef class Declared(Operator):
    """A value as an argument of a declared type."""

    cdef object _type

    def __init__(self, operand: Operator, type_: SequenceType) -> None:
        super().__init__(operand.scratch, operand)
        self._type = type_

    cdef object value(self, long long node):
        return as_declared(self.scratch.evaluator(), self.operand.value(node), self._type)

    cdef object items(self, long long node):
        return self.scratch.evaluator().atoms(self.value(node))


cdef class OfType(Declared):
    """``instance of``."""

    cdef object value(self, long long node):
        return [self.holds(node)]

    cdef bint holds(self, long long node) except -1:
        return is_of_type(self.scratch.evaluator(), self.operand.value(node), self._type)


cdef class OncePerMessage(Exact):
    """A value that depends on the message alone: computed once for each, an error as well."""

    cdef int _message
    cdef list _known  # the value, its atoms and its truth
    cdef object _error
    cdef int _exactly, _places  # what ``exact`` says; -1 until it is asked
    cdef long long _digits

    def __init__(self, operand: Operator) -> None:
        super().__init__(operand.scratch)
        self.operand = operand
        self.is_exact = _as_exact(operand) and not (<Exact>operand).is_rough
        self._message = 0
        self._known: list[Any] = []
        self._error: DynamicError | None = None

    cdef object value(self, long long node):
        return self._look_up(0)

    cdef object items(self, long long node):
        return self._look_up(1)

    cdef int exact(self, long long node, long long* digits, int* places) except -1:
        self._look()
        if self._exactly < 0:
            self._exactly = (<Exact>self.operand).exact(ROOT, &self._digits, &self._places)
        digits[0], places[0] = self._digits, self._places
        return self._exactly

    cdef bint holds(self, long long node) except -1:
        cdef bint answer = self._look_up(2)
        return answer

    cdef int write(self, long long node, Output out) except -1:
        if isinstance(self.operand, Nodes):
            return self.operand.write(ROOT, out)
        return out.put_items(self.value(node))

    cdef int _look(self) except -1:
        """Forget what was of another message; raise the error that is known of this one."""
        if self._message != self.scratch.message:
            self._message = self.scratch.message
            self._known = [None, None, None]
            self._error = None
            self._exactly = -1
        if self._error is not None:
            raise self._error
        return 0

    cdef object _look_up(self, int place):
        """What is known at a place, found out first."""
        self._look()
        found = self._known[place]
        if found is None:
            try:
                if place == 0:
                    found = self.operand.value(ROOT)
                else:
                    found = self.operand.items(ROOT) if place == 1 else self.operand.holds(ROOT)
            except DynamicError as error:
                self._error = error
                raise
            self._known[place] = found
        return found


# -------------------------------------------------------------------------------------------------
# OperatorTable: the conditions that index and results ask operators about, each once.
#
# An entry is an expression that stands by itself, with its operator and a count of users: records
# of the index, and other entries that share it.  It holds the symbols and attributes that its
# operators name, and gives them up with its last user.

cdef enum:
    _TIMED_FROM = 512  # visits of a condition on a message, for all its elements
    _VISIT_NANOS = 20
    _INTERPRETED_NANOS = 1_000


_COLUMN_TESTS = frozenset((EqualTo, OneOf, Ordered, NumberTest))  # which cost little


cdef class ValueColumn:
    """The values that a path has at some elements: ``nodes``, and the element of each."""

    cdef Scratch _scratch
    cdef int _size
    cdef int[::1] _owners
    cdef long long[::1] _nodes
    cdef double[::1] _numbers
    cdef dict _by_value

    def __init__(self, scratch: Scratch, owners: array[int], nodes: array[int]) -> None:
        self._scratch = scratch
        self._size = len(nodes)
        self._owners = owners
        self._nodes = nodes
        self._numbers = None

    cdef list accepted(self, ValueTest test):
        """The elements of which a test accepts some value, in order."""
        cdef list found = []
        cdef int i
        cdef int last = -1
        if type(test) is EqualTo and (<EqualTo>test)._wanted:
            if self._by_value is None:
                self._group()
            return self._by_value.get((<EqualTo>test)._octets, found)
        if type(test) is NumberTest and self._numbers is None:
            self._read()
        for i in range(self._size):
            if self._owners[i] != last and self._accepts(test, i):
                last = self._owners[i]
                found.append(last)
        return found

    cdef bint _accepts(self, ValueTest test, int i) except -1:
        cdef double number = _NAN
        if type(test) is NumberTest:
            number = self._numbers[i]
            if number == number:
                return compares(number, (<NumberTest>test)._operator, (<NumberTest>test).number)
        self._scratch.look_at(self._nodes[i])
        return test.accepts(self._scratch)

    cdef int _group(self) except -1:
        """Find the elements of each value."""
        cdef Scratch scratch = self._scratch
        cdef int i
        self._by_value: dict[bytes, list[int]] = {}
        for i in range(self._size):
            scratch.look_at(self._nodes[i])
            octets = scratch.octets[scratch.first : scratch.last]
            owners = self._by_value.setdefault(octets, [])
            if not owners or owners[len(owners) - 1] != self._owners[i]:
                owners.append(self._owners[i])
        return 0

    cdef int _read(self) except -1:
        """Read the values as numbers; NaN for one that is none, or compares with none."""
        cdef Scratch scratch = self._scratch
        cdef int i
        self._numbers = doubles(self._size)
        for i in range(self._size):
            scratch.look_at(self._nodes[i])
            self._numbers[i] = _NAN
            if scratch.is_untyped:
                self._numbers[i] = number_in(scratch.octets, scratch.first, scratch.last)
        return 0


class _Entry:
    """``Holder`` of what is compiled for one expression."""

    __slots__ = (
        *("_table", "expression", "parts", "scratch", "symbols"),
        "users",
    )

    def __init__(self, table: OperatorTable, expression: Expression) -> None:
        self._table = table
        self.scratch = table.scratch
        self.expression = expression
        self.users = 1
        self.symbols: list[int] = []
        self.parts: list[int] = []

    def symbol(self, test: NameTest) -> int:
        symbol = self._table.new_symbol(test)
        self.symbols.append(symbol)
        return symbol

    def shared(self, expression: Expression) -> Operator:
        number = self._table.acquire(expression)
        self.parts.append(number)
        return self._table.operator(number)


cdef class OperatorTable:
    """``acquire`` and ``release`` expressions; ``begin`` a message, then ask which of them hold.

    ``over_limit`` counts conditions that cost more than EvaluationLimits on a message, on all its
    elements together: from then on they hold, as far as anybody knows.  ``gave_up``: whether the
    last answer was such a one, and ``exceeded`` why; the caller resets it.  ``visits``: the cost
    of the last answer, ``nanos``: the time of all, about.
    """

    def __init__(
        self, columns: MessageColumns, limits: EvaluationLimits, compiler: Callable[[object], Any]
    ) -> None:
        """``compiler``: of one expression, see compiler.py."""
        self._compiler = compiler
        self.scratch = Scratch(columns, limits)
        self._operators: list[Operator | None] = [None]
        self._entries: list[_Entry | None] = [None]
        self._numbers: dict[Expression, int] = {}
        self._free: list[int] = []
        self._stream: ElementStream | None = None
        self._is_new = False
        self._answers: dict[int, bool] = {}
        self._selected: dict[int, list[int]] = {}
        self._columns: dict[tuple[int, bytes], ValueColumn] = {}
        self._spent: dict[int, int] = {}  # visits on this message, of costly conditions
        self._seconds: dict[int, float] = {}  # of those that have spent more than a little
        self._why: dict[int, MatchLimitExceeded] = {}  # of those that were given up
        self._late: dict[int, int] = {}  # messages for which they will be, untried
        self._limits = limits
        self.over_limit = 0
        self.gave_up = False
        self.exceeded = too_much_time(limits)
        self.visits = 0
        self.nanos = 0

    def acquire(self, expression: Expression) -> int:
        """The number of an expression, or of a Returned, which has one user more."""
        number = self._numbers.get(expression)
        if number is not None:
            entry = self._entries[number]
            assert entry is not None
            entry.users += 1
            self._count_user(number, 1)
            return number
        entry = _Entry(self, expression)
        operator = self._compiler(entry).once(expression)
        if self._free:
            number = self._free.pop()
            self._operators[number], self._entries[number] = operator, entry
        else:
            number = len(self._operators)
            self._operators.append(operator)
            self._entries.append(entry)
        self._numbers[expression] = number
        self._is_new = True  # it may have names that nobody asked for before
        return number

    def release(self, number: int) -> None:
        """Take one use back."""
        entry = self._entries[number]
        assert entry is not None
        entry.users -= 1
        if entry.users:
            self._count_user(number, -1)
            return
        self._late.pop(number, None)
        del self._numbers[entry.expression]
        self._operators[number] = self._entries[number] = None
        self._free.append(number)
        for symbol in entry.symbols:
            self.scratch.symbols.release(symbol)
        for part in entry.parts:
            self.release(part)

    cdef int _count_user(self, int number, int change) except -1:
        """A value is remembered for several users."""
        operator = self._operators[number]
        if isinstance(operator, Remembered):
            (<Remembered>operator).users += change
        return 0

    def operator(self, number: int) -> Operator:
        found = self._operators[number]
        assert found is not None
        return found

    def expression(self, number: int) -> Expression:
        entry = self._entries[number]
        assert entry is not None
        return entry.expression

    def begin(self, stream: ElementStream) -> None:
        """A message that the columns are bound to; nothing is done before somebody asks."""
        self._stream = stream
        self._is_new = True

    cdef bint holds(self, int number, int element) except -1:
        """Whether a condition holds on an element; one that raises an error does not, one that
        costs too much does (``gave_up``)."""
        cdef Operator asked = self._operators[number]
        cdef long long key = number
        cdef bint answer = False
        cdef Scratch scratch = self.scratch
        cdef long long spent = 0
        self._look()
        if asked.is_costly:
            key = key << 32 | element
            known = self._answers.get(key)
            if known is not None:
                self.visits = 1
                return known
            spent = self._spent.get(number, 0)
            if self._is_spent(number, spent):
                return True
        self._restart(number, spent)
        try:
            answer = asked.holds(KINDS * element)
        except DynamicError:
            pass
        except MatchLimitExceeded as error:
            self.exceeded = error.with_traceback(None)
            scratch.visits = scratch.visits_max + 1
        cdef bint is_over = self._spend(asked, number, spent)
        if is_over:
            self.gave_up = answer = True
        self.visits = scratch.visits - spent
        if asked.is_costly:
            if not is_over:
                self._answers[key] = answer
            self._spent[number] = scratch.visits
        return answer

    cdef object compute(self, int number, int element, int items):
        """The atomic values that an expression has of an element, as far as they count; None where
        it raises an error, or costs too much (``gave_up``).  Of a path those of the nodes from a
        place of the stack on, which the caller takes off; a float for one number."""
        cdef Operator asked = self._operators[number]
        cdef Scratch scratch = self.scratch
        cdef long long node = KINDS * element
        cdef long long spent
        cdef double value = 0
        cdef int base
        self._look()
        spent = self._spent.get(number, 0)
        if self._is_spent(number, spent):
            return None
        self._restart(number, spent)
        found = None
        try:
            if isinstance(asked, Path):
                base = (<Path>asked).collect(node)
                if items != ONLY_ITEM or scratch.top <= base + 1:
                    found = base
            elif asked.is_number and items != FIRST_ITEM:
                if asked.number(node, &value):
                    found = value
            elif items == EACH_ITEM:
                found = asked.items(node)
            elif items == ONLY_ITEM:
                found = [asked.atom(node)]
            else:
                found = [asked.first_atom(node)]
        except DynamicError:
            pass
        except MatchLimitExceeded as error:
            self.exceeded = error.with_traceback(None)
            scratch.visits = scratch.visits_max + 1
        cdef bint is_over = self._spend(asked, number, spent)
        self.visits = scratch.visits - spent
        self._spent[number] = scratch.visits
        if is_over:
            self.gave_up = True
            return None
        return found

    cdef bint _is_spent(self, int number, long long spent) except -1:
        """Whether an expression was given up on this message."""
        if spent <= self.scratch.visits_max:
            return False
        self.visits = 1
        self.gave_up = True
        self.exceeded = self._why[number]
        return True

    cdef int _restart(self, int number, long long spent) except -1:
        """Go on with the budget of an expression, of which some is spent."""
        cdef Scratch scratch = self.scratch
        scratch.restart(spent)
        if spent > _TIMED_FROM:
            scratch.began = self._limits.clock() - self._seconds.get(number, 0.0)
        return 0

    cdef bint _spend(self, Operator operator, int number, long long spent) except -1:
        """Count what an answer has cost; whether that is too much."""
        cdef Scratch scratch = self.scratch
        if not scratch._is_spent and scratch._evaluator is not None:
            is_within = scratch.visits <= scratch.visits_max
            scratch.visits += scratch._evaluator.visits
            if is_within and scratch.visits > scratch.visits_max:
                self.exceeded = too_many_visits()
            scratch.began = scratch._evaluator.began
            self.nanos += _INTERPRETED_NANOS * scratch._evaluator.visits
        cdef bint is_timed = operator.is_costly and scratch.began != _NOT_BEGUN
        if not is_timed and scratch.visits <= scratch.visits_max:
            self.nanos += _VISIT_NANOS * (scratch.visits - spent)
        if is_timed:
            seconds = self._limits.clock() - scratch.began
            self.nanos += int((seconds - self._seconds.get(number, 0.0)) * 1e9)
            self._seconds[number] = seconds
            if seconds > self._limits.seconds_max and scratch.visits <= scratch.visits_max:
                self.exceeded = too_much_time(self._limits)
                scratch.visits = scratch.visits_max + 1
        if scratch.visits <= scratch.visits_max:
            return False
        scratch.visits = scratch.visits_max + 1  # the batched question was not answered
        self._why[number] = self.exceeded
        if self._limits.is_final(self.exceeded.code):
            self.over_limit += 1
        else:
            self._late[number] = self._limits.late_messages
        return True

    cpdef list elements(self, int number, int condition=0):
        """The elements that a path from the message selects, in document order; with the number
        of a condition those on which that holds.  Raises MatchLimitExceeded, which has those that
        were ``found`` before."""
        cdef int element
        self._look()
        selected = self._selected.get(number)
        if selected is None:
            selected = self._selected[number] = self._select(number)
        cdef list found = selected
        if condition == 0:
            return found
        cdef list kept = self._accepted(number, found, self._operators[condition])
        if kept is not None:
            return kept
        kept = []
        for element in found:
            holds = self.holds(condition, element)
            if self.gave_up:
                self.gave_up = False
                cut = MatchLimitExceeded(self.exceeded.code, self.exceeded.reason)
                cut.found, cut.unseen = kept, [one for one in found if one >= element]
                raise cut
            if holds:
                kept.append(element)
        return kept

    cdef list _accepted(self, int number, list elements, Operator condition):
        """The elements of a path on which a condition holds, by columns of values; None where the
        elements have to be asked one by one."""
        cdef ValueColumn column
        cdef list kept
        if type(condition) is SomeValue:
            test = (<SomeValue>condition)._test
            if type(test) in _COLUMN_TESTS:
                column = self._column(number, elements, (<SomeValue>condition)._path)
                return None if column is None else column.accepted(test)
            return None
        if type(condition) is Both and not (<Both>condition)._wanted:
            kept = elements
            for part in (<Both>condition).parts:
                accepted = self._accepted(number, elements, part)
                if accepted is None:
                    return None
                kept = accepted if kept is elements else sorted(set(kept).intersection(accepted))
            return kept
        return None

    cdef object _column(self, int number, list elements, Operator found_by):
        """The values of a path at the elements of another; None where that is not worth it."""
        cdef Scratch scratch = self.scratch
        cdef Path path = found_by
        cdef int element, base, first
        if path.signature is None:
            return None
        key = number, path.signature
        known = self._columns.get(key)
        if known is not None:
            return known
        scratch.restart()
        base = scratch.top
        owners = array("i")
        try:
            for element in elements:
                scratch.visits = 0
                first = path.collect(KINDS * element)
                owners.extend([element] * (scratch.top - first))
        except MatchLimitExceeded:
            scratch.top = base
            return None
        nodes = array("q", scratch.nodes[base : scratch.top])
        scratch.top = base
        column = self._columns[key] = ValueColumn(scratch, owners, nodes)
        return column

    cdef list _select(self, int number):
        """The elements of a path, which nobody has asked for on this message; those of its
        attributes, texts and comments."""
        cdef Operator asked = self._operators[number]
        cdef Scratch scratch = self.scratch
        cdef Path path
        cdef OncePerMessage once
        cdef int base, i
        cdef long long node
        found: list[int] = []
        scratch.restart()
        if isinstance(asked, OncePerMessage):
            once = asked
            asked = once.operand
        try:
            base = scratch.top
            if isinstance(asked, Path):
                path = asked
                path.collect(ROOT)
            else:
                for item in asked.value(ROOT):
                    if isinstance(item, Node):
                        scratch.push(scratch.number_of(item))
        except DynamicError:
            scratch.top = base
            return found
        for i in range(base, scratch.top):
            node = scratch.nodes[i]
            if scratch.root(node) != ROOT:
                continue
            found.append(max(_position(scratch.parent(node) if _within(node) < 0 else node), 0))
        scratch.top = base
        return sorted({*found})

    def answer(self, number: int, element: int) -> bool:
        """``holds``, for Python; one that costs too much does not."""
        holds = self.holds(number, element) and not self.gave_up
        self.gave_up = False
        return holds

    cdef int _look(self) except -1:
        """Begin the message, unless that was done."""
        if self._is_new and self._stream is not None:
            self.scratch.begin()
            self._answers.clear()
            self._spent.clear()
            self._why.clear()
            self._seconds.clear()
            self._selected.clear()
            self._columns.clear()
            self._is_new = False
            if self._late:
                self._pass_over_late()
        return 0

    def _pass_over_late(self) -> None:
        """The conditions that took too long lately count as given up."""
        for number, left in list(self._late.items()):
            if left > 1:
                self._late[number] = left - 1
            else:
                del self._late[number]
            self._spent[number] = self.scratch.visits_max + 1
            self._why[number] = too_much_time(self._limits)

    def __len__(self) -> int:
        """How many expressions there are."""
        return len(self._of_expressions())

    def _of_expressions(self) -> list[_Entry]:
        """The entries that are no results."""
        entries = (entry for entry in self._entries if entry is not None)
        return [entry for entry in entries if isinstance(entry.expression, Expression)]

    def lines(self, operators_max: int) -> Iterator[str]:
        """For people: the oldest entries, and how many more there are."""
        entries = self._of_expressions()
        if entries:
            yield "operators (conditions that are verified, and what they share)"
        for entry in entries[:operators_max]:
            yield f"  {unparse(entry.expression)}"
        if len(entries) > operators_max:
            yield f"… and {len(entries) - operators_max} operators more"

    def new_symbol(self, test: NameTest) -> int:
        return self.scratch.symbols.acquire(test)
