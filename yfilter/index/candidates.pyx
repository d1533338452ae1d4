"""The candidates of a message: found by a run through the automaton, verified on its columns.

Run moves a message through the lazy states.  Candidates takes the queries that these accept, and
Residuals and Twigs verify the rest of each on the MessageView.  QueryWriter does the opposite: it
chooses the access path of a new query and writes the query into trie and records.
"""

from array import array
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import TypeAlias

from formats.element_stream import ElementStream
from yfilter.errors import MatchLimitExceeded
from yfilter.index.automaton import PRESENCE, Column, number_key, test_key
from yfilter.index.columns import doubles, grown, ints, longs
from yfilter.index.pattern_texts import pattern_test
from yfilter.index.target_groups import TargetGroups
from yfilter.index.text_programs import about_text
from yfilter.language.atoms import cast
from yfilter.language.budget import too_many_visits
from yfilter.language.functions import OF_PLACES
from yfilter.language.nodes import AnyUri, Atom, DynamicError, Temporal, Untyped
from yfilter.language.numbers import as_double, is_exact
from yfilter.language.places import written_test
from yfilter.language.query_ast import Expression, FunctionCall, Literal, NodeKind
from yfilter.language.shapes import Word

cimport cython
from libc.math cimport fabs, fmod, isfinite

from yfilter.index.automaton cimport (
    ATOM_BITS, ATTRIBUTES, AT_LEAST, AT_MOST, CHECK_A, CHECK_ANYWHERE, CHECK_ATOM, CHECK_B,
    CHECK_COLUMN, CHECK_DIFFERS, CHECK_EXISTS, CHECK_KIND, CHECK_NESTED, CHECK_NOT,
    CHECK_OF_ELEMENT, CHECK_TWIG, CHECK_VERIFIED, CHECK_WIDTH, CODE_ABSOLUTE, CODE_DEPTH,
    CODE_SHIFT, CODE_TWIG, EDGE_ATOM, EDGE_ATTRIBUTE, EDGE_KIND, EDGE_NAME, EDGE_SHIFT,
    FAR_ROWS, FIXED_CHECK, FIXED_POSITION, FIXED_WIDTH, FLAG_ATTRIBUTES, FLAG_FOLLOWS, GREATER,
    GROUPED_WIDTH, GROUP_COUNT, GROUP_ELEMENT, GROUP_EPOCH, GROUP_POSITION, GROUP_QUERIES, LESS,
    LISTED_QUERY, LISTED_REQUIRED, LISTED_RESIDUAL, LISTED_TWIG, LIST_BOUNDS, LIST_EPOCH,
    LIST_GROUPS, LIST_QUERIES, LIST_QUICK, LIST_QUICK_FOUND, LIST_RANGED, LIST_SECONDS,
    LIST_SLOW, LIST_SLOW_FOUND, LIST_SURE, MODE_BELOW, MODE_FIXED, MODE_ON_PATH, POOLED_USERS,
    POSITION_ABSOLUTE, POSITION_SHIFT, POSITION_UNKNOWN, PLACE, PROGRAM, QUICK_WIDTH, RANGES,
    RECORD_COUNT, RECORD_MODE, RECORD_ROWS, REQUIRED_ATOM, REQUIRED_SHIFT, SECOND_ALIKE,
    SECOND_ATTRIBUTE, SECOND_BOUNDS, SECOND_COUNT, SECOND_OPERATOR, SECOND_POSITION,
    SECOND_QUERIES, SECOND_SYMBOL, SLOW_WIDTH, STRING_VALUE, TEXT_NODE, TEXT_TEST, WAY_CHECKS,
    WAY_COUNT, WAY_DESCENDANT, WAY_SYMBOL, AcceptLists, AtomTable, LazyStates, Moves,
    RecordPool, StateRow, SubscriberRuns, SymbolTable, TextTests, Trie, edge_bit,
)
from yfilter.operators.operators cimport (
    EACH_DATE, EACH_DATE_TIME, EACH_ITEM, FIRST_ITEM, GREATEST_ITEM, GREATEST_OF_ALL,
    MessageColumns, OperatorTable, Scratch, number_in,
)


# -------------------------------------------------------------------------------------------------
# MessageView: one message as the index sees it.
#
# The columns of the message, the labels of its names, the elements level by level (``order``) and
# of each name (``positions`` from ``position_start`` on), and for each element its own atoms, those
# that hold on it: by each attribute, text node, and, where a profile asks for it, string value.
# All ranges of a value are one row, which has its attribute in ``own_ranges`` and the number; else
# it is 0, and ``own_atom`` is the atom.  Of the rows of a value the first on which the trie has an
# edge has the attribute's edge in ``own_asks``, which leads to the others, too; else that is 0. A
# value is looked up by its bytes as they stand in the stream; it becomes a number only where
# numbers are compared with it.  A view is bound to one message after another and keeps its columns.


cdef double NAN = float("nan")
cdef double INFINITY = float("inf")


@cython.final
cdef class MessageView(MessageColumns):
    """``bind`` to a message; then ask about its elements."""

    cdef AtomTable atoms
    cdef TextTests _text_tests
    cdef readonly int names
    cdef readonly int[::1] position_start
    cdef readonly int[::1] positions
    cdef readonly int[::1] order
    cdef int[::1] _level_start
    cdef readonly int[::1] label
    cdef readonly int[::1] attribute
    cdef readonly int[::1] own_start
    cdef readonly int[::1] own_atom
    cdef readonly int[::1] own_asks
    cdef readonly int[::1] own_ranges
    cdef int _asking
    cdef readonly double[::1] own_number
    cdef readonly unsigned long long[::1] _signature
    cdef readonly unsigned long long[::1] _seen
    cdef readonly int _own_count
    cdef int[::1] _asked
    cdef int[::1] _text_asked
    cdef int[::1] _found
    cdef int[::1] _text_found

    def __init__(self, atoms: AtomTable, text_tests: TextTests) -> None:
        super().__init__()
        self.atoms = atoms
        self._text_tests = text_tests
        self.names = 0
        self.position_start = ints(256)
        self._allocate(256, 256, 1024)
        self._seen = array("Q", bytes(8 * 64))
        self.own_atom = ints(1024)
        self.own_asks = ints(1024)
        self.own_ranges = ints(1024)
        self.own_number = doubles(1024)

    def bind(self, stream: ElementStream, symbols: SymbolTable) -> None:
        """Look at a message, whose names were translated last."""
        self.bind_columns(stream)
        self.label = symbols.label
        self.attribute = symbols.attribute
        self.names = len(stream.names)
        if self.names + 2 > len(self.position_start):
            self.position_start = ints(2 * self.names + 2)
        if (
            self.elements >= len(self.own_start) - 1
            or len(self.content_kind) > len(self._text_asked)
            or len(self.attribute_name) > len(self._asked)
        ):
            self._allocate(
                2 * self.elements, 2 * len(self.content_kind), 2 * len(self.attribute_name)
            )
        self._sort_by_name(symbols.first)
        self._sort_by_depth()
        self._find_atoms()

    # -- questions about elements

    cdef bint holds(self, int element, int atom) noexcept:
        """Whether an equality holds on an element."""
        cdef int i
        if not (self._signature[element] >> (atom & 63)) & 1:
            return False
        for i in range(self.own_start[element], self.own_start[element + 1]):
            if self.own_atom[i] == atom:
                return True
        return False

    cdef bint has_atom(self, int atom) noexcept:
        """Whether an equality holds somewhere in the message."""
        cdef int i
        # PERF: the filter says no to most without a look at the atom, which is a cache miss.
        if not (self._seen[(atom >> 6) & 63] >> (atom & 63)) & 1:
            return False
        i = self.atoms.atoms[atom].seen
        return i < self._own_count and self.own_atom[i] == atom

    cdef bint differs(self, int element, int attribute, int atom) except -1:
        """Whether an element has such a value that is not the one of an equality."""
        cdef int i
        if attribute == STRING_VALUE:
            return not self._is_value(
                atom,
                self.text_values,
                self.text_offset[self.within_first[element]],
                self.text_offset[self.within_last[element]],
            )
        if attribute == TEXT_NODE:
            i = self.text_first[element]
            while i >= 0:
                if not self._is_value(
                    atom, self.content_values, self.content_offset[i], self.content_offset[i + 1]
                ):
                    return True
                i = self.text_next[i]
            return False
        for i in range(self.attribute_start[element], self.attribute_start[element + 1]):
            if self.attribute[self.attribute_name[i]] == attribute:
                return not self._is_value(
                    atom,
                    self.attribute_values,
                    self.attribute_offset[i],
                    self.attribute_offset[i + 1],
                )
        return False

    cdef bint compares(self, int element, int attribute, int operator, double number) except -1:
        """Whether an element has such a value that, as a number, compares so with another."""
        return _compared(self.number(element, attribute, operator <= AT_MOST), operator, number)

    cdef double number(self, int element, int attribute, bint smallest) except? -1:
        """The smallest or the largest number of such values of an element; NaN if none is one."""
        cdef int i
        cdef double number
        cdef double found = NAN
        if attribute == STRING_VALUE:
            return number_in(
                self.text_values,
                self.text_offset[self.within_first[element]],
                self.text_offset[self.within_last[element]],
            )
        if attribute == TEXT_NODE:
            i = self.text_first[element]
            while i >= 0:
                number = number_in(
                    self.content_values, self.content_offset[i], self.content_offset[i + 1]
                )
                found = further(found, number, smallest)
                i = self.text_next[i]
            return found
        for i in range(self.attribute_start[element], self.attribute_start[element + 1]):
            if self.attribute[self.attribute_name[i]] == attribute:
                return number_in(
                    self.attribute_values, self.attribute_offset[i], self.attribute_offset[i + 1]
                )
        return found

    # -- binding

    cdef int _allocate(self, int elements, int contents, int attributes) except -1:
        self.own_start = ints(elements + 2)
        self.positions = ints(elements + 2)
        self.order = ints(elements + 2)
        self._level_start = ints(elements + 2)
        self._signature = array("Q", bytes(8 * elements + 16))
        self._text_asked = ints(contents + 1)
        self._text_found = ints(contents + 1)
        self._asked = ints(attributes + 1)
        self._found = ints(attributes + 1)
        return 0

    cdef int _sort_by_name(self, int[::1] first) except -1:
        """The elements of each name, in document order; equal names under the first of them."""
        cdef int name, element
        for name in range(self.names + 2):
            self.position_start[name] = 0
        for element in range(self.elements):
            self.position_start[first[self.name[element]] + 2] += 1
        for name in range(2, self.names + 2):
            self.position_start[name] += self.position_start[name - 1]
        for element in range(self.elements):
            name = first[self.name[element]] + 1
            self.positions[self.position_start[name]] = element
            self.position_start[name] += 1
        return 0

    cdef int _sort_by_depth(self) except -1:
        """The elements level by level, in document order within a level."""
        cdef int element, depth
        for depth in range(self.deepest + 2):
            self._level_start[depth] = 0
        for element in range(self.elements):
            self._level_start[self.depth[element] + 1] += 1
        for depth in range(1, self.deepest + 1):
            self._level_start[depth] += self._level_start[depth - 1]
        for element in range(self.elements):
            depth = self.depth[element]
            self.order[self._level_start[depth]] = element
            self._level_start[depth] += 1
        return 0

    cdef int _find_atoms(self) except -1:
        cdef int element, i
        cdef bint texts = self._is_asked_for(TEXT_NODE)
        cdef bint strings = self._is_asked_for(STRING_VALUE)
        cdef const unsigned char* attribute_values = self.attribute_values
        cdef const unsigned char* content_values = self.content_values
        self._own_count = 0
        self._find_values(texts)
        for i in range(64):
            self._seen[i] = 0
        for element in range(self.elements):
            self.own_start[element] = self._own_count
            self._signature[element] = 0
            for i in range(self.attribute_start[element], self.attribute_start[element + 1]):
                self._asking = self._asked[i] << EDGE_SHIFT | EDGE_ATTRIBUTE
                if self._found[i]:
                    self._add_own(element, self._found[i])
                if self._asked[i] and self.atoms.tests[self._asked[i]]:
                    self._look_up_texts(element, i)
                if self._asked[i] and self._has_numbers(self._asked[i]):
                    self._look_up_number(
                        element,
                        self._asked[i],
                        number_in(
                            attribute_values, self.attribute_offset[i], self.attribute_offset[i + 1]
                        ),
                    )
            if texts:
                i = self.text_first[element]
                while i >= 0:
                    self._asking = TEXT_NODE << EDGE_SHIFT | EDGE_ATTRIBUTE
                    if self._text_found[i]:
                        self._add_own(element, self._text_found[i])
                    if self._has_numbers(TEXT_NODE):
                        self._look_up_number(
                            element,
                            TEXT_NODE,
                            number_in(
                                content_values, self.content_offset[i], self.content_offset[i + 1]
                            ),
                        )
                    i = self.text_next[i]
            if strings:
                self._look_up_string_value(element)
        self.own_start[self.elements] = self._own_count
        return 0

    cdef int _find_values(self, bint texts) except -1:
        """The equalities that hold by attributes and texts, as far as somebody asks for them."""
        cdef int count = len(self.attribute_name)
        cdef int bound = len(self.atoms.equalities)
        cdef int i, attribute
        for i in range(count):
            attribute = self.attribute[self.attribute_name[i]]
            if attribute >= bound or not self._is_asked_for(attribute):
                attribute = 0
            self._asked[i] = attribute
        self.atoms.find_all(
            self.attribute_values, self._asked, self.attribute_offset, count, self._found
        )
        if texts:
            count = len(self.content_kind)
            for i in range(count):
                self._text_asked[i] = self.content_kind[i] == 0
            self.atoms.find_all(
                self.content_values, self._text_asked, self.content_offset, count, self._text_found
            )
        return 0

    cdef int _look_up_texts(self, int element, int place) except -1:
        """The text tests that hold by the value of an attribute of the message."""
        cdef TextTests tests = self._text_tests
        cdef int i
        cdef int count = tests.find(
            self._asked[place],
            self.attribute_values,
            self.attribute_offset[place],
            self.attribute_offset[place + 1],
        )
        for i in range(count):
            self._add_own(element, tests.found[i])
        return 0

    cdef bint _is_asked_for(self, int attribute) noexcept:
        return (
            self.atoms.equalities[attribute] > 0
            or self.atoms.tests[attribute] > 0
            or self._has_numbers(attribute)
        )

    cdef bint _has_numbers(self, int attribute) noexcept:
        """Whether somebody compares the values of an attribute with numbers."""
        return self.atoms.range_counts[attribute] > 0 or self.atoms.number_equalities[attribute] > 0

    cdef int _look_up_number(self, int element, int attribute, double number) except -1:
        """The equality and the ranges that hold by a value that is this number, or NaN."""
        cdef int atom, own
        if number != number:  # - NaN
            return 0
        if self.atoms.number_equalities[attribute] > 0:
            atom = self.atoms.find_number(attribute, number)
            if atom:
                self._add_own(element, atom)
        if self.atoms.range_counts[attribute] > 0:
            own = self._new_own(True)
            self.own_ranges[own] = attribute
            self.own_number[own] = number
        return 0

    cdef int _look_up_string_value(self, int element) except -1:
        cdef const unsigned char* values = self.text_values
        cdef int first = self.text_offset[self.within_first[element]]
        cdef int last = self.text_offset[self.within_last[element]]
        cdef int atom
        self._asking = STRING_VALUE << EDGE_SHIFT | EDGE_ATTRIBUTE
        if last - first <= self.atoms.length_max[STRING_VALUE]:
            atom = self.atoms.find(STRING_VALUE, values, first, last)
            if atom:
                self._add_own(element, atom)
        if self._has_numbers(STRING_VALUE):
            self._look_up_number(element, STRING_VALUE, number_in(values, first, last))
        return 0

    cdef int _add_own(self, int element, int atom) except -1:
        """An equality that holds."""
        cdef unsigned long long bit = 1
        cdef int own = self._new_own(self.atoms.atoms[atom].edges != 0)
        self.own_atom[own] = atom
        self._signature[element] |= bit << (atom & 63)
        self._seen[(atom >> 6) & 63] |= bit << (atom & 63)
        self.atoms.atoms[atom].seen = own
        return 0

    cdef int _new_own(self, bint has_edge) except -1:
        cdef int own = self._own_count
        if own >= len(self.own_atom):
            self.own_atom = grown(self.own_atom, 2 * own)
            self.own_asks = grown(self.own_asks, 2 * own)
            self.own_ranges = grown(self.own_ranges, 2 * own)
            self.own_number = grown(self.own_number, 2 * own)
        self.own_atom[own] = 0
        self.own_ranges[own] = 0
        self.own_asks[own] = 0
        if has_edge:
            self.own_asks[own] = self._asking
            self._asking = 0
        self._own_count = own + 1
        return own

    # -- values

    cdef bint _is_value(
        self, int atom, const unsigned char* values, int first, int last
    ) noexcept:
        cdef int i
        cdef int place = self.atoms.atoms[atom].place
        if self.atoms.atoms[atom].length != last - first:
            return False
        for i in range(last - first):
            if self.atoms.octets[place + i] != values[first + i]:
                return False
        return True


cdef double further(double one, double other, bint smallest) noexcept:
    """The smaller or the larger of two numbers; the other one where one is NaN."""
    if one != one:  # - NaN
        return other
    if smallest:
        return other if other < one else one
    return other if other > one else one


cdef bint _compared(double value, int operator, double number) noexcept:
    if operator == LESS:
        return value < number
    if operator == AT_MOST:
        return value <= number
    if operator == GREATER:
        return value > number
    return value >= number


