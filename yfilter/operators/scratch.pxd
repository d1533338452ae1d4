# The C types of scratch.py, and the names of its numbers.
from yfilter.index.symbols cimport SymbolTable
from yfilter.operators.message_columns cimport MessageColumns

cdef long long _FIRST_LOOK, _FIRST_STEP
cdef double _NOT_BEGUN

cpdef enum:
    # A node: its number * KINDS + its kind.
    KIND_ELEMENT = 0
    KIND_ATTRIBUTE = 1
    KIND_TEXT = 2
    KIND_MASK = 3
    KIND_SHIFT = 2
    KINDS = 4

    # The document node.
    ROOT = -4


cdef class Scratch:
    cdef MessageColumns columns
    cdef SymbolTable symbols
    cdef readonly int message
    cdef int[::1] label
    cdef int[::1] attribute
    cdef int[::1] exact
    cdef int[::1] in_namespace
    cdef int[::1] any_namespace
    cdef long long[::1] nodes
    cdef int top
    cdef readonly long long visits
    cdef public long long visits_max
    cdef long long clock_at
    cdef double began, _looked
    cdef long long _step
    cdef bytes octets
    cdef int first
    cdef int last
    cdef object _limits
    cdef object _evaluator
    cdef bint _is_spent

    cdef bint accepts(self, int symbol, int element) noexcept
    cdef int visit(self, long long count) except -1
    cdef int restart(self, long long spent=*) except -1
    cdef int _look(self) except -1
    cdef int push(self, long long node) except -1
    cdef int tidy(self, int base) except -1
    cdef int look_at(self, long long node) except -1
    cdef str text(self, long long node)
    cdef object node_of(self, long long node)
    cdef object nodes_from(self, int base)
    cdef object evaluator(self)
    cdef int element_with(self, int attribute) except -1
