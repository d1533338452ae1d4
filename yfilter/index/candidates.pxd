# The part of candidates.pyx that the projection uses.
cimport cython
from yfilter.index.automaton cimport (
    AcceptLists, AtomTable, LazyStates, RecordPool, SymbolTable, TextTests, Trie,
)
from yfilter.operators.operators cimport MessageColumns, OperatorTable


@cython.final
cdef class MessageView(MessageColumns):
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

    cdef bint holds(self, int element, int atom) noexcept
    cdef bint has_atom(self, int atom) noexcept
    cdef bint exists(self, int element, int attribute) noexcept
    cdef bint differs(self, int element, int attribute, int atom) except -1
    cdef bint compares(self, int element, int attribute, int operator, double number) except -1
    cdef double number(self, int element, int attribute, bint smallest) except? -1
    cdef int[::1] _asked
    cdef int[::1] _text_asked
    cdef int[::1] _found
    cdef int[::1] _text_found

    cdef int _allocate(self, int elements, int contents, int attributes) except -1
    cdef int _find_values(self, bint texts) except -1
    cdef int _sort_by_depth(self) except -1
    cdef int _sort_by_name(self, int[::1] first) except -1
    cdef int _look_up_texts(self, int element, int place) except -1
    cdef bint _is_asked_for(self, int attribute) noexcept
    cdef int _find_atoms(self) except -1
    cdef bint _has_numbers(self, int attribute) noexcept
    cdef int _look_up_number(self, int element, int attribute, double number) except -1
    cdef int _look_up_string_value(self, int element) except -1
    cdef int _add_own(self, int element, int atom) except -1
    cdef int _new_own(self, bint has_edge) except -1
    cdef bint _is_value(self, int atom, const unsigned char* values, int first, int last) noexcept


@cython.final
cdef class NamesBelow:
    cdef MessageView _view
    cdef SymbolTable _symbols
    cdef unsigned long long[::1] _bits
    cdef bint _is_made
    cdef readonly bint is_sure

    cpdef begin(self)
    cdef int answer(self, int needs, int element) except -1
    cdef int _make(self) except -1


@cython.final
cdef class Twigs:
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

    cpdef int begin(self) except -1
    cpdef int acquire(self, int record) except -1
    cpdef int remove(self, int twig) except -1
    cpdef int start(self) except -1
    cpdef int record(self, int twig) noexcept
    cdef int answer(self, int twig, int element) except -1
    cdef int row(self, int element, int count, long long visits_max) except -2
    cdef int _added(self, int node, int record) except -1
    cdef int _made(self, int element, long long visits_max) except -1
    cdef int _walk(self, int element, int row, long long visits_max) except -1
    cdef int _moved(self, int top, int depth, int label) except -1
    cdef int _turn(self, int top, int depth) except -1
    cdef int _take(self, int place, int row) except -1
    cdef int _forget_rows(self) except -1


@cython.final
cdef class Residuals:
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

    cdef bint hold(self, int record, int element) except -1
    cdef bint ancestor_holds(self, int code, int element) except -1
    cdef int ancestor(self, int element, int steps, bint absolute) noexcept
    cdef int further(
        self, int position, int symbol, int attribute, bint smallest, int element
    ) except -1
    cdef int twig_row(self, int element, int count) except -2
    cdef bint has_twig(self, int row, int twig, int element, int level) except -1
    cdef bint _fixed(self, int record, int element) except -1
    cdef bint _on_path(self, int record, int element) except -1
    cdef bint _found_anywhere(self, int record) except -1
    cdef bint _found_below(self, int record, int element, int level) except -1
    cdef bint _within(self, int record, int first, int end, int level) except -1
    cdef bint _scanned(self, int record, int first, int end, int level) except -1
    cdef int _only_name(self, int symbol) noexcept
    cdef int _first_of(self, int name, int first) noexcept
    cdef bint _leads_to(self, int record, int top, int target, int level) except -1
    cdef bint seen(self, int symbol) noexcept
    cdef bint _step_holds(self, int record, int step, int element, int level) except -1
    cdef bint _check(self, int place, int element, int level) except -1
    cdef unsigned long long _descendants(self, int record) noexcept
    cdef bint _verified(self, int operator, int element) except -1
    cdef bint _column_holds(self, int kind, int a, int b, int element) except -1
    cdef bint _accepts(self, int symbol, int element) noexcept


cdef class Offers:
    cdef MessageView view
    cdef readonly Residuals residuals
    cdef int _touched, _offered, _low, _high
    cdef int[::1] _place
    cdef int[::1] _element
    cdef int[::1] _operator
    cdef int[::1] _lists
    cdef double[::1] _bounds
    cdef double[::1] _number

    cdef int offer(self, int place, int element, int operator, double number) except -1
    cdef int settle(self, AcceptLists accepts) except -1
    cdef int give_up(self, list queries, int element, bint is_new) except -1
    cdef bint is_any_wanted(self) noexcept
    cdef bint is_possible(self, int required) noexcept
    cdef int _take(self, int query, int residual, int element) except -1
    cdef int _take_sure(self, int place, int element) except -1
    cdef int _take_unsure(self, int place, int element) except -1
    cdef int _take_list(self, int place, int element) except -1
    cdef int _take_range(self, int place, int offer) except -1
    cdef int _take_seconds(self, int at, int end, int element) except -1
    cdef int _take_alike(self, int at, int end, bint is_below, int element) except -1
    cdef bint _held(self, int query, int record, int element) except -1
    cdef int _satisfy(self, int bounds, int count, double number, int operator) except -1
    cdef int _take_held(self, int at, int end, int element) except -1
    cdef int _take_rows(self, int at, int end, int element) except -1


@cython.final
cdef class Locations(Offers):
    cdef readonly int count
    cdef readonly int[::1] element
    cdef readonly int[::1] query
    cdef readonly int[::1] residual
    cdef int[::1] _met_element
    cdef int[::1] _met_query
    cdef int[::1] _met_residual
    cdef int[::1] _start

    cpdef int begin(self, long long visits_max) except -1
    cpdef int end(self) except -1
    cpdef object visits(self)
    cpdef bint holds(self, int hit) except -1