# -------------------------------------------------------------------------------------------------
# DerivedColumns: values that are computed of elements, each for all queries that ask for it.
#
# A *column* ``f(x)`` has a number as an attribute has, and its constants are atoms as those of an
# attribute are: an equality is found by hash, a range by order, a text test by TextTests.  It is
# computed of an element once a message, when a state with an edge of that number is met there, and
# the atoms that hold are rows of ``own_atom`` behind those of the message view, from ``first`` to
# before ``end`` of a place.  Which columns may be asked of an element is known by its label, from
# the symbols of the steps at which queries have them as their access predicate.
#
# Numbers are compared as doubles (``as_double``).

cdef enum:
    _ROWS_MAX = 1 << 20  # that are kept of a message

cpdef enum:
    # A kind of items from GREATEST_ITEM on with RANK added once or more: the second greatest one
    # and so on.
    RANK = 4
    RANKS_MAX = 16


def moment_of(item: Atom, items: int) -> Decimal | None:
    """A date or dateTime, or a text that is cast to it, as a number; None for what is none."""
    wanted = "xs:date" if items == EACH_DATE else "xs:dateTime"
    if isinstance(item, str) and not isinstance(item, AnyUri):
        try:
            item = cast(item, wanted)
        except DynamicError:
            return None
    return item.elapsed if isinstance(item, Temporal) and item.type == wanted else None


@lru_cache(4_096)
def _moment_in(octets: bytes, items: int) -> Decimal | None:
    """The same of an untyped value; most dates of a message are those of others."""
    return moment_of(Untyped(octets.decode()), items)


@cython.final
cdef class DerivedColumns:
    """``ask`` and ``forget`` a column at elements of a symbol; ``begin`` a message, then ``derive``
    what holds of an element.  ``count``: of all that are asked for."""

    cdef readonly int count
    cdef readonly int[::1] first, end
    cdef MessageView _view
    cdef SymbolTable _symbols
    cdef TextTests _text_tests
    cdef OperatorTable operators
    cdef int[::1] _operator, _items, _users
    cdef long long[::1] _nanos
    cdef double[RANKS_MAX] _bounds
    cdef dict _asked, _of_label, _places
    cdef long long _last
    cdef int _base, _last_place

    def __init__(
        self, view: MessageView, symbols: SymbolTable, text_tests: TextTests,
        operators: OperatorTable
    ) -> None:
        self.count = 0
        self.first = ints(256)
        self.end = ints(256)
        self._view = view
        self._symbols = symbols
        self._text_tests = text_tests
        self.operators = operators
        self._operator = ints(16)  # by attribute
        self._items = ints(16)
        self._users = ints(16)
        self._nanos = longs(16)  # that it has taken since take_costs
        self._asked: dict[int, dict[int, int]] = {}  # by symbol: users by attribute
        self._of_label: dict[int, object] = {}
        self._places: dict[int, int] = {}  # of what was derived, by attribute and element
        self._last = -1  # of these, the one that was asked for last
        self._last_place = 0
        self._base = 0

    cpdef int ask(self, int attribute, int symbol) except -1:
        """A query asks for a column at elements of a symbol."""
        self.acquire(attribute)
        asked = self._asked.setdefault(symbol, {})
        if attribute not in asked:
            self._of_label.clear()
        asked[attribute] = asked.get(attribute, 0) + 1
        return 0

    cdef int acquire(self, int attribute) except -1:
        """A column has one user more."""
        if attribute >= len(self._users):
            self._operator = grown(self._operator, 2 * attribute)
            self._items = grown(self._items, 2 * attribute)
            self._users = grown(self._users, 2 * attribute)
            self._nanos = grown(self._nanos, 2 * attribute)
        if self._users[attribute] == 0:
            column = self._symbols.attributes.key(attribute)
            self._operator[attribute] = self.operators.acquire(column.value)
            self._items[attribute] = column.items
            self._nanos[attribute] = 0
            self.count += 1
        self._users[attribute] += 1
        return 0

    cpdef int forget(self, int attribute, int symbol) except -1:
        """Undo ``ask``; nothing for an attribute that is no column."""
        if attribute >= len(self._users) or self._users[attribute] == 0:
            return 0
        asked = self._asked[symbol]
        asked[attribute] -= 1
        if not asked[attribute]:
            del asked[attribute]
            self._of_label.clear()
        return self.release(attribute)

    cdef int release(self, int attribute) except -1:
        """Undo ``acquire``."""
        self._users[attribute] -= 1
        if self._users[attribute] == 0:
            self.operators.release(self._operator[attribute])
            self.count -= 1
        return 0

    cpdef int begin(self) except -1:
        """A message, which the view is bound to."""
        self._places.clear()
        self._last = -1
        self._base = self._view._own_count
        return 0

    cpdef list take_costs(self, long long least, Trie trie):
        """(query, nanoseconds): of each column that has taken at least so many since they were told
        last an equal share for each query that asks for it."""
        cdef int attribute
        found: list[tuple[int, int]] = []
        for attribute in range(len(self._nanos)):
            if self._nanos[attribute] >= least and self._users[attribute]:
                queries = trie.queries_behind(attribute << EDGE_SHIFT | EDGE_ATTRIBUTE)
                share = self._nanos[attribute] // max(1, len(queries))
                found += [(query, share) for query, _ in queries]
                self._nanos[attribute] = 0
        return found

    cdef int tidy(self) except -1:
        """Forget what is too much to keep, between groups of elements."""
        if self._view._own_count > self._base + _ROWS_MAX or len(self._places) > _ROWS_MAX:
            self._places.clear()
            self._last = -1
            self._view._own_count = self._base
        return 0

    cdef object of(self, int label):
        """The columns that may be asked of elements with a label."""
        found = self._of_label.get(label)
        if found is None:
            symbols = self._symbols
            numbers = dict.fromkeys(self._asked.get(0, ()))
            for symbol in (
                symbols.exact[label], symbols.in_namespace[label], symbols.any_namespace[label]
            ):
                if symbol:
                    numbers.update(dict.fromkeys(self._asked.get(symbol, ())))
            found = self._of_label[label] = array("i", numbers)
        return found

    cdef int derive(self, int attribute, int element) except -2:
        """The place of what holds of an element; -1 where the column costs too much, the limit is
        that of the operators."""
        cdef long long key = attribute
        cdef MessageView view = self._view
        cdef int place
        key = key << 32 | element
        if key == self._last:
            self.operators.visits = 0
            return self._last_place
        known = self._places.get(key)
        if known is not None:
            self.operators.visits = 0
            self._last = key
            self._last_place = known
            return known
        place = len(self._places)
        if place >= len(self.first):
            self.first = grown(self.first, 2 * place)
            self.end = grown(self.end, 2 * place)
        self.first[place] = view._own_count
        if not self._compute(attribute, element):
            return -1
        self.end[place] = view._own_count
        self._places[key] = self._last_place = place
        self._last = key
        return place

    cdef bint _compute(self, int attribute, int element) except -1:
        cdef int items = self._items[attribute]
        cdef bint is_moment = items == EACH_DATE or items == EACH_DATE_TIME
        cdef OperatorTable operators = self.operators
        cdef Scratch scratch = operators.scratch
        cdef int i, base
        self._nanos[attribute] -= operators.nanos
        found = operators.compute(
            self._operator[attribute], element, EACH_ITEM if items >= EACH_DATE else items
        )
        self._nanos[attribute] += operators.nanos
        if operators.gave_up:
            operators.gave_up = False
            return False
        self._view._asking = 0
        if found is None:
            return True
        if items >= GREATEST_ITEM:
            self._take_bound(attribute, element, found, items)
            return True
        if isinstance(found, float):
            if not is_moment:
                self._take_number(attribute, element, found)
            return True
        if isinstance(found, int):  # the nodes of a path, on the stack
            base = found
            for i in range(base, scratch.top):
                scratch.look_at(scratch.nodes[i])
                if is_moment:
                    if scratch.is_untyped:
                        said = scratch.octets[scratch.first : scratch.last]
                        self._take_moment(attribute, element, _moment_in(said, items))
                    continue
                self._take_text(
                    attribute, element, scratch.octets, scratch.first, scratch.last,
                    items == EACH_ITEM and scratch.is_untyped,
                )
                if items == FIRST_ITEM:
                    break
            scratch.top = base
            return True
        for item in found:
            if is_moment:
                if isinstance(item, (Temporal, Untyped)):
                    self._take_moment(attribute, element, moment_of(item, items))
            elif isinstance(item, str):
                octets = item.encode()
                self._take_text(
                    attribute, element, octets, 0, len(octets),
                    items == EACH_ITEM and isinstance(item, Untyped),
                )
            elif type(item) in (int, float, Decimal):
                self._take_number(attribute, element, as_double(item))
        if operators.gave_up:
            operators.gave_up = False
            return False
        return True

    cdef int _take_bound(self, int attribute, int element, found, int items) except -1:
        """The greatest or least number, or one of a rank behind it, of nodes on the stack, of a
        number or of items."""
        cdef Scratch scratch = self.operators.scratch
        cdef int rank = (items - GREATEST_ITEM) // RANK
        cdef int kind = items - RANK * rank
        cdef bint is_greatest = kind == GREATEST_ITEM or kind == GREATEST_OF_ALL
        cdef double missing = -INFINITY if is_greatest else INFINITY
        cdef double other = -missing if kind >= GREATEST_OF_ALL else missing  # of what is no number
        cdef double number
        cdef int i, base
        for i in range(rank + 1):
            self._bounds[i] = missing
        if isinstance(found, int):
            base = found
            for i in range(base, scratch.top):
                scratch.look_at(scratch.nodes[i])
                number = NAN
                if scratch.is_untyped:
                    number = number_in(scratch.octets, scratch.first, scratch.last)
                self._put_bound(other if number != number else number, rank, is_greatest)
            scratch.top = base
        else:
            for item in [found] if isinstance(found, float) else found:
                number = NAN
                if type(item) in (int, float, Decimal):
                    number = as_double(item)
                elif isinstance(item, Untyped):
                    octets = item.encode()
                    number = number_in(octets, 0, len(octets))
                self._put_bound(other if number != number else number, rank, is_greatest)
        return self._take_number(attribute, element, self._bounds[rank])

    cdef int _put_bound(self, double number, int rank, bint is_greatest) noexcept:
        """One more number among the first so many in order."""
        cdef int i
        for i in range(rank + 1):
            if number > self._bounds[i] if is_greatest else number < self._bounds[i]:
                self._bounds[i], number = number, self._bounds[i]
        return 0

    cdef int _take_number(self, int attribute, int element, double number) except -1:
        cdef int[::1] atoms
        cdef int i
        if self._view._has_numbers(attribute):
            self._view._look_up_number(element, attribute, number)
        if self._view.atoms.tests[attribute] > 0:
            atoms = self._text_tests.integers.find(attribute, number)
            for i in range(len(atoms)):
                self._view._add_own(element, atoms[i])
        return 0

    cdef int _take_moment(self, int attribute, int element, moment) except -1:
        if moment is not None:
            self._view._look_up_number(element, attribute, as_double(moment))
        return 0

    cdef int _take_text(
        self, int attribute, int element, bytes octets, int first, int last, bint may_be_number
    ) except -1:
        cdef MessageView view = self._view
        cdef AtomTable atoms = view.atoms
        cdef const unsigned char* values = octets
        cdef int atom, i, count
        if atoms.equalities[attribute] > 0 and last - first <= atoms.length_max[attribute]:
            atom = atoms.find(attribute, values, first, last)
            if atom:
                view._add_own(element, atom)
        if atoms.tests[attribute] > 0:
            count = self._text_tests.find(attribute, octets, first, last)
            self.operators.visits += self._text_tests.cost
            if self._text_tests.gave_up:
                self.operators.gave_up, self.operators.exceeded = True, too_many_visits()
            for i in range(count):
                view._add_own(element, self._text_tests.found[i])
        if may_be_number and view._has_numbers(attribute):
            view._look_up_number(element, attribute, number_in(values, first, last))
        return 0


def add_within(double number, double[::1] bounds, int[::1] atoms, list found) -> None:
    """Add the atoms of which a number is within the two bounds."""
    cdef int i
    for i in range(len(atoms)):
        if bounds[2 * i] <= number <= bounds[2 * i + 1]:
            found.append(atoms[i])


def add_congruent(double number, double[::1] tests, int[::1] atoms, list found) -> None:
    """Add the atoms for which ``(number + offset) mod divisor`` is the remainder, three a test."""
    cdef double dividend, divisor, remainder, rest, doubt
    cdef int i
    if not isfinite(number):
        return
    for i in range(len(atoms)):
        dividend = number + tests[3 * i]
        divisor = tests[3 * i + 1]
        remainder = tests[3 * i + 2]
        # PERF: fmod is only asked where the remainder is about that.
        rest = dividend / divisor
        doubt = 1e-14 * (fabs(dividend) + fabs(divisor))
        if fabs(rest) < 1e15:
            rest = dividend - <double> <long long> rest * divisor - remainder
            if fabs(rest) > doubt and fabs(fabs(rest) - fabs(divisor)) > doubt:
                continue
        if fmod(dividend, divisor) == remainder:
            found.append(atoms[i])


# -------------------------------------------------------------------------------------------------
# NamesBelow: which symbols the children of an element have, and all elements below it.
#
# Most nested paths that are looked for are not there, and most of those because a name is not: its
# first at a child, or its last anywhere below.  That is asked here, before anything else of a twig
# is touched, two bits in the cache; and a twig of one step is answered by them::
#
#     [head/title]   children: head   below: title
#     [//p]          below: p
#
# For each element 256 bits of children and as many of all below, a bit for a symbol; where there
# are more symbols some share a bit, so that a yes is not sure.  Made when a message is first asked
# about.

cpdef enum:
    # The state of the knowledge about a path.
    ANSWER_NO = 0
    ANSWER_YES = 1
    ANSWER_PERHAPS = 2

    # The words of an element: bits of its children, from NAMES_BELOW on of all below.
    NAMES_BELOW = 4
    NAMES_WIDTH = 8

    # The requirement of a path, by its first and its last step: a word, and a bit in it.
    NEED_FIRST_WORD = 0
    NEED_FIRST_BIT = 3
    NEED_LAST_WORD = 9
    NEED_LAST_BIT = 12
    NEED_WORDS = 7
    NEED_BITS = 63
    NEED_NO_MORE = 0x40000


_SYMBOLS = 256


@cython.final
cdef class NamesBelow:
    """``begin`` a message; ``answer`` what is known of a path with such ``needs``."""

    cdef MessageView _view
    cdef SymbolTable _symbols
    cdef unsigned long long[::1] _bits
    cdef bint _is_made
    cdef readonly bint is_sure

    def __init__(self, view: MessageView, symbols: SymbolTable) -> None:
        self._view = view
        self._symbols = symbols
        self._bits = array("Q", bytes(64))
        self._is_made = False
        self.is_sure = False

    cpdef begin(self):
        self._is_made = False

    cdef int answer(self, int needs, int element) except -1:
        """Whether a path is found below an element: ANSWER_NO, ANSWER_YES or ANSWER_PERHAPS."""
        cdef long long at = element
        cdef unsigned long long found
        if not self._is_made:
            self._make()
        at = NAMES_WIDTH * at
        found = self._bits[at + ((needs >> NEED_FIRST_WORD) & NEED_WORDS)] >> (
            (needs >> NEED_FIRST_BIT) & NEED_BITS
        )
        found &= self._bits[at + ((needs >> NEED_LAST_WORD) & NEED_WORDS)] >> (
            (needs >> NEED_LAST_BIT) & NEED_BITS
        )
        if not found & 1:
            return ANSWER_NO
        return ANSWER_YES if self.is_sure and needs & NEED_NO_MORE else ANSWER_PERHAPS

    cdef int _make(self) except -1:
        cdef MessageView view = self._view
        cdef SymbolTable symbols = self._symbols
        cdef unsigned long long[::1] bits
        cdef int element, label, i
        cdef long long child, parent
        if NAMES_WIDTH * view.elements > len(self._bits):
            self._bits = array("Q", bytes(2 * 8 * NAMES_WIDTH * view.elements))
        bits = self._bits
        for i in range(NAMES_WIDTH * view.elements):
            bits[i] = 0
        for element in range(view.elements - 1, 0, -1):
            child = element
            child = NAMES_WIDTH * child
            parent = view.parent[element]
            parent = NAMES_WIDTH * parent
            label = view.label[view.name[element]]
            _set(bits, parent, 0)
            _set(bits, parent, symbols.exact[label])
            _set(bits, parent, symbols.in_namespace[label])
            _set(bits, parent, symbols.any_namespace[label])
            for i in range(NAMES_BELOW, NAMES_WIDTH):
                bits[parent + i] |= bits[child + i]
        self.is_sure = len(symbols.only_label) <= _SYMBOLS
        self._is_made = True
        return 0


cpdef int needs_of(int first, bint first_descends, int last, int steps) except -1:
    """The requirement of a path of names: symbols of its first and last step, 0 for any name."""
    cdef int first_word = (first & 255) >> 6
    cdef int last_word = NAMES_BELOW + ((last & 255) >> 6)
    cdef int asked
    if first_descends:
        first_word += NAMES_BELOW
    asked = first_word << NEED_FIRST_WORD | (first & 63) << NEED_FIRST_BIT
    asked |= last_word << NEED_LAST_WORD | (last & 63) << NEED_LAST_BIT
    return asked | NEED_NO_MORE if steps == 1 else asked


cdef inline int _set(unsigned long long[::1] bits, long long place, int symbol) noexcept:
    """A symbol of a child, which is below as well."""
    cdef unsigned long long one = 1
    bits[place + ((symbol & 255) >> 6)] |= one << (symbol & 63)
    bits[place + NAMES_BELOW + ((symbol & 255) >> 6)] |= one << (symbol & 63)
    return 0


