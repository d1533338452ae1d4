cimport cython
from yfilter.index.names_below cimport *
from yfilter.index.residual_rows cimport *
from yfilter.index.twigs cimport Twigs
from yfilter.index.message_view cimport MessageView
from yfilter.index.record_pool cimport RecordPool
from yfilter.index.symbols cimport SymbolTable
from yfilter.operators.operator_table cimport OperatorTable


cpdef enum:
    # What further() answers.
    FURTHER_NONE = 0
    FURTHER_SOME = 1
    FURTHER_ANY = 2


@cython.final
cdef class Residuals:
    cdef MessageView view
    cdef readonly Twigs twigs
    cdef OperatorTable operators
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
    cdef bint _accepts(self, int symbol, int element) noexcept
