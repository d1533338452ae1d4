# The C types of draft.py, and the names of its numbers.
from yfilter.index.residual_rows cimport *
from yfilter.index.symbols cimport SymbolTable

cpdef enum:
    # Fields of a step.
    STEP_DESCENDANT = 0
    STEP_SYMBOL = 1
    STEP_CONDITION = 2
    STEP_NEXT = 3
    STEP_WIDTH = 4

    # Fields of a condition.
    CONDITION_KIND = 0
    CONDITION_A = 1
    CONDITION_VALUE = 2
    CONDITION_NEXT = 3
    CONDITION_CHECK_A = 4
    CONDITION_CHECK_B = 5
    CONDITION_WIDTH = 6


cdef class Recipe:
    cdef int[::1] codes
    cdef list constants


cdef class Draft:
    cdef int[::1] steps
    cdef int[::1] conditions
    cdef int[::1] ways
    cdef int way_count
    cdef list values
    cdef SymbolTable _symbols
    cdef int _step_count
    cdef int _condition_count
    cdef int[::1] _codes
    cdef int _at
    cdef list _constants
    cdef tuple _words

    cpdef int fill(self, list ways) except -1
    cdef int new_condition(self, int kind, int a, int value, int following) except -1
    cdef int _add_way(self, object way) except -1
    cdef int _new_step(self, int descendant, int symbol) except -1
    cdef int _read_conditions(self) except -1
    cdef int _read_way(self) except -1
    cdef int _read_attribute(self) except -1
    cdef object _read_name(self)
    cdef object _read_word(self)
    cdef int _next(self) noexcept