# -------------------------------------------------------------------------------------------------
# Twigs: nested paths of nothing but names, found below many elements at once.
#
# ``[head//title]`` asks for no value, so nothing selects among the queries that have it; but such
# paths are few, and queries share them.  Each is kept once, in a trie of their own, and which of
# them are found below an element is a row of bits::
#
#     [head//title]     twig 1         below the element    /nitf        110…
#     [body/p]          twig 2                              /nitf/body   001…
#     [p]               twig 3
#
# A row is made by one walk over what is below the element, through states made lazily like those of
# the index (LazyStates), so that it costs no more for many twigs than for one.  After that a query
# costs one bit.  Where few queries ask, the walk is no gain: until so much was asked of an element
# that each alone has cost as much, each is looked for alone, first by the names that it needs
# (NamesBelow), then as it is (Residuals).
#
# Rows take ROW_BYTES_MAX; when these are full they are forgotten and made again as needed.


ROW_BYTES_MAX = 16 * 1024 * 1024
QUESTIONS_MIN = 6  # for each element below, for a row to be made


@cython.final
cdef class Twigs:
    """``acquire`` and ``release`` twigs; ``row`` tells which are found below an element.

    A twig is the same path as its record, which says how to look for it alone.  ``rows`` has the
    bits, ``walked`` counts the elements looked at.  No answer depends on the two bounds.
    """

    cdef MessageView view
    cdef SymbolTable symbols
    cdef RecordPool records
    cdef readonly Trie trie
    cdef readonly LazyStates states
    cdef readonly unsigned long long[::1] rows
    cdef readonly long long walked
    cdef readonly int stamp
    cdef public int row_bytes_max
    cdef public int questions_min
    cdef object _new_states
    cdef readonly NamesBelow names
    cdef readonly int[::1] needs
    cdef int _words
    cdef int _row_count
    cdef int _owners
    cdef int[::1] _row_of
    cdef int[::1] _owner
    cdef int[::1] _path

    def __init__(
        self, view: MessageView, symbols: SymbolTable, records: RecordPool, trie: Trie,
        new_states: Callable[[LazyStates | None], LazyStates]
    ) -> None:
        self.view = view
        self.symbols = symbols
        self.records = records
        self.trie = trie
        self._new_states = new_states
        self.states = new_states(None)
        self.names = NamesBelow(view, symbols)
        self.needs = ints(64)  # of each twig
        self.rows = array("Q", bytes(64))
        self.row_bytes_max = ROW_BYTES_MAX
        self.questions_min = QUESTIONS_MIN
        self.walked = 0
        self.stamp = 0
        self._words = 1
        self._row_count = 0
        self._owners = 0
        self._row_of = ints(64)  # from 1, in words; minus how often one was asked for that is not
        self._owner = ints(64)  # elements with a row or asked for
        self._path = ints(64)  # states by depth

    cpdef int acquire(self, int record) except -1:
        """The twig of a record for a way down without conditions, which stays as long as it."""
        cdef int[::1] words = self.records.words
        cdef int node = 1  # the root
        cdef int step, place, twig
        for step in range(words[record + RECORD_COUNT]):
            place = record + words[record + RECORD_ROWS + step]
            if words[place + WAY_DESCENDANT]:
                node = self.trie.loop_of(node)
            node = self.trie.extend(node, words[place + WAY_SYMBOL] << EDGE_SHIFT)
        twig = self.trie.nodes[node].first_query
        return twig or self._added(node, record)

    cpdef int record(self, int twig) noexcept:
        """The record of a twig, which is its number as a query of the trie."""
        return self.trie.queries[twig].number

    cdef int answer(self, int twig, int element) except -1:
        """Whether a twig is found below an element, by names alone: see NamesBelow."""
        return self.names.answer(self.needs[twig], element)

    cpdef int remove(self, int twig) except -1:
        return self.trie.remove_query(twig)

    cpdef int begin(self) except -1:
        """For a message that the view was bound to."""
        self._forget_rows()
        self.names.begin()
        self._words = self.trie.query_bound // 64 + 1
        if self.view.elements > len(self._row_of):
            self._row_of = ints(2 * self.view.elements)
            self._owner = ints(2 * self.view.elements)
        if self.view.deepest + 1 > len(self._path):
            self._path = ints(2 * self.view.deepest + 2)
        self.states.begin(self.symbols)
        return 0

    cdef int row(self, int element, int count, long long visits_max) except -2:
        """Where an element's bits begin in ``rows``, or -1: not worth it for ``count`` questions.

        Elements beyond ``visits_max`` are not looked at.
        """
        cdef int row = self._row_of[element]
        if row > 0:
            return row - 1
        if row == 0:
            self._owner[self._owners] = element
            self._owners += 1
        self._row_of[element] = row - count
        if count - row < self.questions_min * (self.view.end[element] - element):
            return -1
        return self._made(element, visits_max)

    cpdef int start(self) except -1:
        """The state that a walk begins in."""
        return self.states.start(1)

    def restart(self) -> None:
        """Begin to count times and stamps again."""
        self.stamp = 0
        self.trie.restart_clock()
        self.states = self._new_states(None)

    cdef int _added(self, int node, int record) except -1:
        """A new twig."""
        cdef int[::1] words = self.records.words
        cdef int twig = self.trie.add_query(node, 0, record)
        cdef int steps = words[record + RECORD_COUNT]
        cdef int first = record + words[record + RECORD_ROWS]
        cdef int last = record + words[record + RECORD_ROWS + steps - 1]
        if twig >= len(self.needs):
            self.needs = grown(self.needs, 2 * twig)
        self.needs[twig] = needs_of(
            words[first + WAY_SYMBOL],
            words[first + WAY_DESCENDANT],
            words[last + WAY_SYMBOL],
            steps,
        )
        return twig

    cdef int _made(self, int element, long long visits_max) except -1:
        cdef int i
        cdef int words = self._words
        cdef int row = self._row_count * words
        cdef long long walked = self.walked
        if row + words > len(self.rows):
            if row and 8 * (row + words) > self.row_bytes_max:
                self._forget_rows()
                row = 0
            if row + words > len(self.rows):
                self.rows = grown(self.rows, 2 * (row + words))
        for i in range(row, row + words):
            self.rows[i] = 0
        self._walk(element, row, visits_max)
        if self.walked - walked < visits_max:  # else it may lack something
            self._row_count += 1
            self._row_of[element] = row + 1
        return row

    cdef int _walk(self, int element, int row, long long visits_max) except -1:
        """Set the bits of what is found below an element."""
        cdef MessageView view = self.view
        cdef int top = view.depth[element]
        cdef int child = element + 1
        cdef int end = view.end[element]
        cdef int depth, state, place
        cdef long long visits_end = self.walked + visits_max
        self.stamp += 1
        self._path[top] = self.start()
        while child < end and self.walked < visits_end:
            self.walked += 1
            depth = view.depth[child]
            state = self._moved(top, depth - 1, view.label[view.name[child]])
            if state:
                place = self.states.states[state].accepts
                if place < 0:
                    place = self.states.accepted(state, False)
                if place:
                    self._take(place, row)
            if state and self.states.states[state].flags & FLAG_FOLLOWS:
                self._path[depth] = state
                child += 1
            else:
                child = view.end[child]
        return 0

    cdef int _moved(self, int top, int depth, int label) except -1:
        """The state behind a name, from the one that the path has at a depth."""
        cdef LazyStates states = self.states
        cdef int state = self._path[depth]
        cdef long long edge = 0
        cdef long long row = states.states[state].row
        cdef int target
        if states.states[state].names & states.label_bits[label]:
            edge = label << EDGE_SHIFT
            target = states.transitions.get((row << 32) | edge)
        else:
            target = states.states[state].elsewhere
        if target >= 0 and (target == 0 or states.states[target].time == self.trie.clock):
            return target
        if states.is_full():
            self._turn(top, depth)
            states = self.states
            state = self._path[depth]
            target = -1
        if target < 0:
            target = states.follow(state, edge) if edge else states.elsewhere(state)
        if target and states.states[target].time != self.trie.clock:
            target = states.fresh(target, state, edge)
        return target

    cdef int _turn(self, int top, int depth) except -1:
        """Begin a new generation of states; those of the path move to it."""
        cdef LazyStates older = self.states
        cdef LazyStates newer = self._new_states(older)
        cdef int i
        older.forget_older()
        for i in range(top, depth + 1):
            self._path[i] = newer.carry(older, self._path[i])
        self.states = newer
        return 0

    cdef int _take(self, int place, int row) except -1:
        """Set the bits of a state's twigs, once in a walk."""
        cdef int[::1] lists = self.states.accepts.lists
        cdef int i
        cdef unsigned long long bit = 1
        if lists[place + LIST_EPOCH] == self.stamp:
            return 0
        lists[place + LIST_EPOCH] = self.stamp
        for i in range(place + LIST_QUERIES, place + LIST_QUERIES + lists[place + LIST_SURE]):
            self.rows[row + (lists[i] >> 6)] |= bit << (lists[i] & 63)
        return 0

    cdef int _forget_rows(self) except -1:
        cdef int i
        for i in range(self._owners):
            self._row_of[self._owner[i]] = 0
        self._owners = 0
        self._row_count = 0
        return 0


# -------------------------------------------------------------------------------------------------
# Residuals: the rest to verify of a candidate, a query whose access predicate holds.
#
# See automaton.pxd for what a residual is.
#
# A comparison of a derived column has CHECK_COLUMN in its kind, and CHECK_NOT where it must not
# hold; of an equality the column is ``b``.
#
# A way down is looked for in one pass, whatever the number of ``//``: a bit for each step that can
# be at an element, given those above it.  So the elements below are visited once for each nested
# path, and not once for each of the ways; and once for each element, where nested paths stand in
# nested paths.  Every visit is counted.

cpdef enum:
    # What further() answers.
    FURTHER_NONE = 0
    FURTHER_SOME = 1
    FURTHER_ANY = 2


STEPS_MAX = 62  # of a way, one bit each
LEVELS_MAX = 8  # of nested paths in nested paths


@cython.final
cdef class Residuals:
    """Verifies candidates of the message that the view is bound to.

    ``visits`` counts the elements looked at, beyond ``visits_max`` every answer is no.
    """

    cdef MessageView view
    cdef readonly Twigs twigs
    cdef OperatorTable operators
    cdef object _columns
    cdef RecordPool records
    cdef int[::1] words
    cdef int[::1] _path
    cdef long long visits
    cdef long long visits_max
    cdef double number
    cdef unsigned long long[::1] _reached
    cdef unsigned long long[::1] _passed
    cdef int[::1] _way
    cdef int _width
    cdef dict _anywhere
    cdef dict _nested
    cdef int[::1] symbol_seen
    cdef SymbolTable symbols
    cdef int[::1] exact
    cdef int[::1] in_namespace
    cdef int[::1] any_namespace

    def __init__(
        self, view: MessageView, records: RecordPool, symbols: SymbolTable, twigs: Twigs,
        columns: DerivedColumns
    ) -> None:
        self.view = view
        self.operators = columns.operators
        self._columns = columns
        self.twigs = twigs
        self.records = records
        self.visits = 0
        self.visits_max = 0
        self.number = 0.0
        self.symbols = symbols
        self.exact = self.in_namespace = self.any_namespace = self.symbol_seen = symbols.exact
        self._anywhere: dict[int, bool] = {}  # answers of CHECK_ANYWHERE, by record
        self._nested: dict[int, bool] = {}  # of CHECK_NESTED in CHECK_NESTED, by record and element
        self.words = records.words
        self._cover(64)

    def begin(self, visits_max: int) -> None:
        """For a new message."""
        self.words = self.records.words
        self.exact = self.symbols.exact
        self.in_namespace = self.symbols.in_namespace
        self.any_namespace = self.symbols.any_namespace
        self.symbol_seen = self.symbols.seen
        self.visits = 0
        self.visits_max = visits_max
        if self._anywhere or self._nested:
            self._anywhere, self._nested = {}, {}
        if self.view.deepest + 3 > self._width:
            self._cover(2 * self.view.deepest)

    cdef bint hold(self, int record, int element) except -1:
        """Whether a record holds for an element; ``gave_up`` of the operators: perhaps."""
        if self.words[record + RECORD_MODE] == MODE_FIXED:
            return self._fixed(record, element)
        if self.words[record + RECORD_MODE] == MODE_BELOW:
            return self._found_below(record, element, 0)
        return self._on_path(record, element)

    cdef bint ancestor_holds(self, int code, int element) except -1:
        """Whether the one condition of a residual above 0 holds for an element."""
        element = self.ancestor(element, code & CODE_DEPTH, code & CODE_ABSOLUTE)
        if code & CODE_TWIG:
            return self.has_twig(self.twig_row(element, 1), code >> CODE_SHIFT, element, 0)
        return self.view.holds(element, code >> CODE_SHIFT)

    cdef int ancestor(self, int element, int steps, bint absolute) noexcept:
        """The ancestor so many steps up, or so many down from the root."""
        if absolute:
            steps = self.view.depth[element] - steps
        for _ in range(steps):
            element = self.view.parent[element]
        return element

    cdef int further(
        self, int position, int symbol, int attribute, int operator, int element
    ) except -1:
        """Set ``number`` to the smallest or the largest number that a second access compares with
        at an element: FURTHER_SOME; FURTHER_NONE where there is none, FURTHER_ANY where that is
        not known."""
        cdef bint smallest = operator & CHECK_OF_ELEMENT <= AT_MOST
        cdef bint is_column = operator & CHECK_COLUMN != 0
        cdef int first = 0
        cdef int end = self.view.elements
        cdef double found
        cdef int name, stop, i
        if position != POSITION_UNKNOWN:
            element = self.ancestor(
                element, position >> POSITION_SHIFT, position & POSITION_ABSOLUTE
            )
            if symbol == 0:
                if is_column and not self._derived_number(attribute, smallest, element):
                    return FURTHER_ANY
                if not is_column:
                    self.number = self.view.number(element, attribute, smallest)
                return FURTHER_SOME if self.number == self.number else FURTHER_NONE
            first = element + 1
            end = self.view.end[element]
        name = self._only_name(symbol)
        if name < 0:
            return FURTHER_ANY if self.seen(symbol) else FURTHER_NONE
        self.number = NAN
        i = self._first_of(name, first)
        stop = self.view.position_start[name + 1]
        while i < stop and self.view.positions[i] < end:
            self.visits += 1
            found = self.view.number(self.view.positions[i], attribute, smallest)
            self.number = further(self.number, found, smallest)
            i += 1
        return FURTHER_SOME if self.number == self.number else FURTHER_NONE

    cdef bint _derived_number(self, int attribute, bint smallest, int element) except -1:
        """Set ``number`` to that of a column, likewise; False where the column costs too much."""
        cdef DerivedColumns columns = self._columns
        cdef int place = columns.derive(attribute, element)
        cdef int i
        self.visits += self.operators.visits >> 3
        self.number = NAN
        if place >= 0:
            for i in range(columns.first[place], columns.end[place]):
                if self.view.own_ranges[i]:
                    self.number = further(self.number, self.view.own_number[i], smallest)
        return place >= 0

    cdef int twig_row(self, int element, int count) except -2:
        """Where the bits of an element's twigs begin; -1 if each is to be looked for."""
        cdef long long walked = self.twigs.walked
        cdef int row = self.twigs.row(element, count, self.visits_max - self.visits)
        self.visits += self.twigs.walked - walked
        return row

    cdef bint has_twig(self, int row, int twig, int element, int level) except -1:
        """Whether a twig is found below an element that has this row."""
        cdef int known
        if row < 0:
            known = self.twigs.answer(twig, element)
            if known != ANSWER_PERHAPS:
                return known
            return self._found_below(self.twigs.record(twig), element, level)
        return (self.twigs.rows[row + (twig >> 6)] >> (twig & 63)) & 1

    def _cover(self, depth: int) -> None:
        self._width = depth + 3
        self._path = ints(self._width)  # to the element at hand
        # One row more for each level of nested paths.
        self._way = ints(self._width * (LEVELS_MAX + 1))
        self._reached = array("Q", bytes(8 * self._width * (LEVELS_MAX + 1)))
        self._passed = array("Q", bytes(8 * self._width * (LEVELS_MAX + 1)))

    cdef bint _fixed(self, int record, int element) except -1:
        cdef int at
        cdef int place = record + RECORD_ROWS
        for _ in range(self.words[record + RECORD_COUNT]):
            at = self.ancestor(
                element,
                self.words[place + FIXED_POSITION] >> POSITION_SHIFT,
                self.words[place + FIXED_POSITION] & POSITION_ABSOLUTE,
            )
            if not self._check(place + FIXED_CHECK, at, 0):
                return False
            place += FIXED_WIDTH
        return True

    cdef bint _on_path(self, int record, int element) except -1:
        cdef int depth = self.view.depth[element]
        cdef int steps = self.words[record + RECORD_COUNT]
        cdef unsigned long long descendant = self._descendants(record)
        cdef unsigned long long reached = 0
        cdef unsigned long long passed = 0
        cdef unsigned long long possible
        cdef unsigned long long one = 1
        cdef int level, step
        self.visits += depth
        for level in range(depth, -1, -1):
            self._path[level] = element
            element = self.view.parent[element]
        for level in range(depth + 1):
            possible = ((reached << 1) & ~descendant) | ((passed << 1) & descendant)
            if level == 0 or descendant & 1:
                possible |= 1
            reached = 0
            for step in range(steps):
                if (possible >> step) & 1 and self._step_holds(record, step, self._path[level], 0):
                    reached |= one << step
            passed |= reached
        return (reached >> (steps - 1)) & 1

    cdef bint _found_anywhere(self, int record) except -1:
        known = self._anywhere.get(record)
        if known is None:
            known = self._within(record, 0, self.view.elements, 1)
            if not self.operators.gave_up:
                self._anywhere[record] = known
        return known

    cdef bint _found_below(self, int record, int element, int level) except -1:
        """Whether a nested path is found below an element."""
        cdef long long key = record
        if level == 0:
            return self._within(record, element + 1, self.view.end[element], 1)
        # One that is nested itself is asked for from every element above; once is enough.
        key = key << 32 | element
        known = self._nested.get(key)
        if known is None:
            known = self._within(record, element + 1, self.view.end[element], level + 1)
            if not self.operators.gave_up:
                self._nested[key] = known
        return known

    cdef bint _within(self, int record, int first, int end, int level) except -1:
        """Whether a nested path is found in a run of elements, from the outermost of them on."""
        # PERF: from the elements of the last step's name up; they are few, and most fail at once.
        cdef int last = self.words[record + RECORD_COUNT] - 1
        cdef int place = record + self.words[record + RECORD_ROWS + last]
        cdef int symbol = self.words[place + WAY_SYMBOL]
        cdef int name, i, stop
        if first >= end:
            return False
        if symbol == 0:
            return self._scanned(record, first, end, level)
        name = self._only_name(symbol)
        if name < 0:
            return self.seen(symbol) and self._scanned(record, first, end, level)
        i = self._first_of(name, first)
        stop = self.view.position_start[name + 1]
        while i < stop and self.view.positions[i] < end:
            self.visits += 1
            if self.visits > self.visits_max:
                return False
            if self._leads_to(record, self.view.depth[first], self.view.positions[i], level):
                return True
            i += 1
        return False

    cdef int _only_name(self, int symbol) noexcept:
        """The name of the message that a symbol accepts, if it is of one name and that is there;
        else -1."""
        cdef int name = self.symbol_seen[symbol]
        if name >= self.view.names or self.exact[self.view.label[name]] != symbol:
            return -1
        return name

    cdef int _first_of(self, int name, int first) noexcept:
        """Where among the positions of a name the elements from one on begin."""
        cdef int low = self.view.position_start[name]
        cdef int high = self.view.position_start[name + 1]
        cdef int middle
        while low < high:
            middle = (low + high) >> 1
            if self.view.positions[middle] < first:
                low = middle + 1
            else:
                high = middle
        return low

    cdef bint _leads_to(self, int record, int top, int target, int level) except -1:
        """Whether a nested path that begins at the depth ``top`` leads to an element."""
        cdef int last = self.words[record + RECORD_COUNT] - 1
        cdef unsigned long long descendant
        cdef unsigned long long reached = 0
        cdef unsigned long long passed = 0
        cdef unsigned long long possible
        cdef unsigned long long one = 1
        cdef int depth = self.view.depth[target]
        cdef int row = level * self._width
        cdef int at, step
        if last == 0:
            if (
                depth > top
                and not self.words[record + self.words[record + RECORD_ROWS] + WAY_DESCENDANT]
            ):
                return False
            return self._step_holds(record, 0, target, level)
        if depth - top < last or not self._step_holds(record, last, target, level):
            return False
        descendant = self._descendants(record)
        at = target
        for step in range(depth - top + 1):
            self._way[row + depth - step] = at
            at = self.view.parent[at]
        self.visits += depth - top
        for at in range(top, depth):
            possible = ((reached << 1) & ~descendant) | ((passed << 1) & descendant)
            if at == top or descendant & 1:
                possible |= 1
            reached = 0
            for step in range(last):
                if (possible >> step) & 1 and self._step_holds(
                    record, step, self._way[row + at], level
                ):
                    reached |= one << step
            passed |= reached
        if (descendant >> last) & 1:
            return (passed >> (last - 1)) & 1
        return (reached >> (last - 1)) & 1

    cdef bint seen(self, int symbol) noexcept:
        """Whether the message has an element or attribute name that a symbol accepts."""
        cdef int label
        cdef int name = self.symbol_seen[symbol]
        if name >= self.view.names:
            return False
        label = self.view.label[name]
        return (
            self.exact[label] == symbol
            or self.in_namespace[label] == symbol
            or self.any_namespace[label] == symbol
        )

    cdef bint _scanned(self, int record, int first, int end, int level) except -1:
        cdef int steps = self.words[record + RECORD_COUNT]
        cdef unsigned long long descendant = self._descendants(record)
        cdef unsigned long long possible, reached, passed
        cdef unsigned long long one = 1
        cdef int child = first
        cdef int top = self.view.depth[first]
        cdef int row = level * self._width
        cdef int at, step
        self._reached[row + top] = 0
        self._passed[row + top] = 0
        while child < end:
            self.visits += 1
            if self.visits > self.visits_max:
                return False
            at = row + self.view.depth[child]  # the states above the child
            possible = ((self._reached[at] << 1) & ~descendant) | (
                (self._passed[at] << 1) & descendant
            )
            if at == row + top or descendant & 1:
                possible |= 1
            reached = 0
            for step in range(steps):
                if (possible >> step) & 1 and self._step_holds(record, step, child, level):
                    reached |= one << step
            if (reached >> (steps - 1)) & 1:
                return True
            passed = self._passed[at] | reached
            self._reached[at + 1] = reached
            self._passed[at + 1] = passed
            possible = ((reached << 1) & ~descendant) | ((passed << 1) & descendant)
            if possible or descendant & 1:
                child += 1
            else:
                child = self.view.end[child]
        return False

    cdef unsigned long long _descendants(self, int record) noexcept:
        """A bit for each step that is a descendant."""
        cdef unsigned long long one = 1
        cdef unsigned long long found = 0
        cdef int step
        for step in range(self.words[record + RECORD_COUNT]):
            if self.words[record + self.words[record + RECORD_ROWS + step] + WAY_DESCENDANT]:
                found |= one << step
        return found

    cdef bint _step_holds(self, int record, int step, int element, int level) except -1:
        cdef int place = record + self.words[record + RECORD_ROWS + step]
        cdef int i
        if not self._accepts(self.words[place + WAY_SYMBOL], element):
            return False
        for i in range(self.words[place + WAY_COUNT]):
            if not self._check(place + WAY_CHECKS + CHECK_WIDTH * i, element, level):
                return False
        return True

    cdef bint _check(self, int place, int element, int level) except -1:
        cdef int kind = self.words[place + CHECK_KIND]
        cdef int first = self.words[place + CHECK_A]
        cdef int second = self.words[place + CHECK_B]
        self.visits += 1
        if kind == CHECK_ATOM:
            return self.view.holds(element, first)
        if kind == CHECK_TWIG:
            return self.has_twig(self.twig_row(element, 1), first, element, level)
        if kind == CHECK_NESTED:
            return self._found_below(first, element, level)
        if kind == CHECK_ANYWHERE:
            return self._found_anywhere(first)
        if kind == CHECK_VERIFIED:
            return self._verified(first, element)
        if kind >= CHECK_COLUMN:
            return self._column_holds(kind, first, second, element)
        if kind == CHECK_EXISTS:
            return self.view.text_first[element] >= 0  # an attribute is there by an atom
        if kind == CHECK_DIFFERS:
            return self.view.differs(element, first, second)
        return self.view.compares(element, first, kind, self.view.atoms.numbers[second])

    cdef bint _verified(self, int operator, int element) except -1:
        cdef bint answer = self.operators.holds(operator, element)
        self.visits += self.operators.visits
        return answer

    cdef bint _column_holds(self, int kind, int a, int b, int element) except -1:
        """Whether a value that is computed of an element compares so; perhaps, as ``hold``, where
        it costs too much."""
        cdef DerivedColumns columns = self._columns
        cdef MessageView view = self.view
        cdef int relation = kind & CHECK_OF_ELEMENT
        cdef int place, i
        cdef bint found = False
        if not kind & CHECK_COLUMN:
            return not view.holds(element, a)
        place = columns.derive(b if relation == CHECK_ATOM else a, element)
        self.visits += self.operators.visits >> 3
        if place < 0:
            self.operators.gave_up = True
            return True
        for i in range(columns.first[place], columns.end[place]):
            if relation == CHECK_ATOM:
                found |= view.own_atom[i] == a
            elif view.own_ranges[i]:
                found |= _compared(view.own_number[i], relation, view.atoms.numbers[b])
        return not found if kind & CHECK_NOT else found

    cdef bint _accepts(self, int symbol, int element) noexcept:
        cdef int label
        if symbol == 0:
            return True
        label = self.view.label[self.view.name[element]]
        return (
            self.exact[label] == symbol
            or self.in_namespace[label] == symbol
            or self.any_namespace[label] == symbol
        )


# -------------------------------------------------------------------------------------------------
# Offers: the accept lists that a run meets at elements, for a taker.
#
# ``Candidates`` finds which queries hold, each once a message; ``Locations`` finds at which
# elements.


cdef class Offers:
    """``offer`` a list, then ``settle`` all that were offered."""

    cdef MessageView view
    cdef readonly Residuals residuals
    cdef int _touched, _offered, _low, _high
    cdef int[::1] _place
    cdef int[::1] _element
    cdef int[::1] _operator
    cdef int[::1] _lists
    cdef double[::1] _bounds
    cdef double[::1] _number

    def __init__(self, view: MessageView, residuals: Residuals) -> None:
        self.view = view
        self.residuals = residuals
        self._touched = 0
        self._offered = 0
        self._place = ints(256)
        self._element = ints(256)
        self._operator = ints(256)
        self._number = doubles(256)
        self._lists = self._place
        self._bounds = self._number
        self._low = self._high = 0  # of the rows that a number satisfies

    cdef int offer(self, int place, int element, int operator, double number) except -1:
        """A list that is accepted at an element; ``operator`` above 0: by a range."""
        cdef int i = self._offered
        if i >= len(self._place):
            self._place = grown(self._place, 2 * i)
            self._element = grown(self._element, 2 * i)
            self._operator = grown(self._operator, 2 * i)
            self._number = grown(self._number, 2 * i)
        self._place[i] = place
        self._element[i] = element
        self._operator[i] = operator
        self._number[i] = number
        self._offered = i + 1
        return 0

    cdef int settle(self, AcceptLists accepts) except -1:
        """Take all lists offered."""
        cdef int touched = 0
        cdef int bound, i
        self._lists = accepts.lists
        self._bounds = accepts.bounds
        # PERF: loads that nothing waits for, so that the lists are in the cache.
        for i in range(self._offered):
            touched ^= self._lists[self._place[i]]
        for i in range(self._offered):
            if self._operator[i] > 0:
                bound = (
                    self._lists[self._place[i] + LIST_BOUNDS]
                    + self._lists[self._place[i] + LIST_RANGED] // 2
                )
                touched ^= accepts.bounds[bound] > 0
        self._touched = touched
        for i in range(self._offered):
            if self._operator[i] > 0:
                self._take_range(self._place[i], i)
            else:
                self._take_list(self._place[i], self._element[i])
        self._offered = 0
        return 0

    cdef bint is_any_wanted(self) noexcept:
        """Whether there is something left to look for."""
        return True

    cdef bint is_possible(self, int required) noexcept:
        """Whether the message contains what a residual requires."""
        if required & REQUIRED_ATOM:
            return self.view.has_atom(required >> REQUIRED_SHIFT)
        return required == 0 or self.residuals.seen(required >> REQUIRED_SHIFT)

    cdef int _take(self, int query, int residual, int element) except -1:
        """A query that is met at an element, and what is left of it to verify."""
        raise NotImplementedError

    cdef int give_up(self, list queries, int element, bint is_new) except -1:
        """Queries with their residuals, of which a column costs too much: they are met, as far as
        anybody knows.  ``is_new``: for the first time in this run."""
        for query, residual in queries:
            self._take(query, residual, element)
        return 0

    cdef int _take_list(self, int place, int element) except -1:
        """The queries of a list at an element."""
        self.residuals.visits += 1 + (self._lists[place + LIST_SURE] >> 3)
        self._take_sure(place, element)
        return self._take_unsure(place, element)

    cdef int _take_sure(self, int place, int element) except -1:
        """Those of a list that leave nothing to verify."""
        cdef int at = place + LIST_QUERIES
        cdef int end = at + self._lists[place + LIST_SURE]
        while at < end:
            self._take(self._lists[at + LISTED_QUERY], 0, element)
            at += 1
        return 0

    cdef int _take_unsure(self, int place, int element) except -1:
        """The others: with an equality of an ancestor, with a record, and those with a twig."""
        cdef int at = place + LIST_QUERIES + self._lists[place + LIST_SURE]
        cdef int end = at + QUICK_WIDTH * self._lists[place + LIST_QUICK]
        cdef int code, count, twig, _i
        while at < end:
            self._take(self._lists[at + LISTED_QUERY], self._lists[at + LISTED_RESIDUAL], element)
            at += QUICK_WIDTH
        end = at + SLOW_WIDTH * self._lists[place + LIST_SLOW]
        self._take_rows(at, end, element)
        at = end
        end = at + self._lists[place + LIST_GROUPS]
        while at < end:
            code = CODE_TWIG | self._lists[at + GROUP_POSITION]
            count = self._lists[at + GROUP_COUNT]
            at += GROUP_QUERIES
            for _i in range(count):
                twig = self._lists[at + LISTED_TWIG]
                self._take(self._lists[at + LISTED_QUERY], twig << CODE_SHIFT | code, element)
                at += GROUPED_WIDTH
        return self._take_seconds(at, at + self._lists[place + LIST_SECONDS], element)

    cdef int _take_seconds(self, int at, int end, int element) except -1:
        """Those whose second access holds, too."""
        cdef int count, rows, answer, operator
        while at < end:
            count = self._lists[at + SECOND_COUNT]
            operator = self._lists[at + SECOND_OPERATOR]
            answer = self.residuals.further(
                self._lists[at + SECOND_POSITION],
                self._lists[at + SECOND_SYMBOL],
                self._lists[at + SECOND_ATTRIBUTE],
                operator,
                element,
            )
            operator &= CHECK_OF_ELEMENT
            self._low, self._high = 0, count
            if answer == FURTHER_SOME:
                self._satisfy(
                    self._lists[at + SECOND_BOUNDS], count, self.residuals.number, operator
                )
            rows = at + SECOND_QUERIES
            if answer == FURTHER_NONE or self._low == self._high:
                pass
            elif self._lists[at + SECOND_ALIKE]:
                self._take_alike(
                    rows + SLOW_WIDTH * self._low,
                    rows + SLOW_WIDTH * self._high,
                    operator <= AT_MOST,
                    element,
                )
            else:
                self._take_rows(
                    rows + SLOW_WIDTH * self._low, rows + SLOW_WIDTH * self._high, element
                )
            at = rows + SLOW_WIDTH * count
        return 0

    cdef int _take_alike(self, int at, int end, bint is_below, int element) except -1:
        """Of rows that differ in their bounds only those that hold: all up to one, or, where the
        value is to be below the bounds, all from one on."""
        cdef int row
        cdef int holding = 0  # so many at the end where the bounds say least
        cdef int possible = (end - at) // SLOW_WIDTH
        cdef int tried = possible - 1  # nearly always all of them
        if not self.is_possible(self._lists[at + LISTED_REQUIRED]):
            return 0
        while holding < possible:
            row = end - SLOW_WIDTH * (tried + 1) if is_below else at + SLOW_WIDTH * tried
            self.residuals.visits += 1
            if self._held(
                self._lists[row + LISTED_QUERY], -self._lists[row + LISTED_RESIDUAL], element
            ):
                holding = tried + 1
            else:
                possible = tried
            if self.residuals.operators.gave_up:
                self.residuals.operators.gave_up = False
                return self._take_rows(at, end, element)
            tried = (holding + possible) >> 1
        if is_below:
            return self._take_held(end - SLOW_WIDTH * holding, end, element)
        return self._take_held(at, at + SLOW_WIDTH * holding, element)

    cdef bint _held(self, int _query, int record, int element) except -1:
        """Whether the record of a query holds for an element; perhaps, where it was given up."""
        return self.residuals.hold(record, element)

    cdef int _take_range(self, int place, int offer) except -1:
        """Those of a ranged list whose number compares so with the message's."""
        cdef int at = place + LIST_QUERIES
        cdef int bounds = self._lists[place + LIST_BOUNDS]
        cdef int count = self._lists[place + LIST_RANGED]
        cdef int relation = self._operator[offer]
        cdef double number = self._number[offer]
        cdef double farthest
        cdef int row, end, high
        self._satisfy(bounds, count, number, relation)
        row, high = self._low, self._high
        while row < high:
            end = min(high, (row // FAR_ROWS + 1) * FAR_ROWS)
            farthest = self._bounds[bounds + count + row // FAR_ROWS]
            if number >= farthest if relation <= AT_MOST else number <= farthest:
                self._take_rows(
                    at + SLOW_WIDTH * row, at + SLOW_WIDTH * end, self._element[offer]
                )
            row = end
        return 0

    cdef int _satisfy(self, int bounds, int count, double number, int operator) except -1:
        """Set ``_low`` and ``_high`` to where, of so many bounds in order, those are that a number
        satisfies."""
        cdef int bound = _first_bound(
            self._bounds, bounds, count, number, operator in (LESS, AT_LEAST)
        )
        # Number < bound, number <= bound; else the other way round.
        self._low = bound if operator <= AT_MOST else 0
        self._high = count if operator <= AT_MOST else bound
        self.residuals.visits += 1
        return 0

    cdef int _take_held(self, int at, int end, int element) except -1:
        """Rows that leave nothing to verify."""
        self.residuals.visits += (end - at) // (8 * SLOW_WIDTH)
        while at < end:
            self._take(self._lists[at + LISTED_QUERY], 0, element)
            at += SLOW_WIDTH
        return 0

    cdef int _take_rows(self, int at, int end, int element) except -1:
        """The rows of a slow section, a second or a ranged list, from one up to before another."""
        self.residuals.visits += (end - at) // (8 * SLOW_WIDTH)
        while at < end:
            self._take(self._lists[at + LISTED_QUERY], self._lists[at + LISTED_RESIDUAL], element)
            at += SLOW_WIDTH
        return 0


cdef int _exchange(int[::1] rows, int one, int other, int width) noexcept:
    """Two rows change their places."""
    cdef int i
    if one != other:
        for i in range(width):
            rows[one + i], rows[other + i] = rows[other + i], rows[one + i]
    return 0


cdef int _first_bound(double[::1] column, int start, int count, double number, bint above) noexcept:
    """The first of ascending bounds that is above a number, or that is not below it."""
    cdef int low = 0
    cdef int high = count
    cdef int middle
    while low < high:
        middle = (low + high) >> 1
        if column[start + middle] < number or (above and column[start + middle] == number):
            low = middle + 1
        else:
            high = middle
    return low


# -------------------------------------------------------------------------------------------------
# Candidates: the queries whose access path was met, until they are found or not.
#
# ``settle`` takes the lists of a group of elements together, and then what is left to verify, so
# that their cache misses do not wait for each other.  A query that was found is marked by a bit,
# which stays in the cache where a number each would not.


@cython.final
cdef class Candidates(Offers):
    """``begin`` a message, ``offer`` and ``settle``; ``found`` has ``count`` queries in the end,
    ``unsure`` those of which a condition was given up, as it costs too much, with the limit."""

    cdef Trie trie
    cdef Twigs _twigs
    cdef public int[::1] found
    cdef public int count
    cdef public dict unsure
    cdef public long long candidates
    cdef public long long visits
    cdef public long long passed_over
    cdef int _epoch
    cdef object _groups
    cdef int _stamp
    cdef int[::1] _group_of, _verdict
    cdef unsigned long long[::1] _marks
    cdef int _waiting
    cdef int[::1] _query, _record, _where
    cdef public long long[::1] costs
    cdef bint is_spent

    def __init__(self, view: MessageView, residuals: Residuals, trie: Trie) -> None:
        super().__init__(view, residuals)
        self._twigs = residuals.twigs
        self.trie = trie
        self.found = ints(1024)
        self.unsure: dict[int, MatchLimitExceeded] = {}
        self.count = 0
        self.candidates = 0
        self.visits = 0
        self.passed_over = 0
        self._epoch = 0
        self._groups: TargetGroups | None = None
        self._stamp = 0
        self._group_of = self._verdict = self.found
        self._marks = array("Q", bytes(64))
        self.costs = longs(512)
        self.is_spent = False
        self._waiting = 0
        self._query = ints(256)
        self._record = ints(256)
        self._where = ints(256)

    cpdef int begin(self, int epoch, long long visits_max, object groups) except -1:
        """A new run; with ``groups`` only what is wanted is verified."""
        cdef int i
        cdef int words = self.trie.query_bound // 64 + 1
        self._epoch = epoch
        self._groups = groups
        if groups is not None:
            self._stamp = groups.stamp
            self._group_of = groups.group_of
            self._verdict = groups.verdict
        for i in range(self.count):
            self._marks[self.found[i] >> 6] = 0
        if len(self._marks) < words:
            self._marks = array("Q", bytes(16 * words))
            self.costs = grown(self.costs, 128 * words)
        self.count = 0
        if self.unsure:
            self.unsure = {}
        self._offered = 0
        self._waiting = 0
        self.residuals.begin(visits_max)
        return 0

    cdef int settle(self, AcceptLists accepts) except -1:
        """Take over the queries of all lists offered, as far as they hold."""
        Offers.settle(self, accepts)
        return self._verify()

    cdef bint is_any_wanted(self) noexcept:
        """Whether there are links left to look for."""
        return self._groups is None or self._stamp != 0

    cpdef int end(self) except -1:
        """How many queries were found in the message."""
        self.visits += self.residuals.visits
        if self.unsure:
            self.unsure = {
                query: limit for query, limit in self.unsure.items() if not self._is_found(query)
            }
        return self.count

    cdef int give_up(self, list queries, int element, bint is_new) except -1:
        if self._groups is not None:
            self._cover_found(len(queries))
            return Offers.give_up(self, queries, element, is_new)
        if is_new:
            exceeded = self.residuals.operators.exceeded
            self.unsure.update({query: exceeded for query, _ in queries})
        return 0

    cpdef object registrations(self, SubscriberRuns runs):
        """The registrations of all queries found."""
        return runs.collect(self.found, self.count)

    cpdef list take_costs(self, long long least):
        """(query, nanoseconds) of those whose conditions have taken at least so many since they
        were told last."""
        cdef int query
        found: list[tuple[int, int]] = []
        if not self.is_spent:
            return found
        self.is_spent = False
        for query in range(len(self.costs)):
            if self.costs[query] >= least:
                found.append((query, self.costs[query]))
                self.costs[query] = 0
        return found

    cpdef forget(self, int query):
        """A query is gone."""
        if query < len(self.costs):
            self.costs[query] = 0

    cdef int _take_list(self, int place, int element) except -1:
        """The queries of a list at an element; those with a residual record wait."""
        cdef int sure = self._lists[place + LIST_SURE]
        cdef int quick = self._lists[place + LIST_QUICK]
        cdef int slow = self._lists[place + LIST_SLOW]
        cdef int at = place + LIST_QUERIES
        cdef int end, i
        self._cover_found(sure + quick + self._lists[place + LIST_GROUPS] + len(self._query))
        self.residuals.visits += 1 + (quick >> 3)
        cdef bint is_new = self._lists[place + LIST_EPOCH] != self._epoch
        self._lists[place + LIST_EPOCH] = self._epoch  # once a message is enough for the sure ones
        if self._groups is not None:
            if is_new:
                self._take_sure(place, element)
            return self._take_unsure(place, element)
        if is_new:
            self._lists[place + LIST_QUICK_FOUND] = self._lists[place + LIST_SLOW_FOUND] = 0
            for i in range(at, at + sure):
                self._find(self._lists[i + LISTED_QUERY])
        at += sure
        end = at + QUICK_WIDTH * quick
        self._take_quick(at, end, place + LIST_QUICK_FOUND, element)
        at = end
        end = at + SLOW_WIDTH * slow
        self._take_slow(at, end, place + LIST_SLOW_FOUND, element)
        at = end
        end = at + self._lists[place + LIST_GROUPS]
        self._take_groups(at, end, element)
        return self._take_seconds(end, end + self._lists[place + LIST_SECONDS], element)

    # What holds nearly everywhere, as ``!=`` and ``not`` do, is found at the first elements, and
    # costs nothing at the others: only what has not been found yet is looked at.

    cdef int _take_quick(self, int first, int end, int place, int element) except -1:
        """The rows of a quick section, of which so many as stands at ``place`` are found."""
        cdef int[::1] lists = self._lists
        cdef int found = first + QUICK_WIDTH * lists[place]
        cdef int at = found
        self.candidates += (end - at) // QUICK_WIDTH
        while at < end:
            if self._is_found(lists[at + LISTED_QUERY]):
                _exchange(lists, at, found, QUICK_WIDTH)
                found += QUICK_WIDTH
            elif self.residuals.ancestor_holds(lists[at + LISTED_RESIDUAL], element):
                self._find(lists[at + LISTED_QUERY])
            at += QUICK_WIDTH
        lists[place] = (found - first) // QUICK_WIDTH
        return 0

    cdef int _take_slow(self, int first, int end, int place, int element) except -1:
        """The rows of a slow section, likewise."""
        cdef int[::1] lists = self._lists
        cdef int found = first + SLOW_WIDTH * lists[place]
        cdef int at = found
        while at < end:
            if self._is_found(lists[at + LISTED_QUERY]):
                _exchange(lists, at, found, SLOW_WIDTH)
                found += SLOW_WIDTH
            at += SLOW_WIDTH
        lists[place] = (found - first) // SLOW_WIDTH
        return self._take_rows(found, end, element)

    cdef int _take_groups(self, int at, int end, int element) except -1:
        """The queries with a twig of an ancestor, once for each ancestor."""
        cdef int ancestor, count, row
        while at < end:
            count = self._lists[at + GROUP_COUNT]
            ancestor = self.residuals.ancestor(
                element,
                self._lists[at + GROUP_POSITION] & CODE_DEPTH,
                self._lists[at + GROUP_POSITION] & CODE_ABSOLUTE,
            )
            if self.view.end[ancestor] > ancestor + 1 and (
                self._lists[at + GROUP_EPOCH] != self._epoch
                or self._lists[at + GROUP_ELEMENT] != ancestor
            ):
                self._lists[at + GROUP_EPOCH] = self._epoch
                self._lists[at + GROUP_ELEMENT] = ancestor
                self.candidates += count
                self.residuals.visits += 1 + (count >> 3)
                row = self.residuals.twig_row(ancestor, count)
                self._take_group(
                    at + GROUP_QUERIES, at + GROUP_QUERIES + GROUPED_WIDTH * count, row, ancestor
                )
            at += GROUP_QUERIES + GROUPED_WIDTH * count
        return 0

    cdef int _take_group(self, int at, int end, int row, int ancestor) except -1:
        """The queries of a group whose twig is found below an ancestor that has this row."""
        # PERF: of ten thousands of queries; without a call for each.
        cdef int[::1] lists = self._lists
        cdef unsigned long long[::1] rows = self._twigs.rows
        cdef int twig, known
        if row < 0:
            while at < end:
                twig = lists[at + LISTED_TWIG]
                known = self._twigs.answer(twig, ancestor)
                if known == ANSWER_YES:
                    self._find(lists[at + LISTED_QUERY])
                elif known == ANSWER_PERHAPS:
                    self._wait(lists[at + LISTED_QUERY], self._twigs.record(twig), ancestor)
                at += GROUPED_WIDTH
            return 0
        while at < end:
            twig = lists[at + LISTED_TWIG]
            if (rows[row + (twig >> 6)] >> (twig & 63)) & 1:
                self._find(lists[at + LISTED_QUERY])
            at += GROUPED_WIDTH
        return 0

    cdef int _take_rows(self, int at, int end, int element) except -1:
        cdef int residual
        cdef int count = (end - at) // SLOW_WIDTH
        self._cover_found(count + len(self._query))
        if self._groups is not None:
            return Offers._take_rows(self, at, end, element)
        self.residuals.visits += count >> 3
        self.candidates += count
        while at < end:
            residual = self._lists[at + LISTED_RESIDUAL]
            if residual < 0:
                if self.is_possible(self._lists[at + LISTED_REQUIRED]):
                    self._wait(self._lists[at + LISTED_QUERY], -residual, element)
            elif residual == 0 or self.residuals.ancestor_holds(residual, element):
                self._find(self._lists[at + LISTED_QUERY])
            at += SLOW_WIDTH
        return 0

    cdef int _take(self, int query, int residual, int element) except -1:
        """Take a query over, if it is wanted still and its residual holds."""
        groups: TargetGroups | None = self._groups
        cdef int known
        cdef bint holds
        if groups is None or self._is_found(query):
            return 0
        known = self._verdict[self._group_of[query]]
        if (
            self._stamp == 0
            or known == -self._epoch
            or (known != self._stamp and not groups.is_open(self._group_of[query]))
        ):
            self.passed_over += 1
            return 0
        self.candidates += 1
        if residual > 0 and not self.residuals.ancestor_holds(residual, element):
            return 0
        if residual < 0:
            holds = self.residuals.hold(-residual, element)
            self.residuals.operators.gave_up = False  # a link is rather taken than missed
            if not holds:
                return 0
        self._find(query)
        self._stamp = groups.reach(query)
        return 0

    cdef int _wait(self, int query, int record, int element) except -1:
        """Verify a query with the next ones."""
        cdef int i = self._waiting
        if self._is_found(query):
            return 0
        if i >= len(self._query):
            self._verify()
            i = 0
        self._query[i] = query
        self._record[i] = record
        self._where[i] = element
        self._waiting = i + 1
        return 0

    cdef int _verify(self) except -1:
        """Take over those waiting whose residual holds."""
        cdef int[::1] words = self.residuals.words
        cdef int touched = 0
        cdef bint holds
        cdef int i
        for i in range(self._waiting):
            touched ^= words[self._record[i]]
        self._touched = touched
        self._cover_found(self._waiting)
        for i in range(self._waiting):
            holds = self._held(self._query[i], self._record[i], self._where[i])
            if self.residuals.operators.gave_up:
                self.residuals.operators.gave_up = False
                if holds:
                    self.unsure[self._query[i]] = self.residuals.operators.exceeded
            elif holds:
                self._find(self._query[i])
        self._waiting = 0
        return 0

    cdef bint _held(self, int query, int record, int element) except -1:
        cdef long long nanos = self.residuals.operators.nanos
        cdef bint holds = self.residuals.hold(record, element)
        if self.residuals.operators.nanos != nanos and self._groups is None:
            self.costs[query] += self.residuals.operators.nanos - nanos
            self.is_spent = True
        return holds

    cdef int _take_held(self, int at, int end, int element) except -1:
        if self._groups is not None:
            return Offers._take_held(self, at, end, element)
        cdef int count = (end - at) // SLOW_WIDTH
        self._cover_found(count + len(self._query))
        self.residuals.visits += count >> 3
        self.candidates += count
        while at < end:
            self._find(self._lists[at + LISTED_QUERY])
            at += SLOW_WIDTH
        return 0

    cdef bint _is_found(self, int query) noexcept:
        return (self._marks[query >> 6] >> (query & 63)) & 1

    cdef int _find(self, int query) noexcept:
        """A query that holds, in the room that there is."""
        # PERF: three of four are found already, in no order that a branch could foresee.
        cdef int word = query >> 6
        cdef unsigned long long marks = self._marks[word]
        cdef unsigned long long bit = 1
        bit = bit << (query & 63)
        self._marks[word] = marks | bit
        self.found[self.count] = query
        self.count += not marks & bit
        return 0

    cdef int _cover_found(self, int more) except -1:
        """Room for more to be found; those waiting count as well, for they may be verified."""
        if self.count + more >= len(self.found):
            self.found = grown(self.found, 2 * (self.count + more))
        return 0


# -------------------------------------------------------------------------------------------------
# Locations: at which elements of a message queries are found (the paper's path tuples).
#
# A query whose access path is met at an element is one *hit*, a row of ``element``, ``query`` and
# ``residual``, in document order; of one element those without a residual first.  What a residual
# leaves to verify is asked by whoever needs it (``holds``).


@cython.final
cdef class Locations(Offers):
    """``begin`` a message, run, ``end``; then there are ``count`` hits."""

    cdef readonly int count
    cdef readonly int[::1] element
    cdef readonly int[::1] query
    cdef readonly int[::1] residual
    cdef int[::1] _met_element
    cdef int[::1] _met_query
    cdef int[::1] _met_residual
    cdef int[::1] _start

    def __init__(self, view: MessageView, residuals: Residuals) -> None:
        super().__init__(view, residuals)
        self.count = 0
        self.element = ints(256)
        self.query = ints(256)
        self.residual = ints(256)
        self._met_element = ints(256)
        self._met_query = ints(256)
        self._met_residual = ints(256)
        self._start = ints(256)

    cpdef int begin(self, long long visits_max) except -1:
        """A new run."""
        self.count = 0
        self._offered = 0
        self.residuals.begin(visits_max)
        return 0

    cpdef int end(self) except -1:
        """In document order."""
        cdef int i, place
        cdef int elements = self.view.elements
        if elements + 2 > len(self._start):
            self._start = ints(2 * elements + 2)
        if self.count > len(self.element):
            self.element = ints(2 * self.count)
            self.query = ints(2 * self.count)
            self.residual = ints(2 * self.count)
        for i in range(elements + 1):
            self._start[i] = 0
        for i in range(self.count):
            self._start[self._met_element[i] + 1] += 1
        for i in range(elements):
            self._start[i + 1] += self._start[i]
        for i in range(self.count):
            place = self._start[self._met_element[i]]
            self._start[self._met_element[i]] = place + 1
            self.element[place] = self._met_element[i]
            self.query[place] = self._met_query[i]
            self.residual[place] = self._met_residual[i]
        return self.count

    cpdef object visits(self):
        """What run and residuals have cost so far."""
        visits: int = self.residuals.visits
        return visits

    cpdef bint holds(self, int hit) except -1:
        """Whether the residual of a hit holds, too; yes where that would cost too much."""
        cdef int residual = self.residual[hit]
        cdef int element = self.element[hit]
        if residual == 0:
            return True
        if residual > 0:
            return self.residuals.ancestor_holds(residual, element)
        cdef bint holds = self.residuals.hold(-residual, element)
        self.residuals.operators.gave_up = False
        return holds

    cdef int _take(self, int query, int residual, int element) except -1:
        cdef int i = self.count
        if i >= len(self._met_element):
            self._met_element = grown(self._met_element, 2 * i)
            self._met_query = grown(self._met_query, 2 * i)
            self._met_residual = grown(self._met_residual, 2 * i)
        self._met_element[i] = element
        self._met_query[i] = query
        self._met_residual[i] = residual
        self.count = i + 1
        return 0


# -------------------------------------------------------------------------------------------------
# Run: one message through the automaton.
#
# Each element has *heads*, the states that its children start from::
#
#     one          of the structure: all paths whose access predicate is not met yet
#     one for each access predicate that holds on the element or an ancestor, as long as something
#                  can follow; for a range it carries the number that the message has there
#
# So what a profile asks for besides its access predicate is looked at only where that holds.  Heads
# of an element in the same state do the same, so that each is kept once.
#
# A run is about one priority class, whose root of the trie it starts from.  The ``taker`` of the
# lists that are met can end it: where queries lead to links, that is when none of these is
# wanted any more (see target_groups.py).
#
# Elements are taken level by level and in groups, each step for a whole group before the next one,
# because what costs is waiting for memory (see Moves)::
#
#     heads of the parents ─▶ states of the elements ─┬─▶ heads ─▶ the next level
#                                  │                  └─▶ lists ─▶ taker
#                                  └▶ attributes ─▶ atoms ─▶ heads and lists, too

cpdef enum:
    # An item of a move to an atom: the row of own atoms << ITEM_SHIFT | the operator.
    ITEM_OPERATOR = 7
    ITEM_SHIFT = 3

    # The operator of the head that carries the structure.
    STRUCTURE = -1

    # What ``go`` gives for a message that would cost too much, and ``go_on`` when there is more.
    TOO_COSTLY = -1
    MORE = 1


@cython.final
cdef class Run:
    """Goes through the message that ``view`` is bound to; ``taker`` has what was met."""

    cdef MessageView view
    cdef DerivedColumns _columns
    cdef Offers _taker
    cdef Trie trie
    cdef public LazyStates states
    cdef public long long heads
    cdef public int turns
    cdef public long long elements_spared
    cdef object _new_states
    cdef Moves _down, _across, _onto
    cdef dict _given_up
    cdef int _count, _position
    cdef unsigned long long _entered
    cdef long long _moved
    cdef readonly int[::1] _state
    cdef int[::1] _operator
    cdef double[::1] _number
    cdef int[::1] _first, _end

    def __init__(
        self, view: MessageView, columns: DerivedColumns, taker: Offers, trie: Trie,
        new_states: Callable[[LazyStates | None], LazyStates]
    ) -> None:
        self.view = view
        self._columns = columns
        self._taker = taker
        self.trie = trie
        self._new_states = new_states
        self.states = new_states(None)
        self.heads = 0
        self.turns = 0
        self.elements_spared = 0
        self._down = Moves()  # item: the parent's head
        self._across = Moves()  # item: the first row of the own atoms of a value, ~column
        self._onto = Moves()  # item: see ITEM_SHIFT
        self._given_up: dict[int, list[tuple[int, int]]] = {}  # by the state behind a column
        self._count = 0
        self._moved = 0  # heads that the present group came from, and was compared with
        self._state = ints(1024)
        self._operator = ints(1024)
        self._number = doubles(1024)
        self._first = ints(256)
        self._end = ints(256)

    cpdef int go(self, Offers taker, int root, long long visits_max) except -2:
        """Offer a taker what is met behind a root of the trie, as long as it wants anything.

        TOO_COSTLY beyond so many heads and elements looked at, else 0.
        """
        self.begin(taker, root)
        return self.go_on(visits_max, 0)

    cpdef int begin(self, Offers taker, int root) except -2:
        """The same in pieces, of which ``go_on`` does one."""
        cdef MessageView view = self.view
        self._position = 0
        self._taker = taker
        if self._given_up:
            self._given_up = {}
        if len(self._first) < view.elements + 2:
            self._first = ints(2 * view.elements + 2)
            self._end = ints(2 * view.elements + 2)
        # The document node has place 0, the elements the places from 1.
        self._state[0] = self.states.start(root)
        self._operator[0] = STRUCTURE
        self._first[0] = 0
        self._end[0] = 1
        self._count = 1
        return 0

    cpdef int go_on(self, long long visits_max, long long piece) except -2:
        """Look at so many heads and elements of what is left, and at nodes for steps that were not
        made before, at all if ``piece`` is 0; MORE when there is something left, TOO_COSTLY beyond
        ``visits_max`` of all, else 0."""
        cdef MessageView view = self.view
        cdef Offers taker = self._taker
        cdef int position = self._position
        cdef long long until = taker.residuals.visits + piece
        cdef long long gone_through
        cdef int count
        while position < view.elements:
            count = self._count
            gone_through = self.states.gone_through
            position = self._move(position)
            until -= self.states.gone_through - gone_through
            self.heads += self._count - count
            taker.residuals.visits += self._moved
            taker.settle(self.states.accepts)
            if taker.residuals.visits > visits_max:
                return TOO_COSTLY
            if not taker.is_any_wanted():
                self.elements_spared += view.elements - position
                break
            if position < view.elements and self.states.is_full():
                self._turn(self._first[view.parent[view.order[position]] + 1])
            if piece and taker.residuals.visits >= until and position < view.elements:
                self._position = position
                return MORE
        return 0

    cpdef bint is_empty(self, int root) noexcept:
        """Whether there are no queries behind a root of the trie."""
        return self.trie.nodes[root].uses == 1

    def forget_states(self) -> None:
        """Begin a generation that takes nothing over."""
        self.states = self._new_states(None)

    cdef int _move(self, int position) except -1:
        """Give a group of elements, from ``position`` on, its heads; the position of the next."""
        self._columns.tidy()
        cdef int end = self._ask_down(position)
        self._down.resolve(self.states, self.trie.clock)
        self._ask_attributes()
        self._across.resolve(self.states, self.trie.clock)
        self._ask_atoms()
        self._onto.resolve(self.states, self.trie.clock)
        self._enter_all(position, end)
        return end

    cdef int _ask_down(self, int position) except -1:
        """From the heads of their parents to elements of one level; the position behind them."""
        cdef MessageView view = self.view
        cdef Moves down = self._down
        cdef StateRow* states = self.states.states
        cdef int depth = view.depth[view.order[position]]
        cdef int count = 0
        cdef long long moved = 0
        cdef int element, parent, label, bits
        cdef long long edge, row
        cdef int state, j
        while position < view.elements:
            element = view.order[position]
            parent = view.parent[element] + 1
            if count + self._end[parent] - self._first[parent] > len(down.key):
                if count:
                    break
                down.cover(self._end[parent] - self._first[parent])
            if view.depth[element] != depth:
                break
            label = view.label[view.name[element]]
            bits = self.states.label_bits[label]
            edge = label << EDGE_SHIFT
            for j in range(self._first[parent], self._end[parent]):
                state = self._state[j]
                # PERF: two of three heads have no edge for the name, which their row tells.
                if states[state].names & bits:
                    row = states[state].row
                    down.key[count] = (row << 32) | edge
                elif states[state].elsewhere:
                    down.key[count] = 0
                    down.target[count] = states[state].elsewhere
                else:
                    continue
                down.state[count] = state
                down.element[count] = element
                down.item[count] = j
                count += 1
            moved += self._end[parent] - self._first[parent]
            position += 1
        down.count = count
        self._moved = moved
        return position

    cdef int _ask_attributes(self) except -1:
        """From the structure's states of elements to the attributes of their own atoms, and to
        columns."""
        cdef MessageView view = self.view
        cdef Moves down = self._down
        cdef Moves across = self._across
        cdef StateRow* states = self.states.states
        cdef int[::1] own_asks = view.own_asks
        cdef int count = 0
        cdef int element, state, edge
        cdef long long row
        cdef int[::1] asked
        cdef int i, k
        for i in range(down.count):
            if self._operator[down.item[i]] < 0:
                element = down.element[i]
                count += view.own_start[element + 1] - view.own_start[element]
                if self._columns.count:
                    count += len(self._columns.of(view.label[view.name[element]]))
        across.cover(count)
        count = 0
        for i in range(down.count):
            state = down.target[i]
            if self._operator[down.item[i]] >= 0 or not states[state].flags & FLAG_ATTRIBUTES:
                continue
            element = down.element[i]
            for k in range(view.own_start[element], view.own_start[element + 1]):
                if own_asks[k] and states[state].edges & edge_bit(own_asks[k]):
                    row = states[state].row
                    across.key[count] = (row << 32) | own_asks[k]
                    across.state[count] = state
                    across.element[count] = element
                    across.item[count] = k
                    count += 1
            if self._columns.count == 0:
                continue
            asked = self._columns.of(view.label[view.name[element]])
            for k in range(len(asked)):
                edge = asked[k] << EDGE_SHIFT | EDGE_ATTRIBUTE
                if states[state].edges & edge_bit(edge):
                    row = states[state].row
                    across.key[count] = (row << 32) | edge
                    across.state[count] = state
                    across.element[count] = element
                    across.item[count] = ~asked[k]
                    count += 1
        across.count = count
        return 0

    cdef int _ask_atoms(self) except -1:
        """From attributes and columns to the atoms themselves."""
        cdef MessageView view = self.view
        cdef Moves across = self._across
        cdef Moves onto = self._onto
        cdef StateRow* states = self.states.states
        cdef int count = 0
        cdef int state, edge
        cdef long long row
        cdef int i, k, end, operator
        onto.cover(RANGES * self._derive_all())
        for i in range(across.count):
            state = across.target[i]
            if not state:
                continue
            row = states[state].row
            k = across.item[i]
            end = view.own_start[across.element[i] + 1]
            if k < 0:
                end = self._columns.end[~k]
                k = self._columns.first[~k]
            while k < end:
                operator = 1 if view.own_ranges[k] else 0
                while operator <= RANGES:
                    edge = view.own_atom[k]
                    if operator:
                        edge = view.atoms.ranges[RANGES * view.own_ranges[k] + operator - 1]
                    edge = (edge << EDGE_SHIFT) | EDGE_ATOM
                    if states[state].edges & edge_bit(edge):
                        onto.key[count] = (row << 32) | edge
                        onto.state[count] = state
                        onto.element[count] = across.element[i]
                        onto.item[count] = k << ITEM_SHIFT | operator
                        count += 1
                    if operator == 0:
                        break
                    operator += 1
                k += 1
                if k == end or view.own_asks[k]:
                    break
        onto.count = count
        return 0

    cdef int _derive_all(self) except -1:
        """Compute the columns that states ask for, which then stand as ~place; how many atoms all
        that is asked may have."""
        cdef MessageView view = self.view
        cdef Moves across = self._across
        cdef int count = 0
        cdef int i, place, element
        for i in range(across.count):
            element = across.element[i]
            if not across.target[i]:
                continue
            if across.item[i] >= 0:
                count += view.own_start[element + 1] - across.item[i]
                continue
            place = self._columns.derive(~across.item[i], element)
            self._taker.residuals.visits += 1 + (self._columns.operators.visits >> 3)
            if place < 0:
                self._give_up(across.target[i], element)
                across.target[i] = 0
                continue
            across.item[i] = ~place
            count += self._columns.end[place] - self._columns.first[place]
        return count

    cdef int _give_up(self, int state, int element) except -1:
        """A column costs too much on this message; what is behind it is looked for once a run."""
        cdef StateRow* states = self.states.states
        cdef int first = states[state].first
        cdef int end = first + states[state].count
        queries = self._given_up.get(state)
        cdef bint is_new = queries is None
        if is_new:
            queries = self.trie.queries_below(self.states.members[first:end])
            self._given_up[state] = queries
        return self._taker.give_up(queries, element, is_new)

    cdef int _enter_all(self, int position, int end) except -1:
        """The heads of a group of elements, where its moves have led."""
        cdef MessageView view = self.view
        cdef Moves down = self._down
        cdef Moves onto = self._onto
        cdef int element
        cdef int i = 0
        cdef int k = 0
        while position < end:
            element = view.order[position]
            self._first[element + 1] = self._count
            self._entered = 0
            while i < down.count and down.element[i] == element:
                if down.target[i]:
                    self._enter(
                        down.target[i],
                        self._operator[down.item[i]],
                        self._number[down.item[i]],
                        element,
                    )
                i += 1
            while k < onto.count and onto.element[k] == element:
                if onto.target[k]:
                    self._enter(
                        onto.target[k],
                        onto.item[k] & ITEM_OPERATOR,
                        view.own_number[onto.item[k] >> ITEM_SHIFT],
                        element,
                    )
                k += 1
            self._end[element + 1] = self._count
            position += 1
        return 0

    cdef int _enter(self, int state, int operator, double number, int element) except -1:
        """Add a head, unless the element has its equal, and offer what its state accepts."""
        cdef int j, place
        cdef unsigned long long bit = 1
        bit = bit << (state & 63)
        if self._entered & bit:
            self._moved += (self._count - self._first[element + 1]) >> 4
            for j in range(self._first[element + 1], self._count):
                if (
                    self._state[j] == state
                    and self._operator[j] == operator
                    and self._number[j] == number
                ):
                    return 0
        self._entered |= bit
        place = self.states.states[state].accepts
        if place < 0:
            place = self.states.accepted(state, operator > 0)
        if place > 0:
            self._taker.offer(place, element, operator, number)
        if not self.states.states[state].flags & FLAG_FOLLOWS:
            return 0
        if self._count + 1 >= len(self._state):
            self._state = grown(self._state, 2 * self._count)
            self._operator = grown(self._operator, 2 * self._count)
            self._number = grown(self._number, 2 * self._count)
        self._state[self._count] = state
        self._operator[self._count] = operator
        self._number[self._count] = number
        self._count += 1
        return 0

    cdef int _turn(self, int first) except -1:
        """Begin a new generation in the middle of a message; the heads from one on move to it."""
        cdef LazyStates older = self.states
        cdef LazyStates newer = self._new_states(older)
        cdef int j
        older.forget_older()
        for j in range(first, self._count):
            self._state[j] = newer.carry(older, self._state[j])
        self.states = newer
        self._given_up = {}
        self.turns += 1
        return 0


# -------------------------------------------------------------------------------------------------
# Draft: one query as numbers, before anything of it is in the index.
#
# Profiles of the same shape differ in their words only, so what is asked of an element is analysed
# once for each shape: a *recipe* says which words become which names, attributes and values.  A way
# is a list of steps, each with its recipe and words, which the draft carries out::
#
#     /a[@id = "x"][b]           step  False  ("", "a")  recipe  ("id", "x", "b")
#
#     recipe      2   ATOM 0 ~0 0 1   NESTED 1  False ~1 2 0       constants "", ""
#
#     step        DESCENDANT SYMBOL CONDITION NEXT                 conditions and ways are chains
#     condition   KIND A VALUE NEXT CHECK_A CHECK_B WHOLE      A: attribute, or first step of a way
#
# Numbers in a recipe, in the order of the tree::
#
#     conditions  count  condition …
#     condition   kind attribute value          attribute  0 and a name, TEXT_NODE or STRING_VALUE
#                 NESTED count  step …          name       namespace local
#                 VERIFIED n                    what makes the condition of the words is constant n
#                 COMPUTED kind items n         of a column: constant n makes value, text test and
#                                               constant of the words, the next one the condition
#     step        is_descendant name  conditions
#
# A namespace, a local name or a value is the number of a word, or ``~n`` for constant n of the
# recipe; no value stands after EXISTS.  A condition on a column is one on its attribute, whose
# WHOLE is the place among the values of the condition as an expression.  Symbols and attributes are
# held by the draft until the query holds them; atoms, numbers and records are made when it is known
# what for (see QueryWriter).

cdef struct DraftStep:
    int descendant
    int symbol
    int condition
    int next


cdef struct DraftCondition:
    int kind
    int a
    int value
    int next
    int check_a
    int check_b
    int whole


cdef enum:
    # Numbers of 32 bits in a row.
    STEP_WIDTH = 4
    CONDITION_WIDTH = 7

cpdef enum:
    # In a recipe, before the kind of a condition on a column.
    COMPUTED = 12

cdef enum:
    _COMMON_MIN = 64  # conditions on a value that has a column
    _ASKED_MAX = 1 << 16


# The constants of a recipe: words, keys of text tests, and fillers of verified conditions.
Constant: TypeAlias = Word | bytes | Callable[[tuple[Word, ...]], Expression]


cdef class Recipe:
    """The conditions on an element, for all words; see above."""

    cdef int[::1] codes
    cdef list constants

    def __init__(self, codes: Sequence[int], constants: list[Constant]) -> None:
        self.codes = ints(len(codes))
        self.constants = constants
        for place, code in enumerate(codes):
            self.codes[place] = code


# Descendant or child, name test, what is asked of the element and the words for that.
FilledStep: TypeAlias = "tuple[bool, Name, tuple[Recipe, tuple[Word, ...]] | None]"
FilledWay: TypeAlias = "list[FilledStep]"


cdef class Draft:
    """``fill`` it with the ways of a query; rows are numbered from 1."""

    cdef DraftStep* steps
    cdef DraftCondition* conditions
    cdef int[::1] ways, _step_rows, _condition_rows
    cdef int way_count
    cdef list values
    cdef SymbolTable _symbols
    cdef int _step_count, condition_count
    cdef int[::1] _codes
    cdef int _at
    cdef list _constants
    cdef tuple _words
    cdef dict _asked

    def __init__(self, symbols: SymbolTable) -> None:
        self._step_rows = self._condition_rows = ints(1)
        self._cover_steps(16)
        self._cover_conditions(16)
        self.ways = ints(16)  # the first step of each
        self.way_count = 0
        self.values: list[Word | bytes | Expression] = []
        self._symbols = symbols
        self._step_count = 0
        self.condition_count = 0
        self._codes = ints(0)
        self._at = 0
        self._constants: list[Constant] = []
        self._words: tuple[Word, ...] = ()
        # How many programs there are in place of a column, and the first value of each form.
        self._asked: dict[object, object] = {}

    cpdef int fill(self, list ways) except -1:
        """The ways of a query, whose symbols and attributes are held from now on."""
        self.way_count = 0
        self.values.clear()
        self._step_count = 0
        self.condition_count = 0
        for way in ways:
            self._add_way(way)
        return 0

    cdef int new_condition(self, int kind, int a, int value, int following) except -1:
        """A row of ``conditions``."""
        self.condition_count += 1
        if CONDITION_WIDTH * (self.condition_count + 1) > len(self._condition_rows):
            self._cover_conditions(2 * self.condition_count)
        self.conditions[self.condition_count] = DraftCondition(kind, a, value, following, 0, 0, 0)
        return self.condition_count

    cdef int _cover_conditions(self, int count) except -1:
        """Room for so many conditions."""
        self._condition_rows = grown(self._condition_rows, CONDITION_WIDTH * count)
        self.conditions = <DraftCondition*>&self._condition_rows[0]
        return 0

    cdef int _add_way(self, object way) except -1:
        cdef int step, conditions
        cdef int last = 0
        cdef Recipe recipe
        if self.way_count == len(self.ways):
            self.ways = grown(self.ways, 2 * self.way_count)
        for descendant, test, asked in way:
            step = self._new_step(descendant, self._symbols.acquire(test))
            if last:
                self.steps[last].next = step
            else:
                self.ways[self.way_count] = step
            if asked is not None:
                recipe, self._words = asked
                self._codes = recipe.codes
                self._constants = recipe.constants
                self._at = 0
                conditions = self._read_conditions()  # may replace the column
                self.steps[step].condition = conditions
            last = step
        self.way_count += 1
        return 0

    cdef int _new_step(self, int descendant, int symbol) except -1:
        self._step_count += 1
        if STEP_WIDTH * (self._step_count + 1) > len(self._step_rows):
            self._cover_steps(2 * self._step_count)
        self.steps[self._step_count] = DraftStep(descendant, symbol, 0, 0)
        return self._step_count

    cdef int _cover_steps(self, int count) except -1:
        """Room for so many steps."""
        self._step_rows = grown(self._step_rows, STEP_WIDTH * count)
        self.steps = <DraftStep*>&self._step_rows[0]
        return 0

    cdef int _read_conditions(self) except -1:
        """The first of the conditions that come next in the recipe, or 0."""
        cdef int count = self._next()
        cdef int kind, a, value, condition
        cdef int first = 0
        cdef int last = 0
        cdef int _i
        for _i in range(count):
            kind = self._next()
            value = 0
            if kind == COMPUTED:
                condition = self._read_computed()
                kind = a = 0
            elif kind == CHECK_NESTED:
                a = self._read_way()
            elif kind == CHECK_VERIFIED:
                a = 0
                value = len(self.values)
                fill = self._constants[self._next()]
                self.values.append(fill(self._words))
            else:
                a = self._read_attribute()
                if kind == CHECK_EXISTS and a >= ATTRIBUTES:
                    kind = CHECK_ATOM
                    value = len(self.values)
                    self.values.append(PRESENCE)
                elif kind != CHECK_EXISTS:
                    value = len(self.values)
                    self.values.append(self._read_word())
            if kind:
                condition = self.new_condition(kind, a, value, 0)
            if last:
                self.conditions[last].next = condition
            else:
                first = condition
            last = condition
        return first

    cdef int _read_computed(self) except -1:
        """The condition on a column that comes next in the recipe; verified where its constant is
        none that the index looks up."""
        cdef int kind = self._next()
        cdef int items = self._next()
        cdef int place = self._next()
        cdef int value = len(self.values)
        cdef int condition
        column, test, constant = self._constants[place](self._words)
        if test == "text":
            test, relation, constant = constant
            about = self._about_text(self._constants[place], column, test, relation, constant)
            if about is not None:
                column, constant, program, _ = about
                if constant is None:
                    constant = bytes((TEXT_TEST, PROGRAM)) + program.encode()
                items, test, kind = FIRST_ITEM, "", CHECK_ATOM | kind & CHECK_NOT
        if test == "contains":
            source = FunctionCall(test, (column, Literal(constant))).token_source()
            if source is not None:
                column, test = source, "contains-token"
        elif test == "matches":
            test, constant = pattern_test(*constant)
        elif test in OF_PLACES:
            said = written_test(test, *(constant if isinstance(constant, tuple) else (constant,)))
            constant = None if said is None else bytes((TEXT_TEST, PLACE)) + said.encode()
            test = ""
        elif test == "number":
            relation, constant = constant
            kind = relation | kind & CHECK_NOT
        elif test == "lang":
            test, constant = "starts-with", f"{constant.lower()}-" if constant else ""
        if EACH_DATE <= items < GREATEST_ITEM:
            constant = moment_of(constant, items) if isinstance(constant, str) else constant
        elif test and test != "number" and constant is not None:
            constant = test_key(test, constant)
        if isinstance(constant, (int, float, Decimal)) and not is_exact(constant):
            constant = None
        self.values += (constant, (self._constants[place + 1], self._words))
        condition = self.new_condition(kind, 0, value, 0)
        self.conditions[condition].whole = value + 1
        if constant is None:
            self.verify(condition)
            return condition
        leaf = column.leaf() if items < EACH_DATE else None
        if leaf is not None and leaf.kind is NodeKind.ATTRIBUTE and leaf.is_full:
            self.conditions[condition].whole = 0
            column = leaf.test
        else:
            column = Column(items, column)
        self.conditions[condition].a = self._symbols.acquire_attribute(column)
        return condition

    cdef object _about_text(self, form, value, test, relation, constant):
        """A condition said of a text in its value; None where the value is that of many profiles,
        computed once for all of them: one asked for often, or the first of its form."""
        about = about_text(value, test, relation, constant)
        if about is None or about.constant is not None:
            return about
        if len(self._asked) >= _ASKED_MAX:
            self._asked.clear()
        asked = self._asked.get(value, 0)
        if asked == _COMMON_MIN:
            return None
        if not about.is_dear and self._asked.setdefault(form, value) == value:
            return None
        self._asked[value] = asked + 1
        return about

    cdef int verify(self, int condition) except -1:
        """Have a condition on a column verified as an expression, and not looked up."""
        fill, words = self.values[self.conditions[condition].whole]
        self.conditions[condition].kind = CHECK_VERIFIED
        self.conditions[condition].a = 0
        self.conditions[condition].value = len(self.values)
        self.conditions[condition].whole = 0
        self.values.append(fill(words))
        return 0

    cdef int _read_way(self) except -1:
        """The first step of the way that comes next in the recipe."""
        cdef int count = self._next()
        cdef int descendant, conditions, step
        cdef int first = 0
        cdef int last = 0
        cdef int _i
        for _i in range(count):
            descendant = self._next()
            step = self._new_step(descendant, self._symbols.acquire(self._read_name()))
            conditions = self._read_conditions()  # may replace the column
            self.steps[step].condition = conditions
            if last:
                self.steps[last].next = step
            else:
                first = step
            last = step
        return first

    cdef int _read_attribute(self) except -1:
        cdef int attribute = self._next()
        return attribute or self._symbols.acquire_attribute(self._read_name())

    cdef object _read_name(self):
        namespace = self._read_word()
        return namespace, self._read_word()  # names are strings

    cdef object _read_word(self):
        cdef int code = self._next()
        return self._words[code] if code >= 0 else self._constants[~code]

    cdef int _next(self) noexcept:
        self._at += 1
        return self._codes[self._at - 1]


# -------------------------------------------------------------------------------------------------
# ResidualParts: the parts that residuals name, and their release.
#
# Symbols, attributes, atoms, numbers, twigs, operators and other records that a record names are
# held by it, once, as long as it is there (see automaton.pxd for what a record is).


cdef class ResidualParts:
    """``release_record`` takes back one use of a record, ``release_check`` one of a check."""

    cdef SymbolTable _symbols
    cdef AtomTable _atoms
    cdef RecordPool _records
    cdef Twigs _twigs
    cdef DerivedColumns _columns

    def __init__(
        self, symbols: SymbolTable, atoms: AtomTable, records: RecordPool, twigs: Twigs,
        columns: DerivedColumns
    ) -> None:
        self._symbols = symbols
        self._atoms = atoms
        self._records = records
        self._twigs = twigs
        self._columns = columns

    cdef int release_atom(self, int atom) except -1:
        cdef int attribute = self._atoms.atoms[atom].attribute
        self._atoms.release(atom)
        self._symbols.release_attribute(attribute)
        return 0

    cdef int release_record(self, int record) except -1:
        if self._records.words[record + POOLED_USERS] == 1:
            self.release_parts(record)
        self._records.release(record)
        return 0

    cdef int release_parts(self, int record) except -1:
        """Count one use less of each part that the numbers of a record name."""
        cdef int[::1] words = self._records.words
        cdef int i, _j, place, count
        for i in range(words[record + RECORD_COUNT]):
            if words[record + RECORD_MODE] == MODE_FIXED:
                place = record + RECORD_ROWS + FIXED_WIDTH * i + FIXED_CHECK
                self.release_check(
                    words[place + CHECK_KIND], words[place + CHECK_A], words[place + CHECK_B]
                )
                continue
            place = record + words[record + RECORD_ROWS + i]
            self._symbols.release(words[place + WAY_SYMBOL])
            count = words[place + WAY_COUNT]
            place += WAY_CHECKS
            for _j in range(count):
                self.release_check(
                    words[place + CHECK_KIND], words[place + CHECK_A], words[place + CHECK_B]
                )
                place += CHECK_WIDTH
        return 0

    cdef bint _is_plain(self, int record) except -1:
        """Whether a way down has no conditions."""
        cdef int[::1] words = self._records.words
        cdef int step
        for step in range(words[record + RECORD_COUNT]):
            if words[record + words[record + RECORD_ROWS + step] + WAY_COUNT]:
                return False
        return True

    cdef int release_check(self, int kind, int a, int b) except -1:
        cdef int record
        if kind & CHECK_COLUMN:
            self._columns.release(b if kind & CHECK_OF_ELEMENT == CHECK_ATOM else a)
            if kind & CHECK_OF_ELEMENT != CHECK_ATOM:
                self._atoms.release(
                    self._atoms.ranges[RANGES * a + (kind & CHECK_OF_ELEMENT) - 1]
                )
        if kind >= CHECK_COLUMN:
            kind &= CHECK_OF_ELEMENT
        if kind in (CHECK_NESTED, CHECK_ANYWHERE):
            if self._records.words[a + POOLED_USERS] == 1 and self._is_plain(a):
                # It may have been a twig as well, whose other users have gone before.
                self._twigs.remove(self._twigs.acquire(a))
            self.release_record(a)
        elif kind == CHECK_VERIFIED:
            self._columns.operators.release(a)
        elif kind == CHECK_ATOM:
            self.release_atom(a)
        elif kind == CHECK_TWIG:
            record = self._twigs.record(a)
            if self._records.words[record + POOLED_USERS] == 1:
                self._twigs.remove(a)
            self.release_record(record)
        else:
            if kind == CHECK_DIFFERS:
                self.release_atom(b)
            elif kind != CHECK_EXISTS:
                self._atoms.release_number(b)
            self._symbols.release_attribute(a)
        return 0


# -------------------------------------------------------------------------------------------------
# Access paths: how the index gets at a query's candidates, and what is left to verify.
#
# A query has one spine and nested paths; each nested path may be the spine as well, with what stood
# below its step as a nested path.  Of all their conditions one becomes the *access predicate*: an
# equality where there is one, the one with the most different constants among the profiles; else a
# range, which is another comparison with a number; else that an attribute is there, as ``@a`` and
# ``@a != "x"`` ask, one that few profiles ask for; else none, on a spine that leaves no doubt which
# elements the rest is asked of, if there is one::
#
#     /nitf[@version = "1"][head/pubdata/@edition.area = "SF"]//p
#
#         spine       /nitf/head/pubdata
#         access      @edition.area = "SF" at step 2
#         residual    at step 0: @version = "1", //p
#
# A routing query's conjunction has its paths as spines to choose from; those not chosen are found
# anywhere in the message.

cdef enum:
    _NONE = 0
    _PRESENCE = 1
    _RANGE = 2
    _EQUALITY = 3


# Ranks of access predicates.


cdef class AccessPath:
    """``choose`` the spine of a draft, ``length`` steps, and the access predicate.

    ``access`` is a condition of the spine's step ``at``, or 0.  The draft is changed to it: nested
    paths that the spine does not take, and other ways, are conditions of its steps.
    """

    cdef int[::1] spine
    cdef int length, at, access
    cdef Draft _draft
    cdef AtomTable _atoms
    cdef int _first_descendant, _last_descendant, _way, _fork, _nested, _rank
    cdef double _first_worth
    cdef int _second_worth

    def __init__(self, draft: Draft, atoms: AtomTable) -> None:
        self.spine = ints(16)
        self.length = 0
        self.at = -1
        self.access = 0
        self._draft = draft
        self._atoms = atoms
        self._first_descendant = 0  # steps of the spine that was laid out last
        self._last_descendant = -1
        # Of the best so far: its way, the step where it leaves it, by which nested path, its worth.
        self._way = 0
        self._fork = 0
        self._nested = 0
        self._rank = -1
        self._first_worth = 0.0
        self._second_worth = 0

    cpdef int choose(self) except -1:
        """The best access path of the draft."""
        cdef Draft draft = self._draft
        cdef int way
        self._rank = -1
        for way in range(draft.way_count):
            self._consider(draft.ways[way], 0, 0)
        if draft.way_count == 1:
            self._consider_nested(draft.ways[0])
        self._change_draft()
        self._lay_out(self._way, self._fork, self._nested)
        return 0

    cdef int position_of(self, int at) noexcept:
        """Where a step's element is, its position: up from the last one's, or a depth."""
        if self._last_descendant <= at:
            return (self.length - 1 - at) << POSITION_SHIFT
        if self._first_descendant > at:
            return at << POSITION_SHIFT | POSITION_ABSOLUTE
        return POSITION_UNKNOWN

    cdef int _consider_nested(self, int way) except -1:
        """Each nested path of a way in the place of what is below its step."""
        cdef Draft draft = self._draft
        cdef int step = way
        cdef int condition
        cdef int above = 0
        while step:
            above += 1
            condition = draft.steps[step].condition
            while condition:
                if (
                    draft.conditions[condition].kind == CHECK_NESTED
                    and above
                    + self._length_of(draft.conditions[condition].a)
                    <= STEPS_MAX
                ):
                    self._consider(way, step, condition)
                condition = draft.conditions[condition].next
            step = draft.steps[step].next
        return 0

    cdef int _consider(self, int way, int fork, int nested) except -1:
        """Whether a spine with one of its conditions, or with none, is the best so far."""
        cdef Draft draft = self._draft
        cdef int at, condition, attribute, kind
        cdef double constants
        cdef bint is_certain = True
        self._lay_out(way, fork, nested)
        for at in range(self.length):
            condition = draft.steps[self.spine[at]].condition
            if self.position_of(at) < 0 and self._is_asked(self.spine[at], fork, nested):
                is_certain = False
            while condition:
                kind = draft.conditions[condition].kind
                attribute = draft.conditions[condition].a
                if self._is_presence(condition):
                    constants = -self._atoms.users_of(attribute, PRESENCE)
                    if self._is_better(_PRESENCE, constants, at - self.length):
                        self._way, self._fork, self._nested = way, fork, nested
                        self.at, self.access = at, condition
                elif kind <= CHECK_ATOM:  # a comparison
                    constants = 0
                    if kind == CHECK_ATOM:
                        constants = self._atoms.constants(attribute)
                        if draft.conditions[condition].whole:
                            constants *= 0.5  # a column is to be computed
                        if self.position_of(at) < 0:
                            # It has to be verified again on each way.
                            constants *= 0.3
                    if self._is_better(
                        _EQUALITY if kind == CHECK_ATOM else _RANGE, constants, at - self.length
                    ):
                        self._way, self._fork, self._nested = way, fork, nested
                        self.at, self.access = at, condition
                condition = draft.conditions[condition].next
        constants = is_certain if draft.way_count == 1 else self.length
        if self._is_better(_NONE, constants, 0):
            self._way, self._fork, self._nested = way, fork, nested
            self.at, self.access = -1, 0
        return 0

    cdef bint _is_presence(self, int condition) except -1:
        """Whether a condition is, or says besides, that an attribute is there."""
        cdef Draft draft = self._draft
        cdef int kind = draft.conditions[condition].kind
        if kind == CHECK_DIFFERS:
            return draft.conditions[condition].a >= ATTRIBUTES and not (
                draft.conditions[condition].whole
            )
        return kind == CHECK_ATOM and draft.values[draft.conditions[condition].value] is PRESENCE

    cdef bint _is_better(self, int rank, double first, int second) noexcept:
        """Whether that is worth more than the best so far; if so, it is the best's worth now."""
        if rank != self._rank:
            if rank < self._rank:
                return False
        elif first != self._first_worth:
            if first < self._first_worth:
                return False
        elif second <= self._second_worth:
            return False
        self._rank = rank
        self._first_worth = first
        self._second_worth = second
        return True

    cdef bint _is_asked(self, int step, int fork, int nested) noexcept:
        """Whether anything is asked of the element of a step."""
        cdef Draft draft = self._draft
        cdef int condition = draft.steps[step].condition
        if step != fork:
            return condition != 0
        return (
            condition != nested
            or draft.conditions[condition].next != 0
            or draft.steps[step].next != 0
        )

    cdef int _lay_out(self, int way, int fork, int nested) except -1:
        """Set ``spine`` to a way, or to one that goes on by a nested path where it leaves it."""
        cdef Draft draft = self._draft
        cdef int step = way
        self.length = 0
        self._first_descendant = -1
        self._last_descendant = -1
        while step:
            if self.length == len(self.spine):
                self.spine = grown(self.spine, 2 * self.length)
            self.spine[self.length] = step
            if draft.steps[step].descendant:
                if self._last_descendant < 0:
                    self._first_descendant = self.length
                self._last_descendant = self.length
            self.length += 1
            if step == fork and nested:
                step = draft.conditions[nested].a
            else:
                step = draft.steps[step].next
        if self._last_descendant < 0:
            self._first_descendant = self.length
        return 0

    cdef int _change_draft(self) except -1:
        """Make conditions of the spine's steps out of all that the best spine does not take."""
        cdef Draft draft = self._draft
        cdef int step = self._fork
        cdef int nested = self._nested
        cdef int before, way
        if nested:
            before = draft.steps[step].condition
            if before == nested:
                draft.steps[step].condition = draft.conditions[nested].next
            else:
                while draft.conditions[before].next != nested:
                    before = draft.conditions[before].next
                draft.conditions[before].next = draft.conditions[nested].next
            if draft.steps[step].next:
                self._ask(step, CHECK_NESTED, draft.steps[step].next)
            draft.steps[step].next = draft.conditions[nested].a
            self._fork = self._nested = 0
        for way in range(draft.way_count):
            if draft.ways[way] != self._way:
                self._ask(self._way, CHECK_ANYWHERE, draft.ways[way])
        return 0

    cdef int _ask(self, int step, int kind, int way) except -1:
        """One more condition of a step."""
        cdef Draft draft = self._draft
        cdef int condition = draft.new_condition(
            kind, way, 0, draft.steps[step].condition
        )
        draft.steps[step].condition = condition
        return 0

    cdef int _length_of(self, int way) noexcept:
        cdef int length = 0
        while way:
            length += 1
            way = self._draft.steps[way].next
        return length


# -------------------------------------------------------------------------------------------------
# QueryWriter: a draft becomes a query, the path to it in the trie and what is left to verify.
#
# The path of a query in the trie holds the symbols on it and the atom of its access predicate, once
# for the query; see automaton.pxd for what is left.  What a residual names, symbols, attributes,
# atoms, numbers and other records, is held by its record, once, however many queries have that
# record; a residual of one equality has no record and holds it for its query.  So whatever the
# draft holds is given to the query, or given up where that is there already.

cpdef enum:
    # Fields of a condition that is left.
    LEFT_CONDITION = 0
    LEFT_POSITION = 1
    LEFT_WIDTH = 2

    # Fields of a check while they are put in order.
    NOTED_ORDER = 0
    NOTED_POSITION = 1
    NOTED_KIND = 2
    NOTED_A = 3
    NOTED_B = 4
    NOTED_WIDTH = 5


cdef class QueryWriter:
    """``write`` the query of the draft; ``erase`` undoes it.

    A query may be found in several ways (``write_other``): the others have rows of their own, which
    stand for it.
    """

    cdef Draft _draft
    cdef AccessPath _path
    cdef SymbolTable _symbols
    cdef AtomTable _atoms
    cdef RecordPool _records
    cdef Trie _trie
    cdef Twigs _twigs
    cdef OperatorTable _operators
    cdef DerivedColumns _columns
    cdef ResidualParts _parts
    cdef dict _others
    cdef int[::1] _order, _left, _checks, _numbers
    cdef int _length

    def __init__(
        self, draft: Draft, symbols: SymbolTable, atoms: AtomTable, records: RecordPool, trie: Trie,
        twigs: Twigs, columns: DerivedColumns
    ) -> None:
        self._draft = draft
        self._path = AccessPath(draft, atoms)
        self._symbols = symbols
        self._atoms = atoms
        self._records = records
        self._trie = trie
        self._twigs = twigs
        self._operators = columns.operators
        self._columns = columns
        self._parts = ResidualParts(symbols, atoms, records, twigs, columns)
        self._others: dict[int, list[int]] = {}
        self._order = array("i", (2, 2, 2, 2, 2, 0, 1, 3, 5, 6, 4, 7))  # of a kind: cheapest first
        self._left = ints(LEFT_WIDTH * 16)
        self._checks = ints(NOTED_WIDTH * 16)
        self._numbers = ints(64)  # of the record that is being written
        self._length = 0

    cpdef int write(self, int root) except -1:
        """A query below a root of the trie; its number, from 1."""
        cdef int node
        cdef int number = 0
        cdef AccessPath path = self._path
        path.choose()
        for condition in range(1, self._draft.condition_count + 1):
            if condition != path.access:
                self._read_column(condition)
        node = self._write_path(root)
        if path.access and self._draft.conditions[path.access].kind < CHECK_ATOM:
            number = self._draft.conditions[path.access].check_b
        return self._trie.add_query(node, self._write_residual(), number)

    cpdef int write_other(self, int root, int query) except -1:
        """Write the present draft as another alternative of a query."""
        cdef int other = self.write(root)
        self._trie.set_alias(other, query)
        self._others.setdefault(query, []).append(other)
        return other

    cpdef int erase(self, int query) except -1:
        """Take a query out; its memory is used again."""
        for other in self._others.pop(query, ()):
            self.erase(other)
        return self._erase(query)

    cdef int _erase(self, int query) except -1:
        cdef Trie trie = self._trie
        cdef int node = trie.queries[query].node
        cdef int residual = trie.queries[query].residual
        cdef int number = trie.queries[query].number
        edges = trie.edges_to(node)
        cdef int edge
        cdef int attribute = 0
        trie.remove_query(query)
        for edge in edges:
            if edge & EDGE_KIND == EDGE_ATTRIBUTE:
                attribute = edge >> EDGE_SHIFT
            elif edge & EDGE_KIND == EDGE_NAME and attribute:
                self._columns.forget(attribute, edge >> EDGE_SHIFT)
                attribute = 0
            if edge & EDGE_KIND == EDGE_ATOM:
                if self._atoms.is_range(edge >> EDGE_SHIFT):
                    self._atoms.release_number(number)
                self._parts.release_atom(edge >> EDGE_SHIFT)
            elif edge & EDGE_KIND == EDGE_NAME:
                self._symbols.release(edge >> EDGE_SHIFT)
        if residual > 0:
            self._parts.release_check(
                CHECK_TWIG if residual & CODE_TWIG else CHECK_ATOM, residual >> CODE_SHIFT, 0
            )
        elif residual < 0:
            self._parts.release_record(-residual)
        return 0

    cdef int _write_path(self, int node) except -1:
        """The node behind the spine and its access predicate."""
        cdef Trie trie = self._trie
        cdef AccessPath path = self._path
        cdef DraftStep* rows = self._draft.steps
        cdef int at, symbol
        for at in range(path.length):
            if rows[path.spine[at]].descendant:
                node = trie.loop_of(node)
            symbol = rows[path.spine[at]].symbol
            node = trie.extend(node, symbol << EDGE_SHIFT)
            if at == path.at:
                node = self._write_access(node, symbol)
        return node

    cdef int _read_column(self, int condition) except -1:
        """Have a condition on a column, if it is one, verified by what the column holds."""
        if self._draft.conditions[condition].whole:
            self._draft.conditions[condition].kind |= CHECK_COLUMN
        return 0

    cdef int _write_access(self, int node, int symbol) except -1:
        cdef int attribute = self._draft.conditions[self._path.access].a
        cdef int kind = self._draft.conditions[self._path.access].kind
        cdef int atom
        if kind == CHECK_DIFFERS:  # which is left to verify
            self._symbols.retain_attribute(attribute)
            atom = self._atoms.acquire(attribute, PRESENCE)
        else:
            self._settle(self._path.access)
            atom = self._draft.conditions[self._path.access].check_a
        if kind < CHECK_ATOM:
            atom = self._atoms.acquire_range(attribute, kind)
        if self._draft.conditions[self._path.access].whole:
            self._columns.ask(attribute, symbol)
        node = self._trie.extend(node, attribute << EDGE_SHIFT | EDGE_ATTRIBUTE)
        return self._trie.extend(node, atom << EDGE_SHIFT | EDGE_ATOM)

    cdef int _write_residual(self) except? -1:
        """Write the rest to verify."""
        cdef AccessPath path = self._path
        cdef int i
        cdef int count = self._collect_left()
        cdef bint on_path = False
        cdef int required = 0
        for i in range(count):
            self._settle(self._left[LEFT_WIDTH * i + LEFT_CONDITION])
            on_path |= self._left[LEFT_WIDTH * i + LEFT_POSITION] < 0
        if count == 0:
            return 0
        if count == 1 and self._quick():
            return self._quick()
        for i in range(count):
            required = _rarer(
                required, self._required_by(self._left[LEFT_WIDTH * i + LEFT_CONDITION])
            )
        if not on_path:
            return -self._write_fixed(count, required)
        # The record holds the spine and the access predicate, too.
        for i in range(path.length):
            self._symbols.retain(self._draft.steps[path.spine[i]].symbol)
        if path.access and self._draft.conditions[path.access].kind != CHECK_DIFFERS:
            self._symbols.retain_attribute(self._draft.conditions[path.access].a)
            self._read_column(path.access)
            self._settle(path.access)
        return -self._write_way(MODE_ON_PATH, path.spine[0], required)

    cdef int _collect_left(self) except -1:
        """How many conditions of the spine are left, in ``_left``; repeated ones are dropped."""
        cdef Draft draft = self._draft
        cdef AccessPath path = self._path
        cdef int at, condition, following, before
        cdef int count = 0
        for at in range(path.length):
            condition = draft.steps[path.spine[at]].condition
            before = 0
            while condition:
                following = draft.conditions[condition].next
                if at == path.at and condition != path.access and self._is_access(condition):
                    self._symbols.release_attribute(draft.conditions[condition].a)
                    if before:
                        draft.conditions[before].next = following
                    else:
                        draft.steps[path.spine[at]].condition = following
                else:
                    before = condition
                    if (
                        condition != path.access
                        or draft.conditions[condition].kind == CHECK_DIFFERS
                    ):
                        if LEFT_WIDTH * count == len(self._left):
                            self._left = grown(self._left, 2 * LEFT_WIDTH * count)
                        self._left[LEFT_WIDTH * count + LEFT_CONDITION] = condition
                        self._left[LEFT_WIDTH * count + LEFT_POSITION] = path.position_of(at)
                        if draft.conditions[condition].kind == CHECK_ANYWHERE:
                            self._left[LEFT_WIDTH * count + LEFT_POSITION] = (
                                POSITION_ABSOLUTE  # the root
                            )
                        count += 1
                condition = following
        return count

    cdef bint _is_access(self, int condition) except -1:
        """Whether a condition is equal to the access predicate."""
        cdef DraftCondition one = self._draft.conditions[condition]
        cdef DraftCondition other = self._draft.conditions[self._path.access]
        values = self._draft.values
        cdef bint is_equal = (
            one.kind == other.kind
            and one.a == other.a
            and values[one.value] == values[other.value]
        )
        return is_equal

    cdef int _settle(self, int condition) except -1:
        """Make the check of a condition, which holds what the draft held."""
        cdef bint is_twig
        cdef Draft draft = self._draft
        cdef int kind = draft.conditions[condition].kind
        cdef int a = draft.conditions[condition].a
        cdef int b = 0
        if kind & CHECK_COLUMN:
            self._columns.acquire(a)
        if kind >= CHECK_COLUMN and kind & CHECK_OF_ELEMENT == CHECK_ATOM:
            b = a
            a = self._atoms.acquire(a, self._octets(condition))
        elif kind in (CHECK_NESTED, CHECK_ANYWHERE):
            is_twig = self._settle_way(a) and kind == CHECK_NESTED
            a = self._write_way(MODE_BELOW, a, 0)
            if is_twig:
                kind = CHECK_TWIG
                a = self._twigs.acquire(a)
        elif kind == CHECK_ATOM:
            a = self._atoms.acquire(a, self._octets(condition))
        elif kind == CHECK_DIFFERS:
            # The constant is kept as an equality of its attribute, which is held for it as well.
            b = self._atoms.acquire(a, self._octets(condition))
            self._symbols.retain_attribute(a)
        elif kind == CHECK_VERIFIED:
            a = self._operators.acquire(draft.values[draft.conditions[condition].value])
        elif kind != CHECK_EXISTS:
            self._atoms.cover(a)
            if kind & CHECK_COLUMN:
                self._atoms.acquire_range(a, kind & CHECK_OF_ELEMENT)
            b = self._atoms.acquire_number(float(draft.values[draft.conditions[condition].value]))
        draft.conditions[condition].kind = kind
        draft.conditions[condition].check_a = a
        draft.conditions[condition].check_b = b
        return 0

    cdef bint _settle_way(self, int step) except -1:
        """Settle the conditions of a way down; whether it has none."""
        cdef Draft draft = self._draft
        cdef int condition
        cdef bint is_plain = True
        while step:
            condition = draft.steps[step].condition
            while condition:
                is_plain = False
                self._settle(condition)
                condition = draft.conditions[condition].next
            step = draft.steps[step].next
        return is_plain

    cdef bytes _octets(self, int condition):
        """The value of an equality, as the atom has it."""
        value = self._draft.values[self._draft.conditions[condition].value]
        if isinstance(value, bytes):
            return value  # the key of a text test
        return value.encode() if isinstance(value, str) else number_key(float(value))

    cdef int _required_by(self, int condition) except -1:
        """Something that the message has to contain for a condition to hold: see automaton.pxd.

        Of several things the newest comparison, else the newest name.
        """
        cdef Draft draft = self._draft
        cdef int step
        cdef int found = 0
        if draft.conditions[condition].kind == CHECK_ATOM:
            return draft.conditions[condition].check_a << REQUIRED_SHIFT | REQUIRED_ATOM
        if (
            draft.conditions[condition].kind < CHECK_NESTED
            or draft.conditions[condition].kind >= CHECK_VERIFIED
        ):
            return 0
        step = draft.conditions[condition].a
        while step:
            found = _rarer(found, draft.steps[step].symbol << REQUIRED_SHIFT)
            condition = draft.steps[step].condition
            while condition:
                found = _rarer(found, self._required_by(condition))
                condition = draft.conditions[condition].next
            step = draft.steps[step].next
        return found

    cdef int _quick(self) noexcept:
        """The rest as one condition without a record, 0 if it needs one."""
        cdef int position = self._left[LEFT_POSITION]
        cdef int depth = position >> POSITION_SHIFT
        cdef int kind = self._draft.conditions[self._left[LEFT_CONDITION]].kind
        cdef int number = self._draft.conditions[self._left[LEFT_CONDITION]].check_a
        if kind not in (CHECK_TWIG, CHECK_ATOM) or number >> ATOM_BITS:
            return 0
        if position < 0 or depth > CODE_DEPTH:
            return 0
        if kind == CHECK_TWIG:
            depth |= CODE_TWIG
        if position & POSITION_ABSOLUTE:
            depth |= CODE_ABSOLUTE
        return number << CODE_SHIFT | depth

    cdef int _write_fixed(self, int count, int required) except -1:
        """The record of the conditions left, at elements of known depth."""
        cdef int i, j
        for i in range(count):
            self._note_check(
                i,
                self._left[LEFT_WIDTH * i + LEFT_POSITION],
                self._left[LEFT_WIDTH * i + LEFT_CONDITION],
            )
        count = self._ordered_checks(count)
        self._begin_record(MODE_FIXED, required, count)
        for i in range(count):
            for j in range(NOTED_POSITION, NOTED_WIDTH):
                self._put(self._checks[NOTED_WIDTH * i + j])
        return self._record()

    cdef int _write_way(self, int mode, int first, int required) except -1:
        """The record of a way down whose conditions are settled."""
        cdef Draft draft = self._draft
        cdef int step = first
        cdef int condition
        cdef int count = 0
        cdef int i, _i, j
        cdef int at = 0
        while step:
            count += 1
            step = draft.steps[step].next
        self._begin_record(mode, required, count)
        for _i in range(count):
            self._put(0)
        step = first
        while step:
            self._numbers[RECORD_ROWS + at] = self._length
            at += 1
            count = 0
            condition = draft.steps[step].condition
            while condition:
                self._note_check(count, 0, condition)
                count += 1
                condition = draft.conditions[condition].next
            count = self._ordered_checks(count)
            self._put(draft.steps[step].descendant)
            self._put(draft.steps[step].symbol)
            self._put(count)
            for i in range(count):
                for j in range(NOTED_KIND, NOTED_WIDTH):
                    self._put(self._checks[NOTED_WIDTH * i + j])
            step = draft.steps[step].next
        return self._record()

    cdef int _begin_record(self, int mode, int required, int count) except -1:
        self._length = 0
        self._put(mode)
        self._put(required)
        self._put(count)
        return 0

    cdef int _put(self, int number) except -1:
        if self._length == len(self._numbers):
            self._numbers = grown(self._numbers, 2 * self._length)
        self._numbers[self._length] = number
        self._length += 1
        return 0

    cdef int _record(self) except -1:
        """The record of the numbers put, which holds what they name."""
        cdef int record = self._records.acquire(self._numbers, self._length)
        if self._records.words[record + POOLED_USERS] > 1:
            self._parts.release_parts(record)  # the record has them already
        return record

    cdef int _note_check(self, int place, int position, int condition) except -1:
        cdef int kind = self._draft.conditions[condition].kind
        cdef int at = NOTED_WIDTH * place
        if at == len(self._checks):
            self._checks = grown(self._checks, 2 * at)
        self._checks[at + NOTED_ORDER] = self._order[kind] if kind < CHECK_COLUMN else 6
        self._checks[at + NOTED_POSITION] = position
        self._checks[at + NOTED_KIND] = kind
        self._checks[at + NOTED_A] = self._draft.conditions[condition].check_a
        self._checks[at + NOTED_B] = self._draft.conditions[condition].check_b
        return 0

    cdef int _ordered_checks(self, int count) except -1:
        """Order so many checks, the cheapest first, and leave out what is there twice; how many
        there are then."""
        cdef int[::1] checks = self._checks
        cdef int i, j, k
        cdef int kept = 0
        for i in range(1, count):
            j = i
            while j > 0 and _order_of(checks, NOTED_WIDTH * (j - 1), NOTED_WIDTH * j) > 0:
                for k in range(NOTED_WIDTH * j, NOTED_WIDTH * j + NOTED_WIDTH):
                    checks[k - NOTED_WIDTH], checks[k] = checks[k], checks[k - NOTED_WIDTH]
                j -= 1
        for i in range(count):
            j = NOTED_WIDTH * i
            if kept and _order_of(checks, NOTED_WIDTH * (kept - 1), j) == 0:
                self._parts.release_check(
                    checks[j + NOTED_KIND], checks[j + NOTED_A], checks[j + NOTED_B]
                )
                continue
            for k in range(NOTED_WIDTH):
                checks[NOTED_WIDTH * kept + k] = checks[j + k]
            kept += 1
        return kept


cdef int _order_of(int[::1] checks, int one, int other) noexcept:
    """Below, above or 0 as a row is before or after another one, or is equal to it."""
    cdef int i
    for i in range(NOTED_WIDTH):
        if checks[one + i] != checks[other + i]:
            return -1 if checks[one + i] < checks[other + i] else 1
    return 0


cdef int _rarer(int one, int other) noexcept:
    """Of two things required the better one: a comparison rather than a name."""
    if one & REQUIRED_ATOM != other & REQUIRED_ATOM:
        return one if one & REQUIRED_ATOM else other
    return max(one, other)
